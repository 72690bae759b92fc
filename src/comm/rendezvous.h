// rendezvous.h - a rendezvous, and joining one as a rank.
#ifndef TARN_COMM_RENDEZVOUS_H_
#define TARN_COMM_RENDEZVOUS_H_

#include "comm/area.h"
#include "tarn/comm.h"

struct tarn_rendezvous {
  size_t size;
  tarn__comm_area area;  // head NULL: this process has joined
  int fd;                // of the area
  int *receives;         // receiving ends of inboxes; -1: none, or taken
  int *sends;            // sending ends, in the same array
};

// Checks the arguments of |call|, a public function.
//
// TARN_E_INVALID  |rendezvous| is NULL or has no such rank.
// TARN_E_STATE    this process has joined it.
TARN_MUST_CHECK tarn_status tarn__rendezvous_check(
    const char *call, const tarn_rendezvous *rendezvous, size_t rank);

// Both ends of the inboxes that a process has, for each rank; -1: none.
typedef struct tarn__comm_ends {
  const int *sends;
  int *receives;
} tarn__comm_ends;

// Joins |area| as rank |rank|, and meets the other ranks.
//
// |*out_taken|: the area and the sending ends now belong to the communicator,
// even if the call fails, and the receiving ends of other ranks are closed. If
// false, nothing has changed.
TARN_MUST_CHECK tarn_status tarn__join(tarn__comm_area area,
                                       tarn__comm_ends ends, size_t rank,
                                       uint64_t timeout_ms, bool *out_taken,
                                       tarn_comm **out_comm);

#endif  // TARN_COMM_RENDEZVOUS_H_
