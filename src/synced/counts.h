// counts.h - adding to what a buffer counts for each pair of its sides.
//
// Threads: whoever has the gate of the buffer.
#ifndef TARN_SYNCED_COUNTS_H_
#define TARN_SYNCED_COUNTS_H_

#include "synced/core.h"

// Both are below side_count.
static inline tarn__counts *tarn__counts_of(tarn__core *core, uint32_t from,
                                            uint32_t to) {
  return &core->counts[(size_t)from * core->side_room + to];
}

// One call of the device room, or of memcpy, that brought |size| bytes.
static inline void tarn__count_copy(tarn__core *core, uint32_t from,
                                    uint32_t to, size_t size) {
  tarn__counts *counts = tarn__counts_of(core, from, to);
  counts->copies++;
  counts->moved += size;
}

static inline void tarn__count_valid(tarn__core *core, uint32_t side,
                                     size_t size) {
  tarn__counts_of(core, side, side)->valid += size;
}

static inline void tarn__count_discarded(tarn__core *core, uint32_t from,
                                         uint32_t to, size_t size) {
  tarn__counts_of(core, from, to)->discarded += size;
}

static inline void tarn__count_outside(tarn__core *core, uint32_t from,
                                       uint32_t to, size_t size) {
  tarn__counts_of(core, from, to)->outside += size;
}

static inline void tarn__count_stall(tarn__core *core, uint32_t from,
                                     uint32_t to, uint64_t ns) {
  tarn__counts *counts = tarn__counts_of(core, from, to);
  counts->stalls++;
  counts->stalled_ns += ns;
}

#endif  // TARN_SYNCED_COUNTS_H_
