// The devices: their state between initialize and finalize, and checks of
// callers.
//
//   initialize   reads the options; there are devices now, none of them ready
//   init_device  opens the device's windows and maps its mirror: ready
//   deinit_device, finalize   give all of it back
//
// A forked child has no part in its parent's devices: every function answers
// C_ERROR there, before it takes a lock that a thread of the parent might hold.
#include <assert.h>

#include "extension.h"

static struct {
  pthread_mutex_t lock;  // taken by these four functions only; guards all
  atomic_size_t count;   // 0: not initialised
  uint32_t generation;   // of the process that initialised
  tarn__sim_options options;
  tarn__sim_device devices[TARN__SIM_DEVICES_MAX];
} sim = {.lock = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int current;

static void lock_sim(void) {
  pthread_mutex_lock(&sim.lock);
}

static void unlock_sim(void) {
  pthread_mutex_unlock(&sim.lock);
}

static size_t device_count(void) {
  return atomic_load_explicit(&sim.count, memory_order_acquire);
}

static bool is_inherited(void) {
  return device_count() != 0 && sim.generation != tarn__os_generation();
}

static bool is_ready(tarn__sim_device *device) {
  return atomic_load_explicit(&device->ready, memory_order_acquire);
}

// --- beginning and end, with the lock held ---------------------------------

static C_Status initialize_locked(void) {
  if (device_count() != 0) return C_SUCCESS;
  if (!tarn__sim_options_settle(&sim.options)) return C_ERROR;
  tarn__sim_faults_set(&sim.options.plan);
  for (size_t i = 0; i < sim.options.devices; i++) {
    sim.devices[i].home.id = (int)i;
    sim.devices[i].capacity = sim.options.capacity;
    pthread_mutex_init(&sim.devices[i].lock, NULL);
  }
  sim.generation = tarn__os_generation();
  atomic_store_explicit(&sim.count, sim.options.devices, memory_order_release);
  return C_SUCCESS;
}

static C_Status open_locked(tarn__sim_device *device) {
  assert(device != NULL);
  if (is_ready(device)) return C_SUCCESS;
  if (!tarn__sim_memory_open(device, sim.options.capacity))
    return tarn__wordless(C_FAILED);
  device->default_stream = NULL;  // of the time before went with all streams
  atomic_store_explicit(&device->ready, true, memory_order_release);
  return C_SUCCESS;
}

// Frees everything that the host has not; streams finish their work first.
static void close_locked(tarn__sim_device *device) {
  if (!is_ready(device)) return;
  tarn__queue_destroy_all(&device->home);
  atomic_store_explicit(&device->ready, false, memory_order_release);
  tarn__sim_ranges_close(device);
  tarn__sim_memory_close(device);
}

static void finalize_locked(void) {
  for (size_t i = 0; i < device_count(); i++) {
    close_locked(&sim.devices[i]);
    pthread_mutex_destroy(&sim.devices[i].lock);
  }
  atomic_store_explicit(&sim.count, 0, memory_order_release);
  tarn__sim_options_unsettle();
}

// --- checks of callers -----------------------------------------------------

static bool is_exhaustible(tarn__sim_call call) {
  switch (call) {
    case TARN__SIM_device_memory_allocate:
    case TARN__SIM_host_memory_allocate:
    case TARN__SIM_unified_memory_allocate:
    case TARN__SIM_allocate_aligned:
    case TARN__SIM_allocate_async:
    case TARN__SIM_range_reserve:
    case TARN__SIM_memory_create:
      return true;
    default:
      return false;
  }
}

// The device, ready or not.
static C_Status find(tarn__sim_call call, const struct C_Device_st *device,
                     tarn__sim_device **out) {
  const char *name = tarn__sim_call_name(call);
  size_t count = device_count();
  *out = NULL;
  if (device == NULL) return tarn__sim_misuse("sim: %s: no device", name);
  if (device->id < 0 || (size_t)device->id >= count) {
    return tarn__sim_misuse("sim: %s: device %d of %zu", name, device->id,
                            count);
  }
  if (is_inherited()) {
    return tarn__sim_misuse(
        "sim:%d: %s: initialised by the parent before a "
        "fork",
        device->id, name);
  }
  *out = &sim.devices[device->id];
  return C_SUCCESS;
}

C_Status tarn__sim_strike(tarn__sim_call call) {
  (void)tarn__text_fail(TARN_OK, "sim: %s fails on purpose",
                        tarn__sim_call_name(call));
  return is_exhaustible(call) ? C_FAILED : C_INTERNAL_ERROR;
}

static C_Status inject(tarn__sim_call call) {
  return tarn__sim_faults_inject(call) ? tarn__sim_strike(call) : C_SUCCESS;
}

// The calls that a host may make before a device is ready. PaddlePaddle, the
// author of this ABI, calls init_device late: before the first use of memory,
// streams and events of the device, and after all of these.
static bool comes_early(tarn__sim_call call) {
  switch (call) {
    case TARN__SIM_set_device:
    case TARN__SIM_synchronize_device:
    case TARN__SIM_device_memory_stats:
    case TARN__SIM_device_min_chunk_size:
    case TARN__SIM_device_max_chunk_size:
    case TARN__SIM_device_max_alloc_size:
    case TARN__SIM_device_extra_padding_size:
    case TARN__SIM_device_init_alloc_size:
    case TARN__SIM_device_realloc_size:
      return true;
    default:
      return false;
  }
}

C_Status tarn__sim_look_up(tarn__sim_call call,
                           const struct C_Device_st *device,
                           tarn__sim_device **out) {
  C_Status status = find(call, device, out);
  if (status != C_SUCCESS || is_ready(*out) || comes_early(call)) return status;
  return tarn__sim_misuse("sim:%d: %s before init_device", device->id,
                          tarn__sim_call_name(call));
}

C_Status tarn__sim_enter(tarn__sim_call call, const struct C_Device_st *device,
                         tarn__sim_device **out) {
  C_Status status = tarn__sim_look_up(call, device, out);
  if (status == C_SUCCESS) status = tarn__sim_spare_capture(call, device->id);
  return status == C_SUCCESS ? inject(call) : status;
}

tarn__sim_device *tarn__sim_owner(const void *ptr) {
  uintptr_t address = (uintptr_t)ptr;
  for (size_t i = 0; i < device_count(); i++) {
    tarn__sim_device *device = &sim.devices[i];
    if (!is_ready(device)) continue;
    if (tarn__common_window_has(&device->blocks, address) ||
        tarn__common_window_has(&device->ranges, address)) {
      return device;
    }
  }
  return NULL;
}

tarn__sim_device *tarn__sim_nth(size_t number) {
  return number < device_count() ? &sim.devices[number] : NULL;
}

// --- time ------------------------------------------------------------------

bool tarn__sim_lacks_ranges(void) {
  return sim.options.no_ranges != 0;
}

bool tarn__sim_lacks_moves(void) {
  return sim.options.no_moves != 0;
}

bool tarn__sim_is_slow(void) {
  return sim.options.latency_ns != 0 || sim.options.bandwidth != 0;
}

void tarn__sim_linger(uint64_t begin_ns, size_t size) {
  uint64_t ns = sim.options.latency_ns;
  if (sim.options.bandwidth != 0) {
    ns += (uint64_t)((double)size * 1e9 / (double)sim.options.bandwidth);
  }
  tarn__os_wait_until(begin_ns + ns);
}

void tarn__sim_linger_mapping(void) {
  uint64_t ns = sim.options.map_latency_ns;
  if (ns != 0) tarn__os_wait_until(tarn__os_now_ns() + ns);
}

// --- the table -------------------------------------------------------------

C_Status tarn__sim_initialize(void) {
  if (is_inherited()) return tarn__wordless(C_ERROR);
  lock_sim();
  C_Status status = initialize_locked();
  unlock_sim();
  return status;
}

C_Status tarn__sim_finalize(void) {
  if (is_inherited()) return tarn__wordless(C_ERROR);
  lock_sim();
  finalize_locked();
  unlock_sim();
  return C_SUCCESS;
}

C_Status tarn__sim_init_device(const C_Device device) {
  tarn__sim_device *found = NULL;
  C_Status status = find(TARN__SIM_init_device, device, &found);
  if (status == C_SUCCESS) status = inject(TARN__SIM_init_device);
  if (status != C_SUCCESS) return status;
  lock_sim();
  status = open_locked(found);
  unlock_sim();
  return status;
}

C_Status tarn__sim_deinit_device(const C_Device device) {
  tarn__sim_device *found = NULL;
  C_Status status = tarn__sim_enter(TARN__SIM_deinit_device, device, &found);
  if (status != C_SUCCESS) return status;
  lock_sim();
  close_locked(found);
  unlock_sim();
  return C_SUCCESS;
}

C_Status tarn__sim_set_device(const C_Device device) {
  tarn__sim_device *found = NULL;
  C_Status status = tarn__sim_enter(TARN__SIM_set_device, device, &found);
  if (status == C_SUCCESS) current = device->id;
  return status;
}

// The calling thread's, 0 at its beginning.
C_Status tarn__sim_get_device(const C_Device device) {
  if (device == NULL) return tarn__sim_misuse("sim: get_device: no device");
  C_Status status = inject(TARN__SIM_get_device);
  if (status == C_SUCCESS) device->id = current;
  return status;
}

C_Status tarn__sim_device_count(size_t *count) {
  if (count == NULL) return tarn__wordless(C_ERROR);
  *count = device_count();
  return *count != 0 ? C_SUCCESS : tarn__wordless(C_ERROR);
}

C_Status tarn__sim_device_list(size_t *ids) {
  if (ids == NULL || device_count() == 0) return tarn__wordless(C_ERROR);
  for (size_t i = 0; i < device_count(); i++)
    ids[i] = i;
  return C_SUCCESS;
}
