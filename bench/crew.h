// crew.h - ranks that a measurement starts itself: this process is the first,
// and forks the others.
//
//   first rank ─► the others
//
// No device is open before the ranks exist. The kernel ends the ranks that
// outlive the first one.
#ifndef TARN_BENCH_CREW_H_
#define TARN_BENCH_CREW_H_

#include <stdbool.h>
#include <stddef.h>

#include "tarn/comm.h"

// What a rank does: joins the others at |rendezvous|, which is the rank's to
// destroy, and measures. False: it has failed; of other ranks than the first
// that is the exit status.
typedef bool crew_work(void *context, size_t rank, tarn_rendezvous *rendezvous);

enum { CREW_MOST = 64 };

// Runs |work| as each of |count| ranks, CREW_MOST at most, and waits for all.
// Returns what the first one does. False too if there is no rendezvous: |why|,
// |why_size| bytes, says so; else it is left alone.
bool crew_run(size_t count, crew_work *work, void *context, char *why,
              size_t why_size);

// tarn_comm_join with that deadline, and the end of |rendezvous|.
tarn_status crew_join(tarn_rendezvous *rendezvous, size_t rank,
                      uint64_t timeout_ms, tarn_comm **out_comm);

#endif  // TARN_BENCH_CREW_H_
