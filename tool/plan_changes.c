// Beginnings and ends of lifetimes, in order.
#include "plan_changes.h"

#include <stdlib.h>

// Ends before beginnings: lifetimes are half-open.
static int compare(const void *a, const void *b) {
  const plan_change *x = a, *y = b;
  if (x->step != y->step) return x->step < y->step ? -1 : 1;
  return (int)x->begins - (int)y->begins;
}

static void add(plan_changes *changes, uint64_t step, uint64_t size,
                bool begins) {
  changes->items[changes->count++] = (plan_change){step, size, begins};
}

static void add_buffer(plan_changes *changes, const tarn_plan_buffer *b) {
  add(changes, b->first, b->size, true);
  for (size_t i = 0; i < b->gap_count; i++) {
    add(changes, b->gaps[i].first, b->size, false);
    add(changes, b->gaps[i].last, b->size, true);
  }
  add(changes, b->last, b->size, false);
}

// In the step that they share, the bytes of the smaller one are there already.
static void add_pair(plan_changes *changes, const tarn_plan_problem *problem,
                     const tarn_plan_pair *pair, const uint64_t *offsets) {
  const tarn_plan_buffer *giver = &problem->buffers[pair->giver];
  const tarn_plan_buffer *taker = &problem->buffers[pair->taker];
  uint64_t both = giver->size < taker->size ? giver->size : taker->size;
  if (offsets[pair->giver] != offsets[pair->taker]) return;
  add(changes, taker->first, both, false);
  add(changes, taker->first + 1, both, true);
}

static size_t buffer_at(const size_t *chosen, size_t index) {
  return chosen != NULL ? chosen[index] : index;
}

plan_changes plan_changes_make(const tarn_plan_problem *problem,
                               const size_t *chosen, size_t count,
                               const uint64_t *offsets) {
  plan_changes changes = {0};
  size_t pairs = offsets != NULL ? problem->pair_count : 0;
  size_t room = 2 * pairs;
  for (size_t i = 0; i < count; i++)
    room += 2 + 2 * problem->buffers[buffer_at(chosen, i)].gap_count;
  changes.items = tool_array(room, sizeof *changes.items);
  for (size_t i = 0; i < count; i++)
    add_buffer(&changes, &problem->buffers[buffer_at(chosen, i)]);
  for (size_t i = 0; i < pairs; i++)
    add_pair(&changes, problem, &problem->pairs[i], offsets);
  qsort(changes.items, changes.count, sizeof *changes.items, compare);
  return changes;
}

void plan_changes_deinit(plan_changes *changes) {
  free(changes->items);
  *changes = (plan_changes){0};
}
