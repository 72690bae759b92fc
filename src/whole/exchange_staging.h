// exchange_staging.h - asks, and the memory through which ranks of one machine
// pass them and rows: slots, and a board for each rank.
#ifndef TARN_WHOLE_EXCHANGE_STAGING_H_
#define TARN_WHOLE_EXCHANGE_STAGING_H_

#include <stdatomic.h>

#include "comm/comm.h"
#include "whole/whole.h"

enum {
  TARN__LEAST_SLOTS = 8,  // of a rank whose others are all near
  TARN__MOST_SLOTS = 64,  // as many as a board has bits
  TARN__INLINE = 448,     // bytes of a list that go with an opening
};

// What comes after an opening.
typedef enum tarn__whole_then {
  TARN__NO_OPENING,
  TARN__THEN_NOTHING,
  TARN__THEN_OPENS,  // another opening
  TARN__THEN_ASKS,   // asks
} tarn__whole_then;

// What a rank asks of another. With 0 rows: it asks no more, if it is not an
// opening that says what is to come.
typedef struct tarn__whole_ask {
  uint32_t from;     // the rank that asks
  uint32_t count;    // rows
  uint64_t number;   // of the asks of that rank
  uint64_t element;  // the first of each row
  uint64_t width;    // elements of them
  uint64_t call;     // that it is of
  uint32_t list;     // bytes of its list
  uint32_t then;     // a tarn__whole_then
} tarn__whole_ask;

// An ask as far ranks send and hear it: without the list, unless it opens.
typedef struct tarn__whole_letter {
  tarn__whole_ask ask;
  unsigned char list[TARN__INLINE];  // of no more bytes than that
} tarn__whole_letter;

// Where an ask is written.
typedef struct tarn__whole_slot {
  atomic_uint *served;
  tarn__whole_ask *ask;
  unsigned char *room;  // list and rows
} tarn__whole_slot;

// What a rank reads of the others of its machine, at the beginning of its
// staging. Each writes its own words.
typedef struct tarn__whole_board {
  _Alignas(64) atomic_ullong beat;  // changes while the rank is in an exchange
  atomic_ullong wants;              // rows, in the call that begins
  atomic_ullong listed;  // the last exchange for which its list is there
  _Alignas(64) struct {
    atomic_ullong posted;    // a bit for each slot of that rank
    atomic_ullong offered;   // likewise: with rows that were bought
    atomic_ullong finished;  // the last exchange in which it asks no more
  } of[];                    // each rank of the machine
} tarn__whole_board;

typedef struct tarn__whole_staging {
  size_t count;           // ranks of this machine
  size_t self;            // this rank's number among them
  size_t size;            // of each rank's; 0: none yet
  size_t slots;           // of each
  size_t room;            // bytes of a slot's list and rows
  unsigned char **bases;  // of each rank's; NULL: not mapped
} tarn__whole_staging;

// Creates the staging of |whole| for the ranks of |comm|, of which |near| are
// on this machine, together with all. Nothing is left of it on failure.
//
// TARN_FULL, TARN_E_IO  a rank has no memory, or no file descriptors left.
TARN_MUST_CHECK tarn_status tarn__staging_make(tarn_whole *whole,
                                               tarn_comm *comm,
                                               const tarn__comm_near *near,
                                               tarn__whole_staging *staging);
void tarn__staging_drop(tarn__whole_staging *staging);

// In a child of fork, which keeps the mappings.
void tarn__staging_forget(tarn__whole_staging *staging);

tarn__whole_board *tarn__staging_board(const tarn__whole_staging *staging,
                                       size_t near);
tarn__whole_slot tarn__staging_slot(const tarn__whole_staging *staging,
                                    size_t near, size_t slot);

#endif  // TARN_WHOLE_EXCHANGE_STAGING_H_
