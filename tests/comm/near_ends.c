// Communicators of several machines: who is told of the end of a rank by those
// of its machine, and when.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "mail.h"
#include "near_kit.h"
#include "support/ranks.h"
#include "support/run.h"

// For the one that dies: the others are through with all before, and may wait.
static void die_behind(tarn_comm *comm) {
  while (atomic_load(near_came) < tarn_comm_size(comm) - 1)
    usleep(1000);
  usleep(20000);
  ranks_die();
}

static void go_on(void) {
  atomic_fetch_add(near_came, 1);
}

static void assert_lost(tarn_comm *comm, tarn_status status, const char *text) {
  assert_status(status, TARN_E_PEER_LOST);
  assert_error_says(text);
  assert_status(tarn_comm_barrier(comm), TARN_E_PEER_LOST);
  assert_error_says(text);
  assert_status(tarn_comm_check(comm), TARN_E_PEER_LOST);
}

// All wait, and are told at once: the deadline is a minute.
static void die_in_barrier(tarn_comm *comm, const near_job *j) {
  char text[40];
  snprintf(text, sizeof text, "comm: rank %zu has ended", j->number);
  assert_ok(tarn_comm_barrier(comm));
  if (tarn_comm_rank(comm) == j->number) die_behind(comm);
  go_on();
  double begin = ranks_seconds();
  tarn_status status = tarn_comm_barrier(comm);
  ck_assert_double_lt(ranks_seconds() - begin, 5.0);
  assert_lost(comm, status, text);
  assert_ok(tarn_comm_destroy(comm));
}

TEST_LOOP(the_end_of_a_rank_is_told_to_all, 5) {
  near_run(&(near_job){.hosts = "abbaa",
                       .play = die_in_barrier,
                       .killed = UINT64_C(1) << _i,
                       .number = (size_t)_i});
}

// Rank 3 hears of it by rank 2, whose end it must not take for the reason: the
// note of rank 0 is long under way.
static void hear_of_death(tarn_comm *comm, const near_job *j) {
  assert_ok(tarn_comm_barrier(comm));
  mail_delay(0, 3, 20000);
  if (tarn_comm_rank(comm) == j->number) die_behind(comm);
  go_on();
  double begin = ranks_seconds();
  assert_lost(comm, tarn_comm_barrier(comm), "comm: rank 1 has ended");
  ck_assert_double_lt(ranks_seconds() - begin, 10.0);
  assert_ok(tarn_comm_destroy(comm));
}

TEST(ranks_of_a_machine_tell_what_they_were_told) {
  near_run(&(near_job){
      .hosts = "aabb", .play = hear_of_death, .killed = 2, .number = 1});
}

// In a group whose numbers are others.
static void die_in_group(tarn_comm *comm, const near_job *j) {
  tarn_comm *group = NULL;
  int64_t rank = (int64_t)tarn_comm_rank(comm);
  assert_ok(tarn_comm_split(comm, rank == 0, -rank, &group));
  if (tarn_comm_rank(comm) == j->number) die_behind(comm);
  go_on();
  if (rank != 0) {
    assert_lost(group, tarn_comm_barrier(group), "comm: rank 1 has ended");
  }
  assert_lost(comm, tarn_comm_barrier(comm), "comm: rank 4 has ended");
  assert_ok(tarn_comm_destroy(comm));
  assert_ok(tarn_comm_destroy(group));
}

TEST(the_end_has_a_number_in_each_group) {
  near_run(&(near_job){.hosts = "aababb",
                       .play = die_in_group,
                       .killed = UINT64_C(1) << 4,
                       .number = 4});
}

// Without a collective: the ranks of its machine see it, and tell the others.
static void die_alone(tarn_comm *comm, const near_job *j) {
  tarn_status status = TARN_OK;
  assert_ok(tarn_comm_barrier(comm));
  if (tarn_comm_rank(comm) == j->number) die_behind(comm);
  go_on();
  double begin = ranks_seconds();
  while (status == TARN_OK && ranks_seconds() < begin + 5) {
    status = tarn_comm_check(comm);
    usleep(5000);
  }
  assert_lost(comm, status, "comm: rank 2 has ended");
  assert_ok(tarn_comm_destroy(comm));
}

TEST(a_check_finds_the_end_of_a_rank) {
  near_run(&(near_job){.hosts = "babba",
                       .play = die_alone,
                       .killed = UINT64_C(1) << 2,
                       .number = 2});
}

// A rank dies while its machine splits, and others of it are in no group.
static void die_before_split(tarn_comm *comm, const near_job *j) {
  tarn_comm *group = NULL;
  size_t rank = tarn_comm_rank(comm);
  assert_ok(tarn_comm_barrier(comm));
  if (rank == j->number) die_behind(comm);
  go_on();
  tarn_status status =
      tarn_comm_split(comm, rank == 1 ? TARN_COMM_NONE : 0, 0, &group);
  assert_lost(comm, status, "comm: rank 2 has ended");
  ck_assert_ptr_null(group);
  assert_ok(tarn_comm_destroy(comm));
}

TEST(a_split_without_a_rank_fails) {
  near_run(&(near_job){.hosts = "baaba",
                       .play = die_before_split,
                       .killed = UINT64_C(1) << 2,
                       .number = 2});
}

// Rank 0 has what it needs, and goes: rank 3, which waits for rank 2 of the
// other machine, does not mind. It does when it needs rank 0 again.
static void go_early(tarn_comm *comm, const near_job *j) {
  char bytes[1000];
  bool ends = j->number == 1;
  memset(bytes, tarn_comm_rank(comm) == 0 ? 'x' : 0, sizeof bytes);
  assert_ok(tarn_comm_broadcast(comm, 0, bytes, sizeof bytes));
  ck_assert_int_eq(bytes[999], 'x');
  if (tarn_comm_rank(comm) == 0 && ends) ranks_die();
  if (tarn_comm_rank(comm) == 0) {
    assert_ok(tarn_comm_destroy(comm));
    return;
  }
  assert_lost(comm, tarn_comm_barrier(comm),
              ends ? "comm: rank 0 has ended"
                   : "comm: rank 0 has left the communicator");
  assert_ok(tarn_comm_destroy(comm));
}

TEST_LOOP(a_rank_may_go_when_it_is_through, 2) {
  mail_delay(2, 3, 300);
  near_run(&(near_job){.hosts = "abba",
                       .play = go_early,
                       .killed = _i == 1 ? 1 : 0,
                       .number = (size_t)_i});
}
