// Pictures of pools: copied under the lock, told as a trace after it.
//
// Of the ring only events since they were last switched on are believed: what
// happened before that, while they were off, nobody knows, so that an address
// may have changed its block unseen. From there on the events are without a
// gap, and each live block at the end was either taken in them or is
// older than all of them.
#include "pool/snapshot.h"

#include <assert.h>
#include <stdio.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/front.h"
#include "tarn/trace_build.h"

// --- taking: the lock is held ----------------------------------------------

static tarn_status make_array(size_t count, size_t size, void *out_array) {
  void **array = out_array;
  if (count == 0) return TARN_OK;
  *array = tarn__host_array(count, size);
  return *array != NULL ? TARN_OK : TARN_E_NOMEM;
}

// On which stream it was taken, where the pool has kept that.
static uint64_t serial_of(const tarn_pool *pool,
                          const tarn__pool_piece *piece) {
  return (pool->flags & TARN_POOL_DEFER) != 0 ? piece->taken_on
                                              : piece->waits_on;
}

static tarn_status copy_blocks(const tarn_pool *pool, tarn__pool_picture *out) {
  size_t count = pool->stats.live_blocks;
  tarn_status status = make_array(count, sizeof *out->blocks, &out->blocks);
  if (status != TARN_OK) return status;
  size_t ids = tarn__pieces_count(&pool->pieces);
  size_t at = 0;
  out->block_count = count;
  for (size_t id = 0; id < ids && at < count; id++) {
    const tarn__pool_piece *piece =
        tarn__pieces_at(&pool->pieces, (uint32_t)id);
    if (!piece->live) continue;
    out->blocks[at++] =
        (tarn__pool_picture_block){.address = piece->address,
                                   .size = piece->requested,
                                   .serial = serial_of(pool, piece),
                                   .tag = piece->tag};
  }
  assert(at == count);
  return TARN_OK;
}

// Where what the pool holds is written to; without |segments| it is counted.
typedef struct writer {
  tarn_trace_segment *segments;
  size_t count;
  size_t nowhere;  // bytes at no address
} writer;

// Pages that stand nowhere are one, whichever strategies have them.
static void write_segment(void *context, tarn_addr address, size_t size) {
  writer *w = context;
  if (address == 0) {
    w->nowhere += size;
    return;
  }
  if (w->segments != NULL) {
    w->segments[w->count] =
        (tarn_trace_segment){.address = address, .size = size};
  }
  w->count++;
}

static tarn_status copy_memory(const tarn_pool *pool, tarn__pool_picture *out) {
  writer counted = {.segments = NULL};
  tarn__front_visit_memory(pool, write_segment, &counted);
  size_t count = counted.count + (counted.nowhere != 0 ? 1 : 0);
  tarn_status status = make_array(count, sizeof *out->segments, &out->segments);
  if (status != TARN_OK || count == 0) return status;
  writer written = {.segments = out->segments};
  out->segment_count = count;
  tarn__front_visit_memory(pool, write_segment, &written);
  assert(written.count == counted.count);
  if (written.nowhere != 0) {
    out->segments[written.count] =
        (tarn_trace_segment){.size = written.nowhere};
  }
  return TARN_OK;
}

static tarn_status copy_events(const tarn_pool *pool, tarn__pool_picture *out) {
  const tarn__pool_events *events = &pool->events;
  uint64_t next = 0;
  out->lost = events->next;
  if (!tarn__front_counts(pool, TARN_COUNT_EVENTS)) return TARN_OK;
  uint64_t begin = tarn__events_oldest(events);
  if (begin < events->since) begin = events->since;
  size_t count = (size_t)(events->next - begin);
  tarn_status status = make_array(count, sizeof *out->events, &out->events);
  if (status != TARN_OK) return status;
  out->lost = begin;
  out->event_count = count;
  (void)tarn__events_read(events, begin, out->events, count, &next);
  return TARN_OK;
}

static void copy_names(const tarn_pool *pool, tarn__pool_picture *out) {
  char place[64];
  snprintf(out->name, sizeof out->name, "pool of %s",
           tarn_place_text(pool->place, place, sizeof place));
  snprintf(out->device, sizeof out->device, "%s",
           tarn_device_name(pool->supply.device));
}

tarn_status tarn__picture_take(tarn_pool *pool,
                               const tarn__pool_refusal *refusal,
                               tarn__pool_picture *out) {
  bool timed = tarn__front_counts(pool, TARN_COUNT_TIMES);
  *out = (tarn__pool_picture){.thread = tarn__events_thread(),
                              .time_ns = timed ? tarn__os_now_ns() : 0};
  copy_names(pool, out);
  bool told = refusal != NULL && refusal->noted &&
              tarn__front_counts(pool, TARN_COUNT_EVENTS);
  if (refusal != NULL && !told) {
    out->has_refusal = true;
    out->refusal = *refusal;
  }
  tarn_status status = copy_blocks(pool, out);
  if (status == TARN_OK) status = copy_memory(pool, out);
  return status == TARN_OK ? copy_events(pool, out) : status;
}

void tarn__picture_deinit(tarn__pool_picture *picture) {
  tarn__host_free_array(picture->blocks, picture->block_count,
                        sizeof *picture->blocks);
  tarn__host_free_array(picture->segments, picture->segment_count,
                        sizeof *picture->segments);
  tarn__host_free_array(picture->events, picture->event_count,
                        sizeof *picture->events);
  *picture = (tarn__pool_picture){.blocks = NULL};
}

// --- pages that stand nowhere ----------------------------------------------

static size_t nowhere_in(const tarn__pool_picture *picture) {
  size_t count = picture->segment_count;
  if (count == 0) return 0;
  const tarn_trace_segment *last = &picture->segments[count - 1];
  return last->address == 0 ? (size_t)last->size : 0;
}

static bool concerns_memory(const tarn_pool_event *event) {
  return event->kind == TARN_POOL_EVENT_MAP ||
         event->kind == TARN_POOL_EVENT_UNMAP ||
         event->kind == TARN_POOL_EVENT_SHRINK;
}

// Pages that stand nowhere lie one behind the other, from 0 on, and the last to
// come is the first to go: else two would be at one place, and whoever adds up
// what is held would miss one. Backwards, since how many there are is known at
// the end. What is on its way just now is missed, so it may be less than none.
static void stack_up_nowhere(tarn__pool_picture *picture) {
  size_t height = nowhere_in(picture);
  for (size_t i = picture->event_count; i-- > 0;) {
    tarn_pool_event *event = &picture->events[i];
    if (event->address != 0 || !concerns_memory(event)) continue;
    bool comes = event->kind == TARN_POOL_EVENT_MAP;
    if (comes) height -= height < event->size ? height : event->size;
    event->address = height;
    if (!comes) height += event->size;
  }
}

// --- tags ------------------------------------------------------------------

// The builder's numbers of the pool's tags, found when they are first needed.
typedef struct maker {
  const tarn__pool_picture *picture;
  tarn_trace_builder *builder;
  uint32_t *tags;  // by the pool's number; 0: not asked for yet
  size_t tag_count;
} maker;

static size_t count_tags(const tarn__pool_picture *picture) {
  tarn_tag most = picture->refusal.tag;
  for (size_t i = 0; i < picture->block_count; i++) {
    if (picture->blocks[i].tag > most) most = picture->blocks[i].tag;
  }
  for (size_t i = 0; i < picture->event_count; i++) {
    if (picture->events[i].tag > most) most = picture->events[i].tag;
  }
  return (size_t)most + 1;
}

static tarn_status find_tag(maker *m, tarn_tag tag, uint32_t *out_tag) {
  tarn_status status = TARN_OK;
  *out_tag = TARN_TRACE_NO_TAG;
  if (tag == 0) return TARN_OK;
  if (m->tags[tag] == 0) {
    status = tarn_trace_builder_tag(m->builder, tarn_pool_tag_name(tag),
                                    &m->tags[tag]);
  }
  *out_tag = m->tags[tag];
  return status;
}

// --- events ----------------------------------------------------------------

enum { NS_PER_US = 1000 };

static tarn_status put(maker *m, tarn_trace_kind kind, size_t size,
                       const tarn_pool_event *event) {
  tarn_trace_event told = {.kind = kind,
                           .address = event->address,
                           .size = size,
                           .time_us = event->time_ns / NS_PER_US,
                           .stream = event->stream,
                           .stack = TARN_TRACE_NO_STACK,
                           .thread = event->thread};
  tarn_status status = find_tag(m, event->tag, &told.tag);
  return status == TARN_OK ? tarn_trace_builder_event(m->builder, &told)
                           : status;
}

// A block's size never changes in a trace: it ends, and another begins.
static tarn_status put_resize(maker *m, const tarn_pool_event *event) {
  if (event->size == event->size_before) return TARN_OK;
  tarn_status status = put(m, TARN_TRACE_FREE, event->size_before, event);
  return status == TARN_OK ? put(m, TARN_TRACE_ALLOC, event->size, event)
                           : status;
}

static tarn_status put_event(maker *m, const tarn_pool_event *event) {
  switch (event->kind) {
    case TARN_POOL_EVENT_ALLOC:
      return put(m, TARN_TRACE_ALLOC, event->size, event);
    case TARN_POOL_EVENT_FREE:
      return put(m, TARN_TRACE_FREE, event->size, event);
    case TARN_POOL_EVENT_RESIZE:
      return put_resize(m, event);
    case TARN_POOL_EVENT_FAIL:
      return event->status == TARN_FULL
                 ? put(m, TARN_TRACE_OOM, event->size, event)
                 : TARN_OK;
    case TARN_POOL_EVENT_GROW:
      return put(m, TARN_TRACE_SEGMENT_ALLOC, event->size, event);
    case TARN_POOL_EVENT_SHRINK:
      return put(m, TARN_TRACE_SEGMENT_FREE, event->size, event);
    case TARN_POOL_EVENT_MAP:
      return put(m, TARN_TRACE_SEGMENT_MAP, event->size, event);
    case TARN_POOL_EVENT_UNMAP:
      return put(m, TARN_TRACE_SEGMENT_UNMAP, event->size, event);
    case TARN_POOL_EVENT_SWITCH:
    case TARN_POOL_EVENT_CHARGE:
    case TARN_POOL_EVENT_DISCHARGE:
      break;  // which no trace knows of
  }
  return TARN_OK;
}

// What no event of the pool's tells: a refusal while events are off, and the
// snapshot itself.
static tarn_status put_end(maker *m) {
  const tarn__pool_picture *picture = m->picture;
  tarn_pool_event now = {.time_ns = picture->time_ns,
                         .thread = picture->thread};
  tarn_status status = TARN_OK;
  if (picture->has_refusal) {
    tarn_pool_event refused = now;
    refused.tag = picture->refusal.tag;
    refused.stream = picture->refusal.serial;
    status = put(m, TARN_TRACE_OOM, picture->refusal.size, &refused);
  }
  return status == TARN_OK ? put(m, TARN_TRACE_SNAPSHOT, 0, &now) : status;
}

// --- memory held at the end ------------------------------------------------

static tarn_status put_held(maker *m, const tarn__pool_picture_block *block) {
  tarn_trace_block told = {.size = block->size,
                           .address = block->address,
                           .stream = block->serial,
                           .stack = TARN_TRACE_NO_STACK};
  tarn_status status = find_tag(m, block->tag, &told.tag);
  return status == TARN_OK ? tarn_trace_builder_held(m->builder, &told)
                           : status;
}

static tarn_status put_all(maker *m) {
  const tarn__pool_picture *picture = m->picture;
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK && i < picture->event_count; i++)
    status = put_event(m, &picture->events[i]);
  if (status == TARN_OK) status = put_end(m);
  for (size_t i = 0; status == TARN_OK && i < picture->block_count; i++)
    status = put_held(m, &picture->blocks[i]);
  for (size_t i = 0; status == TARN_OK && i < picture->segment_count; i++)
    status = tarn_trace_builder_segment(m->builder, &picture->segments[i]);
  tarn_trace_builder_lost(m->builder, picture->lost);
  return status;
}

tarn_status tarn__picture_trace(tarn__pool_picture *picture,
                                tarn_trace **out_trace) {
  maker m = {.picture = picture, .tag_count = count_tags(picture)};
  *out_trace = NULL;
  stack_up_nowhere(picture);
  m.tags = tarn__host_array(m.tag_count, sizeof *m.tags);
  if (m.tags == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn_trace_builder_create(picture->name, &m.builder);
  if (status == TARN_OK) status = put_all(&m);
  tarn__host_free_array(m.tags, m.tag_count, sizeof *m.tags);
  if (status == TARN_OK) {
    return tarn_trace_builder_finish(m.builder, out_trace);
  }
  tarn_trace_builder_destroy(m.builder);
  return status;
}
