// timelines.h - the streams that use a buffer, and points in them.
//
// A timeline is a stream as a buffer sees it: its serial, and points that the
// buffer has made in it, numbered from 1. A point is an event recorded behind
// the work queued so far. A stream runs in order, so a reached point stands for
// all points before it: |done| is the last that is known to be reached.
//
//   stream   ──copy──▌1──kernel──▌2──────▌3──►        done = 1
//                    (reached)   point    point
//
// A timeline outlives its stream: the end of a stream is the end of its work. A
// failed timeline is over: the thread that finds the failure waits for the
// stream first. Its writes behind |done| are void.
//
// Lifetime: a timeline and its points live while it has holds: by threads, by
//           held points, and by uses in spans. A thread that removes uses or
//           releases a point must hold the timeline to look at it afterwards.
// Threads:  all fields with the lock of the buffer; |serial|, |device| and the
//           timeline of a point never change. The functions that call the
//           device, tarn__point_..., are called without the lock, by a thread
//           that holds the timeline (for its own point) or the point.
// Fork:     in a child all functions only free.
#ifndef TARN_SYNCED_TIMELINES_H_
#define TARN_SYNCED_TIMELINES_H_

#include "synced/copy_streams.h"
#include "synced/spans.h"

typedef struct tarn__synced_point {
  struct tarn__synced_point *next;  // a later position
  tarn__synced_timeline *timeline;
  tarn__synced_event *event;  // NULL: it was reached when it was made
  bool made;                  // the event is recorded, or needless
  uint64_t number;            // 0: none yet
  uint32_t holds;             // threads that wait for it now
} tarn__synced_point;

// Zero-filled: none.
typedef struct tarn__synced_timelines {
  tarn__synced_timeline *first;
  tarn__synced_spares spare_timelines;
  tarn__synced_spares spare_points;
} tarn__synced_timelines;

struct tarn__synced_timeline {
  tarn__synced_timeline *next;
  tarn__synced_timelines *list;
  uint64_t serial;
  tarn_device *device;
  uint64_t issued;  // the last point made
  uint64_t done;    // the last point known to be reached
  bool failed;      // points after |done| will never be reached
  bool foreign;     // points of another buffer: see tarn__timeline_adopt
  bool busy;        // a thread makes a point: others wait
  tarn__synced_point *points;  // not known to be reached, oldest first; the
                               // last one is |issued|, unless that is reached
  size_t point_count;
  size_t holds;  // one for each use and each held point among them
};

// Of one timeline; more points are dropped, the oldest first.
enum { TARN__MOST_POINTS = 64 };

// Frees the spare nodes and, in a child of fork, the timelines. Elsewhere there
// are none left: the spans have been freed, and no thread holds a timeline.
void tarn__timelines_deinit(tarn__synced_timelines *timelines);

// --- timelines, with the lock ------------------------------------------------

// The timeline of |stream|, created if it is new; the caller holds it.
TARN_MUST_CHECK tarn_status
tarn__timeline_of(tarn__synced_timelines *timelines, tarn_stream *stream,
                  tarn__synced_timeline **out_timeline);

// Takes a hold.
static inline void tarn__timeline_hold(tarn__synced_timeline *timeline) {
  timeline->holds++;
}

// Releases a hold. A timeline without holds is freed.
void tarn__timeline_release(tarn__synced_timeline *timeline);

// Whether the work up to |number| is known to be over: done or failed.
static inline bool tarn__timeline_is_over(const tarn__synced_timeline *timeline,
                                          uint64_t number) {
  return number <= timeline->done || timeline->failed;
}

// Whether the work of point |number| has failed: its writes are void.
static inline bool tarn__timeline_is_void(const tarn__synced_timeline *timeline,
                                          uint64_t number) {
  return number > timeline->done && timeline->failed;
}

// --- making a point, in three steps ------------------------------------------
// The order of events that two threads record at once would be unknown: so a
// timeline is |busy| while a thread records. Other threads sleep on the
// buffer's |changed| meanwhile.

// With the lock: takes a node and makes the timeline busy until
// tarn__timeline_end_point, which must follow. The caller holds the timeline,
// which is not busy.
//
// TARN_E_NOMEM  the timeline is not busy.
TARN_MUST_CHECK tarn_status tarn__timeline_begin_point(
    tarn__synced_timeline *timeline, tarn__synced_point **out_point);

// Without the lock: records an event on |stream|, the timeline's stream.
//
// TARN_E_DEVICE  the stream has failed, or there is no event. The point is not
//                made.
TARN_MUST_CHECK tarn_status tarn__point_record(tarn__synced_point *point,
                                               tarn_stream *stream);

// With the lock: returns the number of the point. 0: it was not made, or the
// timeline has failed meanwhile; the point is freed, and the caller must wait
// for the work with tarn_stream_synchronize, which waits for failed streams
// too.
//
// Beyond TARN__MOST_POINTS the oldest point without holds is dropped: a wait
// for it is a wait for the next.
uint64_t tarn__timeline_end_point(tarn__synced_timeline *timeline,
                                  tarn__synced_point *point);

// --- waiting, in three steps -----------------------------------------------

// With the lock: the oldest point at or behind |number|; holds it and the
// timeline. NULL: it is reached, or not made yet.
tarn__synced_point *tarn__timeline_hold_point(tarn__synced_timeline *timeline,
                                              uint64_t number);

// Without the lock: TARN_OK, TARN_PENDING, or TARN_E_DEVICE if the stream has
// failed, when its work is over. Any other status says nothing about the
// stream.
TARN_MUST_CHECK tarn_status tarn__point_query(tarn__synced_point *point);
// The same, but the host waits.
TARN_MUST_CHECK tarn_status tarn__point_wait(tarn__synced_point *point);
// |stream| waits. A failure may be of either stream: tarn__point_query tells
// whether the point's stream has failed.
TARN_MUST_CHECK tarn_status tarn__point_join(tarn__synced_point *point,
                                             tarn_stream *stream);

// With the lock: releases the point and the timeline with the result of a query
// or wait (TARN_PENDING: none). Points that are over and not held are freed. If
// the timeline has failed the other points are queried, so that |done| is the
// last one reached.
void tarn__timeline_release_point(tarn__synced_timeline *timeline,
                                  tarn__synced_point *point,
                                  tarn_status status);

// --- work of another buffer ------------------------------------------------

// With the lock of the other buffer: the event of the oldest point at or behind
// |number|, with a reference; NULL where tarn__timeline_hold_point returns
// NULL.
tarn__synced_event *tarn__timeline_share(tarn__synced_timeline *timeline,
                                         uint64_t number);

// With the lock of the buffer that follows: a new timeline with |event| as
// point 1, held by the caller; takes the reference. The buffer's own timeline
// of the stream does not serve: the order of points of two buffers is unknown.
//
// TARN_E_NOMEM  the caller keeps |event|.
TARN_MUST_CHECK tarn_status tarn__timeline_adopt(
    tarn__synced_timelines *timelines, tarn__synced_event *event,
    tarn__synced_timeline **out_timeline);

#endif  // TARN_SYNCED_TIMELINES_H_
