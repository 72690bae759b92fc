// Addresses without memory: see window.h.
//
// Invariants of an open window:
//   * The extents cover it, without a gap and with nothing outside of it.
//   * |begin| is written before |size| is set, and |size| is 0 before the
//     addresses go: a thread that reads |size| and then |begin| never sees a
//     size without a beginning.
#include "common/window.h"

#include "base/os.h"

typedef tarn__common_window window;

// --- beginning and end -----------------------------------------------------

static size_t largest_power(size_t size) {
  return (size_t)1 << (63 - __builtin_clzl(size));
}

static void *reserve(size_t size, size_t align) {
  void *begin = tarn__os_reserve_aligned(size, largest_power(size));
  return begin != NULL ? begin : tarn__os_reserve_aligned(size, align);
}

// As much of |most| as the system has, but |least| or more; empty if it has
// less. |unit| is a power of two and at least a page.
static tarn__common_run reserve_some(size_t most, size_t least, size_t unit) {
  for (size_t size = most; size != 0 && size >= least;
       size = size / 2 / unit * unit) {
    void *begin = reserve(size, unit);
    if (begin != NULL) return (tarn__common_run){(uintptr_t)begin, size};
  }
  return (tarn__common_run){0, 0};
}

bool tarn__common_window_open(window *w, size_t size, size_t least,
                              size_t align) {
  size_t page = tarn__os_page();
  size_t unit = align > page ? align : page;
  size_t most = 0;
  if (!tarn_size_align_up(size, unit, &most)) return false;
  tarn__common_run run = reserve_some(most, least, unit);
  if (run.size == 0) return least == 0;
  if (tarn__common_extents_add(&w->extents, run, 0, 0) == NULL) {
    tarn__os_unmap((void *)(uintptr_t)run.address, run.size);
    return false;
  }
  w->begin = run.address;
  w->size = run.size;
  return true;
}

void tarn__common_window_close(window *w) {
  size_t size = w->size;
  w->size = 0;
  if (size != 0) tarn__os_unmap((void *)(uintptr_t)w->begin, size);
  tarn__common_extents_clear(&w->extents);
}

// --- taking and finding ----------------------------------------------------

tarn__common_extent *tarn__common_window_take(window *w, size_t size,
                                              size_t align, void *record) {
  tarn__common_extent *taken =
      tarn__common_extents_take(&w->extents, size, align, size, w->serial + 1);
  if (taken == NULL) return NULL;
  w->serial++;
  taken->record = record;
  return taken;
}

tarn__common_extent *tarn__common_window_find(const window *w, uint64_t address,
                                              size_t *out_offset) {
  tarn__common_extent *extent = tarn__common_extents_find(&w->extents, address);
  *out_offset = 0;
  if (extent == NULL || address - extent->node.start >= extent->asked) {
    return NULL;
  }
  *out_offset = (size_t)(address - extent->node.start);
  return extent;
}
