// Messages that no rank sent. A process that has inherited a way into a mailbox
// can put anything in: what does not know the token is dropped, with what it
// brings; what does, and lies, makes joining fail at all ranks, and never
// crashes or leaks.
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/comm.h"
#include "comm/local.h"
#include "support/ranks.h"
#include "support/run.h"

enum { RANKS = 2, NOBODY = 65534, LIMIT_S = 60 };

// As sockets.c has it.
typedef struct message {
  unsigned char token[TARN__TOKEN];
  uint32_t from;
  uint32_t brings;
} message;

// The way into the mailbox of rank 0, and a message that rank 1 would write.
typedef struct way {
  int mailbox;
  message honest;
} way;

// --- putting things in -----------------------------------------------------

static void put(int mailbox, const void *bytes, size_t size, const int *fds,
                size_t count) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(4 * sizeof(int))];
  } control = {0};
  struct iovec part = {(void *)(uintptr_t)bytes, size};
  struct msghdr packet = {.msg_iov = &part, .msg_iovlen = 1};
  if (count != 0) {
    packet.msg_control = control.bytes;
    packet.msg_controllen = CMSG_SPACE(count * sizeof(int));
    struct cmsghdr *head = CMSG_FIRSTHDR(&packet);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(head), fds, count * sizeof(int));
  }
  require(sendmsg(mailbox, &packet, MSG_DONTWAIT | MSG_NOSIGNAL) ==
          (ssize_t)size);
}

static void put_message(const way *to, message sent) {
  put(to->mailbox, &sent, sizeof sent, NULL, 0);
}

static void put_with(const way *to, message sent, int fd) {
  put(to->mailbox, &sent, sizeof sent, &fd, 1);
  close(fd);
}

static int some_memory(void) {
  int fd = memfd_create("forged", MFD_CLOEXEC);
  require(fd >= 0);
  return fd;
}

static int process_of(pid_t pid) {
  int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  require(fd >= 0);
  return fd;
}

// --- what is dropped -------------------------------------------------------

static void put_nothing(const way *to) {
  put(to->mailbox, "", 0, NULL, 0);
}

static void put_nothing_with_memory(const way *to) {
  int fd = some_memory();
  put(to->mailbox, "", 0, &fd, 1);
  close(fd);
}

static void put_little(const way *to) {
  put(to->mailbox, &to->honest, 5, NULL, 0);
}

static void put_too_much(const way *to) {
  char bytes[4000] = {0};
  memcpy(bytes, &to->honest, sizeof to->honest);
  put(to->mailbox, bytes, sizeof bytes, NULL, 0);
}

static void put_wrong_token(const way *to) {
  message sent = to->honest;
  sent.token[15] ^= 1;
  put_message(to, sent);
  put_with(to, sent, process_of(getpid()));
}

static void put_no_rank(const way *to) {
  message sent = to->honest;
  sent.from = RANKS;
  put_with(to, sent, process_of(getpid()));
  sent.from = UINT32_MAX;
  put_message(to, sent);
}

static void put_of_itself(const way *to) {
  message sent = to->honest;
  sent.from = 0;
  put_with(to, sent, some_memory());
}

static void put_many(const way *to) {
  char bytes[64] = {0};
  while (send(to->mailbox, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
    continue;
  require(errno == EAGAIN);
}

static void put_four_descriptors(const way *to) {
  int fds[4];
  message sent = to->honest;
  memset(sent.token, 0, sizeof sent.token);
  for (int i = 0; i < 4; i++)
    fds[i] = some_memory();
  put(to->mailbox, &sent, sizeof sent, fds, 4);
  for (int i = 0; i < 4; i++)
    close(fds[i]);
}

// From a process that has inherited all, and has another user now.
static void put_as_nobody(const way *to) {
  int end = 0;
  if (getuid() != 0) {
    note_skipped("comm forged: message of another user", "not root");
    return;
  }
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) {
    if (setgroups(0, NULL) != 0 || setresuid(NOBODY, NOBODY, NOBODY) != 0)
      _exit(1);
    put_with(to, to->honest, process_of(getpid()));
    _exit(0);
  }
  require(waitpid(child, &end, 0) == child && end == 0);
}

// --- what is refused -------------------------------------------------------

static void put_no_process(const way *to) {
  put_message(to, to->honest);
}

static void put_memory_for_process(const way *to) {
  put_with(to, to->honest, some_memory());
}

static void put_file_for_process(const way *to) {
  put_with(to, to->honest, open("/dev/null", O_RDONLY | O_CLOEXEC));
}

static void put_mailbox_for_process(const way *to) {
  put_with(to, to->honest, dup(to->mailbox));
}

static void put_two_processes(const way *to) {
  int fds[2] = {process_of(getpid()), process_of(getpid())};
  put(to->mailbox, &to->honest, sizeof to->honest, fds, 2);
  close(fds[0]);
  close(fds[1]);
}

static void put_another_process(const way *to) {
  put_with(to, to->honest, process_of(getppid()));
}

typedef struct forgery {
  const char *name;
  void (*put)(const way *to);
  bool refused;  // else it is dropped
} forgery;

static const forgery forgeries[] = {
    {"an empty message", put_nothing, false},
    {"an empty message with a descriptor", put_nothing_with_memory, false},
    {"a short message", put_little, false},
    {"a long message", put_too_much, false},
    {"a wrong token", put_wrong_token, false},
    {"no such rank", put_no_rank, false},
    {"its own number", put_of_itself, false},
    {"a mailbox full of zeros", put_many, false},
    {"four descriptors", put_four_descriptors, false},
    {"a message of another user", put_as_nobody, false},
    {"no process", put_no_process, true},
    {"memory for a process", put_memory_for_process, true},
    {"a file for a process", put_file_for_process, true},
    {"a mailbox for a process", put_mailbox_for_process, true},
    {"two processes", put_two_processes, true},
    {"the process of another", put_another_process, true},
};
enum { FORGERIES = sizeof forgeries / sizeof *forgeries };

// --- ranks that find it in their mailbox -----------------------------------

typedef struct outcome {
  tarn_status status;
  char text[256];
} outcome;

static void look_for_way(tarn_rendezvous *meeting, way *out) {
  char variable[TARN_RENDEZVOUS_VARIABLE];
  tarn__comm_area area;
  int fd = -1;
  assert_ok(tarn_rendezvous_hand_over(meeting, 0, variable, sizeof variable));
  require(sscanf(variable, "TARN_COMM=0:2:%d:", &fd) == 1);
  assert_ok(tarn__area_map(fd, RANKS, &area));
  *out = (way){.mailbox = area.members[0].send,
               .honest = {.from = 1, .brings = 1}};
  memcpy(out->honest.token, area.head->token, TARN__TOKEN);
  tarn__area_unmap(&area);
}

static _Noreturn void be_rank(tarn_rendezvous *meeting, size_t rank,
                              outcome *found, size_t descriptors) {
  tarn_comm *comm = NULL;
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = (uint64_t)LIMIT_S * 1000};
  signal(SIGALRM, SIG_DFL);  // Check's would end the test
  alarm(LIMIT_S);
  found->status = tarn_comm_join(meeting, rank, &options, &comm);
  if (found->status != TARN_OK)
    snprintf(found->text, sizeof found->text, "%s", tarn_last_error());
  tarn_rendezvous_destroy(meeting);
  if (comm != NULL && tarn_comm_barrier(comm) != TARN_OK) _exit(1);
  if (tarn_comm_destroy(comm) != TARN_OK) _exit(2);
  _exit(ranks_descriptors() == descriptors ? 0 : 3);
}

static void run(const forgery *forged, outcome *found) {
  pid_t children[RANKS];
  size_t descriptors = ranks_descriptors();
  tarn_rendezvous *meeting = NULL;
  way to;
  assert_ok(tarn_rendezvous_create(RANKS, &meeting));
  look_for_way(meeting, &to);
  forged->put(&to);
  for (size_t rank = 0; rank < RANKS; rank++) {
    children[rank] = fork();
    require(children[rank] >= 0);
    if (children[rank] == 0) be_rank(meeting, rank, &found[rank], descriptors);
  }
  tarn_rendezvous_destroy(meeting);
  for (size_t rank = 0; rank < RANKS; rank++) {
    int end = 0;
    ck_assert_int_eq(waitpid(children[rank], &end, 0), children[rank]);
    ck_assert_msg(end == 0, "%s: rank %zu ends with %#x", forged->name, rank,
                  (unsigned)end);
  }
  ck_assert_uint_eq(ranks_descriptors(), descriptors);
}

static void see(const forgery *forged, const outcome *found) {
  tarn_status expected = forged->refused ? TARN_E_IO : TARN_OK;
  for (size_t rank = 0; rank < RANKS; rank++) {
    printf("%-36s rank %zu: %s %s\n", forged->name, rank,
           tarn_status_name(found[rank].status), found[rank].text);
    ck_assert_int_eq(found[rank].status, expected);
    if (forged->refused)
      ck_assert_ptr_nonnull(strstr(found[rank].text, "rank 1"));
  }
}

TEST_LOOP(a_forged_message, FORGERIES) {
  outcome *found = ranks_shared(RANKS * sizeof *found);
  run(&forgeries[_i], found);
  see(&forgeries[_i], found);
}

// --- after joining ---------------------------------------------------------

// A child of rank 1 knows all that rank 1 does, but is another process.
static void forge_as_child(tarn_comm *comm) {
  const tarn__comm_local *local = comm->self;
  way to = {.mailbox = local->sockets->sends[0],
            .honest = {.from = 1, .brings = 1}};
  int end = 0;
  memcpy(to.honest.token, local->area.head->token, TARN__TOKEN);
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) {
    put_memory_for_process(&to);
    _exit(0);
  }
  require(waitpid(child, &end, 0) == child && end == 0);
}

static void share_after_a_forgery(tarn_comm *comm, void *context) {
  ino_t *inode = context;
  struct stat info;
  int fds[RANKS];
  int own = some_memory();
  if (tarn_comm_rank(comm) == 1) {
    forge_as_child(comm);
    require(fstat(own, &info) == 0);
    *inode = info.st_ino;
  }
  assert_ok(tarn_comm_barrier(comm));
  assert_ok(tarn_comm_share(comm, own, fds));
  if (tarn_comm_rank(comm) == 0) {
    require(fstat(fds[1], &info) == 0);
    ck_assert_uint_eq(info.st_ino, *inode);
  }
  close(fds[1 - tarn_comm_rank(comm)]);
  close(own);
}

RANKS_TEST(a_message_of_another_process, .size = RANKS,
           .body = share_after_a_forgery,
           .context = ranks_shared(sizeof(ino_t)))

// --- lengths ---------------------------------------------------------------

// Rank 1 says of its stream, or of another's, what cannot be, and then comes to
// every round, so that it is never late.
enum { TALKERS = 3, LIAR = 1 };

typedef struct lie {
  const char *name;
  size_t of;  // whose marks
  uint64_t marks[TALKERS + 1];
  bool with_data;  // not in the exchange of sizes, but in that of the bytes
} lie;

#define HUGE_MARK (UINT64_C(1) << 62)

static const lie *told;

// Rank 0 can have written its marks, and then it has arrived.
static void await_rank(const tarn__comm_local *local, size_t rank) {
  while (!tarn__area_has_arrived(&local->area, rank, local->round + 1))
    usleep(1000);
}

static tarn_status tell_lie(void *self, const void *send, const size_t *sizes,
                            const size_t *offsets, void *receive,
                            const size_t *receive_sizes,
                            const size_t *receive_offsets) {
  static bool honest_once;
  tarn__comm_local *local = self;
  if (told->with_data && !honest_once) {
    honest_once = true;
    return tarn__local_ops.alltoallv(self, send, sizes, offsets, receive,
                                     receive_sizes, receive_offsets);
  }
  if (told->of != LIAR) {
    uint64_t own[TALKERS + 1] = {16, 0, 8, 16};  // for 2, then for 0
    memcpy(tarn__local_slot(local), own, sizeof own);
    await_rank(local, told->of);
  }
  memcpy(tarn__area_slot(&local->area, told->of, local->round + 1), told->marks,
         sizeof told->marks);
  for (;;) {
    tarn_status status = tarn__local_round(local);
    if (status != TARN_OK) return status;
  }
}

static void be_lied_to(tarn_comm *comm, void *context) {
  static unsigned char bytes[TALKERS * 100];
  static unsigned char room[TALKERS * 100];
  size_t sizes[TALKERS];
  size_t offsets[TALKERS];
  (void)context;
  for (size_t r = 0; r < TALKERS; r++) {
    sizes[r] = 100;
    offsets[r] = r * 100;
  }
  alarm(LIMIT_S);
  if (tarn_comm_rank(comm) == LIAR) comm->ops.alltoallv = tell_lie;
  for (int i = 0; i < 2; i++) {
    assert_status(
        tarn_comm_alltoallv(comm, bytes, sizes, offsets, room, sizes, offsets),
        TARN_E_CORRUPT);
    assert_error_says(told->of == 0
                          ? "the data of rank 0 in the shared memory"
                          : "the data of rank 1 in the shared memory");
  }
  assert_status(tarn_comm_barrier(comm), TARN_E_CORRUPT);
}

// In the exchange of sizes each rank sends 8 bytes to each; rank 1 writes those
// for rank 2 first, then those for rank 0.
static const lie lies[] = {
    {"marks fall", LIAR, {4, 0, 8, 4}, false},
    {"a length beyond the last mark", LIAR, {16, 0, 8, HUGE_MARK}, false},
    {"a length below the last mark", LIAR, {16, 0, 8, 0}, false},
    {"a huge part for rank 2",
     LIAR,
     {HUGE_MARK, 0, HUGE_MARK - 8, HUGE_MARK},
     false},
    {"a huge part for rank 0", LIAR, {HUGE_MARK, 0, 8, HUGE_MARK}, false},
    {"nothing for anybody", LIAR, {0, 0, 0, 0}, false},
    {"marks fall where bytes go", LIAR, {4, 0, 100, 4}, true},
    {"a length beyond the bytes", LIAR, {200, 0, 100, HUGE_MARK}, true},
    {"a huge part where bytes go", LIAR, {HUGE_MARK, 0, 100, HUGE_MARK}, true},
    {"a huge part of rank 0 for rank 1",
     0,
     {0, HUGE_MARK, HUGE_MARK + 8, HUGE_MARK + 8},
     false},
};
enum { LIES = sizeof lies / sizeof *lies };

TEST_LOOP(a_lie_about_lengths, LIES) {
  told = &lies[_i];
  ranks_run(&(ranks_plan){
      .size = TALKERS, .body = be_lied_to, .timeout_ms = LIMIT_S * 1000});
}
