// Ranges in a treap: a search tree by address that is a heap by priorities,
// which are random, so that no order of addresses makes it deep.
//
// Invariants: ranges do not overlap, so that their order by first and by last
// address is one; a node's priority is not below those of its children; node 0
// is none.
#include "trace/ranges.h"

#include <assert.h>

#include "base/intern.h"
#include "base/status.h"

typedef struct node {
  tarn__trace_range_entry range;
  uint32_t priority;
  uint32_t left;
  uint32_t right;
} node;

void tarn__ranges_init(tarn__trace_ranges *ranges, tarn__budget *budget) {
  *ranges = (tarn__trace_ranges){.budget = budget,
                                 .random = tarn__hash_seed() | 1,
                                 .nodes = TARN__ARRAY_OF(node)};
}

void tarn__ranges_deinit(tarn__trace_ranges *ranges) {
  tarn__array_free(ranges->budget, &ranges->nodes);
  ranges->root = ranges->spare = 0;
}

static node *node_at(const tarn__trace_ranges *ranges, uint32_t number) {
  return (node *)ranges->nodes.items + number;
}

static uint32_t draw(tarn__trace_ranges *ranges) {
  uint64_t state = ranges->random;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  ranges->random = state;
  return (uint32_t)(state >> 32);
}

bool tarn__ranges_find(const tarn__trace_ranges *ranges, uint64_t first,
                       uint64_t last, tarn__trace_range_entry *out_range) {
  bool found = false;
  for (uint32_t at = ranges->root; at != 0;) {
    const node *here = node_at(ranges, at);
    if (here->range.last < first) {
      at = here->right;
      continue;
    }
    if (here->range.first <= last) {
      *out_range = here->range;
      found = true;
    }
    at = here->left;  // a lower one may do as well
  }
  return found;
}

// --- changes ---------------------------------------------------------------

static tarn_status make_node(tarn__trace_ranges *ranges, uint32_t *out_number) {
  void *fresh = NULL;
  *out_number = ranges->spare;
  if (ranges->spare != 0) {
    ranges->spare = node_at(ranges, ranges->spare)->left;
    return TARN_OK;
  }
  size_t count = ranges->nodes.count == 0 ? 2 : 1;
  if (ranges->nodes.count >= UINT32_MAX - 1) {
    return tarn__fail(TARN_E_UNSUPPORTED, "%s: more than 2^32 ranges",
                      ranges->budget->name);
  }
  tarn_status status =
      tarn__array_grow(ranges->budget, &ranges->nodes, count, &fresh);
  if (status == TARN_OK) *out_number = (uint32_t)ranges->nodes.count - 1;
  return status;
}

// Parts the tree at |root| into what is below |first| and what is not.
static void split(tarn__trace_ranges *ranges, uint32_t root, uint64_t first,
                  uint32_t *below, uint32_t *above) {
  while (root != 0) {
    node *here = node_at(ranges, root);
    if (here->range.first < first) {
      *below = root;
      below = &here->right;
      root = here->right;
    } else {
      *above = root;
      above = &here->left;
      root = here->left;
    }
  }
  *below = *above = 0;
}

// One tree of two, all of |below| being below all of |above|.
static void join(tarn__trace_ranges *ranges, uint32_t below, uint32_t above,
                 uint32_t *root) {
  while (below != 0 && above != 0) {
    if (node_at(ranges, below)->priority > node_at(ranges, above)->priority) {
      *root = below;
      root = &node_at(ranges, below)->right;
      below = *root;
    } else {
      *root = above;
      root = &node_at(ranges, above)->left;
      above = *root;
    }
  }
  *root = below != 0 ? below : above;
}

// The link to the range that begins at |first|, or to where the search for it
// meets a node of less than |priority|.
static uint32_t *descend(tarn__trace_ranges *ranges, uint64_t first,
                         uint64_t priority) {
  uint32_t *link = &ranges->root;
  while (*link != 0) {
    node *here = node_at(ranges, *link);
    if (here->range.first == first || here->priority < priority) break;
    link = first < here->range.first ? &here->left : &here->right;
  }
  return link;
}

tarn_status tarn__ranges_put(tarn__trace_ranges *ranges,
                             tarn__trace_range_entry range) {
  uint32_t number = 0;
  tarn_status status = make_node(ranges, &number);
  if (status != TARN_OK) return status;
  node *fresh = node_at(ranges, number);
  *fresh = (node){.range = range, .priority = draw(ranges)};
  uint32_t *link = descend(ranges, range.first, fresh->priority);
  split(ranges, *link, range.first, &fresh->left, &fresh->right);
  *link = number;
  return TARN_OK;
}

void tarn__ranges_remove(tarn__trace_ranges *ranges, uint64_t first) {
  uint32_t *link = descend(ranges, first, 0);
  uint32_t number = *link;
  if (number == 0) return;
  node *gone = node_at(ranges, number);
  join(ranges, gone->left, gone->right, link);
  *gone = (node){.left = ranges->spare};
  ranges->spare = number;
}

tarn_status tarn__ranges_lay(tarn__trace_ranges *ranges,
                             tarn__trace_range_entry range) {
  tarn__trace_range_entry old;
  tarn_status status = TARN_OK;
  while (status == TARN_OK &&
         tarn__ranges_find(ranges, range.first, range.last, &old)) {
    tarn__trace_range_entry rest = old;
    tarn__ranges_remove(ranges, old.first);
    if (old.first < range.first) {
      rest.last = range.first - 1;
      status = tarn__ranges_put(ranges, rest);
    }
    if (status == TARN_OK && old.last > range.last) {
      rest = old;
      rest.first = range.last + 1;
      status = tarn__ranges_put(ranges, rest);
    }
  }
  return status == TARN_OK ? tarn__ranges_put(ranges, range) : status;
}
