// worker.h - the two sides of a run: one calls the plug-in, mostly in a child,
// and sends messages; the other keeps the findings.
#ifndef TARN_CONFORM_WORKER_H_
#define TARN_CONFORM_WORKER_H_

#include "check.h"

typedef enum message_kind {
  MESSAGE_FOUND,       // there is such a plug-in: |origin|
  MESSAGE_NO_PLUGIN,   // not found: |outcome.detail|
  MESSAGE_LOADED,      // |type|, |devices|
  MESSAGE_NO_DEVICE,   // it has no such device: |outcome.detail|
  MESSAGE_OUTCOME,     // of the running check
  MESSAGE_COPY,        // a figure
  MESSAGE_ALLOCATION,  // a figure
  MESSAGE_MEASURED,    // no more figures: |outcome|
} message_kind;

typedef struct message {
  message_kind kind;
  bool leaves;  // the child ends, as it should
  size_t devices;
  conform_outcome outcome;
  conform_copy copy;
  conform_allocation allocation;
  char type[CONFORM_TYPE_SIZE];
  char origin[PATH_MAX];
} message;

// One run, as both sides know it.
typedef struct session {
  const conform_request *request;
  conform_findings *found;
  const size_t *order;  // the checks to run, and behind them the measuring
  size_t count;
  size_t next;  // which of them is running
  conform_verdict verdict;
  bool left;  // the child has said that it ends
} session;

// Where the side that runs checks sends its messages.
typedef struct sender {
  void (*send)(void *context, const message *m);
  void *context;
} sender;

// Runs the rest of a session, from |s->next| on, and sends the outcomes. A
// failed check is the last, unless all run in one process. |ends|: the plug-in
// is ended in any case.
void worker_run(const session *s, sender out, bool ends);

// Why a check makes no sense after an earlier failure; NULL if it
// does.
const char *worker_find_hopeless(const session *s, size_t index);

#endif  // TARN_CONFORM_WORKER_H_
