// fio's terse output, version 3: fields between semicolons, of all processes
// together.
//
// A table is in large pages where the system has them, which makes requests of
// a MiB one piece of memory, and twice as fast on some disks. fio gets the same
// from its malloc.
#include "table_fio.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit/process.h"
#include "table_bench.h"

enum {
  FIELD_ERROR = 4,
  FIELD_READ_KIB_S = 6,
  FIELD_READS_S = 7,
  FIELD_WRITTEN_KIB_S = 47,
  FIELD_WRITES_S = 48,
  WORDS_MOST = 24,
  WORD_SIZE = TABLE_PATH_SIZE + 32,
  LINE_SIZE = 4096,
};

static const double seconds_most = 120;

// --- what it is told ---------------------------------------------------------

typedef struct words {
  char texts[WORDS_MOST][WORD_SIZE];
  const char *all[WORDS_MOST + 1];
  size_t count;
} words;

__attribute__((format(printf, 2, 3))) static void say(words *w,
                                                      const char *format, ...) {
  va_list arguments;
  char *text = w->texts[w->count];
  va_start(arguments, format);
  vsnprintf(text, WORD_SIZE, format, arguments);
  va_end(arguments);
  w->all[w->count++] = text;
}

// libaio is in each fio of Debian's, and where io_uring is forbidden.
static void say_all(words *w, const table_fio_job *job) {
  say(w, "fio");
  say(w, "--name=table");
  say(w, "--filename=%s", job->path);
  say(w, "--rw=%s", job->action);
  say(w, "--bs=%zu", job->block);
  say(w, "--iodepth=%zu", job->depth);
  say(w, "--numjobs=%zu", job->processes);
  say(w, "--size=%zu", job->part);
  say(w, "--offset_increment=%zu", job->part);
  say(w, "--ioengine=libaio");
  say(w, "--direct=1");
  say(w, "--iomem_align=2M");
  say(w, "--fallocate=none");
  say(w, "--group_reporting");
  say(w, "--output-format=terse");
  say(w, "--terse-version=3");
  if (strstr(job->action, "w") == NULL) say(w, "--readonly");
  if (job->seconds > 0) {
    say(w, "--time_based");
    say(w, "--runtime=%.0fms", job->seconds * 1e3);
  }
}

// --- what it says ------------------------------------------------------------

static double field(const char *line, size_t index) {
  for (; index > 0 && line != NULL; index--) {
    line = strchr(line, ';');
    if (line != NULL) line++;
  }
  return line != NULL ? strtod(line, NULL) : 0;
}

static bool take(const char *text, table_fio_speed *out, char *why) {
  enum { KIB = 1024 };
  const char *line = strstr(text, "3;fio-");
  if (line == NULL || field(line, FIELD_ERROR) != 0) {
    snprintf(why, TABLE_TEXT_SIZE, "fio says %.150s", text);
    why[strcspn(why, "\n")] = '\0';
    return false;
  }
  *out =
      (table_fio_speed){.read_bytes = field(line, FIELD_READ_KIB_S) * KIB,
                        .reads = field(line, FIELD_READS_S),
                        .written_bytes = field(line, FIELD_WRITTEN_KIB_S) * KIB,
                        .writes = field(line, FIELD_WRITES_S)};
  return true;
}

static void read_all(int from, char text[LINE_SIZE]) {
  size_t got = 0;
  ssize_t some = 1;
  char rest[LINE_SIZE];
  while (some > 0 || (some < 0 && errno == EINTR)) {
    bool full = got == LINE_SIZE - 1;
    some = full ? read(from, rest, sizeof rest)
                : read(from, text + got, LINE_SIZE - 1 - got);
    if (some > 0 && !full) got += (size_t)some;
  }
  text[got] = '\0';
}

static void prepare(void *unused) {
  (void)unused;
  (void)setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", 1);
}

// --- running it --------------------------------------------------------------

static bool explain(int status, const char *text, char *why) {
  enum { NOT_FOUND = 127 };
  char how[PROCESS_TEXT_SIZE];
  if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_FOUND) {
    snprintf(why, TABLE_TEXT_SIZE, "fio is not installed");
  } else {
    snprintf(why, TABLE_TEXT_SIZE, "fio %s: %.100s",
             process_explain(status, how), text);
    why[strcspn(why, "\n")] = '\0';
  }
  return false;
}

bool table_fio_run(const table_fio_job *job, table_fio_speed *out, char *why) {
  words w = {0};
  int ends[2];
  char text[LINE_SIZE] = "";
  say_all(&w, job);
  if (pipe2(ends, O_CLOEXEC) != 0) {
    snprintf(why, TABLE_TEXT_SIZE, "no pipe: %s", strerror(errno));
    return false;
  }
  const process_spec spec = {.words = w.all,
                             .prepare = prepare,
                             .in = PROCESS_NOWHERE,
                             .out = ends[1],
                             .err = ends[1]};
  pid_t pid = process_start(&spec);
  close(ends[1]);
  if (pid > 0) read_all(ends[0], text);
  close(ends[0]);
  int status = pid > 0 ? process_wait(pid, seconds_most, NULL) : -1;
  if (!process_did_well(status)) return explain(status, text, why);
  return take(text, out, why);
}
