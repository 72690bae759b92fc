// What processes of one machine need of the system: mailboxes, descriptors of
// processes, words to sleep on. And sockets, against messages that are none.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "base/os_pages.h"
#include "base/os_peer.h"
#include "comm/local.h"
#include "support/ranks.h"
#include "support/run.h"

// --- mailboxes -------------------------------------------------------------

typedef struct mailbox {
  int receive;
  int send;
} mailbox;

static mailbox new_mailbox(void) {
  mailbox m;
  ck_assert(tarn__os_mailbox(&m.receive, &m.send));
  return m;
}

static void close_mailbox(mailbox m) {
  tarn__os_close(m.receive);
  tarn__os_close(m.send);
}

TEST(messages_stay_apart) {
  mailbox m = new_mailbox();
  tarn__os_message message;
  char bytes[8] = "";
  ck_assert(tarn__os_is_mailbox(m.receive) && tarn__os_is_mailbox(m.send));
  ck_assert(!tarn__os_take(m.receive, bytes, sizeof bytes, &message));
  ck_assert(tarn__os_put(m.send, "one", 4, -1));
  ck_assert(tarn__os_put(m.send, "three", 6, -1));
  ck_assert(tarn__os_take(m.receive, bytes, sizeof bytes, &message));
  ck_assert_str_eq(bytes, "one");
  ck_assert_uint_eq(message.size, 4);
  ck_assert_int_eq(message.fd, -1);
  ck_assert_int_eq(message.pid, getpid());
  ck_assert_uint_eq(message.uid, getuid());
  ck_assert(tarn__os_take(m.receive, bytes, sizeof bytes, &message));
  ck_assert_str_eq(bytes, "three");
  close_mailbox(m);
}

TEST(what_is_no_mailbox_is_told) {
  int ends[2];
  int stream[2];
  ck_assert_int_eq(pipe(ends), 0);
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, stream), 0);
  ck_assert(!tarn__os_is_mailbox(ends[0]));
  ck_assert(!tarn__os_is_mailbox(stream[0]));
  ck_assert(!tarn__os_is_mailbox(-1));
  for (int i = 0; i < 2; i++) {
    close(ends[i]);
    close(stream[i]);
  }
}

TEST(descriptors_are_passed_and_closed_on_exec) {
  mailbox m = new_mailbox();
  tarn__os_message message;
  char byte = 0;
  size_t before = ranks_descriptors();
  ck_assert(tarn__os_put(m.send, "x", 1, m.send));
  ck_assert(tarn__os_take(m.receive, &byte, 1, &message));
  ck_assert_int_ge(message.fd, 0);
  ck_assert_int_eq(fcntl(message.fd, F_GETFD), FD_CLOEXEC);
  ck_assert_uint_eq(ranks_descriptors(), before + 1);
  tarn__os_close(message.fd);
  // One that does not fit brings nothing, nor does one without room for it.
  ck_assert(tarn__os_put(m.send, "xyz", 3, m.send));
  ck_assert(tarn__os_take(m.receive, &byte, 1, &message));
  ck_assert_int_eq(message.fd, -1);
  ck_assert_uint_eq(ranks_descriptors(), before);
  close_mailbox(m);
}

static void put_two(int send) {
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(2 * sizeof(int))];
  } room = {0};
  const int fds[2] = {0, 1};
  struct iovec part = {"x", 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = room.bytes,
                           .msg_controllen = sizeof room.bytes};
  room.header = (struct cmsghdr){.cmsg_len = CMSG_LEN(sizeof fds),
                                 .cmsg_level = SOL_SOCKET,
                                 .cmsg_type = SCM_RIGHTS};
  memcpy(CMSG_DATA(&room.header), fds, sizeof fds);
  ck_assert_int_eq(sendmsg(send, &message, 0), 1);
}

TEST(two_descriptors_are_none) {
  mailbox m = new_mailbox();
  tarn__os_message message;
  char byte = 0;
  size_t before = ranks_descriptors();
  put_two(m.send);
  ck_assert(tarn__os_take(m.receive, &byte, 1, &message));
  ck_assert_int_eq(message.fd, -1);
  ck_assert_uint_eq(ranks_descriptors(), before);
  close_mailbox(m);
}

TEST(a_full_mailbox_and_a_closed_one_say_so) {
  mailbox m = new_mailbox();
  size_t sent = 0;
  while (tarn__os_put(m.send, "x", 1, -1))
    require(sent++ < 1000000);
  ck_assert_int_eq(errno, EAGAIN);
  ck_assert_uint_gt(sent, 10);
  int sign = m.send;
  ck_assert_uint_eq(tarn__os_find_ended(&sign, 1), 1);
  tarn__os_close(m.receive);
  ck_assert_uint_eq(tarn__os_find_ended(&sign, 1), 0);
  ck_assert(!tarn__os_put(m.send, "x", 1, -1));
  tarn__os_close(m.send);
}

// What a program prints would otherwise stand in the memory of others.
TEST(nothing_is_one_of_the_first_three) {
  close(0);
  mailbox m = new_mailbox();
  char byte = 0;
  tarn__os_message message;
  int fds[] = {m.receive,
               m.send,
               tarn__os_shared_file("test", 4096),
               tarn__os_memory_file("test", 4096),
               tarn__os_duplicate(m.send),
               tarn__os_this_process(),
               -1};
  enum { MADE = sizeof fds / sizeof *fds };
  ck_assert(tarn__os_put(m.send, "x", 1, m.send));
  ck_assert(tarn__os_take(m.receive, &byte, 1, &message));
  fds[MADE - 1] = message.fd;
  for (size_t i = 0; i < MADE; i++) {
    ck_assert_int_gt(fds[i], 2);
    ck_assert_int_eq(fcntl(fds[i], F_GETFD), FD_CLOEXEC);
  }
  ck_assert(!tarn__os_is_open(0));
  tarn__os_close_all(fds, MADE);
}

// --- processes -------------------------------------------------------------

TEST(the_end_of_a_process_shows) {
  int ends[2];
  mailbox m = new_mailbox();
  ck_assert_int_eq(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    int own = tarn__os_this_process();
    ck_assert(tarn__os_put(m.send, "x", 1, own));
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &byte, 1), 0);
    _exit(0);
  }
  tarn__os_message message = {.fd = -1};
  char byte = 0;
  while (!tarn__os_take(m.receive, &byte, 1, &message))
    tarn__os_await(m.receive, 1000000000);
  ck_assert_int_eq(message.pid, child);
  ck_assert(tarn__os_is_process(message.fd, child));
  ck_assert(!tarn__os_is_process(message.fd, getpid()));
  ck_assert(!tarn__os_is_process(m.send, child));
  int signs[200];
  for (int i = 0; i < 200; i++)
    signs[i] = -1;
  signs[170] = message.fd;
  ck_assert_uint_eq(tarn__os_find_ended(signs, 200), 200);
  close(ends[1]);
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
  ck_assert_uint_eq(tarn__os_find_ended(signs, 200), 170);
  // Its number may be another's by now, and is not told any more.
  ck_assert(tarn__os_is_process(message.fd, child));
  tarn__os_close(message.fd);
  close(ends[0]);
  close_mailbox(m);
}

// --- shared memory and words -----------------------------------------------

TEST(shared_memory_keeps_its_size) {
  int fd = tarn__os_shared_file("test", 8192);
  ck_assert_int_ge(fd, 0);
  ck_assert(tarn__os_is_memory_file(fd, "test", 8192));
  ck_assert_int_ne(ftruncate(fd, 4096), 0);
  ck_assert_int_ne(ftruncate(fd, 16384), 0);
  char *one = tarn__os_map_shared(fd, 8192);
  char *other = tarn__os_map_shared(fd, 8192);
  ck_assert(one != NULL && other != NULL && one != other);
  one[8191] = 7;
  ck_assert_int_eq(other[8191], 7);
  tarn__os_unmap(one, 8192);
  tarn__os_unmap(other, 8192);
  tarn__os_close(fd);
}

static void *sleep_on(void *word) {
  while (atomic_load((atomic_uint *)word) == 1)
    tarn__os_sleep_on(word, 1, 60000000000);
  return NULL;
}

TEST(sleepers_are_woken) {
  static atomic_uint word = 1;
  pthread_t thread;
  tarn__os_sleep_on(&word, 0, 60000000000);  // not that value: at once
  tarn__os_sleep_on(&word, 1, 1000000);      // no wake: it times out
  ck_assert_int_eq(pthread_create(&thread, NULL, sleep_on, &word), 0);
  atomic_store(&word, 2);
  tarn__os_wake_all(&word);
  pthread_join(thread, NULL);
}

TEST(random_bytes_differ) {
  unsigned char one[16];
  unsigned char other[16];
  ck_assert(tarn__os_random(one, sizeof one));
  ck_assert(tarn__os_random(other, sizeof other));
  ck_assert_mem_ne(one, other, sizeof one);
}

// A look at many must not need as many numbers as there are.
TEST(ends_show_where_few_descriptors_are_allowed) {
  int signs[40];
  mailbox m = new_mailbox();
  int own = tarn__os_this_process();
  struct rlimit before;
  ck_assert_int_ge(own, 0);
  for (int i = 0; i < 40; i++)
    signs[i] = i == 39 ? m.send : own;
  ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &before), 0);
  struct rlimit few = {.rlim_cur = 10, .rlim_max = before.rlim_max};
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
  size_t alive = tarn__os_find_ended(signs, 40);
  tarn__os_close(m.receive);
  size_t ended = tarn__os_find_ended(signs, 40);
  ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
  ck_assert_uint_eq(alive, 40);
  ck_assert_uint_eq(ended, 39);
  tarn__os_close(own);
  tarn__os_close(m.send);
}

// --- messages that are none -------------------------------------------------

typedef struct forged {
  unsigned char token[TARN__TOKEN];
  uint32_t from;
  uint32_t brings;
} forged;

// Rank 1, whose messages to rank 0 come back to it.
TEST(forged_messages_are_dropped) {
  int fd = -1;
  tarn__comm_area area;
  tarn__comm_local *local = NULL;
  tarn__comm_message entry;
  size_t before = ranks_descriptors();
  assert_ok(tarn__area_create(2, &fd, &area));
  tarn__os_close(fd);
  assert_ok(tarn__local_create(area, 1, 1000, NULL, NULL, &local));
  tarn__comm_sockets *sockets = local->sockets;
  ck_assert(tarn__os_mailbox(&sockets->mailbox, &sockets->sends[0]));
  size_t open = ranks_descriptors();
  forged message = {.from = 2};  // no such rank
  memcpy(message.token, area.head->token, sizeof message.token);
  ck_assert(tarn__os_put(sockets->sends[0], &message, sizeof message, 1));
  message.from = 1;  // too short
  ck_assert(tarn__os_put(sockets->sends[0], &message, sizeof message - 1, 1));
  message.token[15] ^= 1;  // another token
  ck_assert(tarn__os_put(sockets->sends[0], &message, sizeof message, 1));
  ck_assert(tarn__os_put(sockets->sends[0], "x", 1, 1));
  tarn__sockets_receive(sockets);
  for (size_t rank = 0; rank < 2; rank++)
    ck_assert(!tarn__mailbox_has(local, rank));
  ck_assert_uint_eq(ranks_descriptors(), open);
  // The first of two stays.
  ck_assert(tarn__mailbox_send(local, 0, 1));
  ck_assert(tarn__mailbox_send(local, 0, 1));
  tarn__sockets_receive(sockets);
  ck_assert_uint_eq(ranks_descriptors(), open + 1);
  ck_assert(tarn__mailbox_take(local, 1, &entry));
  ck_assert(!tarn__mailbox_has(local, 1));
  tarn__os_close(entry.fd);
  // What cannot be passed is missed.
  ck_assert(tarn__mailbox_send(local, 0, 9999));
  tarn__sockets_receive(sockets);
  ck_assert(tarn__mailbox_take(local, 1, &entry));
  ck_assert(entry.cut && entry.fd == -1);
  // A message that is not taken is closed with the mailbox.
  ck_assert(tarn__mailbox_send(local, 0, 1));
  tarn__sockets_receive(sockets);
  tarn__local_destroy(local);
  ck_assert_uint_eq(ranks_descriptors(), before);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// --- leases and files of other processes -----------------------------------

TEST(leases_end_with_their_holders) {
  int watch = -1;
  int hold = -1;
  size_t before = ranks_descriptors();
  ck_assert(tarn__os_lease(&watch, &hold));
  ck_assert(!tarn__os_lease_ended(watch, 0));
  pid_t child = fork();
  if (child == 0) {
    (void)write(hold, "x", 1);  // what is written says nothing
    pause();
    _exit(0);
  }
  tarn__os_close(hold);
  ck_assert(!tarn__os_lease_ended(watch, 20000000));
  ck_assert_int_eq(kill(child, SIGKILL), 0);
  ck_assert(tarn__os_lease_ended(watch, UINT64_MAX));
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
  tarn__os_close(watch);
  ck_assert_uint_eq(ranks_descriptors(), before);
}

TEST(files_are_opened_by_name_while_they_are_there) {
  tarn__os_file_name name;
  tarn__os_file_name none;
  int file = tarn__os_memory_file("tarn-test", 8192);
  ck_assert_int_ge(file, 3);
  ck_assert(tarn__os_name_file(file, &name));
  ck_assert(!tarn__os_name_file(9999, &none));
  pid_t child = fork();
  if (child == 0) {
    tarn__os_close(file);
    int again = tarn__os_open_named(&name);
    _exit(again >= 3 && tarn__os_is_memory_file(again, "tarn-test", 8192) ? 0
                                                                          : 1);
  }
  int end = 0;
  ck_assert_int_eq(waitpid(child, &end, 0), child);
  ck_assert_int_eq(end, 0);
  for (int i = 0; i < 4; i++) {
    none = name;
    if (i == 0) none.inode++;
    if (i == 1) none.device++;
    if (i == 2) none.fd = 9999;
    if (i == 3) none.process = 0;
    ck_assert_int_eq(tarn__os_open_named(&none), -1);
  }
  // Another file has the number.
  tarn__os_close(file);
  ck_assert_int_eq(tarn__os_open_named(&name), -1);
  int other = tarn__os_memory_file("tarn-test", 8192);
  ck_assert_int_eq(tarn__os_open_named(&name), -1);
  tarn__os_close(other);
}
