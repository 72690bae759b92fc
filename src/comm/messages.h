// messages.h - communicators over an engine that passes messages, such as MPI.
//
//   messages.c     posting messages and waiting for them
//   message_ops.c  collectives and groups out of them
//   parcels.c      messages with checksums
//   silence.c      who it is that does not come, and telling all others
//   watch.c        who of this machine has ended
//
// The communicators of a process that were split off from one another share the
// engine. Each has a context, the same at its ranks and at no others that share
// a rank: tags begin with it.
//
// Threads: communicators may be used by one thread each. The engine's lock
// guards its operations, its fields from |all| on, and what a communicator
// tells others about its wait; it is not held while a rank waits.
//
// Memory: O(ranks) at each rank, O(1) for the messages under way.
#ifndef TARN_COMM_MESSAGES_H_
#define TARN_COMM_MESSAGES_H_

#include <pthread.h>

#include "base/status.h"
#include "comm/comm.h"
#include "comm/wait.h"

enum {
  TARN__TAG_BITS = 3,  // of a tag: what is said
  TARN__CONTEXTS = TARN_COMM_TAGS >> TARN__TAG_BITS,
  TARN__TAG_NOTES =
      0,  // silence.c; in context 0 only. Then: a tarn__comm_topic
};

// --- silence.c -------------------------------------------------------------

typedef enum tarn__comm_notice_kind {
  TARN__NOTE_ASKS = 1,  // what do you wait for?
  TARN__NOTE_ANSWERS,
  TARN__NOTE_TELLS,  // the job cannot go on, because of |about|
} tarn__comm_notice_kind;

typedef enum tarn__comm_silence {
  TARN__SILENT = 1,    // it does not answer, or is elsewhere
  TARN__MISSED,        // it waits for ranks that wait for each other
  TARN__HAS_ENDED,     // a rank of its machine has seen it
  TARN__HAS_LEFT,      // likewise
  TARN__OUT_OF_REACH,  // the engine tells so
  TARN__DAMAGED,       // a message of it to |from|
  TARN__FAILED,  // it has a failure of its own, in the middle of an exchange
} tarn__comm_silence;

// Of one rank to another, in the numbers of the engine.
typedef struct tarn__comm_notice {
  uint32_t sum;  // of the rest
  uint32_t kind;
  uint32_t from;
  uint32_t context;  // ASKS, ANSWERS: in which it is waited
  uint32_t about;    // ANSWERS: the rank that |from| waits for, UINT32_MAX:
                     // none, TARN__BUSY; TELLS: as |why| has it
  uint32_t why;      // TELLS: a tarn__comm_silence
  int32_t status;    // TELLS: of TARN__FAILED
  uint32_t number;   // of the question
  uint64_t ms;       // TELLS: how long it was waited for
} tarn__comm_notice;

// A rank of an exchange that has moved rows of late.
#define TARN__BUSY (UINT32_MAX - 1)

// That are on their way at a time; more are not sent.
enum { TARN__NOTES = 16 };

typedef struct tarn__comm_engine {
  tarn_comm_ops ops;
  void *self;
  size_t rank;
  size_t size;
  uint64_t timeout_ms;
  uint32_t generation;  // of forks
  pthread_mutex_t lock;
  tarn_list all;      // communicators
  uint32_t contexts;  // the last one that was given, by any of them
  struct tarn__comm_messages *proposes;  // the next one, now; NULL: none does
  uint32_t questions;                    // of this rank, so far
  void *listening;                       // for |heard|; NULL: not begun
  tarn__comm_notice heard;
  void *sending[TARN__NOTES];  // NULL: none
  tarn__comm_notice sent[TARN__NOTES];
  size_t sent_to[TARN__NOTES];
  tarn__comm_notice verdict;  // |kind| 0: none
  tarn__failure failure;      // the engine's own; then it is not called
  bool checks;                // messages of communicators have checksums
  tarn_list parcels;          // that were given up
  bool abandoned;             // the engine knows that the job cannot go on
  bool given_up;              // messages are left, whose data has to stay
  tarn_list node;             // then: among all such, until the process ends
} tarn__comm_engine;

// Calls of the engine that may fail. The text then says so: operations of an
// engine have none.
TARN_MUST_CHECK tarn_status tarn__engine_post(tarn__comm_engine *engine,
                                              tarn_comm_way way, size_t rank,
                                              uint32_t tag, void *data,
                                              size_t size, void **out_message);
TARN_MUST_CHECK tarn_status tarn__engine_test(tarn__comm_engine *engine,
                                              void **messages, size_t count);

// The lock is held, but for the first and the last.

// Begins to listen to the others.
TARN_MUST_CHECK tarn_status tarn__silence_begin(tarn__comm_engine *engine);

// Answers what was asked, and takes answers in. TARN_OK, or a failure of the
// engine, or of the job: then there is a verdict.
TARN_MUST_CHECK tarn_status tarn__silence_listen(tarn__comm_engine *engine);

struct tarn__comm_messages;

// Begins to ask |rank| what it waits for where this one waits.
TARN_MUST_CHECK tarn_status
tarn__silence_ask(struct tarn__comm_messages *messages, size_t rank);

// Why the job cannot go on: the verdict.
void tarn__silence_decide(tarn__comm_engine *engine, size_t rank,
                          tarn__comm_silence why, tarn_status status);

// Tells all others the verdict. Waits until that is done at those that can be
// reached, for half of tarn__silence_patience at most, and for 2 s.
void tarn__silence_tell(tarn__comm_engine *engine);

// For how long a rank that was asked may think, in milliseconds.
static inline uint64_t tarn__silence_patience(const tarn__comm_engine *engine) {
  uint64_t patience = engine->timeout_ms / 10;
  return patience > 100 ? patience : 100;
}

// Stops. False if messages are left.
bool tarn__silence_end(tarn__comm_engine *engine);

// --- watch.c ---------------------------------------------------------------

// A collective of |messages| begins, and is over.
void tarn__watch_begin(struct tarn__comm_messages *messages);
void tarn__watch_end(struct tarn__comm_messages *messages);

// Looks at the ranks of this machine, if it is |now| time to, while a
// collective waits.
//
// TARN_E_PEER_LOST  one has ended or left that is not through with it: all
//                   others are told, and there is a verdict.
TARN_MUST_CHECK tarn_status
tarn__watch_look(struct tarn__comm_messages *messages, uint64_t now);

// Tells all others that |rank| of this communicator has ended.
void tarn__watch_tell(struct tarn__comm_messages *messages, size_t rank);

// Tells the ranks of this machine of the verdict, if there is one. The engine
// is locked.
void tarn__watch_pass_on(const struct tarn__comm_messages *messages);

// Whether one of them has: that is the verdict, if there was none.
bool tarn__watch_hear(struct tarn__comm_messages *messages);

// --- parcels.c -------------------------------------------------------------
// As the calls of the engine, which is locked, for messages with a checksum.

TARN_MUST_CHECK tarn_status tarn__parcel_post(tarn__comm_engine *engine,
                                              tarn_comm_way way, size_t rank,
                                              uint32_t tag, void *data,
                                              size_t size, void **out_message);

// |*out_damaged|: a rank of which a message is damaged, the number of ranks if
// that cannot be told, or TARN_COMM_ANY: none is.
TARN_MUST_CHECK tarn_status tarn__parcel_test(tarn__comm_engine *engine,
                                              void **messages, size_t count,
                                              size_t *out_damaged);

// Gives |message| up, whose data is free then. False: the engine may still use
// its copy, which stays.
bool tarn__parcel_drop(tarn__comm_engine *engine, bool receives, void *message);

// --- messages.c ------------------------------------------------------------

typedef struct tarn__comm_messages {
  tarn__comm_engine *engine;
  tarn_list node;  // among the engine's
  uint32_t context;
  struct tarn__comm_local *near;  // the ranks of this machine; NULL: not known
  const size_t *near_ranks;       // their numbers here
  uint32_t begun;                 // collectives since then
  uint64_t looked;                // at those ranks, by the clock
  void (*meanwhile)(void *);      // in the next allgather, before it waits
  void *meanwhile_of;             // which is called with this
  bool splits;                    // and has no context for the part yet
  size_t waits_for;   // in the numbers of the engine; SIZE_MAX: none
  uint32_t asked;     // the last question; 0: none
  uint32_t answered;  // the last one that was answered
  size_t answer;      // the rank that is waited for there; SIZE_MAX: none;
                      // TARN__BUSY
  uint64_t moved;     // when an exchange last moved rows, by the clock; 0: none
  size_t rank;
  size_t size;
  size_t ranks[];  // in the numbers of the engine
} tarn__comm_messages;

// A communicator's |self| of the engine |ops| with |engine_self|.
TARN_MUST_CHECK tarn_status tarn__messages_create(const tarn_comm_ops *ops,
                                                  void *engine_self,
                                                  size_t rank, size_t size,
                                                  uint64_t timeout_ms,
                                                  tarn__comm_messages **out);

// One more of |engine|, for |size| ranks, whose numbers the caller fills in.
// NULL: no memory.
tarn__comm_messages *tarn__messages_make(tarn__comm_engine *engine,
                                         uint32_t context, size_t size);

// The last one takes the engine along.
void tarn__messages_destroy(tarn__comm_messages *messages);

// What the engine uses to reach other ranks, in a few words; "": it does not
// tell.
void tarn__messages_describe(tarn__comm_messages *messages, char *out,
                             size_t out_size);

// From now on messages have checksums. All ranks have agreed on that, and none
// is under way but notes, which always have one.
void tarn__messages_use_checksums(tarn__comm_messages *messages);

// TARN_OK, or why the job cannot go on, as far as this rank was told.
TARN_MUST_CHECK tarn_status tarn__messages_check(tarn__comm_messages *messages);

// --- messages of rooms above, and of the collectives -------------------------
// By one thread for each communicator. What is not done is looked for again and
// again:
//
//   tarn__comm_patience patience = tarn__messages_patience(m);
//   for (;;) {
//     tarn__messages_test(m, messages, count);
//     if (all are done) break;
//     if (some are) tarn__messages_moved(m, &patience);
//     else tarn__messages_idle(m, &patience, rank);   // that is waited for
//   }
//   tarn__messages_done(m);

// As |post| of tarn_comm_ops.
TARN_MUST_CHECK tarn_status tarn__messages_post(tarn__comm_messages *messages,
                                                tarn_comm_way way, size_t rank,
                                                tarn__comm_topic topic,
                                                void *data, size_t size,
                                                void **out_message);

// As |test|.
TARN_MUST_CHECK tarn_status tarn__messages_test(tarn__comm_messages *messages,
                                                void **list, size_t count);

// Begins a wait.
tarn__comm_patience tarn__messages_patience(
    const tarn__comm_messages *messages);

// Says that something has moved: the wait begins anew. Answers the questions of
// others.
//
// TARN_E_TIMEOUT, TARN_E_PEER_LOST  the job cannot go on.
TARN_MUST_CHECK tarn_status tarn__messages_moved(tarn__comm_messages *messages,
                                                 tarn__comm_patience *patience);

// Says that nothing has moved, and that this rank waits for |rank|. Answers the
// questions of others, and lets them run for a while. When the time is over,
// finds out who is silent.
//
// TARN_E_TIMEOUT  somebody is: all have been told.
TARN_MUST_CHECK tarn_status tarn__messages_idle(tarn__comm_messages *messages,
                                                tarn__comm_patience *patience,
                                                size_t rank);

// This rank waits no more.
void tarn__messages_done(tarn__comm_messages *messages);

// After a failure: gives |*message|, if any, up. Whether its data is free now;
// otherwise it has to stay until the process ends.
bool tarn__messages_drop(tarn__comm_messages *messages, bool receives,
                         void **message);

// The engine is not called any more, but that all others are told first, if
// |tells|, that this rank cannot go on. Returns what to tell: |status|, or why
// the job cannot go on.
tarn_status tarn__messages_give_up(tarn__comm_messages *messages,
                                   tarn_status status, bool tells);

// --- message_ops.c ---------------------------------------------------------

// The operations of a communicator whose |self| is a tarn__comm_messages.
extern const tarn_comm_ops tarn__message_ops;

#endif  // TARN_COMM_MESSAGES_H_
