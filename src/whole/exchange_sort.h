// exchange_sort.h - indices, sorted by the rank that owns their row.
#ifndef TARN_WHOLE_EXCHANGE_SORT_H_
#define TARN_WHOLE_EXCHANGE_SORT_H_

#include "whole/whole.h"

enum {
  TARN__PIECE_BITS = 15,
  TARN__PIECE = 1 << TARN__PIECE_BITS,  // indices that are sorted at a time
  TARN__REGIONS = 1024,  // of a table, by which owners are looked up
};

// A piece of indices, sorted by owner: entries |next[r]| to |ends[r]| - 1 are
// rows of rank r. Equal rows keep their order. Indices out of range follow this
// rank's own rows, from entry |bad| on.
typedef struct tarn__whole_sorted {
  size_t rank;
  size_t ranks;
  size_t table_rows;
  bool copies;        // there are several, and parts differ between them
  bool narrow;        // no rank has more rows than 32 bits can count
  unsigned shift;     // row r is in region r >> shift
  size_t *firsts;     // ranks + 1: the first row of each
  uint32_t *regions;  // TARN__REGIONS + 1: the bucket of its rows; the last:
                      // of indices out of range
  uint32_t *buckets;  // ranks + 1 of each half of a piece
  int64_t *indices;   // room for a piece
  uint32_t *homes;    // the bucket of each; room for a piece
  uint64_t *entries;  // a piece
  size_t *next;       // ranks
  size_t *ends;       // ranks
  size_t bad;
} tarn__whole_sorted;

// An entry is a row number and the position of its index in the piece. The row
// number of every table fits.
static inline uint64_t tarn__entry_row(uint64_t entry) {
  return entry >> TARN__PIECE_BITS;
}

static inline uint32_t tarn__entry_position(uint64_t entry) {
  return (uint32_t)(entry & (TARN__PIECE - 1));
}

// Prepares for the indices of |table|, of which rank r owns bytes |offsets[r]|
// to |offsets[r + 1]| - 1.
void tarn__sorted_look_at(tarn__whole_sorted *sorted,
                          const tarn__whole_tensor *table,
                          const size_t *offsets);

// Sorts |count| 64-bit |indices| of any alignment, at most a piece; they may be
// in |sorted->indices|. |keep_bad|: keeps indices that are out of range.
//
// Cost: O(count + ranks).
void tarn__sorted_take(tarn__whole_sorted *sorted, const void *indices,
                       size_t count, bool keep_bad);

// The rank that owns |row|, which the table has.
size_t tarn__sorted_owner(const tarn__whole_sorted *sorted, size_t row);

#endif  // TARN_WHOLE_EXCHANGE_SORT_H_
