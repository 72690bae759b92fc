// history.h - builds a trace from events of any format.
//
// A reader passes events by address, in order, and then the blocks that the
// allocator held at the end. A workload, which knows its blocks, passes births
// and deaths. The history turns addresses into blocks, finds the baseline, and
// computes the sums.
#ifndef TARN_TRACE_HISTORY_H_
#define TARN_TRACE_HISTORY_H_

#include "base/budget.h"
#include "base/intern.h"
#include "tarn/trace.h"

// --- Stacks ---------------------------------------------------------------
// Thousands of events come from a few hundred stacks, and these from a few
// hundred frames. Each stack, frame and text is kept once and has a number.

// A frame by the numbers of its texts.
typedef struct tarn__trace_frame {
  uint32_t file;
  uint32_t function;
  uint32_t line;
} tarn__trace_frame;

// Texts, frames of texts, and stacks of frames. Each text ends with a zero
// byte.
typedef struct tarn__trace_stacks {
  tarn__budget *budget;
  tarn__intern texts;
  tarn__intern frames;  // strings of one tarn__trace_frame
  tarn__intern stacks;  // strings of uint32_t: numbers of frames
  tarn__array scratch;  // char: a text with its zero byte
} tarn__trace_stacks;

void tarn__stacks_init(tarn__trace_stacks *stacks, tarn__budget *budget);
void tarn__stacks_deinit(tarn__trace_stacks *stacks);

// Puts |size| bytes and a zero byte into |scratch|, until the next such call.
TARN_MUST_CHECK tarn_status tarn__stacks_zero_ended(tarn__trace_stacks *stacks,
                                                    const char *text,
                                                    size_t size);

// The number of a text of |size| bytes, none of them zero.
TARN_MUST_CHECK tarn_status tarn__stacks_text(tarn__trace_stacks *stacks,
                                              const char *text, size_t size,
                                              uint32_t *out_text);
TARN_MUST_CHECK tarn_status tarn__stacks_frame(tarn__trace_stacks *stacks,
                                               tarn__trace_frame frame,
                                               uint32_t *out_frame);

// The number of a frame, by its texts, which end with a zero byte.
TARN_MUST_CHECK tarn_status tarn__stacks_frame_of(tarn__trace_stacks *stacks,
                                                  const char *file,
                                                  const char *function,
                                                  uint32_t line,
                                                  uint32_t *out_frame);

// The number of a stack, innermost frame first; TARN_TRACE_NO_STACK for one
// without frames.
TARN_MUST_CHECK tarn_status tarn__stacks_stack(tarn__trace_stacks *stacks,
                                               const uint32_t *frames,
                                               size_t count,
                                               uint32_t *out_stack);

// --- History --------------------------------------------------------------

typedef struct tarn__trace_history {
  tarn__budget *budget;
  const char *name;  // of the trace, and in errors
  const char *unit;  // of |byte|, for errors: "byte", or "line"
  size_t byte;       // position of the present record, for errors
  uint64_t seed;
  tarn__trace_stacks stacks;
  tarn__array events;    // tarn_trace_event
  tarn__array blocks;    // tarn_trace_block, in order of discovery
  tarn__array segments;  // tarn_trace_segment
  tarn__array places;    // by hash of address: see history.c
  tarn__intern tags;     // each with its zero byte; number 0 is ""
  size_t place_count;
  uint32_t thread;  // of births and deaths

  // The sums, updated with each block, so that an overflow can name the block's
  // byte, and what a reader knows of the file: its device, what it lost.
  tarn_trace trace;
  uint64_t live_bytes;  // of all blocks alive now

  // Set by readers of formats whose frees have no size: FREE and FREE_REQUESTED
  // of size 0 get the size of the live block at their address. Without such a
  // block they are skipped and counted.
  bool frees_without_size;
} tarn__trace_history;

// |name| must live as long as the history. Call deinit also after failures;
// after finish it does nothing.
void tarn__history_init(tarn__trace_history *history, tarn__budget *budget,
                        const char *name);
void tarn__history_deinit(tarn__trace_history *history);

// --- by address: for readers ----------------------------------------------

// Adds |event|. Its |block| is found by the address:
//   ALLOC at a free address begins a block;
//   FREE and FREE_REQUESTED concern the live block at the address; at an
//   address that was never seen they add a block to the baseline.
//
// TARN_E_CORRUPT  an ALLOC where a block lives; a free of a dead block or with
//                 another size than the block's; a block of 0 bytes or beyond
//                 the end of the address space; more than 2^64 bytes alive at
//                 once.
TARN_MUST_CHECK tarn_status tarn__history_event(tarn__trace_history *history,
                                                const tarn_trace_event *event);

// Prefetches the table entry of |address|, of which an event will probably come
// soon. A cache miss there would take most of an event's time.
void tarn__history_expect(const tarn__trace_history *history, uint64_t address);

// Adds a block of the baseline. Call it before all events.
//
// TARN_E_CORRUPT  a second block at one address, or as above.
TARN_MUST_CHECK tarn_status tarn__history_old(tarn__trace_history *history,
                                              const tarn_trace_block *block);

// Adds a block that the allocator held after the last event. At an address that
// no alloc or free named, the block belongs to the baseline. At the address of
// a live block it is that block. At the address of a dead block it was
// allocated after the last event, and is only counted as ignored. Call it after
// all events.
//
// TARN_E_CORRUPT  a second block at one address, or as above.
TARN_MUST_CHECK tarn_status tarn__history_held(tarn__trace_history *history,
                                               const tarn_trace_block *block);

TARN_MUST_CHECK tarn_status tarn__history_segment(
    tarn__trace_history *history, const tarn_trace_segment *segment);

// The number of the tag of |size| bytes, none of them zero; 0 for none.
TARN_MUST_CHECK tarn_status tarn__history_tag(tarn__trace_history *history,
                                              const char *name, size_t size,
                                              uint32_t *out_tag);

// --- by block: for workloads -------------------------------------------------

// The thread of the births and deaths from now on; 0 to begin with.
void tarn__history_thread(tarn__trace_history *history, uint32_t thread);

TARN_MUST_CHECK tarn_status tarn__history_birth(tarn__trace_history *history,
                                                uint64_t size, uint32_t stack,
                                                uint32_t *out_block);
TARN_MUST_CHECK tarn_status tarn__history_death(tarn__trace_history *history,
                                                uint32_t block);

// --- the end --------------------------------------------------------------

// Makes the trace, which owns all that it points to, unless |status|, that of
// the reading, is a failure; returns that or the first failure of its own, with
// |*out_trace| NULL. |history| is deinitialised. |format| is a literal.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__history_finish(tarn__trace_history *history,
                                                 tarn_status status,
                                                 const char *format,
                                                 tarn_trace **out_trace);

#endif  // TARN_TRACE_HISTORY_H_
