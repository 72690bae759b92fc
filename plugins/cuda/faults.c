// Pinned memory in which kernels note a bad row: a device has it in pages, of
// which each record of a stream takes a few bytes. Pages are the device's until
// it is closed, since to pin memory, or to free it, may wait for all work.
//
// Which bytes are taken is not written to pinned memory: that goes with the
// context, which the program may destroy.
#include <string.h>

#include "base/hostmem.h"
#include "gpu.h"

typedef tarn__cuda_device cuda;

struct tarn__cuda_page {
  tarn__cuda_page *next;
  tarn__cuda_fault *faults;
  uint64_t taken;  // a bit for each
};

enum { FAULTS_OF_PAGE = 64 };

// Pins another page. A stream of the caller's may be capturing.
static C_Status pin(const cuda *d, void **out) {
  tarn__cuda_scope scope;
  C_Status status = tarn__cuda_enter(d, true, &scope);
  if (status != C_SUCCESS) return status;
  tarn__cuda_result error = tarn__cuda_driver_get()->MemHostAlloc(
      out, FAULTS_OF_PAGE * sizeof(tarn__cuda_fault),
      TARN__CU_MEMHOSTALLOC_PORTABLE | TARN__CU_MEMHOSTALLOC_DEVICEMAP);
  status = tarn__cuda_say(error, "cuMemHostAlloc");
  tarn__cuda_leave(&scope);
  return status;
}

static C_Status add_page(cuda *d) {
  void *memory = NULL;
  tarn__cuda_page *page = tarn__host_alloc(sizeof *page);
  if (page == NULL) return tarn__wordless(C_FAILED);
  C_Status status = pin(d, &memory);
  if (status != C_SUCCESS) {
    tarn__host_free(page, sizeof *page);
    return status;
  }
  page->faults = memory;
  pthread_mutex_lock(&d->lock);
  page->next = d->pages;
  d->pages = page;
  pthread_mutex_unlock(&d->lock);
  return C_SUCCESS;
}

// NULL: all are taken.
static tarn__cuda_fault *try_fault(cuda *d) {
  tarn__cuda_fault *found = NULL;
  pthread_mutex_lock(&d->lock);
  tarn__cuda_page *page = d->pages;
  while (page != NULL && page->taken == UINT64_MAX)
    page = page->next;
  if (page != NULL) {
    unsigned at = (unsigned)__builtin_ctzll(~page->taken);
    page->taken |= UINT64_C(1) << at;
    found = &page->faults[at];
  }
  pthread_mutex_unlock(&d->lock);
  return found;
}

C_Status tarn__cuda_fault_take(cuda *d, tarn__cuda_fault **out) {
  while ((*out = try_fault(d)) == NULL) {
    C_Status status = add_page(d);
    if (status != C_SUCCESS) return status;
  }
  memset(*out, 0, sizeof **out);
  return C_SUCCESS;
}

void tarn__cuda_fault_put(cuda *d, const tarn__cuda_fault *fault) {
  pthread_mutex_lock(&d->lock);
  for (tarn__cuda_page *page = d->pages; page != NULL; page = page->next) {
    uintptr_t offset = (uintptr_t)fault - (uintptr_t)page->faults;
    if (offset < FAULTS_OF_PAGE * sizeof *fault)
      page->taken &= ~(UINT64_C(1) << offset / sizeof *fault);
  }
  pthread_mutex_unlock(&d->lock);
}

void tarn__cuda_faults_close(cuda *d) {
  bool entered = tarn__cuda_is_entered(d);
  tarn__cuda_page *page = NULL;
  while ((page = d->pages) != NULL) {
    d->pages = page->next;
    if (entered) (void)tarn__cuda_driver_get()->MemFreeHost(page->faults);
    tarn__host_free(page, sizeof *page);
  }
}
