// rendezvous.h - a rendezvous, and joining one as a rank.
#ifndef TARN_COMM_RENDEZVOUS_H_
#define TARN_COMM_RENDEZVOUS_H_

#include "comm/area.h"
#include "tarn/comm.h"

struct tarn_rendezvous {
  size_t size;
  tarn__comm_area area;  // head NULL: none, or this process has joined
  int fd;                // of the area
  // Of each rank's mailbox: the receiving end, and the sending one. -1: none,
  // or taken.
  int receives[TARN_COMM_MOST_RANKS];
  int sends[TARN_COMM_MOST_RANKS];
};

// A rendezvous of |size| ranks without a descriptor. Deinit closes and unmaps
// what was put in since.
void tarn__rendezvous_init(tarn_rendezvous *rendezvous, size_t size);
void tarn__rendezvous_deinit(tarn_rendezvous *rendezvous);

// Descriptor |number| of those that a process needs to join as |rank|: that of
// the area, the receiving end of its mailbox, then the sending ends of all
// ranks. NULL: there are no more.
int *tarn__rendezvous_descriptor(tarn_rendezvous *rendezvous, size_t rank,
                                 size_t number);

// Checks the arguments of |call|, a public function.
//
// TARN_E_INVALID  |rendezvous| is NULL or has no such rank.
// TARN_E_STATE    this process has joined it.
TARN_MUST_CHECK tarn_status tarn__rendezvous_check(
    const char *call, const tarn_rendezvous *rendezvous, size_t rank);

// Joins as rank |rank|, and meets the other ranks.
//
// If |rendezvous->area| is gone when it returns, the area, the sending ends and
// the mailbox of |rank| belong to the communicator, even if the call has
// failed, and all other descriptors are closed. If not, nothing has changed.
TARN_MUST_CHECK tarn_status tarn__join(tarn_rendezvous *rendezvous, size_t rank,
                                       uint64_t timeout_ms,
                                       tarn_comm **out_comm);

// Makes this process rank 0 of 1: by a rendezvous of one.
TARN_MUST_CHECK tarn_status tarn__join_alone(uint64_t timeout_ms,
                                             tarn_comm **out_comm);

#endif  // TARN_COMM_RENDEZVOUS_H_
