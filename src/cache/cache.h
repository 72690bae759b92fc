// cache.h - a cache of rows within its room.
//
//   cache.c      create, destroy, drop, statistics
//   call.c       a call's arguments; rows between lines, staging and dense rows
//   gather.c     hits, and what is missed
//   scatter.c    rows into lines, and to the table
//   part.c       lines for some of the rows of a call, and rows of the table
//   rounds.c     write back and warm: a part at a time, until no rank goes on
//   sieve.h      which rows are in which lines
//
//   table ◄──whole gather, scatter──► staging ◄──► lines    (the cache's place)
//                                        ▲           ▲
//                                        ▼           ▼
//                                        dense rows         (the user's place)
#ifndef TARN_CACHE_CACHE_H_
#define TARN_CACHE_CACHE_H_

#include <stdatomic.h>

#include "cache/sieve.h"
#include "tarn/cache.h"
#include "tarn/pool.h"
#include "whole/rows.h"

struct tarn_cache {
  uint32_t generation;  // of forks
  tarn_whole_tensor table;
  tarn_cache_mode mode;
  tarn_place place;
  size_t row_bytes;
  size_t lines;
  tarn_block block;  // of the lines
  tarn__cache_sieve *sieve;
  size_t bytes;
  _Atomic uint64_t around;
  _Atomic uint64_t through;  // rows written that were in no line
};

// Whether this thread may use |cache|.
//
// TARN_E_INVALID, TARN_E_STATE.
TARN_MUST_CHECK tarn_status tarn__cache_check(const tarn_cache *cache);

// --- call.c ----------------------------------------------------------------

// Rows somewhere, one after the other or with gaps.
typedef struct tarn__cache_rows {
  tarn_place place;
  tarn_addr address;
  tarn_dtype dtype;
  size_t stride;  // bytes
  size_t count;
} tarn__cache_rows;

// A call: what the user asks for.
typedef struct tarn__cache_call {
  tarn_cache *cache;
  tarn__rows_action action;
  tarn_rows rows;         // checked, with strides and dtypes
  tarn__cache_rows user;  // dense rows; |count| 0: none
  tarn__cache_sieve_batch batch;
  int64_t room[TARN__SIEVE_BATCH];
} tarn__cache_call;

// Whether a gather of the cache is this rank's alone.
bool tarn__cache_is_alone(const tarn_cache *cache);

// Reads and checks the arguments, and waits for the stream.
TARN_MUST_CHECK tarn_status tarn__cache_call_read(tarn__cache_call *call,
                                                  const tarn_whole_rows *given,
                                                  tarn_stream *stream);

// Checks all indices, unless bad ones are to be passed over.
//
// TARN_E_INVALID, TARN_E_DEVICE.
TARN_MUST_CHECK tarn_status tarn__cache_call_check(tarn__cache_call *call);

// The lines as rows.
tarn__cache_rows tarn__cache_lines(const tarn_cache *cache);

// Gather: few[i] = many[indices[i]]; scatter: many[indices[i]] = few[i]. An
// index that is no row is passed over by a scatter, and gathers zeros.
// |indices| are on the host, of |dtype|.
TARN_MUST_CHECK tarn_status tarn__cache_carry(const tarn__cache_call *call,
                                              tarn__rows_action action,
                                              const tarn__cache_rows *many,
                                              const tarn__cache_rows *few,
                                              const void *indices,
                                              tarn_dtype dtype);

// Numbers of the host at a place.
typedef struct tarn__cache_numbers {
  tarn_addr address;
  tarn_block block;  // pool NULL: they are where the host has them
} tarn__cache_numbers;

// TARN_E_NOMEM, TARN_FULL, TARN_E_DEVICE: there is nothing to end.
TARN_MUST_CHECK tarn_status tarn__cache_numbers_begin(tarn_place place,
                                                      const void *numbers,
                                                      size_t size,
                                                      tarn__cache_numbers *out);
tarn_status tarn__cache_numbers_end(tarn__cache_numbers *numbers);

// --- part.c ----------------------------------------------------------------

// Some rows, for which lines are wanted. Entry i is about the key |keys[i]|.
typedef struct tarn__cache_part {
  tarn__cache_call *call;
  size_t count;
  const uint64_t *keys;  // UINT64_MAX: none
  uint32_t flags;        // of tarn__sieve_find
  uint32_t *lines;
  uint8_t *found;  // tarn__cache_sieve_found; ABSENT first
  int64_t *rows;   // of the table, to be read or written
  int64_t *slots;  // for carry
  tarn__cache_rows staging;
  tarn_block block;
} tarn__cache_part;

// Entries of a part where a call may have any number of parts.
size_t tarn__cache_part_rows(const tarn_cache *cache);

// |call|, |count|, |keys| and |flags| are set.
//
// TARN_E_NOMEM, TARN_FULL, TARN_E_DEVICE: there is something to end all the
// same.
TARN_MUST_CHECK tarn_status tarn__cache_part_begin(tarn__cache_part *part);

// Unpins what is pinned, and frees all.
void tarn__cache_part_end(tarn__cache_part *part, bool dirty);

// Finds lines for the entries that are ABSENT, or makes room.
void tarn__cache_part_find(tarn__cache_part *part);

// Moves |count| rows between staging and |rows| of the table. With |status|,
// which all ranks learn of where that is collective.
TARN_MUST_CHECK tarn_status tarn__cache_part_move(tarn__cache_part *part,
                                                  tarn__rows_action action,
                                                  size_t count,
                                                  tarn_status status);

// Finds lines; of a cache that writes back, those that are TO_WRITE are written
// first. Then entries are ABSENT, THERE, AWAITED or TO_FILL. |status| as above.
TARN_MUST_CHECK tarn_status tarn__cache_part_find_room(tarn__cache_part *part,
                                                       tarn_status status);

// Ends the filling of what is TO_FILL, and stays so. Not |ok|: it is ABSENT.
void tarn__cache_part_filled(tarn__cache_part *part, bool ok);

// Waits for what is AWAITED: then it is THERE, or ABSENT where it was given up.
void tarn__cache_part_await(tarn__cache_part *part);

// Puts the lines of entries that are |found| in |slots|, and -1 for others;
// returns how many there are.
size_t tarn__cache_part_slots(tarn__cache_part *part,
                              tarn__cache_sieve_found found);

// --- gather.c --------------------------------------------------------------

// Reads the rows of |part| that are in no line, fills lines, and gives the
// user the rows: entry i is the user's row at[i]; NULL: the user wants none,
// and what gets no line is not read. |status| as above.
TARN_MUST_CHECK tarn_status tarn__cache_part_fill(tarn__cache_part *part,
                                                  const uint64_t *at,
                                                  tarn_status status);

#endif  // TARN_CACHE_CACHE_H_
