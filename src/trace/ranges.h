// ranges.h - disjoint ranges of addresses, each with a number, from a file.
//
// Cost: O(log n) for each call, for any addresses, and no recursion.
#ifndef TARN_TRACE_RANGES_H_
#define TARN_TRACE_RANGES_H_

#include "base/budget.h"
#include "base/range_map.h"

// From |first| to |last|, both included, so that a range can end where the
// address space does.
typedef struct tarn__trace_range_entry {
  uint64_t first;
  uint64_t last;
  uint32_t value;
} tarn__trace_range_entry;

typedef struct tarn__trace_ranges {
  tarn__budget *budget;
  tarn__range_map map;
} tarn__trace_ranges;

void tarn__ranges_init(tarn__trace_ranges *ranges, tarn__budget *budget);
void tarn__ranges_deinit(tarn__trace_ranges *ranges);

// The lowest range that has an address from |first| to |last|. False: none.
bool tarn__ranges_find(const tarn__trace_ranges *ranges, uint64_t first,
                       uint64_t last, tarn__trace_range_entry *out_range);

// Adds a range that overlaps none.
//
// TARN_E_NOMEM  the budget or the host allocator refused; nothing changed.
TARN_MUST_CHECK tarn_status tarn__ranges_put(tarn__trace_ranges *ranges,
                                             tarn__trace_range_entry range);

// Removes the range that begins at |first|, if there is one.
void tarn__ranges_remove(tarn__trace_ranges *ranges, uint64_t first);

// Adds a range and cuts off what it covers of others.
//
// TARN_E_NOMEM  as above, but some of what it covers may be gone.
TARN_MUST_CHECK tarn_status tarn__ranges_lay(tarn__trace_ranges *ranges,
                                             tarn__trace_range_entry range);

#endif  // TARN_TRACE_RANGES_H_
