// How fast it copies and hands out memory. Each row has a budget of time, and
// is the median of what was measured within it.
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "route.h"

enum { RUNS_MAX = 101, RUNS_MIN = 3 };

static const uint64_t BUDGET_NS = UINT64_C(60) * 1000 * 1000;

static const size_t copy_sizes[] = {KIB(4), KIB(64), MIB(1), MIB(16), MIB(64)};
static const size_t block_sizes[] = {256,    KIB(4),  KIB(64),
                                     MIB(1), MIB(16), MIB(64)};
#define COUNT(array) (sizeof(array) / sizeof(array)[0])

static int compare(const void *a, const void *b) {
  uint64_t x = *(const uint64_t *)a;
  uint64_t y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static double median(uint64_t *ns, size_t count) {
  qsort(ns, count, sizeof *ns, compare);
  size_t middle = count / 2;
  return (double)ns[middle];
}

// Whether one more run belongs to a row whose runs began at |begin|.
static bool goes_on(size_t count, uint64_t begin) {
  return count < RUNS_MAX &&
         (count < RUNS_MIN || tarn__os_now_ns() - begin < BUDGET_NS);
}

// A copy within a device or between two may return before it is made: it
// counts until the device is at rest, where the plug-in can say so.
static bool copy_to_the_end(conform_target *t, const route *r, void *dst,
                            const void *src, size_t size) {
  if (!route_copy(t, r, dst, src, size)) return false;
  bool waits = r->kind != ROUTE_H2D && r->kind != ROUTE_D2H &&
               t->plugin->own.synchronize_device != NULL;
  if (waits) CALL(t, synchronize_device, &t->device);
  return true;
}

// The first copy touches fresh memory: it does not count.
static bool time_copies(conform_target *t, const route *r, void *dst,
                        const void *src, size_t size, double *out_ns) {
  uint64_t ns[RUNS_MAX];
  size_t count = 0;
  if (!route_copy(t, r, dst, src, size)) return false;
  uint64_t begin = tarn__os_now_ns();
  while (goes_on(count, begin)) {
    uint64_t from = tarn__os_now_ns();
    if (!copy_to_the_end(t, r, dst, src, size)) return false;
    ns[count++] = tarn__os_now_ns() - from;
  }
  *out_ns = median(ns, count);
  return true;
}

static bool take_end(conform_target *t, struct C_Device_st *device, size_t size,
                     void **out) {
  unsigned char *bytes = NULL;
  if (!check_buffer(t, size, &bytes)) return false;
  memset(bytes, 1, size);
  *out = bytes;
  if (device == NULL) return true;
  if (!check_enter(t, device) || !check_take_of(t, device, size, out)) {
    return false;
  }
  CALL(t, memory_copy_h2d, device, *out, bytes, size);
  return true;
}

static bool measure_copy(conform_target *t, const char *kind, const route *r,
                         size_t size, const measure_sink *sink) {
  conform_copy row = {.bytes = size};
  double ns = 0;
  void *dst = NULL;
  void *src = NULL;
  memcpy(row.kind, kind, sizeof row.kind);
  if (!take_end(t, r->kind == ROUTE_D2H ? NULL : r->to, size, &dst) ||
      !take_end(t, r->kind == ROUTE_H2D ? NULL : r->from, size, &src) ||
      !check_enter(t, &t->device) || !time_copies(t, r, dst, src, size, &ns) ||
      !check_tidy(t)) {
    return false;
  }
  row.gbs = (double)size / ns;
  sink->copy(sink->context, &row);
  return true;
}

static bool measure_kind(conform_target *t, const char *kind, const route *r,
                         const measure_sink *sink) {
  for (size_t i = 0; i < COUNT(copy_sizes); i++) {
    size_t size = copy_sizes[i];
    if (t->total / 8 < size) break;  // two of them must leave room for others
    if (!measure_copy(t, kind, r, size, sink)) return false;
  }
  return true;
}

static bool measure_copies(conform_target *t, const measure_sink *sink) {
  route h2d = {ROUTE_H2D, NULL, &t->device, &t->device};
  route d2h = {ROUTE_D2H, NULL, &t->device, &t->device};
  route d2d = {ROUTE_D2D, NULL, &t->device, &t->device};
  route p2p = {ROUTE_P2P, NULL, &t->other, &t->device};
  if (!measure_kind(t, "h2d", &h2d, sink) ||
      !measure_kind(t, "d2h", &d2h, sink) ||
      !measure_kind(t, "d2d", &d2d, sink)) {
    return false;
  }
  if (t->count < 2 || t->abi->memory_copy_p2p == NULL) return true;
  return measure_kind(t, "p2p", &p2p, sink);
}

// ---------------------------------------------------------------------------
// Allocations
// ---------------------------------------------------------------------------

static bool time_one(conform_target *t, size_t size, uint64_t *out_take,
                     uint64_t *out_give) {
  void *block = NULL;
  uint64_t begin = tarn__os_now_ns();
  if (!check_take(t, size, &block)) return false;
  uint64_t middle = tarn__os_now_ns();
  if (!check_give(t, block)) return false;
  *out_take = middle - begin;
  *out_give = tarn__os_now_ns() - middle;
  return true;
}

static bool measure_allocation(conform_target *t, size_t size,
                               const measure_sink *sink) {
  uint64_t take[RUNS_MAX];
  uint64_t give[RUNS_MAX];
  size_t count = 0;
  uint64_t begin = tarn__os_now_ns();
  while (goes_on(count, begin)) {
    if (!time_one(t, size, &take[count], &give[count])) return false;
    count++;
  }
  conform_allocation row = {size, median(take, count) / 1e3,
                            median(give, count) / 1e3};
  sink->allocation(sink->context, &row);
  return true;
}

bool conform_measure(conform_target *t, const measure_sink *sink) {
  if (!check_enter(t, &t->device) || !measure_copies(t, sink)) {
    return false;
  }
  for (size_t i = 0; i < COUNT(block_sizes); i++) {
    if (t->total / 8 < block_sizes[i]) break;
    if (!measure_allocation(t, block_sizes[i], sink)) return false;
  }
  return true;
}
