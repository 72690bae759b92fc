// ranks.h - runs a function as each rank of a communicator, in forked
// processes.
//
//   static void body(tarn_comm *comm, void *context) { ... }
//   ranks_run(&(ranks_plan){.size = 4, .body = body});
//
// A rank asserts as any test does. When its body is over it destroys the
// communicator, and must then hold no memory of the library's and no descriptor
// more than before.
#ifndef TARN_TESTS_SUPPORT_RANKS_H_
#define TARN_TESTS_SUPPORT_RANKS_H_

#include "tarn/comm.h"

typedef void ranks_body(tarn_comm *comm, void *context);

typedef struct ranks_plan {
  size_t size;
  ranks_body *body;  // called when all have come
  void *context;
  uint64_t timeout_ms;  // 0: 60000

  // Called before a rank joins, if it is not NULL.
  void (*before)(size_t rank, void *context);
  tarn_status joins;  // what joining must answer; the body is not called
                      // unless it is TARN_OK

  uint64_t killed;   // bit r: rank r must end by SIGKILL
  uint64_t stopped;  // bit r: it stops itself, and is sent SIGCONT when those
                     // without a bit here have ended
  bool keeps;        // the body has destroyed the communicator itself
} ranks_plan;

void ranks_run(const ranks_plan *plan);

// A test that runs a plan: RANKS_TEST(name, .size = 4, .body = body), and one
// that runs it for each _i below |end|.
#define RANKS_TEST(name, ...) RANKS_LOOP(name, 1, __VA_ARGS__)
#define RANKS_LOOP(name, end, ...)         \
  TEST_LOOP(name, end) {                   \
    ranks_run(&(ranks_plan){__VA_ARGS__}); \
  }

// From here on this rank waits |ms| for others: for tests of what is late, so
// that on a machine with other work nothing is that comes before.
void ranks_set_timeout(tarn_comm *comm, uint64_t ms);

// Ends, or stops, this process at once.
_Noreturn void ranks_die(void);
void ranks_stop(void);

// Descriptors that this process has open.
size_t ranks_descriptors(void);

// From now on this process has descriptors below |most| only; or |count| more
// than now; or as many as the system allows.
void ranks_limit_descriptors(size_t most);
void ranks_leave_descriptors(size_t count);
void ranks_lift_limit(void);

// Zero bytes that all ranks that are forked later share with this process.
void *ranks_shared(size_t size);

double ranks_seconds(void);

#endif  // TARN_TESTS_SUPPORT_RANKS_H_
