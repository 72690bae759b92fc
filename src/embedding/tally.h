// tally.h - the rows that an apply names, at their owner: how often, and the
// sums of those whose gradients have not all come.
//
//   count   indices come, without gradients: now it is known of each row how
//           many gradients are to come
//   add     gradients come, in order. One that is alone is ready as it is, with
//           no copy; others are added up, and are ready with the last one
//
// So the memory for sums is that of rows of which some gradients have come and
// others have not.
#ifndef TARN_EMBEDDING_TALLY_H_
#define TARN_EMBEDDING_TALLY_H_

#include "whole/rows.h"

typedef struct tarn__embedding_tally_entry {
  uint32_t row;   // TARN__NO_ROW: the entry is not used
  uint32_t left;  // gradients to come
  uint32_t sum;   // where they are added up; TARN__NO_SUM: nowhere yet
  float square;   // for whoever looks at rows twice
} tarn__embedding_tally_entry;

#define TARN__NO_ROW UINT32_MAX
#define TARN__NO_SUM UINT32_MAX

enum { TARN__SUM_BLOCKS = 26 };

typedef struct tarn__embedding_tally {
  size_t width;
  tarn__embedding_tally_entry *entries;
  uint32_t *counts;  // of the entries, as they were; NULL: not kept
  unsigned bits;     // there are 1 << bits entries; 0: none
  size_t used;
  float *sums[TARN__SUM_BLOCKS];  // each block has twice as many as the last
  size_t blocks;
  uint32_t made;  // sums that have been in use
  uint32_t idle;  // one that is not; its first element is the next
} tarn__embedding_tally;

// A row all of whose gradients have come.
typedef struct tarn__embedding_tally_ready {
  tarn__embedding_tally_entry *entry;
  const float *gradient;  // |width| elements
} tarn__embedding_tally_ready;

// For sums of at most |width| elements.
void tarn__tally_init(tarn__embedding_tally *tally, size_t width);
void tarn__tally_deinit(tarn__embedding_tally *tally);

// Forgets all rows and sums, but keeps memory for about as many.
void tarn__tally_clear(tarn__embedding_tally *tally);

// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status
tarn__tally_count(tarn__embedding_tally *tally,
                  const tarn__whole_arrival *arrivals, size_t count);

// Keeps the counts of all rows, so that tarn__tally_again can restore them.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__tally_keep(tarn__embedding_tally *tally);
void tarn__tally_again(tarn__embedding_tally *tally);

// Adds the first |width| elements of |arrivals|, which were counted. Room for
// |count| ready rows; each is until tarn__tally_done.
//
// TARN_E_NOMEM
// TARN_E_CORRUPT  more gradients than were counted.
TARN_MUST_CHECK tarn_status tarn__tally_add(tarn__embedding_tally *tally,
                                            const tarn__whole_arrival *arrivals,
                                            size_t count, tarn_dtype dtype,
                                            size_t width,
                                            tarn__embedding_tally_ready *out,
                                            size_t *out_count);
void tarn__tally_done(tarn__embedding_tally *tally,
                      const tarn__embedding_tally_ready *ready, size_t count);

#endif  // TARN_EMBEDDING_TALLY_H_
