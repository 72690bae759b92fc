// The lists that a piece meets: its run of sections consists of nodes, at most
// two on each level. |any| of such a node holds all ranges in the run at or
// below it; |whole| of the nodes above holds the ranges that cover all of them.
// The nodes above are those above the first and above the last section.
//
// |any| of a node includes |any| of its children, so that a range that a node
// knows is known to all above.
//
// Ranges end at multiples of the grain, so that items as close as alignment
// allows touch, and are one range.
#include "plan/placements.h"

#include <assert.h>
#include <string.h>

#include "base/status.h"

// Levels of a tree over less than 2^32 sections.
enum { LEVELS = 33 };

// --- lists of ranges ---------------------------------------------------------

// The first range that ends above |at|.
static uint32_t find_above(const tarn__plan_ranges *set, uint64_t at) {
  return (uint32_t)tarn__plan_first_above(set->list, sizeof *set->list,
                                          offsetof(tarn__plan_range, high),
                                          set->count, at);
}

// |*looked| counts the ranges that were looked at.
static uint64_t lift(const tarn__plan_ranges *set, uint64_t at, uint64_t size,
                     uint64_t alignment, uint64_t *looked) {
  uint32_t first = find_above(set, at);
  uint32_t i =
      tarn__plan_lift(set->list, first, set->count, size, alignment, &at);
  *looked += i - first + 1;
  return at;
}

// For one more range. False: no host memory.
static bool make_room(tarn__plan_placed *placed, tarn__plan_ranges *set) {
  if (set->count < set->room) return true;
  uint32_t room = set->room == 0 ? 2 : 2 * set->room;
  tarn__plan_range *grown =
      tarn__plan_resize(placed->memory, set->list, room, sizeof *grown);
  placed->memory->failed |= grown == NULL;
  if (grown == NULL) return false;
  set->list = grown;
  set->room = room;
  return true;
}

// Returns whether all of it was there before. Without memory it is lost.
static bool add_range(tarn__plan_placed *placed, tarn__plan_ranges *set,
                      uint64_t low, uint64_t high) {
  uint32_t first = low == 0 ? 0 : find_above(set, low - 1);
  uint32_t last = first;
  while (last < set->count && set->list[last].low <= high)
    last++;
  if (last == first + 1 && set->list[first].low <= low &&
      set->list[first].high >= high) {
    return true;
  }
  if (last == first && !make_room(placed, set)) return false;
  if (last > first) {
    if (set->list[first].low < low) low = set->list[first].low;
    if (set->list[last - 1].high > high) high = set->list[last - 1].high;
  }
  memmove(set->list + first + 1, set->list + last,
          (set->count - last) * sizeof *set->list);
  set->list[first] = (tarn__plan_range){low, high};
  set->count = set->count - (last - first) + 1;
  return false;
}

// --- the grain ---------------------------------------------------------------

uint64_t tarn__plan_grain(const tarn__plan_instance *in) {
  uint64_t grain = 0;
  for (size_t i = 0; i < in->item_count && grain != 1; i++)
    grain = tarn__plan_gcd(grain, in->items[i].alignment);
  return grain == 0 ? 1 : grain;
}

// --- the list ----------------------------------------------------------------

static uint64_t lowest_in_list(const tarn__plan_placed *placed,
                               uint32_t index) {
  const tarn__plan_item *item = &placed->in->items[index];
  uint64_t at = 0;
  for (size_t i = 0; i < placed->count; i++) {
    const tarn__plan_lying *other = &placed->list[i];
    if (other->range.high <= at || other->first >= item->last ||
        item->first >= other->last ||
        !tarn__plan_items_meet(placed->in, index, other->item)) {
      continue;
    }
    if (other->range.low >= at + item->size) break;
    at = tarn__plan_align_up(other->range.high, item->alignment);
  }
  return at;
}

// Behind all that lie no higher.
static void add_to_list(tarn__plan_placed *placed, uint32_t index,
                        uint64_t offset) {
  const tarn__plan_item *item = &placed->in->items[index];
  size_t index_at = tarn__plan_first_above(placed->list, sizeof *placed->list,
                                           offsetof(tarn__plan_lying, range),
                                           placed->count, offset);
  tarn__plan_lying *at = placed->list + index_at;
  memmove(at + 1, at, (placed->count++ - index_at) * sizeof *at);
  *at = (tarn__plan_lying){.range = {offset, offset + item->size},
                           .first = item->first,
                           .last = item->last,
                           .item = index};
}

// --- the tree ----------------------------------------------------------------

tarn_status tarn__plan_placed_make(const tarn__plan_instance *in, bool in_list,
                                   tarn__plan_memory *memory,
                                   tarn__plan_placed *p) {
  *p = (tarn__plan_placed){
      .in = in, .memory = memory, .grain = tarn__plan_grain(in), .leaves = 1};
  while (p->leaves < in->section_count)
    p->leaves *= 2;
  p->at = tarn__plan_array(memory, in->item_count + 1, sizeof *p->at);
  if (in_list) {
    p->list = tarn__plan_array(memory, in->item_count + 1, sizeof *p->list);
  } else {
    p->nodes = tarn__plan_array(memory, 2 * p->leaves, sizeof *p->nodes);
  }
  return tarn__plan_memory_status(memory);
}

void tarn__plan_placed_clear(tarn__plan_placed *placed) {
  placed->count = 0;
  for (size_t i = 0; placed->nodes != NULL && i < 2 * placed->leaves; i++) {
    placed->nodes[i].whole.count = 0;
    placed->nodes[i].any.count = 0;
  }
}

// The nodes that make up the run of a piece.
static size_t cover(const tarn__plan_placed *placed,
                    const tarn__plan_piece *piece,
                    tarn__plan_node *out[2 * LEVELS]) {
  size_t count = 0;
  size_t first = placed->leaves + piece->first;
  size_t last = placed->leaves + piece->last;
  for (; first < last; first /= 2, last /= 2) {
    if (first % 2 == 1) out[count++] = &placed->nodes[first++];
    if (last % 2 == 1) out[count++] = &placed->nodes[--last];
  }
  return count;
}

// --- where an item fits ------------------------------------------------------

// The lists that a piece meets; those of large runs, which lift it most, first.
static size_t gather(const tarn__plan_placed *placed,
                     const tarn__plan_piece *piece,
                     const tarn__plan_ranges *out[4 * LEVELS]) {
  tarn__plan_node *nodes[2 * LEVELS];
  size_t count = 0;
  for (size_t i = cover(placed, piece, nodes); i-- > 0;) {
    if (nodes[i]->any.count > 0) out[count++] = &nodes[i]->any;
  }
  size_t left = placed->leaves + piece->first;
  size_t right = placed->leaves + piece->last - 1;
  for (left /= 2, right /= 2; left > 0; left /= 2, right /= 2) {
    const tarn__plan_node *a = &placed->nodes[left];
    const tarn__plan_node *b = &placed->nodes[right];
    if (a->whole.count > 0) out[count++] = &a->whole;
    if (a != b && b->whole.count > 0) out[count++] = &b->whole;
  }
  return count;
}

static uint64_t lift_piece(tarn__plan_placed *placed,
                           const tarn__plan_piece *piece, uint64_t alignment,
                           uint64_t at) {
  const tarn__plan_ranges *sets[4 * LEVELS];
  size_t count = gather(placed, piece, sets);
  size_t agreed = 0;
  for (size_t i = 0; agreed < count; i = i + 1 == count ? 0 : i + 1) {
    uint64_t higher =
        lift(sets[i], at, piece->size, alignment, &placed->looked);
    agreed = higher == at ? agreed + 1 : 1;
    at = higher;
  }
  return at;
}

uint64_t tarn__plan_placed_lowest(tarn__plan_placed *placed, uint32_t index) {
  if (placed->nodes == NULL) return lowest_in_list(placed, index);
  const tarn__plan_item *item = &placed->in->items[index];
  const tarn__plan_piece *pieces = tarn__plan_pieces(placed->in, item);
  uint64_t at = 0;
  uint32_t agreed = 0;
  for (uint32_t i = 0; agreed < item->piece_count;
       i = i + 1 == item->piece_count ? 0 : i + 1) {
    uint64_t higher = lift_piece(placed, &pieces[i], item->alignment, at);
    agreed = higher == at ? agreed + 1 : 1;
    at = higher;
  }
  return at;
}

// --- putting one down --------------------------------------------------------

static void add_piece(tarn__plan_placed *placed, const tarn__plan_piece *piece,
                      uint64_t offset) {
  tarn__plan_node *nodes[2 * LEVELS];
  size_t count = cover(placed, piece, nodes);
  uint64_t high = tarn__plan_align_up(offset + piece->size, placed->grain);
  for (size_t i = 0; i < count; i++) {
    (void)add_range(placed, &nodes[i]->whole, offset, high);
    // It and all above know the range, from the first that knew it.
    bool known = false;
    for (size_t at = (size_t)(nodes[i] - placed->nodes); at > 0 && !known;
         at /= 2)
      known = add_range(placed, &placed->nodes[at].any, offset, high);
  }
}

tarn_status tarn__plan_placed_add(tarn__plan_placed *placed, uint32_t index,
                                  uint64_t offset) {
  placed->at[index] = offset;
  if (placed->nodes == NULL) {
    add_to_list(placed, index, offset);
    return TARN_OK;
  }
  const tarn__plan_item *item = &placed->in->items[index];
  const tarn__plan_piece *pieces = tarn__plan_pieces(placed->in, item);
  for (uint32_t i = 0; i < item->piece_count; i++)
    add_piece(placed, &pieces[i], offset);
  return tarn__plan_memory_status(placed->memory);
}

// --- taking one out ----------------------------------------------------------

// Whether all of it is in one range; |*out_index|: which.
static bool covers(const tarn__plan_ranges *set, uint64_t low, uint64_t high,
                   uint32_t *out_index) {
  uint32_t index = *out_index = find_above(set, low);
  return index < set->count && set->list[index].low <= low &&
         set->list[index].high >= high;
}

// Cuts [low, high) out of the range that covers it.
static void cut_range(tarn__plan_placed *placed, tarn__plan_ranges *set,
                      uint64_t low, uint64_t high) {
  uint32_t index;
  bool covered = covers(set, low, high, &index);
  assert(covered || placed->memory->failed);
  if (!covered || !make_room(placed, set)) return;
  tarn__plan_range *at = &set->list[index];
  tarn__plan_range was = *at;
  tarn__plan_range kept[2];
  uint32_t count = 0;
  if (was.low < low) kept[count++] = (tarn__plan_range){was.low, low};
  if (was.high > high) kept[count++] = (tarn__plan_range){high, was.high};
  memmove(at + count, at + 1, (set->count - index - 1) * sizeof *at);
  memcpy(at, kept, count * sizeof *at);
  set->count = set->count - 1 + count;
}

// Adds what |from| has between |low| and |high|.
static void add_part(tarn__plan_placed *placed, tarn__plan_ranges *to,
                     const tarn__plan_ranges *from, uint64_t low,
                     uint64_t high) {
  for (uint32_t i = find_above(from, low);
       i < from->count && from->list[i].low < high; i++) {
    const tarn__plan_range *r = &from->list[i];
    (void)add_range(placed, to, r->low < low ? low : r->low,
                    tarn__lesser(r->high, high));
  }
}

// The node at |index| forgets the range, unless something else of it or below
// it is there. True: all of it is.
static bool keeps(tarn__plan_placed *placed, size_t index, uint64_t low,
                  uint64_t high) {
  tarn__plan_node *node = &placed->nodes[index];
  const tarn__plan_ranges *parts[3] = {&node->whole};
  int count = 1;
  uint32_t at;
  if (index < placed->leaves) {
    parts[count++] = &placed->nodes[2 * index].any;
    parts[count++] = &placed->nodes[2 * index + 1].any;
  }
  for (int i = 0; i < count; i++)
    if (covers(parts[i], low, high, &at)) return true;
  cut_range(placed, &node->any, low, high);
  for (int i = 0; i < count; i++)
    add_part(placed, &node->any, parts[i], low, high);
  return false;
}

// A node above several of a piece's forgets the range after the last of them.
static void remove_piece(tarn__plan_placed *placed,
                         const tarn__plan_piece *piece, uint64_t offset) {
  tarn__plan_node *nodes[2 * LEVELS];
  size_t count = cover(placed, piece, nodes);
  uint64_t high = tarn__plan_align_up(offset + piece->size, placed->grain);
  for (size_t i = 0; i < count; i++) {
    bool kept = false;
    cut_range(placed, &nodes[i]->whole, offset, high);
    for (size_t at = (size_t)(nodes[i] - placed->nodes); at > 0 && !kept;
         at /= 2)
      kept = keeps(placed, at, offset, high);
  }
}

tarn_status tarn__plan_placed_remove(tarn__plan_placed *placed,
                                     uint32_t index) {
  const tarn__plan_item *item = &placed->in->items[index];
  const tarn__plan_piece *pieces = tarn__plan_pieces(placed->in, item);
  for (uint32_t i = 0; i < item->piece_count; i++)
    remove_piece(placed, &pieces[i], placed->at[index]);
  placed->at[index] = TARN__PLAN_NOWHERE;
  return tarn__plan_memory_status(placed->memory);
}

// --- a whole plan ------------------------------------------------------------

static tarn_status place_fixed(tarn__plan_placed *placed) {
  const tarn__plan_instance *in = placed->in;
  tarn__plan_placed_clear(placed);
  memset(placed->at, 0xff, in->item_count * sizeof *placed->at);
  for (uint32_t i = 0; i < in->item_count; i++) {
    if (!in->items[i].fixed) continue;
    TARN__TRY(tarn__plan_placed_add(placed, i, in->items[i].offset));
  }
  return TARN_OK;
}

tarn_status tarn__plan_place_all(tarn__plan_placing *p, uint64_t limit) {
  const tarn__plan_instance *in = p->placed.in;
  p->made = UINT64_MAX;
  TARN__TRY(place_fixed(&p->placed));
  for (size_t i = 0; i < in->item_count; i++) {
    uint32_t index = p->keys.order[i].item;
    if (in->items[index].fixed) continue;
    if (p->is_over(p->user)) return TARN_OK;
    uint64_t at = tarn__plan_placed_lowest(&p->placed, index);
    if (at + in->items[index].size >= limit) return TARN_OK;
    p->nodes++;
    TARN__TRY(tarn__plan_placed_add(&p->placed, index, at));
  }
  tarn__plan_keep_lower(p);
  return TARN_OK;
}

void tarn__plan_keep_lower(tarn__plan_placing *p) {
  const tarn__plan_instance *in = p->placed.in;
  p->made = tarn__plan_instance_height(in, p->placed.at);
  if (p->made >= *p->height) return;
  memcpy(p->best, p->placed.at, in->item_count * sizeof *p->best);
  *p->height = p->made;
  if (p->stop != NULL) p->stop->watch_ns = 0;
}

tarn_status tarn__plan_placing_make(const tarn__plan_instance *in, bool in_list,
                                    tarn__plan_memory *memory,
                                    tarn__plan_placing *p) {
  TARN__TRY(tarn__plan_sort_keys_make(in, memory, &p->keys));
  return tarn__plan_placed_make(in, in_list, memory, &p->placed);
}
