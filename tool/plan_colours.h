// plan_colours.h - the colours of a trace's blocks in the picture of its plan:
// their roles where those are known, else their holders.
#ifndef TARN_TOOL_PLAN_COLOURS_H_
#define TARN_TOOL_PLAN_COLOURS_H_

#include "roles.h"

enum { PLAN_COLOURS = 8 };

typedef struct plan_colours {
  uint8_t *of_block;
  char *names[PLAN_COLOURS];  // NULL: of no block
  bool by_role;
} plan_colours;

// By role the colours are the roles, in their order. By holder they are those
// who hold most at the peak, the baseline as the last but one, and the others
// as the last. Free it with plan_colours_deinit.
plan_colours plan_colours_make(const tarn_trace *trace, const roles *r);
void plan_colours_deinit(plan_colours *c);

#endif  // TARN_TOOL_PLAN_COLOURS_H_
