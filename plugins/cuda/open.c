// Devices from initialize to finalize. An open device holds its primary
// context, which other parts of the program may hold too: what they have made
// in it stays when the device is closed.
#include "devices.h"

typedef tarn__cuda_device cuda;
typedef tarn__cuda_registry registry;

// --- abilities that an attribute tells -------------------------------------

// Memory that host and device access at once. Without concurrent access the
// host must not touch any while a kernel runs, wherever it is.
static void settle_managed(cuda *d, const tarn__cuda_options *options) {
  if (!tarn__cuda_is_wanted(d, TARN__CUDA_MANAGED, options)) return;
  const char *why = NULL;
  if (tarn__cuda_ask(d, TARN__CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY) == 0) {
    why = "the device has no managed memory";
  } else if (tarn__cuda_ask(
                 d, TARN__CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) == 0) {
    why = "the host cannot access managed memory while the device works";
  }
  tarn__cuda_settle(d, TARN__CUDA_MANAGED, why);
}

static void settle_register(cuda *d, const tarn__cuda_options *options) {
  const unsigned same_address =
      TARN__CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM;
  if (!tarn__cuda_is_wanted(d, TARN__CUDA_REGISTER, options)) return;
  bool can = tarn__cuda_ask(d, same_address) != 0;
  tarn__cuda_settle(
      d, TARN__CUDA_REGISTER,
      can ? NULL : "registered memory has another address on the device");
}

// --- opening ---------------------------------------------------------------

// What is left is given back; the order is that of who uses whom. Where the
// context was destroyed, what was in it is gone: each part lets go of its
// account all the same.
static void close_parts(cuda *d) {
  tarn__cuda_calls_close(d);
  tarn__cuda_events_close(d);
  tarn__cuda_queues_close(d);
  tarn__cuda_kernels_close(d);
  tarn__cuda_range_close(d);
  tarn__cuda_memory_close(d);
}

static void open_parts(cuda *d, const tarn__cuda_options *options) {
  d->units =
      (size_t)tarn__cuda_ask(d, TARN__CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  settle_managed(d, options);
  settle_register(d, options);
  tarn__cuda_memory_open(d, options);
  tarn__cuda_range_open(d, options);
  tarn__cuda_share_open(d, options);
  tarn__cuda_kernels_open(d, options);
}

static C_Status hold_context(cuda *d) {
  tarn__cuda_result error =
      tarn__cuda_driver_get()->DevicePrimaryCtxRetain(&d->context, d->handle);
  return tarn__cuda_say(error, "cuDevicePrimaryCtxRetain");
}

static void drop_context(cuda *d) {
  (void)tarn__cuda_driver_get()->DevicePrimaryCtxRelease(d->handle);
  d->context = NULL;
}

// With all of its parts, of which none fails: what does not work is settled as
// an ability that the device lacks.
static C_Status open_locked(registry *all, cuda *d) {
  tarn__cuda_scope scope;
  if (atomic_load_explicit(&d->ready, memory_order_relaxed)) return C_SUCCESS;
  C_Status status = hold_context(d);
  if (status != C_SUCCESS) return status;
  status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) {
    drop_context(d);
    return status;
  }
  open_parts(d, &all->options);
  tarn__cuda_leave(&scope);
  atomic_store_explicit(&d->ready, true, memory_order_release);
  return C_SUCCESS;
}

C_Status tarn__cuda_init_device(const C_Device device) {
  registry *all = &tarn__cuda_devices;
  C_Status status = tarn__cuda_find_devices();
  cuda *d = status == C_SUCCESS ? tarn__cuda_listed(device) : NULL;
  if (d == NULL) return status == C_SUCCESS ? C_ERROR : status;
  pthread_mutex_lock(&all->lock);
  status = open_locked(all, d);
  pthread_mutex_unlock(&all->lock);
  return status;
}

// --- closing ---------------------------------------------------------------

static void close_locked(cuda *d) {
  tarn__cuda_scope scope;
  if (!atomic_load_explicit(&d->ready, memory_order_relaxed)) return;
  atomic_store_explicit(&d->ready, false, memory_order_release);
  bool is_there = tarn__cuda_enter(d, true, &scope) == C_SUCCESS;
  close_parts(d);
  if (is_there) tarn__cuda_leave(&scope);
  drop_context(d);
}

C_Status tarn__cuda_deinit_device(const C_Device device) {
  registry *all = &tarn__cuda_devices;
  cuda *d = tarn__cuda_listed(device);
  if (d == NULL) return C_ERROR;
  pthread_mutex_lock(&all->lock);
  close_locked(d);
  pthread_mutex_unlock(&all->lock);
  return C_SUCCESS;
}

// A child cannot use the driver of its parent: nothing can be given back.
C_Status tarn__cuda_finalize(void) {
  registry *all = &tarn__cuda_devices;
  if (all->generation != tarn__os_generation()) return C_SUCCESS;
  pthread_mutex_lock(&all->lock);
  for (size_t i = 0; i < all->count; i++)
    close_locked(&all->devices[i]);
  pthread_mutex_unlock(&all->lock);
  return C_SUCCESS;
}
