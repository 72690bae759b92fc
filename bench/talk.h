// talk.h - a program that is asked by lines, and answers each with a line, so
// that what it measures alternates with what is measured here.
//
//   us  ── a question ──►  the program
//       ◄── an answer ──
#ifndef TARN_BENCH_TALK_H_
#define TARN_BENCH_TALK_H_

#include <stdbool.h>

enum { TALK_LINE_SIZE = 256, TALK_TEXT_SIZE = 192, TALK_WAIT_MS = 120000 };

typedef struct talk talk;

// |words| are needed during the call, the texts as long as the talk.
typedef struct talk_spec {
  const char *const *words;        // the program and its arguments
  void (*prepare)(void *context);  // in its process; NULL: nothing
  const char *name;                // "the program under MPI": for texts
  const char *ready;               // the line that it begins with
  int end_signal;                  // sent to end it, and when this process ends
} talk_spec;

// Starts it and waits, TALK_WAIT_MS at most, until it is ready. NULL: |why|,
// TALK_TEXT_SIZE bytes, says why not: the first line that it complained in, if
// there is one.
talk *talk_start(const talk_spec *spec, char *why);

// A question, with its end of line, and the answer, TALK_LINE_SIZE bytes,
// without. In a child of fork too, but in one process only. False: |why| as
// above.
bool talk_ask(talk *t, const char *question, char *answer, char *why);

// In a process that asks nothing: closes what is inherited. NULL is allowed.
void talk_leave(talk *t);

// Ends the program, which ends by itself when there are no more questions, and
// waits for it. |at_once|: it is of no use any more. NULL is allowed.
void talk_stop(talk *t, bool at_once);

#endif  // TARN_BENCH_TALK_H_
