// The registry: plug-ins and open devices; loading, finding and registering,
// opening and closing.
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
#include "device/modules.h"

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

static tarn_status enter_locked(tarn__device_plugin *plugin) {
  const tarn__name *taken = tarn__names_find(&registry.plugins, plugin->type);
  if (taken == NULL) {
    return tarn__names_add(&registry.plugins, plugin->type, plugin);
  }
  const tarn__device_plugin *other = taken->value;
  return tarn__fail(TARN_E_STATE, "%s: a device type '%s' is there already: %s",
                    plugin->origin, plugin->type, other->origin);
}

// Where it was found by the name of its file, |type| is what that says.
static tarn_status check_type(const tarn__device_plugin *plugin,
                              const char *type) {
  if (type == NULL || strcmp(plugin->type, type) == 0) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "%s: its device type is '%s', not '%s' as the file's name "
                    "says",
                    plugin->origin, plugin->type, type);
}

// |type| NULL: whatever it names.
static tarn_status add_locked(tarn__device_plugin_entry entry,
                              const char *origin, const char *type,
                              bool is_host) {
  tarn__device_plugin *plugin = NULL;
  TARN__TRY(tarn__plugin_create(entry, origin, &plugin));
  plugin->is_host = is_host;
  plugin->is_found = type != NULL;
  tarn_status status = check_type(plugin, type);
  if (status == TARN_OK) status = enter_locked(plugin);
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
    TARN__TRY(add_locked(builtins[next].entry, "built-in", NULL, next == 0));
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
  if (status == TARN_OK) status = add_locked(entry, origin, NULL, false);
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

// --- modules ---------------------------------------------------------------
// A type that nobody has made known may stand in a file. The file is loaded
// without the lock, as by tarn_plugin_load: its constructors may wait for other
// threads, which may wait for the lock.

static tarn_status is_known(const char *type, bool *out_known) {
  *out_known = false;
  TARN__TRY(registry_enter());
  tarn_status status = prepare_locked();
  *out_known =
      status == TARN_OK && tarn__names_find(&registry.plugins, type) != NULL;
  registry_unlock();
  return status;
}

// Another thread may have added it meanwhile.
static tarn_status add_module(tarn__device_plugin_entry entry, const char *path,
                              const char *type) {
  TARN__TRY(registry_enter());
  bool known = tarn__names_find(&registry.plugins, type) != NULL;
  tarn_status status = known ? TARN_OK : add_locked(entry, path, type, false);
  registry_unlock();
  return status;
}

static tarn_status load_module(const char *path, const char *type) {
  tarn__device_plugin_entry entry = {NULL, NULL};
  char *origin = NULL;
  TARN__TRY(tarn__plugin_find(path, &entry, &origin));
  tarn_status status = add_module(entry, origin, type);
  tarn__host_free_text(origin);
  return status;
}

tarn_status tarn__plugin_take_module(const char *path, const char *type) {
  bool known = false;
  TARN__TRY(is_known(type, &known));
  return known ? TARN_OK : load_module(path, type);
}

// Makes |type| known if a file is there for it.
static tarn_status look_for(const char *type) {
  bool known = false;
  char *path = NULL;
  TARN__TRY(is_known(type, &known));
  if (known) return TARN_OK;
  TARN__TRY(tarn__module_find(type, &path));
  tarn_status status = path != NULL ? load_module(path, type) : TARN_OK;
  tarn__host_free_text(path);
  return status;
}

// --- finding devices by name -----------------------------------------------

// "type:ordinal", taken apart.
typedef struct device_name {
  char type[TARN__TYPE_MAX + 1];
  size_t ordinal;
} device_name;

// Digits only, so that "-1" or " 0" are no ordinals.
static bool parse_ordinal(const char *text, size_t *out_ordinal) {
  size_t length = strlen(text);
  if (length == 0 || length > 9 || strspn(text, "0123456789") != length) {
    return false;
  }
  *out_ordinal = strtoul(text, NULL, 10);
  return true;
}

// The type is "" if |name| is no name of a device.
static device_name parse_name(const char *name) {
  device_name parsed = {.ordinal = 0};
  const char *colon = strchr(name, ':');
  size_t length = colon != NULL ? (size_t)(colon - name) : strlen(name);
  if (length >= sizeof parsed.type) return parsed;
  if (colon != NULL && !parse_ordinal(colon + 1, &parsed.ordinal))
    return parsed;
  memcpy(parsed.type, name, length);
  if (!tarn__plugin_is_type(parsed.type)) parsed.type[0] = '\0';
  return parsed;
}

// |type| "": no file was looked for.
static tarn_status no_such_type(const char *name, const char *type) {
  char known[TARN__ERROR_TEXT];
  char folders[TARN__ERROR_TEXT] = "";
  tarn__names_text(&registry.plugins, known, sizeof known);
  if (*type != '\0') tarn__module_folders(folders, sizeof folders);
  if (*folders == '\0') {
    return tarn__fail(TARN_E_INVALID,
                      "no device '%s': give type:ordinal, the types are %s",
                      name, known);
  }
  return tarn__fail(TARN_E_INVALID,
                    "no device '%s': give type:ordinal, the types are %s; "
                    "there is no tarn_%s.so in %s",
                    name, known, type, folders);
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

static tarn_status open_new_locked(tarn__device_plugin *plugin, size_t ordinal,
                                   tarn_device **out) {
  TARN__TRY(tarn__plugin_initialize(plugin));
  if (ordinal >= plugin->id_count) {
    return tarn__fail(TARN_E_INVALID, "no device '%s:%zu': %s has %zu",
                      plugin->type, ordinal, plugin->type, plugin->id_count);
  }
  TARN__TRY(tarn__device_create(plugin, ordinal, out));
  tarn_list_add_tail(&registry.devices, &(*out)->node);
  return TARN_OK;
}

// |text| is what |name| was parsed from.
static tarn_status open_named_locked(const char *text, const device_name *name,
                                     tarn_device **out) {
  const tarn__name *entry = tarn__names_find(&registry.plugins, name->type);
  if (entry == NULL) return no_such_type(text, name->type);
  tarn_device *device = find_open(entry->value, name->ordinal, 0);
  if (device == NULL) {
    TARN__TRY(open_new_locked(entry->value, name->ordinal, &device));
  }
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
  static const device_name name = {.type = "cpu"};
  tarn_device *host = NULL;
  TARN__TRY(open_named_locked("cpu:0", &name, &host));
  atomic_store_explicit(&registry.host, host, memory_order_release);
  return TARN_OK;
}

tarn_status tarn_device_open(const char *name, tarn_device **out_device) {
  *out_device = NULL;
  if (name == NULL) return tarn__fail(TARN_E_INVALID, "device: no name");
  const device_name parsed = parse_name(name);
  if (*parsed.type != '\0') TARN__TRY(look_for(parsed.type));
  TARN__TRY(registry_enter());
  tarn_status status = ensure_host_locked();
  if (status == TARN_OK) status = open_named_locked(name, &parsed, out_device);
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

tarn_status tarn__plugin_at(size_t index, tarn__device_plugin **out_plugin,
                            tarn_status *out_started) {
  *out_plugin = NULL;
  *out_started = TARN_OK;
  TARN__TRY(registry_enter());
  tarn_status status = prepare_locked();
  if (status == TARN_OK && index < registry.plugins.count) {
    *out_plugin = registry.plugins.entries[index].value;
    *out_started = tarn__plugin_initialize(*out_plugin);
  }
  registry_unlock();
  return status;
}
