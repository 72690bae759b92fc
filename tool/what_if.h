// what_if.h - what other allocators would have held for the same requests.
#ifndef TARN_TOOL_WHAT_IF_H_
#define TARN_TOOL_WHAT_IF_H_

#include "kit/options.h"

// Whether it fits in the capacity that was asked for.
typedef enum what_if_fits {
  FITS_UNASKED = 0,
  FITS_NOT,
  FITS,
} what_if_fits;

typedef struct what_if_row {
  const char *strategy;  // as in the options, "as recorded", or "plan"
  uint64_t reserved_bytes;
  uint64_t served_bytes;  // most that was out at once of what was asked for
  what_if_fits fits;
  bool squeezed;  // it fits because it gave memory back in time
} what_if_row;

typedef struct what_if {
  what_if_row *rows;
  size_t count;
  // The most bytes needed at once: the live ones, and at a refused request also
  // its own.
  uint64_t needed_bytes;
  bool untried;  // the need was too large to try strategies
  bool asked;    // for a capacity
} what_if;

// More than any machine of today has, and a strategy may work for each
// 2 MiB of it: what needs more is not tried, so that a wrong size in a file
// does not keep its reader waiting for hours.
#define WHAT_IF_MOST (UINT64_C(4) << 40)

// A plan is made of no more than that: the sum, over all allocations, of the
// blocks of the trace that lived then. Some 10 million take a second.
#define WHAT_IF_PLAN_MOST UINT64_C(8000000)

// Makes |pools|, those of --pool, the usual ones if they are none, and none if
// they are "none"; opens the device of dry replays, which the caller closes, if
// any are left, and tries each. TOOL_DONE, or TOOL_MISUSE or TOOL_NO after a
// message.
tool_exit what_if_pools_check(const tool_verb *verb, options_list *pools,
                              tarn_device **out_device);

// What to try, all of it borrowed.
typedef struct what_if_question {
  const tarn_trace *trace;
  tarn_device *device;
  const options_list *pools;
  uint64_t capacity;  // 0: none was asked for
  bool with_plan;     // the last row is to be that of a plan
  bool with_refused;  // refused requests have to be served, too
} what_if_question;

// Replays the trace once through each of the pools in a dry pool on the device:
// no memory is allocated, and streams count as one. With |with_refused|, a
// request that the recorded allocator refused is made too, and freed at once: a
// user who ran out of memory wants to know whether another allocator would have
// served it. One of more than WHAT_IF_MOST, such as malloc(-1), was never meant
// to be served.
//
// What holds more than the capacity is replayed again with that as its limit,
// and fits if every request is then served; |reserved_bytes| is of the run that
// counts. The recorded allocator's own row comes first, if the trace tells of
// its segments; it fits if all that it held does, and at each refused request
// that counts that one beside it.
//
// The row "plan" is the memory needed if all requests were known beforehand:
// the height of a plan as of trace_problem.h, made at once and not searched for
// long. It is left out, after a message, if that would take longer than all
// else.
//
// Nothing is tried, after a message, if more than WHAT_IF_MOST was needed.
//
// False after a message if a strategy cannot be had.
bool what_if_run(const tool_verb *verb, const what_if_question *question,
                 what_if *out);

// Whether anything fits. True without a capacity or without a strategy.
bool what_if_any_fits(const what_if *w);

void what_if_deinit(what_if *w);

#endif  // TARN_TOOL_WHAT_IF_H_
