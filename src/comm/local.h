// local.h - ranks of one machine: rounds through their shared memory, messages
// through their inboxes.
#ifndef TARN_COMM_LOCAL_H_
#define TARN_COMM_LOCAL_H_

#include "comm/area.h"
#include "comm/sockets.h"
#include "tarn/comm.h"

// The exchange of descriptors with one other rank.
typedef struct tarn__comm_transfer {
  bool send;   // still to be sent to it
  bool await;  // still to come of it
} tarn__comm_transfer;

typedef struct tarn__comm_local {
  tarn__comm_area area;
  tarn__comm_sockets *sockets;
  tarn__comm_mailbox mailbox;
  size_t rank;
  size_t size;
  uint64_t timeout_ms;
  uint64_t round;                  // the last one that this rank was in
  uint32_t generation;             // of forks
  size_t *places;                  // of each rank, in the sockets
  int *watched;                    // for each rank; scratch of one look
  tarn__comm_transfer *transfers;  // with each rank; at rest all false
} tarn__comm_local;

// The operations of a communicator whose |self| is a tarn__comm_local.
extern const tarn_comm_ops tarn__local_ops;

// Rank |rank| of |area|, whose ranks are at |places| of |sockets|, or at those
// of the same number if |places| is NULL. Both are taken over, but on failure.
//
// TARN_E_NOMEM
TARN_MUST_CHECK tarn_status tarn__local_create(
    tarn__comm_area area, tarn__comm_sockets *sockets, size_t rank,
    const size_t *places, uint64_t timeout_ms, tarn__comm_local **out_local);

// Leaves the area, without waiting. In a child of fork it only frees.
void tarn__local_destroy(void *self);

// Frees |local| without leaving the area, which stays mapped.
void tarn__local_forget(tarn__comm_local *local);

// --- rounds ----------------------------------------------------------------

// Where this rank writes before the coming round.
static inline unsigned char *tarn__local_slot(tarn__comm_local *local) {
  return tarn__area_slot(&local->area, local->rank, local->round + 1);
}

// The data of |rank| in the last round.
static inline const unsigned char *tarn__local_slot_of(
    const tarn__comm_local *local, size_t rank) {
  return tarn__area_slot(&local->area, rank, local->round);
}

// Goes through a round.
//
// TARN_E_PEER_LOST, TARN_E_TIMEOUT, TARN_E_CORRUPT
//                 no rank has gone through it.
TARN_MUST_CHECK tarn_status tarn__local_round(tarn__comm_local *local);

// A wait for other ranks, in slices: between two, it is checked whether they
// still run.
typedef struct tarn__comm_wait {
  uint64_t slice;  // nanoseconds
  uint64_t end;    // by the clock
  uint64_t now;    // when tarn__wait_left was last asked
} tarn__comm_wait;

tarn__comm_wait tarn__wait_begin(uint64_t timeout_ms);

// The nanoseconds left; 0: the wait is over.
uint64_t tarn__wait_left(tarn__comm_wait *wait);

// Breaks the area if a rank r with |watched[r]| other than -1 has left or
// ended. Overwrites |watched|.
void tarn__local_look(tarn__comm_local *local, tarn__comm_breakage ended);

// Breaks the area on behalf of |rank|, which has not come in time.
void tarn__local_give_up(tarn__comm_local *local, size_t rank);

// TARN_OK, or the error that broke the area.
TARN_MUST_CHECK tarn_status tarn__local_state(const tarn__comm_local *local);

// --- messages ---------------------------------------------------------------

// Sends |fd|, or -1, to the ranks of |transfers|, and waits for their messages,
// which are then in the mailbox.
//
// |gone|: the reason to record if a rank's process, or its inbox, ends.
TARN_MUST_CHECK tarn_status tarn__local_pass(tarn__comm_local *local, int fd,
                                             tarn__comm_breakage gone);

// --- operations ------------------------------------------------------------

TARN_MUST_CHECK tarn_status tarn__local_alltoallv(
    void *self, const void *send, const size_t *send_sizes,
    const size_t *send_offsets, void *receive, const size_t *receive_sizes,
    const size_t *receive_offsets);
TARN_MUST_CHECK tarn_status tarn__local_share(void *self, int fd, int *out_fds);
TARN_MUST_CHECK tarn_status tarn__local_split(void *self, const size_t *ranks,
                                              size_t size, void **out_self);

#endif  // TARN_COMM_LOCAL_H_
