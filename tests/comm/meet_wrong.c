// Ranks that meet by a path, and what is wrong with the path, with the numbers
// and with the job; what a rank has too little of; two runs at one path.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "meet_kit.h"
#include "support/faults.h"

static const uint64_t SHORT_MS = 300;

static tarn_status meet_alone_at(const char *path) {
  tarn_comm *comm = (tarn_comm *)&comm;
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = SHORT_MS};
  size_t descriptors = ranks_descriptors();
  tarn_status status = tarn_comm_meet(path, 0, 1, &options, &comm);
  if (status != TARN_OK) {
    ck_assert_ptr_null(comm);
    ck_assert_uint_eq(ranks_descriptors(), descriptors);
  }
  if (status == TARN_OK) assert_ok(tarn_comm_destroy(comm));
  return status;
}

// --- paths -----------------------------------------------------------------

TEST(a_path_has_a_length_and_a_name) {
  static const struct {
    const char *end;  // behind the folder, or all of it
    bool alone;
    tarn_status status;
    const char *text;
  } paths[] = {
      {"", true, TARN_E_INVALID, "the path has 0 bytes, not 1 to 107"},
      {"/", true, TARN_E_INVALID, "is the path of a folder"},
      {"/", false, TARN_E_INVALID, "is the path of a folder"},
      {"/.", false, TARN_E_INVALID, "is not a socket of ranks"},
      {"/none/ranks", false, TARN_E_IO, "/none': No such file or directory"},
  };
  char path[256];
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    snprintf(path, sizeof path, "%s%s", paths[i].alone ? "" : group_folder(),
             paths[i].end);
    assert_status(meet_alone_at(path), paths[i].status);
    assert_error_says(paths[i].text);
  }
  memset(path, 'x', sizeof path);
  path[0] = '/';
  path[108] = '\0';
  assert_status(meet_alone_at(path), TARN_E_INVALID);
  assert_error_says("the path has 108 bytes, not 1 to 107");
  assert_ok(meet_alone_at(group_path()));
  group_see_empty();
}

static void put_file(void) {
  int fd = open(group_path(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  ck_assert_int_ge(fd, 0);
  close(fd);
}

static void put_folder(void) {
  ck_assert_int_eq(mkdir(group_path(), 0700), 0);
}

static void put_pipe(void) {
  ck_assert_int_eq(mkfifo(group_path(), 0600), 0);
}

static void put_link(void) {
  ck_assert_int_eq(symlink("elsewhere", group_path()), 0);
}

// A socket of another type, with a listener.
static void put_stream(void) {
  ck_assert_int_eq(listen(bind_there(SOCK_STREAM), 1), 0);
}

TEST(what_is_no_socket_of_ranks_stays) {
  void (*const puts[])(void) = {put_file, put_folder, put_pipe, put_link,
                                put_stream};
  for (size_t i = 0; i < sizeof puts / sizeof *puts; i++) {
    struct stat before;
    struct stat after;
    puts[i]();
    ck_assert_int_eq(lstat(group_path(), &before), 0);
    assert_status(meet_alone_at(group_path()), TARN_E_INVALID);
    assert_error_says("is not a socket of ranks");
    ck_assert_int_eq(lstat(group_path(), &after), 0);
    ck_assert(before.st_ino == after.st_ino);
    ck_assert_int_eq(remove(group_path()), 0);
  }
  group_see_empty();
}

TEST(a_folder_is_the_users_alone) {
  static const mode_t modes[] = {0755, 0777, 0770, 0701, 0740, 0500};
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    ck_assert_int_eq(chmod(group_folder(), modes[i]), 0);
    assert_status(meet_alone_at(group_path()), TARN_E_INVALID);
    assert_error_says("not 0700");
  }
  ck_assert_int_eq(chmod(group_folder(), 0700), 0);
  if (getuid() != 0) {
    note_skipped("a folder of another user", "this is not root");
  } else {
    ck_assert_int_eq(chown(group_folder(), MEET_NOBODY, (gid_t)-1), 0);
    assert_status(meet_alone_at(group_path()), TARN_E_INVALID);
    assert_error_says("belongs to another user");
    ck_assert_int_eq(chown(group_folder(), 0, (gid_t)-1), 0);
  }
  group_see_empty();
}

// --- arguments -------------------------------------------------------------

TEST(arguments_are_checked) {
  char job[400];
  tarn_comm *comm = NULL;
  tarn_comm_options options = {.struct_size = sizeof options, .job = job};
  const char *path = group_path();
  memset(job, 'j', sizeof job);
  job[256] = '\0';
  assert_status(tarn_comm_meet(NULL, 0, 1, NULL, &comm), TARN_E_INVALID);
  assert_status(tarn_comm_meet(path, 0, 1, NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_comm_meet(path, 0, 0, NULL, &comm), TARN_E_INVALID);
  assert_status(tarn_comm_meet(path, 2, 2, NULL, &comm), TARN_E_INVALID);
  assert_status(tarn_comm_meet(path, 0, 257, NULL, &comm), TARN_E_INVALID);
  assert_status(tarn_comm_meet(path, 0, 1, &options, &comm), TARN_E_INVALID);
  assert_error_says("the job has more than 255 bytes");
  job[255] = '\0';
  assert_ok(tarn_comm_meet(path, 0, 1, &options, &comm));
  assert_ok(tarn_comm_destroy(comm));
  options = (tarn_comm_options){.struct_size = sizeof options,
                                .flags = TARN_COMM_ALONE};
  assert_status(tarn_comm_meet(path, 0, 1, &options, &comm), TARN_E_INVALID);
  // A caller who knows of no job.
  options = (tarn_comm_options){.struct_size = offsetof(tarn_comm_options, job),
                                .job = (const char *)1};
  assert_ok(tarn_comm_meet(path, 0, 1, &options, &comm));
  assert_ok(tarn_comm_destroy(comm));
  group_see_empty();
}

// --- ranks that do not fit -------------------------------------------------

static pid_t start(size_t word, size_t rank, size_t size, const char *job,
                   uint64_t timeout_ms) {
  group_joiner joiner = joiner_of(rank, size);
  joiner.job = job;
  joiner.timeout_ms = timeout_ms;
  joiner.word = &group_words()[word];
  return group_start(&joiner);
}

// Rank 0, and the rank that has told its end at |word|, meet.
static void await_both(pid_t host, pid_t joiner, size_t word) {
  group_await(host);
  group_await(joiner);
  assert_told(0, TARN_OK, "");
  assert_told(word, TARN_OK, "");
}

// The third of three comes late, as rank |rank| of |size|: all are told |text|.
static void come_third(size_t rank, size_t size, const char *text) {
  pid_t children[3];
  children[0] = start(0, 0, 3, NULL, 0);
  group_await_host(NULL);
  children[1] = start(1, 1, 3, NULL, 0);
  usleep(200000);
  children[2] = start(2, rank, size, NULL, 0);
  for (size_t i = 0; i < 3; i++)
    group_await(children[i]);
  for (size_t i = 0; i < 3; i++)
    assert_told(i, TARN_E_INVALID, text);
  group_see_empty();
}

TEST(two_of_one_number_are_told_to_all) {
  come_third(1, 3, "two processes claim to be rank 1");
}

TEST(two_sizes_are_told_to_all) {
  come_third(2, 5, "size is 3 at rank 0, but 5 at rank 2");
}

TEST(two_hosts_of_one_number_are_told) {
  pid_t one = start(0, 0, 2, NULL, 0);
  pid_t other = start(1, 0, 2, NULL, 0);
  group_await(one);
  group_await(other);
  for (size_t i = 0; i < 2; i++)
    assert_told(i, TARN_E_INVALID, "two processes claim to be rank 0");
  group_see_empty();
}

TEST(another_job_is_sent_away) {
  pid_t host = start(0, 0, 2, "ours", 0);
  group_await_host(NULL);
  pid_t other = start(1, 1, 2, "theirs", 0);
  pid_t none = start(2, 1, 2, NULL, 0);
  group_await(other);
  group_await(none);
  assert_told(1, TARN_E_STATE, "ranks of another job meet at '");
  assert_told(2, TARN_E_STATE, "ranks of another job meet at '");
  pid_t joiner = start(3, 1, 2, "ours", 0);
  await_both(host, joiner, 3);
  group_see_empty();
}

TEST(who_was_sent_away_is_counted) {
  pid_t host = start(0, 0, 2, "ours", 600);
  group_await_host(NULL);
  group_await(start(1, 1, 2, "theirs", 0));
  group_await(host);
  assert_told(0, TARN_E_TIMEOUT, "1 of another job were sent away");
  group_see_empty();
}

// --- other users -----------------------------------------------------------

// Another user sends what a rank would: the connection ends unheard.
static _Noreturn void be_nobody(void) {
  struct sockaddr_un address = address_at(path_shown());
  unsigned char bytes[512] = {0};
  child_begin(60);
  MUST(become_nobody());
  int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
    _exit(errno == EACCES ? 2 : 3);
  (void)send(fd, bytes, sizeof bytes, MSG_NOSIGNAL);
  MUST(recv(fd, bytes, sizeof bytes, 0) <= 0);
  _exit(0);
}

static int end_of_nobody(void) {
  int end = 0;
  show_path();
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) be_nobody();
  ck_assert_int_eq(waitpid(child, &end, 0), child);
  ck_assert(WIFEXITED(end));
  return WEXITSTATUS(end);
}

TEST(another_user_is_not_let_in) {
  if (getuid() != 0) {
    note_skipped("another user", "this is not root");
    return;
  }
  pid_t host = start(0, 0, 2, NULL, 0);
  group_await_host(NULL);
  ck_assert_int_eq(end_of_nobody(), 2);
  // Nor if the folder is opened to all meanwhile.
  ck_assert_int_eq(chmod(group_folder(), 0777), 0);
  ck_assert_int_eq(chmod(group_path(), 0777), 0);
  ck_assert_int_eq(end_of_nobody(), 0);
  ck_assert_int_eq(chmod(group_folder(), 0700), 0);
  pid_t joiner = start(1, 1, 2, NULL, 0);
  await_both(host, joiner, 1);
  group_see_empty();
}

// --- processes that are none of ours ---------------------------------------

// One that says nothing, one that says nonsense, more than may wait: ranks meet
// all the same.
TEST(who_says_nothing_is_in_nobodys_way) {
  enum { SILENT = 90 };
  struct sockaddr_un address = address_at(group_path());
  int fds[SILENT];
  pid_t host = start(0, 0, 2, NULL, 0);
  group_await_host(NULL);
  for (int i = 0; i < SILENT; i++) {
    fds[i] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(
        connect(fds[i], (struct sockaddr *)&address, sizeof address), 0);
    if (i % 3 == 1) (void)send(fds[i], "nonsense", 8, MSG_NOSIGNAL);
  }
  pid_t joiner = start(1, 1, 2, NULL, 0);
  await_both(host, joiner, 1);
  for (int i = 0; i < SILENT; i++)
    close(fds[i]);
  group_see_empty();
}

// --- two runs at one path --------------------------------------------------

// Whatever becomes of either, no rank hangs and no run gets a rank of another.
static void start_twice(bool with_jobs) {
  enum { RANKS = 4 };
  static const char *const jobs[] = {"one", "other"};
  pid_t children[2 * RANKS];
  for (size_t i = 0; i < 2 * RANKS; i++) {
    group_joiner joiner = joiner_of(i / 2, RANKS);
    joiner.timeout_ms = 400;
    joiner.job = with_jobs ? jobs[i % 2] : NULL;
    joiner.group = (int64_t)(i % 2);
    joiner.word = &group_words()[i];
    children[i] = group_start(&joiner);
  }
  for (size_t i = 0; i < 2 * RANKS; i++)
    group_await(children[i]);
  for (size_t i = 0; i < 2 * RANKS; i++) {
    if (with_jobs) ck_assert_int_eq(group_words()[i].mixed, 0);
  }
}

TEST(two_runs_at_one_path_do_not_mix) {
  for (int run = 0; run < 10; run++)
    start_twice(true);
  for (int run = 0; run < 5; run++)
    start_twice(false);
  group_run(&(group_joiner){.path = group_path()}, 4, TARN_OK);
  group_see_empty();
}

// --- too little ------------------------------------------------------------

static void meet_and_leave(void *context) {
  tarn_comm *comm = NULL;
  tarn_status status = tarn_comm_meet(context, 0, 1, NULL, &comm);
  if (status != TARN_OK) ck_assert_int_eq(status, TARN_E_NOMEM);
  ck_assert_int_eq(comm != NULL, status == TARN_OK);
  assert_ok(tarn_comm_destroy(comm));
}

TEST(every_allocation_may_fail) {
  size_t before = ranks_descriptors();
  char path[128];
  snprintf(path, sizeof path, "%s", group_path());
  ck_assert_uint_gt(faults_sweep(meet_and_leave, path), 5);
  ck_assert_uint_eq(ranks_descriptors(), before);
  group_see_empty();
}

typedef struct shortage {
  size_t memory;  // the allocation that fails; 0: none
  int fds;        // descriptors that are to be had; -1: all
} shortage;

// One of three ranks has too little; the other two are told, or wait in vain.
static _Noreturn void be_poor(size_t rank, shortage lack) {
  tarn_comm *comm = NULL;
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = SHORT_MS};
  int64_t own = 0;
  int64_t all[3];
  child_begin(60);
  size_t before = ranks_descriptors();
  size_t held = tarn_host_memory();
  if (rank != 0) group_await_host(NULL);
  if (lack.fds >= 0) ranks_leave_descriptors((size_t)lack.fds);
  if (lack.memory != 0) faults_arm(lack.memory, FAULTS_ONCE);
  tarn_status status = tarn_comm_meet(path_shown(), rank, 3, &options, &comm);
  bool struck = faults_disarm();
  ranks_lift_limit();
  group_words()[0].status = status;
  MUST((comm != NULL) == (status == TARN_OK));
  if (status == TARN_OK)
    MUST(tarn_comm_allgather(comm, &own, sizeof own, all) == TARN_OK);
  MUST(status == TARN_OK || status == TARN_E_IO || status == TARN_E_NOMEM ||
       status == TARN_E_TIMEOUT || status == TARN_E_PEER_LOST);
  MUST(status != TARN_OK || !struck);
  MUST(tarn_comm_destroy(comm) == TARN_OK);
  MUST(ranks_descriptors() == before);
  MUST(tarn_host_memory() == held);
  _exit(0);
}

static tarn_status meet_with_a_poor_one(size_t rank, shortage lack) {
  pid_t children[3];
  const size_t others[] = {rank == 0 ? 1 : 0, rank == 2 ? 1 : 2};
  show_path();
  children[0] = fork();
  require(children[0] >= 0);
  if (children[0] == 0) be_poor(rank, lack);
  if (rank == 0) await_path_shown(NULL);
  for (size_t i = 0; i < 2; i++)
    children[1 + i] = start(1 + i, others[i], 3, NULL, SHORT_MS);
  for (size_t i = 0; i < 3; i++)
    group_await(children[i]);
  tarn_status status = group_words()[0].status;
  for (size_t i = 1; i < 3; i++) {
    tarn_status told = group_words()[i].status;
    if (status == TARN_OK) {
      ck_assert_int_eq(told, TARN_OK);
    } else {
      ck_assert_msg(told == TARN_E_TIMEOUT || told == TARN_E_PEER_LOST ||
                        told == TARN_E_IO || told == TARN_E_NOMEM,
                    "%s '%s'", tarn_status_name(told), group_words()[i].text);
    }
  }
  return status;
}

// At the host and at a joiner, until there is enough.
TEST(one_rank_may_lack_memory) {
  for (size_t rank = 0; rank < 2; rank++) {
    tarn_status status = TARN_E_NOMEM;
    size_t n = 1;
    for (; status != TARN_OK; n++) {
      status = meet_with_a_poor_one(rank, (shortage){.memory = n, .fds = -1});
      ck_assert_uint_lt(n, 60);
    }
    ck_assert_uint_gt(n, 5);
  }
  group_see_empty();
}

TEST(one_rank_may_lack_descriptors) {
  for (size_t rank = 0; rank < 2; rank++) {
    tarn_status status = TARN_E_IO;
    int n = 0;
    for (; status != TARN_OK; n++) {
      status = meet_with_a_poor_one(rank, (shortage){.fds = n});
      ck_assert_int_lt(n, 60);
    }
    ck_assert_int_gt(n, 5);
  }
  group_see_empty();
}

int main(void) {
  faults_install();
  return run_tests();
}
