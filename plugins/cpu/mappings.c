// Mappings by address: found, cut and joined.
//
//   before    [ a                ][ b        ]
//   cut       [ a   ][ c         ][ b        ]     b was moved here, so that
//   join      [ a                ][ b        ]     it stays one of its own
//
// Invariant: mappings do not overlap; each is in one range. Only one without a
// handle is ever cut, for which a handle is spent first.
#include "mappings.h"

#include <assert.h>

#include "base/hostmem.h"

static tarn__range_map mappings;
static size_t apart;  // those that do not go on, for the kernel, the one before
static tarn__cpu_mapping *newest;  // unless it was taken out: most pages are
                                   // mapped one behind the other

// --- finding ---------------------------------------------------------------

tarn__cpu_mapping *tarn__cpu_mapping_at(uint64_t addr) {
  if (newest != NULL && tarn__cpu_mapping_end(newest) == addr) {
    const tarn__range_map_node *next = tarn__range_map_next(&newest->node);
    if (next == NULL || next->start > addr) return newest;
  }
  return (tarn__cpu_mapping *)tarn__range_map_at(&mappings, addr);
}

tarn__cpu_mapping *tarn__cpu_mapping_behind(const tarn__cpu_mapping *m,
                                            uint64_t end) {
  if (m != NULL && tarn__cpu_mapping_end(m) >= end) return NULL;
  tarn__range_map_node *next =
      tarn__range_map_behind(&mappings, m != NULL ? &m->node : NULL);
  return next != NULL && next->start < end ? (tarn__cpu_mapping *)next : NULL;
}

tarn__cpu_mapping *tarn__cpu_mapping_first(uint64_t addr, uint64_t end) {
  tarn__cpu_mapping *m = tarn__cpu_mapping_at(addr);
  return tarn__cpu_mapping_holds(m, addr) ? m
                                          : tarn__cpu_mapping_behind(m, end);
}

tarn__cpu_mapping *tarn__cpu_mapping_any(void) {
  return (tarn__cpu_mapping *)mappings.root;
}

bool tarn__cpu_mappings_are_many(size_t most) {
  return apart >= most / 2;
}

// --- what the kernel has ---------------------------------------------------

bool tarn__cpu_mapping_is_private(const tarn__cpu_mapping *m) {
  return m->backing == NULL || m->backing->fd < 0;
}

// Whether |b|, which is behind |a|, is in the same mapping of the kernel.
static bool goes_on(const tarn__cpu_mapping *a, const tarn__cpu_mapping *b) {
  return tarn__cpu_mapping_is_private(a) && tarn__cpu_mapping_is_private(b) &&
         a->range == b->range && a->node.value == b->node.value &&
         tarn__cpu_mapping_end(a) == b->node.start &&
         a->origin + a->size == b->origin;
}

static size_t count_apart(const tarn__cpu_mapping *m) {
  if (m == NULL) return 0;
  const tarn__range_map_node *before = tarn__range_map_previous(&m->node);
  return before == NULL || !goes_on((const tarn__cpu_mapping *)before, m);
}

// How much of |apart| is because of |m| and of what is behind it: to be taken
// off before one of them changes, and added behind that.
static size_t share_of(const tarn__cpu_mapping *m) {
  const tarn__range_map_node *next = tarn__range_map_next(&m->node);
  return count_apart(m) + count_apart((const tarn__cpu_mapping *)next);
}

void tarn__cpu_mapping_set_access(tarn__cpu_mapping *m,
                                  tarn__os_access access) {
  apart -= share_of(m);
  m->node.value = access;
  apart += share_of(m);
}

// --- entering and leaving --------------------------------------------------

static void insert_behind(tarn__cpu_mapping *before, tarn__cpu_mapping *m) {
  tarn__range_map_node *place = before != NULL ? &before->node : NULL;
  tarn__range_map_node *behind = tarn__range_map_behind(&mappings, place);
  apart -= count_apart((const tarn__cpu_mapping *)behind);
  tarn__range_map_insert_between(&mappings, place, behind, &m->node);
  apart += share_of(m);
}

static void remove_it(tarn__cpu_mapping *m) {
  const tarn__range_map_node *behind = tarn__range_map_next(&m->node);
  apart -= share_of(m);
  tarn__range_map_remove(&mappings, &m->node);
  apart += count_apart((const tarn__cpu_mapping *)behind);
}

tarn__cpu_mapping *tarn__cpu_mapping_add(const tarn__common_extent *range,
                                         uint64_t addr,
                                         tarn__cpu_backing *backing) {
  tarn__cpu_mapping *m = tarn__host_alloc(sizeof *m);
  if (m == NULL) return NULL;
  *m = (tarn__cpu_mapping){
      .node = {.start = addr, .value = TARN__OS_NONE},
      .size = backing->size,
      .backing = backing,
      .origin = addr,
      .range = range,
  };
  backing->at = addr;
  insert_behind(tarn__cpu_mapping_at(addr), m);
  newest = m;
  return m;
}

void tarn__cpu_mapping_forget(tarn__cpu_mapping *m) {
  if (newest == m) newest = NULL;
  remove_it(m);
  tarn__host_free(m, sizeof *m);
}

static void spend_handle(tarn__cpu_mapping *m) {
  if (m->backing == NULL) return;
  m->backing->spent = true;
  m->backing->mappings = 0;
  m->backing = NULL;
}

void tarn__cpu_mapping_forget_front(tarn__cpu_mapping *m, uint64_t end) {
  size_t gone = (size_t)(end - m->node.start);
  spend_handle(m);
  apart -= share_of(m);
  m->node.start = end;
  m->origin += gone;
  m->size -= gone;
  apart += share_of(m);
}

void tarn__cpu_mapping_forget_back(tarn__cpu_mapping *m, uint64_t addr) {
  spend_handle(m);
  apart -= share_of(m);
  m->size = (size_t)(addr - m->node.start);
  apart += share_of(m);
}

void tarn__cpu_mapping_shift(tarn__cpu_mapping *m,
                             const tarn__common_extent *range, uint64_t addr) {
  remove_it(m);
  m->node.start = addr;
  m->range = range;
  if (m->backing != NULL) m->backing->at = addr;
  insert_behind((tarn__cpu_mapping *)tarn__range_map_at(&mappings, addr), m);
}

// --- cutting and joining ---------------------------------------------------

bool tarn__cpu_mapping_cut(uint64_t addr) {
  tarn__cpu_mapping *m = tarn__cpu_mapping_at(addr);
  if (!tarn__cpu_mapping_holds(m, addr) || m->node.start == addr) return true;
  assert(tarn__cpu_mapping_is_private(m));
  tarn__cpu_mapping *rest = tarn__host_alloc(sizeof *rest);
  if (rest == NULL) return false;
  spend_handle(m);
  size_t kept = (size_t)(addr - m->node.start);
  *rest = (tarn__cpu_mapping){
      .node = {.start = addr, .value = m->node.value},
      .size = m->size - kept,
      .origin = m->origin + kept,
      .range = m->range,
  };
  tarn__range_map_node *behind = tarn__range_map_next(&m->node);
  apart -= share_of(m);
  m->size = kept;
  tarn__range_map_insert_between(&mappings, &m->node, behind, &rest->node);
  apart += share_of(m) + count_apart((const tarn__cpu_mapping *)behind);
  return true;
}

// The mapping that begins at |addr|, if it and the one before are one; else
// NULL.
static tarn__cpu_mapping *joint_at(uint64_t addr) {
  tarn__cpu_mapping *m = tarn__cpu_mapping_at(addr);
  if (m == NULL || m->node.start != addr) return NULL;
  const tarn__range_map_node *before = tarn__range_map_previous(&m->node);
  bool one = before != NULL && goes_on((const tarn__cpu_mapping *)before, m);
  return one ? m : NULL;
}

bool tarn__cpu_mapping_is_joint(uint64_t addr) {
  return joint_at(addr) != NULL;
}

// What they are together goes on what is before, and before what is behind, as
// they did: |apart| stays.
void tarn__cpu_mapping_join(uint64_t addr) {
  tarn__cpu_mapping *m = joint_at(addr);
  if (m == NULL || m->backing != NULL) return;
  tarn__cpu_mapping *before =
      (tarn__cpu_mapping *)tarn__range_map_previous(&m->node);
  if (before->backing != NULL) return;
  before->size += m->size;
  if (newest == m) newest = before;
  tarn__range_map_remove(&mappings, &m->node);
  tarn__host_free(m, sizeof *m);
}

// --- handles ---------------------------------------------------------------

void tarn__cpu_mapping_drop(tarn__cpu_backing *backing) {
  tarn__cpu_mapping *m = NULL;
  if (backing->fd < 0 && backing->mappings != 0) {
    m = tarn__cpu_mapping_at(backing->at);
    spend_handle(m);
  }
  tarn__cpu_backing_drop(backing);
  if (m == NULL) return;
  uint64_t end = tarn__cpu_mapping_end(m);
  tarn__cpu_mapping_join(m->node.start);  // |m| may end by it
  tarn__cpu_mapping_join(end);
}
