// Node 1 is the root; the two below node i are 2 i and 2 i + 1. What is added
// to all runs of a node stays at the node.
//
// Invariant: the most of a node's runs is most[node] + added[node], and
// most[node] is the larger of those two sums below it.
#include "plan/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"

static int by_value(const void *x, const void *y) {
  uint64_t a = *(const uint64_t *)x;
  uint64_t b = *(const uint64_t *)y;
  return (a > b) - (a < b);
}

static size_t list_steps(const tarn_plan_problem *problem, uint64_t *out) {
  size_t count = 0;
  for (size_t i = 0; i < problem->count; i++) {
    const tarn_plan_buffer *b = &problem->buffers[i];
    out[count++] = b->first;
    out[count++] = b->last;
    for (size_t g = 0; g < b->gap_count; g++) {
      out[count++] = b->gaps[g].first;
      out[count++] = b->gaps[g].last;
    }
  }
  return count;
}

static void sort_steps(tarn__plan_sums *sums, size_t count) {
  qsort(sums->steps, count, sizeof *sums->steps, by_value);
  for (size_t i = 0; i < count; i++) {
    if (i > 0 && sums->steps[i] == sums->steps[sums->count - 1]) continue;
    sums->steps[sums->count++] = sums->steps[i];
  }
}

tarn_status tarn__plan_sums_make(const tarn_plan_problem *problem,
                                 tarn__plan_sums *out_sums) {
  *out_sums = (tarn__plan_sums){.room = 1};
  for (size_t i = 0; i < problem->count; i++) {
    out_sums->room += 2 + 2 * problem->buffers[i].gap_count;
  }
  size_t room = out_sums->room;
  out_sums->steps = tarn__host_array(room, sizeof *out_sums->steps);
  if (out_sums->steps == NULL) return TARN_E_NOMEM;
  sort_steps(out_sums, list_steps(problem, out_sums->steps));
  size_t nodes = 2;
  while (nodes < 2 * out_sums->count)
    nodes *= 2;
  out_sums->nodes = nodes;
  out_sums->most = tarn__host_array(nodes, sizeof *out_sums->most);
  out_sums->added = tarn__host_array(nodes, sizeof *out_sums->added);
  bool made = out_sums->most != NULL && out_sums->added != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

void tarn__plan_sums_free(tarn__plan_sums *sums) {
  tarn__host_free_array(sums->steps, sums->room, sizeof *sums->steps);
  tarn__host_free_array(sums->most, sums->nodes, sizeof *sums->most);
  tarn__host_free_array(sums->added, sums->nodes, sizeof *sums->added);
  *sums = (tarn__plan_sums){0};
}

void tarn__plan_sums_clear(tarn__plan_sums *sums) {
  memset(sums->most, 0, sums->nodes * sizeof *sums->most);
  memset(sums->added, 0, sums->nodes * sizeof *sums->added);
}

// The run that begins with |step|.
static size_t run_of(const tarn__plan_sums *sums, uint64_t step) {
  size_t low = 0;
  size_t high = sums->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (sums->steps[middle] < step) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Runs that a node stands for, and those in question.
typedef struct range {
  size_t node;
  size_t from;
  size_t to;
  size_t first;
  size_t last;
} range;

static range half_of(const range *r, bool upper) {
  size_t middle = r->from + (r->to - r->from) / 2;
  return (range){.node = 2 * r->node + upper,
                 .from = upper ? middle : r->from,
                 .to = upper ? r->to : middle,
                 .first = r->first,
                 .last = r->last};
}

static uint64_t max_of(uint64_t a, uint64_t b) {
  return a > b ? a : b;
}

static void add(tarn__plan_sums *sums, range r, uint64_t size) {
  if (r.last <= r.from || r.to <= r.first) return;
  if (r.first <= r.from && r.to <= r.last) {
    sums->added[r.node] += size;
    return;
  }
  add(sums, half_of(&r, false), size);
  add(sums, half_of(&r, true), size);
  size_t below = 2 * r.node;
  sums->most[r.node] = max_of(sums->most[below] + sums->added[below],
                              sums->most[below + 1] + sums->added[below + 1]);
}

static uint64_t most(const tarn__plan_sums *sums, range r) {
  if (r.first <= r.from && r.to <= r.last) {
    return sums->most[r.node] + sums->added[r.node];
  }
  size_t middle = r.from + (r.to - r.from) / 2;
  uint64_t value = 0;
  if (r.first < middle) value = most(sums, half_of(&r, false));
  if (r.last > middle) value = max_of(value, most(sums, half_of(&r, true)));
  return value + sums->added[r.node];
}

static range whole(const tarn__plan_sums *sums, uint64_t first, uint64_t last) {
  return (range){.node = 1,
                 .to = sums->nodes / 2,
                 .first = run_of(sums, first),
                 .last = run_of(sums, last)};
}

void tarn__plan_sums_add(tarn__plan_sums *sums, uint64_t first, uint64_t last,
                         uint64_t size) {
  if (first < last) add(sums, whole(sums, first, last), size);
}

uint64_t tarn__plan_sums_most(const tarn__plan_sums *sums, uint64_t first,
                              uint64_t last) {
  return first < last ? most(sums, whole(sums, first, last)) : 0;
}
