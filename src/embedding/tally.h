// tally.h - the rows that an apply names, at their owner: how often, and the
// sums of those whose gradients have not all come.
//
//   count   indices come, without gradients: now it is known of each row how
//           many gradients are to come, and in which order rows come
//   add     gradients come, in the same order, so that no row is looked for any
//           more. One that is alone is ready as it is, with no copy; others are
//           added up, and are ready with the last one
//
// So the memory for sums is that of rows of which some gradients have come and
// others have not.
#ifndef TARN_EMBEDDING_TALLY_H_
#define TARN_EMBEDDING_TALLY_H_

#include "whole/rows.h"

// A row of this rank's part.
typedef struct tarn__embedding_tally_row {
  uint32_t row;
  uint32_t left;  // gradients to come
  uint32_t sum;   // where they are added up; TARN__NO_SUM: nowhere yet
  float square;   // for whoever looks at rows twice
} tarn__embedding_tally_row;

// Where a row is among those that have come; |row| TARN__NO_ROW: not used.
typedef struct tarn__embedding_tally_slot {
  uint32_t row;
  uint32_t number;
} tarn__embedding_tally_slot;

#define TARN__NO_ROW UINT32_MAX
#define TARN__NO_SUM UINT32_MAX

enum { TARN__SUM_BLOCKS = 26 };

typedef struct tarn__embedding_tally {
  size_t width;  // elements of a sum
  tarn__embedding_tally_slot *slots;
  unsigned bits;                    // there are 1 << bits slots; 0: none
  tarn__embedding_tally_row *rows;  // in the order in which each came first
  size_t used;
  size_t room;      // of |rows|
  uint32_t *order;  // the number of the row of each gradient
  size_t counted;
  size_t order_room;
  size_t added;                   // gradients
  float *sums[TARN__SUM_BLOCKS];  // each block has twice as many as the last
  size_t blocks;
  uint32_t made;  // sums that have been in use
  uint32_t idle;  // one that is not; its first element is the next
} tarn__embedding_tally;

// A row all of whose gradients have come.
typedef struct tarn__embedding_tally_ready {
  tarn__embedding_tally_row *entry;
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

// The same gradients are to come once more, perhaps other elements of them.
void tarn__tally_again(tarn__embedding_tally *tally);

// Adds the first |width| elements of |arrivals|, which were counted. Room for
// |count| ready rows; each is until tarn__tally_done.
//
// TARN_E_NOMEM
// TARN_E_CORRUPT  other rows than were counted, or more.
TARN_MUST_CHECK tarn_status tarn__tally_add(tarn__embedding_tally *tally,
                                            const tarn__whole_arrival *arrivals,
                                            size_t count, tarn_dtype dtype,
                                            size_t width,
                                            tarn__embedding_tally_ready *out,
                                            size_t *out_count);
void tarn__tally_done(tarn__embedding_tally *tally,
                      const tarn__embedding_tally_ready *ready, size_t count);

#endif  // TARN_EMBEDDING_TALLY_H_
