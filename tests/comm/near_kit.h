// near_kit.h - jobs of ranks on several machines, over an engine that is a
// double (mail.h). A machine is what TARN_HOST says.
#ifndef TARN_TESTS_COMM_NEAR_KIT_H_
#define TARN_TESTS_COMM_NEAR_KIT_H_

#include <stdatomic.h>
#include <stdint.h>

#include "comm/comm.h"

// Rank r is on the machine that is called |hosts[r]|.
typedef struct near_job {
  const char *hosts;
  uint64_t timeout_ms;  // 0: 60000
  // Destroys its communicator.
  void (*play)(tarn_comm *comm, const struct near_job *job);
  uint64_t killed;              // ranks that must end so
  void (*before)(size_t rank);  // before ranks meet; NULL: nothing
  size_t number;                // the test's own
} near_job;

// Of the job under way: ranks that are where another may die.
extern atomic_size_t *near_came;

// At a rank: sets TARN_HOST, or makes the communicator as well.
void near_say_host(const near_job *job, size_t rank);
tarn_comm *near_join(const near_job *job, size_t rank);

// Runs |job| in processes, and sees that nothing of it is left.
void near_run(const near_job *job);

#endif  // TARN_TESTS_COMM_NEAR_KIT_H_
