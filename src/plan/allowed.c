// The offsets that one fixed item forbids another are those between where the
// other is just below it and where it is just above. Several such stretches may
// share offsets; they are sorted by where they begin.
#include "plan/allowed.h"

#include <stdlib.h>

#include "base/hostmem.h"

static size_t item_room(const tarn__plan_allowed *a) {
  return a->near->in->item_count + 1;
}

tarn_status tarn__plan_allowed_make(const tarn__plan_neighbours *near,
                                    tarn__plan_allowed *out_allowed) {
  tarn__plan_allowed *a = out_allowed;
  *a = (tarn__plan_allowed){.near = near};
  a->fixed = tarn__host_array(item_room(a), sizeof *a->fixed);
  a->at = tarn__host_array(item_room(a), sizeof *a->at);
  if (a->fixed != NULL && a->at != NULL) return TARN_OK;
  tarn__plan_allowed_free(a);
  return TARN_E_NOMEM;
}

static void free_blocked(tarn__plan_allowed *a) {
  tarn__host_free_array(a->blocked, a->near->edge_room, sizeof *a->blocked);
  tarn__host_free_array(a->blocked_count, item_room(a),
                        sizeof *a->blocked_count);
  a->blocked = NULL;
  a->blocked_count = NULL;
}

void tarn__plan_allowed_free(tarn__plan_allowed *a) {
  if (a->near == NULL) return;
  free_blocked(a);
  tarn__host_free_array(a->fixed, item_room(a), sizeof *a->fixed);
  tarn__host_free_array(a->at, item_room(a), sizeof *a->at);
  *a = (tarn__plan_allowed){0};
}

// --- the beginning -----------------------------------------------------------

static tarn_status make_blocked(tarn__plan_allowed *a) {
  if (a->blocked != NULL) return TARN_OK;
  a->blocked = tarn__host_array(a->near->edge_room, sizeof *a->blocked);
  a->blocked_count = tarn__host_array(item_room(a), sizeof *a->blocked_count);
  if (a->blocked != NULL && a->blocked_count != NULL) return TARN_OK;
  free_blocked(a);
  return TARN_E_NOMEM;
}

static int by_from(const void *x, const void *y) {
  const tarn__plan_blocked *a = x;
  const tarn__plan_blocked *b = y;
  return (a->from > b->from) - (a->from < b->from);
}

static void find_blocked(tarn__plan_allowed *a, uint32_t item) {
  const tarn__plan_neighbours *near = a->near;
  tarn__plan_blocked *blocked = a->blocked + near->first[item];
  uint32_t count = 0;
  for (uint32_t e = near->first[item]; e < near->first[item + 1]; e++) {
    uint32_t other = near->item[e];
    if (!a->fixed[other]) continue;
    uint64_t at = a->at[other];
    uint64_t above = tarn__plan_above(near, item, e);
    blocked[count++] = (tarn__plan_blocked){at < above ? 0 : at - above + 1,
                                            at + tarn__plan_below(near, e)};
  }
  qsort(blocked, count, sizeof *blocked, by_from);
  a->blocked_count[item] = count;
}

tarn_status tarn__plan_allowed_begin(tarn__plan_allowed *a,
                                     const uint64_t *held) {
  const tarn__plan_instance *in = a->near->in;
  a->all = true;
  a->any_fixed = false;
  for (size_t i = 0; i < in->item_count; i++) {
    const tarn__plan_item *item = &in->items[i];
    bool is_held = held != NULL && held[i] != UINT64_MAX;
    a->fixed[i] = is_held || item->fixed;
    a->at[i] = is_held ? held[i] : item->offset;
    if (a->fixed[i]) a->any_fixed = true;
    if (a->fixed[i] || item->alignment != 1) a->all = false;
  }
  if (!a->any_fixed) return TARN_OK;
  tarn_status status = make_blocked(a);
  for (uint32_t i = 0; status == TARN_OK && i < in->item_count; i++) {
    find_blocked(a, i);
  }
  return status;
}

// --- questions ---------------------------------------------------------------

static bool is_blocked(const tarn__plan_allowed *a, uint32_t item) {
  const tarn__plan_blocked *blocked = a->blocked + a->near->first[item];
  for (uint32_t i = 0; i < a->blocked_count[item]; i++) {
    if (blocked[i].from <= a->at[item] && a->at[item] < blocked[i].below) {
      return true;
    }
  }
  return false;
}

bool tarn__plan_allowed_clear(const tarn__plan_allowed *a) {
  if (!a->any_fixed) return true;
  for (uint32_t i = 0; i < a->near->in->item_count; i++) {
    if (a->fixed[i] && is_blocked(a, i)) return false;
  }
  return true;
}

uint64_t tarn__plan_settle_among(const tarn__plan_allowed *a, uint32_t item,
                                 uint64_t from) {
  uint64_t alignment = a->near->in->items[item].alignment;
  from = tarn__plan_align_up(from, alignment);
  if (!a->any_fixed) return from;
  const tarn__plan_blocked *blocked = a->blocked + a->near->first[item];
  for (uint32_t i = 0; i < a->blocked_count[item]; i++) {
    if (from < blocked[i].from) break;
    if (from < blocked[i].below) {
      from = tarn__plan_align_up(blocked[i].below, alignment);
    }
  }
  return from;
}

uint64_t tarn__plan_fixed_above(const tarn__plan_allowed *a, uint32_t section,
                                uint64_t floor) {
  const tarn__plan_neighbours *near = a->near;
  uint64_t sum = 0;
  for (uint32_t i = near->begin[section]; i < near->begin[section + 1]; i++) {
    uint32_t item = near->present[i];
    if (!a->fixed[item]) continue;
    const tarn__plan_piece *piece =
        tarn__plan_pieces(near->in, &near->in->items[item]);
    while (piece->last <= section)
      piece++;
    uint64_t from = a->at[item] < floor ? floor : a->at[item];
    uint64_t top = a->at[item] + piece->size;
    if (from < top) sum += top - from;
  }
  return sum;
}
