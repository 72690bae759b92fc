// whole_peer.h - the same rows under Open MPI: a program of several processes
// that waits for a command to measure once, so that its passes alternate with
// ours.
//
//   us  ── "mpi_window 64 7\n" ──►  mpirun ─► rank 0, rank 1, ...
//       ◄── {"op":"mpi_window","row_bytes":64,"gbs":3.21} ──
#ifndef TARN_BENCH_WHOLE_PEER_H_
#define TARN_BENCH_WHOLE_PEER_H_

#include "whole_bench.h"

typedef struct whole_peer whole_peer;

// How long it may take to be ready, and a pass of it.
enum { WHOLE_PEER_WAIT_MS = 120000 };

// Starts it and waits until its table is there. NULL: |why|, WHOLE_TEXT_SIZE
// bytes, says why not.
whole_peer *whole_peer_start(const whole_bench *bench, char *why);

// One pass, with the indices of |seed|. In a child of fork too, but in one
// process only. False: |why| as above; the peer cannot be used any more.
bool whole_peer_measure(whole_peer *peer, whole_op op, size_t row_bytes,
                        uint64_t seed, double *out_gbs, char *why);

// In a process that measures nothing: closes what is inherited.
void whole_peer_leave(whole_peer *peer);

// Ends the program and waits for it. NULL is allowed.
void whole_peer_stop(whole_peer *peer);

#endif  // TARN_BENCH_WHOLE_PEER_H_
