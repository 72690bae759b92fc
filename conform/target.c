// The plug-in under test: found, taken in, initialised, ended.
//
// It is an instance of its own, apart from the library's registry, so that a
// plug-in of a type that is built in can be tested, and so that what is called
// is the plug-in's own table, without a stand-in.
#include <stdio.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "check.h"
#include "device/modules.h"

// ---------------------------------------------------------------------------
// From the file to devices
// ---------------------------------------------------------------------------

static bool find_file(conform_target *t, const char *file, char *out_origin) {
  char *path = NULL;
  if (tarn__plugin_find(file, &t->entry, &path) != TARN_OK) return false;
  snprintf(out_origin, PATH_MAX, "%s", path);
  tarn__host_free_text(path);
  return true;
}

// The error's text is "" if there is none of the type.
static bool find_type(conform_target *t, const char *type, char *out_origin) {
  char *file = NULL;
  if (tarn__plugin_find_builtin(type, &t->entry)) {
    snprintf(out_origin, PATH_MAX, "built-in");
    return true;
  }
  if (tarn__module_find(type, &file) != TARN_OK) return false;
  if (file == NULL) return tarn__fail(TARN_E_INVALID, "%s", "") == TARN_OK;
  bool found = find_file(t, file, out_origin);
  tarn__host_free_text(file);
  return found;
}

bool conform_target_find(conform_target *t, const conform_request *request,
                         char *out_origin) {
  return request->path != NULL ? find_file(t, request->path, out_origin)
                               : find_type(t, request->type, out_origin);
}

bool conform_target_load(conform_target *t, const char *origin) {
  if (t->plugin != NULL) return true;
  if (tarn__plugin_create(t->entry, origin, &t->plugin) != TARN_OK) {
    return false;
  }
  t->abi = &t->plugin->own;
  t->ext = &t->plugin->ext;
  return true;
}

static bool initialize(conform_target *t) {
  if (t->abi->initialize == NULL) return true;
  return conform_went_well(t, "initialize", t->abi->initialize());
}

static bool list_devices(conform_target *t) {
  CALL(t, get_device_count, &t->count);
  EXPECT(t, t->count > 0, "get_device_count says 0");
  EXPECT(t, t->count < CHECK_DEVICES_MAX, "get_device_count says %zu",
         t->count);
  for (size_t i = 0; i < CHECK_DEVICES_MAX; i++)
    t->ids[i] = i;
  if (t->abi->get_device_list != NULL) CALL(t, get_device_list, t->ids);
  return true;
}

// The plug-in may replace the id.
static bool init_device(conform_target *t, size_t index,
                        struct C_Device_st *out) {
  out->id = (int)t->ids[index];
  if (t->abi->init_device == NULL) return true;
  C_Status got = t->abi->init_device(out);
  if (got == C_SUCCESS || got == C_WARNING) return true;
  return conform_fail(t, "init_device of device %zu answered %s, not C_SUCCESS",
                      t->ids[index], conform_status(got));
}

// What several checks have to know. Wrong answers are theirs to find.
static void look(conform_target *t) {
  size_t available = 0;
  t->total = 0;
  t->min_chunk = 0;
  (void)check_enter(t, &t->device);
  (void)t->abi->device_memory_stats(&t->device, &t->total, &available);
  (void)t->abi->device_min_chunk_size(&t->device, &t->min_chunk);
  if (!tarn_is_power_of_two(t->min_chunk)) t->min_chunk = 1;
}

conform_readiness conform_target_initialize(conform_target *t) {
  if (t->ready) return CONFORM_READY;
  if (!initialize(t) || !list_devices(t)) return CONFORM_NOT_READY;
  if (t->wanted >= t->count) {
    conform_fail(t, "%s has no device %zu, but %zu of them", t->plugin->type,
                 t->wanted, t->count);
    return CONFORM_NOT_THERE;
  }
  if (!init_device(t, t->wanted, &t->device)) return CONFORM_NOT_READY;
  size_t other = t->wanted == 0 ? 1 : 0;
  if (t->count > 1 && !init_device(t, other, &t->other)) {
    return CONFORM_NOT_READY;
  }
  look(t);
  t->ready = true;
  return CONFORM_READY;
}

static void end_devices(conform_target *t) {
  t->ready = false;
  if (t->abi->deinit_device != NULL) {
    (void)t->abi->deinit_device(&t->device);
    if (t->count > 1) (void)t->abi->deinit_device(&t->other);
  }
  if (t->abi->finalize != NULL) (void)t->abi->finalize();
}

void conform_target_end(conform_target *t) {
  if (t->ready) end_devices(t);
  tarn__plugin_destroy(t->plugin);
  t->plugin = NULL;
}
