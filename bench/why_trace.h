// why_trace.h - the snapshot that `tarn bench why` asks about.
//
// It is made, not recorded, so that it can be as large as wanted and the same
// everywhere: "why-8m" has the seed below and 8 million opcodes of pickle.
// Blocks come and go at random in places of 256 KiB; each is allocated from one
// of a few thousand stacks of 55 frames, let go of and freed without a stack,
// as PyTorch records it with context="alloc".
#ifndef TARN_BENCH_WHY_TRACE_H_
#define TARN_BENCH_WHY_TRACE_H_

#include <stddef.h>
#include <stdint.h>

#include "tarn/trace.h"

enum {
  WHY_TRACE_OPCODES = 8000000,
  WHY_TRACE_STACKS = 4000,  // of so many opcodes; fewer have fewer
  WHY_TRACE_DEPTH = 55,
};

// Writes a snapshot of about |opcodes| opcodes to |path|, but at least some 30
// thousand, which its frames and what is held at the end take.
//
// Errors: as of tarn_trace_builder_event and tarn_trace_write.
tarn_status why_trace_write(uint64_t opcodes, const char *path);

// The number of opcodes of a pickle that the library has written; 0 if it has
// an opcode that the library does not write.
uint64_t why_trace_opcodes(const unsigned char *bytes, size_t size);

#endif  // TARN_BENCH_WHY_TRACE_H_
