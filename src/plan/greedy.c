// First there is a plan in one pass over time. Then ways are tried: orders in
// which items are put down, each at the lowest offset that those allow which
// lie there already. None of them is best for all problems, so all are tried
// while they are cheap; those that do best on large models come first.
//
// That is to put long-lived items down before short-lived ones, in classes of
// lengths that differ by a factor of 16 or so, and within a class as time goes:
// memory that one has left is then taken by the next of its class, while
// items that come and go beside long-lived ones fill what these have left.
//
// A plan that comes near the target misses it by a few items, which came too
// late to find room. So they are put down earlier, and all is done again: some
// others may then end too high, but as a rule fewer.
//
// Fixed items lie there before all others. All others fit above everything
// that lies there, so that each way ends with a plan; it is given up only when
// it is no lower than the best there is, or when there is no more time.
#include "plan/greedy.h"

#include <string.h>

#include "base/hostmem.h"
#include "plan/onepass.h"
#include "plan/placed.h"
#include "plan/ways.h"

enum {
  // Pieces put down, all ways together, before no further way is tried; and
  // those of a problem that a tree would be too large for.
  MOST_PIECES = 500000,
  MOST_TREE_PIECES = 1 << 21,
  // Ranges looked at, all ways together: lists are short where memory is well
  // packed, but nothing says that it is.
  MOST_LOOKS = 100000000,
  ITEMS_PER_ASKING = 16,  // items put down before |stop| is looked at
  ROUNDS = 8,
};

// What is put down earlier in the next round comes to the front, or to half of
// where it was.
typedef enum earlier {
  TO_FRONT = 0,
  TO_HALF,
  EARLIER,
} earlier;

typedef struct placing {
  const tarn__plan_instance *in;
  uint64_t target;
  tarn__plan_stop *stop;
  tarn__plan_ways ways;
  tarn__plan_placed placed;
  uint64_t *trial;  // offsets by item
  uint64_t *best;   // the caller's offsets and height
  uint64_t *height;
  size_t pieces_left;
} placing;

// --- one way -----------------------------------------------------------------

static tarn_status put_fixed(placing *p) {
  tarn__plan_placed_clear(&p->placed);
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < p->in->item_count; i++) {
    const tarn__plan_item *item = &p->in->items[i];
    p->trial[i] = item->offset;
    if (!item->fixed) continue;
    status = tarn__plan_placed_add(&p->placed, item, item->offset);
  }
  return status;
}

static bool is_over(const placing *p, size_t placed) {
  return placed % ITEMS_PER_ASKING == 0 && tarn__plan_stop_now(p->stop, 0);
}

// In the order of |ways|, while they end below |limit|. |*out_whole|: all do.
static tarn_status put_all(placing *p, uint64_t limit, bool *out_whole) {
  tarn_status status = put_fixed(p);
  *out_whole = false;
  for (size_t i = 0; status == TARN_OK && i < p->in->item_count; i++) {
    uint32_t index = p->ways.order[i].item;
    const tarn__plan_item *item = &p->in->items[index];
    if (is_over(p, i) || p->placed.looked > MOST_LOOKS) return TARN_OK;
    if (item->fixed) continue;
    uint64_t at = tarn__plan_placed_lowest(&p->placed, item, 0);
    if (at + item->size >= limit) return TARN_OK;
    p->trial[index] = at;
    status = tarn__plan_placed_add(&p->placed, item, at);
  }
  *out_whole = status == TARN_OK;
  return status;
}

static void keep(placing *p) {
  uint64_t height = tarn__plan_instance_height(p->in, p->trial);
  if (height >= *p->height) return;
  memcpy(p->best, p->trial, p->in->item_count * sizeof *p->best);
  *p->height = height;
  p->stop->watch_ns = 0;  // whoever watches is told at the next look
}

// Puts all down, those that come too high too where |limit| is UINT64_MAX.
static tarn_status try_order(placing *p, uint64_t limit, bool *out_whole) {
  tarn_status status = put_all(p, limit, out_whole);
  if (*out_whole) keep(p);
  size_t pieces = p->in->piece_count;
  p->pieces_left = p->pieces_left > pieces ? p->pieces_left - pieces : 0;
  return status;
}

static bool is_done(const placing *p) {
  return *p->height <= p->target || p->pieces_left == 0 ||
         p->placed.looked > MOST_LOOKS || tarn__plan_stop_now(p->stop, 0);
}

// --- rounds ------------------------------------------------------------------

// Lets what ended above the target come earlier.
static void put_earlier(placing *p, earlier how, int round) {
  size_t count = p->in->item_count;
  for (size_t i = 0; i < count; i++) {
    tarn__plan_ranked *ranked = &p->ways.order[i];
    uint64_t size = p->in->items[ranked->item].size;
    if (p->trial[ranked->item] + size <= p->target) continue;
    double front = (double)count * (round + 1) - (double)i;
    ranked->key = how == TO_FRONT ? front : ranked->key / 2;
  }
  tarn__plan_ways_sort(&p->ways);
}

static tarn_status try_rounds(placing *p, tarn__plan_way way, earlier how) {
  bool whole;
  tarn__plan_ways_order(&p->ways, way);
  tarn_status status = try_order(p, UINT64_MAX, &whole);
  for (int i = 0; i < ROUNDS && status == TARN_OK && !is_done(p); i++) {
    put_earlier(p, how, i);
    status = try_order(p, UINT64_MAX, &whole);
  }
  return status;
}

// Where much is too high, it is not a matter of a few.
static bool is_near(const placing *p) {
  return *p->height - p->in->bound <= p->in->bound / 16;
}

static tarn_status try_all_rounds(placing *p) {
  tarn_status status = TARN_OK;
  for (int i = 0; i < TARN__PLAN_CLASSED * EARLIER; i++) {
    if (status != TARN_OK || is_done(p) || !is_near(p)) break;
    status = try_rounds(p, (tarn__plan_way)(i % TARN__PLAN_CLASSED),
                        (earlier)(i / TARN__PLAN_CLASSED));
  }
  return status;
}

// --- the whole ---------------------------------------------------------------

// Those of the second half do better where models are small.
static tarn_status try_ways(placing *p, int from, int to) {
  tarn_status status = TARN_OK;
  bool whole;
  for (int i = from; i < to && status == TARN_OK; i++) {
    if (is_done(p)) break;
    tarn__plan_ways_order(&p->ways, (tarn__plan_way)i);
    status = try_order(p, *p->height, &whole);
  }
  return status;
}

static tarn_status try_tree(placing *p) {
  bool is_small = p->in->piece_count <= MOST_PIECES / 64;
  tarn_status status = tarn__plan_ways_make(p->in, &p->ways);
  if (status == TARN_OK) status = tarn__plan_placed_make(p->in, &p->placed);
  if (status == TARN_OK) status = try_ways(p, 0, TARN__PLAN_CLASSED);
  if (status == TARN_OK && is_small) {
    status = try_ways(p, TARN__PLAN_CLASSED, TARN__PLAN_WAYS);
  }
  if (status == TARN_OK) status = try_all_rounds(p);
  tarn__plan_placed_free(&p->placed);
  tarn__plan_ways_free(&p->ways);
  return status;
}

static tarn_status try_pass(placing *p) {
  tarn_status status = tarn__plan_one_pass(p->in, p->trial);
  if (status == TARN_OK) keep(p);
  return status;
}

tarn_status tarn__plan_greedy(const tarn__plan_instance *instance,
                              uint64_t target, tarn__plan_stop *stop,
                              uint64_t *offsets, uint64_t *height) {
  size_t room = instance->item_count;
  placing p = {.in = instance,
               .target = target,
               .stop = stop,
               .best = offsets,
               .height = height,
               .pieces_left = MOST_PIECES};
  if (room == 0) *height = 0;
  if (*height <= target) return TARN_OK;
  p.trial = tarn__host_array(room, sizeof *p.trial);
  if (p.trial == NULL) return TARN_E_NOMEM;
  tarn_status status = TARN_OK;
  if (*height == UINT64_MAX) status = try_pass(&p);
  bool fits = instance->piece_count <= MOST_TREE_PIECES;
  if (status == TARN_OK && fits && !is_done(&p)) status = try_tree(&p);
  tarn__host_free_array(p.trial, room, sizeof *p.trial);
  return status;
}
