// Ranks that run out of descriptors, of addresses, or of the library's memory:
// an error at all, nothing left behind, and the communicator goes on.
#include <grp.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/effort.h"
#include "support/faults.h"
#include "support/ranks.h"
#include "support/run.h"

enum { POOR = 1 };  // the rank that has not enough

static bool is_poor(const tarn_comm *comm) {
  return tarn_comm_rank(comm) == POOR;
}

// --- descriptors -----------------------------------------------------------

TEST(a_rendezvous_needs_descriptors) {
  size_t before = ranks_descriptors();
  tarn_rendezvous *meeting = NULL;
  for (size_t count = 0; count <= 7; count++) {
    ranks_leave_descriptors(count);
    tarn_status status = tarn_rendezvous_create(3, &meeting);
    ranks_lift_limit();
    ck_assert_int_eq(status, count < 7 ? TARN_E_IO : TARN_OK);
    if (status != TARN_OK) {
      ck_assert_ptr_null(meeting);
      ck_assert_uint_eq(ranks_descriptors(), before);
      assert_error_says(count == 0 ? "no shared memory" : "no sockets");
      assert_error_says("Too many open files");
    }
  }
  tarn_rendezvous_destroy(meeting);
  ck_assert_uint_eq(ranks_descriptors(), before);
}

// As many come free while a rank joins as it needs: those of the memory and of
// the others' mailboxes.
static void join_with_none(size_t rank, void *context) {
  (void)context;
  if (rank == POOR) ranks_leave_descriptors(0);
}

static void join_with_standard(size_t rank, void *context) {
  (void)context;
  if (rank == POOR) ranks_limit_descriptors(3);
}

static void meet_once(tarn_comm *comm, void *context) {
  (void)context;
  assert_ok(tarn_comm_barrier(comm));
}

TEST(joining_needs_descriptors) {
  ranks_run(
      &(ranks_plan){.size = 4, .before = join_with_none, .body = meet_once});
  ranks_run(&(ranks_plan){
      .size = 4, .before = join_with_standard, .joins = TARN_E_IO});
}

static void share_with_few(tarn_comm *comm, void *context) {
  int fds[4];
  (void)context;
  for (size_t count = 0; count <= 3; count++) {
    if (is_poor(comm)) ranks_leave_descriptors(count);
    tarn_status status = tarn_comm_share(comm, 0, fds);
    ranks_lift_limit();
    ck_assert_int_eq(status, count < 3 ? TARN_E_IO : TARN_OK);
    if (count < 3) {
      assert_error_says("rank 1: comm: cannot receive the descriptor of rank ");
    }
    for (size_t r = 0; r < 4; r++) {
      ck_assert_int_eq(fds[r] >= 0, count == 3 && r != tarn_comm_rank(comm));
      if (fds[r] >= 0) close(fds[r]);
    }
  }
  assert_ok(tarn_comm_barrier(comm));
}

RANKS_TEST(sharing_needs_descriptors, .size = 4, .body = share_with_few)

// The poor rank leads the group in the second round.
static void split_with_none(tarn_comm *comm, void *context) {
  tarn_comm *group = NULL;
  (void)context;
  for (int leads = 0; leads < 2; leads++) {
    int64_t key = leads != 0 && is_poor(comm) ? -1 : 0;
    if (is_poor(comm)) ranks_leave_descriptors(0);
    tarn_status status = tarn_comm_split(comm, 0, key, &group);
    ranks_lift_limit();
    ck_assert_int_eq(status, TARN_E_IO);
    ck_assert_ptr_null(group);
    assert_ok(tarn_comm_split(comm, 0, key, &group));
    assert_ok(tarn_comm_barrier(group));
    assert_ok(tarn_comm_destroy(group));
  }
}

RANKS_TEST(splitting_needs_descriptors, .size = 3, .body = split_with_none)

// No user but root has more descriptors under way than a process may have: far
// fewer than these ranks send each other.
enum { MANY = 32, NOBODY = 65534, FEW_UNDER_WAY = 120 };

static void have_few_under_way(size_t rank, void *context) {
  (void)rank;
  (void)context;
  if (getuid() == 0) {
    ck_assert_int_eq(setgroups(0, NULL), 0);
    ck_assert_int_eq(setresuid(NOBODY, NOBODY, NOBODY), 0);
    ck_assert_int_eq(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0), 0);
  }
  ranks_limit_descriptors(FEW_UNDER_WAY);
}

static void share_often(tarn_comm *comm, void *context) {
  int fds[MANY];
  (void)context;
  for (int i = 0; i < 3; i++) {
    assert_ok(tarn_comm_share(comm, 0, fds));
    for (size_t r = 0; r < MANY; r++) {
      ck_assert_int_eq(fds[r] >= 0, r != tarn_comm_rank(comm));
      if (fds[r] >= 0) close(fds[r]);
    }
  }
}

RANKS_TEST(few_descriptors_may_be_under_way, .size = MANY,
           .before = have_few_under_way, .body = share_often)

// --- addresses -------------------------------------------------------------

static void limit_addresses(rlim_t most) {
  struct rlimit now;
  ck_assert_int_eq(getrlimit(RLIMIT_AS, &now), 0);
  now.rlim_cur = most;
  ck_assert_int_eq(setrlimit(RLIMIT_AS, &now), 0);
}

static void split_without_addresses(tarn_comm *comm, void *context) {
  tarn_comm *group = NULL;
  (void)context;
  if (is_poor(comm)) limit_addresses(1 << 20);
  tarn_status status = tarn_comm_split(comm, 0, 0, &group);
  limit_addresses(RLIM_INFINITY);
  ck_assert_int_eq(status, TARN_E_IO);
  assert_error_says("rank 1: comm: shared memory cannot be mapped");
  ck_assert_ptr_null(group);
  assert_ok(tarn_comm_barrier(comm));
}

#if defined(TARN_TESTS_ASAN) || defined(TARN_TESTS_TSAN)
enum { SPLITS = 0 };  // a sanitizer needs all addresses
#else
enum { SPLITS = 1 };
#endif

RANKS_LOOP(splitting_needs_addresses, SPLITS, .size = 3,
           .body = split_without_addresses)

// --- the library's own memory ----------------------------------------------

// One rank that does everything; what cannot be is refused, and that is all.
static void play_alone(void *context) {
  tarn_rendezvous *meeting = NULL;
  tarn_comm *comm = NULL;
  tarn_comm *group = NULL;
  const size_t one = 1;
  const size_t none = 0;
  int fd = 0;
  char byte = 1;
  char got = 0;
  (void)context;
  if (tarn_rendezvous_create(1, &meeting) == TARN_OK &&
      tarn_comm_join(meeting, 0, NULL, &comm) == TARN_OK) {
    assert_ok(tarn_comm_barrier(comm));
    assert_ok(tarn_comm_share(comm, 0, &fd));
    ck_assert_int_eq(fd, -1);
    tarn_status status =
        tarn_comm_alltoallv(comm, &byte, &one, &none, &got, &one, &none);
    ck_assert_int_eq(got, status == TARN_OK);
    if (status != TARN_OK) ck_assert_int_eq(status, TARN_E_NOMEM);
    status = tarn_comm_split(comm, 0, 0, &group);
    ck_assert_int_eq(group != NULL, status == TARN_OK);
    if (status != TARN_OK) ck_assert_int_eq(status, TARN_E_NOMEM);
  } else {
    ck_assert_ptr_null(comm);
  }
  assert_ok(tarn_comm_destroy(group));
  assert_ok(tarn_comm_destroy(comm));
  tarn_rendezvous_destroy(meeting);
}

TEST(every_allocation_may_fail) {
  size_t before = ranks_descriptors();
  ck_assert_uint_gt(faults_sweep(play_alone, NULL), 15);
  ck_assert_uint_eq(ranks_descriptors(), before);
}

// The N-th allocation of one rank fails: all are told, until N is too many.
static void split_with_faults(tarn_comm *comm, void *context) {
  tarn_comm *group = NULL;
  tarn_status status = TARN_E_NOMEM;
  size_t struck = 0;
  (void)context;
  for (size_t n = 1; status != TARN_OK; n++) {
    if (is_poor(comm)) faults_arm(n, FAULTS_ONCE);
    status = tarn_comm_split(comm, 0, -(int64_t)tarn_comm_rank(comm), &group);
    if (is_poor(comm)) faults_disarm();
    ck_assert_int_eq(group != NULL, status == TARN_OK);
    if (status == TARN_OK) break;
    ck_assert_int_eq(status, TARN_E_NOMEM);
    assert_error_says("rank 1: ");
    struck++;
  }
  ck_assert_uint_gt(struck, 3);
  assert_ok(tarn_comm_barrier(group));
  assert_ok(tarn_comm_destroy(group));
}

RANKS_TEST(a_split_may_fail_at_one, .size = 3, .body = split_with_faults)

static void exchange_with_faults(tarn_comm *comm, void *context) {
  const size_t none[3] = {0};
  (void)context;
  if (is_poor(comm)) faults_arm(1, FAULTS_ONCE);
  assert_status(tarn_comm_alltoallv(comm, NULL, none, none, NULL, none, none),
                TARN_E_NOMEM);
  assert_error_says("rank 1: ");
  if (is_poor(comm)) ck_assert(faults_disarm());
  assert_ok(tarn_comm_alltoallv(comm, NULL, none, none, NULL, none, none));
}

RANKS_TEST(an_exchange_may_fail_at_one, .size = 3, .body = exchange_with_faults)

// A rank that cannot even join gives up its place; the others are told so.
TEST(a_rank_without_memory_is_lost) {
  for (size_t n = 1; n <= 3; n++) {
    tarn_rendezvous *meeting = NULL;
    tarn_comm *comm = NULL;
    int end = 0;
    assert_ok(tarn_rendezvous_create(2, &meeting));
    pid_t child = fork();
    if (child == 0) {
      faults_arm(n, FAULTS_ONCE);
      assert_status(tarn_comm_join(meeting, 1, NULL, &comm), TARN_E_NOMEM);
      tarn_rendezvous_destroy(meeting);
      usleep(200000);
      _exit(0);
    }
    assert_status(tarn_comm_join(meeting, 0, NULL, &comm), TARN_E_PEER_LOST);
    assert_error_says("rank 1 ended or gave up before it joined");
    tarn_rendezvous_destroy(meeting);
    ck_assert_int_eq(waitpid(child, &end, 0), child);
    ck_assert_int_eq(end, 0);
  }
}

int main(void) {
  faults_install();
  return run_tests();
}
