// The tool as people call it: help, wrong use, `devices`, and what happens
// when its output cannot be written.
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

// --- help ------------------------------------------------------------------

static void assert_help(tool_output o, const char *first_line) {
  assert_done(&o);
  ck_assert_msg(strncmp(o.out, first_line, strlen(first_line)) == 0, "%s",
                o.out);
}

FIXTURE(tool_files_begin, tool_files_end);

TEST(help_names_the_verbs) {
  tool_output o = tool_did("--help");
  assert_contains(o.out, "\n  devices ");
  assert_contains(o.out, "\n  replay ");
  assert_help(tool_run("help"), "tarn - ");
  assert_help(tool_run("-h"), "tarn - ");
}

TEST(each_verb_has_help) {
  assert_help(tool_run("help", "replay"), "usage: tarn replay ");
  assert_help(tool_run("replay", "--help"), "usage: tarn replay ");
  assert_help(tool_run("replay", "@x", "-h"), "usage: tarn replay ");
  assert_help(tool_run("help", "devices"), "usage: tarn devices ");
  assert_help(tool_run("devices", "--help"), "usage: tarn devices ");
}

TEST(version) {
  char expected[64];
  snprintf(expected, sizeof expected, "tarn %s\n", tarn_version());
  assert_help(tool_run("--version"), expected);
  assert_help(tool_run("-V"), expected);
}

// --- wrong use -------------------------------------------------------------

static size_t count_lines(const char *text, const char *end) {
  size_t count = 0;
  for (; text < end; text++)
    count += *text == '\n';
  return count;
}

TEST(no_verb) {
  assert_misuse(tool_run_list(-1, (const char *const[]){"tarn", NULL}),
                "usage: tarn VERB");
}

// Four lines of what it is, and three commands.
TEST(newcomers_are_told_what_it_is) {
  tool_output o = tool_run_list(-1, (const char *const[]){"tarn", NULL});
  ck_assert_int_eq(o.status, 2);
  ck_assert_str_eq(o.out, "");
  const char *commands = strstr(o.err, "\n\n");
  ck_assert_ptr_nonnull(commands);
  ck_assert_uint_eq(count_lines(o.err, commands + 1), 4);
  assert_contains(commands, "\n  tarn why ");
  assert_contains(commands, "\n  tarn view ");
  assert_contains(commands, "\n  tarn record ");
}

TEST(unknown_verb) {
  assert_misuse(tool_run("repaly"), "did you mean 'replay'?");
  assert_misuse(tool_run("help", "device"), "did you mean 'devices'?");
  assert_misuse(tool_run("xyzzy"), "no verb is named 'xyzzy'\n");
  assert_misuse(tool_run("\x1b[2J"), "no verb is named '?[2J'");
  assert_misuse(tool_run("--nothing"), "no option is named '--nothing'");
  assert_misuse(tool_run("help", "replay", "devices"), "one verb at a time");
}

TEST(wrong_options) {
  assert_misuse(tool_run("devices", "--nothing"),
                "tarn devices: no option is named '--nothing'\n"
                "Try 'tarn devices --help'.");
  assert_misuse(tool_run("devices", "-x"), "no option is named '-x'");
  assert_misuse(tool_run("devices", "-o"), "'-o' needs a value");
  assert_misuse(tool_run("devices", "-o", "xml"), "'xml' is not a format");
  assert_misuse(tool_run("devices", "cpu:0"), "'cpu:0' is unexpected");
}

// The cases of getopt's one answer.
TEST(options_that_are_almost_right) {
  assert_misuse(tool_run("replay", "@bert-layer", "--touch=1"),
                "tarn replay: '--touch' takes no value\n");
  assert_misuse(tool_run("replay", "--to=1"), "'--touch' takes no value\n");
  assert_misuse(tool_run("replay", "--p", "x"),
                "'--p' may be --pool, --plugin\n");
  assert_misuse(tool_run("replay", "--p=x"), "'--p=x' may be --pool, ");
  assert_misuse(tool_run("replay", "--nothing=1"),
                "no option is named '--nothing=1'\n");
  assert_misuse(tool_run("replay", "--touch", "-xh"),
                "no option is named '-x'\n");
  assert_misuse(tool_run("replay", "--html=t", "-th"),
                "no option is named '-t'\n");
}

// What stands behind a word is an option all the same.
TEST(posix_changes_nothing) {
  setenv("POSIXLY_CORRECT", "1", 1);
  tool_output o =
      tool_did("replay", "@bert-layer", "--pool", "no_pool", "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "results"), 1);
  assert_ended(tool_run("replay", "--", "--list"), 1, "--list: No such file");
}

// --- devices ---------------------------------------------------------------

#define DEVICE_KEYS                                                         \
  "device,type,plugin,description,id,total_bytes,free_bytes,"               \
  "host_accessible,"                                                        \
  "min_chunk,max_chunk,max_alloc,padding,init_size,realloc_size,alignment," \
  "functions,stand_ins,extensions"

static void assert_device(const char *json, const char *path) {
  char keys[512];
  ck_assert_str_eq(json_keys(json, path, keys, sizeof keys), DEVICE_KEYS);
}

TEST(devices_as_json) {
  tool_output o = tool_did("devices", "-o", "json");
  assert_json_line(o.out);
  assert_device(o.out, "devices.0");
  ck_assert(json_is(o.out, "devices.0.device", "\"cpu:0\""));
  ck_assert(json_is(o.out, "devices.0.type", "\"cpu\""));
  ck_assert(json_is(o.out, "devices.0.host_accessible", "true"));
  double total = json_number(o.out, "devices.0.total_bytes");
  ck_assert_double_gt(total, 0);
  ck_assert_double_le(json_number(o.out, "devices.0.free_bytes"), total);
  ck_assert_uint_eq(json_size(o.out, "devices.0.functions") +
                        json_size(o.out, "devices.0.stand_ins"),
                    16);
}

TEST(devices_for_people) {
  tool_output o = tool_did("devices");
  assert_contains(o.out, "device ");
  assert_contains(o.out, "\ncpu:0 ");
  assert_contains(o.out,
                  "cpu:0 (built-in): all optional functions are its own");
  o = tool_did("devices", "--plugin", TARN_SMALL_PLUGIN);
  assert_contains(o.out, "\n  stand-ins  memory_copy_p2p");
}

TEST(devices_for_spreadsheets) {
  tool_output o = tool_did("devices", "-o", "csv");
  assert_contains(o.out, "device,total_bytes,");
  assert_contains(o.out, ",stand_ins,extensions\n");
  assert_contains(o.out, "\ncpu:0,");
  o = tool_did("devices", "--output", "md");
  assert_contains(o.out, "| device ");
}

// --- devices that nobody names ---------------------------------------------

// In TARN_PLUGIN_DIR: one that works, one that needs what is not here, and one
// without a driver.
static void put_modules(void) {
  static const char *const files[][2] = {
      {TARN_SMALL_PLUGIN, "tarn_small.so"},
      {TARN_NEEDY_PLUGIN, "tarn_needy.so"},
      {TARN_DRIVERLESS_PLUGIN, "tarn_driverless.so"},
  };
  for (size_t i = 0; i < sizeof files / sizeof *files; i++)
    ck_assert_int_eq(symlink(files[i][0], tool_file(files[i][1])), 0);
  setenv("TARN_PLUGIN_DIR", tool_file(""), 1);
}

TEST(modules_for_people) {
  char text[1024];
  put_modules();
  static const char *const formats[] = {"table", "md"};
  for (int i = 0; i < 2; i++) {
    tool_output o = tool_did("devices", "-o", formats[i]);
    assert_contains(o.out, i == 0 ? "\nsmall:0 " : "\n| small:0 ");
    snprintf(text, sizeof text,
             "\ndriverless: cannot be used: %s: initialize answered 4: no "
             "driver is here\n"
             "needy: cannot be used: %s: libtarn_absent.so: cannot open shared "
             "object file",
             tool_file("/tarn_driverless.so"), tool_file("/tarn_needy.so"));
    assert_contains(o.out, text);
    ck_assert_str_eq(o.err, "");
  }
  ck_assert_ptr_null(strstr(tool_did("devices", "-o", "csv").out, "cannot"));
}

// The field |key| of the plug-in of |type|, of which there is one.
static const char *of_type(const char *json, const char *type,
                           const char *key) {
  static char path[64];
  char quoted[32];
  size_t count = json_size(json, "plugins");
  snprintf(quoted, sizeof quoted, "\"%s\"", type);
  for (size_t i = 0; i < count; i++) {
    snprintf(path, sizeof path, "plugins.%zu.type", i);
    if (!json_is(json, path, quoted)) continue;
    snprintf(path, sizeof path, "plugins.%zu.%s", i, key);
    return path;
  }
  ck_abort_msg("no plug-in of type %s: %s", type, json);
}

// The machine may have others.
TEST(modules_as_json) {
  char keys[128];
  put_modules();
  tool_output o = tool_did("devices", "-o", "json");
  assert_json_line(o.out);
  ck_assert_uint_ge(json_size(o.out, "plugins"), 5);
  ck_assert_str_eq(json_keys(o.out, "plugins.0", keys, sizeof keys),
                   "type,plugin,device_count,status,reason");
  ck_assert(json_is(o.out, "plugins.0.type", "\"cpu\""));
  ck_assert(json_is(o.out, "plugins.0.plugin", "\"built-in\""));
  ck_assert(json_is(o.out, "plugins.0.device_count", "1"));
  ck_assert(json_is(o.out, "plugins.0.status", "\"TARN_OK\""));
  ck_assert(json_is(o.out, "plugins.0.reason", "null"));
  ck_assert(json_is(o.out, of_type(o.out, "small", "status"), "\"TARN_OK\""));
  ck_assert(json_is(o.out, of_type(o.out, "needy", "device_count"), "0"));
  ck_assert(json_is(o.out, of_type(o.out, "needy", "status"), "\"TARN_E_IO\""));
  ck_assert(json_is(o.out, of_type(o.out, "driverless", "status"),
                    "\"TARN_E_DEVICE\""));
  ck_assert(json_is(o.out, of_type(o.out, "driverless", "reason"),
                    "\"initialize answered 4: no driver is here\""));
}

// A plug-in that is asked for by name must be there.
TEST(a_plugin_that_is_named_must_work) {
  assert_exits(tool_run("devices", "--plugin", TARN_DRIVERLESS_PLUGIN), 1,
               "initialize answered 4: no driver is here");
  assert_exits(tool_run("devices", "--plugin", TARN_NEEDY_PLUGIN), 1,
               "libtarn_needy_plugin.so: libtarn_absent.so: cannot open");
}

TEST(missing_plugin) {
  assert_exits(tool_run("devices", "--plugin", "./nowhere.so"), 1,
               "./nowhere.so: No such file");
}

// Which of the devices is called |quoted|; others may be built in.
static size_t find_device(const char *json, const char *quoted) {
  char path[64];
  for (size_t i = 0; i < json_size(json, "devices"); i++) {
    snprintf(path, sizeof path, "devices.%zu.device", i);
    if (json_is(json, path, quoted)) return i;
  }
  ck_abort_msg("no device %s in %s", quoted, json);
}

// The value of device |index| at |key|, as a path.
static const char *of_device(size_t index, const char *key) {
  static char path[128];
  snprintf(path, sizeof path, "devices.%zu%s", index, key);
  return path;
}

// A path that is not absolute is meant from the current directory.
TEST(plugin_by_relative_path) {
  char *folder = strdup(TARN_SMALL_PLUGIN);
  char *slash = strrchr(folder, '/');
  char relative[256];
  *slash = '\0';
  ck_assert_int_eq(chdir(folder), 0);
  snprintf(relative, sizeof relative, "./%s", slash + 1);
  tool_output o = tool_did("devices", "--plugin", relative, "-o", "json");
  ck_assert(json_valid(o.out));
  size_t small = find_device(o.out, "\"small:0\"");
  assert_device(o.out, of_device(small, ""));
  ck_assert(json_is(o.out, of_device(small, ".host_accessible"), "false"));
  ck_assert_double_eq(json_number(o.out, of_device(small, ".total_bytes")),
                      64 << 20);
  ck_assert_uint_eq(json_size(o.out, of_device(small, ".functions")), 0);
  ck_assert_uint_eq(json_size(o.out, of_device(small, ".stand_ins")), 16);
  ck_assert_double_eq(json_number(o.out, of_device(small, ".alignment")), 1);
  ck_assert_uint_eq(json_size(o.out, of_device(small, ".extensions")), 0);
  free(folder);
}

TEST(what_is_beyond_the_abi) {
  tool_output o =
      tool_did("devices", "--plugin", TARN_WIDE_PLUGIN, "-o", "json");
  ck_assert(json_valid(o.out));
  size_t wide = find_device(o.out, "\"wide:0\"");
  ck_assert_double_eq(json_number(o.out, of_device(wide, ".alignment")), 256);
  ck_assert_uint_eq(json_size(o.out, of_device(wide, ".extensions")), 2);
  ck_assert(json_is(o.out, of_device(wide, ".extensions.0"), "\"alignment\""));
  ck_assert(json_is(o.out, of_device(wide, ".extensions.1"), "\"retains\""));
  o = tool_did("devices", "--plugin", TARN_WIDE_PLUGIN);
  assert_contains(o.out, "\n  extensions alignment retains\n");
}

// --- links that lead to no name --------------------------------------------

// A page is moved to its place, which must not be that of a link: as root, that
// would be /dev/stdout itself, where stdout has no name.
TEST(links_stay) {
  struct stat found;
  const char *link = tool_file("link");
  ck_assert_int_eq(symlink("/proc/self/fd/1", link), 0);
  tool_output o = tool_ends(0, "view", "@bert-layer", "--html", link);
  assert_contains(o.err, "link: 192 events");
  assert_contains(o.out, "</html>");
  ck_assert(lstat(link, &found) == 0 && S_ISLNK(found.st_mode));
  ck_assert_int_eq(unlink(link), 0);
  ck_assert_int_eq(symlink(tool_file("nowhere"), link), 0);
  assert_ended(tool_run("view", "@bert-layer", "--html", link), 1,
               "link: No such file or directory");
  ck_assert(lstat(link, &found) == 0 && S_ISLNK(found.st_mode));
}

// --- output that does not arrive ------------------------------------------

static void assert_lost(tool_output o) {
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "could not be written");
}

enum { MOST_WORDS = 16 };

static const char *const verbs[][MOST_WORDS] = {
    {"tarn", "--help"},
    {"tarn", "--version"},
    {"tarn", "help", "plan"},
    {"tarn", "plan", "--help"},
    {"tarn", "bench", "--help"},
    {"tarn", "devices"},
    {"tarn", "devices", "-o", "json"},
    {"tarn", "devices", "--plugin", TARN_SMALL_PLUGIN, "-o", "csv"},
    {"tarn", "replay", "--list"},
    {"tarn", "replay", "@bert-layer", "--dry"},
    {"tarn", "replay", "@bert-layer", "--dry", "-o", "json"},
    {"tarn", "replay", "@bert-layer", "--dry", "--strategy", TARN_NOISY_POOL},
    {"tarn", "why", "@bert-layer"},
    {"tarn", "why", "@bert-layer", "-o", "json"},
    {"tarn", "plan", "@bert-layer"},
    {"tarn", "plan", "@bert-layer", "-o", "json"},
    {"tarn", "plan", "@bert-layer", "--out", "-"},
    {"tarn", "plan", "@bert-layer", "--out", "/dev/stdout"},
    {"tarn", "convert", "@bert-layer", "/dev/stdout", "--to", "tarn"},
    {"tarn", "view", "@bert-layer", "--html", "/dev/stdout"},
    {"tarn", "replay", "@bert-layer", "--dry", "--html", "/dev/stdout"},
    {"tarn", "conform", "--list"},
    {"tarn", "conform", "cpu", "--only", "loading"},
    {"tarn", "conform", "cpu", "--only", "loading", "-o", "junit"},
    {"tarn", "bench", "plan", "--help"},
    {"tarn", "bench", "device", "--device", "cpu:0", "--passes", "1"},
    {"tarn", "run", "-n", "1", "-l", "--", "echo", "lost"},
};

// A file that is opened must not take the place of a stdout that is closed.
TEST_LOOP(closed_output, sizeof verbs / sizeof *verbs) {
  tool_output o = tool_run_list(TOOL_CLOSED, verbs[_i]);
  ck_assert_msg(o.status == 1, "%s %s: exit %d: %s", verbs[_i][1], verbs[_i][2],
                o.status, o.err);
  ck_assert_msg(strstr(o.err, "could not be written to stdout: ") != NULL ||
                    strstr(o.err, "standard output: ") != NULL ||
                    strstr(o.err, "/dev/stdout: ") != NULL,
                "%s", o.err);
}

TEST_LOOP(full_disk, sizeof verbs / sizeof *verbs) {
  int full = open("/dev/full", O_WRONLY);
  ck_assert_int_ge(full, 0);
  tool_output o = tool_run_list(full, verbs[_i]);
  ck_assert_msg(o.status == 1, "%s %s: exit %d: %s", verbs[_i][1], verbs[_i][2],
                o.status, o.err);
  ck_assert_msg(strstr(o.err, "No space left on device") != NULL, "%s", o.err);
  close(full);
}

// In a shell, since what Check writes in this process is limited, too.
TEST(limit_on_files) {
  int file = open(tool_file("result"), O_WRONLY | O_CREAT, 0600);
  ck_assert_int_ge(file, 0);
  tool_output o = tool_run_program(
      "/bin/sh", file,
      (const char *const[]){"sh", "-c", "ulimit -f 1; exec \"$0\" plan --help",
                            TARN_TOOL, NULL});
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "could not be written to stdout: File too large");
  close(file);
}

TEST(closed_pipe) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  close(ends[0]);
  assert_lost(tool_run_to(ends[1], "devices"));
  close(ends[1]);
}

// --- foreign code that writes to stdout, which takes some seconds -----------

PART("foreign");

#define NOISY_DEVICE "--plugin", TARN_NOISY_PLUGIN, "--device", "small:0"

// All verbs that load foreign code, with a result that can be checked.
static const char *const noisy[][MOST_WORDS] = {
    {"tarn", "devices", "--plugin", TARN_NOISY_PLUGIN, "-o", "json"},
    {"tarn", "conform", TARN_NOISY_PLUGIN, "--only", "memory", "-o", "json"},
    {"tarn", "conform", TARN_NOISY_PLUGIN, "--only", "memory", "--in-process",
     "-o", "json"},
    {"tarn", "conform", "small:0", "--plugin", TARN_NOISY_PLUGIN, "--only",
     "loading", "-o", "json"},
    {"tarn", "replay", "@random", NOISY_DEVICE, "--dry", "-o", "json"},
    {"tarn", "replay", "@bert-layer", "--strategy", TARN_NOISY_POOL, "--pool",
     "power_pool", "-o", "json"},
    {"tarn", "why", "@bert-layer", "--strategy", TARN_NOISY_POOL, "--pool",
     "power_pool", "-o", "json"},
    {"tarn", "bench", "device", NOISY_DEVICE, "--passes", "1", "-o", "json"},
    {"tarn", "bench", "synced", NOISY_DEVICE, "--images", "1", "--rows", "1",
     "--passes", "1", "-o", "json"},
    {"tarn", "bench", "counters", "--strategy", TARN_NOISY_POOL, "--pool",
     "power_pool", "--passes", "1", "-o", "json"},
    {"tarn", "bench", "pool", "--strategy", TARN_NOISY_POOL, "--workload",
     "@bert-layer", "--pool", "power_pool", "--threads", "1", "--passes", "1",
     "-o", "json"},
};

TEST_LOOP(foreign_output_goes_to_stderr, sizeof noisy / sizeof *noisy) {
  tool_output o = tool_run_list(-1, noisy[_i]);
  ck_assert_msg(json_valid(o.out), "%s: not JSON: %.300s", noisy[_i][1], o.out);
  ck_assert_ptr_eq(strchr(o.out, '\n'), o.out + strlen(o.out) - 1);
  ck_assert_msg(o.status == 0, "%s: exit %d: %.2000s", noisy[_i][1], o.status,
                o.err);
  assert_contains(o.err, "printed noise: loaded");
  assert_contains(o.err, "written noise\n");
}

// A page may go to stdout by name, which a strategy does not get into.
TEST(foreign_output_and_a_page) {
  static const char script[] =
      "\"$0\" replay @bert-layer --dry --strategy \"$1\" --pool power_pool "
      "--html /dev/stdout | cat";
  tool_output o =
      tool_run_program("/bin/sh", -1,
                       (const char *const[]){"sh", "-c", script, TARN_TOOL,
                                             TARN_NOISY_POOL, NULL});
  assert_contains(o.out, "</html>");
  ck_assert_ptr_null(strstr(o.out, "noise"));
  assert_contains(o.err, "printed noise: unloaded");
}
