// why.h - the answer of `tarn why`, and the ways to tell it.
#ifndef TARN_TOOL_WHY_H_
#define TARN_TOOL_WHY_H_

#include "frame_names.h"
#include "holders.h"
#include "holes.h"
#include "kit/options.h"
#include "moment.h"
#include "roles.h"
#include "savings.h"
#include "what_if.h"

// Why memory that was free did not serve a request.
typedef enum why_refused {
  REFUSED_UNKNOWN = 0,   // the trace does not tell what was held
  REFUSED_LESS_FREE,     // less was free than was asked for
  REFUSED_FRAGMENTED,    // enough was free, the device's rest included, but
                         // not in one piece
  REFUSED_OTHER_STREAM,  // the holes that are large enough are of others
  REFUSED_BY_RULE,       // a hole was large enough: a limit, or a rule
} why_refused;

// A request that was refused.
typedef struct why_oom {
  uint32_t event;
  uint64_t size;
  uint64_t device_free;  // bytes that the device had left; 0: not recorded
  uint32_t asker;        // frame that owns the request, or NO_STACK
  uint64_t live_bytes;
  size_t live_blocks;
  holes space;
  why_refused reason;
  role_sums role_sums;
  holder_list holders;
} why_oom;

enum { WHY_OOM_MOST = 8 };  // that are looked into: the last ones

// A frame at the peak of two traces.
typedef struct why_change {
  char *frame;
  uint64_t bytes, blocks;
  uint64_t other_bytes, other_blocks;
} why_change;

typedef struct why_diff {
  const tarn_trace *other;
  why_change *items;  // the largest difference first
  size_t count;
} why_diff;

// Lists are already cut to what is to be shown.
typedef struct why_answer {
  const tarn_trace *trace;
  owners *owners;
  uint64_t capacity;  // 0: not asked for
  moment at;          // of all below but oom and diff
  bool at_peak;
  block_set live;
  block_set baseline;   // of those
  roles roles;          // of all blocks of the trace
  role_sums role_sums;  // of live
  savings savings;      // at the peak of the trace
  holder_list holders;  // of live
  holder_list baseline_holders;
  holder_list churn;
  named_sums modules;
  named_sums sizes;
  named_sums tags;
  holes space;
  why_oom *oom;
  size_t oom_count;  // the examined ones
  size_t oom_total;
  what_if strategies;
  bool has_diff;
  why_diff diff;
  char *root;  // folder of the caller's own code
} why_answer;

// The frames of |o| and |list| against those of another trace, all of them.
// Frames are the same if they have the same name; other frames of the same file
// and function are matched in the order of their lines, since lines move.
why_diff why_diff_make(const tarn_trace *trace, const holder_list *list,
                       const tarn_trace *other, const holder_list *other_list);
// Keeps the first |top| changes, 0 for all; the rest become one at the end.
void why_diff_cut(why_diff *diff, size_t top);

void why_diff_deinit(why_diff *diff);

// Answers for |trace| at |at|: the holders of live memory, the blocks that came
// and went, the holes, and the refused requests. |depth|: as for
// sums_by_module. Neither strategies nor a difference. Borrows |trace| and |o|.
why_answer why_ask(const tarn_trace *trace, owners *o, moment at, size_t depth);

// Cuts all lists to |top| rows, 0 for all.
void why_cut(why_answer *answer, size_t top);

void why_deinit(why_answer *answer);

// "at event 9,966 of 19,136 (0.412 s after the first)" into |out|.
enum { WHY_TEXT_SIZE = 160 };
char *why_when(const tarn_trace *trace, moment when, char *out);

// A word for programs, and a sentence into |out|.
const char *why_refused_word(why_refused reason);
char *why_refused_text(const why_oom *oom, char *out, size_t out_size);

// Write it to stdout.
void why_write_json(const why_answer *answer);
void why_write_report(const why_answer *answer, options_output output);

#endif  // TARN_TOOL_WHY_H_
