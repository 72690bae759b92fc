// meet_kit.h - what the tests of ranks that meet have in common: what
// a rank was told, the path as others see it, and an allgather over memory.
#ifndef TARN_TESTS_COMM_MEET_KIT_H_
#define TARN_TESTS_COMM_MEET_KIT_H_

#include <grp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "support/child.h"
#include "support/group.h"
#include "support/ranks.h"
#include "support/run.h"

enum { MEET_NOBODY = 65534 };

// --- by a path -------------------------------------------------------------

static inline group_joiner joiner_of(size_t rank, size_t size) {
  return (group_joiner){.path = group_path(),
                        .rank = rank,
                        .size = size,
                        .word = &group_words()[rank]};
}

// What the process with that word was told.
static inline void assert_told(size_t word, tarn_status status,
                               const char *text) {
  const group_word *told = &group_words()[word];
  ck_assert_msg(told->status == status, "%zu: %s '%s'", word,
                tarn_status_name(told->status), told->text);
  ck_assert_msg(strstr(told->text, text) != NULL, "%zu: '%s'", word,
                told->text);
}

// A child has a path of its own: this one is its parent's.
static inline void show_path(void) {
  snprintf(group_words()[GROUP_MOST - 1].text, 128, "%s", group_path());
}

static inline const char *path_shown(void) {
  return group_words()[GROUP_MOST - 1].text;
}

// For 30 ms at most: a host that dies before it listens leaves nothing to wait
// for.
static inline void await_path_shown(void *unused) {
  (void)unused;
  for (int i = 0; i < 30 && access(path_shown(), F_OK) != 0; i++)
    usleep(1000);
}

static inline struct sockaddr_un address_at(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof address.sun_path, "%.107s", path);
  return address;
}

// A socket that no rank has put there.
static inline int bind_there(int type) {
  struct sockaddr_un address = address_at(group_path());
  int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  return fd;
}

// Of root only.
static inline bool become_nobody(void) {
  return setgroups(0, NULL) == 0 &&
         setresuid(MEET_NOBODY, MEET_NOBODY, MEET_NOBODY) == 0;
}

// --- by an allgather -------------------------------------------------------

enum { MEET_MOST = 16, MEET_ROOM = 1024 };

typedef struct meet_board {
  unsigned char bytes[MEET_MOST][MEET_ROOM];
  atomic_int came[MEET_MOST];
} meet_board;

static inline meet_board *meet_board_of_all(void) {
  static meet_board *board;
  if (board == NULL) board = ranks_shared(sizeof *board);
  return board;
}

// A rank of tarn_comm_meet_by. What it is told is in its group_word.
typedef struct meet_member {
  size_t rank;
  size_t size;
  uint64_t timeout_ms;       // also of the allgather
  tarn_comm_gather *gather;  // its context is the member
  uint32_t flags;
  bool no_out;
  int wrong;  // the test's own
  void (*before)(void *context);
} meet_member;

// Each rank writes, and waits for the others no longer than its timeout. Called
// once by each.
static inline tarn_status meet_gather(void *context, const void *data,
                                      size_t size, void *out) {
  const meet_member *own = context;
  meet_board *board = meet_board_of_all();
  double end = ranks_seconds() + (double)own->timeout_ms / 1e3;
  MUST(size <= MEET_ROOM);
  memcpy(board->bytes[own->rank], data, size);
  atomic_fetch_add(&board->came[own->rank], 1);
  for (size_t rank = 0; rank < own->size; rank++) {
    while (atomic_load(&board->came[rank]) == 0) {
      if (ranks_seconds() > end) return TARN_E_TIMEOUT;
      usleep(200);
    }
    memcpy((unsigned char *)out + rank * size, board->bytes[rank], size);
  }
  return TARN_OK;
}

static inline _Noreturn void meet_be_member(meet_member own) {
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = own.timeout_ms,
                               .flags = own.flags};
  group_word *word = &group_words()[own.rank];
  tarn_comm *comm = NULL;
  child_begin(60);
  size_t before = ranks_descriptors();
  size_t held = tarn_host_memory();
  if (own.before != NULL) own.before(NULL);
  word->called = ranks_seconds();
  tarn_status status = tarn_comm_meet_by(own.gather, &own, own.rank, own.size,
                                         &options, own.no_out ? NULL : &comm);
  MUST((comm != NULL) == (status == TARN_OK));
  if (status == TARN_OK) status = tarn_comm_barrier(comm);
  word->answered = ranks_seconds();
  word->status = status;
  if (status != TARN_OK)
    snprintf(word->text, sizeof word->text, "%s", tarn_last_error());
  MUST(tarn_comm_destroy(comm) == TARN_OK);
  MUST(ranks_descriptors() == before);
  MUST(tarn_host_memory() == held);
  _exit(0);
}

// Before the first of a meeting.
static inline void meet_clear_board(void) {
  memset(meet_board_of_all(), 0, sizeof(meet_board));
  memset(group_words(), 0, MEET_MOST * sizeof(group_word));
}

static inline pid_t meet_start(meet_member member) {
  fflush(NULL);
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) meet_be_member(member);
  return child;
}

#endif  // TARN_TESTS_COMM_MEET_KIT_H_
