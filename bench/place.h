// place.h - the place of this process among ranks that a launcher has started:
// mpirun, srun or `tarn run`.
#ifndef TARN_BENCH_PLACE_H_
#define TARN_BENCH_PLACE_H_

#include <stdbool.h>

#include "kit/child.h"
#include "tarn/comm.h"

// Whether a launcher has started this process as one of several ranks, or
// `tarn run` as any. Makes nothing.
bool place_is_given(void);

// Takes it. False: |why|, CHILD_TEXT_SIZE bytes, says why not.
bool place_take(uint64_t timeout_ms, tarn_comm **out_comm, char *why);

// What the first rank has, at all of them: |size| bytes at |data|. False: |why|
// as above.
bool place_tell(tarn_comm *comm, void *data, size_t size, char *why);

// The name of the machine that this process is on: TARN_HOST, as the library
// has it, or else the host's name. Cut to its size.
enum { PLACE_NAME_SIZE = 64 };
void place_machine(char name[PLACE_NAME_SIZE]);

#endif  // TARN_BENCH_PLACE_H_
