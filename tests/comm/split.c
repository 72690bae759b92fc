// Communicators out of communicators: the ranks in each, their order, and that
// each lives and dies for itself.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/ranks.h"
#include "support/run.h"

// The ranks of the whole in |group|, as |group| has them.
static size_t list_members(tarn_comm *group, size_t rank, size_t *out_members) {
  assert_ok(tarn_comm_allgather(group, &rank, sizeof rank, out_members));
  return tarn_comm_size(group);
}

// --- groups ----------------------------------------------------------------

// Three colors, and the order turned around.
static void split_by_three(tarn_comm *comm, void *context) {
  size_t members[64];
  size_t rank = tarn_comm_rank(comm);
  size_t size = tarn_comm_size(comm);
  tarn_comm *group = NULL;
  (void)context;
  assert_ok(tarn_comm_split(comm, (int64_t)(rank % 3), -(int64_t)rank, &group));
  size_t count = list_members(group, rank, members);
  ck_assert_uint_eq(count, (size - rank % 3 + 2) / 3);
  ck_assert_uint_eq(members[tarn_comm_rank(group)], rank);
  for (size_t i = 0; i < count; i++) {
    ck_assert_uint_eq(members[i] % 3, rank % 3);
    if (i > 0) ck_assert_uint_lt(members[i], members[i - 1]);
  }
  ck_assert_uint_eq(tarn_comm_timeout_ms(group), tarn_comm_timeout_ms(comm));
  ck_assert_str_eq(tarn_comm_kind(group), "local");
  assert_ok(tarn_comm_barrier(comm));
  assert_ok(tarn_comm_destroy(group));
}

static const size_t SIZES[] = {1, 2, 3, 4, 7, 64};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

RANKS_LOOP(groups_are_by_color_and_key, SIZE_COUNT, .size = SIZES[_i],
           .body = split_by_three)

static void split_off_none(tarn_comm *comm, void *context) {
  size_t rank = tarn_comm_rank(comm);
  tarn_comm *group = NULL;
  (void)context;
  assert_ok(tarn_comm_split(comm, rank == 1 ? TARN_COMM_NONE : 0, 0, &group));
  ck_assert_int_eq(group == NULL, rank == 1);
  if (group != NULL) {
    ck_assert_uint_eq(tarn_comm_size(group), 3);
    ck_assert_uint_eq(tarn_comm_rank(group), rank == 0 ? 0 : rank - 1);
  }
  assert_ok(tarn_comm_destroy(group));
  assert_ok(tarn_comm_split(comm, TARN_COMM_NONE, 0, &group));
  ck_assert_ptr_null(group);
}

RANKS_TEST(a_rank_may_be_in_none, .size = 4, .body = split_off_none)

// --- messages of several communicators --------------------------------------

static void share_number(tarn_comm *comm, size_t number) {
  int fds[64];
  int ends[2];
  size_t size = tarn_comm_size(comm);
  ck_assert_int_eq(pipe(ends), 0);
  size_t own = number * 100 + tarn_comm_rank(comm);
  for (size_t i = 0; i < size; i++)
    ck_assert_int_eq(write(ends[1], &own, sizeof own), sizeof own);
  assert_ok(tarn_comm_share(comm, ends[0], fds));
  for (size_t i = 0; i < size; i++) {
    size_t got = 0;
    if (i == tarn_comm_rank(comm)) continue;
    ck_assert_int_eq(read(fds[i], &got, sizeof got), sizeof got);
    ck_assert_uint_eq(got, number * 100 + i);
    close(fds[i]);
  }
  close(ends[0]);
  close(ends[1]);
}

// Parent, children and grandchildren, the parents gone first.
static void share_in_all(tarn_comm *comm, void *context) {
  size_t rank = tarn_comm_rank(comm);
  tarn_comm *pair = NULL;
  tarn_comm *turned = NULL;
  (void)context;
  assert_ok(tarn_comm_split(comm, (int64_t)(rank / 2), 0, &pair));
  share_number(comm, 1);
  share_number(pair, 2 + rank / 2);
  assert_ok(tarn_comm_destroy(comm));
  assert_ok(tarn_comm_split(pair, 5, tarn_comm_rank(pair) == 0, &turned));
  ck_assert_uint_eq(tarn_comm_rank(turned), 1 - rank % 2);
  share_number(pair, 7);
  assert_ok(tarn_comm_destroy(pair));
  share_number(turned, 9);
  assert_ok(tarn_comm_barrier(turned));
  assert_ok(tarn_comm_destroy(turned));
}

RANKS_TEST(messages_find_their_communicator, .size = 4, .body = share_in_all,
           .keeps = true)

// --- apart -----------------------------------------------------------------

// A pair that breaks is no concern of the other, nor of those above.
static void break_one_pair(tarn_comm *comm, void *context) {
  size_t rank = tarn_comm_rank(comm);
  tarn_comm *pair = NULL;
  (void)context;
  assert_ok(tarn_comm_split(comm, (int64_t)(rank / 2), 0, &pair));
  if (rank == 3) assert_ok(tarn_comm_destroy(pair));
  if (rank == 2) {
    assert_status(tarn_comm_barrier(pair), TARN_E_PEER_LOST);
    assert_error_says("rank 1 has left");
  }
  if (rank < 2) assert_ok(tarn_comm_barrier(pair));
  assert_ok(tarn_comm_barrier(comm));
  if (rank != 3) assert_ok(tarn_comm_destroy(pair));
}

RANKS_TEST(a_broken_one_is_alone, .size = 4, .body = break_one_pair)

static void die_in_group(tarn_comm *comm, void *context) {
  size_t rank = tarn_comm_rank(comm);
  tarn_comm *group = NULL;
  (void)context;
  assert_ok(tarn_comm_split(comm, rank != 0, -(int64_t)rank, &group));
  if (rank == 2) ranks_die();
  if (rank == 0) {
    assert_ok(tarn_comm_barrier(group));
  } else {
    assert_status(tarn_comm_barrier(group), TARN_E_PEER_LOST);
    assert_error_says("comm: rank 1 has ended");
  }
  assert_ok(tarn_comm_destroy(group));
  assert_status(tarn_comm_barrier(comm), TARN_E_PEER_LOST);
  assert_error_says("comm: rank 2 has ended");
}

RANKS_TEST(a_death_has_a_number_in_each, .size = 4, .body = die_in_group,
           .killed = 1 << 2)

// A rank of a group dies before the group is made.
static void die_before_split(tarn_comm *comm, void *context) {
  size_t victim = *(const size_t *)context;
  tarn_comm *group = (tarn_comm *)comm;
  if (tarn_comm_rank(comm) == victim) ranks_die();
  assert_status(tarn_comm_split(comm, 0, 0, &group), TARN_E_PEER_LOST);
  ck_assert_ptr_null(group);
}

TEST_LOOP(a_split_without_a_rank_fails, 3) {
  size_t victim = (size_t)_i;
  ranks_run(&(ranks_plan){.size = 3,
                          .body = die_before_split,
                          .context = &victim,
                          .killed = UINT64_C(1) << victim});
}
