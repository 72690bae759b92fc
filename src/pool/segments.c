// Segments: taken whole, cut up by others, given back whole.
#include "pool/segments.h"

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

// --- taking ----------------------------------------------------------------

// What the device gives is a piece for a moment, as of any strategy, and then
// the segment's.
static void adopt(tarn__segments *segments, tarn__strategy *strategy,
                  tarn__segment *segment, tarn__piece *piece) {
  segment->base = piece->base;
  segment->base_size = piece->base_size;
  segment->address = piece->address;
  segment->size = piece->size;
  segment->next = segments->first;
  segments->first = segment;
  strategy->held += piece->base_size;
  tarn__source_join(strategy, piece);
}

tarn_status tarn__segments_add(tarn__segments *segments,
                               tarn__strategy *strategy, tarn__request *request,
                               tarn__extents *zone, size_t size) {
  if (size > segments->largest) {
    return tarn__fail(TARN_FULL,
                      "arena_pool: a segment of %zu bytes is more than the %zu "
                      "that the device gives at once",
                      size, segments->largest);
  }
  tarn__segment *segment = tarn__host_alloc(sizeof *segment);
  if (segment == NULL) return TARN_E_NOMEM;
  tarn__piece *piece = NULL;
  tarn_status status = tarn__source_grow(strategy, request, size, &piece);
  if (status == TARN_OK && !tarn__extents_reserve(zone, 0)) {
    (void)tarn__source_shrink(strategy, piece);
    status = TARN_E_NOMEM;
  }
  if (status != TARN_OK) {
    tarn__host_free(segment, sizeof *segment);
    return status;
  }
  adopt(segments, strategy, segment, piece);
  tarn__extents_add(zone, segment->address, segment->size, TARN__EXTENT_OPEN);
  return TARN_OK;
}

// --- giving back -----------------------------------------------------------

static tarn__segment **find(tarn__segments *segments, tarn_addr address) {
  tarn__segment **link = &segments->first;
  while (*link != NULL && (*link)->address != address)
    link = &(*link)->next;
  return link;
}

// Whether |size| bytes from |e| on are open, whoever's they are.
static bool is_open(const tarn__extent *e, size_t size) {
  while (size > 0 && e->kind == TARN__EXTENT_OPEN) {
    size -= e->size;
    e = e->after;
  }
  return size == 0;
}

static void note_serial(tarn__segment *segment, uint64_t serial) {
  if (serial == 0) return;
  if (segment->serial_count < TARN__SEGMENT_STREAMS) {
    segment->serials[segment->serial_count] = serial;
  }
  segment->serial_count++;
}

// Takes the open bytes of |segment|, which begin with |e|, out of |zone|.
static void take_out(tarn__extents *zone, tarn__segment *segment,
                     tarn__extent *e) {
  segment->serial_count = 0;
  for (size_t left = segment->size; left > 0;) {
    tarn__extent *next = e->after;
    left -= e->size;
    note_serial(segment, e->bins->serial);
    tarn__extents_remove(zone, e);
    e = next;
  }
}

// The free segments of |zone|, in a list of their own. The row changes with
// each, so it is walked anew.
static tarn__segment *take_one(tarn__segments *segments, tarn__extents *zone) {
  for (tarn__extent *e = zone->first; e != NULL; e = e->after) {
    if (!e->wall || e->kind != TARN__EXTENT_OPEN) continue;
    tarn__segment **link = find(segments, e->offset);
    tarn__segment *segment = *link;
    if (segment == NULL || !is_open(e, segment->size)) continue;
    *link = segment->next;
    take_out(zone, segment, e);
    return segment;
  }
  return NULL;
}

static tarn_status wait_for(tarn_place place, const tarn__segment *segment) {
  tarn_status first = TARN_OK;
  if (segment->serial_count > TARN__SEGMENT_STREAMS) {
    return tarn_device_synchronize(place.device);
  }
  for (size_t i = 0; i < segment->serial_count; i++) {
    tarn_status status = tarn_stream_join(NULL, segment->serials[i]);
    if (first == TARN_OK) first = status;
  }
  return first;
}

// Even if a stream cannot be waited for: not to try is a sure leak.
static tarn_status give(tarn__strategy *strategy, tarn__segment *segment) {
  tarn_pool *pool = strategy->pool;
  strategy->held -= segment->base_size;
  tarn__source_begin_return(strategy, segment->base_size);
  tarn_status waited = wait_for(pool->place, segment);
  tarn_status status =
      tarn__device_give(pool->place, segment->base, segment->base_size);
  tarn__source_end_return(strategy, segment->base_size);
  tarn__host_free(segment, sizeof *segment);
  return status != TARN_OK ? status : waited;
}

tarn_status tarn__segments_trim(tarn__segments *segments,
                                tarn__strategy *strategy, tarn__extents *zone) {
  tarn_status first = TARN_OK;
  tarn__segment *segment = NULL;
  while ((segment = take_one(segments, zone)) != NULL) {
    tarn_status status = give(strategy, segment);
    if (first == TARN_OK) first = status;
  }
  return first;
}

void tarn__segments_deinit(tarn__segments *segments) {
  while (segments->first != NULL) {
    tarn__segment *segment = segments->first;
    segments->first = segment->next;
    tarn__host_free(segment, sizeof *segment);
  }
}
