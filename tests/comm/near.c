// Communicators of several machines: which ranks of them share memory, also in
// groups, and what happens to ranks that cannot.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

#include "comm/messages.h"
#include "mail.h"
#include "near_kit.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/group.h"
#include "support/ranks.h"
#include "support/run.h"

// --- what a communicator must have -----------------------------------------

static void share_through(tarn_comm *near) {
  int fds[MAIL_RANKS];
  int ends[2];
  char byte = 'a';
  ck_assert_int_eq(pipe(ends), 0);
  assert_ok(tarn_comm_share(near, ends[1], fds));
  for (size_t i = 0; i < tarn_comm_size(near); i++) {
    if (fds[i] < 0) continue;
    ck_assert_int_eq(write(fds[i], &byte, 1), 1);
    close(fds[i]);
  }
  for (size_t i = 1; i < tarn_comm_size(near); i++)
    ck_assert_int_eq(read(ends[0], &byte, 1), 1);
  close(ends[0]);
  close(ends[1]);
}

// The lowest of |hosts| that is the same as |rank|'s.
static size_t lowest(const char *hosts, size_t rank) {
  return (size_t)(strchr(hosts, hosts[rank]) - hosts);
}

static size_t count_machines(const char *hosts) {
  size_t count = 0;
  for (size_t i = 0; i < strlen(hosts); i++)
    count += lowest(hosts, i) == i ? 1 : 0;
  return count;
}

// |hosts| are those of the ranks of |comm|, in order.
static void see_near(tarn_comm *comm, const char *hosts) {
  size_t rank = tarn_comm_rank(comm);
  size_t machines = count_machines(hosts);
  tarn__comm_near near = tarn__comm_near_of(comm);
  size_t at = 0;
  ck_assert_uint_eq(tarn_comm_size(comm), strlen(hosts));
  ck_assert_uint_eq(tarn_comm_machines(comm), machines);
  ck_assert_str_eq(tarn_comm_kind(comm), machines == 1 ? "local" : "mail");
  ck_assert_int_eq(near.machines == NULL, machines == 1);
  ck_assert_int_eq(near.ranks == NULL, machines == 1);
  ck_assert_int_eq(near.comm == comm, machines == 1);
  for (size_t i = 0; i < strlen(hosts); i++) {
    if (machines > 1) ck_assert_uint_eq(near.machines[i], lowest(hosts, i));
    if (hosts[i] != hosts[rank]) continue;
    if (i == rank) ck_assert_uint_eq(tarn_comm_rank(near.comm), at);
    ck_assert_uint_eq(near.ranks != NULL ? near.ranks[at] : at, i);
    at++;
  }
  ck_assert_uint_eq(tarn_comm_size(near.comm), at);
  share_through(near.comm);
  assert_ok(tarn_comm_check(comm));
  assert_ok(tarn_comm_barrier(comm));
}

// The ranks of this one's machine.
static void see_machine(tarn_comm *comm, const char *hosts) {
  tarn_comm *group = NULL;
  char own[MAIL_RANKS + 1] = "";
  size_t size = 0;
  for (size_t i = 0; i < strlen(hosts); i++) {
    if (hosts[i] == hosts[tarn_comm_rank(comm)]) own[size++] = hosts[i];
  }
  assert_ok(tarn_comm_split_by_machine(comm, &group));
  see_near(group, own);
  assert_ok(tarn_comm_destroy(group));
}

static void see_all(tarn_comm *comm, const near_job *j) {
  see_near(comm, j->hosts);
  see_machine(comm, j->hosts);
  see_near(comm, j->hosts);
  assert_ok(tarn_comm_destroy(comm));
}

static const char *const layouts[] = {"a",    "aa",   "ab",      "aabb",
                                      "abab", "abcc", "aabaca",  "abcd",
                                      "aaaa", "baaa", "abcabca", "bbaacc"};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

TEST_LOOP(ranks_of_a_machine_share_memory, LAYOUTS) {
  near_run(&(near_job){.hosts = layouts[_i], .play = see_all});
}

// --- checksums -------------------------------------------------------------

static void check_sums(size_t rank) {
  (void)rank;
  ck_assert_int_eq(setenv("TARN_COMM_CHECK", "1", 1), 0);
}

static void see_checked(tarn_comm *comm, const near_job *j) {
  ck_assert(comm->messages == NULL || comm->messages->engine->checks);
  see_all(comm, j);
}

TEST_LOOP(messages_have_checksums_where_all_ranks_want_them, LAYOUTS) {
  near_run(&(near_job){
      .hosts = layouts[_i], .play = see_checked, .before = check_sums});
}

static void join_unlike(tarn_comm *world, void *context) {
  const near_job *j = context;
  size_t rank = tarn_comm_rank(world);
  tarn_comm *comm = NULL;
  near_say_host(j, rank);
  if (rank == 2) check_sums(rank);
  ck_assert_int_eq(
      tarn_comm_from_engine(&mail_ops, mail_desk(rank), rank, 3, NULL, &comm),
      TARN_E_INVALID);
  assert_error_says(
      "rank 0 has TARN_COMM_CHECK=0, rank 2 has TARN_COMM_CHECK=1");
  ck_assert_ptr_null(comm);
}

TEST(ranks_agree_on_checksums) {
  near_job j = {.hosts = "abc"};
  mail_open(3);
  ranks_run(&(ranks_plan){.size = 3, .body = join_unlike, .context = &j});
  mail_close();
}

// --- groups ----------------------------------------------------------------

typedef struct choice {
  int64_t color;
  int64_t key;
} choice;

static choice choose(uint64_t *state, size_t size) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  uint64_t drawn = *state >> 33;
  choice it = {(int64_t)(drawn % 3), (int64_t)(drawn / 3 % size)};
  if (drawn % 7 == 0) it.color = TARN_COMM_NONE;
  if (drawn % 11 == 0) it.key = -it.key;
  return it;
}

// The hosts of those that choose as |own|, in order.
static void list_hosts(const choice *all, choice own, const char *hosts,
                       char *out) {
  size_t ranks[MAIL_RANKS] = {0};
  size_t count = 0;
  for (size_t i = 0; i < strlen(hosts); i++) {
    size_t at = count;
    if (all[i].color != own.color) continue;
    while (at > 0 && all[ranks[at - 1]].key > all[i].key) {
      ranks[at] = ranks[at - 1];
      at--;
    }
    ranks[at] = i;
    count++;
  }
  memset(out, 0, MAIL_RANKS + 1);
  for (size_t i = 0; i < count; i++)
    out[i] = hosts[ranks[i]];
}

// Parts of parts; every other one outlives what it comes from.
static void split_on(tarn_comm *comm, const char *hosts, uint64_t state,
                     int depth) {
  size_t size = strlen(hosts);
  choice all[MAIL_RANKS] = {0};
  char theirs[MAIL_RANKS + 1];
  tarn_comm *group = (tarn_comm *)&group;
  for (size_t i = 0; i < size; i++)
    all[i] = choose(&state, size);
  choice own = all[tarn_comm_rank(comm)];
  assert_ok(tarn_comm_split(comm, own.color, own.key, &group));
  ck_assert_int_eq(group == NULL, own.color == TARN_COMM_NONE);
  see_near(comm, hosts);
  if (state % 2 == 0) assert_ok(tarn_comm_destroy(comm));
  if (group != NULL) {
    list_hosts(all, own, hosts, theirs);
    see_near(group, theirs);
    see_machine(group, theirs);
    if (depth > 1) {
      split_on(group, theirs, state + (uint64_t)own.color, depth - 1);
    } else {
      assert_ok(tarn_comm_destroy(group));
    }
  }
  if (state % 2 != 0) {
    see_near(comm, hosts);
    assert_ok(tarn_comm_destroy(comm));
  }
}

static void split_often(tarn_comm *comm, const near_job *j) {
  split_on(comm, j->hosts, j->number, 3);
}

TEST_LOOP(groups_share_memory_too, LAYOUTS) {
  for (size_t seed = 1; seed <= EFFORT(6, 2); seed++) {
    near_run(&(near_job){.hosts = layouts[_i],
                         .play = split_often,
                         .number = seed * 977 + (size_t)_i});
  }
}

// What knows no machines: each rank is on its own.
static void know_none(tarn_comm *world, void *context) {
  tarn_comm *comm = NULL;
  tarn_comm *group = NULL;
  size_t rank = tarn_comm_rank(world);
  (void)context;
  assert_ok(
      tarn_comm_create(&mail_ops, mail_desk(rank), rank, 3, 60000, &comm));
  ck_assert_ptr_null(tarn__comm_near_of(comm).comm);
  ck_assert_uint_eq(tarn_comm_machines(comm), 3);
  ck_assert_uint_eq(tarn_comm_machines(world), 1);
  assert_ok(tarn_comm_split_by_machine(comm, &group));
  ck_assert_uint_eq(tarn_comm_size(group), 1);
  assert_ok(tarn_comm_destroy(group));
  assert_ok(tarn_comm_split_by_machine(world, &group));
  ck_assert_uint_eq(tarn_comm_size(group), 3);
  assert_status(tarn_comm_split_by_machine(world, NULL), TARN_E_INVALID);
  assert_ok(tarn_comm_destroy(group));
  assert_status(tarn_comm_split_by_machine(NULL, &group), TARN_E_INVALID);
  assert_ok(tarn_comm_destroy(comm));
}

TEST(messages_alone_know_no_machines) {
  mail_open(3);
  ranks_run(&(ranks_plan){.size = 3, .body = know_none});
  mail_close();
}

// --- ranks that cannot meet ------------------------------------------------

static void be_alone(tarn_comm *comm, const near_job *j) {
  (void)j;
  see_near(comm, "wxyz");
  see_machine(comm, "wxyz");
  assert_ok(tarn_comm_destroy(comm));
}

static void have_no_folder(size_t rank) {
  (void)rank;
  ck_assert_int_eq(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
}

static void have_no_name(size_t rank) {
  char path[200];
  memset(path, 'x', sizeof path);
  path[0] = '/';
  path[sizeof path - 1] = '\0';
  if (rank % 2 == 0) ck_assert_int_eq(setenv("TMPDIR", path, 1), 0);
}

TEST(without_a_folder_each_is_alone) {
  near_run(
      &(near_job){.hosts = "abab", .play = be_alone, .before = have_no_folder});
  near_run(
      &(near_job){.hosts = "aaaa", .play = be_alone, .before = have_no_folder});
  near_run(
      &(near_job){.hosts = "aaaa", .play = be_alone, .before = have_no_name});
}

// The others do not see the folder of rank 0, as in other containers.
static void hide_folders(size_t rank) {
  if (rank % 2 == 0) return;
  const char *folder = getenv("TMPDIR");
  ck_assert_int_eq(unshare(CLONE_NEWNS), 0);
  ck_assert_int_eq(mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL), 0);
  ck_assert_int_eq(mount("none", folder, "tmpfs", 0, "mode=0700"), 0);
}

TEST(with_other_folders_each_is_alone) {
  if (geteuid() != 0 || system("unshare -m true 2>/dev/null") != 0) {
    note_skipped("folders that others do not see", "not root, or no mounts");
    return;
  }
  near_run(
      &(near_job){.hosts = "aaaa", .play = be_alone, .before = hide_folders});
  near_run(
      &(near_job){.hosts = "abba", .play = be_alone, .before = hide_folders});
}

// Of a machine whose ranks cannot meet others may.
static void have_half(size_t rank) {
  if (rank % 2 == 0) have_no_folder(rank);
}

static void be_half(tarn_comm *comm, const near_job *j) {
  (void)j;
  see_near(comm, "xbyb");
  assert_ok(tarn_comm_destroy(comm));
}

TEST(other_machines_are_not_concerned) {
  near_run(&(near_job){.hosts = "abab", .play = be_half, .before = have_half});
}

static void have_few_descriptors(size_t rank) {
  if (rank == 3) ranks_leave_descriptors(6);
}

static void count_alone(tarn_comm *comm, const near_job *j) {
  (void)j;
  ranks_lift_limit();
  see_near(comm, "awxyz");
  assert_ok(tarn_comm_destroy(comm));
}

TEST(without_descriptors_each_is_alone) {
  near_run(&(near_job){
      .hosts = "abbbb", .play = count_alone, .before = have_few_descriptors});
}

static void have_a_long_name(tarn_comm *world, void *context) {
  tarn_comm *comm = NULL;
  size_t rank = tarn_comm_rank(world);
  (void)context;
  char name[64] = "";
  memset(name, 'n', rank == 1 ? 48 : 47);
  ck_assert_int_eq(setenv("TARN_HOST", name, 1), 0);
  assert_status(
      tarn_comm_from_engine(&mail_ops, mail_desk(rank), rank, 2, NULL, &comm),
      TARN_E_INVALID);
  assert_error_says("rank 1: TARN_HOST 'nnn");
  ck_assert_ptr_null(comm);
}

TEST(a_name_may_be_too_long) {
  mail_open(2);
  ranks_run(&(ranks_plan){.size = 2, .body = have_a_long_name});
  mail_close();
}

// --- memory ----------------------------------------------------------------

static bool is_poor(const tarn_comm *comm) {
  return tarn_comm_rank(comm) == 1;
}

static void free_near(tarn__comm_near *near, size_t size) {
  assert_ok(tarn_comm_destroy(near->comm));
  tarn__near_free((size_t *)(uintptr_t)near->machines, size);
}

// The N-th allocation of one rank fails: all are told the same. While ranks
// meet, that one is lost to the others.
static void find_with_faults(tarn_comm *world, void *context) {
  const char *hosts = context;
  tarn_comm *comm = NULL;
  size_t rank = tarn_comm_rank(world);
  size_t size = strlen(hosts);
  size_t struck = 0;
  tarn_status status = TARN_E_NOMEM;
  near_say_host(&(near_job){.hosts = hosts}, rank);
  assert_ok(
      tarn_comm_create(&mail_ops, mail_desk(rank), rank, size, 3000, &comm));
  for (size_t n = 1; status != TARN_OK; n++) {
    tarn__comm_near near;
    int32_t all[MAIL_RANKS];
    if (is_poor(comm)) faults_arm(n, FAULTS_ONCE);
    status = tarn__near_find(comm, &near);
    if (is_poor(comm)) faults_disarm();
    ck_assert_int_eq(near.comm != NULL, status == TARN_OK);
    int32_t own = status;
    assert_ok(tarn_comm_allgather(comm, &own, sizeof own, all));
    for (size_t r = 0; r < size; r++)
      ck_assert_int_eq(all[r], status);
    struck += status != TARN_OK ? 1 : 0;
    free_near(&near, size);
  }
  ck_assert_uint_gt(struck, 5);
  assert_ok(tarn_comm_destroy(comm));
}

TEST(finding_may_fail_at_one) {
  static const char *const hosts[] = {"aab", "aaa"};
  for (size_t i = 0; i < 2; i++) {
    mail_open(3);
    ranks_run(&(ranks_plan){.size = 3,
                            .body = find_with_faults,
                            .context = (void *)(uintptr_t)hosts[i]});
    mail_close();
  }
}

// Groups on several machines, and on one.
static void split_with_faults(tarn_comm *comm, const near_job *j) {
  for (int64_t colors = 1; colors <= 2; colors++) {
    tarn_status status = TARN_E_NOMEM;
    tarn_comm *group = NULL;
    size_t struck = 0;
    int64_t rank = (int64_t)tarn_comm_rank(comm);
    for (size_t n = 1; status != TARN_OK; n++) {
      if (is_poor(comm)) faults_arm(n, FAULTS_ONCE);
      status = tarn_comm_split(comm, rank / 2 % colors, -rank, &group);
      if (is_poor(comm)) faults_disarm();
      ck_assert_int_eq(group != NULL, status == TARN_OK);
      if (status == TARN_OK) break;
      ck_assert_int_eq(status, TARN_E_NOMEM);
      assert_error_says("rank 1: ");
      struck++;
    }
    ck_assert_uint_gt(struck, colors == 1 ? 6 : 3);
    see_near(group, colors == 1 ? "bbaa" : rank < 2 ? "aa" : "bb");
    assert_ok(tarn_comm_destroy(group));
  }
  see_near(comm, j->hosts);
  assert_ok(tarn_comm_destroy(comm));
}

TEST(a_split_may_fail_at_one) {
  near_run(&(near_job){.hosts = "aabb", .play = split_with_faults});
}

// --- fork ------------------------------------------------------------------

static void fork_one(tarn_comm *comm, const near_job *j) {
  fflush(NULL);
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) {
    child_begin(60);
    MUST(tarn_comm_check(comm) == TARN_E_STATE);
    MUST(tarn_comm_split_by_machine(comm, &comm) == TARN_E_STATE);
    comm = NULL;
    _exit(0);
  }
  assert_child_ended_well(child);
  child = fork();
  require(child >= 0);
  if (child == 0) {
    child_begin(60);
    MUST(tarn_comm_machines(comm) == 2);
    MUST(tarn_comm_destroy(comm) == TARN_OK);
    _exit(0);
  }
  assert_child_ended_well(child);
  see_all(comm, j);
}

TEST(a_child_frees_and_no_more) {
  near_run(&(near_job){.hosts = "aabb", .play = fork_one});
}

int main(void) {
  faults_install();
  return run_tests();
}
