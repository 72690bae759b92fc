// lanes.h - the streams that are at work on a buffer, and marks in them.
//
// A lane is one stream as a buffer sees it: its serial, and positions that the
// buffer has marked in it, numbered from 1. A position is an event behind what
// the stream had queued. Since a stream runs in order, a position that is
// reached stands for all before it: |done| is the last that is known to be.
//
//   stream   ──copy──▌1──kernel──▌2──────▌3──►        done = 1
//                    (reached)   mark    mark
//
// A lane outlives its stream, whose end is the end of its work. One that has
// failed is over, and nothing of it runs any more: who finds the failure waits
// for the stream first. Writes behind |done| are void then.
//
// Lifetime: a lane lives while uses name it (|uses|) or somebody holds it
//           (|holds|), and goes with the last of them; with it go its marks.
//           So who takes uses out, or lets go of a mark, must hold a lane that
//           it wants to look at afterwards.
// Threads:  all fields by whoever has the gate of the buffer; |serial|,
//           |device| and what a mark is of never change. The functions that
//           call the device, tarn__mark_..., are called without the gate, by a
//           thread that holds the lane (for its own mark) or the mark.
// Fork:     in a child everything here only frees.
#ifndef TARN_SYNCED_LANES_H_
#define TARN_SYNCED_LANES_H_

#include "synced/spans.h"
#include "synced/station.h"

typedef struct tarn__synced_point {
  struct tarn__synced_point *next;  // a later position
  tarn__synced_timeline *lane;
  tarn__synced_event *flag;  // NULL: not recorded, or reached when it was
  bool reached;              // it needs no flag
  uint64_t number;           // 0: none yet
  uint32_t holds;            // threads that wait for it just now
} tarn__synced_point;

typedef struct tarn__synced_timelines {
  tarn__synced_timeline *first;
  tarn__synced_timeline
      *spare_lanes;         // so that who marks and reaches in turns takes no
  size_t spare_lane_count;  // memory
  tarn__synced_point *spare_marks;
  size_t spare_mark_count;
} tarn__synced_timelines;

struct tarn__synced_timeline {
  tarn__synced_timeline *next;
  tarn__synced_timelines *list;
  uint64_t serial;
  tarn_device *device;
  uint64_t issued;  // the last position that was marked
  uint64_t done;    // the last that is known to be reached
  bool failed;      // the stream has: positions after |done| will not come
  bool foreign;     // of another buffer's marks: see tarn__lane_adopt
  bool busy;        // a thread marks it: others wait until it has
  tarn__synced_point *marks;  // that are not known to be reached, oldest first;
                              // the last one is |issued|, unless that is over
  size_t mark_count;
  size_t uses;
  size_t holds;  // one for each held mark among them
};

// More would be dropped, the oldest first.
enum { TARN__MOST_MARKS = 64 };

void tarn__lanes_init(tarn__synced_timelines *lanes);

// Frees what is left, which is nothing but in a child of fork: spans have been
// ended, and nobody holds a lane.
void tarn__lanes_deinit(tarn__synced_timelines *lanes);

// --- lanes: with the gate --------------------------------------------------

// The lane of |stream|, made if it is new; the caller holds it.
TARN_MUST_CHECK tarn_status tarn__lane_of(tarn__synced_timelines *lanes,
                                          tarn_stream *stream,
                                          tarn__synced_timeline **out_lane);

// Holds a lane that was found in a use.
void tarn__lane_hold(tarn__synced_timeline *lane);

// Lets go of it; a lane without uses goes with its last hold.
void tarn__lane_release(tarn__synced_timeline *lane);

// One use more, and one less; for spans.c alone.
void tarn__lane_add_use(tarn__synced_timeline *lane);
void tarn__lane_remove_use(tarn__synced_timeline *lane);

// Whether the work up to |number| is known to be over, one way or the other ...
static inline bool tarn__lane_is_over(const tarn__synced_timeline *lane,
                                      uint64_t number) {
  return number <= lane->done || lane->failed;
}

// ... and whether it is the other: what it wrote is worth nothing.
static inline bool tarn__lane_is_void(const tarn__synced_timeline *lane,
                                      uint64_t number) {
  return number > lane->done && lane->failed;
}

// --- marking, in three steps -----------------------------------------------
// Two threads that recorded at once would not know whose event is the later
// one; hence |busy|, for as long as one event is recorded. Who finds a lane
// busy sleeps on the buffer's |changed|, and who has marked it wakes sleepers.

// With the gate: takes a node. The caller holds the lane, which is not busy,
// and is from now on, until tarn__lane_end_mark, which must follow.
//
// TARN_E_NOMEM  the lane is not busy.
TARN_MUST_CHECK tarn_status tarn__lane_begin_mark(
    tarn__synced_timeline *lane, tarn__synced_point **out_mark);

// Without: an event behind what |stream|, which is the lane's, has queued.
//
// TARN_E_DEVICE  the stream has failed, or no event could be had. The mark has
//                none, and will be no position.
TARN_MUST_CHECK tarn_status tarn__mark_record(tarn__synced_point *mark,
                                              tarn_stream *stream);

// With it: the position that the mark has become, or 0 if there is none: it was
// not recorded, or the lane was found failed meanwhile. Then the mark is gone,
// and the work, which nobody could wait for later, is to be waited for by
// tarn_stream_synchronize, which waits for failed streams too.
//
// Beyond TARN__MOST_MARKS the oldest that nobody waits for is dropped: who asks
// for its position waits for the next.
uint64_t tarn__lane_end_mark(tarn__synced_timeline *lane,
                             tarn__synced_point *mark);

// --- waiting, in three steps -----------------------------------------------

// With the gate: the oldest mark at or behind |number|, held, and with it the
// lane; NULL if that is over, or is no position yet: nobody has marked it, or a
// thread is just about to.
tarn__synced_point *tarn__lane_hold_mark(tarn__synced_timeline *lane,
                                         uint64_t number);

// Without: TARN_OK, TARN_PENDING, or, as TARN_E_DEVICE, the stream's failure,
// when nothing of it runs any more. Any other status says nothing about the
// stream ...
TARN_MUST_CHECK tarn_status tarn__mark_query(tarn__synced_point *mark);
// ... the host waits, and the same ...
TARN_MUST_CHECK tarn_status tarn__mark_wait(tarn__synced_point *mark);
// ... |stream| waits. A failure may be either stream's: tarn__mark_query says
// whether it is the mark's.
TARN_MUST_CHECK tarn_status tarn__mark_join(tarn__synced_point *mark,
                                            tarn_stream *stream);

// With it: what came of query or wait, TARN_PENDING if nothing is known. Lets
// go of the mark, and of the lane; marks that are over and not held go. Of a
// lane that has failed the other marks are asked, so that |done| is the last
// that was reached before.
void tarn__lane_release_mark(tarn__synced_timeline *lane,
                             tarn__synced_point *mark, tarn_status status);

// --- work of another buffer ------------------------------------------------

// With the gate of the one: the flag of the oldest mark at or behind |number|,
// counted once more; NULL where tarn__lane_hold_mark has none.
tarn__synced_event *tarn__lane_share(tarn__synced_timeline *lane,
                                     uint64_t number);

// With the gate of the other: a lane of its own whose position 1 is |flag|,
// held by the caller; it keeps |flag| from now on. No lane that the buffer has
// of the same stream will do: nobody knows which of two buffers marked first.
//
// TARN_E_NOMEM  the caller still has |flag|.
TARN_MUST_CHECK tarn_status tarn__lane_adopt(tarn__synced_timelines *lanes,
                                             tarn__synced_event *flag,
                                             tarn__synced_timeline **out_lane);

// Lets go of a flag; NULL is allowed.
void tarn__flag_release(tarn__synced_event *flag);

#endif  // TARN_SYNCED_LANES_H_
