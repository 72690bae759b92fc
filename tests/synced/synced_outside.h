// synced_outside.h - memory of the program that is lent or given to buffers:
// what must stand in it when it is let go, and that its deleter is called once.
#ifndef TARN_TESTS_SYNCED_SYNCED_OUTSIDE_H_
#define TARN_TESTS_SYNCED_SYNCED_OUTSIDE_H_

#include "support/synced_ground.h"

// Memory at |place| with random bytes; NULL: enough is out.
sm_outside *so_take(unsigned place, size_t size, uint32_t flags, bool deleter);

tarn_wrap_options so_options(sm_outside *x);

// For the host.
void *so_pointer(const sm_outside *x);

// It was not wrapped after all.
void so_drop(sm_outside *x);

// Looks at what has been let go since, and frees it.
void so_settle(void);

// How much is out.
size_t so_count(void);

#endif  // TARN_TESTS_SYNCED_SYNCED_OUTSIDE_H_
