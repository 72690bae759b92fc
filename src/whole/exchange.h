// exchange.h - rows that ranks exchange.
//
// Each rank sorts its indices, a piece at a time, by the rank that owns the
// row. Then it goes through rounds. In each round, a rank asks all other ranks
// for rows, through its own staging memory, which all ranks map:
//
//   staging of a rank   | wants | lists | rows |   even rounds
//                       | wants | lists | rows |   odd rounds
//
//   wants   for each owner: a part of the list
//   lists   row numbers, counted from the owner's first row
//   rows    in the order of the list: the owner writes them (gather) or reads
//           them (scatter, scatter-add)
//
// Between two header exchanges a rank places the rows of round k - 1, writes
// what it wants in round k + 1, and serves what the others want in round k. So
// one exchange for each round is enough, and no rank waits for a single other
// one.
//
// A rank moves its own rows itself, a share of them in each round, so that
// ranks stay in step. The share is bounded: otherwise the others would take the
// rank for one that has stopped. Where the host cannot touch both ends of them,
// they pass through the half that the rank is about to ask with.
#ifndef TARN_WHOLE_EXCHANGE_H_
#define TARN_WHOLE_EXCHANGE_H_

#include "whole/rows.h"

enum {
  TARN__PIECE_BITS = 15,
  TARN__PIECE = 1 << TARN__PIECE_BITS,  // indices that are sorted at a time
  TARN__LIST = 8 << 10,         // rows that a rank asks for in a round, at most
  TARN__ROWS_ROOM = 256 << 10,  // bytes of them, at most
  TARN__OWN_TIMES = 16,         // own rows for each row asked for, at most
  TARN__REGIONS = 1024,         // of a table, by which owners are looked up
};

// --- exchange_sort.c -------------------------------------------------------

// A piece of indices, sorted by owner: entries |next[r]| to |ends[r]| - 1 are
// rows of rank r. Equal rows keep their order. Indices out of range follow this
// rank's own rows, from entry |bad| on.
typedef struct tarn__whole_sorted {
  size_t rank;
  size_t ranks;
  size_t table_rows;
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

// Prepares for the indices of |table|.
void tarn__sorted_look_at(tarn__whole_sorted *sorted,
                          const tarn__whole_tensor *table);

// Sorts |count| 64-bit |indices| of any alignment, at most a piece; they may be
// in |sorted->indices|. |keep_bad|: keeps indices that are out of range.
//
// Cost: O(count + ranks).
void tarn__sorted_take(tarn__whole_sorted *sorted, const void *indices,
                       size_t count, bool keep_bad);

// --- exchange_staging.c ----------------------------------------------------

// The part of a list that is for one owner.
typedef struct tarn__whole_want {
  uint32_t first;
  uint32_t count;
} tarn__whole_want;

// One half of a rank's staging: for even or for odd rounds.
typedef struct tarn__whole_half {
  tarn__whole_want *wants;  // of each rank
  void *list;               // TARN__LIST of 32 or 64 bits
  unsigned char *rows;
} tarn__whole_half;

typedef struct tarn__whole_staging {
  size_t ranks;
  size_t size;            // of each rank's; 0: none yet
  unsigned char **bases;  // of each rank's; NULL: not mapped
} tarn__whole_staging;

// Creates the staging of |whole|, together with all ranks. Nothing is left of
// it on failure.
//
// TARN_FULL, TARN_E_IO  a rank has no memory, or no file descriptors left.
TARN_MUST_CHECK tarn_status tarn__staging_make(tarn_whole *whole,
                                               tarn__whole_staging *staging);
void tarn__staging_drop(tarn__whole_staging *staging);

// In a child of fork, which keeps the mappings.
void tarn__staging_forget(tarn__whole_staging *staging);

tarn__whole_half tarn__staging_half(const tarn__whole_staging *staging,
                                    size_t rank, size_t round);

// --- kept between calls ----------------------------------------------------

// The state that a rank reports to all others in each round.
typedef struct tarn__whole_word {
  uint32_t failed;  // it cannot go on
  uint32_t asks;    // it wants rows in this round, or may in a later one
} tarn__whole_word;

typedef struct tarn__whole_exchange {
  tarn__whole_sorted sorted;  // whose arrays are below
  tarn__whole_staging staging;
  tarn__whole_word *words;           // of each rank
  size_t *shares;                    // of each rank: scratch of one draw
  int32_t positions[2][TARN__LIST];  // in their piece, of what was asked for in
                                     // even and odd rounds
  uint32_t regions[TARN__REGIONS + 1];
  uint32_t homes[TARN__PIECE];
  int64_t indices[TARN__PIECE];
  uint64_t entries[TARN__PIECE];
  size_t numbers[];  // room for what is of each rank
} tarn__whole_exchange;

// --- exchange_move.c -------------------------------------------------------

// One pass over the indices: of all ranks at a time, or of one rank; with whole
// rows, or with as many elements of them as the staging holds.
typedef struct tarn__whole_pass {
  tarn_whole *whole;
  tarn__whole_exchange *kept;
  const tarn__whole_rows_order *order;
  bool takes_part;   // this rank asks
  size_t element;    // the first
  size_t width;      // elements of a row
  tarn_dtype dtype;  // of rows in the staging
  size_t row_bytes;  // there
  size_t begun;      // positions that have been sorted, or are
  size_t piece;      // where the piece begins that is sorted
  size_t pieces[2];  // the same of even and odd rounds
  size_t counts[2];  // rows asked for in them
} tarn__whole_pass;

// Moves |count| rows of this rank's part to (gather) or from |staged|.
// |numbers| are those of |rank|, and have 32 bits if no rank needs more,
// otherwise 64. Those of this rank itself may be out of range (gather).
//
// TARN_E_CORRUPT  a number of another rank is out of range; no row was moved.
TARN_MUST_CHECK tarn_status tarn__pass_owned(const tarn__whole_pass *p,
                                             size_t rank, const void *numbers,
                                             size_t count,
                                             unsigned char *staged);

// Moves |count| dense rows from (scatter) or to (gather) |staged|; their
// |positions| count from |piece|.
TARN_MUST_CHECK tarn_status tarn__pass_dense(
    const tarn__whole_pass *p, tarn__rows_action action, size_t piece,
    const int32_t *positions, size_t count, unsigned char *staged);

// Moves the next |count| sorted rows of this rank's part, by the host.
void tarn__pass_own(const tarn__whole_pass *p, size_t count);

// --- exchange_round.c ------------------------------------------------------

// Moves rows in rounds, together with all ranks, whose orders differ only in
// indices and dense rows. Returns the same status at all ranks.
TARN_MUST_CHECK tarn_status
tarn__exchange_go(tarn_whole *whole, const tarn__whole_rows_order *order);

#endif  // TARN_WHOLE_EXCHANGE_H_
