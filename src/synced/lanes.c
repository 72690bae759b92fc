// The streams that are at work on a buffer.
//
//   lane ──► mark 3 ──► mark 4 ──► mark 7      issued = 7, done = 2
//            held                              5 and 6 were dropped
//
// Invariants:
//   * marks are in the order of their numbers, all of them behind |done|, but
//     for those that are held still
//   * the mark of |issued| is there unless it is over, so that there is a mark
//     at or behind each position that is not
//   * a lane has at least as many holds as its marks together
#include "synced/lanes.h"

#include "base/hostmem.h"
#include "base/status.h"

// Kept for the next ones.
enum { SPARE_LANES = 8, SPARE_MARKS = 16 };

void tarn__lanes_init(tarn__synced_timelines *lanes) {
  *lanes = (tarn__synced_timelines){.first = NULL};
}

// --- flags -----------------------------------------------------------------

void tarn__flag_release(tarn__synced_event *flag) {
  if (flag == NULL || atomic_fetch_sub(&flag->count, 1) > 1) return;
  tarn__station_give_flag(flag);
}

// Behind what |stream| has queued.
static tarn_status raise_flag(tarn_stream *stream,
                              tarn__synced_event **out_flag) {
  tarn__synced_event *flag = NULL;
  *out_flag = NULL;
  tarn_status status =
      tarn__station_take_flag(tarn_stream_device(stream), &flag);
  if (status != TARN_OK) return status;
  flag->serial = tarn_stream_serial(stream);
  atomic_init(&flag->count, 1);
  status = tarn_event_record(flag->event, stream);
  if (status == TARN_OK) {
    *out_flag = flag;
  } else {
    tarn__flag_release(flag);
  }
  return status;
}

// --- marks -----------------------------------------------------------------

// NULL: no memory.
static tarn__synced_point *take_mark(tarn__synced_timelines *lanes) {
  tarn__synced_point *mark = lanes->spare_marks;
  if (mark == NULL) return tarn__host_alloc(sizeof *mark);
  lanes->spare_marks = mark->next;
  lanes->spare_mark_count--;
  *mark = (tarn__synced_point){.next = NULL};
  return mark;
}

static void give_mark(tarn__synced_timelines *lanes, tarn__synced_point *mark) {
  if (mark == NULL || lanes->spare_mark_count == SPARE_MARKS) {
    tarn__host_free(mark, sizeof *mark);
    return;
  }
  mark->next = lanes->spare_marks;
  lanes->spare_marks = mark;
  lanes->spare_mark_count++;
}

static void free_mark(tarn__synced_point *mark) {
  tarn__flag_release(mark->flag);
  give_mark(mark->lane->list, mark);
}

// Takes out the mark that |at| leads to.
static void remove_mark(tarn__synced_point **at) {
  tarn__synced_point *mark = *at;
  *at = mark->next;
  mark->lane->mark_count--;
  free_mark(mark);
}

static void drop_marks_that_are_over(tarn__synced_timeline *lane) {
  tarn__synced_point **at = &lane->marks;
  while (*at != NULL) {
    const tarn__synced_point *mark = *at;
    if (mark->holds == 0 && tarn__lane_is_over(lane, mark->number)) {
      remove_mark(at);
    } else {
      at = &(*at)->next;
    }
  }
}

// Never the last, behind which there is no other to wait for.
static void drop_oldest_mark(tarn__synced_timeline *lane) {
  tarn__synced_point **at = &lane->marks;
  while (*at != NULL && (*at)->holds > 0)
    at = &(*at)->next;
  if (*at != NULL && (*at)->next != NULL) remove_mark(at);
}

// --- lanes -----------------------------------------------------------------

static tarn__synced_timeline *take_lane(tarn__synced_timelines *lanes) {
  tarn__synced_timeline *lane = lanes->spare_lanes;
  if (lane == NULL) return tarn__host_alloc(sizeof *lane);
  lanes->spare_lanes = lane->next;
  lanes->spare_lane_count--;
  *lane = (tarn__synced_timeline){.next = NULL};
  return lane;
}

static void free_lane(tarn__synced_timeline *lane) {
  tarn__synced_timelines *lanes = lane->list;
  while (lane->marks != NULL)
    remove_mark(&lane->marks);
  if (lanes->spare_lane_count == SPARE_LANES) {
    tarn__host_free(lane, sizeof *lane);
    return;
  }
  lane->next = lanes->spare_lanes;
  lanes->spare_lanes = lane;
  lanes->spare_lane_count++;
}

static void free_spares(tarn__synced_timelines *lanes) {
  while (lanes->spare_lanes != NULL) {
    tarn__synced_timeline *lane = lanes->spare_lanes;
    lanes->spare_lanes = lane->next;
    tarn__host_free(lane, sizeof *lane);
  }
  while (lanes->spare_marks != NULL) {
    tarn__synced_point *mark = lanes->spare_marks;
    lanes->spare_marks = mark->next;
    tarn__host_free(mark, sizeof *mark);
  }
}

void tarn__lanes_deinit(tarn__synced_timelines *lanes) {
  while (lanes->first != NULL) {
    tarn__synced_timeline *lane = lanes->first;
    lanes->first = lane->next;
    free_lane(lane);
  }
  free_spares(lanes);
  tarn__lanes_init(lanes);
}

static void go_if_unused(tarn__synced_timeline *lane) {
  if (lane->uses > 0 || lane->holds > 0) return;
  assert(!lane->busy);
  tarn__synced_timeline **at = &lane->list->first;
  while (*at != lane)
    at = &(*at)->next;
  *at = lane->next;
  free_lane(lane);
}

static tarn__synced_timeline *find(const tarn__synced_timelines *lanes,
                                   uint64_t serial) {
  tarn__synced_timeline *lane = lanes->first;
  while (lane != NULL && (lane->serial != serial || lane->foreign))
    lane = lane->next;
  return lane;
}

static tarn__synced_timeline *add(tarn__synced_timelines *lanes,
                                  tarn_device *device, uint64_t serial) {
  tarn__synced_timeline *lane = take_lane(lanes);
  if (lane == NULL) return NULL;
  lane->serial = serial;
  lane->device = device;
  lane->list = lanes;
  lane->next = lanes->first;
  lanes->first = lane;
  return lane;
}

tarn_status tarn__lane_of(tarn__synced_timelines *lanes, tarn_stream *stream,
                          tarn__synced_timeline **out_lane) {
  uint64_t serial = tarn_stream_serial(stream);
  tarn__synced_timeline *lane = find(lanes, serial);
  if (lane == NULL) lane = add(lanes, tarn_stream_device(stream), serial);
  if (lane != NULL) lane->holds++;
  *out_lane = lane;
  return lane != NULL ? TARN_OK : TARN_E_NOMEM;
}

void tarn__lane_hold(tarn__synced_timeline *lane) {
  lane->holds++;
}

void tarn__lane_release(tarn__synced_timeline *lane) {
  assert(lane->holds > 0);
  lane->holds--;
  go_if_unused(lane);
}

void tarn__lane_add_use(tarn__synced_timeline *lane) {
  lane->uses++;
}

void tarn__lane_remove_use(tarn__synced_timeline *lane) {
  assert(lane->uses > 0);
  lane->uses--;
  go_if_unused(lane);
}

// --- marking ---------------------------------------------------------------

tarn_status tarn__lane_begin_mark(tarn__synced_timeline *lane,
                                  tarn__synced_point **out_mark) {
  assert(lane->holds > 0 && !lane->busy);
  tarn__synced_point *mark = take_mark(lane->list);
  *out_mark = mark;
  if (mark == NULL) return TARN_E_NOMEM;
  mark->lane = lane;
  lane->busy = true;
  return TARN_OK;
}

// What is queued on a stream without a handle is done already.
tarn_status tarn__mark_record(tarn__synced_point *mark, tarn_stream *stream) {
  if (tarn_stream_native(stream) != NULL) {
    return raise_flag(stream, &mark->flag);
  }
  tarn_status status = tarn_stream_synchronize(stream);
  mark->reached = status == TARN_OK;
  return status;
}

static void append(tarn__synced_timeline *lane, tarn__synced_point *mark) {
  tarn__synced_point **at = &lane->marks;
  while (*at != NULL)
    at = &(*at)->next;
  *at = mark;
  lane->mark_count++;
  if (lane->mark_count > TARN__MOST_MARKS) drop_oldest_mark(lane);
}

uint64_t tarn__lane_end_mark(tarn__synced_timeline *lane,
                             tarn__synced_point *mark) {
  assert(lane->busy);
  lane->busy = false;
  bool recorded = mark->flag != NULL || mark->reached;
  if (!recorded || lane->failed) {
    free_mark(mark);
    return 0;
  }
  mark->number = ++lane->issued;
  append(lane, mark);
  if (mark->reached) {
    lane->done = lane->issued;
    drop_marks_that_are_over(lane);
  }
  return lane->issued;
}

// --- waiting ---------------------------------------------------------------

// NULL: it is over, or nobody has marked it.
static tarn__synced_point *mark_at(const tarn__synced_timeline *lane,
                                   uint64_t number) {
  if (tarn__lane_is_over(lane, number)) return NULL;
  tarn__synced_point *mark = lane->marks;
  while (mark != NULL && mark->number < number)
    mark = mark->next;
  assert(mark != NULL || number > lane->issued);
  return mark;
}

tarn__synced_point *tarn__lane_hold_mark(tarn__synced_timeline *lane,
                                         uint64_t number) {
  tarn__synced_point *mark = mark_at(lane, number);
  if (mark == NULL) return NULL;
  mark->holds++;
  lane->holds++;
  return mark;
}

// What a failed stream has queued may run on, and nobody will wait for it
// later.
static tarn_status wait_out(const tarn__synced_point *mark,
                            tarn_status status) {
  if (status != TARN_E_DEVICE) return status;
  tarn__failure failure = tarn__failure_of(status);
  tarn_status joined = tarn_stream_join(NULL, mark->lane->serial);
  (void)joined;  // of the same failure
  return tarn__failure_tell(&failure);
}

tarn_status tarn__mark_query(tarn__synced_point *mark) {
  return wait_out(mark, tarn_event_query(mark->flag->event));
}

tarn_status tarn__mark_wait(tarn__synced_point *mark) {
  return wait_out(mark, tarn_event_synchronize(mark->flag->event));
}

tarn_status tarn__mark_join(tarn__synced_point *mark, tarn_stream *stream) {
  if (tarn_stream_serial(stream) == mark->lane->serial) return TARN_OK;
  return tarn_stream_wait_event(stream, mark->flag->event);
}

// The stream is at rest by now, so that to ask is not to wait.
static void fail(tarn__synced_timeline *lane) {
  tarn__failure failure = tarn__failure_of(TARN_E_DEVICE);
  lane->failed = true;
  tarn__synced_point *mark = lane->marks;
  while (mark != NULL && tarn_event_query(mark->flag->event) == TARN_OK) {
    if (lane->done < mark->number) lane->done = mark->number;
    mark = mark->next;
  }
  (void)tarn__failure_tell(&failure);
}

void tarn__lane_release_mark(tarn__synced_timeline *lane,
                             tarn__synced_point *mark, tarn_status status) {
  assert(mark->lane == lane && mark->holds > 0);
  mark->holds--;
  if (status == TARN_OK && lane->done < mark->number) {
    lane->done = mark->number;
  }
  if (status == TARN_E_DEVICE && !lane->failed) fail(lane);
  drop_marks_that_are_over(lane);
  tarn__lane_release(lane);
}

// --- work of another buffer ------------------------------------------------

tarn__synced_event *tarn__lane_share(tarn__synced_timeline *lane,
                                     uint64_t number) {
  const tarn__synced_point *mark = mark_at(lane, number);
  if (mark == NULL) return NULL;
  atomic_fetch_add(&mark->flag->count, 1);
  return mark->flag;
}

tarn_status tarn__lane_adopt(tarn__synced_timelines *lanes,
                             tarn__synced_event *flag,
                             tarn__synced_timeline **out_lane) {
  tarn__synced_point *mark = take_mark(lanes);
  tarn__synced_timeline *lane =
      mark != NULL ? add(lanes, flag->device, flag->serial) : NULL;
  *out_lane = lane;
  if (lane == NULL) {
    give_mark(lanes, mark);
    return TARN_E_NOMEM;
  }
  lane->foreign = true;
  lane->holds = 1;
  lane->issued = 1;
  *mark = (tarn__synced_point){.lane = lane, .flag = flag, .number = 1};
  append(lane, mark);
  return TARN_OK;
}
