// intern.h - equal things once: byte strings, and stacks of frames on top.
//
// A trace repeats itself: of thousands of events most come from a few hundred
// stacks, and these out of a few hundred frames. Each is kept once and known
// by a number from then on.
#ifndef TARN_TRACE_INTERN_H_
#define TARN_TRACE_INTERN_H_

#include "tarn/trace.h"
#include "trace/budget.h"

// Mixes |size| bytes into 64 bits. The seed keeps a hostile file from knowing
// which of its strings collide.
uint64_t tarn__hash(uint64_t seed, const void *bytes, size_t size);

// Both halves of the product: every bit of the result needs all of both.
static inline uint64_t tarn__hash_fold(uint64_t a, uint64_t b) {
  __extension__ typedef unsigned __int128 uint128;
  uint128 product = (uint128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

// A seed that a file's author cannot foresee; results do not depend on it.
uint64_t tarn__hash_seed(void);

typedef struct tarn__span {
  size_t first;  // byte
  uint32_t size;
  uint32_t hash;  // of the bytes, so that they are seldom looked at
} tarn__span;

// A set of byte strings, numbered 0, 1, 2 ... in order of arrival.
typedef struct tarn__intern {
  uint64_t seed;
  tarn__array bytes;  // char: all strings, one behind the other
  tarn__array spans;  // tarn__span, by number
  tarn__array slots;  // uint32_t: number + 1, 0: empty; a power of two
} tarn__intern;

void tarn__intern_init(tarn__intern *set);
void tarn__intern_deinit(tarn__intern *set, tarn__budget *budget);

// The number of a string, which is added if it is not there yet. A set whose
// strings are all arrays of one type keeps them aligned for that type.
//
// TARN_E_NOMEM        the budget or the host allocator refused.
// TARN_E_UNSUPPORTED  a string of 4 GiB or more, or 2^32 - 1 of them.
TARN_MUST_CHECK tarn_status tarn__intern_put(tarn__intern *set,
                                             tarn__budget *budget,
                                             const void *bytes, size_t size,
                                             uint32_t *out_number);

// A frame by the numbers of its texts.
typedef struct tarn__frame {
  uint32_t file;
  uint32_t function;
  uint32_t line;
} tarn__frame;

// Texts, frames out of them, stacks out of those. Each text is stored with a
// zero byte behind it.
typedef struct tarn__stacks {
  tarn__budget *budget;
  tarn__intern texts;
  tarn__intern frames;  // strings of one tarn__frame
  tarn__intern stacks;  // strings of uint32_t: numbers of frames
  tarn__array scratch;  // char: a text with its zero byte
} tarn__stacks;

void tarn__stacks_init(tarn__stacks *stacks, tarn__budget *budget);
void tarn__stacks_deinit(tarn__stacks *stacks);

// Puts |size| bytes and a zero byte into |scratch|, up to the next such call.
TARN_MUST_CHECK tarn_status tarn__stacks_zero_ended(tarn__stacks *stacks,
                                                    const char *text,
                                                    size_t size);

// The number of a text of |size| bytes, none of them zero.
TARN_MUST_CHECK tarn_status tarn__stacks_text(tarn__stacks *stacks,
                                              const char *text, size_t size,
                                              uint32_t *out_text);
TARN_MUST_CHECK tarn_status tarn__stacks_frame(tarn__stacks *stacks,
                                               tarn__frame frame,
                                               uint32_t *out_frame);

// The number of a stack, innermost frame first; TARN_TRACE_NO_STACK for one
// without frames.
TARN_MUST_CHECK tarn_status tarn__stacks_stack(tarn__stacks *stacks,
                                               const uint32_t *frames,
                                               size_t count,
                                               uint32_t *out_stack);

// The stack of one frame, for histories that only know a name.
TARN_MUST_CHECK tarn_status tarn__stacks_named(tarn__stacks *stacks,
                                               const char *file,
                                               const char *function,
                                               uint32_t *out_stack);

#endif  // TARN_TRACE_INTERN_H_
