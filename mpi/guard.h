// guard.h - ends the process where a call of MPI does not return.
//
// MPI waits without a deadline, also in calls that are said not to wait, when a
// link is cut. The guard is a thread that calls nothing of MPI.
#ifndef TARN_MPI_GUARD_H_
#define TARN_MPI_GUARD_H_

#include <stddef.h>
#include <stdint.h>

typedef struct tarn__guard tarn__guard;

// For calls of one thread at a time. |timeout_ms| is the deadline of the ranks.
// NULL: there is no memory, or no thread.
tarn__guard *tarn__guard_create(uint64_t timeout_ms, size_t rank);

// Ends the thread; in a child of fork, which has none, frees memory only. NULL
// is allowed.
void tarn__guard_destroy(tarn__guard *guard);

// A call begins, whose name is a constant, and has returned. If it has not when
// the deadline and a tenth of it, and at least a second, have passed, the guard
// prints a line with its name on stderr; 2 s later it ends the process by
// _exit(1). Time in which the process was stopped does not count.
void tarn__guard_enter(tarn__guard *guard, const char *call);
void tarn__guard_leave(tarn__guard *guard);

// Ends the process by _exit(|status|), |seconds| from now, whatever holds it
// up. Once; nothing is done where there is no thread.
void tarn__guard_end_within(unsigned seconds, int status);

#endif  // TARN_MPI_GUARD_H_
