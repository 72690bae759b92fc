// Indices by the rank that owns their row: a pass that counts, and one that
// puts each to its place.
//
//   rows      0                                                    table_rows
//   regions   |   0   |   1   |   2   |   3   |   4   |   5   |   6   |
//   owners    |        0         |       1        |  (2)  |     3     |
//   entries   [ of 0 ][ of 1, if this is rank 1 ][ no rows ][ of 2 ][ of 3 ]
//
// The owner of a row is mostly that of its region's first, which a table tells.
//
// Within an owner's, entries stand as their indices came. To sort them by where
// rows are in the table has been tried: on huge pages it costs what it gains.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "whole/exchange.h"

struct tarn__region {
  size_t owner;  // of its first row
  size_t split;  // the first row that is another rank's
};

// --- room ------------------------------------------------------------------

// Of each rank one, and one of what is no row.
static size_t bucket_count(const tarn__sorted *s) {
  return s->ranks + 1;
}

tarn_status tarn__sorted_begin(tarn__sorted *s, size_t rank, size_t ranks) {
  *s = (tarn__sorted){.rank = rank, .ranks = ranks};
  s->firsts = tarn__host_array(ranks + 1, sizeof *s->firsts);
  s->regions = tarn__host_array(TARN__REGIONS, sizeof *s->regions);
  s->buckets = tarn__host_array(bucket_count(s), sizeof *s->buckets);
  s->indices = tarn__host_array(TARN__PIECE, sizeof *s->indices);
  s->homes = tarn__host_array(TARN__PIECE, sizeof *s->homes);
  s->entries = tarn__host_array(TARN__PIECE, sizeof *s->entries);
  s->next = tarn__host_array(ranks, sizeof *s->next);
  s->ends = tarn__host_array(ranks, sizeof *s->ends);
  bool all = s->firsts != NULL && s->regions != NULL && s->buckets != NULL &&
             s->indices != NULL && s->homes != NULL && s->entries != NULL &&
             s->next != NULL && s->ends != NULL;
  return all ? TARN_OK : TARN_E_NOMEM;
}

void tarn__sorted_end(tarn__sorted *s) {
  tarn__host_free_array(s->firsts, s->ranks + 1, sizeof *s->firsts);
  tarn__host_free_array(s->regions, TARN__REGIONS, sizeof *s->regions);
  tarn__host_free_array(s->buckets, bucket_count(s), sizeof *s->buckets);
  tarn__host_free_array(s->indices, TARN__PIECE, sizeof *s->indices);
  tarn__host_free_array(s->homes, TARN__PIECE, sizeof *s->homes);
  tarn__host_free_array(s->entries, TARN__PIECE, sizeof *s->entries);
  tarn__host_free_array(s->next, s->ranks, sizeof *s->next);
  tarn__host_free_array(s->ends, s->ranks, sizeof *s->ends);
}

// --- the table -------------------------------------------------------------

static unsigned shift_of(size_t rows) {
  unsigned shift = 0;
  while (rows > 0 && (rows - 1) >> shift >= TARN__REGIONS)
    shift++;
  return shift;
}

// The owner of |row|, which is none of the ranks before |owner|.
static size_t owner_from(const tarn__sorted *s, size_t owner, size_t row) {
  while (row >= s->firsts[owner + 1])
    owner++;
  return owner;
}

static void look_at_regions(tarn__sorted *s) {
  size_t owner = 0;
  for (size_t i = 0; i < TARN__REGIONS; i++) {
    size_t row = i << s->shift;
    if (row >= s->table_rows) return;
    owner = owner_from(s, owner, row);
    s->regions[i] = (struct tarn__region){owner, s->firsts[owner + 1]};
  }
}

static bool is_narrow(const tarn__sorted *s) {
  for (size_t r = 0; r < s->ranks; r++) {
    if (s->firsts[r + 1] - s->firsts[r] > INT32_MAX) return false;
  }
  return true;
}

void tarn__sorted_look_at(tarn__sorted *s, const tarn__tensor *table) {
  size_t count = 0;
  for (size_t r = 0; r < s->ranks; r++)
    tarn__tensor_rows(table, r, &s->firsts[r], &count);
  s->firsts[s->ranks] = table->rows;
  s->table_rows = table->rows;
  s->shift = shift_of(table->rows);
  s->narrow = is_narrow(s);
  look_at_regions(s);
}

// --- buckets ---------------------------------------------------------------

static size_t bucket_of_rank(const tarn__sorted *s, size_t rank) {
  return rank + (rank > s->rank);
}

static size_t bucket_of_bad(const tarn__sorted *s) {
  return s->rank + 1;
}

static inline size_t bucket_of(const tarn__sorted *s, size_t row) {
  if (row >= s->table_rows) return bucket_of_bad(s);
  const struct tarn__region *region = &s->regions[row >> s->shift];
  size_t owner = region->owner;
  if (row >= region->split) owner = owner_from(s, owner, row);
  return bucket_of_rank(s, owner);
}

static int64_t index_at(const void *indices, size_t i) {
  int64_t index;
  memcpy(&index, (const unsigned char *)indices + i * sizeof index,
         sizeof index);
  return index;
}

// What a loop writes could else be taken for what it reads.
static void count_all(const tarn__sorted *s, const void *indices,
                      size_t count) {
  const tarn__sorted here = *s;
  memset(here.buckets, 0, bucket_count(s) * sizeof *here.buckets);
  for (size_t i = 0; i < count; i++) {
    size_t bucket = bucket_of(&here, (size_t)index_at(indices, i));
    here.homes[i] = (uint32_t)bucket;
    here.buckets[bucket]++;
  }
}

// Counts become beginnings, which putting makes ends.
static void begin_buckets(tarn__sorted *s) {
  uint32_t begin = 0;
  for (size_t b = 0; b < bucket_count(s); b++) {
    uint32_t count = s->buckets[b];
    s->buckets[b] = begin;
    begin += count;
  }
}

static void put_all(const tarn__sorted *s, const void *indices, size_t count) {
  const tarn__sorted here = *s;
  for (size_t i = 0; i < count; i++) {
    uint64_t row = (uint64_t)index_at(indices, i);
    here.entries[here.buckets[here.homes[i]]++] = row << TARN__PIECE_BITS | i;
  }
}

static void find_ends(tarn__sorted *s, bool keep_bad) {
  size_t begin = 0;
  for (size_t r = 0; r < s->ranks; r++) {
    s->next[r] = begin;
    s->ends[r] = begin = s->buckets[bucket_of_rank(s, r)];
    if (r == s->rank) begin = s->buckets[bucket_of_bad(s)];
  }
  s->bad = s->ends[s->rank];
  if (keep_bad) s->ends[s->rank] = s->buckets[bucket_of_bad(s)];
}

void tarn__sorted_take(tarn__sorted *s, const void *indices, size_t count,
                       bool keep_bad) {
  count_all(s, indices, count);
  begin_buckets(s);
  put_all(s, indices, count);
  find_ends(s, keep_bad);
}
