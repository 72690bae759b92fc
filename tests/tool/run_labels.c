// `tarn run --label`: every line has its mark, and nothing is lost.
#include <sys/ioctl.h>
#include <time.h>

#include "run_kit.h"

enum { LINE = 64 << 10 };  // the longest that stays whole

TEST(each_line_has_its_mark) {
  tool_output o = run_script("echo one; echo two >&2; echo; echo three", "-n",
                             "3", "--label");
  ck_assert_int_eq(o.status, 0);
  for (int i = 0; i < 3; i++) {
    char out[64], err[32];
    snprintf(out, sizeof out, "[%d] one\n", i);
    snprintf(err, sizeof err, "[%d] two\n", i);
    ck_assert_uint_eq(count_of(o.out, out), 1);
    ck_assert_uint_eq(count_of(o.err, err), 1);
    snprintf(out, sizeof out, "[%d] \n", i);
    ck_assert_uint_eq(count_of(o.out, out), 1);
  }
  ck_assert_uint_eq(count_of(o.out, "\n"), 9);
  ck_assert_uint_eq(count_of(o.err, "\n"), 3);
}

TEST(begun_line_is_passed_on_at_the_end) {
  tool_output o = run_script("printf 'a\nb'; printf c >&2", "-n", "1", "-l");
  ck_assert_int_eq(o.status, 0);
  ck_assert_str_eq(o.out, "[0] a\n[0] b\n");
  ck_assert_str_eq(o.err, "[0] c\n");
}

// What a rank that is killed had begun, too; the tool's word stands behind it.
TEST(begun_line_of_the_killed) {
  tool_output o = run_script("printf dying >&2; kill -KILL $$", "-n1", "-l");
  ck_assert_int_eq(o.status, 137);
  ck_assert_ptr_eq(strstr(o.err, "[0] dying\n"), o.err);
  assert_contains(o.err, "rank 0 was ended by signal 9");
}

// Lines of several ranks come in any order, those of one in their own.
TEST(lines_do_not_mix) {
  enum { RANKS = 4, LINES = 3000 };
  tool_output o =
      run_script("seq -f '%g of the lines' 1 3000", "-n", "4", "-l");
  int next[RANKS] = {1, 1, 1, 1};
  assert_done(&o);
  char *save = NULL;
  for (char *line = strtok_r(o.out, "\n", &save); line != NULL;
       line = strtok_r(NULL, "\n", &save)) {
    char expected[64];
    int rank = line[1] - '0';
    require(rank >= 0 && rank < RANKS);
    snprintf(expected, sizeof expected, "[%d] %d of the lines", rank,
             next[rank]++);
    require(strcmp(line, expected) == 0);
  }
  for (int i = 0; i < RANKS; i++)
    ck_assert_int_eq(next[i], LINES + 1);
}

TEST(bytes_stay_as_they_are) {
  static const char expected[] = "[0] a\0b\377\33[2J\r\n[0] \0\n";
  launcher l = launch_script(NULL, "printf 'a\\0b\\377\\33[2J\\r\\n\\0\\n'",
                             "-n", "1", "-l");
  char got[sizeof expected] = "";
  size_t used = 0;
  for (ssize_t n; (n = read(l.out, got + used, sizeof got - used)) > 0;)
    used += (size_t)n;
  ck_assert_uint_eq(used, sizeof expected - 1);
  ck_assert_mem_eq(got, expected, used);
  ck_assert_int_eq(wait_for(&l), 0);
}

// A line of |size| bytes comes as lines of at most LINE.
static void check_long(size_t size, bool has_newline) {
  char script[128];
  snprintf(script, sizeof script, "head -c %zu /dev/zero | tr '\\0' x%s", size,
           has_newline ? "; echo" : "");
  tool_output o = tool_as_done(run_script(script, "-n", "2", "-l"));
  size_t pieces = size / LINE + (size % LINE != 0 || size == 0);
  if (has_newline && size % LINE == 0) pieces++;
  ck_assert_uint_eq(count_of(o.out, "\n"), 2 * pieces);
  ck_assert_uint_eq(count_of(o.out, "[0] x"), size / LINE + (size % LINE != 0));
  ck_assert_uint_eq(count_of(o.out, "x"), 2 * size);
}

TEST(long_lines_are_cut_and_not_lost) {
  check_long(LINE - 1, true);
  check_long(LINE - 1, false);
  check_long(LINE, true);
  check_long(LINE, false);
  check_long(LINE + 1, true);
  check_long(5 * LINE + 17, true);
}

// Together more than all buffers on the way.
TEST(much_from_many) {
  const char *script =
      "head -c 200000 /dev/zero | tr '\\0' '\\n'; "
      "head -c 50000 /dev/zero | tr '\\0' '\\n' >&2";
  tool_output o = tool_ended(0, run_script(script, "-n", "7", "-l"));
  ck_assert_uint_eq(count_of(o.out, "\n"), 1400000);
  ck_assert_uint_eq(count_of(o.err, "\n"), 350000);
  ck_assert_uint_eq(count_of(o.out, "[6] \n"), 200000);
}

// --- where it goes ---------------------------------------------------------

// A rank whose lines no reader takes is told so as without the launcher.
TEST(reader_that_leaves) {
  launcher l = launch_script(NULL, "exec yes", "-n", "2", "-l");
  await_lines(&l, 1);
  ck_assert_int_eq(close(l.out), 0);
  l.out = -1;
  ck_assert_int_eq(wait_for(&l), 128 + SIGPIPE);
}

TEST(full_disk) {
  int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ck_assert_int_ge(full, 0);
  tool_output o = tool_run_to(full, "run", "-n", "1", "-l", "echo", "lost");
  assert_ended(o, 1,
               "tarn run: the output could not be written to stdout: No space "
               "left on device\n");
  close(full);
}

static int left_in(int fd) {
  int left = 0;
  ck_assert_int_eq(ioctl(fd, FIONREAD, &left), 0);
  return left;
}

static void rest(void) {
  nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

// Waits until nothing more comes into it.
static void await_full(int fd) {
  for (int same = 0, before = 0; same < 10;) {
    rest();
    int now = left_in(fd);
    same = now > 0 && now == before ? same + 1 : 0;
    before = now;
  }
}

// Signals the launcher until one ends it: what it is sent while there are ranks
// goes to them.
static void assert_obeys(const launcher *l) {
  int status = 0;
  do {
    ck_assert_int_eq(kill(l->pid, SIGTERM), 0);
    rest();
  } while (waitpid(l->pid, &status, WNOHANG) == 0);
  ck_assert(WIFSIGNALED(status));
  ck_assert_int_eq(WTERMSIG(status), SIGTERM);
  close(l->out);
}

// The launcher obeys without a reader: its first signal goes to the ranks,
// and a second one, once they have ended, ends it.
TEST(reader_that_sleeps) {
  launcher l = launch_script(NULL, "exec yes", "-n", "2", "-l");
  await_full(l.out);
  assert_obeys(&l);
}

static void join_outputs(void) {
  dup2(STDOUT_FILENO, STDERR_FILENO);
}

// Also when it says itself how they ended, without a reader.
TEST(reader_that_sleeps_over_a_failure) {
  launcher l = launch_script(join_outputs, "exec yes", "-n", "2", "-l");
  await_full(l.out);
  assert_obeys(&l);
  l = launch_script(join_outputs, "exec yes", "-n", "2");
  await_full(l.out);
  assert_obeys(&l);
}

// What a rank leaves running does not keep the launcher, nor lose what was
// written.
TEST(what_a_rank_leaves_behind) {
  tool_output o =
      tool_as_done(run_script("sleep 1000 & echo $!", "-n", "1", "-l"));
  ck_assert_ptr_eq(strstr(o.out, "[0] "), o.out);
  pid_t left = (pid_t)atol(o.out + 4);
  ck_assert_int_gt(left, 1);
  ck_assert_int_eq(kill(left, SIGKILL), 0);
}
