// Listing: devices, and plug-ins with what is wrong with them.
//
// Both begin with the modules: each that can be loaded becomes known. Then the
// known plug-ins are initialised one by one. What one module lacks, such as a
// driver, is no failure of the listing, since nobody has asked for that module:
//
//   modules   load ── fails ───────────────────────► told by tarn_plugin_each
//               └─ known ─► initialise ── fails ───► the same
//   others                  initialise ── fails ───► and tarn_device_each fails
//
// No lock is held while the caller's function runs.
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "device/device.h"
#include "device/modules.h"

// Whether a failure says what a file or a driver lacks, rather than that this
// process lacks memory or must not call.
static bool is_of_plugin(tarn_status status) {
  return status == TARN_E_IO || status == TARN_E_UNSUPPORTED ||
         status == TARN_E_DEVICE;
}

// Behind "|start|: " in |text|; |text| itself if it begins otherwise.
static const char *behind(const char *text, const char *start) {
  size_t length = strlen(start);
  bool begins =
      strncmp(text, start, length) == 0 && strncmp(text + length, ": ", 2) == 0;
  return begins ? text + length + 2 : text;
}

// --- modules ---------------------------------------------------------------

static tarn_status take_module(tarn__device_module *module) {
  module->status = tarn__plugin_take_module(module->path, module->type);
  if (module->status == TARN_OK) return TARN_OK;
  if (!is_of_plugin(module->status)) return module->status;
  module->reason = tarn__host_text(behind(tarn_last_error(), module->path));
  return module->reason != NULL ? TARN_OK : TARN_E_NOMEM;
}

// Makes all modules known that can be loaded. The caller ends the list.
static tarn_status take_modules(tarn__device_modules *out) {
  TARN__TRY(tarn__modules_list(out));
  for (size_t i = 0; i < out->count; i++)
    TARN__TRY(take_module(&out->items[i]));
  return TARN_OK;
}

// --- devices ---------------------------------------------------------------

static tarn_status visit_devices(const tarn__device_plugin *plugin,
                                 tarn_device_visit *visit, void *context) {
  for (size_t i = 0; i < plugin->id_count; i++) {
    char name[TARN__ERROR_TEXT];
    snprintf(name, sizeof name, "%s:%zu", plugin->type, i);
    TARN__TRY(visit(context, name));
  }
  return TARN_OK;
}

static tarn_status visit_all_devices(tarn_device_visit *visit, void *context) {
  for (size_t i = 0;; i++) {
    tarn__device_plugin *plugin = NULL;
    tarn_status started = TARN_OK;
    TARN__TRY(tarn__plugin_at(i, &plugin, &started));
    if (plugin == NULL) return TARN_OK;
    if (plugin->is_found && is_of_plugin(started)) continue;
    TARN__TRY(started);
    TARN__TRY(visit_devices(plugin, visit, context));
  }
}

tarn_status tarn_device_each(tarn_device_visit *visit, void *context) {
  if (visit == NULL) return tarn__fail(TARN_E_INVALID, "device: no visitor");
  tarn__device_modules modules = {0};
  tarn_status status = take_modules(&modules);
  tarn__modules_deinit(&modules);
  return status == TARN_OK ? visit_all_devices(visit, context) : status;
}

// --- plug-ins --------------------------------------------------------------

static tarn_status visit_plugin(const tarn__device_plugin *plugin,
                                tarn_status started, tarn_plugin_visit *visit,
                                void *context) {
  char name[TARN__ERROR_TEXT];
  char text[TARN__ERROR_TEXT];
  snprintf(name, sizeof name, "%s (%s)", plugin->type, plugin->origin);
  snprintf(text, sizeof text, "%s",
           started != TARN_OK ? behind(tarn_last_error(), name) : "");
  tarn_plugin_info info = {
      .struct_size = sizeof info,
      .type = plugin->type,
      .origin = plugin->origin,
      .device_count = started == TARN_OK ? plugin->id_count : 0,
      .reason = text,
      .status = started,
  };
  return visit(context, &info);
}

static tarn_status visit_known(tarn_plugin_visit *visit, void *context) {
  for (size_t i = 0;; i++) {
    tarn__device_plugin *plugin = NULL;
    tarn_status started = TARN_OK;
    TARN__TRY(tarn__plugin_at(i, &plugin, &started));
    if (plugin == NULL) return TARN_OK;
    if (started == TARN_E_NOMEM) return started;
    TARN__TRY(visit_plugin(plugin, started, visit, context));
  }
}

static tarn_status visit_unusable(const tarn__device_modules *modules,
                                  tarn_plugin_visit *visit, void *context) {
  for (size_t i = 0; i < modules->count; i++) {
    const tarn__device_module *module = &modules->items[i];
    if (module->status == TARN_OK) continue;
    tarn_plugin_info info = {
        .struct_size = sizeof info,
        .type = module->type,
        .origin = module->path,
        .reason = module->reason,
        .status = module->status,
    };
    TARN__TRY(visit(context, &info));
  }
  return TARN_OK;
}

tarn_status tarn_plugin_each(tarn_plugin_visit *visit, void *context) {
  if (visit == NULL) return tarn__fail(TARN_E_INVALID, "plug-in: no visitor");
  tarn__device_modules modules = {0};
  tarn_status status = take_modules(&modules);
  if (status == TARN_OK) status = visit_known(visit, context);
  if (status == TARN_OK) status = visit_unusable(&modules, visit, context);
  tarn__modules_deinit(&modules);
  return status;
}
