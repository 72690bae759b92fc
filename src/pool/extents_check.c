// What must hold of extents at rest:
//   * they cover the space without gap or overlap, and link to each other
//   * none is empty; they begin and end at the granule, bare ones at pages
//   * free neighbours that could be one are one
//   * what is open hangs in a bin, what is bare in the list, nothing else does
//   * what is asleep fills no page
#include "base/status.h"
#include "pool/extents.h"

typedef struct sums {
  size_t taken;
  size_t open;
  size_t bare;
} sums;

static tarn_status broken(const tarn__pool_extent *e, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "extents: at 0x%llx: %s",
                    (unsigned long long)e->offset, what);
}

static bool should_be_one(const tarn__pool_extent *a,
                          const tarn__pool_extent *b) {
  if (a->kind != b->kind || a->kind == TARN__EXTENT_TAKEN || b->wall) {
    return false;
  }
  uint64_t x = tarn__extent_serial(a);
  uint64_t y = tarn__extent_serial(b);
  return x == y || x == 0 || y == 0;
}

static bool fills_a_page(const tarn__pool_extents *extents,
                         const tarn__pool_extent *e) {
  return tarn__align_up(e->offset, extents->page) <
         tarn__align_down(tarn__extent_end(e), extents->page);
}

static tarn_status check_extent(const tarn__pool_extents *extents,
                                const tarn__pool_extent *e) {
  size_t unit = e->kind == TARN__EXTENT_BARE ? extents->page : extents->granule;
  const tarn__pool_extent *next = e->after;
  if (e->size == 0) return broken(e, "it is empty");
  if (e->offset % unit != 0 || e->size % unit != 0) {
    return broken(e, "it does not begin and end at a unit");
  }
  if ((e->kind == TARN__EXTENT_OPEN) != (e->bins != NULL)) {
    return broken(e, "it is open and in no bins, or the other way round");
  }
  if (e->kind == TARN__EXTENT_ASLEEP && fills_a_page(extents, e)) {
    return broken(e, "a whole page is asleep");
  }
  if (next == NULL) return TARN_OK;
  if (next->before != e) return broken(e, "its links differ");
  if (next->offset != e->offset + e->size) return broken(e, "a gap is behind");
  if (should_be_one(e, next)) return broken(e, "the next is part of it");
  return TARN_OK;
}

static tarn_status sum_row(const tarn__pool_extents *extents, sums *out) {
  for (const tarn__pool_extent *e = extents->first; e != NULL; e = e->after) {
    tarn_status status = check_extent(extents, e);
    if (status != TARN_OK) return status;
    out->taken += e->kind == TARN__EXTENT_TAKEN ? e->size : 0;
    out->open += e->kind == TARN__EXTENT_OPEN;
    out->bare += e->kind == TARN__EXTENT_BARE;
  }
  return TARN_OK;
}

static tarn_status count_open(const tarn__pool_extents *extents, size_t *out) {
  for (const tarn__pool_bins *b = extents->bins; b != NULL; b = b->next) {
    size_t count = 0;
    tarn_status status = tarn__bins_check(b, &count);
    if (status != TARN_OK) return status;
    *out += count;
  }
  return TARN_OK;
}

tarn_status tarn__extents_check(const tarn__pool_extents *extents) {
  sums s = {0};
  size_t hanging = 0;
  tarn_status status = sum_row(extents, &s);
  if (status == TARN_OK) status = count_open(extents, &hanging);
  if (status != TARN_OK) return status;
  const tarn__pool_extent *first = extents->first;
  if (first->before != NULL || first->offset != 0) {
    return broken(first, "it is not where the space begins");
  }
  if (s.taken != extents->taken_bytes) return broken(first, "taken_bytes");
  if (s.open != hanging) return broken(first, "an open one hangs nowhere");
  if (s.bare != extents->bare_count) return broken(first, "bare_count");
  return TARN_OK;
}

size_t tarn__extents_count_taken(const tarn__pool_extents *extents) {
  size_t count = 0;
  for (const tarn__pool_extent *e = extents->first; e != NULL; e = e->after)
    count += e->kind == TARN__EXTENT_TAKEN;
  return count;
}
