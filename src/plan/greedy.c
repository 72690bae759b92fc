// A way is an order in which items are put down, each at the lowest offset
// that those allow which lie there already. None of them is best for all
// problems, so all are tried while they are cheap; those that do best on
// large models come first.
//
// That is to put long-lived items down before short-lived ones, in classes of
// lengths that differ by a factor of 16 or so, and within a class as time goes:
// memory that one has left is then taken by the next of its class, while
// items that come and go beside long-lived ones fill what these have left.
//
// Fixed items lie there before all others. All others fit above everything
// that lies there, so that each way ends with a plan; it is given up only when
// it is no lower than the best there is.
#include "plan/greedy.h"

#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "plan/placed.h"

enum {
  // Items put down, all ways together, before no further way is tried.
  MOST_PLACED = 1200000,
  ITEMS_PER_ASKING = 256,  // items put down before |stop| is looked at
};

typedef struct ranked {
  double key;  // the largest first
  uint32_t item;
} ranked;

typedef struct placing {
  const tarn__plan_instance *in;
  tarn__plan_stop *stop;
  tarn__plan_placed placed;
  ranked *order;
  uint64_t *trial;  // offsets by item
  uint64_t *crowd;  // by item: the most that is live in one of its sections
  uint64_t *best;   // the caller's offsets and height
  uint64_t *height;
} placing;

// --- orders ------------------------------------------------------------------

static uint32_t sections_of(const tarn__plan_item *item) {
  return item->last - item->first;
}

// How often |count| can be divided by 2^|bits|.
static double class_of(uint32_t count, int bits) {
  int class = 0;
  for (; count >> bits != 0; count >>= bits)
    class ++;
  return class;
}

// Classes first, which are whole numbers; then, below 1, what comes earlier.
static double by_begin(const placing *p, const tarn__plan_item *item,
                       int bits) {
  double sections = (double)p->in->section_count + 1;
  return class_of(sections_of(item), bits) + 1 - item->first / sections;
}

static double by_end(const placing *p, const tarn__plan_item *item, int bits) {
  double sections = (double)p->in->section_count + 1;
  return class_of(sections_of(item), bits) + item->last / sections;
}

// The share of the bound that is live where most is, times 2^32.
static double crowd_of(const placing *p, uint32_t item) {
  return (double)p->crowd[item] / (double)p->in->bound * 4294967296.0;
}

typedef enum way {
  BEGIN_IN_16 = 0,
  END_IN_16,
  BEGIN_IN_4,
  END_IN_4,
  BEGIN_IN_2,
  END_IN_2,
  BY_LENGTH,
  BY_SIZE,
  BY_AREA,
  BY_SECTIONS,
  BY_CROWD,
  WAYS,
} way;

static double key_of(const placing *p, uint32_t index, way by) {
  const tarn__plan_item *item = &p->in->items[index];
  double size = (double)item->size;
  double share = size / (double)p->in->bound;  // at most 1
  switch (by) {
    case BEGIN_IN_16:
      return by_begin(p, item, 4);
    case END_IN_16:
      return by_end(p, item, 4);
    case BEGIN_IN_4:
      return by_begin(p, item, 2);
    case END_IN_4:
      return by_end(p, item, 2);
    case BEGIN_IN_2:
      return by_begin(p, item, 1);
    case END_IN_2:
      return by_end(p, item, 1);
    case BY_LENGTH:
      return (double)item->length;
    case BY_SIZE:
      return size;
    case BY_AREA:
      return size * (double)item->length;
    case BY_SECTIONS:
      return sections_of(item) + share;
    default:
      return crowd_of(p, index) * (double)p->in->section_count +
             sections_of(item);
  }
}

static int by_key(const void *x, const void *y) {
  const ranked *a = x;
  const ranked *b = y;
  if (a->key != b->key) return a->key > b->key ? -1 : 1;
  return (a->item > b->item) - (a->item < b->item);
}

static void sort_items(placing *p, way by) {
  for (size_t i = 0; i < p->in->item_count; i++) {
    p->order[i] = (ranked){key_of(p, (uint32_t)i, by), (uint32_t)i};
  }
  qsort(p->order, p->in->item_count, sizeof *p->order, by_key);
}

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

// Whether to give up a way: not before there is a plan.
static bool is_over(const placing *p, size_t placed) {
  return placed % ITEMS_PER_ASKING == 0 && *p->height != UINT64_MAX &&
         tarn__plan_stop_now(p->stop, 0);
}

// |*out_whole|: all of them lie there, lower than the best plan.
static tarn_status put_all(placing *p, bool *out_whole) {
  tarn_status status = put_fixed(p);
  *out_whole = false;
  for (size_t i = 0; status == TARN_OK && i < p->in->item_count; i++) {
    uint32_t index = p->order[i].item;
    const tarn__plan_item *item = &p->in->items[index];
    if (is_over(p, i)) return TARN_OK;
    if (item->fixed) continue;
    uint64_t at = tarn__plan_placed_lowest(&p->placed, item, 0);
    if (at + item->size >= *p->height) return TARN_OK;
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
}

static tarn_status try_ways(placing *p, uint64_t target) {
  tarn_status status = TARN_OK;
  size_t most = MOST_PLACED / p->in->item_count + 1;
  for (int by = 0; status == TARN_OK && by < WAYS && (size_t)by < most; by++) {
    bool whole;
    if (*p->height <= target) break;
    if (by > 0 && tarn__plan_stop_now(p->stop, 0)) break;
    sort_items(p, (way)by);
    status = put_all(p, &whole);
    if (whole) keep(p);
  }
  return status;
}

// --- the whole ---------------------------------------------------------------

// The largest of |live| in [first, last), in a heap-shaped tree of maxima, of
// which |leaves| is the first leaf.
static uint64_t most_live(const uint64_t *tree, size_t leaves, size_t first,
                          size_t last) {
  uint64_t most = 0;
  for (first += leaves, last += leaves; first < last; first /= 2, last /= 2) {
    if (first % 2 == 1 && most < tree[first]) most = tree[first];
    first += first % 2;
    if (last % 2 == 1 && most < tree[last - 1]) most = tree[last - 1];
    last -= last % 2;
  }
  return most;
}

static tarn_status measure_crowds(placing *p) {
  const tarn__plan_instance *in = p->in;
  size_t leaves = in->section_count;
  uint64_t *tree = tarn__host_array(2 * leaves, sizeof *tree);
  if (tree == NULL) return TARN_E_NOMEM;
  memcpy(tree + leaves, in->live, leaves * sizeof *tree);
  for (size_t i = leaves; i-- > 1;) {
    uint64_t left = tree[2 * i];
    tree[i] = left > tree[2 * i + 1] ? left : tree[2 * i + 1];
  }
  for (size_t i = 0; i < in->item_count; i++) {
    const tarn__plan_item *item = &in->items[i];
    p->crowd[i] = most_live(tree, leaves, item->first, item->last);
  }
  tarn__host_free_array(tree, 2 * leaves, sizeof *tree);
  return TARN_OK;
}

static tarn_status make(placing *p) {
  size_t room = p->in->item_count;
  p->order = tarn__host_array(room, sizeof *p->order);
  p->trial = tarn__host_array(room, sizeof *p->trial);
  p->crowd = tarn__host_array(room, sizeof *p->crowd);
  if (p->order == NULL || p->trial == NULL || p->crowd == NULL) {
    return TARN_E_NOMEM;
  }
  tarn_status status = measure_crowds(p);
  return status == TARN_OK ? tarn__plan_placed_make(p->in, &p->placed) : status;
}

tarn_status tarn__plan_greedy(const tarn__plan_instance *instance,
                              uint64_t target, tarn__plan_stop *stop,
                              uint64_t *offsets, uint64_t *height) {
  if (*height <= target) return TARN_OK;
  size_t room = instance->item_count;
  if (room == 0) {
    *height = 0;
    return TARN_OK;
  }
  placing p = {.in = instance, .stop = stop, .best = offsets, .height = height};
  tarn_status status = make(&p);
  if (status == TARN_OK) status = try_ways(&p, target);
  tarn__plan_placed_free(&p.placed);
  tarn__host_free_array(p.order, room, sizeof *p.order);
  tarn__host_free_array(p.trial, room, sizeof *p.trial);
  tarn__host_free_array(p.crowd, room, sizeof *p.crowd);
  return status;
}
