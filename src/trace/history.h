// history.h - builds a trace out of events, whatever the format they are in.
//
// A reader hands over events by address, in order, and then what the
// allocator held at the end; a maker of workloads, which knows its blocks,
// hands over births and deaths. Here addresses become blocks, the baseline is
// found, and the sums are made.
#ifndef TARN_TRACE_HISTORY_H_
#define TARN_TRACE_HISTORY_H_

#include "base/budget.h"
#include "tarn/trace.h"
#include "trace/stacks.h"

typedef struct tarn__trace_history {
  tarn__budget *budget;
  const char *name;  // of the trace, and in errors
  const char *unit;  // of |byte|: "byte" unless a reader says "line" or so
  size_t byte;       // in errors: where the record stands that is being added
  uint64_t seed;
  tarn__trace_stacks stacks;
  tarn__array events;    // tarn_trace_event
  tarn__array blocks;    // tarn_trace_block, in order of discovery
  tarn__array segments;  // tarn_trace_segment
  tarn__array places;    // by hash of address: see history.c
  tarn__intern tags;     // each with its zero byte; number 0 is ""
  size_t place_count;

  // Sums, kept up to date with each block, since an error in them is to name
  // the block's byte. See the trace's fields of these names.
  size_t request_count;
  uint64_t live_bytes;  // of all blocks that are known to live now
  uint64_t baseline_bytes;
  uint64_t live_peak_bytes;
  uint32_t live_peak_event;
  uint64_t ignored_bytes;
  size_t ignored_count;
  size_t unknown_count;

  // Set by readers of formats whose frees name no size: FREE and
  // FREE_REQUESTED of size 0 get that of the block that lives there, and are
  // passed over, and counted, where none does.
  bool frees_without_size;
} tarn__trace_history;

// Call deinit also when something failed, and after finish.
void tarn__history_init(tarn__trace_history *history, tarn__budget *budget,
                        const char *name);
void tarn__history_deinit(tarn__trace_history *history);

// --- by address: for readers -----------------------------------------------

// Adds |event|; its |block| is found by its address:
//   ALLOC at an address where nothing lives is a block's birth;
//   FREE and FREE_REQUESTED of what lives there concern that block; of an
//   address never seen before they reveal a block of the baseline.
//
// TARN_E_CORRUPT  two lives at one address, a death of what is dead or of
//                 another size, a block of 0 bytes or beyond the end of the
//                 address space, or more than 2^64 bytes alive at once.
TARN_MUST_CHECK tarn_status tarn__history_event(tarn__trace_history *history,
                                                const tarn_trace_event *event);

// Says that an event at |address| is likely to come soon: its place is fetched
// from memory meanwhile, which else takes most of an event's time.
void tarn__history_expect(const tarn__trace_history *history, uint64_t address);

// Adds a block of the baseline. Call it before all events.
//
// TARN_E_CORRUPT  the second at one address, or as above.
TARN_MUST_CHECK tarn_status tarn__history_old(tarn__trace_history *history,
                                              const tarn_trace_block *block);

// Adds a block that the allocator held after the last event. One at an address
// that no alloc or free named is of the baseline. Where one lives it is that
// one; where one has died it was born after the last event, outside of the
// trace, and is only counted as ignored. Call it after all events.
//
// TARN_E_CORRUPT  the second at one address, or as above.
TARN_MUST_CHECK tarn_status tarn__history_held(tarn__trace_history *history,
                                               const tarn_trace_block *block);

TARN_MUST_CHECK tarn_status tarn__history_segment(
    tarn__trace_history *history, const tarn_trace_segment *segment);

// The number of the tag of |size| bytes, none of them zero; 0 for none.
TARN_MUST_CHECK tarn_status tarn__history_tag(tarn__trace_history *history,
                                              const char *name, size_t size,
                                              uint32_t *out_tag);

// --- by block: for makers --------------------------------------------------

TARN_MUST_CHECK tarn_status tarn__history_birth(tarn__trace_history *history,
                                                uint64_t size, uint32_t stack,
                                                uint32_t *out_block);
TARN_MUST_CHECK tarn_status tarn__history_death(tarn__trace_history *history,
                                                uint32_t block);

// --- the end ---------------------------------------------------------------

// Makes the trace, which owns all that it points to, and leaves |history| to
// deinit. |format| is a literal.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__history_finish(tarn__trace_history *history,
                                                 const char *format,
                                                 tarn_trace **out_trace);

#endif  // TARN_TRACE_HISTORY_H_
