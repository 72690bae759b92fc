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

typedef struct trial {
  const tarn__plan_instance *in;
  uint64_t target;
  uint64_t most_looks;  // of the ranges looked at, whatever |plan.stop| says
  tarn__plan_placing plan;
  size_t pieces_left;
  tarn__plan_memory memory;
} trial;

// --- one order ---------------------------------------------------------------

static bool is_late(const trial *t) {
  const tarn__plan_placing *p = &t->plan;
  return p->placed.looked > t->most_looks ||
         (p->stop != NULL && tarn__plan_stop_now(p->stop, 0));
}

static bool is_over(void *user) {
  const trial *t = user;
  return t->plan.nodes % ITEMS_PER_LOOK == 0 && is_late(t);
}

static tarn_status try_key(trial *t, tarn__plan_sort_key by) {
  tarn__plan_sort_keys_order(&t->plan.keys, by);
  t->plan.nodes = 0;
  t->pieces_left -= tarn__lesser(t->pieces_left, t->in->piece_count);
  return tarn__plan_place_all(&t->plan, *t->plan.height);
}

static bool is_done(const trial *t) {
  return *t->plan.height <= t->target || is_late(t);
}

// If a plan is near the target, a few items came too late to find room: they
// are placed first in the next round.
static tarn_status try_rounds(trial *t) {
  tarn__plan_sort_keys *keys = &t->plan.keys;
  for (int i = 0; i < ROUNDS && !is_done(t); i++) {
    if (i == 0) tarn__plan_sort_keys_order(keys, TARN__PLAN_BEGIN_IN_16);
    for (size_t k = 0; i > 0 && k < t->in->item_count; k++) {
      uint32_t item = keys->order[k].item;
      uint64_t end = t->plan.placed.at[item] + t->in->items[item].size;
      if (end > t->target) keys->order[k].key += 1e6 * i;
    }
    if (i > 0) tarn__plan_sort_keys_sort(keys);
    t->plan.nodes = 0;
    TARN__TRY(tarn__plan_place_all(&t->plan, UINT64_MAX));
    if (t->plan.made - t->in->bound > t->in->bound / 16) break;
  }
  return TARN_OK;
}

// --- the whole ---------------------------------------------------------------

// Tries the orders of |keys|: the first |always| of them, and the others while
// |pieces_left| allows.
static tarn_status try_orders(trial *t, const tarn__plan_sort_key *keys,
                              size_t count, size_t always, bool in_list) {
  t->plan.is_over = is_over;
  t->plan.user = t;
  TARN__TRY(tarn__plan_placing_make(t->in, in_list, &t->memory, &t->plan));
  for (size_t i = 0; i < count && !is_done(t); i++) {
    if (i >= always && t->pieces_left == 0) break;
    TARN__TRY(try_key(t, keys[i]));
  }
  return TARN_OK;
}

static tarn_status try_all(trial *t) {
  tarn__plan_placing *p = &t->plan;
  if (*p->height == UINT64_MAX) {
    TARN__TRY(tarn__plan_one_pass(t->in, p->best));
    *p->height = tarn__plan_instance_height(t->in, p->best);
  }
  if (t->in->piece_count > MOST_TREE_PIECES || is_done(t)) return TARN_OK;
  TARN__TRY(try_orders(t, tried, TRIED, ALWAYS, false));
  return try_rounds(t);
}

tarn_status tarn__plan_greedy(const tarn__plan_instance *instance,
                              uint64_t target, tarn__plan_stop *stop,
                              uint64_t *offsets, uint64_t *height) {
  trial t = {.in = instance,
             .target = target,
             .most_looks = MOST_LOOKS,
             .plan = {.stop = stop, .best = offsets, .height = height},
             .pieces_left = MOST_PIECES};
  if (instance->item_count == 0) *height = 0;
  if (*height <= target) return TARN_OK;
  tarn_status status = try_all(&t);
  tarn__plan_memory_free(&t.memory);
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
static const tarn__plan_sort_key quick_keys[] = {
    TARN__PLAN_LARGEST, TARN__PLAN_BEGIN_IN_16, TARN__PLAN_WIDEST,
    TARN__PLAN_LONGEST};

enum {
  QUICK_KEYS = sizeof quick_keys / sizeof *quick_keys,
  // From here on, going through lists takes too long, and so does looking at
  // more ranges than so many for all and for each item.
  MANY_ITEMS = 8192,
  MANY_LOOKS = 1 << 20,
  LOOKS_PER_ITEM = 16,
};

static tarn_status try_quick(trial *t) {
  return try_orders(t, quick_keys, QUICK_KEYS, QUICK_KEYS, suits_list(t->in));
}

// What an order costs is not known before, so there is a plan to begin with.
static tarn_status try_many(trial *t) {
  t->most_looks = MANY_LOOKS + t->in->item_count * LOOKS_PER_ITEM;
  TARN__TRY(tarn__plan_one_pass(t->in, t->plan.best));
  *t->plan.height = tarn__plan_instance_height(t->in, t->plan.best);
  if (is_done(t)) return TARN_OK;
  return try_orders(t, quick_keys, QUICK_KEYS, QUICK_KEYS, false);
}

tarn_status tarn__plan_quick(const tarn__plan_instance *in,
                             uint64_t *out_offsets, uint64_t *out_height) {
  uint64_t height = in->item_count == 0 ? 0 : UINT64_MAX;
  trial t = {.in = in,
             .target = in->bound,
             .most_looks = UINT64_MAX,
             .plan = {.best = out_offsets, .height = &height}};
  *out_height = 0;
  if (is_done(&t)) return TARN_OK;
  tarn_status status =
      in->item_count < MANY_ITEMS ? try_quick(&t) : try_many(&t);
  tarn__plan_memory_free(&t.memory);
  if (status == TARN_OK) *out_height = height;
  return status;
}
