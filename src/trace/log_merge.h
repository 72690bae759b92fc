// log_merge.h - the events of all pages, in the order of their numbers.
#ifndef TARN_TRACE_LOG_MERGE_H_
#define TARN_TRACE_LOG_MERGE_H_

#include "trace/log_page.h"

typedef struct tarn__trace_log_merge {
  const tarn__trace_input *input;
  tarn__array pages;  // see log_merge.c
  tarn__array heap;
  bool gap;         // a number is missing before the event that came last
  bool any;         // one came
  uint64_t number;  // its number
  uint64_t soon;    // the address of the event that comes next, or any
} tarn__trace_log_merge;

void tarn__log_merge_init(tarn__trace_log_merge *merge,
                          const tarn__trace_input *input);
void tarn__log_merge_deinit(tarn__trace_log_merge *merge);

// Adds a page by a cursor to its first record; a page without events is left
// out. All records of it have been read without an error before.
//
// TARN_E_NOMEM  the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_merge_add(tarn__trace_log_merge *merge,
                                                tarn__trace_log_cursor cursor);

// Call it once, between the last page and the first event.
void tarn__log_merge_begin(tarn__trace_log_merge *merge);

static inline bool tarn__log_merge_is_empty(
    const tarn__trace_log_merge *merge) {
  return merge->heap.count == 0;
}

// The event that comes next; there is one.
//
// Cost: O(log of the pages); less where few pages are open at a time.
// TARN_E_CORRUPT  the one before has the same number.
TARN_MUST_CHECK tarn_status tarn__log_merge_next(
    tarn__trace_log_merge *merge, tarn__trace_log_record *out_record);

#endif  // TARN_TRACE_LOG_MERGE_H_
