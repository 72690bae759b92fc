// Blocks: taken and given back by the method of their kind, and found by any
// address inside of them.
//
// OpenCL does not say how much memory is free, and drivers grant more than
// there is: the plug-in counts what it gives out of the device's own memory and
// of unified memory, and refuses what would be beyond the capacity.
//
// Invariant: a block stands in the extents of its kind, or in the window, from
// when the driver has given its memory until just before that goes back.
#include <inttypes.h>

#include "base/hostmem.h"
#include "base/os_pages.h"
#include "opencl.h"

typedef tarn__opencl_device opencl;
typedef tarn__opencl_block block;
typedef tarn__common_extent extent;

// --- what the driver gives -------------------------------------------------

// Adds |align| to |size| where the driver need not align that far by itself. A
// buffer of a window is aligned by the window.
static bool add_slack(const opencl *d, tarn__opencl_method method, size_t size,
                      size_t align, size_t *out_whole) {
  bool is_told = tarn__opencl_is_pointer(method) && align <= d->align;
  *out_whole = size;
  return is_told || method == TARN__OPENCL_WINDOW ||
         tarn_size_add(size, align, out_whole);
}

static C_Status note_pointer(block *b, const void *pointer, cl_int error,
                             const char *call) {
  b->base = (uint64_t)(uintptr_t)pointer;
  if (pointer != NULL) return C_SUCCESS;
  // clSVMAlloc tells no reason.
  return tarn__opencl_say(
      error != CL_SUCCESS ? error : CL_MEM_OBJECT_ALLOCATION_FAILURE, call);
}

static C_Status take_usm(const opencl *d, tarn__opencl_kind kind, size_t size,
                         block *b) {
  const tarn__opencl_extensions *ext = &d->platform->ext;
  const void *pointer = NULL;
  cl_int error = CL_SUCCESS;
  cl_uint align = (cl_uint)d->align;
  switch (kind) {
    case TARN__OPENCL_HOST:
      pointer = ext->host_mem_alloc(d->context, NULL, size, align, &error);
      return note_pointer(b, pointer, error, "clHostMemAllocINTEL");
    case TARN__OPENCL_UNIFIED:
      pointer = ext->shared_mem_alloc(d->context, d->handle, NULL, size, align,
                                      &error);
      return note_pointer(b, pointer, error, "clSharedMemAllocINTEL");
    default:
      pointer = ext->device_mem_alloc(d->context, d->handle, NULL, size, align,
                                      &error);
      return note_pointer(b, pointer, error, "clDeviceMemAllocINTEL");
  }
}

// Where memory is the host's own, rows at random are as fast as its pages are
// large: a driver asks for none. Below this a block may share its pages with
// others, and what was asked for would outlive it.
enum { HUGE_FROM = 32 << 20 };

static C_Status take_svm(const opencl *d, tarn__opencl_kind kind, size_t size,
                         block *b) {
  cl_svm_mem_flags flags = CL_MEM_READ_WRITE;
  if (kind != TARN__OPENCL_DEVICE) flags |= CL_MEM_SVM_FINE_GRAIN_BUFFER;
  void *pointer = tarn__opencl_driver_get()->SVMAlloc(d->context, flags, size,
                                                      (cl_uint)d->align);
  if (pointer != NULL && d->maps && size >= HUGE_FROM)
    tarn__os_ask_huge(pointer, size);
  return note_pointer(b, pointer, CL_SUCCESS, "clSVMAlloc");
}

static void release_buffer(block *b) {
  (void)tarn__opencl_driver_get()->ReleaseMemObject(b->buffer);
  b->buffer = NULL;
}

static C_Status take_buffer(const opencl *d, cl_mem_flags flags, size_t size,
                            block *b) {
  cl_int error = CL_SUCCESS;
  b->buffer = tarn__opencl_driver_get()->CreateBuffer(d->context, flags, size,
                                                      NULL, &error);
  return b->buffer != NULL ? C_SUCCESS
                           : tarn__opencl_say(error, "clCreateBuffer");
}

// Each device of the context has an address of its own for the buffer.
static C_Status ask_address(const opencl *d, block *b) {
  tarn__opencl_address addresses[TARN__OPENCL_DEVICES_MAX] = {0};
  cl_int error = tarn__opencl_driver_get()->GetMemObjectInfo(
      b->buffer, TARN__OPENCL_MEM_DEVICE_ADDRESS, sizeof addresses, addresses,
      NULL);
  b->base = error == CL_SUCCESS ? addresses[d->rank] : 0;
  if (b->base != 0) return C_SUCCESS;
  release_buffer(b);
  return tarn__opencl_say(
      error != CL_SUCCESS ? error : CL_MEM_OBJECT_ALLOCATION_FAILURE,
      "clGetMemObjectInfo of an address");
}

static C_Status take_address(const opencl *d, size_t size, block *b) {
  const cl_mem_properties properties[] = {TARN__OPENCL_MEM_PRIVATE_ADDRESS,
                                          CL_TRUE, 0};
  cl_int error = CL_SUCCESS;
  b->buffer = tarn__opencl_driver_get()->CreateBufferWithProperties(
      d->context, properties, CL_MEM_READ_WRITE, size, NULL, &error);
  if (b->buffer != NULL) return ask_address(d, b);
  return tarn__opencl_say(error, "clCreateBufferWithProperties");
}

static bool try_unmap(opencl *d, const block *b) {
  tarn__opencl_work w;
  cl_event event = NULL;
  if (tarn__opencl_begin(d, NULL, &w) != C_SUCCESS) return false;
  cl_int error = tarn__opencl_driver_get()->EnqueueUnmapMemObject(
      w.queue, b->buffer, (void *)(uintptr_t)b->base, 0, NULL, &event);
  (void)tarn__opencl_end(&w, "clEnqueueUnmapMemObject", error, event);
  return error == CL_SUCCESS;
}

// A buffer must not end while it is mapped: where the driver refuses, it is
// asked once more.
static void end_mapped(opencl *d, block *b) {
  if (!try_unmap(d, b)) (void)try_unmap(d, b);
  release_buffer(b);
}

// A buffer that the host has from now on: no command uses it as a buffer.
static C_Status take_mapped(opencl *d, size_t size, block *b) {
  tarn__opencl_work w;
  C_Status status = tarn__opencl_begin(d, NULL, &w);
  if (status != C_SUCCESS) return status;
  status = take_buffer(d, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, b);
  cl_int error = CL_SUCCESS;
  cl_event event = NULL;
  void *pointer = NULL;
  if (status == C_SUCCESS) {
    pointer = tarn__opencl_driver_get()->EnqueueMapBuffer(
        w.queue, b->buffer, CL_FALSE, CL_MAP_READ | CL_MAP_WRITE, 0, size, 0,
        NULL, &event, &error);
    status = pointer != NULL ? C_SUCCESS : C_FAILED;
  }
  C_Status outcome = tarn__opencl_end(&w, "clEnqueueMapBuffer", error, event);
  if (status == C_SUCCESS) status = outcome;
  b->base = (uint64_t)(uintptr_t)pointer;
  if (status == C_SUCCESS) return C_SUCCESS;
  if (pointer != NULL) {
    end_mapped(d, b);
  } else if (b->buffer != NULL) {
    release_buffer(b);
  }
  return status;
}

static C_Status take_from_driver(opencl *d, tarn__opencl_kind kind, size_t size,
                                 block *b) {
  switch (b->method) {
    case TARN__OPENCL_USM:
      return take_usm(d, kind, size, b);
    case TARN__OPENCL_SVM:
      return take_svm(d, kind, size, b);
    case TARN__OPENCL_ADDRESS:
      return take_address(d, size, b);
    case TARN__OPENCL_WINDOW:
      return take_buffer(d, CL_MEM_READ_WRITE, size, b);
    case TARN__OPENCL_MAPPED:
      return take_mapped(d, size, b);
    default:
      (void)tarn__text_fail(TARN_E_UNSUPPORTED, "%s has no %s memory", d->name,
                            tarn__opencl_kind_name(kind));
      return C_ERROR;
  }
}

static void give_to_driver(opencl *d, block *b) {
  void *pointer = (void *)(uintptr_t)b->base;
  switch (b->method) {
    case TARN__OPENCL_USM:
      (void)d->platform->ext.mem_free(d->context, pointer);
      break;
    case TARN__OPENCL_SVM:
      tarn__opencl_driver_get()->SVMFree(d->context, pointer);
      break;
    case TARN__OPENCL_MAPPED:
      end_mapped(d, b);
      break;
    default:
      release_buffer(b);
      break;
  }
}

// --- accounting ------------------------------------------------------------

static C_Status say_full(const opencl *d, size_t size, size_t left) {
  (void)tarn__text_fail(TARN_FULL,
                        "opencl:%d: %zu bytes, of %zu that are left of %zu",
                        d->id, size, left, d->capacity);
  return C_FAILED;
}

static bool counts(tarn__opencl_kind kind) {
  return kind != TARN__OPENCL_HOST;
}

static C_Status charge(opencl *d, tarn__opencl_kind kind, size_t size) {
  if (size > d->max_alloc && counts(kind)) {
    (void)tarn__text_fail(TARN_FULL,
                          "opencl:%d: %zu bytes, of %zu that a block can have",
                          d->id, size, d->max_alloc);
    return C_FAILED;
  }
  pthread_mutex_lock(&d->lock);
  size_t left = d->capacity - d->used;
  bool fits = !counts(kind) || size <= left;
  if (fits && counts(kind)) d->used += size;
  pthread_mutex_unlock(&d->lock);
  return fits ? C_SUCCESS : say_full(d, size, left);
}

static void discharge(opencl *d, tarn__opencl_kind kind, size_t size) {
  if (!counts(kind)) return;
  pthread_mutex_lock(&d->lock);
  d->used -= size;
  pthread_mutex_unlock(&d->lock);
}

// --- taking ----------------------------------------------------------------

static bool is_windowed(const opencl *d, tarn__opencl_kind kind) {
  return d->methods[kind] == TARN__OPENCL_WINDOW;
}

// Enters the block, which then has an address; 0: no room for it.
static uint64_t enter(opencl *d, tarn__opencl_kind kind, size_t size,
                      size_t align, block *b) {
  extent *x = NULL;
  pthread_mutex_lock(&d->lock);
  if (is_windowed(d, kind)) {
    x = tarn__common_window_take(&d->window, size, align, b);
    if (x != NULL) b->base = x->node.start;
  } else {
    tarn__common_run run = {(b->base + align - 1) & ~(uint64_t)(align - 1),
                            size};
    x = tarn__common_extents_add(&d->blocks[kind], run, size, ++d->serial);
    if (x != NULL) x->record = b;
  }
  uint64_t address = x != NULL ? x->node.start : 0;
  pthread_mutex_unlock(&d->lock);
  return address;
}

static C_Status make(opencl *d, tarn__opencl_kind kind, size_t size,
                     size_t align, uint64_t *out_address) {
  size_t whole = 0;
  block *b = tarn__host_alloc(sizeof *b);
  if (b == NULL) return tarn__wordless(C_FAILED);
  b->method = d->methods[kind];
  C_Status status = C_FAILED;
  if (add_slack(d, b->method, size, align, &whole)) {
    status = take_from_driver(d, kind, whole, b);
  }
  if (status == C_SUCCESS) {
    *out_address = enter(d, kind, size, align, b);
    if (*out_address != 0) return C_SUCCESS;
    give_to_driver(d, b);
    (void)tarn__text_fail(TARN_FULL, "opencl:%d: no addresses for %zu bytes",
                          d->id, size);
    status = C_FAILED;
  }
  tarn__host_free(b, sizeof *b);
  return status;
}

C_Status tarn__opencl_take(opencl *d, tarn__opencl_kind kind, size_t size,
                           size_t align, uint64_t *out_address) {
  *out_address = 0;
  if (size == 0) {
    (void)tarn__text_fail(TARN_E_INVALID, "opencl:%d: a block without bytes",
                          d->id);
    return C_ERROR;
  }
  C_Status status = charge(d, kind, size);
  if (status != C_SUCCESS) return status;
  if (align < d->align) align = d->align;
  status = make(d, kind, size, align, out_address);
  if (status != C_SUCCESS) discharge(d, kind, size);
  return status;
}

// --- giving back -----------------------------------------------------------

static tarn__common_extents *extents_of(opencl *d, tarn__opencl_kind kind) {
  return is_windowed(d, kind) ? &d->window.extents : &d->blocks[kind];
}

// Takes the block that begins at |address| out of the extents; NULL: none.
static block *leave(opencl *d, tarn__opencl_kind kind, uint64_t address) {
  pthread_mutex_lock(&d->lock);
  tarn__common_extents *all = extents_of(d, kind);
  extent *x = tarn__common_extents_find(all, address);
  block *b = NULL;
  if (x != NULL && x->serial != 0 && x->node.start == address) {
    b = x->record;
    if (counts(kind)) d->used -= x->asked;
    if (is_windowed(d, kind)) {
      (void)tarn__common_window_give(&d->window, x);
    } else {
      tarn__common_extents_remove(all, x);
    }
  }
  pthread_mutex_unlock(&d->lock);
  return b;
}

C_Status tarn__opencl_give(opencl *d, tarn__opencl_kind kind,
                           uint64_t address) {
  block *b = leave(d, kind, address);
  if (b == NULL) {
    (void)tarn__text_fail(
        TARN_E_INVALID, "opencl:%d: no block of %s memory begins at 0x%" PRIx64,
        d->id, tarn__opencl_kind_name(kind), address);
    return C_ERROR;
  }
  give_to_driver(d, b);
  tarn__host_free(b, sizeof *b);
  return C_SUCCESS;
}

void tarn__opencl_memory_close(opencl *d) {
  for (int i = 0; i < TARN__OPENCL_KINDS; i++) {
    tarn__opencl_kind kind = (tarn__opencl_kind)i;
    const extent *x = tarn__common_extents_from(extents_of(d, kind), 0);
    while (x != NULL) {
      uint64_t start = x->node.start;
      bool is_taken = x->serial != 0;
      uint64_t behind = start + x->size;
      if (is_taken) (void)tarn__opencl_give(d, kind, start);
      x = tarn__common_extents_from(extents_of(d, kind), behind);
    }
  }
  tarn__common_window_close(&d->window);
}

// --- finding ---------------------------------------------------------------

// The taken extent of which a usable byte is at |address|.
static const extent *find_locked(opencl *d, uint64_t address,
                                 tarn__opencl_kind *out_kind) {
  for (int i = 0; i < TARN__OPENCL_KINDS; i++) {
    *out_kind = (tarn__opencl_kind)i;
    const extent *x =
        tarn__common_extents_find(extents_of(d, *out_kind), address);
    if (x != NULL && x->serial != 0 && address - x->node.start < x->asked) {
      return x;
    }
  }
  return NULL;
}

bool tarn__opencl_find(opencl *d, uint64_t address, size_t size,
                       tarn__opencl_span *out) {
  *out = (tarn__opencl_span){.address = address};
  pthread_mutex_lock(&d->lock);
  tarn__opencl_kind kind = TARN__OPENCL_DEVICE;
  const extent *x = find_locked(d, address, &kind);
  if (x != NULL) {
    const block *b = x->record;
    *out = (tarn__opencl_span){
        .kind = kind,
        .method = b->method,
        .address = address,
        .start = x->node.start,
        .size = x->asked,
        .buffer = b->buffer,
        .base = b->base,
        .offset = (size_t)(address - b->base),
    };
  }
  pthread_mutex_unlock(&d->lock);
  if (out->method == TARN__OPENCL_NONE) return true;
  size_t left = out->size - (size_t)(address - out->start);
  if (size <= left) return true;
  (void)tarn__text_fail(TARN_E_INVALID,
                        "opencl:%d: of %zu bytes at 0x%" PRIx64
                        " %zu are beyond the end of a block of %zu",
                        d->id, size, address, size - left, out->size);
  return false;
}

static bool owns(opencl *d, uint64_t address, tarn__opencl_span *out) {
  return atomic_load_explicit(&d->ready, memory_order_acquire) &&
         tarn__opencl_find(d, address, 0, out) &&
         out->method != TARN__OPENCL_NONE;
}

const opencl *tarn__opencl_owner(opencl *d, uint64_t address,
                                 tarn__opencl_span *out) {
  if (owns(d, address, out)) return d;
  opencl *other = NULL;
  for (size_t i = 0; (other = tarn__opencl_nth(i)) != NULL; i++)
    if (other != d && owns(other, address, out)) return other;
  return NULL;
}
