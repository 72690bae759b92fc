// No allocator: what the loop itself takes, with the waiting of several threads
// for each other. Every other row has that in its times.
//
// A request is read, as an allocator reads it; the compiler may not find that
// nothing comes of it.
#include <stdlib.h>

#include "course.h"

COURSE_INLINE bool look_at(void *state, const request *r) {
  (void)state;
  __asm__ volatile("" : : "r"(r->size), "r"(r->slot));
  return true;
}

static bool look_at_all(void *self, const peer_run *run) {
  return course_run(self, run, look_at, look_at, look_at);
}

static void *create(const peer_order *order, char *why) {
  (void)order;
  (void)why;
  return tool_array(1, 1);
}

static const char *never(void) {
  return "it refuses nothing";
}

const peer_type peer_harness = {
    .create = create,
    .destroy = free,
    .alloc = look_at,
    .free = look_at,
    .pass = look_at_all,
    .refusal = never,
};
