// io_watched.h - a watch of the tests (tarn__io_watch): it notes what a queue
// sends and what comes of it, and spoils some of it. A copy for each program.
#ifndef TARN_TESTS_BASE_IO_WATCHED_H_
#define TARN_TESTS_BASE_IO_WATCHED_H_

#include <errno.h>

#include "base/io.h"
#include "io_ground.h"
#include "support/mix.h"

// What was sent and what came of it, in the order of the queue's thread; and
// how much of that is spoilt.
static struct {
  size_t under_way;
  size_t most_under_way;
  size_t parts;
  size_t moved;      // parts that have come back
  size_t from;       // where the last part began
  size_t unit;       // parts become shorter, by multiples of it; 0: they do not
  bool interrupted;  // now and then
  // The N-th part from now, 1 is the next: fails at once, or after it is done,
  // with |error|; 0: none.
  size_t refuse;
  size_t fail;
  int error;
  size_t done;   // what parts that are moved are said to have moved; 0: what
                 // they did
  char log[64];  // "W" and "S" sent, "w" and "s" come back
  size_t log_size;
} seen;

static inline void log_one(char what) {
  if (seen.log_size + 1 < sizeof seen.log) seen.log[seen.log_size++] = what;
}

static inline char letter(const tarn__io_request *request, bool sent) {
  static const char letters[][3] = {"rR", "wW", "sS"};
  return letters[request->action][sent];
}

static inline bool strikes(size_t *until) {
  return *until > 0 && --*until == 0;
}

static inline int before(void *context, tarn__io_request *request) {
  ck_assert_ptr_eq(context, &seen);
  seen.parts++;
  seen.from = request->from;
  if (strikes(&seen.refuse)) return seen.error;
  if (seen.unit != 0 && request->part > seen.unit) {
    size_t units = request->part / seen.unit;
    request->part = (1 + mix(7, seen.parts) % units) * seen.unit;
  }
  log_one(letter(request, true));
  if (++seen.under_way > seen.most_under_way)
    seen.most_under_way = seen.under_way;
  return 0;
}

static inline int64_t after(void *context, const tarn__io_request *request,
                            int64_t result) {
  ck_assert_ptr_eq(context, &seen);
  seen.under_way--;
  seen.moved++;
  log_one(letter(request, false));
  if (strikes(&seen.fail)) return -seen.error;
  if (seen.interrupted && mix(8, seen.moved) % 5 == 0) return -EINTR;
  return result > 0 && seen.done != 0 ? (int64_t)seen.done : result;
}

static const tarn__io_watch watch = {&seen, before, after};

#endif  // TARN_TESTS_BASE_IO_WATCHED_H_
