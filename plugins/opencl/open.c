// Devices from initialize to finalize. All open devices of a platform share one
// context: memory of one can be copied to another, and queues of one can wait
// for events of another.
#include <string.h>

#include "base/hostmem.h"
#include "devices.h"

typedef tarn__opencl_device opencl;
typedef tarn__opencl_platform platform;
typedef tarn__opencl_registry registry;

// --- the context -----------------------------------------------------------

// The devices of |p|, in the order of their numbers, which gives each its rank.
static cl_uint collect(registry *all, const platform *p, cl_device_id *out) {
  cl_uint count = 0;
  for (size_t i = 0; i < all->count; i++) {
    opencl *d = &all->devices[i];
    if (d->platform != p) continue;
    d->rank = count;
    out[count++] = d->handle;
  }
  return count;
}

static C_Status make_context(registry *all, platform *p) {
  cl_device_id handles[TARN__OPENCL_DEVICES_MAX];
  cl_uint count = collect(all, p, handles);
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, (cl_context_properties)(uintptr_t)p->handle, 0};
  cl_int error = CL_SUCCESS;
  p->context = tarn__opencl_driver_get()->CreateContext(
      properties, count, handles, tarn__opencl_hear, NULL, &error);
  return p->context != NULL ? C_SUCCESS
                            : tarn__opencl_say(error, "clCreateContext");
}

static C_Status hold_context(registry *all, opencl *d) {
  platform *p = d->platform;
  C_Status status = p->open_devices == 0 ? make_context(all, p) : C_SUCCESS;
  if (status != C_SUCCESS) return status;
  p->open_devices++;
  d->context = p->context;
  return C_SUCCESS;
}

static void drop_context(opencl *d) {
  platform *p = d->platform;
  d->context = NULL;
  if (--p->open_devices != 0) return;
  (void)tarn__opencl_driver_get()->ReleaseContext(p->context);
  p->context = NULL;
}

// --- opening ---------------------------------------------------------------

// Addresses for blocks: several times the capacity, so that an address that was
// freed stays unused for long.
static C_Status open_window(opencl *d) {
  enum { FACTOR = 4 };
  size_t size = 0;
  size_t page = tarn__os_page();
  if (d->methods[TARN__OPENCL_DEVICE] != TARN__OPENCL_WINDOW) return C_SUCCESS;
  if (tarn_size_mul(d->capacity, FACTOR, &size) &&
      tarn_size_align_up(size, page, &size) &&
      tarn__common_window_open(&d->window, size, page, page)) {
    return C_SUCCESS;
  }
  (void)tarn__text_fail(TARN_FULL, "no addresses for %zu bytes of %s",
                        d->capacity, d->name);
  return C_FAILED;
}

// Whether SVM copies take plain memory of the host, which some drivers refuse
// and others get wrong: a few bytes to the device and back tell.
static bool try_plain_copies(opencl *d) {
  static const char sent[] = "plain memory";
  char received[sizeof sent] = {0};
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  tarn__opencl_work w;
  cl_event event = NULL;
  if (tarn__opencl_begin(d, NULL, &w) != C_SUCCESS) return false;
  void *block = cl->SVMAlloc(d->context, CL_MEM_READ_WRITE, sizeof sent, 0);
  cl_int error = block != NULL ? CL_SUCCESS : CL_MEM_OBJECT_ALLOCATION_FAILURE;
  if (error == CL_SUCCESS)
    error = cl->EnqueueSVMMemcpy(w.queue, CL_FALSE, block, sent, sizeof sent, 0,
                                 NULL, &event);
  tarn__opencl_keep(w.record, "clEnqueueSVMMemcpy", event);
  event = NULL;
  if (error == CL_SUCCESS)
    error = cl->EnqueueSVMMemcpy(w.queue, CL_FALSE, received, block,
                                 sizeof sent, 0, NULL, &event);
  C_Status status = tarn__opencl_end(&w, "clEnqueueSVMMemcpy", error, event);
  if (block != NULL) cl->SVMFree(d->context, block);
  return status == C_SUCCESS && memcmp(sent, received, sizeof sent) == 0;
}

static bool has_svm(const opencl *d) {
  for (int kind = 0; kind < TARN__OPENCL_KINDS; kind++)
    if (d->methods[kind] == TARN__OPENCL_SVM) return true;
  return false;
}

// What is left is given back; the order is that of who uses whom.
static void close_parts(opencl *d) {
  tarn__opencl_events_close(d);
  tarn__opencl_programs_close(d);
  tarn__opencl_memory_close(d);
  tarn__opencl_queues_close(d);
  tarn__opencl_forget_calls(d);
}

static C_Status open_parts(registry *all, opencl *d) {
  d->used = 0;
  C_Status status = tarn__opencl_choose(d, &all->options);
  if (status == C_SUCCESS) status = open_window(d);
  if (status != C_SUCCESS) return status;
  d->copies_plain = has_svm(d) && try_plain_copies(d);
  return C_SUCCESS;
}

static C_Status open_locked(registry *all, opencl *d) {
  if (atomic_load_explicit(&d->ready, memory_order_relaxed)) return C_SUCCESS;
  C_Status status = hold_context(all, d);
  if (status != C_SUCCESS) return status;
  status = open_parts(all, d);
  if (status != C_SUCCESS) {
    close_parts(d);
    drop_context(d);
    return status;
  }
  atomic_store_explicit(&d->ready, true, memory_order_release);
  return C_SUCCESS;
}

C_Status tarn__opencl_init_device(const C_Device device) {
  registry *all = &tarn__opencl_devices;
  C_Status status = tarn__opencl_find_devices();
  opencl *d = status == C_SUCCESS ? tarn__opencl_listed(device) : NULL;
  if (d == NULL) return status == C_SUCCESS ? C_ERROR : status;
  pthread_mutex_lock(&all->lock);
  status = open_locked(all, d);
  pthread_mutex_unlock(&all->lock);
  return status;
}

// --- closing ---------------------------------------------------------------

static void close_locked(opencl *d) {
  if (!atomic_load_explicit(&d->ready, memory_order_relaxed)) return;
  atomic_store_explicit(&d->ready, false, memory_order_release);
  close_parts(d);
  drop_context(d);
}

C_Status tarn__opencl_deinit_device(const C_Device device) {
  registry *all = &tarn__opencl_devices;
  opencl *d = tarn__opencl_listed(device);
  if (d == NULL) return C_ERROR;
  pthread_mutex_lock(&all->lock);
  close_locked(d);
  pthread_mutex_unlock(&all->lock);
  return C_SUCCESS;
}

// The threads of a driver that was asked for its devices in a parent are not
// here: nothing can be given back.
C_Status tarn__opencl_finalize(void) {
  registry *all = &tarn__opencl_devices;
  if (all->generation != tarn__os_generation()) return C_SUCCESS;
  pthread_mutex_lock(&all->lock);
  for (size_t i = 0; i < all->count; i++)
    close_locked(&all->devices[i]);
  pthread_mutex_unlock(&all->lock);
  return C_SUCCESS;
}
