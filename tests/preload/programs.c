// Programs of the machine under `tarn preload`: they write what they write
// without it. What is not installed is skipped by name.
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "preload_run.h"
#include "support/run.h"
#include "support/tool_assert.h"

// A line of a shell, and the program that it needs.
static const struct {
  const char *needs;
  const char *script;
} lines[] = {
    {"/bin/bash",
     "x=$(seq 1 60000); y=$x$x; echo ${#y}; for i in 1 2 3; do (echo $i) & "
     "wait; done"},
    {"/usr/bin/sort", "seq 1 400000 | sort -r | sort -n --parallel=4 | cksum"},
    {"/bin/tar",
     "mkdir t && head -c 5000000 /dev/zero > t/zeros && seq 1 300000 > t/seq "
     "&& "
     "tar czf t.tar.gz t && tar xOzf t.tar.gz | cksum"},
    {"/usr/bin/git",
     "git init -q g && cd g && seq 1 200000 > f && git add f && "
     "git -c user.name=a -c user.email=b commit -qm c && "
     "git gc -q --aggressive && git fsck && git show HEAD:f | cksum"},
    {"/usr/bin/python3",
     "/usr/bin/python3 -c 'import os,hashlib,threading\n"
     "x = bytearray(3 << 20)\n"
     "for i in range(300): x += bytes([i & 255]) * 70000\n"
     "def run(n):\n"
     "  y = [bytes([n]) * (n * 99999) for _ in range(20)]\n"
     "  assert sum(len(z) for z in y) == 20 * n * 99999\n"
     "all = [threading.Thread(target=run, args=(n,)) for n in range(1, 9)]\n"
     "[t.start() for t in all]\n"
     "if os.fork() == 0:\n"
     "  x += x\n"
     "  os._exit(len(x) & 1)\n"
     "print(os.wait()[1], hashlib.sha256(x).hexdigest())\n"
     "[t.join() for t in all]'"},
    {"/usr/bin/perl",
     "perl -e '$x = \"ab\" x 5000000; @y = map {$_ x 70000} 1..99; print "
     "length(join(\"\", $x, @y)), \"\\n\"'"},
};
enum { LINES = sizeof lines / sizeof *lines };

static tool_output run_in(const char *folder, const char *script, bool under) {
  char whole[4096];
  char in[512];
  snprintf(in, sizeof in, "%s", tool_file(folder));
  snprintf(whole, sizeof whole, "mkdir '%s' && cd '%s' && %s", in, in, script);
  if (!under) {
    return tool_run_program("/bin/sh", -1,
                            (const char *const[]){"sh", "-c", whole, NULL});
  }
  return tool_run("preload", "--from", "4K", "--", "/bin/sh", "-c", whole);
}

TEST_LOOP(they_write_the_same, LINES) {
  if (access(lines[_i].needs, X_OK) != 0) {
    note_skipped(lines[_i].needs, "it is not installed");
    return;
  }
  tool_output alone = run_in("alone", lines[_i].script, false);
  tool_output under = run_in("under", lines[_i].script, true);
  ck_assert_msg(alone.status == 0, "%s", alone.err);
  ck_assert_msg(under.status == 0, "status %d: %s", under.status, under.err);
  ck_assert_str_eq(under.out, alone.out);
}

// --- what is said of programs ----------------------------------------------

TEST(a_program_that_is_not_there) {
  assert_exits(tool_run("preload", "./none"), 127, "./none: No such file");
  assert_exits(tool_run("preload", "/etc/passwd"), 126, "Permission denied");
}

TEST(a_program_with_a_malloc_of_its_own) {
  ran = tool_run("preload", TARN_PRELOAD_OWN);
  ck_assert_int_eq(ran.status, 0);
  ck_assert_str_eq(ran.out, "own\n");
  assert_contains(ran.err, "has a malloc of its own");
}

TEST(a_program_that_is_linked_statically) {
  if (access("/usr/sbin/ldconfig", X_OK) != 0) {
    note_skipped("/usr/sbin/ldconfig", "it is not installed");
    return;
  }
  assert_exits(tool_run("preload", "/usr/sbin/ldconfig", "-p"), 1,
               "ldconfig is linked statically, and the system preloads nothing "
               "into such a program");
}

TEST(wrong_use) {
  assert_misuse(tool_run("preload"), "which program is to be run?");
  assert_misuse(tool_run("preload", "--pool", "puddle", "ls"),
                "no pool is named 'puddle'");
  assert_misuse(tool_run("preload", "--pool", "no_pool,arena_pool", "ls"),
                "a program has one pool, not 2");
  assert_misuse(
      tool_run("preload", "--report", "--report-out", "x", "--", "ls"),
      "--report or --report-out, not both");
  assert_misuse(tool_run("preload", "--from", "much", "ls"), "--from");
}

TEST(a_library_that_is_not_there) {
  setenv("TARN_MALLOC_LIBRARY", "/none.so", 1);
  assert_exits(tool_run("preload", "ls"), 1,
               "TARN_MALLOC_LIBRARY: /none.so: No such file");
  unsetenv("TARN_MALLOC_LIBRARY");
}

// --- what else is preloaded ------------------------------------------------

static void assert_order(const char *before, const char *after) {
  setenv("LD_PRELOAD", before, 1);
  ran = tool_run("preload", "--", "/bin/sh", "-c", "echo $LD_PRELOAD");
  unsetenv("LD_PRELOAD");
  ck_assert_str_eq(ran.out, after);
}

// A recorder sees the program's calls. Anything else stands behind.
TEST(the_order_of_libraries) {
  assert_order("", TARN_MALLOC "\n");
  assert_order(TARN_RECORDER, TARN_RECORDER ":" TARN_MALLOC "\n");
  ran = tool_run("record", "--out", tool_file("trace"), "--", TARN_TOOL,
                 "preload", "--", TARN_PRELOAD_VICTIM, "family");
  ck_assert_int_eq(ran.status, 0);
}

// --- a snapshot of the running program -------------------------------------

TEST(a_snapshot_at_a_signal) {
  if (access("/usr/bin/python3", X_OK) != 0) {
    note_skipped("/usr/bin/python3", "it is not installed");
    return;
  }
  char why[1024];
  char script[1024];
  snprintf(why, sizeof why, "USR1:%s", tool_file("now-%n.tarn"));
  snprintf(script, sizeof script,
           "import os, signal, time\n"
           "x = [bytearray(300000) for _ in range(10)]\n"
           "os.kill(os.getpid(), signal.SIGUSR1)\n"
           "while not os.path.exists('%s'): time.sleep(0.01)\n",
           tool_file("now-0.tarn"));
  ran =
      tool_run("preload", "--why", why, "--", "/usr/bin/python3", "-c", script);
  ck_assert_msg(ran.status == 0, "%s", ran.err);
  tool_output told = tool_did("why", tool_file("now-0.tarn"));
  assert_contains(told.out, "256 KiB to 512 KiB");
}

// Unless it was asked for, a signal is the program's.
TEST(no_handler_unless_asked_for) {
  ran = tool_run("preload", "--", "/bin/sh", "-c", "kill -USR1 $$");
  ck_assert_int_eq(ran.status, 128 + 10);
}

FIXTURE(tool_files_begin, preload_end);

int main(void) {
  return preload_cannot() ? preload_skip() : run_tests();
}
