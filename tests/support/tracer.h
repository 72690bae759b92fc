// tracer.h - holds a child at one of its system calls, to end or to stop it
// just there.
//
//   the child                        its parent
//   ---------                        ----------
//   ...
//   tracer_offer();  ──────────────► tracer_begin(child)
//   what is to be watched            tracer_run(&trace, 17, look, context)
//
// A system call is two steps: the child is about to make it, and the kernel has
// made it, but the child does not know yet what came of it. So at step 2k - 1
// of a child its k-th call has not been made, at step 2k it has. Only the
// thread that offers itself is counted.
#ifndef TARN_TESTS_SUPPORT_TRACER_H_
#define TARN_TESTS_SUPPORT_TRACER_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Whether children can be traced here; containers may forbid it. Makes one.
bool tracer_works(void);

// In a child: from here on its steps are counted. Returns when the parent has
// come.
void tracer_offer(void);

typedef struct tracer {
  pid_t child;
  size_t steps;  // that the child has made
  bool ended;    // it has, by itself, as |end| of waitpid says
  int end;
} tracer;

// Waits for the offer of |child|. If it ends before it makes one, it has
// |ended|.
tracer tracer_begin(pid_t child);

// What the child calls: a number of the system's, and its arguments.
typedef void tracer_look(void *context, uint64_t number,
                         const uint64_t *arguments);

// Lets it run up to step |step|, where it then is held. False: it has ended
// before that. |look|, which may be NULL, is shown each call.
bool tracer_run(tracer *trace, size_t step, tracer_look *look, void *context);

// Of one that is held: ends it by SIGKILL, and waits for the end.
void tracer_kill(tracer *trace);

// Of one that is held: stops it, with all of its threads; lets it go on,
// untraced.
void tracer_stop(tracer *trace);
void tracer_continue(tracer *trace);

#endif  // TARN_TESTS_SUPPORT_TRACER_H_
