// Parts on the stack share no items, and each of them has one at least; so do
// those that are worked on, one within the other, each with an item less. So
// twice as many places as items are enough.
#include "plan/parts.h"

#include <string.h>

#include "base/hostmem.h"

typedef tarn__plan_parts parts;
typedef tarn__plan_part part;

// --- memory ------------------------------------------------------------------

tarn_status tarn__plan_parts_make(const tarn__plan_state *state,
                                  tarn__plan_parts *out_parts) {
  parts *p = out_parts;
  size_t items = state->in->item_count + 1;
  size_t sections = state->in->section_count + 1;
  *p = (parts){.state = state, .saved_room = items};
  p->items = tarn__host_array(items, sizeof *p->items);
  p->ranks = tarn__host_array(items, sizeof *p->ranks);
  p->stack = tarn__host_array(2 * items, sizeof *p->stack);
  p->saved = tarn__host_array(items, sizeof *p->saved);
  p->moved = tarn__host_array(items, sizeof *p->moved);
  p->part_of = tarn__host_array(sections, sizeof *p->part_of);
  p->part_count = tarn__host_array(sections, sizeof *p->part_count);
  p->keys = tarn__host_array(items, sizeof *p->keys);
  bool made = p->items != NULL && p->ranks != NULL && p->stack != NULL &&
              p->saved != NULL && p->moved != NULL && p->part_of != NULL &&
              p->part_count != NULL && p->keys != NULL;
  if (made) return TARN_OK;
  tarn__plan_parts_free(p);
  return TARN_E_NOMEM;
}

void tarn__plan_parts_free(tarn__plan_parts *p) {
  if (p->state == NULL) return;
  size_t items = p->state->in->item_count + 1;
  size_t sections = p->state->in->section_count + 1;
  tarn__host_free_array(p->items, items, sizeof *p->items);
  tarn__host_free_array(p->ranks, items, sizeof *p->ranks);
  tarn__host_free_array(p->stack, 2 * items, sizeof *p->stack);
  tarn__host_free_array(p->saved, p->saved_room, sizeof *p->saved);
  tarn__host_free_array(p->moved, items, sizeof *p->moved);
  tarn__host_free_array(p->part_of, sections, sizeof *p->part_of);
  tarn__host_free_array(p->part_count, sections, sizeof *p->part_count);
  tarn__host_free_array(p->keys, items, sizeof *p->keys);
  *p = (parts){0};
}

static bool save_ranks(parts *p, uint32_t begin, uint32_t end) {
  size_t need = p->saved_count + (end - begin);
  if (need > p->saved_room) {
    tarn__plan_saved_rank *larger =
        tarn__host_resize(p->saved, p->saved_room, 2 * need, sizeof *p->saved);
    if (larger == NULL) return false;
    p->saved = larger;
    p->saved_room = 2 * need;
  }
  for (uint32_t i = begin; i < end; i++) {
    uint32_t item = p->items[i];
    p->saved[p->saved_count++] = (tarn__plan_saved_rank){item, p->ranks[item]};
  }
  return true;
}

// --- cutting up --------------------------------------------------------------

static tarn__plan_key key_of(const parts *p, uint32_t begin, uint32_t end) {
  tarn__plan_key sum = {0};
  for (uint32_t i = begin; i < end; i++) {
    tarn__plan_key own = tarn__plan_state_key(p->state, p->items[i]);
    sum.low += own.low;
    sum.high += own.high;
  }
  return sum;
}

// Numbers sections by where nothing crosses; counts items by part.
static uint32_t number_parts(parts *p, uint32_t begin, uint32_t end) {
  const tarn__plan_item *items = p->state->in->items;
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
  for (uint32_t i = begin; i < end; i++) {
    const tarn__plan_item *item = &items[p->items[i]];
    if (first > item->first) first = item->first;
    if (last < item->last) last = item->last;
  }
  uint32_t count = 0;
  for (uint32_t t = first; t < last; t++) {
    if (t == first || p->state->crossing[t] == 0) p->part_count[count++] = 0;
    p->part_of[t] = count - 1;
  }
  for (uint32_t i = begin; i < end; i++) {
    p->part_count[p->part_of[items[p->items[i]].first]]++;
  }
  return count;
}

// Moves items of one part beside each other; counts become ends.
static void gather(parts *p, uint32_t begin, uint32_t end, uint32_t count) {
  const tarn__plan_item *items = p->state->in->items;
  uint32_t at = begin;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t size = p->part_count[i];
    p->part_count[i] = at;
    at += size;
  }
  memcpy(p->moved, p->items + begin, (end - begin) * sizeof *p->moved);
  for (uint32_t i = 0; i < end - begin; i++) {
    uint32_t item = p->moved[i];
    p->items[p->part_count[p->part_of[items[item].first]]++] = item;
  }
}

// Above |first| smaller ones are nearer to the top.
static void stack_by_size(parts *p, size_t first, part added) {
  size_t to = p->count++;
  uint32_t size = added.end - added.begin;
  while (to > first && p->stack[to - 1].end - p->stack[to - 1].begin <= size) {
    p->stack[to] = p->stack[to - 1];
    to--;
  }
  p->stack[to] = added;
}

static void cut(parts *p, uint32_t begin, uint32_t end, bool always_new) {
  uint32_t count = number_parts(p, begin, end);
  size_t first = p->count;
  gather(p, begin, end, count);
  bool is_new = always_new || p->part_count[0] != end;
  if (is_new && !save_ranks(p, begin, end)) p->no_memory = true;
  uint32_t at = begin;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t stop = p->part_count[i];
    if (stop == at) continue;
    stack_by_size(p, first, (part){key_of(p, at, stop), at, stop, is_new});
    at = stop;
  }
}

// --- the stack ---------------------------------------------------------------

void tarn__plan_parts_begin(tarn__plan_parts *p) {
  const tarn__plan_state *s = p->state;
  uint32_t count = 0;
  p->count = 0;
  p->saved_count = 0;
  p->no_memory = false;
  for (uint32_t i = 0; i < s->in->item_count; i++) {
    if (!s->allowed.fixed[i]) p->items[count++] = i;
  }
  if (count > 0) cut(p, 0, count, true);
}

void tarn__plan_parts_cut(tarn__plan_parts *p, uint32_t begin, uint32_t end) {
  cut(p, begin, end, false);
}

void tarn__plan_parts_push(tarn__plan_parts *p, tarn__plan_part added) {
  p->stack[p->count++] = added;
}

tarn__plan_part tarn__plan_parts_pop(tarn__plan_parts *p,
                                     const tarn__plan_run *run) {
  part top = p->stack[--p->count];
  if (top.is_new && top.end - top.begin > 1) {
    tarn__plan_rank(p->state->in, run, p->state->total, p->items + top.begin,
                    top.end - top.begin, p->keys, p->ranks);
  }
  return top;
}

void tarn__plan_parts_undo(tarn__plan_parts *p, tarn__plan_parts_mark mark) {
  p->count = mark.count;
  while (p->saved_count > mark.saved_count) {
    const tarn__plan_saved_rank *was = &p->saved[--p->saved_count];
    p->ranks[was->item] = was->rank;
  }
}
