// range_map.h - disjoint ranges of numbers in order: addresses of a device,
// bytes of a buffer.
//
// The user's own structs are the nodes: a tarn__range_map_node is their first
// member, and holds where a range starts. Where it ends is another member of
// the user's, so that a range can end at any number that fits, and a comparison
// is a few inline instructions.
//
//   typedef struct block {
//     tarn__range_map_node node;
//     size_t size;
//   } block;
//
//   block *b = (block *)tarn__range_map_at(&map, address);
//   bool hit = b != NULL && address - b->node.start < b->size;
//
// Cost: O(log n) to find, expected O(1) more to insert and remove there and to
// go to a neighbour, for any order of starts. No recursion and no memory.
//
// Threads: the owner guards the map.
#ifndef TARN_BASE_RANGE_MAP_H_
#define TARN_BASE_RANGE_MAP_H_

#include "tarn/base.h"

typedef struct tarn__range_map_node {
  uint64_t start;  // may change, while the order stays
  struct tarn__range_map_node *left;
  struct tarn__range_map_node *right;
  struct tarn__range_map_node *parent;
  uint32_t priority;
  uint32_t value;  // the user's: there is room for it
} tarn__range_map_node;

// Computes what |node| keeps about its subtree, from itself and its children.
typedef void tarn__range_map_summary(tarn__range_map_node *node);

// Zero-filled: empty.
typedef struct tarn__range_map {
  tarn__range_map_node *root;
  size_t count;
  uint64_t random;  // the seed of the priorities; a secret one where the starts
                    // come from a file. 0: a constant
  tarn__range_map_summary *summarize;  // NULL: nodes keep nothing
} tarn__range_map;

// The last range that starts at |place| or before; NULL: none.
static inline tarn__range_map_node *tarn__range_map_at(
    const tarn__range_map *map, uint64_t place) {
  tarn__range_map_node *found = NULL;
  for (tarn__range_map_node *node = map->root; node != NULL;) {
    bool starts = node->start <= place;
    if (starts) found = node;
    node = starts ? node->right : node->left;
  }
  return found;
}

// The next range; NULL: none.
static inline tarn__range_map_node *tarn__range_map_next(
    const tarn__range_map_node *node) {
  tarn__range_map_node *next = node->right;
  if (next != NULL) {
    while (next->left != NULL)
      next = next->left;
    return next;
  }
  for (next = node->parent; next != NULL && next->right == node;
       next = next->parent)
    node = next;
  return next;
}

// The range before |node|; NULL: none.
static inline tarn__range_map_node *tarn__range_map_previous(
    const tarn__range_map_node *node) {
  tarn__range_map_node *before = node->left;
  if (before != NULL) {
    while (before->right != NULL)
      before = before->right;
    return before;
  }
  for (before = node->parent; before != NULL && before->left == node;
       before = before->parent)
    node = before;
  return before;
}

// The range behind |node|; behind NULL: the first. NULL: none.
static inline tarn__range_map_node *tarn__range_map_behind(
    const tarn__range_map *map, const tarn__range_map_node *node) {
  if (node != NULL) return tarn__range_map_next(node);
  tarn__range_map_node *first = map->root;
  while (first != NULL && first->left != NULL)
    first = first->left;
  return first;
}

// Inserts |node|, whose |start| is set, between neighbours; NULL: it becomes
// the first or the last.
void tarn__range_map_insert_between(tarn__range_map *map,
                                    tarn__range_map_node *prev,
                                    tarn__range_map_node *next,
                                    tarn__range_map_node *node);

// Inserts |node|, whose |start| is set, where it belongs.
static inline void tarn__range_map_insert(tarn__range_map *map,
                                          tarn__range_map_node *node) {
  tarn__range_map_node *prev = tarn__range_map_at(map, node->start);
  tarn__range_map_insert_between(map, prev, tarn__range_map_behind(map, prev),
                                 node);
}

void tarn__range_map_remove(tarn__range_map *map, tarn__range_map_node *node);

// Summarizes |node| and all above it. To be called after a change of what
// |summarize| reads in the node itself. NULL is allowed.
void tarn__range_map_update(const tarn__range_map *map,
                            tarn__range_map_node *node);

// Walks the map; the text of what is wrong, or NULL. For tests.
const char *tarn__range_map_check(const tarn__range_map *map);

#endif  // TARN_BASE_RANGE_MAP_H_
