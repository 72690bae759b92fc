// events.h - the last events of a pool, in a ring.
//
//   room 8    [ 16 | 17 | 18 | 11 | 12 | 13 | 14 | 15 ]     next = 19
//                               └─ the oldest that is still there
//
// Numbers are never reused, so a reader that continues with the next number
// sees how many were lost. Not synchronized: the pool's lock guards all of it.
#ifndef TARN_POOL_EVENTS_H_
#define TARN_POOL_EVENTS_H_

#include "tarn/account.h"

typedef struct tarn__pool_events {
  tarn_pool_event *ring;
  size_t room;     // a power of two, or 0
  uint64_t first;  // earlier events are lost, however much room there is
  uint64_t next;   // number of the next event
  uint64_t since;  // that of the first since events were last switched on: what
                   // happened before it need not have been written
} tarn__pool_events;

// Makes room for at least |count| events; those that fit are kept. 0: no ring,
// and all are lost.
//
// TARN_E_INVALID  more than there can be. TARN_E_NOMEM. Nothing has changed.
TARN_MUST_CHECK tarn_status tarn__events_make_room(tarn__pool_events *events,
                                                   size_t count);
void tarn__events_deinit(tarn__pool_events *events);

// An event in the place of the oldest, with its number and the calling
// thread's, and otherwise zero: the caller fills it in where it stands. There
// is a ring.
tarn_pool_event *tarn__events_add(tarn__pool_events *events,
                                  tarn_pool_event_kind kind, bool timed);

// The number of the oldest event; |next| if there is none.
uint64_t tarn__events_oldest(const tarn__pool_events *events);

// The number of the calling thread.
uint32_t tarn__events_thread(void);

// Copies the events from number |from| on, at most |room|.
size_t tarn__events_read(const tarn__pool_events *events, uint64_t from,
                         tarn_pool_event *out, size_t room, uint64_t *out_next);

#endif  // TARN_POOL_EVENTS_H_
