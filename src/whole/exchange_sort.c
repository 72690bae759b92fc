// Sorts indices by the rank that owns their row, in two passes: one counts, one
// puts each index in its place.
//
//   rows      0                                                    table_rows
//   regions   |   0   |   1   |   2   |   3   |   4   |   5   |   6   |
//   owners    |        0         |       1        |  (2)  |     3     |
//   entries   [ of 0 ][ of 1, if this is rank 1 ][ no rows ][ of 2 ][ of 3 ]
//
// A table holds the owner of each region; only in regions with several owners
// the owner of a row is looked up.
//
// The entries of an owner keep the order of their indices. Sorting them by
// address as well gained nothing on huge pages.
#include <string.h>

#include "base/status.h"
#include "whole/exchange.h"

// A region that has rows of several ranks.
static const uint32_t MIXED = UINT32_MAX;

static size_t bucket_count(const tarn__whole_sorted *s) {
  return s->ranks + 1;
}

// --- the table -------------------------------------------------------------

static unsigned shift_of(size_t rows) {
  unsigned shift = 0;
  while (rows > 0 && (rows - 1) >> shift >= TARN__REGIONS)
    shift++;
  return shift;
}

// A bucket for each rank, and one for indices out of range.
static size_t bucket_of_rank(const tarn__whole_sorted *s, size_t rank) {
  return rank + (rank > s->rank);
}

static size_t bucket_of_bad(const tarn__whole_sorted *s) {
  return s->rank + 1;
}

static size_t bucket_of_row(const tarn__whole_sorted *s, size_t row) {
  size_t owner = tarn__partition_owner(s->firsts, s->ranks, row);
  return bucket_of_rank(s, owner);
}

static void look_at_regions(tarn__whole_sorted *s) {
  size_t size = (size_t)1 << s->shift;
  for (size_t first = 0; first < s->table_rows; first += size) {
    size_t left = s->table_rows - first;
    size_t last = first + (left < size ? left : size) - 1;
    size_t bucket = bucket_of_row(s, first);
    bool mixed = bucket != bucket_of_row(s, last);
    s->regions[first >> s->shift] = mixed ? MIXED : (uint32_t)bucket;
  }
  s->regions[TARN__REGIONS] = (uint32_t)bucket_of_bad(s);
}

static bool is_narrow(const tarn__whole_sorted *s) {
  for (size_t r = 0; r < s->ranks; r++) {
    if (s->firsts[r + 1] - s->firsts[r] > INT32_MAX) return false;
  }
  return true;
}

void tarn__sorted_look_at(tarn__whole_sorted *s,
                          const tarn__whole_tensor *table,
                          const size_t *offsets) {
  for (size_t r = 0; r < s->ranks; r++)
    s->firsts[r] = tarn__tensor_row_from(table, offsets[r]);
  s->firsts[s->ranks] = table->rows;
  s->table_rows = table->rows;
  s->shift = shift_of(table->rows);
  s->narrow = s->copies ? table->rows <= INT32_MAX : is_narrow(s);
  look_at_regions(s);
}

// --- sorting ---------------------------------------------------------------

static inline size_t row_at(const void *indices, size_t i) {
  return (size_t)tarn__rows_index_at(TARN_DTYPE_I64, indices, i);
}

static inline uint32_t home_of(const tarn__whole_sorted *s, size_t row) {
  size_t region = row < s->table_rows ? row >> s->shift : TARN__REGIONS;
  uint32_t bucket = s->regions[region];
  return bucket != MIXED ? bucket : (uint32_t)bucket_of_row(s, row);
}

// An increment waits for the previous one if both go to the same bucket. So the
// two halves of the indices are counted at a time, each in buckets of its own.
static inline void count_one(const tarn__whole_sorted *s, const void *indices,
                             size_t i, uint32_t *buckets) {
  uint32_t bucket = home_of(s, row_at(indices, i));
  s->homes[i] = bucket;
  buckets[bucket]++;
}

static void count_all(const tarn__whole_sorted *s, const void *indices,
                      size_t count) {
  const tarn__whole_sorted here = *s;
  uint32_t *first = here.buckets;
  uint32_t *second = first + bucket_count(s);
  size_t half = count / 2;
  memset(first, 0, 2 * bucket_count(s) * sizeof *first);
  for (size_t i = 0; i < half; i++) {
    count_one(&here, indices, i, first);
    count_one(&here, indices, half + i, second);
  }
  if (count % 2 != 0) count_one(&here, indices, count - 1, second);
}

// Counts become beginnings, which putting makes ends.
static void begin_buckets(tarn__whole_sorted *s) {
  uint32_t begin = 0;
  for (size_t b = 0; b < 2 * bucket_count(s); b++) {
    uint32_t *bucket = &s->buckets[b % 2 * bucket_count(s) + b / 2];
    uint32_t count = *bucket;
    *bucket = begin;
    begin += count;
  }
}

static inline void put_one(const tarn__whole_sorted *s, const void *indices,
                           size_t i, uint32_t *buckets) {
  uint64_t row = row_at(indices, i);
  s->entries[buckets[s->homes[i]]++] = row << TARN__PIECE_BITS | i;
}

static void put_all(const tarn__whole_sorted *s, const void *indices,
                    size_t count) {
  const tarn__whole_sorted here = *s;
  uint32_t *first = here.buckets;
  uint32_t *second = first + bucket_count(s);
  size_t half = count / 2;
  for (size_t i = 0; i < half; i++) {
    put_one(&here, indices, i, first);
    put_one(&here, indices, half + i, second);
  }
  if (count % 2 != 0) put_one(&here, indices, count - 1, second);
}

static void find_ends(tarn__whole_sorted *s, bool keep_bad) {
  size_t begin = 0;
  const uint32_t *ends = s->buckets + bucket_count(s);
  for (size_t r = 0; r < s->ranks; r++) {
    s->next[r] = begin;
    s->ends[r] = begin = ends[bucket_of_rank(s, r)];
    if (r == s->rank) begin = ends[bucket_of_bad(s)];
  }
  s->bad = s->ends[s->rank];
  if (keep_bad) s->ends[s->rank] = ends[bucket_of_bad(s)];
}

size_t tarn__sorted_owner(const tarn__whole_sorted *s, size_t row) {
  size_t bucket = home_of(s, row);
  return bucket - (bucket > s->rank);
}

void tarn__sorted_take(tarn__whole_sorted *s, const void *indices, size_t count,
                       bool keep_bad) {
  count_all(s, indices, count);
  begin_buckets(s);
  put_all(s, indices, count);
  find_ends(s, keep_bad);
}
