// How much memory there is: limits of control groups, in trees of files that
// the tests make up.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os.h"
#include "support/run.h"

static const size_t MIB = (size_t)1 << 20;

// --- a machine of files ----------------------------------------------------

static char root[] = "/tmp/tarn-test-XXXXXX";

static void put_bytes(const char *name, const void *bytes, size_t size) {
  char path[1024];
  snprintf(path, sizeof path, "%s%s", root, name);
  for (char *at = path + sizeof root; (at = strchr(at, '/')) != NULL; at++) {
    *at = '\0';
    (void)mkdir(path, 0700);
    *at = '/';
  }
  FILE *file = fopen(path, "w");
  ck_assert_msg(file != NULL, "%s", path);
  ck_assert_uint_eq(fwrite(bytes, 1, size, file), size);
  fclose(file);
}

static void put(const char *name, const char *text) {
  put_bytes(name, text, strlen(text));
}

static void put_mib(const char *name, size_t mib) {
  char text[32];
  snprintf(text, sizeof text, "%zu\n", mib * MIB);
  put(name, text);
}

// A machine of 1000 MiB, of which 800 are available.
static void begin(void) {
  strcpy(root, "/tmp/tarn-test-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(root));
  put("/proc/meminfo",
      "MemTotal:        1024000 kB\n"
      "MemFree:          102400 kB\n"
      "MemAvailable:     819200 kB\n");
}

static void end(void) {
  char command[64];
  snprintf(command, sizeof command, "rm -rf %s", root);
  ck_assert_int_eq(system(command), 0);
}

FIXTURE(begin, end);

// Version 2 as most systems mount it, with the process in |group|.
static void be_in(const char *group) {
  char text[256];
  snprintf(text, sizeof text, "0::%s\n", group);
  put("/proc/self/cgroup", text);
  put("/proc/self/mountinfo",
      "21 27 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
      "30 23 0:26 / /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 "
      "rw,nsdelegate\n"
      "31 23 0:27 / /sys/fs/bpf rw shared:10 - bpf bpf rw\n");
}

static void assert_memory(size_t total_mib, size_t available_mib) {
  size_t total = 1;
  size_t available = 1;
  tarn__os_memory_of(root, &total, &available);
  ck_assert_uint_eq(total, total_mib * MIB);
  ck_assert_uint_eq(available, available_mib * MIB);
}

// --- version 2 -------------------------------------------------------------

TEST(without_groups_the_machine_counts) {
  assert_memory(1000, 800);
  be_in("/");
  assert_memory(1000, 800);
  be_in("/a/b");
  put("/sys/fs/cgroup/a/b/memory.max", "max\n");
  put("/sys/fs/cgroup/a/b/memory.high", "max\n");
  put_mib("/sys/fs/cgroup/a/b/memory.current", 900);
  assert_memory(1000, 800);
  put_mib("/sys/fs/cgroup/a/b/memory.max", 2000);
  assert_memory(1000, 800);
}

TEST(each_ancestor_has_a_limit) {
  static const char *const limits[] = {
      "/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/a.slice/memory.max",
      "/sys/fs/cgroup/a.slice/b/memory.max",
      "/sys/fs/cgroup/a.slice/b/c.scope/memory.max"};
  be_in("/a.slice/b/c.scope");
  for (size_t i = 0; i < 4; i++) {
    put_mib(limits[i], 500);
    assert_memory(500, 500);
    put(limits[i], "max\n");
    assert_memory(1000, 800);
  }
}

TEST(the_tightest_counts) {
  be_in("/a/b");
  put_mib("/sys/fs/cgroup/a/b/memory.max", 300);
  put_mib("/sys/fs/cgroup/a/b/memory.current", 10);
  assert_memory(300, 290);
  put_mib("/sys/fs/cgroup/a/memory.max", 600);
  put_mib("/sys/fs/cgroup/a/memory.current", 550);  // others of its are full
  assert_memory(300, 50);
  put_mib("/sys/fs/cgroup/a/memory.current", 700);
  assert_memory(300, 0);
  put_mib("/sys/fs/cgroup/a/b/memory.high", 200);
  put_mib("/sys/fs/cgroup/a/memory.current", 100);
  assert_memory(200, 190);
}

TEST(pages_of_files_that_go_first_are_available) {
  be_in("/a");
  put_mib("/sys/fs/cgroup/a/memory.max", 300);
  put_mib("/sys/fs/cgroup/a/memory.current", 290);
  put("/sys/fs/cgroup/a/memory.stat",
      "anon 1\ninactive_anon 7\nactive_file 104857600\n"
      "inactive_file 104857600\n");
  assert_memory(300, 110);
  put("/sys/fs/cgroup/a/memory.stat", "inactive_file 99999999999\n");
  assert_memory(300, 300);
  put("/sys/fs/cgroup/a/memory.stat", "inactive_file many\n");
  assert_memory(300, 10);
}

TEST(changes_count_at_once) {
  be_in("/a");
  put_mib("/sys/fs/cgroup/a/memory.max", 300);
  put_mib("/sys/fs/cgroup/b/memory.max", 400);
  assert_memory(300, 300);
  be_in("/b");
  assert_memory(400, 400);
  put_mib("/sys/fs/cgroup/b/memory.current", 399);
  assert_memory(400, 1);
}

// --- where groups are mounted ----------------------------------------------

TEST(a_container_sees_a_part_of_the_tree) {
  put("/proc/self/cgroup", "0::/pod/box/job\n");
  put("/proc/self/mountinfo",
      "30 23 0:26 /pod/bo /wrong ro - cgroup2 cgroup rw\n"
      "30 23 0:26 /pod/box /cg ro - cgroup2 cgroup rw\n"
      "30 23 0:26 /pod /later ro - cgroup2 cgroup rw\n");
  put_mib("/wrong/memory.max", 1);
  put_mib("/later/memory.max", 2);
  put_mib("/cg/memory.max", 400);
  assert_memory(400, 400);
  put_mib("/cg/job/memory.max", 300);
  assert_memory(300, 300);
}

TEST(a_group_out_of_sight_has_the_mounts_limit) {
  be_in("/../other");
  put_mib("/sys/fs/cgroup/memory.max", 400);
  put_mib("/sys/fs/other/memory.max", 1);
  assert_memory(400, 400);
}

TEST(a_mount_may_have_blanks_in_its_name) {
  put("/proc/self/cgroup", "0::/a b:c\n");
  put("/proc/self/mountinfo",
      "30 23 0:26 / /the\\040groups\\134 rw - cgroup2 cgroup2 rw\n");
  put_mib("/the groups\\/a b:c/memory.max", 400);
  assert_memory(400, 400);
}

// --- version 1 -------------------------------------------------------------

static void be_in_version_1(void) {
  put("/proc/self/cgroup",
      "12:name=systemd:/x\n4:cpu,memory:/box/job\n3:cpuset:/memory\n0::/\n");
  put("/proc/self/mountinfo",
      "29 23 0:25 / /sys/fs/cgroup ro shared:8 - tmpfs tmpfs ro\n"
      "30 29 0:26 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
      "31 29 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
      "32 29 0:28 / /sys/fs/cgroup/mem rw - cgroup cgroup rw,cpu,memory\n");
}

TEST(version_1_has_limits_too) {
  be_in_version_1();
  put("/sys/fs/cgroup/mem/memory.limit_in_bytes", "9223372036854771712\n");
  assert_memory(1000, 800);
  put_mib("/sys/fs/cgroup/mem/box/memory.limit_in_bytes", 500);
  put_mib("/sys/fs/cgroup/mem/box/memory.usage_in_bytes", 450);
  assert_memory(500, 50);
  put("/sys/fs/cgroup/mem/box/memory.stat",
      "inactive_file 1\ntotal_inactive_file 104857600\n");
  assert_memory(500, 150);
  put_mib("/sys/fs/cgroup/mem/box/job/memory.limit_in_bytes", 200);
  assert_memory(200, 150);
}

TEST(both_versions_at_once) {
  be_in_version_1();
  put_mib("/sys/fs/cgroup/mem/box/memory.limit_in_bytes", 500);
  put_mib("/sys/fs/cgroup/unified/memory.max", 400);
  assert_memory(400, 400);
}

// --- bad files -------------------------------------------------------------

TEST(what_is_malformed_limits_nothing) {
  static const char *const texts[] = {
      "",     "\n",         "max",
      "-1\n", "0x10\n",     "12cows\n",
      " 7\n", "\377\376x1", "99999999999999999999999\n"};
  be_in("/a");
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    put("/sys/fs/cgroup/a/memory.max", texts[i]);
    assert_memory(1000, 800);
  }
  put_mib("/sys/fs/cgroup/a/memory.max", 300);
  for (size_t i = 0; i < sizeof texts / sizeof *texts - 1; i++) {
    put("/sys/fs/cgroup/a/memory.current", texts[i]);
    put("/sys/fs/cgroup/a/memory.stat", texts[i]);
    assert_memory(300, 300);
  }
  put("/sys/fs/cgroup/b/memory.max/a_folder", "");
  be_in("/b");
  assert_memory(1000, 800);
}

// Cut at any byte they say all that they said, or nothing.
TEST(files_may_be_cut) {
  static const char *const names[] = {"/proc/self/cgroup",
                                      "/proc/self/mountinfo"};
  for (size_t i = 0; i < 2; i++) {
    char path[128];
    char text[1024];
    be_in_version_1();
    put_mib("/sys/fs/cgroup/mem/box/memory.limit_in_bytes", 500);
    snprintf(path, sizeof path, "%s%s", root, names[i]);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    size_t size = fread(text, 1, sizeof text, file);
    fclose(file);
    for (size_t cut = 0; cut <= size; cut++) {
      size_t total = 0;
      size_t available = 0;
      put_bytes(names[i], text, cut);
      tarn__os_memory_of(root, &total, &available);
      ck_assert(total == 500 * MIB || total == 1000 * MIB);
      ck_assert(available == 500 * MIB || available == 800 * MIB);
    }
    assert_memory(500, 500);
  }
}

// Lines that are too long are passed over, and those behind them are read.
TEST(lines_may_be_long) {
  static char text[40000];
  static const char tail[] = "\n30 23 0:26 / /cg rw - cgroup2 cgroup2 rw\n";
  put("/proc/self/cgroup", "0::/a\n");
  put_mib("/cg/a/memory.max", 300);
  memset(text, 'x', sizeof text);
  for (size_t size = 8000; size < sizeof text - sizeof tail; size += 96) {
    memcpy(text + size, tail, sizeof tail - 1);
    put_bytes("/proc/self/mountinfo", text, size + sizeof tail - 1);
    assert_memory(300, 300);
    memset(text + size, 'x', sizeof tail);
  }
  put_bytes("/proc/self/mountinfo", text, sizeof text);
  assert_memory(1000, 800);
  put("/proc/self/mountinfo", tail);
  put_bytes("/proc/self/cgroup", text, sizeof text);
  assert_memory(1000, 800);
}

TEST(without_proc_nothing_is_known) {
  put("/proc/meminfo", "");
  assert_memory(0, 0);
  put("/proc/meminfo", "MemTotal: 18446744073709551615 kB\n");
  assert_memory(0, 0);
  end();
  assert_memory(0, 0);
  begin();
}
