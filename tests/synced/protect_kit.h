// protect_kit.h - a protected buffer, and children that touch its
// pages: they die of it or live.
#ifndef TARN_TESTS_SYNCED_PROTECT_KIT_H_
#define TARN_TESTS_SYNCED_PROTECT_KIT_H_

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/faults.h"
#include "support/on_devices.h"
#include "synced/protect.h"

// The host's memory is pinned by each device of the list, and by none.
#define PINNING_DEVICES (TEST_DEVICES + 1)

static tarn_place away;       // memory that the host cannot touch
static tarn_device *pinning;  // that pins the host's memory; NULL: none
static tarn_synced *buffer;
static size_t page;
static size_t size;  // three pages and a bit

static inline tarn_synced *create(size_t bytes, uint32_t flags) {
  tarn_synced *made = NULL;
  tarn_synced_options options = {
      .struct_size = sizeof options, .device = pinning, .flags = flags};
  assert_ok(tarn_synced_create(bytes, &options, &made));
  return made;
}

static inline void set_up(tarn_device *device) {
  page = tarn__os_page();
  size = 3 * page + 100;
  pinning = device;
  bool is_away = device != NULL && device_has(device, TEST_NEEDS_DISCRETE);
  away = tarn_place_on(is_away ? device : open_discrete());
  buffer = create(size, TARN_SYNCED_PROTECT);
}

static inline void set_up_pinned(int i) {
  set_up(i == 0 ? NULL : open_device(test_devices[i - 1]));
}

static inline void tear_down(void) {
  assert_ok(tarn_synced_destroy(buffer));
}

// What became of a child that touched |at|.
static inline bool child_lives(char *at, bool writes) {
  int ended = 0;
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    (void)signal(SIGSEGV,
                 SIG_DFL);  // a sanitizer would tell about it at length
    volatile char *byte = at;
    char value = *byte;
    if (writes) *byte = value;
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &ended, 0), child);
  bool lives = WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
  bool faulted = WIFSIGNALED(ended) && WTERMSIG(ended) == SIGSEGV;
  ck_assert_msg(lives || faulted, "a child ended with 0x%x", (unsigned)ended);
  return lives;
}

static inline void assert_none(char *at) {
  ck_assert_msg(!child_lives(at, false), "stale bytes could be read");
}

static inline void assert_read(char *at) {
  ck_assert_msg(child_lives(at, false), "valid bytes could not be read");
  ck_assert_msg(!child_lives(at, true), "valid bytes could be written");
}

static inline void assert_write(char *at) {
  ck_assert_msg(child_lives(at, true), "open bytes could not be written");
}

static inline void begin(tarn_access *access, size_t offset, size_t bytes,
                         tarn_place place, uint32_t mode) {
  assert_ok(
      tarn_synced_begin(buffer, offset, bytes, place, mode, NULL, access));
}

static inline void end(tarn_access *access) {
  assert_ok(tarn_synced_end(access));
}

static inline void write_at(tarn_place place, size_t offset, size_t bytes) {
  tarn_access access;
  begin(&access, offset, bytes, place, TARN_WRITE_DISCARD);
  if (access.pointer != NULL) memset(access.pointer, 7, access.size);
  end(&access);
}

// The host's memory, all of it valid.
static inline char *fill(void) {
  tarn_access access;
  begin(&access, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD);
  char *at = access.pointer;
  memset(at, 42, size);
  end(&access);
  return at;
}

#endif  // TARN_TESTS_SYNCED_PROTECT_KIT_H_
