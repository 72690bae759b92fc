// Snapshots: copied under the pool's lock, told as a trace after it, and
// written by call, of one pool or of all.
//
// Only the events since recording was last switched on are used: an address may
// have changed its block unseen before that. From there on the events have no
// gap, and each live block at the end was either taken in them or is older than
// all of them.
//
// The pools are captured one after the other, each under the registry's lock,
// so that no pool ends during it; files are written without the lock.
#include "pool/snapshot.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"
#include "tarn/trace_build.h"

// --- pictures: the lock is held --------------------------------------------

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
  TARN__TRY(make_array(count, sizeof *out->blocks, &out->blocks));
  size_t ids = tarn__pieces_count(&pool->pieces);
  size_t at = 0;
  out->block_count = count;
  for (size_t id = 0; id < ids && at < count; id++) {
    const tarn__pool_piece *piece =
        tarn__pieces_at(&pool->pieces, (uint32_t)id);
    if (!piece->live) continue;
    out->blocks[at++] = (tarn_trace_block){.address = piece->address,
                                           .size = piece->requested,
                                           .stream = serial_of(pool, piece),
                                           .stack = TARN_TRACE_NO_STACK,
                                           .tag = piece->tag};
  }
  assert(at == count);
  return TARN_OK;
}

// Where the segments are written; without |segments| they are counted.
typedef struct writer {
  tarn_trace_segment *segments;
  size_t count;
  size_t nowhere;  // bytes at no address
} writer;

// Spare pages of all strategies are one segment.
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
  TARN__TRY(make_array(count, sizeof *out->events, &out->events));
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
  TARN__TRY(copy_blocks(pool, out));
  TARN__TRY(copy_memory(pool, out));
  return copy_events(pool, out);
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

// Spare pages lie one behind the other, from 0 on, and the last to arrive is
// the first to leave: otherwise two would be at one place, and a sum of the
// segments would miss one. The row is built backwards, since its size is known
// at the end. Memory that is being allocated or given back is not in it, so the
// count may be below zero.
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

typedef struct maker {
  const tarn__pool_picture *picture;
  tarn_trace_builder *builder;
} maker;

// The builder's number of a pool's tag.
static tarn_status find_tag(const maker *m, tarn_tag tag, uint32_t *out_tag) {
  const char *name = tag != 0 ? tarn_pool_tag_name(tag) : NULL;
  return tarn_trace_builder_tag(m->builder, name, out_tag);
}

// --- events ----------------------------------------------------------------

enum { NS_PER_US = 1000 };

static tarn_status put(const maker *m, tarn_trace_kind kind, size_t size,
                       const tarn_pool_event *event) {
  tarn_trace_event told = {.kind = kind,
                           .address = event->address,
                           .size = size,
                           .time_us = event->time_ns / NS_PER_US,
                           .stream = event->stream,
                           .stack = TARN_TRACE_NO_STACK,
                           .thread = event->thread};
  TARN__TRY(find_tag(m, event->tag, &told.tag));
  return tarn_trace_builder_event(m->builder, &told);
}

// A block's size never changes in a trace: it ends, and another begins.
static tarn_status put_resize(const maker *m, const tarn_pool_event *event) {
  if (event->size == event->size_before) return TARN_OK;
  TARN__TRY(put(m, TARN_TRACE_FREE, event->size_before, event));
  return put(m, TARN_TRACE_ALLOC, event->size, event);
}

static tarn_status put_event(const maker *m, const tarn_pool_event *event) {
  // 0: no trace knows of it.
  static const tarn_trace_kind kinds[] = {
      [TARN_POOL_EVENT_ALLOC] = TARN_TRACE_ALLOC,
      [TARN_POOL_EVENT_FREE] = TARN_TRACE_FREE,
      [TARN_POOL_EVENT_FAIL] = TARN_TRACE_OOM,
      [TARN_POOL_EVENT_GROW] = TARN_TRACE_SEGMENT_ALLOC,
      [TARN_POOL_EVENT_SHRINK] = TARN_TRACE_SEGMENT_FREE,
      [TARN_POOL_EVENT_MAP] = TARN_TRACE_SEGMENT_MAP,
      [TARN_POOL_EVENT_UNMAP] = TARN_TRACE_SEGMENT_UNMAP,
      [TARN_POOL_EVENT_DISCHARGE] = 0,
  };
  tarn_trace_kind kind = kinds[event->kind];
  if (event->kind == TARN_POOL_EVENT_RESIZE) return put_resize(m, event);
  bool told = kind != TARN_TRACE_OOM || event->status == TARN_FULL;
  return kind != 0 && told ? put(m, kind, event->size, event) : TARN_OK;
}

// Events that the pool has not recorded: a refusal while events are off, and
// the snapshot itself.
static tarn_status put_end(const maker *m) {
  const tarn__pool_picture *picture = m->picture;
  tarn_pool_event now = {.time_ns = picture->time_ns,
                         .thread = picture->thread};
  if (picture->has_refusal) {
    tarn_pool_event refused = now;
    refused.tag = picture->refusal.tag;
    refused.stream = picture->refusal.serial;
    TARN__TRY(put(m, TARN_TRACE_OOM, picture->refusal.size, &refused));
  }
  return put(m, TARN_TRACE_SNAPSHOT, 0, &now);
}

// --- memory held at the end ------------------------------------------------

static tarn_status put_held(const maker *m, const tarn_trace_block *block) {
  tarn_trace_block told = *block;
  TARN__TRY(find_tag(m, block->tag, &told.tag));
  return tarn_trace_builder_held(m->builder, &told);
}

static tarn_status put_all(const maker *m) {
  const tarn__pool_picture *picture = m->picture;
  for (size_t i = 0; i < picture->event_count; i++)
    TARN__TRY(put_event(m, &picture->events[i]));
  TARN__TRY(put_end(m));
  for (size_t i = 0; i < picture->block_count; i++)
    TARN__TRY(put_held(m, &picture->blocks[i]));
  for (size_t i = 0; i < picture->segment_count; i++)
    TARN__TRY(tarn_trace_builder_segment(m->builder, &picture->segments[i]));
  tarn_trace_builder_lost(m->builder, picture->lost);
  return TARN_OK;
}

// Once: events of pages that stand nowhere get their places.
static tarn_status make_trace(tarn__pool_picture *picture,
                              tarn_trace **out_trace) {
  maker m = {.picture = picture};
  stack_up_nowhere(picture);
  TARN__TRY(tarn_trace_builder_create(picture->name, &m.builder));
  tarn_status status = put_all(&m);
  if (status == TARN_OK) return tarn_trace_builder_finish(m.builder, out_trace);
  tarn_trace_builder_destroy(m.builder);
  return status;
}

// --- paths -----------------------------------------------------------------

// The values of a path's conversions.
typedef struct letters {
  long process;
  unsigned number;
  const char *device;
} letters;

enum { LETTER_SIZE = 80 };

static tarn_status no_such_letter(const char *path, const char *at) {
  if (at[1] == '\0') {
    return tarn__fail(TARN_E_INVALID, "snapshot: '%s' ends with a single %%",
                      path);
  }
  return tarn__fail(TARN_E_INVALID,
                    "snapshot: %%%c in '%s': there are %%p, %%n, %%d and %%%%",
                    at[1], path);
}

static tarn_status check_path(const char *path, bool numbered) {
  bool has_number = false;
  if (path == NULL || *path == '\0') {
    return tarn__fail(TARN_E_INVALID, "snapshot: no path");
  }
  for (const char *at = path; (at = strchr(at, '%')) != NULL; at += 2) {
    if (at[1] == '\0' || strchr("pnd%", at[1]) == NULL) {
      return no_such_letter(path, at);
    }
    if (at[1] == 'n') has_number = true;
  }
  if (has_number || !numbered) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "snapshot: '%s' has no %%n, and each pool would replace "
                    "the file of the one before",
                    path);
}

tarn_status tarn__snapshot_check(tarn_trace_format format, const char *path,
                                 bool numbered) {
  if (tarn_trace_format_name(format) == NULL) {
    return tarn__fail(TARN_E_INVALID, "snapshot: no format has the number %d",
                      (int)format);
  }
  return check_path(path, numbered);
}

// Writes the character, or the value of the conversion, at |*at| of a path that
// was checked, and moves |*at| behind it. Returns the length.
static size_t expand_one(const letters *l, const char **at, char *out) {
  char first = *(*at)++;
  char letter = 0;
  if (first == '%') letter = *(*at)++;
  switch (letter) {
    case 'p':
      snprintf(out, LETTER_SIZE, "%ld", l->process);
      break;
    case 'n':
      snprintf(out, LETTER_SIZE, "%u", l->number);
      break;
    case 'd':
      snprintf(out, LETTER_SIZE, "%s", l->device);
      break;
    default:  // itself, as is the % of two
      snprintf(out, LETTER_SIZE, "%c", first);
  }
  return strlen(out);
}

// A device's name is part of a file's, not of its folders'.
static void keep_in_folder(char *name) {
  for (char *c = name; (c = strchr(c, '/')) != NULL;)
    *c = '_';
}

// NULL: no host memory. Freed with tarn__host_free_text.
static char *expand(const letters *l, const char *path) {
  size_t room = strlen(path);
  size_t used = 0;
  char *widest = tarn__host_array(room, LETTER_SIZE);
  if (widest == NULL) return NULL;
  while (*path != '\0')
    used += expand_one(l, &path, widest + used);
  char *expanded = tarn__host_text(widest);
  tarn__host_free_array(widest, room, LETTER_SIZE);
  return expanded;
}

// --- files -----------------------------------------------------------------

static unsigned next_number(void) {
  static atomic_uint count;
  return atomic_fetch_add_explicit(&count, 1, memory_order_relaxed);
}

tarn_status tarn__snapshot_write_picture(tarn__pool_picture *picture,
                                         tarn_trace_format format,
                                         const char *path) {
  char device[LETTER_SIZE];
  tarn_trace *trace = NULL;
  TARN__TRY(make_trace(picture, &trace));
  snprintf(device, sizeof device, "%s", picture->device);
  keep_in_folder(device);
  letters l = {(long)getpid(), next_number(), device};
  char *file = expand(&l, path);
  tarn_status status =
      file != NULL ? tarn_trace_write(trace, format, file) : TARN_E_NOMEM;
  tarn__host_free_text(file);
  tarn_trace_destroy(trace);
  return status;
}

// --- one pool --------------------------------------------------------------

static tarn_status take(tarn_pool *pool, tarn__pool_picture *out) {
  *out = (tarn__pool_picture){.blocks = NULL};
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__front_enter(pool);
  tarn_status status = tarn__picture_take(pool, NULL, out);
  tarn__front_leave(pool);
  return status;
}

tarn_status tarn_pool_trace(tarn_pool *pool, tarn_trace **out_trace) {
  tarn__pool_picture picture;
  *out_trace = NULL;
  tarn_status status = take(pool, &picture);
  if (status == TARN_OK) status = make_trace(&picture, out_trace);
  tarn__picture_deinit(&picture);
  return status;
}

tarn_status tarn_pool_snapshot(tarn_pool *pool, tarn_trace_format format,
                               const char *path) {
  tarn__pool_picture picture;
  TARN__TRY(tarn__snapshot_check(format, path, false));
  tarn_status status = take(pool, &picture);
  if (status == TARN_OK) {
    status = tarn__snapshot_write_picture(&picture, format, path);
  }
  tarn__picture_deinit(&picture);
  return status;
}

// --- all pools -------------------------------------------------------------

static tarn_status take_next(void *context, tarn_pool *pool) {
  return take(pool, context);
}

// The first failure is returned, with its text.
static tarn_status write_all(tarn_trace_format format, const char *path) {
  tarn__failure first = {.status = TARN_OK};
  tarn_status status = TARN_OK;
  tarn__pool_picture picture;
  uint64_t number = 0;
  while (tarn__pools_next(&number, take_next, &picture, &status)) {
    if (status == TARN_OK) {
      status = tarn__snapshot_write_picture(&picture, format, path);
    }
    tarn__picture_deinit(&picture);
    tarn__failure_note(&first, status);
  }
  return tarn__failure_tell(&first);
}

tarn_status tarn_pool_snapshot_all(tarn_trace_format format, const char *path) {
  TARN__TRY(tarn__not_in_callback());
  TARN__TRY(tarn__snapshot_check(format, path, true));
  return write_all(format, path);
}
