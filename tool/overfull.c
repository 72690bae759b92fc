// Chooses the blocks to leave out where more is needed than fits.
//
// Time is cut at each birth and death. For each span between two cuts the
// excess of its live bytes over the target is known. As long as a span has an
// excess, one of the blocks that live in the worst span is taken out: the block
// that removes most excess over all spans, which is about the least of
//
//     its size x the stretches with too much that it lives in
//     what is too much in those, all together
//
// and of equals the smallest. If that takes long, the rest is done in one sweep
// over time. Then buffers that later ones made needless are put back.
#include "overfull.h"

#include <stdlib.h>
#include <string.h>

#include "kit/tool.h"

enum { MOST_ROUNDS = 256 };
static const uint64_t most_work = UINT64_C(200) << 20;  // additions

typedef struct fitting {
  const tarn_plan_problem *problem;
  uint64_t target;
  bool *moved;     // by buffer; the caller's
  uint32_t *from;  // by buffer: the stretches [from, to)
  uint32_t *to;
  uint64_t *live;  // by span
  double *excess;  // sums of what is too much, up to a span
  uint32_t *over;  // and how many stretches have too much
  size_t stretches;
} fitting;

// ---------------------------------------------------------------------------
// Stretches
// ---------------------------------------------------------------------------

static size_t drop_repeated(uint64_t *sorted, size_t count) {
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (kept == 0 || sorted[i] != sorted[kept - 1]) sorted[kept++] = sorted[i];
  }
  return kept;
}

static uint32_t find_cut(const uint64_t *cuts, size_t count, uint64_t step) {
  const uint64_t *found =
      bsearch(&step, cuts, count, sizeof step, tool_compare_uint64);
  return (uint32_t)(found - cuts);
}

static void cut_time(fitting *f) {
  size_t count = f->problem->count;
  const tarn_plan_buffer *buffers = f->problem->buffers;
  uint64_t *cuts = tool_array(2 * count + 1, sizeof *cuts);
  for (size_t i = 0; i < count; i++) {
    cuts[2 * i] = buffers[i].first;
    cuts[2 * i + 1] = buffers[i].last;
  }
  qsort(cuts, 2 * count, sizeof *cuts, tool_compare_uint64);
  f->stretches = drop_repeated(cuts, 2 * count);
  for (size_t i = 0; i < count; i++) {
    f->from[i] = find_cut(cuts, f->stretches, buffers[i].first);
    f->to[i] = find_cut(cuts, f->stretches, buffers[i].last);
  }
  free(cuts);
}

// Differences first: sums that wrap come back.
static void sum_live(fitting *f) {
  memset(f->live, 0, (f->stretches + 1) * sizeof *f->live);
  for (size_t i = 0; i < f->problem->count; i++) {
    if (f->moved[i]) continue;
    f->live[f->from[i]] += f->problem->buffers[i].size;
    f->live[f->to[i]] -= f->problem->buffers[i].size;
  }
  for (size_t i = 1; i < f->stretches; i++)
    f->live[i] += f->live[i - 1];
}

static void sum_excess(fitting *f) {
  f->excess[0] = 0;
  f->over[0] = 0;
  for (size_t i = 0; i < f->stretches; i++) {
    bool over = f->live[i] > f->target;
    double much = over ? (double)(f->live[i] - f->target) : 0;
    f->excess[i + 1] = f->excess[i] + much;
    f->over[i + 1] = f->over[i] + over;
  }
}

static size_t worst_of(const fitting *f) {
  size_t worst = 0;
  for (size_t i = 1; i < f->stretches; i++) {
    if (f->live[i] > f->live[worst]) worst = i;
  }
  return worst;
}

// ---------------------------------------------------------------------------
// Taking out
// ---------------------------------------------------------------------------

typedef struct candidate {
  double gain;
  uint64_t size;
  size_t buffer;
} candidate;

static int most_gain_first(const void *x, const void *y) {
  const candidate *a = x, *b = y;
  if (a->gain != b->gain) return a->gain < b->gain ? 1 : -1;
  if (a->size != b->size) return a->size < b->size ? -1 : 1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static double gain_of(const fitting *f, size_t buffer) {
  uint32_t from = f->from[buffer], to = f->to[buffer];
  double much = f->excess[to] - f->excess[from];
  double most = (double)f->problem->buffers[buffer].size *
                (double)(f->over[to] - f->over[from]);
  return most < much ? most : much;
}

// The buffers that live in the span |worst|.
static size_t find_candidates(const fitting *f, size_t worst, candidate *out) {
  size_t count = 0;
  for (size_t i = 0; i < f->problem->count; i++) {
    if (f->moved[i] || f->from[i] > worst || f->to[i] <= worst) continue;
    out[count++] = (candidate){gain_of(f, i), f->problem->buffers[i].size, i};
  }
  return count;
}

static void take_first(fitting *f, candidate *list, size_t count) {
  size_t best = 0;
  for (size_t i = 1; i < count; i++) {
    if (most_gain_first(&list[i], &list[best]) < 0) best = i;
  }
  f->moved[list[best].buffer] = true;
}

// One by one, up to a limit. False: too much is left.
static bool take_singly(fitting *f, candidate *list) {
  size_t most = (size_t)(most_work / (f->stretches + f->problem->count));
  for (size_t round = 0; round < MOST_ROUNDS && round < most; round++) {
    sum_live(f);
    size_t worst = worst_of(f);
    if (f->live[worst] <= f->target) return true;
    sum_excess(f);
    take_first(f, list, find_candidates(f, worst, list));
  }
  return false;
}

// --- in one sweep ----------------------------------------------------------

// The buffers that live at a moment, as a heap: the last to die on top.
typedef struct heap {
  const uint32_t *to;
  uint32_t *items;
  size_t count;
} heap;

static void swap(heap *h, size_t a, size_t b) {
  uint32_t item = h->items[a];
  h->items[a] = h->items[b];
  h->items[b] = item;
}

static bool is_later(const heap *h, size_t a, size_t b) {
  return h->to[h->items[a]] > h->to[h->items[b]];
}

static void heap_push(heap *h, uint32_t item) {
  size_t at = h->count++;
  h->items[at] = item;
  for (; at > 0 && is_later(h, at, (at - 1) / 2); at = (at - 1) / 2)
    swap(h, at, (at - 1) / 2);
}

static uint32_t heap_pop(heap *h) {
  uint32_t top = h->items[0];
  h->items[0] = h->items[--h->count];
  for (size_t at = 0;;) {
    size_t child = 2 * at + 1;
    if (child + 1 < h->count && is_later(h, child + 1, child)) child++;
    if (child >= h->count || !is_later(h, child, at)) return top;
    swap(h, at, child);
    at = child;
  }
}

static int by_birth(const void *x, const void *y) {
  const candidate *a = x, *b = y;
  if (a->gain != b->gain) return a->gain < b->gain ? -1 : 1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

static size_t list_by_birth(const fitting *f, candidate *out) {
  size_t count = 0;
  for (size_t i = 0; i < f->problem->count; i++) {
    if (!f->moved[i]) out[count++] = (candidate){f->from[i], 0, i};
  }
  qsort(out, count, sizeof *out, by_birth);
  return count;
}

// Where too much lives, those are taken out that will live longest.
static void take_in_one_sweep(fitting *f, candidate *list) {
  heap h = {.to = f->to};
  size_t count = list_by_birth(f, list), next = 0;
  uint64_t out = 0;  // of what has been taken out, what would live now
  uint64_t *dies = tool_array(f->stretches + 1, sizeof *dies);
  h.items = tool_array(count + 1, sizeof *h.items);
  for (uint32_t at = 0; at < f->stretches; at++) {
    out -= dies[at];
    for (; next < count && list[next].gain <= at; next++)
      heap_push(&h, (uint32_t)list[next].buffer);
    while (f->live[at] - out > f->target) {
      uint32_t taken = heap_pop(&h);
      uint64_t size = f->problem->buffers[taken].size;
      f->moved[taken] = true;
      out += size;
      dies[f->to[taken]] += size;
    }
  }
  free(h.items);
  free(dies);
}

static void take_out(fitting *f) {
  candidate *list = tool_array(f->problem->count + 1, sizeof *list);
  if (!take_singly(f, list)) {
    sum_live(f);
    take_in_one_sweep(f, list);
  }
  sum_live(f);
  free(list);
}

// ---------------------------------------------------------------------------
// Putting back
// ---------------------------------------------------------------------------

static bool has_room(const fitting *f, size_t buffer) {
  uint64_t size = f->problem->buffers[buffer].size;
  if (size > f->target) return false;
  for (uint32_t i = f->from[buffer]; i < f->to[buffer]; i++) {
    if (f->live[i] > f->target - size) return false;
  }
  return true;
}

static void put_back(fitting *f, size_t buffer) {
  for (uint32_t i = f->from[buffer]; i < f->to[buffer]; i++)
    f->live[i] += f->problem->buffers[buffer].size;
  f->moved[buffer] = false;
}

static int largest_first(const void *x, const void *y) {
  const candidate *a = x, *b = y;
  if (a->size != b->size) return a->size < b->size ? 1 : -1;
  return (a->buffer > b->buffer) - (a->buffer < b->buffer);
}

// The moved buffers, the largest first. Free it.
static candidate *list_moved(const fitting *f, size_t *out_count) {
  candidate *list = tool_array(f->problem->count + 1, sizeof *list);
  size_t count = 0;
  for (size_t i = 0; i < f->problem->count; i++) {
    if (!f->moved[i]) continue;
    list[count++] = (candidate){0, f->problem->buffers[i].size, i};
  }
  qsort(list, count, sizeof *list, largest_first);
  *out_count = count;
  return list;
}

static void put_back_needless(fitting *f) {
  size_t count = 0;
  candidate *list = list_moved(f, &count);
  for (size_t i = 0; i < count && i * f->stretches < most_work; i++) {
    if (has_room(f, list[i].buffer)) put_back(f, list[i].buffer);
  }
  free(list);
}

// ---------------------------------------------------------------------------
// The whole
// ---------------------------------------------------------------------------

static fitting prepare(const tarn_plan_problem *problem, uint64_t target,
                       bool *moved) {
  size_t count = problem->count;
  fitting f = {.problem = problem, .target = target, .moved = moved};
  f.from = tool_array(count + 1, sizeof *f.from);
  f.to = tool_array(count + 1, sizeof *f.to);
  cut_time(&f);
  f.live = tool_array(f.stretches + 1, sizeof *f.live);
  f.excess = tool_array(f.stretches + 1, sizeof *f.excess);
  f.over = tool_array(f.stretches + 1, sizeof *f.over);
  return f;
}

static void discard(const fitting *f) {
  free(f->from);
  free(f->to);
  free(f->live);
  free(f->excess);
  free(f->over);
}

void overfull_choose(const tarn_plan_problem *problem, uint64_t target,
                     bool *moved) {
  memset(moved, 0, problem->count * sizeof *moved);
  if (problem->count == 0) return;
  fitting f = prepare(problem, target, moved);
  take_out(&f);
  put_back_needless(&f);
  discard(&f);
}
