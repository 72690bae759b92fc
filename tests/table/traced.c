// What a store and a load by threads ask of the system, seen from outside by
// strace: what a load says it has read was read by pread, and what a store
// writes is brought to the disk before it gets its name, and the name after it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/run.h"

enum { MOST_FDS = 1024, LINE = 1024, ROWS = 30000 * 256, HEAD = 4096 };

static char folder[64];
static char log_path[96];

// What the program says of its load.
static size_t said_bytes;
static size_t said_direct;

// --- running it ------------------------------------------------------------

static bool has_strace(void) {
  return system("strace -e trace=none true >/dev/null 2>&1") == 0;
}

// Calls by descriptors come with the files' names. A leak cannot be looked for
// in a process that is traced.
static void trace_program(void) {
  char command[512];
  char method[32] = "";
  snprintf(command, sizeof command,
           "ASAN_OPTIONS=detect_leaks=0 strace -f -y -o %s -e "
           "trace=pread64,pwrite64,fdatasync,fsync,rename '%s' %s/x.npy",
           log_path, TARN_TABLE_PROGRAM, folder);
  FILE *out = popen(command, "r");
  ck_assert_ptr_nonnull(out);
  ck_assert_int_eq(
      fscanf(out, "%zu %zu %31s", &said_bytes, &said_direct, method), 3);
  ck_assert_int_eq(pclose(out), 0);
  ck_assert_str_eq(method, "threads");
}

// --- the log ---------------------------------------------------------------

typedef struct call {
  char name[16];
  bool is_temporary;  // of the file before it has its name
  bool is_table;      // of the file that has it
  size_t offset;
  long result;
} call;

// "pid pread64(5<path>, ..., size, offset) = result"; calls that are cut in two
// by those of other threads are joined before.
static bool parse(const char *line, call *out) {
  const char *open = strchr(line, '(');
  const char *equals = strrchr(line, '=');
  const char *name = open;
  *out = (call){.result = -1};
  if (open == NULL || equals == NULL) return false;
  while (name > line && name[-1] != ' ')
    name--;
  snprintf(out->name, sizeof out->name, "%.*s", (int)(open - name), name);
  out->is_temporary = strstr(open, ".new") != NULL;
  out->is_table = !out->is_temporary && strstr(open, "x.npy") != NULL;
  out->result = strtol(equals + 1, NULL, 10);
  const char *last = equals;
  while (last > open && *last != ',')
    last--;
  out->offset = strtoul(last + 1, NULL, 10);
  return true;
}

// The first half of a call of each thread that is under way.
typedef struct halves {
  long pid[64];
  char text[64][LINE];
  size_t count;
} halves;

static bool join(halves *h, char *line) {
  long pid = strtol(line, NULL, 10);
  char *cut = strstr(line, " <unfinished ...>");
  char *rest = strstr(line, " resumed>");
  if (cut != NULL) {
    ck_assert_uint_lt(h->count, 64);
    *cut = '\0';
    h->pid[h->count] = pid;
    snprintf(h->text[h->count++], LINE, "%s", line);
    return false;
  }
  for (size_t i = h->count; rest != NULL && i-- > 0;) {
    if (h->pid[i] != pid) continue;
    char whole[LINE];
    snprintf(whole, sizeof whole, "%.500s%.500s", h->text[i],
             rest + strlen(" resumed>"));
    h->pid[i] = -1;
    snprintf(line, LINE, "%s", whole);
    return true;
  }
  return rest == NULL;
}

static void for_each_call(void (*look)(const call *c)) {
  static halves h;
  char line[LINE];
  call c;
  memset(&h, 0, sizeof h);
  FILE *in = fopen(log_path, "r");
  ck_assert_ptr_nonnull(in);
  while (fgets(line, sizeof line, in) != NULL)
    if (join(&h, line) && parse(line, &c)) look(&c);
  fclose(in);
}

// --- what is wanted --------------------------------------------------------

static struct {
  size_t read;      // bytes of rows, of the table
  size_t written;   // of rows, of the file that becomes it
  size_t unsynced;  // writes since the last sync
  size_t renames;
  size_t after;  // syncs of the folder after it
} seen;

static bool is(const call *c, const char *name) {
  return strcmp(c->name, name) == 0;
}

// The look at both ends of a file, by which ranks compare it, is shorter than
// any read of rows here.
static void look(const call *c) {
  enum { LOOK = 1 << 16 };
  bool is_row = c->offset >= HEAD && c->offset < HEAD + ROWS;
  if (is(c, "pread64") && c->is_table && is_row && c->result > LOOK)
    seen.read += (size_t)c->result;
  if (is(c, "pwrite64") && c->is_temporary) {
    ck_assert_uint_eq(seen.renames, 0);
    seen.unsynced++;
    if (is_row) seen.written += (size_t)c->result;
  }
  if (is(c, "fdatasync") && c->is_temporary) {
    ck_assert_int_eq(c->result, 0);
    seen.unsynced = 0;
  }
  if (is(c, "rename")) {
    ck_assert_uint_eq(seen.unsynced, 0);
    ck_assert_uint_eq(seen.written, ROWS);
    seen.renames++;
  }
  if (is(c, "fsync") && seen.renames == 1) seen.after++;
}

TEST(calls_of_the_system_are_those_that_are_told) {
  if (!has_strace()) {
    note_skipped("system calls", "strace is not installed, or may not trace");
    return;
  }
  snprintf(folder, sizeof folder, "/tmp/tarn-traced-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(log_path, sizeof log_path, "%s/log", folder);
  trace_program();
  for_each_call(look);
  ck_assert_uint_eq(said_bytes, ROWS);
  ck_assert_uint_ge(seen.read, said_bytes);
  ck_assert_uint_lt(seen.read, said_bytes + (1 << 20));
  ck_assert_uint_le(said_direct, seen.read);
  ck_assert_uint_eq(seen.renames, 1);
  ck_assert_uint_eq(seen.after, 1);
  char command[96];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}
