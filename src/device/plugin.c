// Taking in a plug-in.
//
// A plug-in cannot be trusted with the table that it is given: some clear it
// with their own idea of its size, which may be more than the host's, some
// clear nothing, some overwrite |size|. So it gets a copy of its own:
//
//   | size | 58 slots, filled with a pattern | pattern ... up to 8 KiB |
//            8                            472
//
// Afterwards every slot below 472 that still holds the pattern was not set,
// and becomes NULL. Nothing above 472 is ever looked at. Which sizes a
// plug-in insists on is found by offering the known variants in turn: one that
// is not content leaves device_type NULL.
#include <limits.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/object.h"
#include "device/device.h"

enum {
  TABLE_ROOM = 8192,
  PARAMS_ROOM = 4096,
  KNOWN_END = offsetof(C_DeviceInterface, beyond),
  PATTERN = 0xa5,
  DEVICES_MAX = 4096,
};

typedef struct offer {
  size_t params_size;
  size_t table_size;
} offer;

static const offer offers[] = {
    {sizeof(CustomRuntimeParams), 1040},
    {sizeof(CustomRuntimeParams), 1032},
    {sizeof(CustomRuntimeParams), 1128},
    {sizeof(CustomRuntimeParamsA), 912},
};
enum { OFFER_COUNT = sizeof offers / sizeof offers[0] };

// Room for a table and parameters of any variant, and more.
typedef struct introduction {
  union {
    C_DeviceInterface table;
    unsigned char table_bytes[TABLE_ROOM];
  };
  union {
    CustomRuntimeParams params;
    unsigned char params_bytes[PARAMS_ROOM];
  };
} introduction;

static void call_init(introduction *m, tarn_plugin_init *init, offer o) {
  memset(m->table_bytes, PATTERN, sizeof m->table_bytes);
  memset(m->params_bytes, 0, sizeof m->params_bytes);
  m->table.size = o.table_size;
  m->params.size = o.params_size;
  m->params.interface = &m->table;
  init(&m->params);
}

static void clear_untouched(C_DeviceInterface *abi) {
  unsigned char untouched[sizeof(void *)];
  memset(untouched, PATTERN, sizeof untouched);
  unsigned char *bytes = (unsigned char *)abi;
  for (size_t at = 0; at < KNOWN_END; at += sizeof untouched) {
    if (memcmp(bytes + at, untouched, sizeof untouched) == 0) {
      memset(bytes + at, 0, sizeof untouched);
    }
  }
}

static tarn_status introduce(introduction *m, tarn_plugin_init *init,
                             const char *origin) {
  for (size_t i = 0; i < OFFER_COUNT; i++) {
    call_init(m, init, offers[i]);
    if (m->params.device_type != NULL) break;
  }
  if (m->params.device_type == NULL) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: InitPlugin names no device type, whatever size of "
                      "table it is offered",
                      origin);
  }
  if (!tarn__plugin_is_type(m->params.device_type)) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: its device type is no name of 1 to %d letters, "
                      "digits, '_', '-' or '.'",
                      origin, TARN__TYPE_MAX);
  }
  if (m->params.interface != &m->table) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: InitPlugin replaced the table by one of its own",
                      origin);
  }
  clear_untouched(&m->table);
  return tarn__table_check(&m->table, origin);
}

static tarn_status fill(tarn__device_plugin *plugin, const introduction *m,
                        const char *origin) {
  memcpy(&plugin->own, &m->table, KNOWN_END);
  plugin->abi = plugin->own;
  plugin->functions = tarn__table_complete(&plugin->abi);
  plugin->type = tarn__host_text(m->params.device_type);
  plugin->origin = tarn__host_text(origin);
  bool complete = plugin->type != NULL && plugin->origin != NULL;
  return complete ? TARN_OK : TARN_E_NOMEM;
}

tarn_status tarn__plugin_create(tarn__device_plugin_entry entry,
                                const char *origin,
                                tarn__device_plugin **out_plugin) {
  *out_plugin = NULL;
  introduction *m = tarn__host_alloc(sizeof *m);
  if (m == NULL) return TARN_E_NOMEM;
  tarn__device_plugin *plugin = NULL;
  tarn_status status = introduce(m, entry.init, origin);
  if (status == TARN_OK) {
    plugin = tarn__host_alloc(sizeof *plugin);
    status = plugin == NULL ? TARN_E_NOMEM : fill(plugin, m, origin);
  }
  if (status == TARN_OK) {  // the last, since InitPlugin may be what sets it up
    status = tarn__extension_take(entry.ext != NULL ? entry.ext() : NULL,
                                  origin, &plugin->ext);
  }
  tarn__host_free(m, sizeof *m);
  if (status != TARN_OK) {
    tarn__plugin_destroy(plugin);
    return status;
  }
  *out_plugin = plugin;
  return TARN_OK;
}

void tarn__plugin_destroy(tarn__device_plugin *plugin) {
  if (plugin == NULL) return;
  tarn__host_free_array(plugin->ids, plugin->id_count, sizeof *plugin->ids);
  tarn__host_free_text(plugin->type);
  tarn__host_free_text(plugin->origin);
  tarn__host_free(plugin, sizeof *plugin);
}

// --- initialising ----------------------------------------------------------

// No device is known yet, so the driver is asked by the id 0.
static tarn_status refused(const tarn__device_plugin *plugin, const char *call,
                           C_Status result) {
  tarn__device_words words;
  return tarn__fail(TARN_E_DEVICE, "%s (%s): %s answered %d%s", plugin->type,
                    plugin->origin, call, (int)result,
                    tarn__extension_words(&plugin->ext, 0, NULL, &words));
}

static bool went_well(C_Status result) {
  return result == C_SUCCESS || result == C_WARNING;
}

static tarn_status count_devices(const tarn__device_plugin *plugin,
                                 size_t *out_count) {
  size_t count = 0;
  *out_count = 0;
  C_Status result = plugin->abi.get_device_count(&count);
  if (!went_well(result)) return refused(plugin, "get_device_count", result);
  if (count > DEVICES_MAX) {
    return tarn__fail(TARN_E_DEVICE, "%s (%s): says it has %zu devices",
                      plugin->type, plugin->origin, count);
  }
  *out_count = count;
  return TARN_OK;
}

// Two names for one device would count its memory twice.
static tarn_status check_ids(const tarn__device_plugin *plugin,
                             const size_t *ids, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (ids[i] > INT_MAX) {
      return tarn__fail(
          TARN_E_DEVICE,
          "%s (%s): get_device_list: %zu is no number of a device",
          plugin->type, plugin->origin, ids[i]);
    }
    for (size_t j = 0; j < i; j++) {
      if (ids[j] != ids[i]) continue;
      return tarn__fail(TARN_E_DEVICE,
                        "%s (%s): get_device_list names device %zu twice",
                        plugin->type, plugin->origin, ids[i]);
    }
  }
  return TARN_OK;
}

// |room| is for more than |count|: some list what they did not count.
static tarn_status ask_ids(tarn__device_plugin *plugin, size_t *room,
                           size_t count) {
  for (size_t i = 0; i < count; i++)
    room[i] = i;
  bool asks = count != 0 && plugin->abi.get_device_list != NULL;
  C_Status result = asks ? plugin->abi.get_device_list(room) : C_SUCCESS;
  if (!went_well(result)) return refused(plugin, "get_device_list", result);
  TARN__TRY(check_ids(plugin, room, count));
  size_t *ids = tarn__host_array(count, sizeof *ids);
  if (ids == NULL) return TARN_E_NOMEM;
  memcpy(ids, room, count * sizeof *ids);
  plugin->ids = ids;
  plugin->id_count = count;
  return TARN_OK;
}

static tarn_status list_devices(tarn__device_plugin *plugin) {
  size_t count = 0;
  TARN__TRY(count_devices(plugin, &count));
  size_t *room = tarn__host_array(DEVICES_MAX, sizeof *room);
  if (room == NULL) return TARN_E_NOMEM;
  tarn_status status = ask_ids(plugin, room, count);
  tarn__host_free_array(room, DEVICES_MAX, sizeof *room);
  return status;
}

tarn_status tarn__plugin_initialize(tarn__device_plugin *plugin) {
  if (plugin->initialized) {
    // The host's own memory is as good after a fork as before.
    if (plugin->is_host || plugin->generation == tarn__os_generation()) {
      return TARN_OK;
    }
    return tarn__fail(TARN_E_STATE,
                      "%s was initialised by the parent before a fork: open "
                      "devices after forking",
                      plugin->type);
  }
  C_Status result = plugin->abi.initialize();
  if (!went_well(result)) return refused(plugin, "initialize", result);
  tarn_status status = list_devices(plugin);
  if (status != TARN_OK) {
    (void)plugin->abi.finalize();
    return status;
  }
  plugin->initialized = true;
  plugin->generation = tarn__os_generation();
  return TARN_OK;
}

// --- finding the shared object ---------------------------------------------

tarn_status tarn__plugin_find(const char *path,
                              tarn__device_plugin_entry *out_entry,
                              char **out_path) {
  *out_entry = (tarn__device_plugin_entry){NULL, NULL};
  void *handle = NULL;
  tarn_status status = tarn__object_open("plug-in", path, &handle, out_path);
  if (status != TARN_OK) return status;
  void *symbol = tarn__object_symbol(handle, "InitPlugin");
  if (symbol == NULL) {
    status =
        tarn__fail(TARN_E_UNSUPPORTED,
                   "%s: not a device plug-in: it has no InitPlugin", *out_path);
    tarn__object_close(handle);
    tarn__host_free_text(*out_path);
    *out_path = NULL;
    return status;
  }
  memcpy(&out_entry->init, &symbol, sizeof symbol);
  symbol = tarn__object_symbol(handle, "TarnDeviceExt");
  memcpy(&out_entry->ext, &symbol, sizeof symbol);
  return TARN_OK;
}
