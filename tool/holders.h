// holders.h - sums of bytes and blocks: by frame, module, size class and tag.
//
// Every block of a set is in exactly one row of each list, so that the rows'
// sums are the set's.
#ifndef TARN_TOOL_HOLDERS_H_
#define TARN_TOOL_HOLDERS_H_

#include "moment.h"
#include "owners.h"

typedef enum holder_kind {
  HOLDER_OWN = 0,   // a frame of the caller's own code
  HOLDER_LIBRARY,   // of stacks of libraries alone
  HOLDER_TAG,       // a tag, of what was recorded without a stack
  HOLDER_BASELINE,  // blocks older than the trace, without such a tag
  HOLDER_NO_STACK,  // blocks without a stack and without a tag
  HOLDER_KEPT,      // of the baseline: never freed in the trace
  HOLDER_OTHERS,    // rows that a list was cut by
} holder_kind;

typedef struct holder {
  holder_kind kind;
  uint32_t frame;  // of OWN and LIBRARY
  uint32_t tag;    // of TAG
  uint32_t stack;  // its stack that holds most
  uint64_t stack_bytes;
  uint64_t bytes;
  uint64_t blocks;
  size_t rows;  // of OTHERS: how many they are
} holder;

typedef struct holder_list {
  holder *items;  // most bytes first, of equals most blocks
  size_t count;
  uint64_t bytes;
  uint64_t blocks;
} holder_list;

// Whether the row is a frame: OWN or LIBRARY.
bool holder_has_frame(const holder *row);

// By the frame that owns the stack, or the tag where there is no stack; the
// rest of the baseline is one row.
holder_list holders_by_frame(owners *o, const tarn_trace *trace,
                             const block_set *set);

// Blocks of the baseline by the frame that owns the stack of their birth where
// there is one; the others by that of their death, by their tag, or as KEPT.
holder_list holders_of_baseline(owners *o, const tarn_trace *trace,
                                const block_set *baseline);

// Keeps the first |top| rows, 0 for all, and all rows that are neither frames
// nor tags; the rest become one row at the end.
void holders_cut(holder_list *list, size_t top);

void holder_list_deinit(holder_list *list);

// Rows with names.
typedef struct named_sum {
  char *name;
  uint64_t bytes;
  uint64_t blocks;
  uint64_t least;  // of a class of sizes: from here ...
  uint64_t most;   // ... up to here
} named_sum;

typedef struct named_sums {
  named_sum *items;  // most bytes first; classes of sizes largest size first
  size_t count;
} named_sums;

// |list|, which is not cut, by module: see frame_names_module.
named_sums sums_by_module(const tarn_trace *trace, const holder_list *list,
                          const char *root, size_t depth);

// By powers of two.
named_sums sums_by_size(const tarn_trace *trace, const block_set *set);

named_sums sums_by_tag(const tarn_trace *trace, const block_set *set);

// As holders_cut.
void named_sums_cut(named_sums *sums, size_t top);

void named_sums_deinit(named_sums *sums);

#endif  // TARN_TOOL_HOLDERS_H_
