// Taking in a plug-in's extension table.
#include "device/plugin.h"

#include <string.h>

#include "base/status.h"

typedef struct slot {
  size_t offset;
  const char *name;
} slot;

#define SLOT(function) \
  { offsetof(tarn_device_ext, function), #function }

enum {
  HEAD_SIZE = offsetof(tarn_device_ext, alignment),
  SIZE_LIMIT = 64 << 10,  // no table is as large; a pointer read as a size is
  SET_ROOM = 8,
};

// Slots of which a plug-in has all or none.
static const slot sets[][SET_ROOM] = {
    {SLOT(range_granularity), SLOT(range_reserve), SLOT(range_release),
     SLOT(memory_create), SLOT(memory_destroy), SLOT(range_map),
     SLOT(range_unmap), SLOT(range_set_access)},
    {SLOT(memory_export), SLOT(memory_import)},
    {SLOT(allocate_async), SLOT(deallocate_async)},
    {SLOT(host_register), SLOT(host_unregister)},
    {SLOT(allocation_export), SLOT(allocation_import), SLOT(allocation_close)},
};
enum { SET_COUNT = sizeof sets / sizeof sets[0] };

static bool has(const tarn_device_ext *ext, slot s) {
  void *function = NULL;
  memcpy(&function, (const char *)ext + s.offset, sizeof function);
  return function != NULL;
}

static tarn_status check_set(const tarn_device_ext *ext, const slot *set,
                             const char *origin) {
  const char *present = NULL;
  const char *missing = NULL;
  for (size_t i = 0; i < SET_ROOM && set[i].name != NULL; i++) {
    if (has(ext, set[i])) {
      present = set[i].name;
    } else {
      missing = set[i].name;
    }
  }
  if (present == NULL || missing == NULL) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED, "%s: its extension has %s but not %s",
                    origin, present, missing);
}

static tarn_status check(const tarn_device_ext *ext, const char *origin) {
  for (size_t i = 0; i < SET_COUNT; i++) {
    tarn_status status = check_set(ext, sets[i], origin);
    if (status != TARN_OK) return status;
  }
  if (ext->memory_export == NULL || ext->range_map != NULL) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "%s: its extension has memory_export but not range_map",
                    origin);
}

tarn_status tarn__extension_take(const tarn_device_ext *offered,
                                 const char *origin, tarn_device_ext *out) {
  memset(out, 0, sizeof *out);
  if (offered == NULL) return TARN_OK;
  size_t size = offered->struct_size;
  if (size < HEAD_SIZE || size > SIZE_LIMIT) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: its extension says that it has %zu bytes", origin,
                      size);
  }
  if (offered->version != TARN_DEVICE_EXT_VERSION) {
    tarn__log(TARN_LOG_WARN,
              "%s: its extension is of version %u, not %d: unused", origin,
              (unsigned)offered->version, TARN_DEVICE_EXT_VERSION);
    return TARN_OK;
  }
  size -= size % sizeof(void *);  // a part of a slot is no slot
  memcpy(out, offered, size < sizeof *out ? size : sizeof *out);
  out->struct_size = sizeof *out;
  tarn_status status = check(out, origin);
  if (status != TARN_OK) memset(out, 0, sizeof *out);
  return status;
}

// --- bits ------------------------------------------------------------------

static const struct {
  tarn_device_extension bit;
  const char *name;
  size_t offset;  // of a slot that tells; 0: a flag does
} extensions[] = {
    {TARN_EXTENSION_ALIGNMENT, "alignment",
     offsetof(tarn_device_ext, alignment)},
    {TARN_EXTENSION_ALIGNED, "allocate_aligned",
     offsetof(tarn_device_ext, allocate_aligned)},
    {TARN_EXTENSION_RANGES, "ranges", offsetof(tarn_device_ext, range_map)},
    {TARN_EXTENSION_SHARING, "sharing",
     offsetof(tarn_device_ext, memory_export)},
    {TARN_EXTENSION_STREAM_ORDER, "stream_order",
     offsetof(tarn_device_ext, allocate_async)},
    {TARN_EXTENSION_REGISTER, "host_register",
     offsetof(tarn_device_ext, host_register)},
    {TARN_EXTENSION_POINTERS, "pointer_query",
     offsetof(tarn_device_ext, pointer_query)},
    {TARN_EXTENSION_TEXTS, "error_text", offsetof(tarn_device_ext, error_text)},
    {TARN_EXTENSION_GATHER, "gather", offsetof(tarn_device_ext, gather)},
    {TARN_EXTENSION_SCATTER, "scatter", offsetof(tarn_device_ext, scatter)},
    {TARN_EXTENSION_SCATTER_ADD, "scatter_add",
     offsetof(tarn_device_ext, scatter_add)},
    {TARN_EXTENSION_HANDLES, "handles",
     offsetof(tarn_device_ext, allocation_export)},
    {TARN_EXTENSION_DEFAULT_STREAM, "default_stream",
     offsetof(tarn_device_ext, default_stream)},
    {TARN_EXTENSION_RETAINS, "retains", 0},
};
enum { EXTENSION_COUNT = sizeof extensions / sizeof extensions[0] };

uint32_t tarn__extension_bits(const tarn_device_ext *ext) {
  uint32_t bits = 0;
  for (size_t i = 0; i < EXTENSION_COUNT; i++) {
    slot s = {extensions[i].offset, extensions[i].name};
    bool there = s.offset != 0 ? has(ext, s) : ext->flags & TARN_EXT_RETAINS;
    if (there) bits |= (uint32_t)extensions[i].bit;
  }
  return bits;
}

const char *tarn_device_extension_name(tarn_device_extension bit) {
  for (size_t i = 0; i < EXTENSION_COUNT; i++) {
    if (extensions[i].bit == bit) return extensions[i].name;
  }
  return NULL;
}
