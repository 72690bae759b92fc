// Segments: taken whole, cut up by others, given back whole.
#include "pool/segments.h"

#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/front.h"

// --- taking ----------------------------------------------------------------

tarn_status tarn__segments_check_piece(const tarn__extents *zone,
                                       const tarn__piece *piece) {
  const char *name = piece->owner->type->name;
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

tarn_status tarn__segments_add(tarn__segments *segments,
                               tarn__strategy *strategy, tarn__request *request,
                               tarn__extents *zone,
                               const tarn__growth *growth) {
  tarn__segment *segment = tarn__host_alloc(sizeof *segment);
  if (segment == NULL) return TARN_E_NOMEM;
  tarn__piece *piece = NULL;
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
  tarn__extents_add(zone, segment->chunk.address, segment->chunk.size,
                    TARN__EXTENT_OPEN);
  return TARN_OK;
}

// --- giving back -----------------------------------------------------------

static tarn__segment **find(tarn__segments *segments, tarn_addr address) {
  tarn__segment **link = &segments->first;
  while (*link != NULL && (*link)->chunk.address != address)
    link = &(*link)->next;
  return link;
}

// Takes the open bytes of |segment|, which begin with |e|, out of |zone|.
static void take_out(tarn__extents *zone, tarn__segment *segment,
                     tarn__extent *e) {
  segment->waits.count = 0;
  for (size_t left = segment->chunk.size; left > 0;) {
    assert(e != NULL);
    tarn__extent *next = e->after;
    left -= e->size;
    tarn__waits_add(&segment->waits, e->bins->serial);
    tarn__extents_remove(zone, e);
    e = next;
  }
}

// Whether nothing of |segment|, which begins with |e|, is taken; |unused|: and
// no stream may still be at work in it. What nobody uses is one extent.
static bool is_idle(const tarn__segment *segment, const tarn__extent *e,
                    bool unused) {
  if (unused) return e->size == segment->chunk.size && e->bins->serial == 0;
  return tarn__extents_run(e).to == e->offset + segment->chunk.size;
}

// The smallest that is enough, else the largest.
static bool is_better(size_t size, size_t best, size_t enough) {
  return best < enough ? size > best : size >= enough && size < best;
}

// The free segment of |zone| that is best given back, which is no more among
// the others.
static tarn__segment *take_one(tarn__segments *segments, tarn__extents *zone,
                               size_t enough, bool unused) {
  tarn__segment **best = NULL;
  tarn__extent *first = NULL;
  for (tarn__extent *e = zone->first; e != NULL; e = e->after) {
    if (!e->wall || e->kind != TARN__EXTENT_OPEN) continue;
    tarn__segment **link = find(segments, e->offset);
    if (*link == NULL || !is_idle(*link, e, unused)) continue;
    size_t size = (*link)->chunk.base_size;
    size_t found = best != NULL ? (*best)->chunk.base_size : 0;
    if (!is_better(size, found, enough)) continue;
    best = link;
    first = e;
  }
  if (best == NULL) return NULL;
  tarn__segment *segment = *best;
  *best = segment->next;
  take_out(zone, segment, first);
  return segment;
}

// All at once, in a list of their own: those that others free meanwhile are
// not for this call, or it might never end.
static tarn__segment *take_all(tarn__segments *segments, tarn__extents *zone,
                               size_t enough, bool unused, size_t *out_size,
                               size_t *out_count) {
  tarn__segment *all = NULL;
  tarn__segment *segment = NULL;
  *out_size = *out_count = 0;
  while (*out_size < enough) {
    segment = take_one(segments, zone, enough - *out_size, unused);
    if (segment == NULL) break;
    segment->next = all;
    all = segment;
    *out_size += segment->chunk.base_size;
    ++*out_count;
  }
  return all;
}

// Even if a stream cannot be waited for: not to try is a sure leak.
static tarn_status give_all(const tarn__supply *supply,
                            const tarn__segment *segment) {
  tarn_status first = TARN_OK;
  for (; segment != NULL; segment = segment->next) {
    tarn_status waited = tarn__waits_wait(&segment->waits, supply->device);
    tarn_status given = supply->calls->give(supply, 0, segment->chunk.base,
                                            segment->chunk.base_size);
    if (first == TARN_OK) first = given != TARN_OK ? given : waited;
  }
  return first;
}

static void free_all(tarn__segment *segment) {
  while (segment != NULL) {
    tarn__segment *next = segment->next;
    tarn__host_free(segment, sizeof *segment);
    segment = next;
  }
}

tarn_status tarn__segments_trim(tarn__segments *segments,
                                tarn__strategy *strategy, tarn__extents *zone,
                                size_t target, bool unused) {
  size_t held = strategy->pool->stats.reserved_bytes;
  size_t size = 0;
  size_t count = 0;
  if (held <= target) return TARN_OK;
  tarn__segment *all =
      take_all(segments, zone, held - target, unused, &size, &count);
  if (count == 0) return TARN_OK;
  for (const tarn__segment *s = all; s != NULL; s = s->next) {
    tarn__front_note_memory(strategy->pool, TARN_POOL_EVENT_SHRINK,
                            s->chunk.base, s->chunk.base_size, 0);
  }
  tarn__source_begin_return(strategy, size, count);
  tarn_status status = give_all(&strategy->pool->supply, all);
  tarn__source_end_return(strategy, size);
  free_all(all);
  return status;
}

bool tarn__segments_has(const tarn__segments *segments, tarn__extent_run run) {
  const tarn__segment *s = segments->first;
  while (s != NULL &&
         (s->chunk.address != run.from || s->chunk.size != run.to - run.from))
    s = s->next;
  return s != NULL;
}

void tarn__segments_deinit(tarn__segments *segments) {
  free_all(segments->first);
  segments->first = NULL;
}
