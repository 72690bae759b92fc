// comm.h - a communicator, for the rooms above and within this one.
//
// Every collective begins with a header exchange: each rank publishes a header
// with the function, its arguments and its status. All ranks see the same
// headers, so all decide the same. Small data is part of the header, and then
// the exchange is the whole collective.
#ifndef TARN_COMM_COMM_H_
#define TARN_COMM_COMM_H_

#include "base/status.h"
#include "comm/wait.h"
#include "tarn/comm.h"

// --- for rooms above -------------------------------------------------------

// Counts what was created with |comm|, which cannot be destroyed before, and
// lists it by |node|, in the order of creation. By the thread of collectives.
void tarn__comm_hold(tarn_comm *comm, tarn_list *node);
void tarn__comm_release(tarn_comm *comm, tarn_list *node);

// What was created with |comm|: the head of the nodes.
tarn_list *tarn__comm_holders(tarn_comm *comm);

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

// The ranks of this rank's machine, as far as they share memory with it.
typedef struct tarn__comm_near {
  tarn_comm *comm;         // they alone; of a communicator of one machine: it
  const size_t *ranks;     // of each rank of |comm|: its number in the whole
                           // communicator; ascending; NULL: the same number
  const size_t *machines;  // of each rank of the whole communicator: the lowest
                           // rank of its machine; NULL: all are on one
} tarn__comm_near;

// Lives as long as |comm|, and is used as |comm| is: by one thread at a time. A
// communicator that cannot pass descriptors may know no machines: then |comm|
// of the result is NULL, and each rank is alone.
tarn__comm_near tarn__comm_near_of(tarn_comm *comm);

// Whether a thread of the library may use |comm|, if no other does.
bool tarn__comm_is_for_any_thread(const tarn_comm *comm);

// tarn_comm_agree on |status|, and then tarn_comm_same, in one exchange of
// headers. If |status| is not TARN_OK, |data| and |what| are not read.
TARN_MUST_CHECK tarn_status tarn__comm_agree_on(tarn_comm *comm,
                                                tarn_status status,
                                                const void *data, size_t size,
                                                const char *what);

// --- messages, for rooms above -----------------------------------------------

// What a message belongs to. Messages of other topics, or of other
// communicators, may pass it.
typedef enum tarn__comm_topic {
  TARN__TOPIC_DATA = 1,  // of collectives
  TARN__TOPIC_ASKS,      // of an exchange of rows (whole/exchange.h)
  TARN__TOPIC_LISTS,
  TARN__TOPIC_ROWS,
  TARN__TOPIC_OPENINGS,
} tarn__comm_topic;

// In the next header exchange, as soon as this rank's header is on its way,
// calls |work|, which may post messages. |comm| has messages. NULL: nothing.
void tarn__comm_meanwhile(tarn_comm *comm, void work(void *context),
                          void *context);

// How many header exchanges there were: the same at all ranks.
uint64_t tarn__comm_meetings(const tarn_comm *comm);

// Whether |comm| has messages. Without them only tarn__comm_progress is of use.
bool tarn__comm_has_messages(const tarn_comm *comm);

// As |post| and |test| of tarn_comm_ops.
TARN_MUST_CHECK tarn_status tarn__comm_post(tarn_comm *comm, tarn_comm_way way,
                                            size_t rank, tarn__comm_topic topic,
                                            void *data, size_t size,
                                            void **out_message);
TARN_MUST_CHECK tarn_status tarn__comm_test(tarn_comm *comm, void **messages,
                                            size_t count);

// After a failure: gives |*message|, which may be NULL, up. Whether its data is
// free now; otherwise it has to stay until the process ends.
bool tarn__comm_drop(tarn_comm *comm, bool receives, void **message);

// Breaks |comm|, which has messages, at all ranks, since this one cannot go on.
// Returns what to tell: |status|, or an earlier end of the job.
tarn_status tarn__comm_give_up(tarn_comm *comm, tarn_status status);

// An answer that would make an end is asked for twice.
typedef enum tarn__comm_doubt {
  TARN__DOUBT_NONE,
  TARN__DOUBT_WAITS,  // before it asks again
  TARN__DOUBT_ASKS,
} tarn__comm_doubt;

// A wait of a rank that looks itself for what others do, by messages or in
// memory that they share. It asks some time before the deadline, so that by
// then it knows who is silent.
typedef struct tarn__comm_patience {
  tarn__comm_wait wait;    // until the deadline
  tarn__comm_wait answer;  // of the rank that was asked last
  uint64_t early;          // the time before the deadline, nanoseconds
  unsigned turn;           // looks at which nothing had moved
  size_t first;  // who was asked first, since it is waited for, in the numbers
                 // of the engine
  size_t asked;  // and last; SIZE_MAX: nobody yet
  size_t hops;   // questions
  tarn__comm_doubt doubt;
} tarn__comm_patience;

typedef struct tarn__comm_progress {
  tarn_comm *comm;
  tarn__comm_patience by;  // the fields for messages: if |comm| has them
  uint64_t looked;         // when the ranks of this machine were looked at
} tarn__comm_progress;

// Begins to wait; and, as something has moved, begins anew.
//
// TARN_E_PEER_LOST, TARN_E_TIMEOUT  |comm| is broken.
TARN_MUST_CHECK tarn_status tarn__comm_progress_begin(tarn_comm *comm,
                                                      tarn__comm_progress *out);
TARN_MUST_CHECK tarn_status
tarn__comm_progress_moved(tarn__comm_progress *progress);

// Nothing has moved, and this rank waits for |rank|. Lets others run for a
// while. Errors as above.
TARN_MUST_CHECK tarn_status
tarn__comm_progress_idle(tarn__comm_progress *progress, size_t rank);

// The rank that is waited for waits itself, and would find out who is silent.
void tarn__comm_progress_extend(tarn__comm_progress *progress);

// This rank waits no more.
void tarn__comm_progress_end(tarn__comm_progress *progress);

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
  tarn_list holders;     // of them
  uint64_t meetings;     // header exchanges so far
  tarn__failure broken;  // what broke it
  const tarn__comm_caller *caller;
  tarn__comm_collective call;            // the last one
  struct tarn__comm_messages *messages;  // |self|, if it is that; else NULL
  struct tarn__comm_local *local;        // likewise
  tarn__comm_header own;       // of the next header exchange; at rest all zero
  tarn__comm_header *headers;  // of all ranks in the last
  tarn__comm_near near;        // its own, if ranks are on several machines
};

// --- near.c ---

// Gives |comm| its near part, which then belongs to it. |near->ranks| and
// |near->machines| are one array, twice as long as |comm| has ranks.
void tarn__near_attach(tarn_comm *comm, const tarn__comm_near *near);

// Room for them at |size| ranks, zeroed; NULL. The ranks begin at |size|.
size_t *tarn__near_array(size_t size);
void tarn__near_free(size_t *array, size_t size);

// TARN_OK, or what has broken the near part, with numbers of |comm|. Looks at
// its ranks. If one has ended, all others are told so. What others were told,
// the check of the messages tells after this one.
TARN_MUST_CHECK tarn_status tarn__near_check(tarn_comm *comm);

// --- machines.c ---

// Finds the ranks of each machine that can share memory. |*out_near| has no
// arrays if all can: then |*out_near->comm| is all that is needed. Collective;
// all ranks return the same status.
TARN_MUST_CHECK tarn_status tarn__near_find(tarn_comm *comm,
                                            tarn__comm_near *out_near);

// --- call.c ---

// Keeps a status of the operations that breaks the communicator. Returns it. Of
// a rank that is lost over messages the text says in which call it was missed,
// and of one that is silent, what the engine uses to reach it.
tarn_status tarn__comm_note(tarn_comm *comm, tarn_status status);

// The same, where the program is in no collective.
tarn_status tarn__comm_note_between(tarn_comm *comm, tarn_status status);

// "tarn_comm_barrier"; "?".
const char *tarn__comm_call_name(uint32_t call);

// The function of the library that the program has called, as its caller says
// it if there is one.
void tarn__comm_say_call(const tarn_comm *comm, char *out, size_t out_size);

// --- header_exchange.c ---

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
