// savings.h - what a program could do to lower the peak of its memory, as far
// as a trace shows it.
//
// Each way takes away some blocks of a role; what it saves is the distance from
// the peak to the highest moment of the trace without them, so that it never
// promises more than the next-highest moment allows.
#ifndef TARN_TOOL_SAVINGS_H_
#define TARN_TOOL_SAVINGS_H_

#include "roles.h"

enum { SAVINGS_MOST = 5 };

typedef struct saving {
  const char *way;  // "keeping fewer activations (checkpointing)"
  const char *why;  // what the trace shows
  uint64_t held;    // bytes of those blocks at the peak
  uint64_t saved;   // at most
} saving;

typedef struct savings {
  saving items[SAVINGS_MOST];  // most saved first
  size_t count;
} savings;

// The ways that save a hundredth of the peak or more. None without roles.
//
// Cost: O(events) for each way.
savings savings_find(const tarn_trace *trace, const roles *r);

#endif  // TARN_TOOL_SAVINGS_H_
