// The first plan is made in one pass over time. Then orders of items are tried:
// each item is placed at the lowest offset that the placed ones allow. No order
// is best for all problems, so all are tried while they are cheap; the orders
// that do best on large models come first.
//
// One puts long-lived items down before short-lived ones, in classes of lengths
// that differ by a factor of 16 or so, and within a class in the order of time:
// the memory of an item is then reused by the next of its class, and
// short-lived items fill the gaps between long-lived ones. Another puts the
// largest down first, by size or by area: small ones find room between them.
//
// Fixed items are placed before all others. Any item fits above all placed
// ones, so that each order ends with a plan; it is abandoned only when it is no
// lower than the best plan, or when the time is over.
#include "plan/greedy.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "plan/placements.h"
#include "plan/quick.h"
#include "plan/sort_keys.h"

enum {
  // Placed pieces, over all orders, after which no further order is tried but
  // the first ones; and the pieces of a problem for which a tree would be too
  // large.
  MOST_PIECES = 150000,
  MOST_TREE_PIECES = 1 << 21,
  // Ranges looked at, all ways together: lists are short where memory is well
  // packed, but nothing says that it is.
  MOST_LOOKS = 100000000,
  ROUNDS = 8,
  ITEMS_PER_LOOK = 16,  // items placed before |stop| is read
};

static const tarn__plan_sort_key tried[] = {
    TARN__PLAN_BEGIN_IN_16,      TARN__PLAN_LARGEST,    TARN__PLAN_WIDEST,
    TARN__PLAN_END_IN_16,        TARN__PLAN_BEGIN_IN_4, TARN__PLAN_END_IN_4,
    TARN__PLAN_HIGHEST_PRESSURE, TARN__PLAN_LONGEST,    TARN__PLAN_SPREAD,
};

enum { ALWAYS = 3, TRIED = sizeof tried / sizeof *tried };

typedef struct placing {
  const tarn__plan_instance *in;
  uint64_t target;
  tarn__plan_stop *stop;
  tarn__plan_sort_keys keys;
  tarn__plan_placed placed;
  uint64_t *trial;  // offsets by item
  uint64_t *best;   // the caller's offsets and height
  uint64_t *height;
  size_t pieces_left;
  tarn__plan_memory memory;
} placing;

// --- one order ---------------------------------------------------------------

static tarn_status put_fixed(placing *p) {
  tarn__plan_placed_clear(&p->placed);
  for (uint32_t i = 0; i < p->in->item_count; i++) {
    const tarn__plan_item *item = &p->in->items[i];
    p->trial[i] = item->offset;
    if (!item->fixed) continue;
    TARN__TRY(tarn__plan_placed_add(&p->placed, i, item->offset));
  }
  return TARN_OK;
}

// Nothing stops a plan that is made without a clock.
static bool is_over(const placing *p) {
  return p->stop != NULL &&
         (p->placed.looked > MOST_LOOKS || tarn__plan_stop_now(p->stop, 0));
}

// In the order of the sort keys, while they end below |limit|.
static tarn_status put_all(placing *p, uint64_t limit, bool *out_whole) {
  *out_whole = false;
  TARN__TRY(put_fixed(p));
  for (size_t i = 0; i < p->in->item_count; i++) {
    uint32_t index = p->keys.order[i].item;
    const tarn__plan_item *item = &p->in->items[index];
    if (i % ITEMS_PER_LOOK == 0 && is_over(p)) return TARN_OK;
    if (item->fixed) continue;
    uint64_t at = tarn__plan_placed_lowest(&p->placed, index);
    if (at + item->size >= limit) return TARN_OK;
    p->trial[index] = at;
    TARN__TRY(tarn__plan_placed_add(&p->placed, index, at));
  }
  *out_whole = true;
  return TARN_OK;
}

static void keep(placing *p) {
  uint64_t height = tarn__plan_instance_height(p->in, p->trial);
  if (height >= *p->height) return;
  memcpy(p->best, p->trial, p->in->item_count * sizeof *p->best);
  *p->height = height;
  // The watcher gets it at the next look.
  if (p->stop != NULL) p->stop->watch_ns = 0;
}

static tarn_status try_key(placing *p, tarn__plan_sort_key by) {
  bool whole;
  tarn__plan_sort_keys_order(&p->keys, by);
  TARN__TRY(put_all(p, *p->height, &whole));
  if (whole) keep(p);
  p->pieces_left -= tarn__lesser(p->pieces_left, p->in->piece_count);
  return TARN_OK;
}

static bool is_done(const placing *p) {
  return *p->height <= p->target || is_over(p);
}

// If a plan is near the target, a few items came too late to find room: they
// are placed first in the next round.
static tarn_status try_rounds(placing *p) {
  for (int i = 0; i < ROUNDS && !is_done(p); i++) {
    bool whole;
    if (i == 0) tarn__plan_sort_keys_order(&p->keys, TARN__PLAN_BEGIN_IN_16);
    for (size_t k = 0; i > 0 && k < p->in->item_count; k++) {
      tarn__plan_ranked *ranked = &p->keys.order[k];
      uint64_t end = p->trial[ranked->item] + p->in->items[ranked->item].size;
      if (end > p->target) ranked->key += 1e6 * i;
    }
    if (i > 0) tarn__plan_sort_keys_sort(&p->keys);
    TARN__TRY(put_all(p, UINT64_MAX, &whole));
    if (!whole) break;
    keep(p);
    uint64_t above = tarn__plan_instance_height(p->in, p->trial) - p->in->bound;
    if (above > p->in->bound / 16) break;
  }
  return TARN_OK;
}

// --- the whole ---------------------------------------------------------------

// Tries the orders of |keys|: the first |always| of them, and the others while
// |pieces_left| allows.
static tarn_status try_orders(placing *p, const tarn__plan_sort_key *keys,
                              size_t count, size_t always, bool in_list) {
  TARN__TRY(tarn__plan_sort_keys_make(p->in, &p->memory, &p->keys));
  TARN__TRY(tarn__plan_placed_make(p->in, in_list, &p->memory, &p->placed));
  for (size_t i = 0; i < count && !is_done(p); i++) {
    if (i >= always && p->pieces_left == 0) break;
    TARN__TRY(try_key(p, keys[i]));
  }
  return TARN_OK;
}

static tarn_status try_all(placing *p) {
  p->trial = tarn__plan_array(&p->memory, p->in->item_count, sizeof *p->trial);
  if (p->trial == NULL) return TARN_E_NOMEM;
  if (*p->height == UINT64_MAX) {
    TARN__TRY(tarn__plan_one_pass(p->in, p->trial));
    keep(p);
  }
  if (p->in->piece_count > MOST_TREE_PIECES || is_done(p)) return TARN_OK;
  TARN__TRY(try_orders(p, tried, TRIED, ALWAYS, false));
  return try_rounds(p);
}

tarn_status tarn__plan_greedy(const tarn__plan_instance *instance,
                              uint64_t target, tarn__plan_stop *stop,
                              uint64_t *offsets, uint64_t *height) {
  placing p = {.in = instance,
               .target = target,
               .stop = stop,
               .best = offsets,
               .height = height,
               .pieces_left = MOST_PIECES};
  if (instance->item_count == 0) *height = 0;
  if (*height <= target) return TARN_OK;
  tarn_status status = try_all(&p);
  tarn__plan_memory_free(&p.memory);
  return status;
}

// --- without a clock ---------------------------------------------------------

// Passing an item in a list is cheaper by this factor than looking at a live
// one in a tree, as measured.
enum { LIST_AGAINST_TREE = 10 };

// The sum, over all items, of how many others are there when one begins; 0 if
// there is no memory to find out.
static uint64_t count_meetings(const tarn__plan_instance *in) {
  size_t room = in->section_count + 1;
  uint64_t meetings = 0;
  uint32_t *live = tarn__host_array(room, sizeof *live);
  if (live == NULL) return 0;
  for (size_t i = 0; i < in->item_count; i++) {
    live[in->items[i].first]++;
    live[in->items[i].last]--;
  }
  for (size_t i = 1; i < room; i++)
    live[i] += live[i - 1];
  for (size_t i = 0; i < in->item_count; i++)
    meetings += live[in->items[i].first];
  tarn__host_free_array(live, room, sizeof *live);
  return meetings;
}

static bool suits_list(const tarn__plan_instance *in) {
  uint64_t count = in->item_count;
  return count * count <= LIST_AGAINST_TREE * count_meetings(in);
}

// The orders by size, area and length do well where a step of a program is
// small; classes of lengths do where it is large.
tarn_status tarn__plan_quick(const tarn__plan_instance *in,
                             uint64_t *out_offsets, uint64_t *out_height) {
  static const tarn__plan_sort_key keys[] = {
      TARN__PLAN_LARGEST, TARN__PLAN_BEGIN_IN_16, TARN__PLAN_WIDEST,
      TARN__PLAN_LONGEST};
  uint64_t height = in->item_count == 0 ? 0 : UINT64_MAX;
  placing p = {
      .in = in, .target = in->bound, .best = out_offsets, .height = &height};
  enum { KEYS = sizeof keys / sizeof *keys };
  *out_height = 0;
  if (is_done(&p)) return TARN_OK;
  p.trial = tarn__plan_array(&p.memory, in->item_count, sizeof *p.trial);
  tarn_status status = tarn__plan_memory_status(&p.memory);
  if (status == TARN_OK) {
    status = try_orders(&p, keys, KEYS, KEYS, suits_list(in));
  }
  tarn__plan_memory_free(&p.memory);
  if (status == TARN_OK) *out_height = height;
  return status;
}
