// Hierarchical memory: which bytes are within a machine. Its memory there is
// that of another whole, a chunked one of the ranks of the machine, the inner
// one.
//
//   ranks            0    1  |  2    3        machine A | machine B
//   PARTS   offsets  | 0 | 1 | 2 | 3 |        at all ranks
//           inner    | 0 | 1 |    | 2 | 3 |   one in each machine
//   COPIES  offsets  |  0  |  1  |            at ranks 0 and 1: ranks 2 and 3
//                                             begin at the end, and own nothing
//           inner    |  0  |  1  |            and the same of 2 and 3
#include "comm/comm.h"
#include "whole/whole.h"

// --- machines --------------------------------------------------------------

void tarn__hierarchy_find(tarn_whole *whole) {
  const tarn__comm_near near = tarn__comm_near_of(whole->comm);
  for (size_t r = 0; r < whole->ranks; r++) {
    size_t one = near.comm != NULL ? 0 : r;
    whole->machines[r] = near.machines != NULL ? near.machines[r] : one;
  }
}

bool tarn__hierarchy_is_here(const tarn_whole *whole, size_t rank) {
  return whole->machines[rank] == whole->machines[whole->rank];
}

size_t tarn__hierarchy_next(const tarn_whole *whole, size_t machine) {
  size_t r = machine;
  do {
    r = (r + 1) % whole->ranks;
  } while (whole->machines[r] != r);
  return r;
}

size_t tarn__hierarchy_count(const tarn_whole *whole) {
  size_t count = 0;
  for (size_t r = 0; r < whole->ranks; r++)
    count += whole->machines[r] == r;
  return count;
}

// --- parts -----------------------------------------------------------------

static size_t ranks_of(const tarn_whole *whole, size_t machine) {
  size_t count = 0;
  for (size_t r = 0; r < whole->ranks; r++)
    count += whole->machines[r] == machine;
  return count;
}

void tarn__hierarchy_offsets(const tarn_whole *whole, size_t machine,
                             size_t *out_offsets) {
  size_t blocks = whole->size / whole->granularity;
  size_t ranks = ranks_of(whole, machine);
  size_t at = 0;
  out_offsets[0] = 0;
  for (size_t r = 0; r < whole->ranks; r++) {
    bool is_there = whole->machines[r] == machine;
    size_t count = is_there ? tarn__partition_count(blocks, ranks, at++) : 0;
    out_offsets[r + 1] = out_offsets[r] + count * whole->granularity;
  }
}

void tarn__hierarchy_divide(tarn_whole *whole) {
  tarn_whole *inner = whole->inner;
  size_t near = 0;
  if (whole->spread == TARN_WHOLE_COPIES) {
    tarn__hierarchy_offsets(whole, whole->machines[whole->rank],
                            whole->offsets);
  }
  inner->offsets[0] = 0;
  for (size_t r = 0; r < whole->ranks; r++) {
    if (!tarn__hierarchy_is_here(whole, r)) continue;
    inner->offsets[near + 1] =
        inner->offsets[near] + tarn__whole_part_size(whole, r);
    near++;
  }
  inner->size = inner->offsets[near];
}

// --- addresses -------------------------------------------------------------

void tarn__hierarchy_refer(tarn_whole *whole) {
  const tarn_whole *inner = whole->inner;
  size_t near = 0;
  for (size_t r = 0; r < whole->ranks; r++) {
    if (tarn__hierarchy_is_here(whole, r))
      whole->parts[r] = inner->parts[near++];
  }
  if (!whole->mapped) return;
  whole->base = inner->base;
  whole->reference = inner->reference;
}
