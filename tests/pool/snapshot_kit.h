// snapshot_kit.h - a folder for snapshots, and what is in them.
#ifndef TARN_TESTS_POOL_SNAPSHOT_KIT_H_
#define TARN_TESTS_POOL_SNAPSHOT_KIT_H_

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include "kit.h"
#include "tarn/account.h"
#include "tarn/snapshot.h"

static const tarn_trace_format TARN = TARN_TRACE_FORMAT_TARN;
static char folder[200];

static inline void make_folder(void) {
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/tarn-test-XXXXXX",
           tmp != NULL ? tmp : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

// A path in the folder, until the fourth call from here.
static inline const char *path_of(const char *name) {
  static char paths[4][512];
  static unsigned next;
  char *path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

// Files in the folder; those that are being written are none.
static inline size_t count_files(void) {
  size_t count = 0;
  DIR *dir = opendir(folder);
  ck_assert_ptr_nonnull(dir);
  for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
    size_t length = strlen(e->d_name);
    bool fresh = length > 4 && strcmp(e->d_name + length - 4, ".new") == 0;
    if (e->d_name[0] != '.' && !fresh) count++;
  }
  closedir(dir);
  return count;
}

static inline bool is_there(const char *name) {
  return access(path_of(name), F_OK) == 0;
}

// Everything in it, also what was left of files that were not finished.
static inline void remove_folder(void) {
  DIR *dir = opendir(folder);
  ck_assert_ptr_nonnull(dir);
  for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
    if (e->d_name[0] != '.') unlink(path_of(e->d_name));
  }
  closedir(dir);
  ck_assert_int_eq(rmdir(folder), 0);
}

static inline tarn_trace *read_snapshot(const char *name) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_trace_read(path_of(name), NULL, &trace));
  return trace;
}

static inline size_t live_bytes_in(const tarn_trace *trace) {
  size_t bytes = 0;
  for (size_t i = 0; i < trace->block_count; i++) {
    if (trace->blocks[i].died == TARN_TRACE_NEVER) {
      bytes += trace->blocks[i].size;
    }
  }
  return bytes;
}

// The last refused request in it; NULL: there is none.
static inline const tarn_trace_event *refusal_in(const tarn_trace *trace) {
  const tarn_trace_event *found = NULL;
  for (size_t i = 0; i < trace->event_count; i++) {
    if (trace->events[i].kind == TARN_TRACE_OOM) found = &trace->events[i];
  }
  return found;
}

// The bytes of that request.
static inline size_t refused_in(const char *name) {
  tarn_trace *trace = read_snapshot(name);
  const tarn_trace_event *refused = refusal_in(trace);
  size_t size = refused != NULL ? refused->size : 0;
  tarn_trace_destroy(trace);
  return size;
}

// --- the log ---------------------------------------------------------------

static struct {
  size_t count;
  char last[512];
} told;

static inline void note_log(void *context, tarn_log_level level,
                            const char *text) {
  (void)context;
  if (level > TARN_LOG_WARN) return;
  told.count++;
  snprintf(told.last, sizeof told.last, "%s", text);
}

static inline void listen_to_log(void) {
  tarn_log_set(note_log, NULL, TARN_LOG_WARN);
}

#endif  // TARN_TESTS_POOL_SNAPSHOT_KIT_H_
