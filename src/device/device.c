// Devices: creation and end, queries, attachments.
#include "device/device.h"

#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"

// --- making ----------------------------------------------------------------

typedef C_Status size_query(C_Device device, size_t *size);

// |fallback| where the plug-in cannot say: an error is an answer too. It is
// logged when the device is opened, and not each time that it is asked again.
static size_t ask_size(tarn_device *device, const char *call, size_query *query,
                       size_t fallback) {
  size_t size = 0;
  C_Status result = query(&device->handle, &size);
  if (result == C_SUCCESS || result == C_WARNING) return size;
  if (device->is_open) return fallback;
  tarn__log(TARN_LOG_WARN, "%s: %s answered %d; taken as %zu", device->name,
            call, (int)result, fallback);
  return fallback;
}

// Allocations are rounded to it, so it must be a power of two, and no larger
// than the device's |total|.
static size_t usable_min_chunk(tarn_device *device, size_t said, size_t total) {
  size_t usable = 1;
  size_t most = total != 0 ? total : SIZE_MAX / 2;
  while (said <= most && usable < said)
    usable *= 2;
  if (usable != said) {
    tarn__log(TARN_LOG_WARN,
              "%s: min_chunk %zu is no power of two, or more than there is; "
              "%zu taken",
              device->name, said, usable);
  }
  return usable;
}

// No device has memory and can allocate none of it.
static size_t usable_max_alloc(tarn_device *device, size_t said,
                               size_t available) {
  if (said != 0 || available == 0) return said;
  if (device->is_open) return available;
  tarn__log(TARN_LOG_WARN, "%s: max_alloc_size is 0; taken as %zu",
            device->name, available);
  return available;
}

typedef tarn_status power_query(int id, size_t *size);

// A power of two that a slot of the extension answers. Without one, or with
// another number, the device has not |ability|, and the size is |lacking|.
static size_t ask_power(tarn_device *device, const char *slot,
                        power_query *query, uint32_t ability, size_t lacking,
                        const char *taken) {
  size_t size = lacking;
  if (query == NULL) return lacking;
  tarn_status status = query(device->handle.id, &size);
  if (status == TARN_OK && tarn_is_power_of_two(size)) return size;
  device->info.extensions &= ~ability;
  if (status == TARN_E_UNSUPPORTED) return lacking;
  tarn__log(TARN_LOG_WARN, "%s: %s answered %s, %zu; taken %s", device->name,
            slot, tarn_status_name(status), size, taken);
  return lacking;
}

// As ask_size, of a function that a plug-in may lack; |otherwise| if it does.
static size_t ask_own_size(tarn_device *device, tarn_device_function bit,
                           size_query *query, size_t otherwise,
                           size_t fallback) {
  if (query == NULL) return otherwise;
  return ask_size(device, tarn_device_function_name(bit), query, fallback);
}

// The bytes that can be allocated at once, of which |available| are free.
static size_t ask_most(tarn_device *device, size_t available) {
  size_t most = ask_own_size(device, TARN_FN_MAX_ALLOC,
                             device->plugin->own.device_max_alloc_size,
                             available, available);
  return usable_max_alloc(device, most, available);
}

// The values that change while the device is open: the bytes that can be
// allocated, and the sizes that default to them.
static void ask_current_sizes(tarn_device *device, size_t available,
                              tarn_device_info *info) {
  const C_DeviceInterface *own = &device->plugin->own;
  size_t most = ask_most(device, available);
  info->max_alloc = most;
  info->max_chunk = ask_own_size(device, TARN_FN_MAX_CHUNK,
                                 own->device_max_chunk_size, most, 0);
  info->init_size = ask_own_size(device, TARN_FN_INIT_SIZE,
                                 own->device_init_alloc_size, most, most);
  info->realloc_size = ask_own_size(device, TARN_FN_REALLOC_SIZE,
                                    own->device_realloc_size, most, most);
}

// By a move of nothing.
static void ask_moves(tarn_device *device) {
  size_t moved = 0;
  bool has = (device->info.extensions & TARN_EXTENSION_MOVES) != 0;
  if (!has) return;
  tarn_status status =
      device->granularity == 0
          ? TARN_E_UNSUPPORTED
          : device->ext->range_move(device->handle.id, 0, 0, 0, &moved);
  if (status == TARN_OK) return;
  device->info.extensions &= ~(uint32_t)TARN_EXTENSION_MOVES;
  if (status == TARN_E_UNSUPPORTED) return;
  tarn__log(TARN_LOG_WARN, "%s: range_move answered %s; taken to have none",
            device->name, tarn_status_name(status));
}

static tarn_status ask_sizes(tarn_device *device) {
  tarn_device_info *info = &device->info;
  size_t total = 0;
  size_t available = 0;
  TARN__TRY(tarn_device_memory(device, &total, &available));
  size_t said = ask_size(device, "device_min_chunk_size",
                         device->abi->device_min_chunk_size, 1);
  info->min_chunk = usable_min_chunk(device, said, total);
  ask_current_sizes(device, available, info);
  info->alignment = ask_power(device, "alignment", device->ext->alignment,
                              TARN_EXTENSION_ALIGNMENT, 1, "as 1");
  device->granularity = ask_power(
      device, "range_granularity", device->ext->range_granularity,
      TARN_EXTENSION_RANGES | TARN_EXTENSION_SHARING, 0, "to have no ranges");
  ask_moves(device);
  info->padding =
      ask_own_size(device, TARN_FN_PADDING,
                   device->plugin->own.device_extra_padding_size, 0, 0);
  device->is_open = true;
  return TARN_OK;
}

// A plug-in may forget the NUL, or write several lines.
static void ask_description(tarn_device *device) {
  char *text = device->description;
  size_t size = sizeof device->description;
  if (device->ext->describe != NULL)
    device->ext->describe(device->handle.id, text, size);
  text[size - 1] = '\0';
  for (char *c = text; *c != '\0'; c++)
    if ((unsigned char)*c < ' ' || *c == 0x7f) *c = ' ';
}

static tarn_status start(tarn_device *device) {
  TARN__TRY(TARN__DEVICE_CALL(device, init_device, 0, (&device->handle)));
  device->info.id = device->handle.id;  // it may have been replaced
  tarn_status status = tarn__device_enter(device);
  if (status == TARN_OK) status = ask_sizes(device);
  if (status == TARN_OK) ask_description(device);
  if (status != TARN_OK) (void)device->abi->deinit_device(&device->handle);
  return status;
}

static char *name_of(const tarn__device_plugin *plugin, size_t ordinal) {
  char name[TARN__ERROR_TEXT];
  snprintf(name, sizeof name, "%s:%zu", plugin->type, ordinal);
  return tarn__host_text(name);
}

static void describe(tarn_device *device) {
  device->info = (tarn_device_info){
      .struct_size = sizeof device->info,
      .name = device->name,
      .type = device->plugin->type,
      .plugin = device->plugin->origin,
      .functions = device->plugin->functions,
      .host_accessible = device->plugin->is_host,
      .extensions = tarn__extension_bits(&device->plugin->ext),
      .description = device->description,
  };
}

tarn_status tarn__device_create(tarn__device_plugin *plugin, size_t ordinal,
                                tarn_device **out_device) {
  *out_device = NULL;
  tarn_device *device = tarn__host_alloc(sizeof *device);
  if (device == NULL) return TARN_E_NOMEM;
  device->plugin = plugin;
  device->abi = &plugin->abi;
  device->ext = &plugin->ext;
  device->handle.id = (int)plugin->ids[ordinal];
  device->ordinal = ordinal;
  device->generation = tarn__os_generation();
  tarn_list_init(&device->node);
  pthread_mutex_init(&device->lock, NULL);
  pthread_mutex_init(&device->staging.lock, NULL);
  pthread_cond_init(&device->staging.freed, NULL);
  tarn_list_init(&device->aligned.notes);

  device->name = name_of(plugin, ordinal);
  tarn_status status = TARN_E_NOMEM;
  if (device->name != NULL) {
    describe(device);
    status = start(device);
  }
  if (status != TARN_OK) {
    tarn__device_free(device);
    return status;
  }
  *out_device = device;
  return TARN_OK;
}

// --- ending ----------------------------------------------------------------

static tarn_status call_attached(tarn_device *device, bool commit) {
  tarn_status first = TARN_OK;
  for (int slot = TARN_SLOT_COUNT - 1; slot >= 0; slot--) {
    tarn__device_attached *a = &device->attachments[slot];
    if (a->on_close == NULL) continue;
    tarn_status status = a->on_close(device, a->pointer, commit);
    if (status != TARN_OK && !commit) return status;
    tarn__keep_first(&first, status);
  }
  return first;
}

static tarn_status check_unused(tarn_device *device) {
  char text[TARN__ERROR_TEXT / 2];
  char departed[96] = "";
  tarn__departed_end(device);
  size_t at_work = tarn__departed_count(device);
  if (at_work > 0) {
    snprintf(departed, sizeof departed,
             " (of the streams %zu were adopted and destroyed and are at work)",
             at_work);
  }
  pthread_mutex_lock(&device->lock);
  size_t used = device->streams + device->events + device->allocations +
                device->ranges + device->memories + device->registrations +
                device->imports;
  snprintf(text, sizeof text,
           "%zu streams, %zu events, %zu allocations, %zu ranges, %zu memory "
           "handles, %zu registrations and %zu imports",
           device->streams, device->events, device->allocations, device->ranges,
           device->memories, device->registrations, device->imports);
  pthread_mutex_unlock(&device->lock);
  if (used == 0) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "%s: cannot close: in use are %s%s",
                    device->name, text, departed);
}

tarn_status tarn__device_end(tarn_device *device) {
  // The attachment that objects has written why; whatever the status, nothing
  // has happened.
  if (call_attached(device, false) != TARN_OK) return TARN_E_STATE;
  TARN__TRY(check_unused(device));

  tarn_status status = call_attached(device, true);
  tarn__staging_free(device);
  tarn__keep_first(
      &status, TARN__DEVICE_CALL(device, deinit_device, 0, (&device->handle)));
  return status == TARN_E_STATE ? TARN_E_DEVICE : status;
}

void tarn__device_forget(tarn_device *device) {
  (void)call_attached(device, true);
  tarn__departed_end(device);
}

void tarn__device_free(tarn_device *device) {
  // In a child of fork, threads of the parent may count as waiting there, and
  // ending it would wait for them.
  if (device->generation == tarn__os_generation()) {
    pthread_cond_destroy(&device->staging.freed);
    pthread_mutex_destroy(&device->staging.lock);
  }
  tarn__aligned_free(&device->aligned);
  pthread_mutex_destroy(&device->lock);
  tarn__host_free_text(device->name);
  tarn__host_free(device, sizeof *device);
}

// --- what there is to know -------------------------------------------------

const char *tarn_device_name(const tarn_device *device) {
  return device->name;
}

tarn_status tarn_device_query(tarn_device *device, tarn_device_info *out_info) {
  size_t size = 0;
  if (out_info == NULL ||
      !tarn__struct_size(out_info->struct_size,
                         TARN__SIZE_UP_TO(tarn_device_info, realloc_size),
                         sizeof *out_info, &size)) {
    return tarn__fail(TARN_E_INVALID, "device info: NULL or no struct_size");
  }
  memset(out_info, 0, size);
  out_info->struct_size = size;
  TARN__TRY(tarn__device_check(device));
  tarn_device_info info = device->info;
  size_t total = 0;
  size_t available = 0;
  if (tarn_device_memory(device, &total, &available) == TARN_OK) {
    ask_current_sizes(device, available, &info);
  }
  info.struct_size = size;
  memcpy(out_info, &info, size);
  return TARN_OK;
}

tarn_status tarn__device_most(tarn_device *device, size_t *out_most) {
  size_t total = 0;
  size_t available = 0;
  *out_most = 0;
  TARN__TRY(tarn__device_check(device));
  bool known = tarn_device_memory(device, &total, &available) == TARN_OK;
  *out_most = known ? ask_most(device, available) : device->info.max_alloc;
  return TARN_OK;
}

const char *tarn_device_type(const tarn_device *device) {
  return device->info.type;
}

uint32_t tarn_device_functions(const tarn_device *device) {
  return device->info.functions;
}

uint32_t tarn_device_extensions(const tarn_device *device) {
  return device->info.extensions;
}

bool tarn_device_host_accessible(const tarn_device *device) {
  return device->info.host_accessible;
}

static tarn_status ask_memory(tarn_device *device, size_t *out_total,
                              size_t *out_free) {
  TARN__TRY(tarn__device_check(device));
  TARN__TRY(tarn__device_enter(device));
  return TARN__DEVICE_CALL(device, device_memory_stats, 0,
                           (&device->handle, out_total, out_free));
}

tarn_status tarn_device_memory(tarn_device *device, size_t *out_total,
                               size_t *out_free) {
  size_t total = 0;
  size_t available = 0;
  tarn_status status = ask_memory(device, &total, &available);
  bool known = status == TARN_OK;
  *out_total = known ? total : 0;
  *out_free = !known ? 0 : available < total ? available : total;
  return status;
}

tarn_status tarn__device_room(tarn_device *device, size_t *out_total,
                              size_t *out_free) {
  *out_total = *out_free = 0;
  tarn_status status = ask_memory(device, out_total, out_free);
  if (*out_free > *out_total) *out_free = SIZE_MAX;
  return status;
}

// --- attachments -----------------------------------------------------------

tarn_status tarn_device_attach(tarn_device *device, tarn_device_slot slot,
                               void *pointer, tarn_device_on_close *on_close) {
  TARN__TRY(tarn__device_check(device));
  if ((unsigned)slot >= TARN_SLOT_COUNT || pointer == NULL ||
      on_close == NULL) {
    return tarn__fail(TARN_E_INVALID,
                      "attach: slot %d, pointer %p: out of range or NULL",
                      (int)slot, pointer);
  }
  pthread_mutex_lock(&device->lock);
  tarn__device_attached *a = &device->attachments[slot];
  bool taken = a->on_close != NULL;
  if (!taken) {
    a->on_close = on_close;
    atomic_store_explicit(&a->pointer, pointer, memory_order_release);
  }
  pthread_mutex_unlock(&device->lock);
  if (!taken) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "%s: slot %d is taken", device->name,
                    (int)slot);
}

void *tarn_device_attached(tarn_device *device, tarn_device_slot slot) {
  if (tarn__device_check(device) != TARN_OK) return NULL;
  if ((unsigned)slot >= TARN_SLOT_COUNT) return NULL;
  return tarn__device_attachment(device, slot);
}
