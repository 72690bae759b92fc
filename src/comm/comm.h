// comm.h - a communicator, for the rooms above and within this one.
//
// Every collective begins with a header exchange: each rank publishes a header
// with the function, its arguments and its status. All ranks see the same
// headers, so all decide the same. Small data is part of the header, and then
// the exchange is the whole collective.
#ifndef TARN_COMM_COMM_H_
#define TARN_COMM_COMM_H_

#include "base/status.h"
#include "tarn/comm.h"

// --- for rooms above -------------------------------------------------------

// Counts what was created with |comm|, which cannot be destroyed before.
void tarn__comm_hold(tarn_comm *comm);
void tarn__comm_release(tarn_comm *comm);

// TARN_OK; TARN_E_INVALID for NULL, TARN_E_STATE in a child of fork, or the
// error that broke the communicator, with its text.
TARN_MUST_CHECK tarn_status tarn__comm_state(tarn_comm *comm);

// The function that the program has called, if it calls collectives of this
// room but is not one of them. Ranks compare |number|, 0 for none, in each
// header exchange; if it differs, |say| names the call in the text.
typedef struct tarn__comm_caller {
  uint64_t number;
  void (*say)(const void *subject, char *out, size_t out_size);
  const void *subject;
} tarn__comm_caller;

// Names the caller of the collectives that follow; NULL: the program.
void tarn__comm_call_for(tarn_comm *comm, const tarn__comm_caller *caller);

// --- within the room -------------------------------------------------------

enum { TARN__ON_HEADER = 296 };  // bytes that go along

typedef enum tarn__comm_collective {
  TARN__BARRIER = 1,
  TARN__BROADCAST,
  TARN__ALLGATHER,
  TARN__ALLTOALLV,
  TARN__SHARE,
  TARN__SAME,
  TARN__AGREE,
  TARN__SPLIT,
} tarn__comm_collective;

// Ranks may have different builds of the library: if this changes, raise the
// version of the area (area.c).
typedef struct tarn__comm_header {
  uint32_t call;  // a tarn__comm_collective
  int32_t status;
  uint64_t root;
  uint64_t size;
  uint64_t caller;  // its number
  unsigned char bytes[TARN__ON_HEADER];
} tarn__comm_header;

struct tarn_comm {
  tarn_comm_ops ops;
  void *self;
  size_t rank;
  size_t size;
  uint64_t timeout_ms;
  uint32_t generation;   // of forks
  size_t held;           // made with it
  tarn__failure broken;  // what broke it
  const tarn__comm_caller *caller;
  tarn__comm_header own;       // of the next header exchange; at rest all zero
  tarn__comm_header *headers;  // of all ranks in the last
};

// Keeps a status of the operations that breaks the communicator. Returns it.
tarn_status tarn__comm_note(tarn_comm *comm, tarn_status status);

// Shows |comm->own|, of a call with |status| so far, whose text is the last
// error if it is no TARN_OK.
//
// TARN_E_INVALID  ranks call something else: the text names the difference.
// Otherwise the status of the lowest rank whose is not TARN_OK, with its text.
TARN_MUST_CHECK tarn_status tarn__comm_exchange_headers(
    tarn_comm *comm, tarn__comm_collective call, tarn_status status);

// The texts of rank 0 and of |rank|; |own| is that of this rank. Each has half
// the size of an error text.
typedef char tarn__comm_half_text[TARN__ERROR_TEXT / 2];
TARN_MUST_CHECK tarn_status
tarn__comm_hear_both(tarn_comm *comm, size_t rank, const char *own,
                     tarn__comm_half_text *out_texts);

// The index of |rank|, which is one of them, in |ranks|.
static inline size_t tarn__comm_index_of(const size_t *ranks, size_t rank) {
  size_t i = 0;
  while (ranks[i] != rank)
    i++;
  return i;
}

// Reads |given|, which may be NULL: |out->timeout_ms| is set.
//
// TARN_E_INVALID  a field, or TARN_COMM_TIMEOUT_MS, is wrong; or there are
//                 other flags than |flags|.
TARN_MUST_CHECK tarn_status tarn__comm_options(const tarn_comm_options *given,
                                               uint32_t flags,
                                               tarn_comm_options *out);

#endif  // TARN_COMM_COMM_H_
