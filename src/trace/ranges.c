// Ranges in a range map whose nodes count in the budget of the file. The seed
// is secret, so that no file can make the tree deep.
#include "trace/ranges.h"

#include "base/hostmem.h"
#include "base/intern.h"
#include "base/status.h"

typedef struct range {
  tarn__range_map_node node;
  uint64_t last;
} range;

void tarn__ranges_init(tarn__trace_ranges *ranges, tarn__budget *budget) {
  *ranges = (tarn__trace_ranges){.budget = budget,
                                 .map.random = tarn__hash_seed() | 1};
}

static range *range_at(const tarn__trace_ranges *ranges, uint64_t address) {
  return (range *)tarn__range_map_at(&ranges->map, address);
}

static void drop(tarn__trace_ranges *ranges, range *gone) {
  tarn__range_map_remove(&ranges->map, &gone->node);
  tarn__host_free(gone, sizeof *gone);
  ranges->budget->used -= sizeof *gone;
}

void tarn__ranges_deinit(tarn__trace_ranges *ranges) {
  while (ranges->map.root != NULL)
    drop(ranges, (range *)ranges->map.root);
}

bool tarn__ranges_find(const tarn__trace_ranges *ranges, uint64_t first,
                       uint64_t last, tarn__trace_range_entry *out_range) {
  const range *found = range_at(ranges, first);
  if (found == NULL || found->last < first) {
    found = (range *)tarn__range_map_behind(
        &ranges->map, found != NULL ? &found->node : NULL);
  }
  if (found == NULL || found->node.start > last) return false;
  *out_range = (tarn__trace_range_entry){.first = found->node.start,
                                         .last = found->last,
                                         .value = found->node.value};
  return true;
}

tarn_status tarn__ranges_put(tarn__trace_ranges *ranges,
                             tarn__trace_range_entry entry) {
  TARN__TRY(tarn__budget_charge(ranges->budget, sizeof(range)));
  range *fresh = tarn__host_alloc(sizeof *fresh);
  if (fresh == NULL) {
    ranges->budget->used -= sizeof *fresh;
    return TARN_E_NOMEM;
  }
  *fresh = (range){.node = {.start = entry.first, .value = entry.value},
                   .last = entry.last};
  tarn__range_map_insert(&ranges->map, &fresh->node);
  return TARN_OK;
}

void tarn__ranges_remove(tarn__trace_ranges *ranges, uint64_t first) {
  range *found = range_at(ranges, first);
  if (found != NULL && found->node.start == first) drop(ranges, found);
}

tarn_status tarn__ranges_lay(tarn__trace_ranges *ranges,
                             tarn__trace_range_entry entry) {
  tarn__trace_range_entry old;
  tarn_status status = TARN_OK;
  while (status == TARN_OK &&
         tarn__ranges_find(ranges, entry.first, entry.last, &old)) {
    tarn__trace_range_entry rest = old;
    tarn__ranges_remove(ranges, old.first);
    if (old.first < entry.first) {
      rest.last = entry.first - 1;
      status = tarn__ranges_put(ranges, rest);
    }
    if (status == TARN_OK && old.last > entry.last) {
      rest = old;
      rest.first = entry.last + 1;
      status = tarn__ranges_put(ranges, rest);
    }
  }
  return status == TARN_OK ? tarn__ranges_put(ranges, entry) : status;
}
