// A treap of extents: see extents.h.
//
// Invariants:
//   * In a subtree, what is on the left is before its root, what is on the
//     right behind it; no priority is above its parent's.
//   * room is right in every node that is reached from the root.
//   * No two free extents touch.
#include "extents.h"

#include <assert.h>

#include "base/hostmem.h"

typedef tarn__sim_extent extent;
typedef tarn__sim_extents tree;

static bool is_free(const extent *x) {
  return x->serial == 0;
}

static size_t larger(size_t a, size_t b) {
  return a > b ? a : b;
}

static size_t room_of(const extent *x) {
  return x != NULL ? x->room : 0;
}

// --- the tree --------------------------------------------------------------

static void update(extent *x) {
  size_t own = is_free(x) ? x->size : 0;
  x->room = larger(own, larger(room_of(x->left), room_of(x->right)));
}

// Into what stands before |address| and what stands at it or behind.
static void split(extent *x, uint64_t address, extent **before,
                  extent **behind) {
  if (x == NULL) {
    *before = *behind = NULL;
  } else if (x->address < address) {
    split(x->right, address, &x->right, behind);
    *before = x;
    update(x);
  } else {
    split(x->left, address, before, &x->left);
    *behind = x;
    update(x);
  }
}

static extent *join(extent *before, extent *behind) {
  if (before == NULL) return behind;
  if (behind == NULL) return before;
  if (before->priority > behind->priority) {
    before->right = join(before->right, behind);
    update(before);
    return before;
  }
  behind->left = join(before, behind->left);
  update(behind);
  return behind;
}

static void link_extent(tree *t, extent *x) {
  extent *before = NULL;
  extent *behind = NULL;
  x->left = x->right = NULL;
  update(x);
  split(t->root, x->address, &before, &behind);
  t->root = join(join(before, x), behind);
}

static void unlink_extent(tree *t, const extent *x) {
  extent *before = NULL;
  extent *self = NULL;
  extent *behind = NULL;
  split(t->root, x->address, &before, &behind);
  split(behind, x->address + 1, &self, &behind);
  assert(self == x);
  t->root = join(before, behind);
}

// --- nodes -----------------------------------------------------------------

// xorshift: any sequence without a pattern will do.
static uint32_t next_priority(tree *t) {
  uint32_t r = t->random != 0 ? t->random : 2463534242u;
  r ^= r << 13;
  r ^= r >> 17;
  r ^= r << 5;
  t->random = r;
  return r;
}

static extent *new_extent(tree *t) {
  extent *x = tarn__host_alloc(sizeof *x);
  if (x != NULL) x->priority = next_priority(t);
  return x;
}

static void free_extent(extent *x) {
  if (x != NULL) tarn__host_free(x, sizeof *x);
}

extent *tarn__sim_extents_add(tree *t, tarn__sim_run run, size_t asked,
                              uint64_t serial) {
  extent *x = new_extent(t);
  if (x == NULL) return NULL;
  x->address = run.address;
  x->size = run.size;
  x->asked = asked;
  x->serial = serial;
  link_extent(t, x);
  return x;
}

void tarn__sim_extents_remove(tree *t, extent *x) {
  unlink_extent(t, x);
  free_extent(x);
}

extent *tarn__sim_extents_any(const tree *t) {
  return t->root;
}

void tarn__sim_extents_clear(tree *t) {
  while (t->root != NULL)
    tarn__sim_extents_remove(t, t->root);
  t->cursor = 0;
}

// --- finding ---------------------------------------------------------------

extent *tarn__sim_extents_find(const tree *t, uint64_t address) {
  extent *last = NULL;  // that begins at |address| or before
  extent *x = t->root;
  while (x != NULL) {
    bool before = x->address <= address;
    if (before) last = x;
    x = before ? x->right : x->left;
  }
  return last != NULL && address - last->address < last->size ? last : NULL;
}

extent *tarn__sim_extents_from(const tree *t, uint64_t address) {
  extent *found = tarn__sim_extents_find(t, address);
  extent *x = found == NULL ? t->root : NULL;
  while (x != NULL) {
    bool behind = x->address > address;
    if (behind) found = x;
    x = behind ? x->left : x->right;
  }
  return found;
}

extent *tarn__sim_extents_in(const tree *t, tarn__sim_run run) {
  extent *x = tarn__sim_extents_from(t, run.address);
  if (x == NULL || x->address <= run.address) return x;
  return x->address - run.address < run.size ? x : NULL;
}

// What is looked for: so many bytes, at a multiple of |align|.
typedef struct need {
  size_t size;
  size_t align;
} need;

// Whether |x| has it at |from| or behind, and where.
static bool has_room(const extent *x, uint64_t from, need n, uint64_t *out_at) {
  if (!is_free(x)) return false;
  uint64_t begin = larger(from, x->address);
  if (!tarn_size_align_up(begin, n.align, out_at)) return false;
  size_t before = (size_t)(*out_at - x->address);
  return before <= x->size && n.size <= x->size - before;
}

// The first free extent that begins at |from| or behind and has it. Where what
// is free begins at multiples of |align|, no subtree is searched in vain.
static extent *first_fit(extent *x, uint64_t from, need n, uint64_t *out_at) {
  if (room_of(x) < n.size) return NULL;
  if (x->address < from) return first_fit(x->right, from, n, out_at);
  extent *found = first_fit(x->left, from, n, out_at);
  if (found != NULL) return found;
  if (has_room(x, 0, n, out_at)) return x;
  return first_fit(x->right, from, n, out_at);
}

// The free extent to take of, and where in it.
static extent *choose(const tree *t, need n, uint64_t *out_at) {
  extent *x = tarn__sim_extents_find(t, t->cursor);
  if (x != NULL && has_room(x, t->cursor, n, out_at)) return x;
  x = first_fit(t->root, t->cursor, n, out_at);
  return x != NULL ? x : first_fit(t->root, 0, n, out_at);
}

// --- taking and giving -----------------------------------------------------

// Puts |x| back as |run|, or frees it where that is empty.
static void keep(tree *t, extent *x, tarn__sim_run run) {
  if (run.size == 0) {
    free_extent(x);
    return;
  }
  x->address = run.address;
  x->size = run.size;
  link_extent(t, x);
}

extent *tarn__sim_extents_take(tree *t, size_t size, size_t align, size_t asked,
                               uint64_t serial) {
  uint64_t at = 0;
  extent *x = choose(t, (need){size, align}, &at);
  if (x == NULL) return NULL;
  extent *taken = new_extent(t);
  extent *rest = new_extent(t);
  if (taken == NULL || rest == NULL) {
    free_extent(taken);
    free_extent(rest);
    return NULL;
  }
  uint64_t end = x->address + x->size;
  unlink_extent(t, x);
  keep(t, x, (tarn__sim_run){x->address, (size_t)(at - x->address)});
  taken->asked = asked;
  taken->serial = serial;
  keep(t, taken, (tarn__sim_run){at, size});
  t->cursor = at + size;
  keep(t, rest, (tarn__sim_run){t->cursor, (size_t)(end - t->cursor)});
  return taken;
}

// Adds |neighbour|, if it is there and free, to |run|.
static void absorb(tree *t, extent *neighbour, tarn__sim_run *run) {
  if (neighbour == NULL || !is_free(neighbour)) return;
  if (neighbour->address < run->address) run->address = neighbour->address;
  run->size += neighbour->size;
  tarn__sim_extents_remove(t, neighbour);
}

tarn__sim_run tarn__sim_extents_give(tree *t, extent *x) {
  tarn__sim_run run = {x->address, x->size};
  unlink_extent(t, x);
  absorb(t, tarn__sim_extents_find(t, run.address - 1), &run);
  absorb(t, tarn__sim_extents_find(t, run.address + run.size), &run);
  x->asked = 0;
  x->serial = 0;
  x->record = NULL;
  keep(t, x, run);
  return run;
}
