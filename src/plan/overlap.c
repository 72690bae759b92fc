// The row holds the pieces that are live in the section that the sweep has
// come to, by offset:
//
//     offset  |  [ a ][ b ]   [ c ]        [ d ]
//                       ^ a new piece is compared with b and c, whose ends
//                         are above its offset, and offsets below its end
//
// Invariant: no two entries of the row share a byte.
#include "plan/overlap.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

typedef struct entry {
  uint64_t offset;
  uint64_t top;
  uint32_t item;
} entry;

typedef struct sweep {
  const tarn__plan_instance *in;
  const uint64_t *offsets;
  const bool *firm;
  bool *stays;         // NULL: the first collision ends the sweep
  uint32_t *items;     // the two of that
  uint32_t *by_first;  // pieces, in the order in which they come
  uint32_t *by_last;   // and in which they go
  entry *live;
  size_t count;
  tarn__plan_memory memory;
} sweep;

static tarn_status make_sweep(sweep *s) {
  const tarn__plan_instance *in = s->in;
  size_t pieces = in->piece_count;
  uint32_t *begin;
  s->live = tarn__plan_array(&s->memory, pieces + 1, sizeof *s->live);
  TARN__TRY(tarn__plan_bucket(&s->memory, &in->pieces->first,
                              sizeof *in->pieces, pieces, in->section_count + 1,
                              &begin, &s->by_first));
  return tarn__plan_bucket(&s->memory, &in->pieces->last, sizeof *in->pieces,
                           pieces, in->section_count + 1, &begin, &s->by_last);
}

// --- what is live ------------------------------------------------------------

// The first entry whose end is above |offset|.
static size_t find(const sweep *s, uint64_t offset) {
  return tarn__plan_first_above(s->live, sizeof *s->live, offsetof(entry, top),
                                s->count, offset);
}

static void replace(sweep *s, size_t from, size_t to, const entry *with) {
  size_t put = with != NULL;
  memmove(s->live + from + put, s->live + to,
          (s->count - to) * sizeof *s->live);
  s->count = s->count - (to - from) + put;
  if (put != 0) s->live[from] = *with;
}

static void leave(sweep *s, uint32_t piece) {
  uint32_t item = s->in->item_of_piece[piece];
  if (s->offsets[item] == TARN__PLAN_NOWHERE) return;
  size_t at = find(s, s->offsets[item]);
  if (at < s->count && s->live[at].item == item) replace(s, at, at + 1, NULL);
}

static double worth_of(const sweep *s, uint32_t item) {
  return (double)s->in->items[item].size * (double)s->in->items[item].length;
}

// Whether |item| may drive those in [from, to) of the row out.
static bool is_worth_more(const sweep *s, uint32_t item, size_t from,
                          size_t to) {
  double worth = 0;
  bool firm = s->firm != NULL && s->firm[item];
  for (size_t i = from; i < to; i++) {
    if (s->firm != NULL && s->firm[s->live[i].item]) return false;
    worth += worth_of(s, s->live[i].item);
  }
  return firm || worth_of(s, item) > worth;
}

static void contend(sweep *s, const entry *who, size_t from, size_t to) {
  if (!is_worth_more(s, who->item, from, to)) {
    if (s->firm == NULL || !s->firm[who->item]) s->stays[who->item] = false;
    return;
  }
  for (size_t i = from; i < to; i++)
    s->stays[s->live[i].item] = false;
  replace(s, from, to, who);
}

// False: the sweep is over.
static bool come(sweep *s, uint32_t piece) {
  uint32_t item = s->in->item_of_piece[piece];
  uint64_t offset = s->offsets[item];
  bool absent = s->stays != NULL && !s->stays[item];
  if (offset == TARN__PLAN_NOWHERE || absent) return true;
  entry who = {offset, offset + s->in->pieces[piece].size * s->in->unit, item};
  size_t from = find(s, offset);
  size_t to = from;
  while (to < s->count && s->live[to].offset < who.top)
    to++;
  if (from == to) {
    replace(s, from, from, &who);
  } else if (s->stays != NULL) {
    contend(s, &who, from, to);
  } else {
    s->items[0] = s->live[from].item;
    s->items[1] = item;
    return false;
  }
  return true;
}

static tarn_status run(sweep *s) {
  tarn_status status = make_sweep(s);
  size_t gone = 0;
  bool goes_on = status == TARN_OK;
  for (size_t i = 0; goes_on && i < s->in->piece_count; i++) {
    uint32_t section = s->in->pieces[s->by_first[i]].first;
    while (s->in->pieces[s->by_last[gone]].last <= section) {
      leave(s, s->by_last[gone++]);
    }
    goes_on = come(s, s->by_first[i]);
  }
  tarn__plan_memory_free(&s->memory);
  return status;
}

// --- three questions ---------------------------------------------------------

tarn_status tarn__plan_overlap_sift(const tarn__plan_instance *instance,
                                    const uint64_t *offsets, const bool *firm,
                                    bool *stays) {
  sweep s = {.in = instance, .offsets = offsets, .firm = firm, .stays = stays};
  for (size_t i = 0; i < instance->item_count; i++) {
    stays[i] = offsets[i] != TARN__PLAN_NOWHERE;
  }
  return run(&s);
}

tarn_status tarn__plan_overlap_find(const tarn__plan_instance *instance,
                                    const uint64_t *offsets,
                                    uint32_t out_items[2]) {
  sweep s = {.in = instance, .offsets = offsets, .items = out_items};
  out_items[0] = out_items[1] = TARN__PLAN_NO_ITEM;
  return run(&s);
}

tarn_status tarn__plan_fixed_overlap(const tarn__plan_instance *instance,
                                     uint32_t out_items[2]) {
  out_items[0] = out_items[1] = TARN__PLAN_NO_ITEM;
  size_t fixed = 0;
  for (size_t i = 0; i < instance->item_count; i++) {
    fixed += instance->items[i].fixed;
  }
  if (fixed < 2) return TARN_OK;
  size_t room = instance->item_count;
  uint64_t *offsets = tarn__host_array(room, sizeof *offsets);
  if (offsets == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < room; i++) {
    const tarn__plan_item *item = &instance->items[i];
    offsets[i] =
        item->fixed ? item->offset * instance->unit : TARN__PLAN_NOWHERE;
  }
  tarn_status status = tarn__plan_overlap_find(instance, offsets, out_items);
  tarn__host_free_array(offsets, room, sizeof *offsets);
  return status;
}
