// A treap: a search tree by start that is a heap by random priorities, so that
// no order of starts makes it deep.
//
// Invariants: a subtree's left side starts before its root, its right side
// behind it; no priority is above the parent's; what |summarize| computes is up
// to date in each node.
#include "base/range_map.h"

#include <assert.h>

typedef tarn__range_map map;
typedef tarn__range_map_node node;

// xorshift64.
static uint32_t next_priority(map *m) {
  uint64_t state = m->random != 0 ? m->random : 0x9e3779b97f4a7c15;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  m->random = state;
  return (uint32_t)(state >> 32);
}

// The pointer that leads to |n|: its parent's, or the root.
static node **link_to(map *m, const node *n) {
  node *parent = n->parent;
  if (parent == NULL) return &m->root;
  return parent->left == n ? &parent->left : &parent->right;
}

// Puts |n| in its parent's place, and the parent below it.
//
//        (p)              (n)            (n)               (p)
//       /   \     ──►    /   \    and   /   \     ──►     /   \         .
//     (n)    c          a    (p)       (p)   c           a    (n)
//    /   \                  /   \     /   \                  /   \      .
//   a     b                b     c   a     b                b     c
static void rotate_up(map *m, node *n) {
  node *parent = n->parent;
  assert(parent != NULL);
  bool is_left = parent->left == n;
  node *middle = is_left ? n->right : n->left;
  *link_to(m, parent) = n;
  n->parent = parent->parent;
  parent->parent = n;
  if (middle != NULL) middle->parent = parent;
  if (is_left) {
    parent->left = middle;
    n->right = parent;
  } else {
    parent->right = middle;
    n->left = parent;
  }
  if (m->summarize != NULL) m->summarize(parent);
}

void tarn__range_map_update(const map *m, node *n) {
  for (; m->summarize != NULL && n != NULL; n = n->parent)
    m->summarize(n);
}

// If |prev| has nodes to its right, |next| is the leftmost of them and has none
// to its left.
void tarn__range_map_insert_between(map *m, node *prev, node *next, node *n) {
  bool is_right = prev != NULL && prev->right == NULL;
  n->priority = next_priority(m);
  n->left = n->right = NULL;
  n->parent = is_right ? prev : next;
  if (n->parent == NULL) {
    m->root = n;
  } else {
    *(is_right ? &n->parent->right : &n->parent->left) = n;
  }
  while (n->parent != NULL && n->parent->priority < n->priority)
    rotate_up(m, n);
  tarn__range_map_update(m, n);
  m->count++;
}

void tarn__range_map_remove(map *m, node *n) {
  while (n->left != NULL && n->right != NULL)
    rotate_up(m, n->left->priority > n->right->priority ? n->left : n->right);
  node *child = n->left != NULL ? n->left : n->right;
  *link_to(m, n) = child;
  if (child != NULL) child->parent = n->parent;
  tarn__range_map_update(m, n->parent);
  m->count--;
}

// --- the walker --------------------------------------------------------------

static bool is_child(const node *child, const node *parent) {
  return child == NULL ||
         (child->parent == parent && child->priority <= parent->priority);
}

const char *tarn__range_map_check(const map *m) {
  const node *last = NULL;
  size_t count = 0;
  if (m->root != NULL && m->root->parent != NULL)
    return "the root has a parent";
  for (const node *n = tarn__range_map_behind(m, NULL); n != NULL; count++) {
    if (last != NULL && last->start >= n->start) return "ranges out of order";
    if (!is_child(n->left, n) || !is_child(n->right, n))
      return "the tree is no heap, or torn";
    last = n;
    n = tarn__range_map_next(n);
  }
  return count == m->count ? NULL : "ranges are miscounted";
}
