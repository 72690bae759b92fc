// Statuses, the thread's last error, the log callback.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "support/run.h"

TEST(every_status_has_its_name) {
  ck_assert_str_eq(tarn_status_name(TARN_OK), "TARN_OK");
  ck_assert_str_eq(tarn_status_name(TARN_FULL), "TARN_FULL");
  ck_assert_str_eq(tarn_status_name(TARN_PENDING), "TARN_PENDING");
  for (int s = TARN_E_INVALID; s >= TARN_E_IO; s--) {
    ck_assert_int_eq(strncmp(tarn_status_name((tarn_status)s), "TARN_E_", 7),
                     0);
  }
  ck_assert_str_eq(tarn_status_name((tarn_status)42), "TARN_?");
  ck_assert_str_eq(tarn_status_name((tarn_status)-42), "TARN_?");
}

TEST(version_is_that_of_the_header) {
  char text[32];
  snprintf(text, sizeof text, "%d.%d.%d", TARN_VERSION_MAJOR,
           TARN_VERSION_MINOR, TARN_VERSION_PATCH);
  ck_assert_str_eq(tarn_version(), text);
}

TEST(fail_returns_the_status_and_keeps_the_line) {
  ck_assert_str_eq(tarn_last_error(), "");
  ck_assert_int_eq(tarn__fail(TARN_E_STATE, "line %d", 1), TARN_E_STATE);
  ck_assert_str_eq(tarn_last_error(), "line 1");
}

TEST(code_outside_the_library_fails_likewise) {
  ck_assert_int_eq(tarn_fail(TARN_E_TIMEOUT, "an engine's text"),
                   TARN_E_TIMEOUT);
  ck_assert_str_eq(tarn_last_error(), "an engine's text");
  ck_assert_int_eq(tarn_fail(TARN_E_IO, NULL), TARN_E_IO);
  ck_assert_str_eq(tarn_last_error(), "");
}

TEST(the_last_error_may_be_its_own_argument) {
  ck_assert_int_eq(tarn__fail(TARN_E_IO, "cause"), TARN_E_IO);
  ck_assert_int_eq(tarn__fail(TARN_E_IO, "because %s", tarn_last_error()),
                   TARN_E_IO);
  ck_assert_str_eq(tarn_last_error(), "because cause");
}

TEST(a_long_line_is_cut_and_controls_are_neutralised) {
  char longer[2000];
  memset(longer, 'x', sizeof longer);
  longer[sizeof longer - 1] = '\0';
  ck_assert_int_eq(tarn__fail(TARN_E_IO, "%s", longer), TARN_E_IO);
  ck_assert_uint_eq(strlen(tarn_last_error()), 511);
  ck_assert_int_eq(tarn__fail(TARN_E_IO, "a\x1b[31mb\nc\x7f"), TARN_E_IO);
  ck_assert_str_eq(tarn_last_error(), "a?[31mb?c?");
  // U+009B is another way to say ESC [; U+00E4 is a letter.
  ck_assert_int_eq(tarn__fail(TARN_E_IO,
                              "a\xc2\x9b"
                              "31m \xc3\xa4 \xc2"),
                   TARN_E_IO);
  ck_assert_str_eq(tarn_last_error(), "a??31m \xc3\xa4 \xc2");
}

TEST(the_first_failure_outlives_others) {
  tarn__failure first = {.status = TARN_OK};
  tarn__fail(TARN_E_IO, "long ago");
  ck_assert_int_eq(tarn__failure_tell(&first), TARN_OK);
  tarn__failure_note(&first, TARN_OK);
  tarn__failure_note(&first, tarn__fail(TARN_FULL, "first"));
  tarn__failure_note(&first, tarn__fail(TARN_E_DEVICE, "second"));
  ck_assert_str_eq(tarn_last_error(), "second");
  ck_assert_int_eq(tarn__failure_tell(&first), TARN_FULL);
  ck_assert_str_eq(tarn_last_error(), "first");
  first = tarn__failure_of(tarn__fail(TARN_E_STATE, "one"));
  tarn__fail(TARN_E_IO, "other");
  ck_assert_int_eq(tarn__failure_tell(&first), TARN_E_STATE);
  ck_assert_str_eq(tarn_last_error(), "one");
}

static void *fail_elsewhere(void *out) {
  *(tarn_status *)out = tarn__fail(TARN_E_DEVICE, "elsewhere");
  return NULL;
}

TEST(each_thread_has_its_own_last_error) {
  pthread_t thread;
  tarn_status there = TARN_OK;
  ck_assert_int_eq(tarn__fail(TARN_E_INVALID, "here"), TARN_E_INVALID);
  pthread_create(&thread, NULL, fail_elsewhere, &there);
  pthread_join(thread, NULL);
  ck_assert_int_eq(there, TARN_E_DEVICE);
  ck_assert_str_eq(tarn_last_error(), "here");
}

typedef struct heard {
  int count;
  tarn_log_level level;
  char text[64];
} heard;

static void listen(void *context, tarn_log_level level, const char *message) {
  heard *h = context;
  h->count++;
  h->level = level;
  snprintf(h->text, sizeof h->text, "%s", message);
}

TEST(log_sends_what_is_grave_enough) {
  heard h = {0};
  tarn__log(TARN_LOG_ERROR, "nobody listens");
  tarn_log_set(listen, &h, TARN_LOG_WARN);
  tarn__log(TARN_LOG_INFO, "too light");
  ck_assert_int_eq(h.count, 0);
  tarn__log(TARN_LOG_WARN, "value %d", 7);
  ck_assert_int_eq(h.count, 1);
  ck_assert_int_eq(h.level, TARN_LOG_WARN);
  ck_assert_str_eq(h.text, "value 7");
  tarn__log(TARN_LOG_ERROR, "worse");
  ck_assert_int_eq(h.count, 2);
  tarn_log_set(NULL, NULL, TARN_LOG_INFO);
  tarn__log(TARN_LOG_ERROR, "nobody listens any more");
  ck_assert_int_eq(h.count, 2);
}

TEST(struct_sizes_of_older_and_newer_callers) {
  size_t size = 0;
  ck_assert(tarn__struct_size(0, 16, 32, &size));
  ck_assert_uint_eq(size, 16);
  ck_assert(tarn__struct_size(24, 16, 32, &size));
  ck_assert_uint_eq(size, 24);
  ck_assert(tarn__struct_size(64, 16, 32, &size));
  ck_assert_uint_eq(size, 32);
  ck_assert(!tarn__struct_size(8, 16, 32, &size));
}
