// messages.h - communicators over an engine that passes messages, such as MPI.
//
//   messages.c   collectives out of messages, and waiting for them
//   silence.c    who it is that does not come, and telling all others
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
#include "comm/wait.h"
#include "tarn/comm.h"

enum {
  TARN__TAG_BITS = 3,  // of a tag: what is said
  TARN__CONTEXTS = TARN_COMM_TAGS >> TARN__TAG_BITS,
  TARN__TAG_NOTES = 0,  // silence.c; in context 0 only
  TARN__TAG_DATA = 1,
};

// --- silence.c -------------------------------------------------------------

typedef enum tarn__comm_notice_kind {
  TARN__NOTE_ASKS = 1,  // what do you wait for?
  TARN__NOTE_ANSWERS,
  TARN__NOTE_TELLS,  // the job cannot go on, because of |about|
} tarn__comm_notice_kind;

typedef enum tarn__comm_silence {
  TARN__SILENT = 1,  // it does not answer, or is elsewhere
  TARN__MISSED,      // it waits for ranks that wait for each other
} tarn__comm_silence;

// Of one rank to another, in the numbers of the engine.
typedef struct tarn__comm_notice {
  uint32_t magic;
  uint32_t kind;
  uint32_t from;
  uint32_t context;  // ASKS, ANSWERS: in which it is waited
  uint32_t about;    // ANSWERS: the rank that |from| waits for, UINT32_MAX:
                     // none; TELLS: as |why| has it
  uint32_t why;      // TELLS: a tarn__comm_silence
  uint32_t number;   // of the question
  uint64_t ms;       // TELLS: how long it was waited for
} tarn__comm_notice;

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
  tarn_list all;       // communicators
  uint32_t contexts;   // the last one that was given, by any of them
  uint32_t questions;  // of this rank, so far
  void *listening;     // for |heard|; NULL: not begun
  tarn__comm_notice heard;
  void *sending[TARN__NOTES];  // NULL: none
  tarn__comm_notice sent[TARN__NOTES];
  tarn__comm_notice verdict;  // |kind| 0: none
  tarn__failure failure;      // the engine's own; then it is not called
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

// Tells all others why the job cannot go on, as a verdict does.
void tarn__silence_tell(tarn__comm_engine *engine, size_t rank,
                        tarn__comm_silence why);

// Stops. False if messages are left.
bool tarn__silence_end(tarn__comm_engine *engine);

// --- messages.c ------------------------------------------------------------

typedef struct tarn__comm_messages {
  tarn__comm_engine *engine;
  tarn_list node;  // among the engine's
  uint32_t context;
  size_t waits_for;   // in the numbers of the engine; SIZE_MAX: none
  uint32_t asked;     // the last question; 0: none
  uint32_t answered;  // the last one that was answered
  size_t answer;      // the rank that is waited for there; SIZE_MAX: none
  size_t rank;
  size_t size;
  size_t ranks[];  // in the numbers of the engine
} tarn__comm_messages;

// The operations of a communicator whose |self| is a tarn__comm_messages.
extern const tarn_comm_ops tarn__message_ops;

// A communicator's |self| of the engine |ops| with |engine_self|.
TARN_MUST_CHECK tarn_status tarn__messages_create(const tarn_comm_ops *ops,
                                                  void *engine_self,
                                                  size_t rank, size_t size,
                                                  uint64_t timeout_ms,
                                                  tarn__comm_messages **out);

#endif  // TARN_COMM_MESSAGES_H_
