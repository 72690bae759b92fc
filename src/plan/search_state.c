// Invariants, between calls, for what is not down:
//   at[i]     is an offset that i may have (aligned, clear of what is fixed);
//   least[i]  is at[i], if i was not passed over;
//   floor[t]  is least[holder[t]], and holder[t] is in t and not down;
//   floor[t] + total[t], and what is fixed above it, are within the capacity.
// A call that returns false leaves the last ones undone: what follows is undo.
#include "plan/search_state.h"

#include <string.h>

#include "base/hostmem.h"

enum { FIRST_LOG = 1024 };

// --- memory ------------------------------------------------------------------

static tarn_status make_items(tarn__plan_state *s) {
  size_t count = s->in->item_count + 1;
  s->at = tarn__host_array(count, sizeof *s->at);
  s->least = tarn__host_array(count, sizeof *s->least);
  s->lifter = tarn__host_array(count, sizeof *s->lifter);
  s->items = tarn__host_array(FIRST_LOG, sizeof *s->items);
  if (s->items != NULL) s->item_room = FIRST_LOG;
  bool made = s->at != NULL && s->least != NULL && s->lifter != NULL &&
              s->items != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

static tarn_status make_sections(tarn__plan_state *s) {
  size_t count = s->in->section_count + 1;
  s->total = tarn__host_array(count, sizeof *s->total);
  s->floor = tarn__host_array(count, sizeof *s->floor);
  s->holder = tarn__host_array(count, sizeof *s->holder);
  s->crossing = tarn__host_array(count, sizeof *s->crossing);
  s->floors = tarn__host_array(FIRST_LOG, sizeof *s->floors);
  if (s->floors != NULL) s->floor_room = FIRST_LOG;
  bool made = s->total != NULL && s->floor != NULL && s->holder != NULL &&
              s->crossing != NULL && s->floors != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

tarn_status tarn__plan_state_make(const tarn__plan_instance *instance,
                                  size_t most, tarn__plan_state *out_state) {
  *out_state = (tarn__plan_state){.in = instance};
  tarn_status status =
      tarn__plan_neighbours_make(instance, most, &out_state->near);
  if (status == TARN_OK) {
    status = tarn__plan_allowed_make(&out_state->near, &out_state->allowed);
  }
  if (status == TARN_OK) status = make_items(out_state);
  if (status == TARN_OK) status = make_sections(out_state);
  if (status != TARN_OK) tarn__plan_state_free(out_state);
  return status;
}

void tarn__plan_state_free(tarn__plan_state *s) {
  if (s->in == NULL) return;
  size_t items = s->in->item_count + 1;
  size_t sections = s->in->section_count + 1;
  tarn__plan_allowed_free(&s->allowed);
  tarn__host_free_array(s->at, items, sizeof *s->at);
  tarn__host_free_array(s->least, items, sizeof *s->least);
  tarn__host_free_array(s->lifter, items, sizeof *s->lifter);
  tarn__host_free_array(s->total, sections, sizeof *s->total);
  tarn__host_free_array(s->floor, sections, sizeof *s->floor);
  tarn__host_free_array(s->holder, sections, sizeof *s->holder);
  tarn__host_free_array(s->crossing, sections, sizeof *s->crossing);
  tarn__host_free_array(s->items, s->item_room, sizeof *s->items);
  tarn__host_free_array(s->floors, s->floor_room, sizeof *s->floors);
  tarn__plan_neighbours_free(&s->near);
  *s = (tarn__plan_state){0};
}

// --- logs --------------------------------------------------------------------

// Without memory the log begins anew; nobody undoes what was lost.
static void log_item(tarn__plan_state *s, uint32_t item) {
  if (s->item_count == s->item_room) {
    tarn__plan_item_change *larger = tarn__host_resize(
        s->items, s->item_room, 2 * s->item_room, sizeof *s->items);
    s->no_memory = s->no_memory || larger == NULL;
    if (larger == NULL) {
      s->item_count = 0;
    } else {
      s->items = larger;
      s->item_room *= 2;
    }
  }
  s->items[s->item_count++] = (tarn__plan_item_change){
      item, s->lifter[item], s->at[item], s->least[item]};
}

static void log_floor(tarn__plan_state *s, uint32_t section) {
  if (s->floor_count == s->floor_room) {
    tarn__plan_floor_change *larger = tarn__host_resize(
        s->floors, s->floor_room, 2 * s->floor_room, sizeof *s->floors);
    s->no_memory = s->no_memory || larger == NULL;
    if (larger == NULL) {
      s->floor_count = 0;
    } else {
      s->floors = larger;
      s->floor_room *= 2;
    }
  }
  s->floors[s->floor_count++] =
      (tarn__plan_floor_change){section, s->holder[section], s->floor[section]};
}

void tarn__plan_state_undo(tarn__plan_state *s, tarn__plan_mark mark) {
  while (s->item_count > mark.items) {
    const tarn__plan_item_change *was = &s->items[--s->item_count];
    s->at[was->item] = was->at;
    s->least[was->item] = was->least;
    s->lifter[was->item] = was->lifter;
  }
  while (s->floor_count > mark.floors) {
    const tarn__plan_floor_change *was = &s->floors[--s->floor_count];
    s->floor[was->section] = was->floor;
    s->holder[was->section] = was->holder;
  }
}

// --- keys --------------------------------------------------------------------

tarn__plan_key tarn__plan_state_key(const tarn__plan_state *s, uint32_t item) {
  uint64_t kind = 2 * (uint64_t)item;
  uint64_t value = s->at[item];
  if (s->lifter[item] != TARN__PLAN_PLACED) kind++;
  uint64_t low = tarn__plan_mix(value + tarn__plan_mix(kind + 1));
  uint64_t high = tarn__plan_mix(low ^ UINT64_C(0x9e3779b97f4a7c15));
  return (tarn__plan_key){low, high};
}

static void leave_key(const tarn__plan_state *s, uint32_t item,
                      tarn__plan_key *key) {
  tarn__plan_key own = tarn__plan_state_key(s, item);
  key->low -= own.low;
  key->high -= own.high;
}

static void enter_key(const tarn__plan_state *s, uint32_t item,
                      tarn__plan_key *key) {
  tarn__plan_key own = tarn__plan_state_key(s, item);
  key->low += own.low;
  key->high += own.high;
}

// --- floors ------------------------------------------------------------------

static bool fits(const tarn__plan_state *s, uint32_t section) {
  uint64_t floor = s->floor[section];
  uint64_t need = s->total[section];
  if (need == 0) return true;
  if (s->allowed.any_fixed) {
    need += tarn__plan_fixed_above(&s->allowed, section, floor);
  }
  return floor <= s->capacity && need <= s->capacity - floor;
}

// The lowest of a section has all of the rest above it.
uint32_t tarn__plan_state_rivals(const tarn__plan_state *s, uint32_t section,
                                 uint32_t enough) {
  const uint32_t *present = s->near.present + s->near.begin[section];
  uint32_t count = s->near.begin[section + 1] - s->near.begin[section];
  uint64_t need = s->total[section];
  if (s->allowed.any_fixed) {
    need += tarn__plan_fixed_above(&s->allowed, section, s->floor[section]);
  }
  uint64_t highest = s->capacity - need;
  uint32_t rivals = 0;
  for (uint32_t i = 0; i < count && rivals < enough; i++) {
    if (s->least[present[i]] <= highest) rivals++;
  }
  return rivals;
}

// It has not become lower: what is as low as before is the lowest.
static void find_floor(tarn__plan_state *s, uint32_t section) {
  const uint32_t *present = s->near.present + s->near.begin[section];
  uint32_t count = s->near.begin[section + 1] - s->near.begin[section];
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
  const tarn__plan_item *it = &s->in->items[item];
  const tarn__plan_piece *pieces = tarn__plan_pieces(s->in, it);
  for (uint32_t p = 0; p < it->piece_count; p++) {
    for (uint32_t t = pieces[p].first; t < pieces[p].last; t++) {
      if (s->holder[t] != item) continue;
      log_floor(s, t);
      find_floor(s, t);
      if (!fits(s, t)) return false;
    }
  }
  return true;
}

// --- up and down -------------------------------------------------------------

static void take_out(tarn__plan_state *s, uint32_t item, bool *cuts) {
  const tarn__plan_item *it = &s->in->items[item];
  const tarn__plan_piece *pieces = tarn__plan_pieces(s->in, it);
  for (uint32_t p = 0; p < it->piece_count; p++) {
    for (uint32_t t = pieces[p].first; t < pieces[p].last; t++) {
      s->total[t] -= pieces[p].size;
    }
  }
  for (uint32_t t = it->first + 1; t < it->last; t++) {
    if (--s->crossing[t] == 0) *cuts = true;
  }
}

static void put_in(tarn__plan_state *s, uint32_t item) {
  const tarn__plan_item *it = &s->in->items[item];
  const tarn__plan_piece *pieces = tarn__plan_pieces(s->in, it);
  for (uint32_t p = 0; p < it->piece_count; p++) {
    for (uint32_t t = pieces[p].first; t < pieces[p].last; t++) {
      s->total[t] += pieces[p].size;
    }
  }
  for (uint32_t t = it->first + 1; t < it->last; t++)
    s->crossing[t]++;
}

static bool has_place(const tarn__plan_state *s, uint32_t item) {
  return s->at[item] <= s->capacity &&
         s->in->items[item].size <= s->capacity - s->at[item];
}

// False: it does not fit there.
static bool raise(tarn__plan_state *s, uint32_t item, uint64_t from,
                  tarn__plan_key *key) {
  log_item(s, item);
  leave_key(s, item, key);
  s->at[item] = s->least[item] = tarn__plan_settle(&s->allowed, item, from);
  s->lifter[item] = TARN__PLAN_PLACED;
  enter_key(s, item, key);
  return has_place(s, item);
}

// What was passed over must be lifted by something below its end, of which
// |item| is the lowest. False: it is not, and so nothing is.
static bool can_be_lifted(const tarn__plan_state *s, uint32_t item,
                          uint32_t edge, bool *narrows) {
  uint32_t other = s->near.item[edge];
  if (s->lifter[other] == TARN__PLAN_PLACED) return true;
  if (s->at[item] >= s->at[other] + tarn__plan_below(&s->near, edge)) {
    *narrows = true;
  }
  return s->at[item] < s->at[other] + s->in->items[other].size;
}

bool tarn__plan_state_put_down(tarn__plan_state *s, uint32_t item,
                               tarn__plan_key *key,
                               tarn__plan_effect *out_effect) {
  const tarn__plan_neighbours *near = &s->near;
  size_t first = s->item_count;
  *out_effect = (tarn__plan_effect){0};
  log_item(s, item);
  leave_key(s, item, key);
  s->least[item] = TARN__PLAN_DOWN;
  take_out(s, item, &out_effect->cuts);
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    uint64_t top = s->at[item] + tarn__plan_above(near, item, e);
    if (s->at[other] >= top || s->least[other] == TARN__PLAN_DOWN) continue;
    if (!can_be_lifted(s, item, e, &out_effect->narrows)) return false;
    if (!raise(s, other, top, key)) return false;
  }
  for (size_t i = first; i < s->item_count; i++) {
    if (!refresh(s, s->items[i].item)) return false;
  }
  return true;
}

void tarn__plan_state_take_up(tarn__plan_state *s, uint32_t item) {
  put_in(s, item);
}

// --- what was passed over ----------------------------------------------------

bool tarn__plan_state_is_stale(const tarn__plan_state *s, uint32_t item) {
  uint32_t edge = s->lifter[item];
  uint64_t least = s->least[s->near.item[edge]];
  if (least == TARN__PLAN_DOWN) return true;
  uint64_t from = least + tarn__plan_below(&s->near, edge);
  return tarn__plan_settle(&s->allowed, item, from) != s->least[item];
}

bool tarn__plan_state_lift(tarn__plan_state *s, uint32_t item) {
  const tarn__plan_neighbours *near = &s->near;
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
  s->least[item] = tarn__plan_settle(&s->allowed, item, best);
  s->lifter[item] = lifter;
  return s->least[item] <= s->capacity &&
         s->in->items[item].size <= s->capacity - s->least[item] &&
         refresh(s, item);
}

bool tarn__plan_state_pass(tarn__plan_state *s, uint32_t item,
                           tarn__plan_key *key) {
  leave_key(s, item, key);
  bool lifts = tarn__plan_state_lift(s, item);
  if (lifts) enter_key(s, item, key);
  return lifts;
}

// --- the beginning -----------------------------------------------------------

static bool begin_items(tarn__plan_state *s) {
  bool all = true;
  for (uint32_t i = 0; i < s->in->item_count; i++) {
    bool fixed = s->allowed.fixed[i];
    s->at[i] = fixed ? s->allowed.at[i] : tarn__plan_settle(&s->allowed, i, 0);
    s->least[i] = fixed ? TARN__PLAN_DOWN : s->at[i];
    s->lifter[i] = TARN__PLAN_PLACED;
    if (!has_place(s, i)) all = false;
  }
  return all;
}

static bool begin_sections(tarn__plan_state *s) {
  size_t count = s->in->section_count + 1;
  memset(s->total, 0, count * sizeof *s->total);
  memset(s->floor, 0, count * sizeof *s->floor);
  memset(s->crossing, 0, count * sizeof *s->crossing);
  for (uint32_t i = 0; i < s->in->item_count; i++) {
    if (!s->allowed.fixed[i]) put_in(s, i);
  }
  bool all = true;
  for (uint32_t t = 0; t < s->in->section_count; t++) {
    find_floor(s, t);
    if (!fits(s, t)) all = false;
  }
  return all;
}

tarn_status tarn__plan_state_begin(tarn__plan_state *s, uint64_t capacity,
                                   const uint64_t *held, bool *out_fits) {
  s->capacity = capacity;
  s->no_memory = false;
  s->item_count = 0;
  s->floor_count = 0;
  tarn_status status = tarn__plan_allowed_begin(&s->allowed, held);
  if (status != TARN_OK) return status;
  bool placed = begin_items(s);
  bool fit = begin_sections(s);
  *out_fits = placed && fit && tarn__plan_allowed_clear(&s->allowed);
  return TARN_OK;
}
