// timelines.h - the streams that are at work on a buffer, and points in them.
//
// A timeline is one stream as a buffer sees it: its serial, and positions that
// the buffer has marked in it, numbered from 1. A position is an event behind
// what the stream had queued. Since a stream runs in order, a position that is
// reached stands for all before it: |done| is the last that is known to be.
//
//   stream   ──copy──▌1──kernel──▌2──────▌3──►        done = 1
//                    (reached)   point    point
//
// A timeline outlives its stream, whose end is the end of its work. One that
// has failed is over, and nothing of it runs any more: who finds the failure
// waits for the stream first. Writes behind |done| are void then.
//
// Lifetime: a timeline lives while uses name it (|uses|) or somebody holds it
//           (|holds|), and goes with the last of them; with it go its points.
//           So who takes uses out, or lets go of a point, must hold a timeline
//           that it wants to look at afterwards.
// Threads:  all fields by whoever has the lock of the buffer; |serial|,
//           |device| and what a point is of never change. The functions that
//           call the device, tarn__point_..., are called without the lock, by a
//           thread that holds the timeline (for its own point) or the point.
// Fork:     in a child everything here only frees.
#ifndef TARN_SYNCED_TIMELINES_H_
#define TARN_SYNCED_TIMELINES_H_

#include "synced/copy_streams.h"
#include "synced/spans.h"

typedef struct tarn__synced_point {
  struct tarn__synced_point *next;  // a later position
  tarn__synced_timeline *timeline;
  tarn__synced_event *event;  // NULL: not recorded, or reached when it was
  bool reached;               // it needs no event
  uint64_t number;            // 0: none yet
  uint32_t holds;             // threads that wait for it just now
} tarn__synced_point;

typedef struct tarn__synced_timelines {
  tarn__synced_timeline *first;
  tarn__synced_timeline
      *spare_timelines;  // so that who points and reaches in turns takes no
  size_t spare_timeline_count;  // memory
  tarn__synced_point *spare_points;
  size_t spare_point_count;
} tarn__synced_timelines;

struct tarn__synced_timeline {
  tarn__synced_timeline *next;
  tarn__synced_timelines *list;
  uint64_t serial;
  tarn_device *device;
  uint64_t issued;  // the last position that was marked
  uint64_t done;    // the last that is known to be reached
  bool failed;      // the stream has: positions after |done| will not come
  bool foreign;     // of another buffer's points: see tarn__timeline_adopt
  bool busy;        // a thread points it: others wait until it has
  tarn__synced_point
      *points;  // that are not known to be reached, oldest first;
                // the last one is |issued|, unless that is over
  size_t point_count;
  size_t uses;
  size_t holds;  // one for each held point among them
};

// More would be dropped, the oldest first.
enum { TARN__MOST_POINTS = 64 };

void tarn__timelines_init(tarn__synced_timelines *timelines);

// Frees what is left, which is nothing but in a child of fork: spans have been
// ended, and nobody holds a timeline.
void tarn__timelines_deinit(tarn__synced_timelines *timelines);

// --- timelines: with the lock
// --------------------------------------------------

// The timeline of |stream|, made if it is new; the caller holds it.
TARN_MUST_CHECK tarn_status
tarn__timeline_of(tarn__synced_timelines *timelines, tarn_stream *stream,
                  tarn__synced_timeline **out_timeline);

// Holds a timeline that was found in a use.
void tarn__timeline_hold(tarn__synced_timeline *timeline);

// Lets go of it; a timeline without uses goes with its last hold.
void tarn__timeline_release(tarn__synced_timeline *timeline);

// One use more, and one less; for spans.c alone.
void tarn__timeline_add_use(tarn__synced_timeline *timeline);
void tarn__timeline_remove_use(tarn__synced_timeline *timeline);

// Whether the work up to |number| is known to be over, one way or the other ...
static inline bool tarn__timeline_is_over(const tarn__synced_timeline *timeline,
                                          uint64_t number) {
  return number <= timeline->done || timeline->failed;
}

// ... and whether it is the other: what it wrote is worth nothing.
static inline bool tarn__timeline_is_void(const tarn__synced_timeline *timeline,
                                          uint64_t number) {
  return number > timeline->done && timeline->failed;
}

// --- marking, in three steps -----------------------------------------------
// Two threads that recorded at once would not know whose event is the later
// one; hence |busy|, for as long as one event is recorded. Who finds a timeline
// busy sleeps on the buffer's |changed|, and who has marked it wakes sleepers.

// With the lock: takes a node. The caller holds the timeline, which is not
// busy, and is from now on, until tarn__timeline_end_point, which must follow.
//
// TARN_E_NOMEM  the timeline is not busy.
TARN_MUST_CHECK tarn_status tarn__timeline_begin_point(
    tarn__synced_timeline *timeline, tarn__synced_point **out_point);

// Without: an event behind what |stream|, which is the timeline's, has queued.
//
// TARN_E_DEVICE  the stream has failed, or no event could be had. The point has
//                none, and will be no position.
TARN_MUST_CHECK tarn_status tarn__point_record(tarn__synced_point *point,
                                               tarn_stream *stream);

// With it: the position that the point has become, or 0 if there is none: it
// was not recorded, or the timeline was found failed meanwhile. Then the point
// is gone, and the work, which nobody could wait for later, is to be waited for
// by tarn_stream_synchronize, which waits for failed streams too.
//
// Beyond TARN__MOST_POINTS the oldest that nobody waits for is dropped: who
// asks for its position waits for the next.
uint64_t tarn__timeline_end_point(tarn__synced_timeline *timeline,
                                  tarn__synced_point *point);

// --- waiting, in three steps -----------------------------------------------

// With the lock: the oldest point at or behind |number|, held, and with it the
// timeline; NULL if that is over, or is no position yet: nobody has marked it,
// or a thread is just about to.
tarn__synced_point *tarn__timeline_hold_point(tarn__synced_timeline *timeline,
                                              uint64_t number);

// Without: TARN_OK, TARN_PENDING, or, as TARN_E_DEVICE, the stream's failure,
// when nothing of it runs any more. Any other status says nothing about the
// stream ...
TARN_MUST_CHECK tarn_status tarn__point_query(tarn__synced_point *point);
// ... the host waits, and the same ...
TARN_MUST_CHECK tarn_status tarn__point_wait(tarn__synced_point *point);
// ... |stream| waits. A failure may be either stream's: tarn__point_query says
// whether it is the point's.
TARN_MUST_CHECK tarn_status tarn__point_join(tarn__synced_point *point,
                                             tarn_stream *stream);

// With it: what came of query or wait, TARN_PENDING if nothing is known. Lets
// go of the point, and of the timeline; points that are over and not held go.
// Of a timeline that has failed the other points are asked, so that |done| is
// the last that was reached before.
void tarn__timeline_release_point(tarn__synced_timeline *timeline,
                                  tarn__synced_point *point,
                                  tarn_status status);

// --- work of another buffer ------------------------------------------------

// With the lock of the one: the event of the oldest point at or behind
// |number|, counted once more; NULL where tarn__timeline_hold_point has none.
tarn__synced_event *tarn__timeline_share(tarn__synced_timeline *timeline,
                                         uint64_t number);

// With the lock of the other: a timeline of its own whose position 1 is
// |event|, held by the caller; it keeps |event| from now on. No timeline that
// the buffer has of the same stream will do: nobody knows which of two buffers
// marked first.
//
// TARN_E_NOMEM  the caller still has |event|.
TARN_MUST_CHECK tarn_status tarn__timeline_adopt(
    tarn__synced_timelines *timelines, tarn__synced_event *event,
    tarn__synced_timeline **out_timeline);

// Lets go of an event; NULL is allowed.
void tarn__event_release(tarn__synced_event *event);

#endif  // TARN_SYNCED_TIMELINES_H_
