// course.h - the loops through requests; every allocator has its own copy:
// |alloc|, |give| and |touch| are constants where these are used, and become
// part of them.
#ifndef TARN_BENCH_COURSE_H_
#define TARN_BENCH_COURSE_H_

#include "kit/crossing.h"
#include "kit/tool.h"
#include "peers.h"

#define COURSE_INLINE static inline __attribute__((always_inline))

enum { COURSE_PAGE = 4096 };

// Writes one byte of each page.
static inline bool course_touch(void *block, size_t size) {
  volatile char *bytes = block;
  for (size_t at = 0; at < size; at += COURSE_PAGE)
    bytes[at] = 1;
  return true;
}

COURSE_INLINE bool course_serve(void *self, const request *r, bool touched,
                                peer_request *alloc, peer_request *give,
                                peer_request *touch) {
  if (r->size == 0) return give(self, r);
  return alloc(self, r) && (!touched || touch(self, r));
}

COURSE_INLINE bool course_serve_timed(void *self, const request *r,
                                      const peer_run *run, uint64_t *out_ticks,
                                      peer_request *alloc, peer_request *give,
                                      peer_request *touch) {
  uint64_t begin = stopwatch_now(run->watch);
  bool served = course_serve(self, r, run->touched, alloc, give, touch);
  *out_ticks = stopwatch_now(run->watch) - begin;
  return served;
}

// One thread's part of one pass.
COURSE_INLINE bool course_cross(void *self, const peer_run *run, uint32_t pass,
                                peer_request *alloc, peer_request *give,
                                peer_request *touch) {
  const crossing_side *side = run->side;
  for (size_t i = 0; i < side->requests.count; i++) {
    const request *r = &side->requests.items[i];
    if (!crossing_ready(side, r, pass)) return false;
    bool served =
        run->ticks == NULL
            ? course_serve(self, r, run->touched, alloc, give, touch)
            : course_serve_timed(self, r, run, &run->ticks[side->places[i]],
                                 alloc, give, touch);
    if (!served) return false;
    crossing_tell(side, r, pass);
  }
  return true;
}

COURSE_INLINE bool course_sample(void *self, const peer_run *run,
                                 peer_request *alloc, peer_request *give,
                                 peer_request *touch) {
  for (size_t i = 0; i < run->requests->count; i++) {
    if (!course_serve_timed(self, &run->requests->items[i], run, &run->ticks[i],
                            alloc, give, touch)) {
      return false;
    }
  }
  return true;
}

COURSE_INLINE bool course_run(void *self, const peer_run *run,
                              peer_request *alloc, peer_request *give,
                              peer_request *touch) {
  const request_list *requests = run->requests;
  if (run->side != NULL) {
    for (uint32_t i = 0; i < run->side->passes; i++) {
      uint32_t number = run->side->first_pass + i;
      if (!course_cross(self, run, number, alloc, give, touch)) return false;
    }
    return true;
  }
  if (run->ticks != NULL) return course_sample(self, run, alloc, give, touch);
  if (run->touched) {
    for (size_t i = 0; i < requests->count; i++) {
      if (!course_serve(self, &requests->items[i], true, alloc, give, touch)) {
        return false;
      }
    }
    return true;
  }
  for (size_t i = 0; i < requests->count; i++) {
    if (!course_serve(self, &requests->items[i], false, alloc, give, touch)) {
      return false;
    }
  }
  return true;
}

#endif  // TARN_BENCH_COURSE_H_
