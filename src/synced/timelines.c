// The streams that use a buffer.
//
//   timeline ──► point 3 ──► point 4 ──► point 7      issued = 7, done = 2
//            held                              5 and 6 were dropped
//
// Invariants:
//   * Points are in the order of their numbers, and behind |done| unless held.
//   * The point |issued| exists unless it is reached, so there is a point at or
//     behind each number that is not reached.
//   * A timeline has at least as many holds as its points together.
#include "synced/timelines.h"

#include <string.h>

#include "base/status.h"

// The most spare nodes.
enum { SPARE_TIMELINES = 8, SPARE_POINTS = 16 };

// --- points -----------------------------------------------------------------

// Takes a spare node, or a new one; NULL: no host memory.
static void *take_node(tarn__synced_spares *spares, size_t size) {
  if (!tarn__spares_stock(spares, 1, size)) return NULL;
  return memset(tarn__spares_take(spares), 0, size);
}

static void give_node(tarn__synced_spares *spares, void *node, size_t most,
                      size_t size) {
  tarn__spares_put(spares, node);
  tarn__spares_trim(spares, most, size);
}

static void free_point(tarn__synced_point *point) {
  tarn__copy_streams_give_event(point->event);
  give_node(&point->timeline->list->spare_points, point, SPARE_POINTS,
            sizeof *point);
}

// Removes the point that |at| points to.
static void remove_point(tarn__synced_point **at) {
  tarn__synced_point *point = *at;
  *at = point->next;
  point->timeline->point_count--;
  free_point(point);
}

static void drop_points_that_are_over(tarn__synced_timeline *timeline) {
  tarn__synced_point **at = &timeline->points;
  while (*at != NULL) {
    const tarn__synced_point *point = *at;
    if (point->holds == 0 && tarn__timeline_is_over(timeline, point->number)) {
      remove_point(at);
    } else {
      at = &(*at)->next;
    }
  }
}

// Never drops the last point, which has no later one to wait for.
static void drop_oldest_point(tarn__synced_timeline *timeline) {
  tarn__synced_point **at = &timeline->points;
  while (*at != NULL && (*at)->holds > 0)
    at = &(*at)->next;
  if (*at != NULL && (*at)->next != NULL) remove_point(at);
}

// --- timelines ---------------------------------------------------------------

static void free_timeline(tarn__synced_timeline *timeline) {
  tarn__synced_timelines *timelines = timeline->list;
  while (timeline->points != NULL)
    remove_point(&timeline->points);
  give_node(&timelines->spare_timelines, timeline, SPARE_TIMELINES,
            sizeof *timeline);
}

void tarn__timelines_deinit(tarn__synced_timelines *timelines) {
  while (timelines->first != NULL) {
    tarn__synced_timeline *timeline = timelines->first;
    timelines->first = timeline->next;
    free_timeline(timeline);
  }
  tarn__spares_trim(&timelines->spare_timelines, 0,
                    sizeof(tarn__synced_timeline));
  tarn__spares_trim(&timelines->spare_points, 0, sizeof(tarn__synced_point));
}

void tarn__timeline_release(tarn__synced_timeline *timeline) {
  assert(timeline->holds > 0);
  if (--timeline->holds > 0) return;
  assert(!timeline->busy);
  tarn__synced_timeline **at = &timeline->list->first;
  while (*at != timeline)
    at = &(*at)->next;
  *at = timeline->next;
  free_timeline(timeline);
}

static tarn__synced_timeline *find(const tarn__synced_timelines *timelines,
                                   uint64_t serial) {
  tarn__synced_timeline *timeline = timelines->first;
  while (timeline != NULL && (timeline->serial != serial || timeline->foreign))
    timeline = timeline->next;
  return timeline;
}

static tarn__synced_timeline *add(tarn__synced_timelines *timelines,
                                  tarn_device *device, uint64_t serial) {
  tarn__synced_timeline *timeline =
      take_node(&timelines->spare_timelines, sizeof(tarn__synced_timeline));
  if (timeline == NULL) return NULL;
  timeline->serial = serial;
  timeline->device = device;
  timeline->list = timelines;
  timeline->next = timelines->first;
  timelines->first = timeline;
  return timeline;
}

tarn_status tarn__timeline_of(tarn__synced_timelines *timelines,
                              tarn_stream *stream,
                              tarn__synced_timeline **out_timeline) {
  uint64_t serial = tarn_stream_serial(stream);
  tarn__synced_timeline *timeline = find(timelines, serial);
  if (timeline == NULL)
    timeline = add(timelines, tarn_stream_device(stream), serial);
  if (timeline != NULL) timeline->holds++;
  *out_timeline = timeline;
  return timeline != NULL ? TARN_OK : TARN_E_NOMEM;
}

// --- making points ---------------------------------------------------------

tarn_status tarn__timeline_begin_point(tarn__synced_timeline *timeline,
                                       tarn__synced_point **out_point) {
  assert(timeline->holds > 0 && !timeline->busy);
  tarn__synced_point *point =
      take_node(&timeline->list->spare_points, sizeof(tarn__synced_point));
  *out_point = point;
  if (point == NULL) return TARN_E_NOMEM;
  point->timeline = timeline;
  timeline->busy = true;
  return TARN_OK;
}

// A stream without a handle has done its work when it was queued.
tarn_status tarn__point_record(tarn__synced_point *point, tarn_stream *stream) {
  if (tarn_stream_native(stream) == NULL) {
    TARN__TRY(tarn_stream_synchronize(stream));
  } else {
    TARN__TRY(tarn__copy_streams_take_event(tarn_stream_device(stream),
                                            &point->event));
    point->event->serial = tarn_stream_serial(stream);
    TARN__TRY(tarn_event_record(point->event->event, stream));
  }
  point->made = true;
  return TARN_OK;
}

static void append(tarn__synced_timeline *timeline, tarn__synced_point *point) {
  tarn__synced_point **at = &timeline->points;
  while (*at != NULL)
    at = &(*at)->next;
  *at = point;
  timeline->point_count++;
  if (timeline->point_count > TARN__MOST_POINTS) drop_oldest_point(timeline);
}

uint64_t tarn__timeline_end_point(tarn__synced_timeline *timeline,
                                  tarn__synced_point *point) {
  assert(timeline->busy);
  timeline->busy = false;
  if (!point->made || timeline->failed) {
    free_point(point);
    return 0;
  }
  point->number = ++timeline->issued;
  append(timeline, point);
  if (point->event == NULL) {
    timeline->done = timeline->issued;
    drop_points_that_are_over(timeline);
  }
  return timeline->issued;
}

// --- waiting ---------------------------------------------------------------

// NULL: the point is reached, or not made.
static tarn__synced_point *point_at(const tarn__synced_timeline *timeline,
                                    uint64_t number) {
  if (tarn__timeline_is_over(timeline, number)) return NULL;
  tarn__synced_point *point = timeline->points;
  while (point != NULL && point->number < number)
    point = point->next;
  assert(point != NULL || number > timeline->issued);
  return point;
}

tarn__synced_point *tarn__timeline_hold_point(tarn__synced_timeline *timeline,
                                              uint64_t number) {
  tarn__synced_point *point = point_at(timeline, number);
  if (point == NULL) return NULL;
  point->holds++;
  timeline->holds++;
  return point;
}

// The queued work of a failed stream may still run, and no later wait follows.
static tarn_status wait_out(const tarn__synced_point *point,
                            tarn_status status) {
  if (status != TARN_E_DEVICE) return status;
  tarn__failure failure = tarn__failure_of(status);
  tarn_status joined = tarn_stream_join(NULL, point->timeline->serial);
  (void)joined;  // of the same failure
  return tarn__failure_tell(&failure);
}

tarn_status tarn__point_query(tarn__synced_point *point) {
  return wait_out(point, tarn_event_query(point->event->event));
}

tarn_status tarn__point_wait(tarn__synced_point *point) {
  return wait_out(point, tarn_event_synchronize(point->event->event));
}

tarn_status tarn__point_join(tarn__synced_point *point, tarn_stream *stream) {
  if (tarn_stream_serial(stream) == point->timeline->serial) return TARN_OK;
  return tarn_stream_wait_event(stream, point->event->event);
}

// The stream is idle now, so a query does not wait.
static void fail(tarn__synced_timeline *timeline) {
  tarn__failure failure = tarn__failure_of(TARN_E_DEVICE);
  timeline->failed = true;
  tarn__synced_point *point = timeline->points;
  while (point != NULL && tarn_event_query(point->event->event) == TARN_OK) {
    if (timeline->done < point->number) timeline->done = point->number;
    point = point->next;
  }
  (void)tarn__failure_tell(&failure);
}

void tarn__timeline_release_point(tarn__synced_timeline *timeline,
                                  tarn__synced_point *point,
                                  tarn_status status) {
  assert(point->timeline == timeline && point->holds > 0);
  point->holds--;
  if (status == TARN_OK && timeline->done < point->number) {
    timeline->done = point->number;
  }
  if (status == TARN_E_DEVICE && !timeline->failed) fail(timeline);
  drop_points_that_are_over(timeline);
  tarn__timeline_release(timeline);
}

// --- work of another buffer ------------------------------------------------

tarn__synced_event *tarn__timeline_share(tarn__synced_timeline *timeline,
                                         uint64_t number) {
  const tarn__synced_point *point = point_at(timeline, number);
  if (point == NULL) return NULL;
  atomic_fetch_add(&point->event->count, 1);
  return point->event;
}

tarn_status tarn__timeline_adopt(tarn__synced_timelines *timelines,
                                 tarn__synced_event *event,
                                 tarn__synced_timeline **out_timeline) {
  tarn__synced_point *point = NULL;
  tarn__synced_timeline *timeline =
      add(timelines, event->device, event->serial);
  *out_timeline = NULL;
  if (timeline == NULL) return TARN_E_NOMEM;
  timeline->holds = 1;
  timeline->foreign = true;
  tarn_status status = tarn__timeline_begin_point(timeline, &point);
  if (status != TARN_OK) {
    tarn__timeline_release(timeline);
    return status;
  }
  point->event = event;
  point->made = true;
  tarn__timeline_end_point(timeline, point);
  *out_timeline = timeline;
  return TARN_OK;
}
