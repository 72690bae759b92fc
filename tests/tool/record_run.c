// `tarn record`: how a recorded program runs and ends, and what is refused.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "record_kit.h"

// --- how it ends -----------------------------------------------------------

TEST(status_is_the_programs) {
  assert_ended(record("keep", "exit7"), 7, "1 event");
  assert_ended(tool_run("record", "--out", tool_file("y.tarn"), "sh", "-c",
                        "kill -TERM $$"),
               128 + SIGTERM, "ended by signal 15 (Terminated)");
}

TEST(words_behind_the_program_are_its_own) {
  tool_output o = tool_ends(0, "record", "--out", out, "echo", "--out", "-x",
                            "--", "--help");
  ck_assert_str_eq(o.out, "--out -x -- --help\n");
}

TEST(killed_program_leaves_a_trace) {
  assert_ended(record("keep", "inlined", "kill", "hostile"), 137,
               "2 events, live peak 3.00 MiB");
  tarn_trace *trace = read_out();
  block_of(trace, MIB);
  block_of(trace, 2 * MIB);
  tarn_trace_destroy(trace);
  struct stat file;
  ck_assert_int_eq(stat(out, &file), 0);
  ck_assert_int_lt(file.st_size, 65536);  // without the room it had in store
}

TEST(sigpipe_ends_the_program) {
  tool_output o =
      tool_run("record", "--out", out, "sh", "-c", "kill -PIPE $$; exit 3");
  ck_assert_int_eq(o.status, 128 + SIGPIPE);
}

// The tool as a child that can be sent signals; its stdout is on |*out_read|.
static pid_t start_waiting(int *out_read) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  pid_t pid = fork();
  ck_assert_int_ge(pid, 0);
  if (pid == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]);
    close(ends[1]);
    execl(TARN_TOOL, "tarn", "record", "--out", out, TARN_PROGRAM, "keep",
          "wait", (char *)NULL);
    _exit(99);
  }
  close(ends[1]);
  *out_read = ends[0];
  return pid;
}

// A signal for the tool is one for the program, which leaves its trace.
static void check_passed_on(int number) {
  char word[6] = "";
  int from = -1, status = 0;
  pid_t pid = start_waiting(&from);
  ck_assert_int_eq(read(from, word, 5), 5);
  ck_assert_str_eq(word, "ready");
  ck_assert_int_eq(kill(pid, number), 0);
  ck_assert_int_eq(waitpid(pid, &status, 0), pid);
  close(from);
  ck_assert(WIFEXITED(status));
  ck_assert_int_eq(WEXITSTATUS(status), 128 + number);
  tarn_trace *trace = read_out();
  ck_assert_uint_eq(trace->live_peak_bytes, MIB);
  tarn_trace_destroy(trace);
}

TEST(terminate_is_passed_on) {
  check_passed_on(SIGTERM);
}

TEST(interrupt_is_passed_on) {
  check_passed_on(SIGINT);
}

// --- what is refused -------------------------------------------------------

TEST(missing_program_is_127) {
  assert_ended(tool_run("record", "--out", out, "tarn-no-such-program"), 127,
               "tarn-no-such-program: No such file or directory");
  ck_assert(!is_there(out));
}

TEST(what_cannot_be_run_is_126) {
  assert_ended(tool_run("record", "--out", out, "/dev/null"), 126,
               "/dev/null: Permission denied");
}

TEST(missing_library_is_said) {
  setenv("TARN_RECORD_LIBRARY", "/nowhere/libtarn-record.so", 1);
  assert_ended(record("keep"), 1,
               "TARN_RECORD_LIBRARY: /nowhere/libtarn-record.so: ");
  ck_assert(!is_there(out));
}

TEST(library_is_found_beside_the_tool) {
  unsetenv("TARN_RECORD_LIBRARY");
  assert_ended(record("keep"), 0, "1 event");
}

TEST(library_with_a_blank_is_refused) {
  const char *path = tool_file("a b.so");
  ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY, 0600)), 0);
  setenv("TARN_RECORD_LIBRARY", path, 1);
  assert_ended(record("keep"), 1, "with a blank or a colon");
}

TEST(file_is_not_overwritten) {
  tool_write_file(out, "mine");
  assert_ended(record("keep"), 1, "is there already and stays as it is");
  char *text = tool_read_file(out);
  ck_assert_str_eq(text, "mine");
  free(text);
}

TEST(file_that_cannot_be_made_is_refused) {
  out = "/nowhere/x.tarn";
  assert_ended(record("keep"), 1, "/nowhere/x.tarn: No such file or directory");
}

TEST(without_out_no_name_is_taken_twice) {
  char here[512];
  ck_assert_ptr_nonnull(getcwd(here, sizeof here));
  ck_assert_int_eq(chdir(tool_file("")), 0);
  assert_ended(tool_run("record", TARN_PROGRAM, "keep"), 0,
               "next: tarn why tarn_record_program.tarn\n");
  assert_ended(tool_run("record", TARN_PROGRAM, "keep"), 0,
               "next: tarn why tarn_record_program-2.tarn\n");
  ck_assert(is_there("tarn_record_program.tarn"));
  ck_assert_int_eq(chdir(here), 0);
}

TEST(static_program_is_said) {
#ifdef TARN_STATIC_PROGRAM
  assert_ended(tool_run("record", "--out", out, TARN_STATIC_PROGRAM, "exit7"),
               7, "is linked statically");
#else
  note_skipped("static_program_is_said", "no C library to link statically");
#endif
}

TEST(wrong_use) {
  assert_misuse(tool_run("record"), "which program");
  assert_misused("record --", "which program");
  assert_misused("record --threshold 0 true", "--threshold");
  assert_misused("record --threshold x true", "--threshold");
  assert_misused("record --nothing true", "--nothing");
  assert_misused("record -o x true", "'-o'");
}

TEST(nothing_else_is_finished) {
  assert_ended(tool_line("record --finish"), 2, "which files");
  assert_ended(tool_run("record", "--finish", "--out", out, "x"), 2,
               "--finish");
  assert_ended(tool_line("record --finish /no/such/file"), 1, "No such");
  tool_write_file(out,
                  "Thread,Time,Action,Pointer,Size,Stream\n"
                  "1,10:00:00:000001,allocate,0x1000,256,0\n");
  struct stat before, after;
  ck_assert_int_eq(stat(out, &before), 0);
  assert_ended(tool_run("record", "--finish", out), 1, "was not recorded");
  ck_assert_int_eq(stat(out, &after), 0);
  ck_assert_uint_eq(after.st_ino, before.st_ino);
  ck_assert_int_eq(after.st_size, before.st_size);
}

// --- no room ---------------------------------------------------------------

static void limit_files(rlim_t bytes) {
  struct rlimit limit;
  ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
  limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
  ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

// The program runs as ever, its status is the tool's, and no message says
// that there was nothing to record.
static void assert_unwritten(tool_output o, const char *why) {
  limit_files(RLIM_INFINITY);
  ck_assert_msg(o.status == 7, "exit %d: %s", o.status, o.err);
  assert_contains(o.err, "tarn record: nothing was recorded");
  assert_contains(o.err, why);
  ck_assert_ptr_null(strstr(o.err, "no allocation of"));
  ck_assert(!is_there(out));
}

TEST(limit_on_files_is_said) {
  limit_files(2000);
  assert_unwritten(record("keep", "exit7"),
                   "x.tarn could not be written: File too large");
}

TEST(children_without_room_are_counted) {
  limit_files(2000);
  assert_unwritten(tool_run("record", "--out", out, "sh", "-c",
                            "\"$0\" keep; \"$0\" keep; exit 7", TARN_PROGRAM),
                   "of 2 processes: their files beside ");
}

// A file system of 16 KiB with a file that takes all of it.
static bool make_full(const char *folder) {
  char path[600];
  char bytes[4096] = "";
  if (unshare(CLONE_NEWNS) != 0 ||
      mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
      mount("none", folder, "tmpfs", 0, "size=16k") != 0) {
    return false;
  }
  snprintf(path, sizeof path, "%s/rest", folder);
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  ck_assert_int_ge(fd, 0);
  while (write(fd, bytes, sizeof bytes) > 0) {
  }
  close(fd);
  return true;
}

TEST(full_file_system_is_said) {
  const char *folder = tool_file("full");
  ck_assert_int_eq(mkdir(folder, 0700), 0);
  if (!make_full(folder)) {
    note_skipped("a full file system", "mounting one takes root");
    return;
  }
  out = tool_file("full/x.tarn");
  assert_unwritten(record("keep", "exit7"),
                   "x.tarn could not be written: No space left on device");
  ck_assert_int_eq(umount(folder), 0);
}
