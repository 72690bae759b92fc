#include "support/tool_run.h"

#include <check.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static char folder[256];

// ---------------------------------------------------------------------------
// Files
// ---------------------------------------------------------------------------

// References, so that a leak checker finds no leak.
static struct kept {
  char *text;
  struct kept *next;
} * kept;

char *tool_keep(char *text) {
  struct kept *one = malloc(sizeof *one);
  ck_assert_ptr_nonnull(one);
  *one = (struct kept){text, kept};
  kept = one;
  return text;
}

static char *read_stream(FILE *in) {
  char *text = NULL;
  size_t size = 0;
  FILE *out = open_memstream(&text, &size);
  ck_assert_ptr_nonnull(out);
  int c;
  while ((c = getc(in)) != EOF)
    putc(c, out);
  fclose(out);
  return tool_keep(text);
}

char *tool_read_file(const char *path) {
  FILE *in = fopen(path, "r");
  if (in == NULL) return NULL;
  char *text = read_stream(in);
  fclose(in);
  return text;
}

const char *tool_write_file(const char *path, const char *text) {
  FILE *out = fopen(path, "w");
  ck_assert_ptr_nonnull(out);
  ck_assert_int_ge(fputs(text, out), 0);
  ck_assert_int_eq(fclose(out), 0);
  return path;
}

void tool_files_begin(void) {
  const char *tmp = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/tarn-test-XXXXXX", tmp ? tmp : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static int remove_one(const char *path, const struct stat *info, int type,
                      struct FTW *at) {
  (void)info;
  (void)type;
  (void)at;
  return remove(path);
}

void tool_files_end(void) {
  nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

const char *tool_file(const char *name) {
  char *path = NULL;
  ck_assert_int_ge(asprintf(&path, "%s/%s", folder, name), 0);
  return tool_keep(path);
}

// ---------------------------------------------------------------------------
// The child
// ---------------------------------------------------------------------------

static _Noreturn void become(const char *path, int out_fd, int err_fd,
                             const char *const *argv) {
  signal(SIGPIPE, SIG_DFL);
  if (out_fd == TOOL_CLOSED) close(STDOUT_FILENO);
  if (out_fd >= 0) dup2(out_fd, STDOUT_FILENO);
  dup2(err_fd, STDERR_FILENO);
  execv(path, (char *const *)argv);
  _exit(127);
}

static int wait_for(pid_t pid, long *out_peak_kib) {
  int status = 0;
  struct rusage used;
  ck_assert_int_eq(wait4(pid, &status, 0, &used), pid);
  *out_peak_kib = used.ru_maxrss;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

tool_output tool_run_program(const char *path, int out_fd,
                             const char *const *argv) {
  FILE *out = tmpfile(), *err = tmpfile();
  ck_assert(out != NULL && err != NULL);
  if (out_fd == -1) out_fd = fileno(out);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) become(path, out_fd, fileno(err), argv);
  tool_output output = {0};
  output.status = wait_for(pid, &output.peak_kib);
  rewind(out);
  rewind(err);
  output.out = read_stream(out);
  output.err = read_stream(err);
  fclose(out);
  fclose(err);
  return output;
}

tool_output tool_run_line(const char *path, const char *line) {
  enum { MOST = 32 };
  const char *argv[MOST + 1] = {"tarn"};
  char *rest = tool_keep(strdup(line));
  for (size_t i = 1; rest != NULL; i++) {
    ck_assert_uint_lt(i, MOST);
    argv[i] = strsep(&rest, " ");
  }
  return tool_run_program(path, -1, argv);
}

void tool_output_free(tool_output *output) {
  free(output->out);
  free(output->err);
}
