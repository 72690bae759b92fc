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
// failed is over; writes that were not known to be done by then are void.
//
// Lifetime: a lane lives while uses name it (|uses|) or somebody holds it
//           (|holds|); the list of a buffer drops it then.
// Threads:  all fields by whoever has the gate of the buffer. The functions
//           that call the device are called without the gate, by a thread that
//           holds the lane.
#ifndef TARN_SYNCED_LANES_H_
#define TARN_SYNCED_LANES_H_

#include "synced/spans.h"
#include "synced/station.h"

typedef struct tarn__mark {
  struct tarn__mark *next;  // a later position
  tarn_event *event;
  uint64_t number;
  uint32_t holds;  // threads that wait for it just now
} tarn__mark;

struct tarn__lane {
  tarn__lane *next;
  uint64_t serial;
  tarn_device *device;
  uint64_t issued;    // the last position that was marked
  uint64_t done;      // the last that is known to be reached
  bool failed;        // the stream has: positions after |done| will not come
  bool busy;          // a thread marks it: others wait until it has
  tarn__mark *marks;  // that are not known to be reached, oldest first
  size_t mark_count;
  size_t uses;
  size_t holds;
};

typedef struct tarn__lanes {
  tarn__lane *first;
} tarn__lanes;

enum { TARN__MOST_MARKS = 64 };

void tarn__lanes_init(tarn__lanes *lanes);

// No use is left, and nobody waits. Events go back to their stations.
void tarn__lanes_deinit(tarn__lanes *lanes);

// The lane of |stream|, made if it is new; the caller holds it.
TARN_MUST_CHECK tarn_status tarn__lane_of(tarn__lanes *lanes,
                                          tarn_stream *stream,
                                          tarn__lane **out_lane);

// Lets go of it. Lanes without uses, holds and marks go.
void tarn__lane_release(tarn__lanes *lanes, tarn__lane *lane);

// Whether the work up to |number| is known to be over, one way or the other.
static inline bool tarn__lane_is_over(const tarn__lane *lane, uint64_t number) {
  return number <= lane->done || lane->failed;
}

// Marking, in three steps. With the gate: takes a node; the lane must not be
// busy, and is so from now on.
TARN_MUST_CHECK tarn_status tarn__lane_begin_mark(tarn__lane *lane,
                                                  tarn__mark **out_mark);
// Without: an event behind what |stream| has queued. On failure the mark has
// none.
TARN_MUST_CHECK tarn_status tarn__mark_record(tarn__mark *mark,
                                              tarn_stream *stream);
// With it: the position that the mark has become, or 0 if it was not recorded
// and is given up. Beyond TARN__MOST_MARKS the oldest that nobody waits for is
// dropped: who asks for its position waits for the next.
uint64_t tarn__lane_end_mark(tarn__lane *lane, tarn__mark *mark);

// Waiting. With the gate: the oldest mark at or behind |number|, held; NULL if
// that is over, or will be by a mark that a thread is just making.
tarn__mark *tarn__lane_hold_mark(tarn__lane *lane, uint64_t number);
// Without: TARN_OK, TARN_PENDING, or the stream's failure ...
TARN_MUST_CHECK tarn_status tarn__mark_query(tarn__mark *mark);
// ... the host waits ...
TARN_MUST_CHECK tarn_status tarn__mark_wait(tarn__mark *mark);
// ... |stream| does.
TARN_MUST_CHECK tarn_status tarn__mark_join(tarn__mark *mark,
                                            tarn_stream *stream);
// With it: what came of query or wait, TARN_PENDING if nothing is known; lets
// go of the mark, and of those that are reached.
void tarn__lane_release_mark(tarn__lane *lane, tarn__mark *mark,
                             tarn_status status);

#endif  // TARN_SYNCED_LANES_H_
