// What a plug-in's table must have.
#include "device/plugin.h"

#include <string.h>

#include "base/status.h"

typedef struct entry {
  size_t offset;
  const char *name;
} entry;

#define SLOT(function) \
  { offsetof(C_DeviceInterface, function), #function }

static bool has(const C_DeviceInterface *abi, entry s) {
  void *function = NULL;
  memcpy(&function, (const char *)abi + s.offset, sizeof function);
  return function != NULL;
}

static const entry required[] = {
    SLOT(device_memory_allocate), SLOT(device_memory_deallocate),
    SLOT(memory_copy_h2d),        SLOT(memory_copy_d2h),
    SLOT(memory_copy_d2d),        SLOT(device_memory_stats),
    SLOT(device_min_chunk_size),  SLOT(get_device_count),
};

// Sets of functions of which a plug-in has all or none.
static const entry sets[][4] = {
    {SLOT(host_memory_allocate), SLOT(host_memory_deallocate)},
    {SLOT(unified_memory_allocate), SLOT(unified_memory_deallocate)},
    {SLOT(create_stream), SLOT(destroy_stream), SLOT(synchronize_stream)},
    {SLOT(create_event), SLOT(record_event), SLOT(destroy_event),
     SLOT(synchronize_event)},
};

enum {
  REQUIRED_COUNT = sizeof required / sizeof required[0],
  SET_COUNT = sizeof sets / sizeof sets[0],
  SET_SIZE = sizeof sets[0] / sizeof sets[0][0],
};

static tarn_status check_set(const C_DeviceInterface *abi, const entry *set,
                             const char *origin) {
  const char *present = NULL;
  const char *missing = NULL;
  for (size_t i = 0; i < SET_SIZE && set[i].name != NULL; i++) {
    if (has(abi, set[i])) {
      present = set[i].name;
    } else {
      missing = set[i].name;
    }
  }
  if (present == NULL || missing == NULL) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED, "%s: has %s but not %s", origin,
                    present, missing);
}

tarn_status tarn__table_check(const C_DeviceInterface *abi,
                              const char *origin) {
  for (size_t i = 0; i < REQUIRED_COUNT; i++) {
    if (has(abi, required[i])) continue;
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: the required function %s is missing", origin,
                      required[i].name);
  }
  for (size_t i = 0; i < SET_COUNT; i++) {
    tarn_status status = check_set(abi, sets[i], origin);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}
