// placement.h - on which processors threads run that are measured together, and
// threads that take these processors from them.
//
// Threads that wait for each other by letting others run look idle: the
// scheduler leaves two of them on one processor, or moves them apart, as it
// comes, and what is measured is two figures. So each has its processor, in
// turn, of those that the process may use.
#ifndef TARN_KIT_PLACEMENT_H_
#define TARN_KIT_PLACEMENT_H_

#include <stdbool.h>
#include <stddef.h>

enum { PLACEMENT_HOGS_MOST = 64 };

// The processors that a thread may use; the caller's, when it is made.
typedef struct placement placement;

placement *placement_create(void);
void placement_destroy(placement *p);

// The calling thread runs on processor |number| only, counted round; or on all
// of them again. Where they are unknown, nothing is done.
void placement_pin(const placement *p, size_t number);
void placement_unpin(const placement *p);

// |count| threads that use processors for 100 us, rest for 400 and so on, each
// its own processor, in turn: other threads there lose them wherever they are,
// inside a lock too. A thread that never rests would get a whole slice of some
// milliseconds each time that one of the others lets it run where it waits.
// NULL: one could not be started.
typedef struct hogs hogs;

hogs *hogs_start(size_t count);
void hogs_stop(hogs *h);

#endif  // TARN_KIT_PLACEMENT_H_
