// Sorting by counting: how many rows of a batch are in each region; where those
// of each begin; then every one to its place. Rows keep their order within a
// region, so that sums come out the same, and of equal indices the last stays.
//
//   regions    0    1    2         to clear
//   ends     [ 3 ][ 3 ][ 7 ] . . . [ 12 ]
//   entries  [ . . . ][ . . . . ]  [ . ]
//
// An entry takes 8 bytes whatever the table: it has the row's place in its
// region alone. Of a table with too many regions, they are larger.
#include <string.h>

#include "base/hostmem.h"
#include "common/rows_direct.h"

enum {
  REGION_SIZE = 2 << 20,   // what a processor finds its way in at once
  REGIONS_MAX = 1024,      // as many lines as fit a near cache
  TABLE_LEAST = 32 << 20,  // below, the way is known everywhere
  ROW_MOST = 512,          // above, finding the way costs little
  BATCH_MOST = 32 << 10,   // positions: an entry of each fits a near cache
  BATCH_LEAST = 4 << 10,   // below, few rows would share a region
  BATCHES = 32,            // of a share, at least: one is for trying
  SHIFT_MOST = 32,         // for an entry
};

// The rows of a region are a power of two.
static unsigned shift_of(const tarn_rows *rows) {
  unsigned shift = 0;
  while (rows->table_stride <= (size_t)REGION_SIZE >> (shift + 1))
    shift++;
  while ((rows->table_count - 1) >> shift >= REGIONS_MAX)
    shift++;
  return shift;
}

// A gather that goes through caches wants to write one line after the other.
static bool is_worth_it(const tarn__common_rows_share *share) {
  const tarn__rows_plan *plan = share->plan;
  const tarn_rows *rows = plan->rows;
  if (plan->action == TARN__ROWS_GATHER && !plan->streams) return false;
  return share->end - share->first >= (size_t)BATCHES * BATCH_LEAST &&
         plan->table_bytes != 0 && plan->table_bytes <= ROW_MOST &&
         rows->table_count >= TABLE_LEAST / rows->table_stride;
}

static size_t batch_of(const tarn__common_rows_share *share) {
  size_t batch = (share->end - share->first) / BATCHES;
  return batch < BATCH_MOST ? batch : BATCH_MOST;
}

bool tarn__rows_buckets_begin(tarn__common_rows_buckets *buckets,
                              const tarn__common_rows_share *share) {
  const tarn_rows *rows = share->plan->rows;
  *buckets = (tarn__common_rows_buckets){0};
  if (!is_worth_it(share)) return false;
  buckets->shift = shift_of(rows);
  if (buckets->shift > SHIFT_MOST) return false;
  buckets->count = ((rows->table_count - 1) >> buckets->shift) + 1;
  buckets->batch = batch_of(share);
  buckets->ends = tarn__host_array(buckets->count + 1, sizeof(uint32_t));
  buckets->entries =
      tarn__host_array(buckets->batch, sizeof(tarn__common_rows_entry));
  if (buckets->ends != NULL && buckets->entries != NULL) return true;
  tarn__rows_buckets_end(buckets);
  return false;
}

void tarn__rows_buckets_end(tarn__common_rows_buckets *buckets) {
  tarn__host_free_array(buckets->entries, buckets->batch,
                        sizeof(tarn__common_rows_entry));
  tarn__host_free_array(buckets->ends, buckets->count + 1, sizeof(uint32_t));
}

// Calls |found| for each position with something to do; the region behind the
// last has what is to be cleared. False: a fault.
static inline bool each(tarn__common_rows_buckets *b,
                        tarn__common_rows_share *share, size_t first,
                        size_t count,
                        void (*found)(tarn__common_rows_buckets *b,
                                      size_t region, size_t row, size_t k)) {
  const tarn_rows rows = *share->plan->rows;
  for (size_t k = 0; k < count; k++) {
    size_t row = 0;
    tarn__common_rows_verdict verdict =
        tarn__rows_admit(share, &rows, first + k, &row);
    if (verdict == TARN__ROWS_STOP) return false;
    if (verdict == TARN__ROWS_TAKE) found(b, row >> b->shift, row, k);
    if (verdict == TARN__ROWS_CLEAR) found(b, b->count, 0, k);
  }
  return true;
}

static void count_one(tarn__common_rows_buckets *b, size_t region, size_t row,
                      size_t k) {
  (void)row;
  (void)k;
  b->ends[region]++;
}

static void put_one(tarn__common_rows_buckets *b, size_t region, size_t row,
                    size_t k) {
  size_t mask = ((size_t)1 << b->shift) - 1;
  b->entries[b->ends[region]++] =
      (tarn__common_rows_entry){(uint32_t)k, (uint32_t)(row & mask)};
}

// Counts become beginnings, which putting makes ends.
static void begin_regions(tarn__common_rows_buckets *b) {
  uint32_t begin = 0;
  for (size_t region = 0; region <= b->count; region++) {
    uint32_t count = b->ends[region];
    b->ends[region] = begin;
    begin += count;
  }
}

bool tarn__rows_buckets_sort(tarn__common_rows_buckets *buckets,
                             tarn__common_rows_share *share, size_t first,
                             size_t count) {
  memset(buckets->ends, 0, (buckets->count + 1) * sizeof *buckets->ends);
  if (!each(buckets, share, first, count, count_one)) return false;
  begin_regions(buckets);
  return each(buckets, share, first, count, put_one);
}
