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
  REGION_SIZE = 512 << 20,  // bytes that a processor finds its way in at once
};

// What is to be known of a region to find the bucket of a row in it.
struct tarn__region {
  uint32_t bucket;  // of its first row
  uint32_t owner;   // of its first row
  size_t split;     // where another rank's rows begin within; SIZE_MAX: nowhere
  bool many;        // there is more than one such place
};

// --- room ------------------------------------------------------------------

static size_t bucket_count(const tarn__sorted *s) {
  return TARN__REGIONS + s->ranks + 2;
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

static unsigned shift_of(const tarn__tensor *table) {
  unsigned shift = 0;
  while (table->stride <= (size_t)REGION_SIZE >> (shift + 1))
    shift++;
  while (table->rows > 0 && (table->rows - 1) >> shift >= TARN__REGIONS)
    shift++;
  return shift;
}

// The first bucket that rank |rank|, or one behind it, may have; |ranks|: the
// end.
static size_t bucket_from(const tarn__sorted *s, size_t rank) {
  return (s->firsts[rank] >> s->shift) + rank + (rank > s->rank);
}

static size_t bucket_of_bad(const tarn__sorted *s) {
  return bucket_from(s, s->rank + 1) - 1;
}

// The owner of |row|, which is not that of a rank before |owner|.
static size_t owner_from(const tarn__sorted *s, size_t owner, size_t row) {
  while (row >= s->firsts[owner + 1])
    owner++;
  return owner;
}

static size_t bucket_at(const tarn__sorted *s, size_t owner, size_t row) {
  return (row >> s->shift) + owner + (owner > s->rank);
}

static void look_at_regions(tarn__sorted *s) {
  size_t owner = 0;
  for (size_t i = 0; i < TARN__REGIONS; i++) {
    size_t row = i << s->shift;
    if (row >= s->table_rows) return;
    owner = owner_from(s, owner, row);
    size_t split = s->firsts[owner + 1];
    size_t last = row + (((size_t)1 << s->shift) - 1);
    bool one = split > last || split == s->table_rows;
    size_t next = one ? owner : owner_from(s, owner, split);
    s->regions[i] = (struct tarn__region){
        .bucket = (uint32_t)bucket_at(s, owner, row),
        .owner = (uint32_t)owner,
        .split = one ? SIZE_MAX : split,
        .many = !one && (next > owner + 1 || next == s->rank + 1 ||
                         s->firsts[next + 1] <= last),
    };
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
  s->shift = shift_of(table);
  s->narrow = is_narrow(s);
  look_at_regions(s);
}

// --- buckets ---------------------------------------------------------------

// Rows of several ranks in one region are few, and looked for.
static inline size_t bucket_of(const tarn__sorted *s, size_t row) {
  if (row >= s->table_rows) return bucket_of_bad(s);
  const struct tarn__region *region = &s->regions[row >> s->shift];
  if (region->many) return bucket_at(s, owner_from(s, region->owner, row), row);
  return region->bucket + (row >= region->split);
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
  size_t end = bucket_from(s, s->ranks);
  for (size_t b = 0; b < end; b++) {
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
    begin = s->buckets[bucket_from(s, r + 1) - 1];
    s->ends[r] = begin;
  }
  s->bad = s->buckets[bucket_of_bad(s) - 1];
  if (!keep_bad) s->ends[s->rank] = s->bad;
}

void tarn__sorted_take(tarn__sorted *s, const void *indices, size_t count,
                       bool keep_bad) {
  count_all(s, indices, count);
  begin_buckets(s);
  put_all(s, indices, count);
  find_ends(s, keep_bad);
}
