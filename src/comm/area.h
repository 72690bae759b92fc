// area.h - the memory that the ranks of a communicator of one machine share.
//
//   +------+-----------+------------------+------------------+----
//   | head | rank 0..n | slots of rank 0  | slots of rank 1  | ...
//   +------+-----------+------------------+------------------+----
//                      | even   | odd     |
//
// All ranks go through the same rounds. In a round, a rank writes into its slot
// of the round's parity, arrives, waits until all have arrived, and reads the
// slots of the others. Two rounds later it may write into the same slot again:
// all ranks have arrived in the round between, so they have finished reading.
//
// A rank that finds another one lost or late breaks the area: it records the
// rank and the reason, once, and freezes the arrivals of every rank. A frozen
// arrival never changes. Each rank freezes all arrivals before it decides, so
// all ranks decide the same: a round has succeeded for all of them or for none.
#ifndef TARN_COMM_AREA_H_
#define TARN_COMM_AREA_H_

#include <stdatomic.h>

#include "tarn/base.h"

enum { TARN__TOKEN = 16 };  // random bytes that identify an area

// Why an area is broken.
typedef enum tarn__comm_breakage {
  TARN__WHOLE,
  TARN__ENDED,    // a rank's process has ended
  TARN__LEFT,     // it has left the communicator
  TARN__ABSENT,   // it has ended, or given up, before it had come
  TARN__LATE,     // it has not come in time
  TARN__GARBLED,  // its slot holds no message
} tarn__comm_breakage;

typedef struct tarn__comm_member {
  _Alignas(64) atomic_uint arrived;  // rounds, times two; odd: frozen
  atomic_uint taken;                 // a process is this rank
  atomic_uint left;                  // and that process has left
  int32_t receive;    // ends of its mailbox: numbers at the process
  int32_t send;       // that made the rendezvous; else -1
  atomic_uint turns;  // of its waits for others outside of rounds
  atomic_uint done;   // collectives over messages that it is through with, if
                      // its communicator has any (watch.c)
} tarn__comm_member;

typedef struct tarn__comm_area_head {
  _Alignas(64) atomic_uint futex;     // the last round in which all arrived
  atomic_uint sleepers;               // threads that may sleep on it
  _Alignas(64) atomic_ullong count;   // arrivals of all ranks
  _Alignas(64) atomic_ullong broken;  // a note; 0: whole
  atomic_ullong verdict;              // why messages have failed (watch.c)
  uint64_t slot;                      // bytes of a slot
  uint32_t version;
  uint32_t ranks;
  unsigned char token[TARN__TOKEN];
} tarn__comm_area_head;

// One rank's view of it.
typedef struct tarn__comm_area {
  tarn__comm_area_head *head;  // NULL: none
  tarn__comm_member *members;
  unsigned char *slots;
  size_t bytes;  // mapped
  size_t ranks;
  size_t slot;
} tarn__comm_area;

// Makes an area for |ranks| ranks, and maps it; |*out_fd| is for the others.
//
// TARN_E_IO  the system has no memory, or no descriptor left for it.
TARN_MUST_CHECK tarn_status tarn__area_create(size_t ranks, int *out_fd,
                                              tarn__comm_area *out_area);

// Whether |fd| is memory of an area for |ranks| ranks, of whatever version.
bool tarn__area_is_behind(int fd, size_t ranks);

// Maps the area of |fd|, which stays open.
//
// TARN_E_INVALID  it is not an area of |ranks| ranks.
// TARN_E_IO       it cannot be mapped.
TARN_MUST_CHECK tarn_status tarn__area_map(int fd, size_t ranks,
                                           tarn__comm_area *out_area);

void tarn__area_unmap(tarn__comm_area *area);

// The slot of |rank| in round |round|.
static inline unsigned char *tarn__area_slot(const tarn__comm_area *area,
                                             size_t rank, uint64_t round) {
  return area->slots + (2 * rank + (round & 1)) * area->slot;
}

// Arrives in |round|, the one after the rank's last. False if the area is
// broken: the rank then has not arrived, and never will.
TARN_MUST_CHECK bool tarn__area_arrive(tarn__comm_area *area, size_t rank,
                                       uint64_t round);

// Whether |rank| has arrived in |round|.
static inline bool tarn__area_has_arrived(const tarn__comm_area *area,
                                          size_t rank, uint64_t round) {
  uint32_t arrived =
      atomic_load_explicit(&area->members[rank].arrived, memory_order_acquire);
  return (int32_t)((arrived & ~1u) - 2 * (uint32_t)round) >= 0;
}

// Whether all have, as far as the futex word tells: cheap, and seldom late.
static inline bool tarn__area_has_completed(const tarn__comm_area *area,
                                            uint64_t round) {
  uint32_t futex =
      atomic_load_explicit(&area->head->futex, memory_order_acquire);
  return (int32_t)(2 * (futex - (uint32_t)round)) >= 0;
}

// Whether all have.
bool tarn__area_all_arrived(const tarn__comm_area *area, uint64_t round);

// Sleeps until the futex word changes, for at most |ns|; returns at once if
// |round| is complete.
void tarn__area_sleep(tarn__comm_area *area, uint64_t round, uint64_t ns);

// Breaks it, unless it is broken already, and wakes all. |ms|: how long a rank
// that is late was waited for.
void tarn__area_break(tarn__comm_area *area, tarn__comm_breakage why,
                      size_t rank, uint64_t ms);

static inline bool tarn__area_is_broken(const tarn__comm_area *area) {
  return atomic_load_explicit(&area->head->broken, memory_order_acquire) != 0;
}

// After it was broken: no rank arrives any more when this returns.
void tarn__area_freeze(tarn__comm_area *area);

// The status that broke the area, with its text.
tarn_status tarn__area_fail(const tarn__comm_area *area);

// The same with |rank| for the number of the rank that it is about.
tarn_status tarn__area_fail_as(const tarn__comm_area *area, size_t rank);

// Why it is broken, and by which rank; TARN__WHOLE: it is not.
tarn__comm_breakage tarn__area_why(const tarn__comm_area *area,
                                   size_t *out_rank);

// Whether |rank| has left.
static inline bool tarn__area_has_left(const tarn__comm_area *area,
                                       size_t rank) {
  return atomic_load_explicit(&area->members[rank].left,
                              memory_order_acquire) != 0;
}

// Notes that |rank| leaves, and wakes the ranks that wait.
void tarn__area_leave(tarn__comm_area *area, size_t rank);

// Takes the place of |rank|; false if it is taken.
TARN_MUST_CHECK bool tarn__area_take(tarn__comm_area *area, size_t rank);

#endif  // TARN_COMM_AREA_H_
