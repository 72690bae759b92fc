// The registry: plug-ins and open devices; loading and registering, opening and
// closing.
//
//   plugins   cpu ── sim ── cuda ── ...          never removed
//   devices   cpu:0 ── cuda:1 ── ...             in order of opening
//
// A device that a parent opened before a fork stays in the child's list until
// it is closed there, but is not found by name: it is not the child's.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/names.h"
#include "device/device.h"

enum { PLUGIN_NAME_MAX = 255 };

static struct {
  pthread_mutex_t lock;  // guards all below, every open and every close
  tarn__names plugins;   // of tarn__device_plugin, by type
  tarn_list devices;
  _Atomic(tarn_device *) host;  // cpu:0; written under the lock
} registry = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .devices = {&registry.devices, &registry.devices},
};

// A plug-in may fork while it is loaded or a device of it is opened, under the
// lock: then the thread that forks holds it already.
static _Thread_local bool holds_lock;

static void registry_lock(void) {
  pthread_mutex_lock(&registry.lock);
  holds_lock = true;
}

// The lock for a public function. A plug-in that calls one of those while it is
// called under the lock would wait for itself.
static tarn_status registry_enter(void) {
  if (holds_lock) {
    return tarn__fail(TARN_E_STATE,
                      "called from within a plug-in, or what is attached, that "
                      "loading, registering, listing, opening or closing "
                      "waits for");
  }
  TARN__TRY(tarn__not_in_callback());
  registry_lock();
  return TARN_OK;
}

static void registry_unlock(void) {
  holds_lock = false;
  pthread_mutex_unlock(&registry.lock);
}

// --- forks -----------------------------------------------------------------

static void lock_at_fork(void) {
  if (!holds_lock) pthread_mutex_lock(&registry.lock);
}

static void unlock_after_fork(void) {
  if (!holds_lock) pthread_mutex_unlock(&registry.lock);
}

TARN__WATCH_FORKS_FIRST static void watch_forks(void) {
  pthread_atfork(lock_at_fork, unlock_after_fork, unlock_after_fork);
}

// --- plug-ins --------------------------------------------------------------

static tarn_status add_locked(tarn__device_plugin_entry entry,
                              const char *origin, bool is_host) {
  tarn__device_plugin *plugin = NULL;
  tarn_status status = TARN_OK;
  TARN__TRY(tarn__plugin_create(entry, origin, &plugin));
  plugin->is_host = is_host;
  const tarn__name *taken = tarn__names_find(&registry.plugins, plugin->type);
  if (taken != NULL) {
    const tarn__device_plugin *other = taken->value;
    status =
        tarn__fail(TARN_E_STATE, "%s: a device type '%s' is there already: %s",
                   origin, plugin->type, other->origin);
  } else {
    status = tarn__names_add(&registry.plugins, plugin->type, plugin);
  }
  if (status != TARN_OK) tarn__plugin_destroy(plugin);
  return status;
}

static const struct {
  const char *type;
  tarn__device_plugin_entry entry;
} builtins[] = {
    {"cpu", {tarn__cpu_init_plugin, tarn__cpu_device_ext}},  // the host
    {"sim", {tarn__sim_init_plugin, tarn__sim_device_ext}},
};
enum { BUILTIN_COUNT = sizeof builtins / sizeof builtins[0] };

// Fills the registry at first use, so that a program that uses no device pays
// nothing and the host allocator can be set before. After a failure, the next
// use goes on where this one stopped.
static tarn_status prepare_locked(void) {
  while (registry.plugins.count < BUILTIN_COUNT) {
    size_t next = registry.plugins.count;
    TARN__TRY(add_locked(builtins[next].entry, "built-in", next == 0));
  }
  return TARN_OK;
}

bool tarn__plugin_find_builtin(const char *type,
                               tarn__device_plugin_entry *out_entry) {
  for (size_t i = 0; i < BUILTIN_COUNT; i++) {
    if (strcmp(builtins[i].type, type) != 0) continue;
    *out_entry = builtins[i].entry;
    return true;
  }
  return false;
}

static tarn_status add(tarn__device_plugin_entry entry, const char *origin) {
  TARN__TRY(registry_enter());
  tarn_status status = prepare_locked();
  if (status == TARN_OK) status = add_locked(entry, origin, false);
  registry_unlock();
  return status;
}

tarn_status tarn_plugin_load(const char *path) {
  tarn__device_plugin_entry entry = {NULL, NULL};
  char *origin = NULL;
  TARN__TRY(tarn__not_in_callback());
  TARN__TRY(tarn__plugin_find(path, &entry, &origin));
  tarn_status status = add(entry, origin);
  tarn__host_free_text(origin);
  return status;
}

// Names that fit into a line of text, and leave room for the rest.
static bool is_plugin_name(const char *name) {
  size_t length = name != NULL ? strnlen(name, PLUGIN_NAME_MAX + 1) : 0;
  if (length == 0 || length > PLUGIN_NAME_MAX) return false;
  for (size_t i = 0; i < length; i++) {
    unsigned char byte = (unsigned char)name[i];
    if (byte < 0x20 || byte == 0x7f) return false;
  }
  return true;
}

tarn_status tarn_plugin_register(tarn_plugin_init *init,
                                 tarn_device_ext_function *ext,
                                 const char *name) {
  if (!is_plugin_name(name)) {
    return tarn__fail(TARN_E_INVALID,
                      "plug-in: its name is not 1 to %d bytes without control "
                      "characters",
                      PLUGIN_NAME_MAX);
  }
  if (init == NULL) {
    return tarn__fail(TARN_E_INVALID, "%s: no InitPlugin", name);
  }
  return add((tarn__device_plugin_entry){init, ext}, name);
}

// --- finding devices by name -----------------------------------------------

typedef struct device_name {
  tarn__device_plugin *plugin;
  size_t ordinal;
} device_name;

static tarn_status no_such_type(const char *name) {
  char known[TARN__ERROR_TEXT];
  tarn__names_text(&registry.plugins, known, sizeof known);
  return tarn__fail(TARN_E_INVALID,
                    "no device '%s': give type:ordinal, the types are %s", name,
                    known);
}

// Digits only, so that "-1" or " 0" are no ordinals.
static bool parse_ordinal(const char *text, size_t *out_ordinal) {
  size_t length = strlen(text);
  if (length == 0 || length > 9 || strspn(text, "0123456789") != length) {
    return false;
  }
  *out_ordinal = strtoul(text, NULL, 10);
  return true;
}

static tarn_status parse_name(const char *name, device_name *out) {
  char type[TARN__ERROR_TEXT];
  const char *colon = strchr(name, ':');
  size_t length = colon != NULL ? (size_t)(colon - name) : strlen(name);
  out->ordinal = 0;
  if (length >= sizeof type ||
      (colon != NULL && !parse_ordinal(colon + 1, &out->ordinal))) {
    return no_such_type(name);
  }
  memcpy(type, name, length);
  type[length] = '\0';
  tarn__name *entry = tarn__names_find(&registry.plugins, type);
  if (entry == NULL) return no_such_type(name);
  out->plugin = entry->value;
  return TARN_OK;
}

// The open device of |plugin| with that ordinal; SIZE_MAX: the one that the
// plug-in calls |id|.
static tarn_device *find_open(const tarn__device_plugin *plugin, size_t ordinal,
                              int id) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &registry.devices) {
    tarn_device *device = tarn_list_entry(node, tarn_device, node);
    bool fits = ordinal != SIZE_MAX ? device->ordinal == ordinal
                                    : device->handle.id == id;
    if (fits && device->plugin == plugin &&
        device->generation == tarn__os_generation()) {
      return device;
    }
  }
  return NULL;
}

tarn_device *tarn__device_find(const tarn__device_plugin *plugin, int id) {
  bool held = holds_lock;
  if (!held) registry_lock();
  tarn_device *found = find_open(plugin, SIZE_MAX, id);
  if (!held) registry_unlock();
  return found;
}

// --- opening ---------------------------------------------------------------

static tarn_status open_new_locked(device_name name, tarn_device **out) {
  assert(name.plugin != NULL);
  TARN__TRY(tarn__plugin_initialize(name.plugin));
  if (name.ordinal >= name.plugin->id_count) {
    return tarn__fail(TARN_E_INVALID, "no device '%s:%zu': %s has %zu",
                      name.plugin->type, name.ordinal, name.plugin->type,
                      name.plugin->id_count);
  }
  TARN__TRY(tarn__device_create(name.plugin, name.ordinal, out));
  tarn_list_add_tail(&registry.devices, &(*out)->node);
  return TARN_OK;
}

static tarn_status open_named_locked(const char *text, tarn_device **out) {
  device_name name = {0};
  TARN__TRY(parse_name(text, &name));
  tarn_device *device = find_open(name.plugin, name.ordinal, 0);
  if (device == NULL) TARN__TRY(open_new_locked(name, &device));
  assert(device != NULL);
  device->open_count++;
  *out = device;
  return TARN_OK;
}

static tarn_device *known_host(void) {
  tarn_device *host =
      atomic_load_explicit(&registry.host, memory_order_acquire);
  bool ours = host != NULL && host->generation == tarn__os_generation();
  return ours ? host : NULL;
}

// The first open of cpu:0 is never closed. It precedes all other devices, so
// that calls for plain host memory find it without the lock.
static tarn_status ensure_host_locked(void) {
  tarn_status status = prepare_locked();
  if (status != TARN_OK || known_host() != NULL) return status;
  tarn_device *host = NULL;
  TARN__TRY(open_named_locked("cpu:0", &host));
  atomic_store_explicit(&registry.host, host, memory_order_release);
  return TARN_OK;
}

tarn_status tarn_device_open(const char *name, tarn_device **out_device) {
  *out_device = NULL;
  if (name == NULL) return tarn__fail(TARN_E_INVALID, "device: no name");
  TARN__TRY(registry_enter());
  tarn_status status = ensure_host_locked();
  if (status == TARN_OK) status = open_named_locked(name, out_device);
  registry_unlock();
  return status;
}

tarn_status tarn__device_host(tarn_device **out_device) {
  *out_device = known_host();
  if (*out_device != NULL) return TARN_OK;
  TARN__TRY(registry_enter());
  tarn_status status = ensure_host_locked();
  *out_device = known_host();
  registry_unlock();
  return status;
}

// --- closing ---------------------------------------------------------------

static tarn_status close_locked(tarn_device *device) {
  if (device->open_count > 1) {
    device->open_count--;
    return TARN_OK;
  }
  // A parent's device: only its host memory is this process's to free.
  bool ours = device->generation == tarn__os_generation();
  tarn_status status = ours ? tarn__device_end(device) : TARN_OK;
  if (!ours) tarn__device_forget(device);
  if (status == TARN_E_STATE) return status;
  tarn_list_del(&device->node);
  tarn__device_free(device);
  return status;
}

tarn_status tarn_device_close(tarn_device *device) {
  if (device == NULL) return TARN_OK;
  TARN__TRY(registry_enter());
  tarn_status status = close_locked(device);
  registry_unlock();
  return status;
}

// --- listing ---------------------------------------------------------------

static tarn_status visit_devices(const tarn__device_plugin *plugin,
                                 tarn_device_visit *visit, void *context) {
  for (size_t i = 0; i < plugin->id_count; i++) {
    char name[TARN__ERROR_TEXT];
    snprintf(name, sizeof name, "%s:%zu", plugin->type, i);
    TARN__TRY(visit(context, name));
  }
  return TARN_OK;
}

// The |index|-th plug-in, initialised; NULL beyond the last. Plug-ins are
// never removed, so it stays good without the lock.
static tarn_status plugin_at(size_t index, tarn__device_plugin **out_plugin) {
  *out_plugin = NULL;
  TARN__TRY(registry_enter());
  tarn_status status = prepare_locked();
  if (status == TARN_OK && index < registry.plugins.count) {
    *out_plugin = registry.plugins.entries[index].value;
    status = tarn__plugin_initialize(*out_plugin);
  }
  registry_unlock();
  return status;
}

tarn_status tarn_device_each(tarn_device_visit *visit, void *context) {
  if (visit == NULL) return tarn__fail(TARN_E_INVALID, "device: no visitor");
  for (size_t i = 0;; i++) {
    tarn__device_plugin *plugin = NULL;
    tarn_status status = plugin_at(i, &plugin);
    if (status != TARN_OK || plugin == NULL) return status;
    TARN__TRY(visit_devices(plugin, visit, context));
  }
}
