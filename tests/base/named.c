// Sockets with names, and the lock of their folder.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/os.h"
#include "base/os_peer.h"
#include "support/child.h"
#include "support/run.h"

static char place[] = "/tmp/tarn-named-XXXXXX";
static char path[64];
static tarn__os_folder folder;

static void open_place(void) {
  memcpy(place + sizeof place - 7, "XXXXXX", 6);
  ck_assert(tarn__os_make_folder(place));
  snprintf(path, sizeof path, "%s/name", place);
  ck_assert(tarn__os_folder_open(place, &folder));
}

static void close_place(void) {
  tarn__os_folder_close(&folder);
  ck_assert_int_eq(folder.fd, -1);
  tarn__os_remove_folder(place);
  ck_assert(!tarn__os_folder_open(place, &folder));
  ck_assert_int_eq(errno, ENOENT);
}

TEST(a_folder_says_what_it_is) {
  open_place();
  ck_assert_uint_eq(folder.mode, 0700);
  ck_assert(folder.is_own);
  ck_assert(!folder.is_of_network);
  close_place();
  ck_assert(!tarn__os_folder_open("/dev/null", &folder));
  ck_assert_int_eq(errno, ENOTDIR);
}

static void find_it_locked(void) {
  tarn__os_folder again;
  MUST(tarn__os_folder_open(place, &again));
  MUST(!tarn__os_folder_lock(&again));
  MUST(errno == EWOULDBLOCK);
}

// It ends with its lock.
static void lock_and_end(void) {
  tarn__os_folder again;
  MUST(tarn__os_folder_open(place, &again));
  MUST(tarn__os_folder_lock(&again));
}

TEST(a_lock_is_of_one_process) {
  open_place();
  ck_assert(tarn__os_folder_lock(&folder));
  fork_and_run(find_it_locked);
  tarn__os_folder_unlock(&folder);
  fork_and_run(lock_and_end);
  ck_assert(tarn__os_folder_lock(&folder));
  tarn__os_folder_unlock(&folder);
  close_place();
}

TEST(messages_go_both_ways_with_descriptors) {
  int fds[3] = {-1, -1, -1};
  bool ready[3];
  char text[8];
  uint64_t inode = 1;
  tarn__os_message message;
  open_place();
  ck_assert_int_eq(tarn__os_folder_look(&folder, "name", &inode),
                   TARN__OS_NOTHING);
  ck_assert_uint_eq(inode, 0);
  ck_assert_int_eq(tarn__os_connect(path), -1);
  ck_assert_int_eq(errno, ENOENT);
  int listener = tarn__os_listen(path, 4);
  ck_assert_int_ge(listener, 3);
  ck_assert_int_eq(tarn__os_listen(path, 4), -1);
  ck_assert_int_eq(errno, EADDRINUSE);
  ck_assert_int_eq(tarn__os_folder_look(&folder, "name", &inode),
                   TARN__OS_SOCKET);
  ck_assert_uint_ne(inode, 0);
  ck_assert_int_eq(tarn__os_accept(listener), -1);
  ck_assert_int_eq(errno, EAGAIN);
  int guest = tarn__os_connect(path);
  int host = tarn__os_accept(listener);
  ck_assert(tarn__os_is_of_user(guest) && tarn__os_is_of_user(host));
  fds[0] = listener;
  fds[2] = host;
  tarn__os_await_any(fds, 3, 0, ready);
  ck_assert(!ready[0] && !ready[1] && !ready[2]);
  ck_assert(tarn__os_put(guest, "hello", 6, -1));
  tarn__os_await_any(fds, 3, 1000000000, ready);
  ck_assert(!ready[0] && !ready[1] && ready[2]);
  ck_assert(tarn__os_take(host, text, sizeof text, &message));
  ck_assert_str_eq(text, "hello");
  ck_assert(tarn__os_put(host, "fd", 3, host));
  ck_assert(tarn__os_take(guest, text, sizeof text, &message));
  ck_assert_int_ge(message.fd, 3);
  tarn__os_close(message.fd);
  tarn__os_stop_listening(listener);
  ck_assert_int_eq(tarn__os_connect(path), -1);
  ck_assert_int_eq(errno, ECONNREFUSED);
  tarn__os_close(guest);
  tarn__os_close(host);
  ck_assert(tarn__os_folder_remove(&folder, "name"));
  ck_assert(!tarn__os_folder_remove(&folder, "name"));
  close_place();
}

TEST(a_path_that_is_too_long_is_refused) {
  char longer[TARN__OS_MOST_PATH + 2];
  memset(longer, 'x', sizeof longer);
  longer[sizeof longer - 1] = '\0';
  ck_assert_int_eq(tarn__os_listen(longer, 1), -1);
  ck_assert_int_eq(errno, ENAMETOOLONG);
  ck_assert_int_eq(tarn__os_connect(longer), -1);
  ck_assert_int_eq(errno, ENAMETOOLONG);
}

TEST(a_machine_has_a_name) {
  char one[48];
  char other[48];
  char little[4];
  tarn__os_machine(one, sizeof one);
  tarn__os_machine(other, sizeof other);
  ck_assert_str_eq(one, other);
  tarn__os_machine(little, sizeof little);
  ck_assert_uint_le(strlen(little), 3);
}
