// Segments: taken whole, cut up by others, given back whole.
#include "pool/segments.h"

#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/front.h"

// --- taking ----------------------------------------------------------------

tarn_status tarn__segments_check_piece(const tarn__pool_extents *zone,
                                       const tarn__pool_piece *piece) {
  const char *name = piece->owner->type->table.name;
  unsigned long long address = piece->address;
  if (tarn__extents_is_outside(zone, piece->address, piece->size)) {
    return TARN_OK;
  }
  if (!tarn__extents_reach(piece->address, piece->size)) {
    return tarn__fail(TARN_E_DEVICE, "%s: addresses from 0x%llx on", name,
                      address);
  }
  return tarn__fail(TARN_E_DEVICE,
                    "%s: the device gave %zu bytes at 0x%llx, part of which it "
                    "had given before",
                    name, piece->size, address);
}

tarn_status tarn__segments_add(tarn__pool_segments *segments,
                               tarn__pool_strategy *strategy,
                               tarn__pool_request *request,
                               tarn__pool_extents *zone,
                               const tarn__pool_growth *growth) {
  tarn__pool_segment *segment = tarn__host_alloc(sizeof *segment);
  if (segment == NULL) return TARN_E_NOMEM;
  tarn__pool_piece *piece = NULL;
  tarn_status status = tarn__chunk_grow(strategy, request, growth, &piece);
  if (status == TARN_OK) {
    status = tarn__segments_check_piece(zone, piece);
    if (!tarn__extents_reserve(zone, 0)) status = TARN_E_NOMEM;
    if (status != TARN_OK) (void)tarn__source_shrink(strategy, piece);
  }
  if (status != TARN_OK) {
    tarn__host_free(segment, sizeof *segment);
    return status;
  }
  segment->chunk = tarn__chunk_adopt(strategy, piece);
  segment->chunk.size &= ~(zone->granule - 1);
  segment->next = segments->first;
  segments->first = segment;
  segment->zone = zone;
  segment->start = tarn__extents_add(zone, segment->chunk.address,
                                     segment->chunk.size, TARN__EXTENT_OPEN);
  return TARN_OK;
}

// In one piece if that can be had, else in halves of it, and so on.
tarn_status tarn__segments_reserve(tarn__pool_segments *segments,
                                   tarn__pool_strategy *strategy,
                                   tarn__pool_extents *zone, size_t size) {
  const tarn_pool *pool = strategy->pool;
  size_t most = pool->sizes.largest & ~(zone->granule - 1);
  tarn_status status = TARN_OK;
  while (status == TARN_OK && pool->stats.reserved_bytes < size) {
    size_t missing = 0;
    if (!tarn_size_align_up(size - pool->stats.reserved_bytes, zone->granule,
                            &missing)) {
      return tarn__fail(TARN_FULL, "the size exceeds the address space");
    }
    if (missing > most) missing = most;
    tarn__pool_request request = {.size = missing,
                                  .align = pool->natural_align};
    tarn__pool_growth growth = {.first = pool->sizes.first,
                                .later = pool->sizes.later,
                                .own = missing,
                                .least = zone->granule,
                                .unit = zone->granule,
                                .halves = true};
    status =
        tarn__extents_reserve(zone, 0)
            ? tarn__segments_add(segments, strategy, &request, zone, &growth)
            : TARN_E_NOMEM;
  }
  return status;
}

// --- giving back -----------------------------------------------------------

// Those that are on their way to the device.
typedef struct parting {
  tarn__pool_segment *all;  // a list
  size_t size;
  size_t count;
} parting;

// What is given back, and of which zone. Of segments in which no stream may
// still be at work, what nobody uses is one extent.
typedef struct wish {
  const tarn__pool_strategy *strategy;
  tarn__pool_extents *zone;
  size_t enough;
  unsigned how;
} wish;

static bool is_idle(const tarn__pool_segment *segment, const wish *w) {
  const tarn__pool_extent *e = segment->start;
  if (segment->zone != w->zone || e->kind != TARN__EXTENT_OPEN) return false;
  bool unused = (w->how & TARN__TRIM_NO_WAIT) != 0;
  if (unused) return e->size == segment->chunk.size && e->bins->serial == 0;
  return tarn__extents_run(e).to == e->offset + segment->chunk.size;
}

// Takes the open bytes of |segment| out of |zone|.
static void take_out(tarn__pool_extents *zone, tarn__pool_segment *segment) {
  tarn__pool_extent *e = segment->start;
  segment->waits.count = 0;
  for (size_t left = segment->chunk.size; left > 0;) {
    assert(e != NULL);
    tarn__pool_extent *next = e->after;
    left -= e->size;
    tarn__waits_add(&segment->waits, e->bins->serial);
    tarn__extents_remove(zone, e);
    e = next;
  }
}

static void take(parting *p, tarn__pool_segment **link, const wish *w) {
  tarn__pool_segment *segment = *link;
  *link = segment->next;
  take_out(w->zone, segment);
  segment->next = p->all;
  p->all = segment;
  p->size += segment->chunk.base_size;
  p->count++;
}

// Whether it may go beside those that do.
static bool may_part(const tarn__pool_segment *segment, const wish *w,
                     const parting *p) {
  return is_idle(segment, w) &&
         tarn__front_may_return(w->strategy, p->size, segment->chunk.base_size,
                                w->how);
}

static size_t sum_idle(const tarn__pool_segments *segments, const wish *w) {
  size_t sum = 0;
  for (const tarn__pool_segment *s = segments->first; s != NULL; s = s->next)
    sum += is_idle(s, w) ? s->chunk.base_size : 0;
  return sum;
}

static void take_idle(tarn__pool_segments *segments, const wish *w,
                      parting *p) {
  for (tarn__pool_segment **link = &segments->first; *link != NULL;) {
    if (may_part(*link, w, p)) {
      take(p, link, w);
    } else {
      link = &(*link)->next;
    }
  }
}

// The smallest that is enough, else the largest.
static bool is_better(size_t size, size_t best, size_t enough) {
  return best < enough ? size > best : size >= enough && size < best;
}

// The idle segment that is best given back, or NULL.
static tarn__pool_segment **find_best(tarn__pool_segments *segments,
                                      const wish *w, const parting *p) {
  size_t enough = w->enough - p->size;
  tarn__pool_segment **best = NULL;
  tarn__pool_segment **link = &segments->first;
  for (; *link != NULL; link = &(*link)->next) {
    size_t found = best != NULL ? (*best)->chunk.base_size : 0;
    bool better = is_better((*link)->chunk.base_size, found, enough);
    if (better && may_part(*link, w, p)) best = link;
  }
  return best;
}

// All at once, in a list of their own: those that others free meanwhile are
// not for this call, or it might never end. Only where some are to stay has
// each to be chosen.
static parting part(tarn__pool_segments *segments, const wish *w) {
  parting p = {.all = NULL};
  if (sum_idle(segments, w) <= w->enough) {
    take_idle(segments, w, &p);
    return p;
  }
  while (p.size < w->enough) {
    tarn__pool_segment **best = find_best(segments, w, &p);
    if (best == NULL) break;
    take(&p, best, w);
  }
  return p;
}

// Even if a stream cannot be waited for: not to try is a sure leak.
static tarn_status give_all(const tarn__pool_supply *supply,
                            const tarn__pool_segment *segment) {
  tarn_status first = TARN_OK;
  for (; segment != NULL; segment = segment->next) {
    tarn_status waited = tarn__waits_wait(&segment->waits, supply->place);
    tarn_status given = supply->calls->give(supply, 0, segment->chunk.base,
                                            segment->chunk.base_size);
    if (first == TARN_OK) first = given != TARN_OK ? given : waited;
  }
  return first;
}

static void free_all(tarn__pool_segment *segment) {
  while (segment != NULL) {
    tarn__pool_segment *next = segment->next;
    tarn__host_free(segment, sizeof *segment);
    segment = next;
  }
}

tarn_status tarn__segments_trim(tarn__pool_segments *segments,
                                tarn__pool_strategy *strategy,
                                tarn__pool_extents *zone, size_t target,
                                unsigned how) {
  size_t surplus = tarn__front_surplus(strategy->pool, target);
  if (surplus == 0) return TARN_OK;
  wish w = {.strategy = strategy, .zone = zone, .enough = surplus, .how = how};
  parting p = part(segments, &w);
  if (p.count == 0) return TARN_OK;
  for (const tarn__pool_segment *s = p.all; s != NULL; s = s->next) {
    tarn__front_note_memory(strategy->pool, TARN_POOL_EVENT_SHRINK,
                            s->chunk.base, s->chunk.base_size, 0);
  }
  tarn__source_begin_return(strategy, p.size, p.count);
  tarn_status status = give_all(&strategy->pool->supply, p.all);
  tarn__source_end_return(strategy, p.size);
  free_all(p.all);
  return status;
}

static bool is_open(const tarn__pool_extent *e) {
  return e != NULL && e->kind == TARN__EXTENT_OPEN;
}

bool tarn__segments_is_free(const tarn__pool_extent *hole) {
  const tarn__pool_extent *end = hole->after;
  while (!hole->wall && is_open(hole->before))
    hole = hole->before;
  while (is_open(end) && !end->wall)
    end = end->after;
  bool ends = end == NULL || end->wall || end->kind == TARN__EXTENT_OUTSIDE;
  return hole->wall && ends;
}

void tarn__segments_deinit(tarn__pool_segments *segments) {
  free_all(segments->first);
  segments->first = NULL;
}
