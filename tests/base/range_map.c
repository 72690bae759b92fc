// The range map against an array with one entry for each place.
#include "base/range_map.h"

#include <string.h>

#include "support/run.h"

enum { PLACES = 97, STEPS = 20000, MANY = 20000 };

typedef struct piece {
  tarn__range_map_node node;
  size_t size;
  size_t largest;  // in the subtree
} piece;

static tarn__range_map map;
static piece pieces[PLACES];  // by start
static piece *owner[PLACES];  // NULL: in no piece
static uint64_t state = 88172645463325252u;

static size_t random_below(size_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)(state % bound);
}

static size_t largest_of(const tarn__range_map_node *node) {
  return node != NULL ? ((const piece *)node)->largest : 0;
}

static void summarize(tarn__range_map_node *node) {
  piece *p = (piece *)node;
  p->largest = p->size;
  if (largest_of(node->left) > p->largest) p->largest = largest_of(node->left);
  if (largest_of(node->right) > p->largest)
    p->largest = largest_of(node->right);
}

static void own(const piece *p, piece *now) {
  for (size_t i = 0; i < p->size; i++)
    owner[p->node.start + i] = now;
}

static void add(size_t start) {
  piece *p = &pieces[start];
  p->node.start = start;
  for (p->size = 1; p->size < 9 && start + p->size < PLACES &&
                    owner[start + p->size] == NULL;)
    p->size++;
  own(p, p);
  tarn__range_map_insert(&map, &p->node);
}

static void take_out(piece *p) {
  own(p, NULL);
  tarn__range_map_remove(&map, &p->node);
}

static void cut(piece *p) {
  if (p->size == 1) return;
  piece *rest = p + 1;
  *rest = (piece){.node.start = p->node.start + 1, .size = p->size - 1};
  own(rest, rest);
  p->size = 1;
  tarn__range_map_update(&map, &p->node);
  tarn__range_map_insert_between(&map, &p->node, tarn__range_map_next(&p->node),
                                 &rest->node);
}

static void compare(void) {
  const char *wrong = tarn__range_map_check(&map);
  ck_assert_msg(wrong == NULL, "%s", wrong);
  const tarn__range_map_node *last = NULL;
  size_t largest = 0;
  for (size_t i = 0; i < PLACES; i++) {
    if (owner[i] == &pieces[i]) {
      require(tarn__range_map_behind(&map, last) == &pieces[i].node);
      require(tarn__range_map_previous(&pieces[i].node) == last);
      last = &pieces[i].node;
      if (pieces[i].size > largest) largest = pieces[i].size;
    }
    require(tarn__range_map_at(&map, i) == last);
  }
  require(tarn__range_map_behind(&map, last) == NULL);
  require(largest_of(map.root) == (map.summarize != NULL ? largest : 0));
}

static void play(tarn__range_map_summary *summary) {
  memset(pieces, 0, sizeof pieces);
  memset(owner, 0, sizeof owner);
  map = (tarn__range_map){.summarize = summary};
  compare();
  for (int i = 0; i < STEPS; i++) {
    size_t place = random_below(PLACES);
    if (owner[place] == NULL) {
      add(place);
    } else if (random_below(2) == 0) {
      cut(owner[place]);
    } else {
      take_out(owner[place]);
    }
    compare();
  }
}

TEST(any_operations_agree_with_an_array) {
  play(NULL);
  play(summarize);
}

TEST(starts_in_order_make_no_deep_tree) {
  static tarn__range_map_node nodes[MANY];
  size_t deepest = 0;
  map = (tarn__range_map){.random = 0};
  for (size_t i = 0; i < MANY; i++) {
    nodes[i].start = i;
    tarn__range_map_insert(&map, &nodes[i]);
  }
  for (size_t i = 0; i < MANY; i++) {
    size_t depth = 0;
    for (const tarn__range_map_node *n = &nodes[i]; n != NULL; n = n->parent)
      depth++;
    if (depth > deepest) deepest = depth;
  }
  ck_assert_uint_lt(deepest, 60);  // 2 ln n is 20 on average
}

TEST(ranges_reach_to_the_last_number) {
  tarn__range_map_node nodes[2] = {{.start = 0}, {.start = UINT64_MAX}};
  map = (tarn__range_map){.random = 0};
  ck_assert_ptr_null(tarn__range_map_at(&map, UINT64_MAX));
  tarn__range_map_insert(&map, &nodes[1]);
  ck_assert_ptr_null(tarn__range_map_at(&map, UINT64_MAX - 1));
  tarn__range_map_insert(&map, &nodes[0]);
  ck_assert_ptr_eq(tarn__range_map_at(&map, UINT64_MAX), &nodes[1]);
  ck_assert_ptr_eq(tarn__range_map_at(&map, UINT64_MAX - 1), &nodes[0]);
}
