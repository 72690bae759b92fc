// Indices by the rank that owns their row, and by region of the table: a pass
// that counts, and one that puts each to its place.
//
//   rows      0                                                    table_rows
//   regions   |   0   |   1   |   2   |   3   |   4   |   5   |   6   |
//   owners    |        0         |       1        |  (2)  |     3     |
//   buckets   |   0   |   1   | 2| 3 |   4   |  5 | ...
//
// A bucket is what one owner has of one region. The number of a region and the
// number of its owner grow with the row, so that their sum tells buckets apart,
// in the order of rows. Behind the buckets of this rank's stands one of what is
// no row.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "whole/exchange.h"

enum {
  REGION_SIZE = 2 << 20,  // bytes that a processor finds its way in at once
};

// --- room ------------------------------------------------------------------

static size_t bucket_count(const tarn__sorted *s) {
  return TARN__REGIONS + s->ranks + 2;
}

tarn_status tarn__sorted_begin(tarn__sorted *s, size_t rank, size_t ranks) {
  *s = (tarn__sorted){.rank = rank, .ranks = ranks};
  s->firsts = tarn__host_array(ranks + 1, sizeof *s->firsts);
  s->owners = tarn__host_array(TARN__REGIONS, sizeof *s->owners);
  s->buckets = tarn__host_array(bucket_count(s), sizeof *s->buckets);
  s->indices = tarn__host_array(TARN__PIECE, sizeof *s->indices);
  s->rows = tarn__host_array(TARN__PIECE, sizeof *s->rows);
  s->positions = tarn__host_array(TARN__PIECE, sizeof *s->positions);
  s->next = tarn__host_array(ranks, sizeof *s->next);
  s->ends = tarn__host_array(ranks, sizeof *s->ends);
  bool all = s->firsts != NULL && s->owners != NULL && s->buckets != NULL &&
             s->indices != NULL && s->rows != NULL && s->positions != NULL &&
             s->next != NULL && s->ends != NULL;
  return all ? TARN_OK : TARN_E_NOMEM;
}

void tarn__sorted_end(tarn__sorted *s) {
  tarn__host_free_array(s->firsts, s->ranks + 1, sizeof *s->firsts);
  tarn__host_free_array(s->owners, TARN__REGIONS, sizeof *s->owners);
  tarn__host_free_array(s->buckets, bucket_count(s), sizeof *s->buckets);
  tarn__host_free_array(s->indices, TARN__PIECE, sizeof *s->indices);
  tarn__host_free_array(s->rows, TARN__PIECE, sizeof *s->rows);
  tarn__host_free_array(s->positions, TARN__PIECE, sizeof *s->positions);
  tarn__host_free_array(s->next, s->ranks, sizeof *s->next);
  tarn__host_free_array(s->ends, s->ranks, sizeof *s->ends);
}

// --- the table -------------------------------------------------------------

static unsigned shift_of(const tarn__tensor *table) {
  unsigned shift = 0;
  while (table->stride <= (size_t)REGION_SIZE >> (shift + 1))
    shift++;
  while (table->rows > 0 && (table->rows - 1) >> shift >= TARN__REGIONS)
    shift++;
  return shift;
}

static void find_owners(tarn__sorted *s) {
  uint32_t owner = 0;
  for (size_t region = 0; region < TARN__REGIONS; region++) {
    size_t row = region << s->shift;
    if (row >= s->table_rows) return;
    while (row >= s->firsts[owner + 1])
      owner++;
    s->owners[region] = owner;
  }
}

void tarn__sorted_look_at(tarn__sorted *s, const tarn__tensor *table) {
  size_t count = 0;
  for (size_t r = 0; r < s->ranks; r++)
    tarn__tensor_rows(table, r, &s->firsts[r], &count);
  s->firsts[s->ranks] = table->rows;
  s->table_rows = table->rows;
  s->shift = shift_of(table);
  find_owners(s);
}

// --- buckets ---------------------------------------------------------------

// The first that rank |rank|, or one behind it, may have; |ranks|: the end.
static size_t bucket_from(const tarn__sorted *s, size_t rank) {
  return (s->firsts[rank] >> s->shift) + rank + (rank > s->rank);
}

static size_t bucket_of_bad(const tarn__sorted *s) {
  return bucket_from(s, s->rank + 1) - 1;
}

// The bucket of |index|; |*out_row|: which row of its owner's it is.
static inline size_t bucket_of(const tarn__sorted *s, int64_t index,
                               int64_t *out_row) {
  size_t row = (size_t)index;
  *out_row = -1;
  if (row >= s->table_rows) return bucket_of_bad(s);
  size_t region = row >> s->shift;
  size_t owner = s->owners[region];
  while (row >= s->firsts[owner + 1])
    owner++;
  *out_row = (int64_t)(row - s->firsts[owner]);
  return region + owner + (owner > s->rank);
}

static void count_all(tarn__sorted *s, size_t count) {
  int64_t row;
  memset(s->buckets, 0, bucket_count(s) * sizeof *s->buckets);
  for (size_t i = 0; i < count; i++)
    s->buckets[bucket_of(s, s->indices[i], &row)]++;
}

// Counts become beginnings, which putting makes ends.
static void begin_buckets(tarn__sorted *s) {
  uint32_t begin = 0;
  size_t end = bucket_from(s, s->ranks);
  for (size_t b = 0; b < end; b++) {
    uint32_t count = s->buckets[b];
    s->buckets[b] = begin;
    begin += count;
  }
}

static void put_all(tarn__sorted *s, size_t count) {
  for (size_t i = 0; i < count; i++) {
    int64_t row;
    uint32_t at = s->buckets[bucket_of(s, s->indices[i], &row)]++;
    s->rows[at] = row;
    s->positions[at] = (int32_t)i;
  }
}

static void find_ends(tarn__sorted *s, bool keep_bad) {
  size_t begin = 0;
  for (size_t r = 0; r < s->ranks; r++) {
    size_t last = bucket_from(s, r + 1);
    s->next[r] = begin;
    begin = s->buckets[last - 1];
    s->ends[r] = begin;
  }
  if (!keep_bad) s->ends[s->rank] = s->buckets[bucket_of_bad(s) - 1];
}

void tarn__sorted_take(tarn__sorted *s, size_t count, bool keep_bad) {
  count_all(s, count);
  begin_buckets(s);
  put_all(s, count);
  find_ends(s, keep_bad);
}
