// post_office.h - a double of an engine that passes messages: the ranks are
// threads of the test. Messages are copied when they are posted. It counts what
// is left, and loses or damages messages as told.
#ifndef TARN_TESTS_COMM_POST_OFFICE_H_
#define TARN_TESTS_COMM_POST_OFFICE_H_

#include <stdbool.h>

#include "tarn/comm.h"

enum { POST_RANKS = 12 };

typedef struct post_fault {
  size_t from;          // whose messages to
  size_t to;            // this rank; SIZE_MAX: to any
  size_t number;        // ... from this one on, counted from 0, are lost
  bool once;            // this one alone
  bool cuts;            // this one comes, with a byte less
  bool flips;           // this one comes, with a bit that is wrong
  tarn_status refuses;  // this one is not taken
} post_fault;

// What a rank does, in a thread of its own.
typedef void post_rank(tarn_comm *comm, void *context);

typedef struct post_job {
  size_t ranks;
  uint64_t timeout_ms;  // 0: 20000
  post_rank *run;
  void *context;
  const post_fault *fault;  // NULL: none
  unsigned late;     // looks for a message, up to so many, before it is there
  unsigned look_us;  // that a look for messages takes besides
  uint32_t flags;    // of the engine
} post_job;

// Runs the job: all ranks have a communicator, and destroy it. Asserts that no
// engine is left, and that those were abandoned which |abandons|.
void post_run(const post_job *job, bool abandons);

// Messages that were posted in the last job, by all ranks, and the most that
// one rank had open at a time.
size_t post_count(void);
size_t post_most_open(void);

#endif  // TARN_TESTS_COMM_POST_OFFICE_H_
