// comm.h - what a communicator is to the rooms above, and within this one.
//
// Every collective begins with an exchange of headers: each rank shows a
// header, on which stands what it was called for, with which arguments, and
// whether it can. All see the same headers, so all decide the same. What is
// small goes along on the header, and then the header exchange is all there is.
#ifndef TARN_COMM_COMM_H_
#define TARN_COMM_COMM_H_

#include "base/status.h"
#include "tarn/comm.h"

// --- for rooms above -------------------------------------------------------

// Says that something was made with |comm|, which must not go before it.
void tarn__comm_hold(tarn_comm *comm);
void tarn__comm_release(tarn_comm *comm);

// TARN_OK; TARN_E_INVALID for NULL, TARN_E_STATE in a child of fork, or what
// broke it, as it was said then.
TARN_MUST_CHECK tarn_status tarn__comm_state(tarn_comm *comm);

// What the program has called, where that is no collective of this room but
// calls some. Ranks compare the number at each header exchange, 0 being none,
// and say it in words where they differ.
typedef struct tarn__comm_caller {
  uint64_t number;
  void (*say)(const void *subject, char *out, size_t out_size);
  const void *subject;
} tarn__comm_caller;

// From here on collectives are called for |caller|; NULL: for the program.
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

// Ranks may have different builds of the library: whoever changes it gives the
// area another version (area.c).
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

// Keeps a status of the operations that breaks the communicator; returns it.
tarn_status tarn__comm_note(tarn_comm *comm, tarn_status status);

// Shows |comm->own|, of a call with |status| so far, whose text is the last
// error if it is no TARN_OK.
//
// TARN_E_INVALID  ranks call something else: the text names the difference.
// Otherwise the status of the lowest rank whose is not TARN_OK, with its text.
TARN_MUST_CHECK tarn_status tarn__comm_exchange_headers(
    tarn_comm *comm, tarn__comm_collective call, tarn_status status);

// What rank 0 and |rank| have to say, |own| at this one: half of a text each.
typedef char tarn__comm_half_text[TARN__ERROR_TEXT / 2];
TARN_MUST_CHECK tarn_status
tarn__comm_hear_both(tarn_comm *comm, size_t rank, const char *own,
                     tarn__comm_half_text *out_texts);

// Where |rank|, which is among them, stands in |ranks|.
size_t tarn__comm_index_of(const size_t *ranks, size_t rank);

const char *tarn__collective_name(uint32_t call);

// Reads |given|, which may be NULL: |out->timeout_ms| is set.
//
// TARN_E_INVALID  a field, or TARN_COMM_TIMEOUT_MS, is wrong; or there are
//                 other flags than |flags|.
TARN_MUST_CHECK tarn_status tarn__comm_options(const tarn_comm_options *given,
                                               uint32_t flags,
                                               tarn_comm_options *out);

#endif  // TARN_COMM_COMM_H_
