// What ranks leave in the system while they are there: nothing that has a name,
// nothing that a program which they start would inherit; and full folders for
// temporary files and shared memory are none of their business.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "own_world.h"
#include "support/run.h"
#include "support/strike.h"

enum { TIMEOUT_MS = 30000, RANKS = 3, SMALL_WORLD = 1 << 20 };

// --- what a rank calls -----------------------------------------------------

// Calls that give something a name, or make something that has one.
static const long naming[] = {
    SYS_shmget,  SYS_semget,  SYS_msgget,    SYS_mq_open, SYS_bind,
    SYS_mkdirat, SYS_mknodat, SYS_symlinkat, SYS_linkat,  SYS_renameat2,
#ifdef SYS_mkdir
    SYS_mkdir,   SYS_mknod,   SYS_symlink,   SYS_link,    SYS_rename,
    SYS_creat,
#endif
};
enum { NAMING = sizeof naming / sizeof *naming };

// Calls that make descriptors, the argument that has their flags, and the flag
// that closes them on exec.
static const struct making {
  const char *text;
  long number;
  int argument;
  uint64_t flag;

} makings[] = {
    {"memory files", SYS_memfd_create, 1, MFD_CLOEXEC},
    {"files opened", SYS_openat, 2, O_CLOEXEC},
    {"socket pairs", SYS_socketpair, 1, SOCK_CLOEXEC},
    {"sockets", SYS_socket, 1, SOCK_CLOEXEC},
    {"messages received", SYS_recvmsg, 2, MSG_CMSG_CLOEXEC},
    {"process descriptors", SYS_pidfd_open, 1, 0},
    {"mappings", SYS_mmap, 3, 0},
};
enum { MAKINGS = sizeof makings / sizeof *makings };

// Calls whose descriptors cannot be closed on exec.
static const long inheriting[] = {
    SYS_dup,
#ifdef SYS_dup2
    SYS_dup2,
    SYS_pipe,
    SYS_open,
#endif
};
enum { INHERITING = sizeof inheriting / sizeof *inheriting };

typedef struct sight {
  size_t counts[MAKINGS];
} sight;

static void see_no_name(uint64_t number, const uint64_t *arguments) {
  for (int i = 0; i < NAMING; i++)
    ck_assert_msg(number != (uint64_t)naming[i], "call %lu gives a name",
                  (unsigned long)number);
  if (number == SYS_openat) {
    bool makes = (arguments[2] & O_CREAT) != 0 ||
                 (arguments[2] & O_TMPFILE) == O_TMPFILE;
    ck_assert_msg(!makes, "a file is made: openat with %#lx",
                  (unsigned long)arguments[2]);
  }
}

static void see_no_heir(uint64_t number, const uint64_t *arguments) {
  for (int i = 0; i < INHERITING; i++)
    ck_assert_msg(number != (uint64_t)inheriting[i], "call %lu is inherited",
                  (unsigned long)number);
  ck_assert_msg(number != SYS_fcntl || arguments[1] != F_DUPFD,
                "a duplicate is inherited");
}

static void look(void *context, uint64_t number, const uint64_t *arguments) {
  sight *seen = context;
  see_no_name(number, arguments);
  see_no_heir(number, arguments);
  for (int i = 0; i < MAKINGS; i++) {
    const struct making *it = &makings[i];
    if (number != (uint64_t)it->number) continue;
    seen->counts[i]++;
    ck_assert_msg((arguments[it->argument] & it->flag) == it->flag,
                  "%s: flags %#lx are inherited", it->text,
                  (unsigned long)arguments[it->argument]);
  }
}

static void report(const char *name, const sight *seen) {
  printf("%s:", name);
  for (int i = 0; i < MAKINGS; i++) {
    if (seen->counts[i] != 0)
      printf(" %zu %s;", seen->counts[i], makings[i].text);
  }
  printf("\n");
}

TEST_LOOP(a_rank_makes_nothing_with_a_name, (int)scene_count) {
  for (size_t victim = 0; victim < 2; victim++) {
    sight seen = {0};
    strike_end end = strike_run(&(strike){.scene = &scenes[_i],
                                          .ranks = RANKS,
                                          .victim = victim,
                                          .step = SIZE_MAX,
                                          .timeout_ms = TIMEOUT_MS,
                                          .look = look,
                                          .context = &seen});
    ck_assert_uint_eq(end.told, 0);
    ck_assert_uint_gt(end.steps, 0);
    report(scenes[_i].name, &seen);
  }
}

// --- what a meeting makes --------------------------------------------------

static _Noreturn void make_a_meeting(void) {
  tarn_rendezvous *meeting = NULL;
  tracer_offer();
  if (tarn_rendezvous_create(RANKS, &meeting) != TARN_OK) _exit(1);
  tarn_rendezvous_destroy(meeting);
  _exit(0);
}

TEST(a_meeting_has_no_name) {
  sight seen = {0};
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) make_a_meeting();
  tracer trace = tracer_begin(child);
  ck_assert(!tracer_run(&trace, SIZE_MAX, look, &seen));
  ck_assert_int_eq(trace.end, 0);
  ck_assert_uint_eq(seen.counts[0], 1);
  ck_assert_uint_eq(seen.counts[2], RANKS);
  report("a meeting of 3", &seen);
}

// --- folders that are full -------------------------------------------------

TEST(full_folders_do_not_matter) {
  if (!own_world_enter(SMALL_WORLD)) {
    note_skipped("whole traces: full folders", "not permitted");
    return;
  }
  own_world_fill();
  size_t before = own_world_names();
  for (size_t i = 0; i < scene_count; i++) {
    strike_end end = strike_run(&(strike){.scene = &scenes[i],
                                          .ranks = RANKS,
                                          .step = SIZE_MAX,
                                          .timeout_ms = TIMEOUT_MS});
    ck_assert_uint_eq(end.told, 0);
  }
  ck_assert_uint_eq(own_world_names(), before);
}

int main(void) {
  if (!tracer_works()) {
    return skip_program("whole_traces", "processes cannot be traced here");
  }
  return run_tests();
}
