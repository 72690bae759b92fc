// Random operations on synced buffers over 2 to 8 simulated devices, against a
// model that knows each byte (support/synced_model.h).
//
//   test_synced_oracle                        what a check runs
//   test_synced_oracle FIRST SEEDS OPERATIONS  more, each seed in a process of
//                                             its own; one seed: to replay it
//
// A seed says how many devices there are and how slow they are, too.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/effort.h"
#include "support/faults.h"
#include "support/run.h"
#include "synced_fault.h"
#include "synced_outside.h"
#include "synced_play.h"

// A million and some in all.
enum { OPERATIONS = EFFORT(72000, 2500), SEEDS = EFFORT(14, 7) };

// Calls made so far, those included that were refused as they had to be.
static unsigned long played(void) {
  unsigned long done = 0;
  for (int i = 0; i < SP_KINDS; i++)
    done += sp_seen.done[i];
  return done;
}

static sg_config config_of(unsigned long seed) {
  static const uint64_t latencies[] = {0, 20000, 0, 2000, 100000};
  return (sg_config){.devices = 2 + (unsigned)(seed % 7),
                     .latency_ns = latencies[seed % 5],
                     .unified = seed % 3 != 0};
}

static void run_seed(unsigned long seed, unsigned long operations) {
  sg_config config = config_of(seed);
  sm_now_at.seed = seed;
  sg_seed(seed);
  sg_open(&config);
  sm_listen();
  while (played() < operations)
    sp_step();
  sp_finish();
  sm_status(tarn_synced_trace(NULL, NULL), TARN_OK);
  sm_require(so_count() == 0);
  sg_close();
  tarn_pool *pool = NULL;
  sm_status(tarn_pool_of(TARN_HOST, &pool), TARN_OK);
  sm_status(tarn_pool_trim(pool, 0), TARN_OK);
}

SECONDS(600);

TEST_LOOP(random_operations_are_as_the_model_says, SEEDS) {
  run_seed((unsigned long)_i, OPERATIONS);
  // The run was not a walk past everything.
  for (int i = 0; i < SP_KINDS; i++) {
    ck_assert_msg(sp_seen.done[i] > 0, "%s: %lu", sp_kind_name((sp_kind)i),
                  sp_seen.done[i]);
  }
  ck_assert_uint_gt(sp_seen.done[SP_BEGIN], OPERATIONS / 8);
  ck_assert_uint_gt(sp_seen.refused[SP_BEGIN], OPERATIONS / 100);
  ck_assert_uint_gt(sp_seen.done[SP_CANCEL], OPERATIONS / 200);
  ck_assert_uint_gt(sp_failures, OPERATIONS / 4000);
}

// ---------------------------------------------------------------------------
// By hand
// ---------------------------------------------------------------------------

static void print_counts(unsigned long seed) {
  unsigned long refused = 0;
  for (int i = 0; i < SP_KINDS; i++)
    refused += sp_seen.refused[i];
  printf(
      "seed %lu: %lu operations, %lu of them refused as they had to be, "
      "%lu faults\n",
      seed, played(), refused, sp_failures);
  for (int i = 0; i < SP_KINDS && getenv("TARN_ORACLE_KINDS") != NULL; i++) {
    printf("  %-12s %8lu %8lu\n", sp_kind_name((sp_kind)i), sp_seen.done[i],
           sp_seen.refused[i]);
  }
  fflush(stdout);
}

// Adds what the child has done to |*total|.
static bool run_in_child(unsigned long seed, unsigned long operations,
                         unsigned long *total) {
  int ends[2];
  if (pipe(ends) != 0) return false;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    run_seed(seed, operations);
    print_counts(seed);
    unsigned long done = played();
    _exit(write(ends[1], &done, sizeof done) == sizeof done ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  close(ends[1]);
  unsigned long done = 0;
  if (read(ends[0], &done, sizeof done) == sizeof done) *total += done;
  close(ends[0]);
  return status == 0;
}

static int run_by_hand(unsigned long first, unsigned long seeds,
                       unsigned long operations) {
  unsigned long failed = 0;
  unsigned long total = 0;
  for (unsigned long i = first; i < first + seeds; i++) {
    if (run_in_child(i, operations, &total)) continue;
    printf("seed %lu FAILED\n", i);
    failed++;
  }
  printf("%lu seeds, %lu operations, %lu failed\n", seeds, total, failed);
  return failed == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
  faults_install();
  if (argc == 4) {
    return run_by_hand(strtoul(argv[1], NULL, 10), strtoul(argv[2], NULL, 10),
                       strtoul(argv[3], NULL, 10));
  }
  return run_tests();
}
