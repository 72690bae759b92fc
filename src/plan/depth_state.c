// Invariants of a state, between calls, for items that are not down:
//   at[i]     is an offset that i may have (aligned, clear of what is fixed);
//   least[i]  is at[i], if i was not passed over;
//   floor[t]  is least[holder[t]], and holder[t] is in t and not down;
//   floor[t] + total[t], and what is fixed above it, are within the capacity.
// A call that returns false leaves the last ones undone: what follows is undo.
//
// Parts on the stack share no items, and each has one at least; so do those
// that are worked on, one within the other, each with an item less. So twice as
// many places as items are enough.
#include "plan/depth.h"

#include <string.h>

enum { FIRST_LOG = 1024 };

typedef tarn__plan_part part;

// --- logs --------------------------------------------------------------------

// A full log grows. Without memory it begins anew; nothing undoes what was
// lost.
static void *grow_log(tarn__plan_state *s, void *log, size_t *count,
                      size_t *room, size_t size) {
  if (*count < *room) return log;
  log = tarn__plan_double(s->memory, log, room, *count + 1, size);
  if (s->memory->failed) *count = 0;
  return log;
}

static void log_item(tarn__plan_state *s, uint32_t item) {
  s->items =
      grow_log(s, s->items, &s->count.items, &s->item_room, sizeof *s->items);
  s->items[s->count.items++] = (tarn__plan_item_change){
      item, s->lifter[item], s->at[item], s->least[item]};
}

static void log_floor(tarn__plan_state *s, uint32_t section) {
  s->floors = grow_log(s, s->floors, &s->count.floors, &s->floor_room,
                       sizeof *s->floors);
  s->floors[s->count.floors++] =
      (tarn__plan_floor_change){section, s->holder[section], s->floor[section]};
}

void tarn__plan_state_undo(tarn__plan_state *s, tarn__plan_mark mark) {
  while (s->count.items > mark.items) {
    const tarn__plan_item_change *was = &s->items[--s->count.items];
    s->at[was->item] = was->at;
    s->least[was->item] = was->least;
    s->lifter[was->item] = was->lifter;
  }
  while (s->count.floors > mark.floors) {
    const tarn__plan_floor_change *was = &s->floors[--s->count.floors];
    s->floor[was->section] = was->floor;
    s->holder[was->section] = was->holder;
  }
  while (s->count.saved > mark.saved) {
    const tarn__plan_saved_rank *was = &s->saved[--s->count.saved];
    s->ranks[was->item] = was->rank;
  }
  s->count.parts = mark.parts;
}

// --- keys --------------------------------------------------------------------

// Counts |item| into the key, or out of it; |by|: 1 or -1.
static void count_key(const tarn__plan_state *s, uint32_t item, uint64_t by,
                      tarn__plan_key *key) {
  tarn__plan_key own = tarn__plan_key_of(
      2 * (uint64_t)item + (s->lifter[item] != TARN__PLAN_PLACED), s->at[item]);
  key->low += by * own.low;
  key->high += by * own.high;
}

// --- floors ------------------------------------------------------------------

static bool fits(const tarn__plan_state *s, uint32_t section) {
  uint64_t floor = s->floor[section];
  uint64_t need = s->total[section];
  if (need == 0) return true;
  if (s->near->any_fixed) {
    need += tarn__plan_fixed_above(s->near, section, floor);
  }
  return floor <= s->capacity && need <= s->capacity - floor;
}

// All others of a section lie above its lowest.
uint32_t tarn__plan_state_rivals(const tarn__plan_state *s, uint32_t section,
                                 uint32_t enough) {
  const uint32_t *present = s->near->present + s->near->begin[section];
  uint32_t count = s->near->begin[section + 1] - s->near->begin[section];
  uint64_t need = s->total[section];
  if (s->near->any_fixed) {
    need += tarn__plan_fixed_above(s->near, section, s->floor[section]);
  }
  uint64_t highest = s->capacity - need;
  uint32_t rivals = 0;
  for (uint32_t i = 0; i < count && rivals < enough; i++) {
    if (s->least[present[i]] <= highest) rivals++;
  }
  return rivals;
}

// Floors only rise: an item as low as the floor was is the lowest.
static void find_floor(tarn__plan_state *s, uint32_t section) {
  const uint32_t *present = s->near->present + s->near->begin[section];
  uint32_t count = s->near->begin[section + 1] - s->near->begin[section];
  uint64_t floor = TARN__PLAN_DOWN;
  uint64_t enough = s->floor[section];
  uint32_t holder = present[0];
  for (uint32_t i = 0; i < count; i++) {
    uint64_t least = s->least[present[i]];
    if (least >= floor) continue;
    holder = present[i];
    floor = least;
    if (floor <= enough) break;
  }
  s->floor[section] = floor;
  s->holder[section] = holder;
}

// After a change of |item|: false if its sections show that it cannot be.
static bool refresh(tarn__plan_state *s, uint32_t item) {
  TARN__PLAN_EACH_SECTION (s->in, item, piece, t) {
    if (s->holder[t] != item) continue;
    log_floor(s, t);
    find_floor(s, t);
    if (!fits(s, t)) return false;
  }
  return true;
}

// --- up and down -------------------------------------------------------------

// Counts |item| among what is not down, or no longer; |by|: 1 or -1. True: a
// border that it crossed is crossed by nothing any more.
static bool count_item(tarn__plan_state *s, uint32_t item, uint64_t by) {
  const tarn__plan_item *it = &s->in->items[item];
  bool cuts = false;
  TARN__PLAN_EACH_SECTION (s->in, item, piece, t) {
    s->total[t] += by * piece->size;
  }
  for (uint32_t t = it->first + 1; t < it->last; t++) {
    s->crossing[t] += (uint32_t)by;
    cuts |= s->crossing[t] == 0;
  }
  return cuts;
}

// False: it does not fit there.
static bool raise(tarn__plan_state *s, uint32_t item, uint64_t from,
                  tarn__plan_key *key) {
  log_item(s, item);
  count_key(s, item, UINT64_MAX, key);
  s->at[item] = s->least[item] = tarn__plan_settle(s->near, item, from);
  s->lifter[item] = TARN__PLAN_PLACED;
  count_key(s, item, 1, key);
  return tarn__plan_ends_within(s->in, item, s->at[item], s->capacity);
}

// An item that was passed over must be lifted by one below its end, of which
// |item| is the lowest. False: nothing can lift it.
static bool can_be_lifted(const tarn__plan_state *s, uint32_t item,
                          uint32_t edge, bool *narrows) {
  uint32_t other = s->near->item[edge];
  if (s->lifter[other] == TARN__PLAN_PLACED) return true;
  if (s->at[item] >= s->at[other] + tarn__plan_below(s->near, edge)) {
    *narrows = true;
  }
  return s->at[item] < s->at[other] + s->in->items[other].size;
}

bool tarn__plan_state_put_down(tarn__plan_state *s, uint32_t item,
                               tarn__plan_key *key,
                               tarn__plan_effect *out_effect) {
  const tarn__plan_neighbours *near = s->near;
  size_t first = s->count.items;
  *out_effect = (tarn__plan_effect){0};
  log_item(s, item);
  count_key(s, item, UINT64_MAX, key);
  s->least[item] = TARN__PLAN_DOWN;
  out_effect->cuts = count_item(s, item, UINT64_MAX);
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    uint64_t top = s->at[item] + tarn__plan_above(near, item, e);
    if (s->at[other] >= top || s->least[other] == TARN__PLAN_DOWN) continue;
    if (!can_be_lifted(s, item, e, &out_effect->narrows)) return false;
    if (!raise(s, other, top, key)) return false;
  }
  for (size_t i = first; i < s->count.items; i++) {
    if (!refresh(s, s->items[i].item)) return false;
  }
  return true;
}

void tarn__plan_state_take_up(tarn__plan_state *s, uint32_t item) {
  (void)count_item(s, item, 1);
}

// --- what was passed over ----------------------------------------------------

bool tarn__plan_state_is_stale(const tarn__plan_state *s, uint32_t item) {
  uint32_t edge = s->lifter[item];
  uint64_t least = s->least[s->near->item[edge]];
  if (least == TARN__PLAN_DOWN) return true;
  uint64_t from = least + tarn__plan_below(s->near, edge);
  return tarn__plan_settle(s->near, item, from) != s->least[item];
}

bool tarn__plan_state_lift(tarn__plan_state *s, uint32_t item) {
  const tarn__plan_neighbours *near = s->near;
  uint64_t best = UINT64_MAX;
  uint32_t lifter = 0;
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint64_t least = s->least[near->item[e]];
    if (least == TARN__PLAN_DOWN) continue;
    if (least >= s->at[item] + tarn__plan_above(near, item, e)) continue;
    uint64_t top = least + tarn__plan_below(near, e);
    if (top >= best) continue;
    best = top;
    lifter = e;
  }
  if (best == UINT64_MAX) return false;
  log_item(s, item);
  s->least[item] = tarn__plan_settle(s->near, item, best);
  s->lifter[item] = lifter;
  return tarn__plan_ends_within(s->in, item, s->least[item], s->capacity) &&
         refresh(s, item);
}

bool tarn__plan_state_pass(tarn__plan_state *s, uint32_t item,
                           tarn__plan_key *key) {
  count_key(s, item, UINT64_MAX, key);
  bool lifts = tarn__plan_state_lift(s, item);
  if (lifts) count_key(s, item, 1, key);
  return lifts;
}

// --- cutting a part up -------------------------------------------------------

static void save_ranks(tarn__plan_state *s, uint32_t begin, uint32_t end) {
  s->saved = tarn__plan_grow(s->memory, s->saved, &s->saved_room,
                             s->count.saved + (end - begin), sizeof *s->saved);
  if (s->memory->failed) return;
  for (uint32_t i = begin; i < end; i++) {
    uint32_t item = s->left[i];
    s->saved[s->count.saved++] = (tarn__plan_saved_rank){item, s->ranks[item]};
  }
}

static tarn__plan_key key_of(const tarn__plan_state *s, uint32_t begin,
                             uint32_t end) {
  tarn__plan_key sum = {0};
  for (uint32_t i = begin; i < end; i++)
    count_key(s, s->left[i], 1, &sum);
  return sum;
}

// Numbers sections by where nothing crosses; counts items by part.
static uint32_t number_parts(tarn__plan_state *s, uint32_t begin,
                             uint32_t end) {
  const tarn__plan_item *items = s->in->items;
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
  for (uint32_t i = begin; i < end; i++) {
    const tarn__plan_item *item = &items[s->left[i]];
    if (first > item->first) first = item->first;
    if (last < item->last) last = item->last;
  }
  uint32_t count = 0;
  for (uint32_t t = first; t < last; t++) {
    if (t == first || s->crossing[t] == 0) s->part_count[count++] = 0;
    s->part_of[t] = count - 1;
  }
  for (uint32_t i = begin; i < end; i++) {
    s->part_count[s->part_of[items[s->left[i]].first]]++;
  }
  return count;
}

// Moves items of one part beside each other; counts become ends.
static void group_items(tarn__plan_state *s, uint32_t begin, uint32_t end,
                        uint32_t count) {
  const tarn__plan_item *items = s->in->items;
  uint32_t at = begin;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t size = s->part_count[i];
    s->part_count[i] = at;
    at += size;
  }
  memcpy(s->moved, s->left + begin, (end - begin) * sizeof *s->moved);
  for (uint32_t i = 0; i < end - begin; i++) {
    uint32_t item = s->moved[i];
    s->left[s->part_count[s->part_of[items[item].first]]++] = item;
  }
}

// Above |first| smaller ones are nearer to the top.
static void stack_by_size(tarn__plan_state *s, size_t first, part added) {
  size_t to = s->count.parts++;
  uint32_t size = added.end - added.begin;
  while (to > first && s->parts[to - 1].end - s->parts[to - 1].begin <= size) {
    s->parts[to] = s->parts[to - 1];
    to--;
  }
  s->parts[to] = added;
}

void tarn__plan_state_cut(tarn__plan_state *s, uint32_t begin, uint32_t end,
                          bool always_new) {
  uint32_t count = number_parts(s, begin, end);
  size_t first = s->count.parts;
  group_items(s, begin, end, count);
  bool is_new = always_new || s->part_count[0] != end;
  if (is_new) save_ranks(s, begin, end);
  uint32_t at = begin;
  for (uint32_t i = 0; i < count; i++) {
    uint32_t stop = s->part_count[i];
    if (stop == at) continue;
    stack_by_size(s, first, (part){key_of(s, at, stop), at, stop, is_new});
    at = stop;
  }
}

tarn__plan_part tarn__plan_state_pop(tarn__plan_state *s,
                                     const tarn__plan_run *run) {
  part top = s->parts[--s->count.parts];
  if (top.is_new && top.end - top.begin > 1) {
    tarn__plan_rank(s->in, run, s->total, s->left + top.begin,
                    top.end - top.begin, s->keys, s->ranks);
  }
  return top;
}

// --- the beginning -----------------------------------------------------------

static bool begin_sections(tarn__plan_state *s) {
  size_t count = s->in->section_count + 1;
  uint32_t left = 0;
  memset(s->total, 0, count * sizeof *s->total);
  memset(s->floor, 0, count * sizeof *s->floor);
  memset(s->crossing, 0, count * sizeof *s->crossing);
  for (uint32_t i = 0; i < s->in->item_count; i++) {
    if (s->in->items[i].fixed) continue;
    (void)count_item(s, i, 1);
    s->left[left++] = i;
  }
  if (left > 0) tarn__plan_state_cut(s, 0, left, true);
  bool all = true;
  for (uint32_t t = 0; t < s->in->section_count; t++) {
    find_floor(s, t);
    if (!fits(s, t)) all = false;
  }
  return all;
}

bool tarn__plan_state_begin(tarn__plan_state *s, uint64_t capacity) {
  s->capacity = capacity;
  s->count = (tarn__plan_mark){0};
  memset(s->lifter, 0xff, s->in->item_count * sizeof *s->lifter);
  bool placed = tarn__plan_lay_out(s->near, capacity, s->at, s->least);
  bool fit = begin_sections(s);
  return placed && fit && !s->near->fixed_collide;
}

tarn_status tarn__plan_state_make(const tarn__plan_neighbours *near,
                                  tarn__plan_memory *memory,
                                  tarn__plan_state *s) {
  const tarn__plan_instance *in = near->in;
  size_t items = in->item_count + 1;
  size_t sections = in->section_count + 1;
  *s = (tarn__plan_state){.in = in,
                          .near = near,
                          .memory = memory,
                          .item_room = FIRST_LOG,
                          .floor_room = FIRST_LOG,
                          .saved_room = items};
  s->at = tarn__plan_array(memory, items, sizeof *s->at);
  s->least = tarn__plan_array(memory, items, sizeof *s->least);
  s->lifter = tarn__plan_array(memory, items, sizeof *s->lifter);
  s->total = tarn__plan_array(memory, sections, sizeof *s->total);
  s->floor = tarn__plan_array(memory, sections, sizeof *s->floor);
  s->holder = tarn__plan_array(memory, sections, sizeof *s->holder);
  s->crossing = tarn__plan_array(memory, sections, sizeof *s->crossing);
  s->ranks = tarn__plan_array(memory, items, sizeof *s->ranks);
  s->left = tarn__plan_array(memory, items, sizeof *s->left);
  s->parts = tarn__plan_array(memory, 2 * items, sizeof *s->parts);
  s->moved = tarn__plan_array(memory, items, sizeof *s->moved);
  s->part_of = tarn__plan_array(memory, sections, sizeof *s->part_of);
  s->part_count = tarn__plan_array(memory, sections, sizeof *s->part_count);
  s->keys = tarn__plan_array(memory, items, sizeof *s->keys);
  s->saved = tarn__plan_array(memory, items, sizeof *s->saved);
  s->items = tarn__plan_array(memory, FIRST_LOG, sizeof *s->items);
  s->floors = tarn__plan_array(memory, FIRST_LOG, sizeof *s->floors);
  return tarn__plan_memory_status(memory);
}
