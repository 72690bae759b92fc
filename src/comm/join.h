// join.h - taking a place among the ranks of a machine.
#ifndef TARN_COMM_JOIN_H_
#define TARN_COMM_JOIN_H_

#include "comm/area.h"
#include "tarn/comm.h"

// The ends of inboxes that a process has, of all ranks; -1: it has not.
typedef struct tarn__comm_sockets {
  const int *sends;
  int *receives;
} tarn__comm_sockets;

// Takes place |rank| of |area|, and meets the others.
//
// |*out_taken|: the area and the sockets have been taken over, whatever else
// came of it, and receiving ends of others closed. If not, nothing has changed.
TARN_MUST_CHECK tarn_status tarn__join(tarn__comm_area area,
                                       tarn__comm_sockets sockets, size_t rank,
                                       uint64_t timeout_ms, bool *out_taken,
                                       tarn_comm **out_comm);

#endif  // TARN_COMM_JOIN_H_
