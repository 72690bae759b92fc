// ranges.h - ranges of addresses that do not overlap, each with a number.
//
// Cost: O(log n) for each call, whatever the addresses are, and no recursion.
#ifndef TARN_TRACE_RANGES_H_
#define TARN_TRACE_RANGES_H_

#include "base/budget.h"

// From |first| to |last|, both within it, so that one may end where the address
// space does.
typedef struct tarn__trace_range_entry {
  uint64_t first;
  uint64_t last;
  uint32_t value;
} tarn__trace_range_entry;

typedef struct tarn__trace_ranges {
  tarn__budget *budget;
  uint64_t random;
  tarn__array nodes;  // see ranges.c; number 0 is none
  uint32_t root;
  uint32_t spare;  // nodes that were removed
} tarn__trace_ranges;

void tarn__ranges_init(tarn__trace_ranges *ranges, tarn__budget *budget);
void tarn__ranges_deinit(tarn__trace_ranges *ranges);

static inline bool tarn__ranges_is_empty(const tarn__trace_ranges *ranges) {
  return ranges->root == 0;
}

// The lowest range that has an address from |first| to |last|. False: none.
bool tarn__ranges_find(const tarn__trace_ranges *ranges, uint64_t first,
                       uint64_t last, tarn__trace_range_entry *out_range);

// Adds a range that overlaps none.
//
// TARN_E_NOMEM  the budget or the host allocator refused; nothing changed.
TARN_MUST_CHECK tarn_status tarn__ranges_put(tarn__trace_ranges *ranges,
                                             tarn__trace_range_entry range);

// Takes out the range that begins at |first|, if there is one.
void tarn__ranges_remove(tarn__trace_ranges *ranges, uint64_t first);

// Adds a range and cuts off what it covers of others.
//
// TARN_E_NOMEM  as above, but some of what it covers may be gone.
TARN_MUST_CHECK tarn_status tarn__ranges_lay(tarn__trace_ranges *ranges,
                                             tarn__trace_range_entry range);

#endif  // TARN_TRACE_RANGES_H_
