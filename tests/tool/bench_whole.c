// `tarn bench whole`: rows, keys, types and ops, MPI that is there or not,
// wrong use. No figure is compared with a time.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "bench/whole_bench.h"
#include "support/json_check.h"
#include "support/run.h"
#include "support/tool_assert.h"

// Small, without NumPy and MPI, and of one size of rows.
#define ONE "--size", "1M", "--batch", "32K", "--passes", "1", "--rows", "64"
#define SMALL ONE, "--no-numpy"
#define QUICK SMALL, "--no-mpi"

static const char *const types[] = {"continuous", "chunked", "distributed"};

// --- rows ------------------------------------------------------------------

static bool has(const char *json, size_t row, const char *key,
                const char *text) {
  return json_is_text(json, json_row(row, key), text);
}

// How many results have these; NULL: any.
static size_t count(const char *json, const char *device, const char *type,
                    const char *location, const char *op) {
  size_t found = 0, all = json_size(json, "results");
  for (size_t i = 0; i < all; i++) {
    found += (device == NULL || has(json, i, "device", device)) &&
             (type == NULL || has(json, i, "type", type)) &&
             (location == NULL || has(json, i, "location", location)) &&
             (op == NULL || has(json, i, "op", op));
  }
  return found;
}

// Every result has its keys and a figure.
static void assert_results(const char *json) {
  size_t all = json_size(json, "results");
  for (size_t i = 0; i < all; i++) {
    assert_keys(json, json_row(i, ""),
                "device,type,location,op,row_bytes,indices,gbs,"
                "over_memcpy,over_mpi,alone_gbs,failed");
    ck_assert_msg(json_is(json, json_row(i, "failed"), "null"), "result %zu",
                  i);
    ck_assert_double_gt(json_number(json, json_row(i, "gbs")), 0);
    ck_assert_double_gt(json_number(json, json_row(i, "over_memcpy")), 0);
  }
}

static void assert_kind(const char *json, const char *device, const char *type,
                        const char *location) {
  bool is_mapped = strcmp(type, "distributed") != 0;
  bool is_plain = is_mapped && strcmp(device, "cpu") == 0;
  ck_assert_uint_eq(count(json, device, type, location, "memcpy"), 1);
  ck_assert_uint_eq(count(json, device, type, location, "gather"), 1);
  ck_assert_uint_eq(count(json, device, type, location, "scatter"), 1);
  ck_assert_uint_eq(count(json, device, type, location, "scatter_add"), 1);
  ck_assert_uint_eq(count(json, device, type, location, "plain_gather"),
                    is_plain);
}

FIXTURE(tool_files_begin, tool_files_end);

TEST(six_types_on_two_devices) {
  tool_output o = tool_did("bench", "whole", "-n", "2", QUICK, "-o", "json");
  assert_json_line(o.out);
  assert_keys(o.out, "",
              "ranks,memcpy_gbs,results,tables,small_gathers,goals,skipped,"
              "machine");
  ck_assert(json_is(o.out, "ranks", "2"));
  ck_assert_double_gt(json_number(o.out, "memcpy_gbs"), 0);
  assert_results(o.out);
  for (size_t i = 0; i < 6; i++) {
    const char *location = i % 2 == 0 ? "device" : "host";
    assert_kind(o.out, "cpu", types[i / 2], location);
    assert_kind(o.out, "sim", types[i / 2], location);
  }
  ck_assert_uint_eq(json_size(o.out, "results"), 4 * 5 + 2 * 4 + 6 * 4);
}

TEST(tables_and_goals) {
  tool_output o =
      tool_did("bench", "whole", "--device", "cpu", QUICK, "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "tables"), WHOLE_KINDS);
  assert_keys(o.out, "tables.0",
              "device,type,location,table_bytes,page_size,huge_bytes,"
              "ready_bytes,ready_ms,touch_ms,ready_over_touch,failed");
  ck_assert(json_is(o.out, "tables.0.table_bytes", "1048576"));
  ck_assert_double_gt(json_number(o.out, "tables.0.ready_over_touch"), 0);
  // Of each mapped kind: three and the table; of each other: two and that; of
  // the continuous ones also a small gather.
  ck_assert_uint_eq(json_size(o.out, "goals"), 4 * 4 + 2 * 3 + 2);
  ck_assert(json_is_text(o.out, "goals.0.name", "gather_over_memcpy"));
  ck_assert(json_is(o.out, "goals.0.goal", "0.42"));
  ck_assert(json_is_text(o.out, "goals.1.name", "gather_over_mpi_window"));
  ck_assert(json_is(o.out, "goals.1.value", "null"));
  ck_assert(json_is(o.out, "goals.1.met", "null"));
  ck_assert(json_is_text(o.out, "skipped.0.what", "mpi"));
  ck_assert(json_is_text(o.out, "skipped.0.why", "not asked for"));
  ck_assert(json_is_text(o.out, "skipped.1.what", "numpy"));
  ck_assert(json_is_text(o.out, "skipped.1.why", "not asked for"));
  ck_assert_uint_eq(json_size(o.out, "skipped"), 2);
}

// A process alone, and parts of a table that are not the same.
TEST(other_numbers_of_ranks) {
  static const char *const numbers[] = {"1", "3"};
  for (size_t i = 0; i < 2; i++) {
    tool_output o = tool_did("bench", "whole", "--ranks", numbers[i],
                             "--device", "cpu", QUICK, "-o", "json");
    ck_assert(json_is(o.out, "ranks", numbers[i]));
    assert_results(o.out);
    ck_assert_uint_eq(json_size(o.out, "results"), 4 * 5 + 2 * 4);
    ck_assert_uint_eq(json_size(o.out, "goals"), 0);  // those are for two
  }
}

TEST(rows_of_several_sizes_and_zipf) {
  tool_output o = tool_line(
      "bench whole --device sim --size 1M --batch 8K --passes 2 --rows 4,4K "
      "--zipf -o json");
  size_t zipf = 0;
  size_t large = 0;
  size_t all = json_size(o.out, "results");
  assert_done(&o);
  assert_results(o.out);
  ck_assert_uint_eq(count(o.out, "sim", NULL, NULL, "gather"), 24);
  for (size_t i = 0; i < all; i++) {
    zipf += has(o.out, i, "indices", "zipf");
    large += json_is(o.out, json_row(i, "row_bytes"), "4096");
  }
  ck_assert_uint_eq(zipf, 12);  // of two sizes, of each kind
  ck_assert_uint_eq(large, 24);
}

TEST(tables_for_people) {
  tool_output o = tool_did("bench", "whole", "--device", "cpu", QUICK);
  assert_contains(o.out, "Linux ");  // the machine
  assert_contains(o.out, "\ncpu: 2 ranks, tables of 1.00 MiB, batches of 32.0");
  assert_contains(o.out,
                  "; Open MPI skipped: not asked for; NumPy skipped: not asked "
                  "for\n");
  assert_contains(o.out, "\ndevice  type ");
  assert_contains(o.out, "\ngoal ");
  o = tool_did("bench", "whole", "--device", "sim", QUICK, "-o", "csv");
  assert_contains(o.out,
                  "device,type,location,op,row_bytes,indices,gbs,over_memcpy,"
                  "over_mpi,failed,ranks,table_bytes,machine\n");
  assert_contains(o.out, "\nsim,chunked,host,gather,64,uniform,");
  o = tool_did("bench", "whole", "--device", "sim", QUICK, "-o", "md");
  assert_contains(o.out, "\n| device ");
  ck_assert_ptr_null(strstr(o.out, "| goal"));  // they are for cpu
}

// --- what cannot be measured -----------------------------------------------

// It cannot map what another process has made, which is no failure.
TEST(a_device_that_lacks_types) {
  tool_output o = tool_did("bench", "whole", "--plugin", TARN_SMALL_PLUGIN,
                           "--device", "small:0", QUICK, "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "tables"), WHOLE_KINDS);
  ck_assert(!json_is(o.out, "tables.0.failed", "null"));
  ck_assert(json_is(o.out, "tables.0.ready_ms", "null"));
  ck_assert_uint_eq(count(o.out, NULL, "continuous", "device", NULL), 0);
}

TEST(a_device_that_fails) {
  setenv("TARN_SIM_FAULTS", "memory_copy_h2d@40+", 1);
  tool_output o =
      tool_run("bench", "whole", "--device", "sim", QUICK, "-o", "json");
  unsetenv("TARN_SIM_FAULTS");
  ck_assert_int_eq(o.status, 1);
  assert_contains(o.err, "tarn bench whole: sim: ");
  ck_assert(json_valid(o.out));
}

// Not tried: the kernel would end some process for it.
TEST(more_than_there_is) {
  static const char *const sizes[] = {"--size", "--batch"};
  for (size_t i = 0; i < 2; i++) {
    tool_output o = tool_ends(1, "bench", "whole", "--device", "cpu,sim", QUICK,
                              sizes[i], "9223372036854775807", "-o", "json");
    assert_contains(o.err, "tarn bench whole: cpu: a table of ");
    assert_contains(o.err, "tarn bench whole: sim: a table of ");
    ck_assert(json_valid(o.out));
    ck_assert(json_is(o.out, "memcpy_gbs", "null"));
    ck_assert_uint_eq(json_size(o.out, "results"), 0);
    ck_assert_uint_eq(json_size(o.out, "tables"), 0);
    ck_assert_uint_eq(json_size(o.out, "goals"), 0);
  }
}

// --- MPI -------------------------------------------------------------------

static bool built_with_mpi(void) {
#ifdef TARN_MPIEXEC
  return true;
#else
  return false;
#endif
}

// Whether a peer was skipped.
static bool is_skipped(const char *json, const char *what) {
  char key[48];
  for (size_t i = 0; i < json_size(json, "skipped"); i++) {
    snprintf(key, sizeof key, "skipped.%zu.what", i);
    if (json_is_text(json, key, what)) return true;
  }
  return false;
}

// It may still lack the room or the right to run: then it says so.
TEST(the_same_by_mpi) {
  tool_output o =
      tool_did("bench", "whole", "--device", "cpu", SMALL, "-o", "json");
  bool runs = !is_skipped(o.out, "mpi");
  if (!built_with_mpi()) {
    ck_assert(json_is_text(o.out, "skipped.0.why",
                           "not there when this tool was built"));
  }
  ck_assert_uint_eq(count(o.out, "cpu", NULL, NULL, "mpi_window"),
                    runs ? 4 : 0);
  ck_assert_uint_eq(count(o.out, "cpu", NULL, NULL, "mpi_alltoallv"),
                    runs ? 2 : 0);
  assert_results(o.out);
  ck_assert(json_is(o.out, "goals.1.met", "null") == !runs);
}

// What is no such program, and what ends at once.
TEST(mpi_that_does_not_run) {
  static const char *const programs[] = {"/bin/echo", "/bin/false",
                                         "/nowhere/at/all"};
  for (size_t i = 0; i < 3; i++) {
    setenv("TARN_BENCH_MPI", programs[i], 1);
    tool_output o =
        tool_run("bench", "whole", "--device", "cpu", SMALL, "-o", "json");
    unsetenv("TARN_BENCH_MPI");
    assert_done(&o);
    ck_assert(is_skipped(o.out, "mpi"));
    ck_assert(json_is_text(o.out, "skipped.0.device", "cpu"));
    ck_assert_uint_eq(count(o.out, NULL, NULL, NULL, "mpi_window"), 0);
    ck_assert_uint_eq(json_size(o.out, "results"), 4 * 5 + 2 * 4);
  }
}

// Answers nonsense, keeps what it was asked, and does not end by itself.
static void write_liar(void) {
  FILE *out = fopen(tool_file("liar"), "w");
  ck_assert_ptr_nonnull(out);
  fprintf(out, "#!/bin/sh\nexec 3>>%s ", tool_file("asked"));
  fprintf(out, "4>%s\n", tool_file("pid"));
  fprintf(out,
          "echo $$ >&4\n"
          "echo '{\"ready\":true}'\n"
          "while read line; do echo \"$line\" >&3; echo nonsense; done\n"
          "exec sleep 1000\n");
  ck_assert_int_eq(fchmod(fileno(out), 0700), 0);
  ck_assert_int_eq(fclose(out), 0);
}

static void await_end_of(const char *pid) {
  while (kill((pid_t)atol(pid), 0) == 0)
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
}

// What it says later may be the answer to an earlier question: it is not asked
// again. Nor does it stay.
TEST(mpi_that_lies) {
  write_liar();
  setenv("TARN_BENCH_MPI", tool_file("liar"), 1);
  tool_output o = tool_run("bench", "whole", "-n", "1", "--device", "cpu",
                           SMALL, "-o", "json");
  unsetenv("TARN_BENCH_MPI");
  assert_done(&o);
  char *asked = tool_read_file(tool_file("asked"));
  char *pid = tool_read_file(tool_file("pid"));
  bool runs = !is_skipped(o.out, "mpi");
  ck_assert_int_eq(asked != NULL, runs);
  if (runs) {
    ck_assert_ptr_eq(strchr(asked, '\n'), asked + strlen(asked) - 1);
    ck_assert_ptr_nonnull(pid);
    await_end_of(pid);
  }
  ck_assert_uint_eq(count(o.out, "cpu", NULL, NULL, "mpi_window"),
                    runs ? 4 : 0);
  for (size_t i = 0; i < json_size(o.out, "results"); i++) {
    bool is_peer = has(o.out, i, "op", "mpi_window") ||
                   has(o.out, i, "op", "mpi_alltoallv");
    ck_assert(has(o.out, i, "failed", "the program under MPI says nonsense") ==
              is_peer);
  }
  free(pid);
}

// --- small gathers ---------------------------------------------------------

static void assert_smalls(const char *json, size_t count, bool by_numpy) {
  ck_assert_uint_eq(json_size(json, "small_gathers"), count);
  for (size_t i = 0; i < count; i++) {
    char key[48];
    snprintf(key, sizeof key, "small_gathers.%zu", i);
    assert_keys(json, key,
                "device,type,location,row_bytes,rows,gather_us,take_us,"
                "over_take,failed");
    snprintf(key, sizeof key, "small_gathers.%zu.gather_us", i);
    ck_assert_double_gt(json_number(json, key), 0);
    snprintf(key, sizeof key, "small_gathers.%zu.take_us", i);
    ck_assert(json_is(json, key, "null") != by_numpy);
    snprintf(key, sizeof key, "small_gathers.%zu.over_take", i);
    ck_assert(json_is(json, key, "null") != by_numpy);
  }
}

// Of mapped types on a device that the host reaches. A batch has 512 rows.
TEST(small_gathers_without_numpy) {
  tool_output o = tool_did("bench", "whole", QUICK, "-o", "json");
  assert_smalls(o.out, 4, false);
  ck_assert(json_is(o.out, "small_gathers.0.rows", "512"));
  ck_assert(json_is(o.out, "small_gathers.0.row_bytes", "64"));
  ck_assert(json_is_text(o.out, "goals.3.name", "small_gather_over_take"));
  ck_assert(json_is(o.out, "goals.3.met", "null"));
}

static tool_output run_with_python(const char *python) {
  setenv("TARN_BENCH_PYTHON", python, 1);
  tool_output o = tool_run("bench", "whole", "--device", "cpu", ONE, "--no-mpi",
                           "-o", "json");
  unsetenv("TARN_BENCH_PYTHON");
  return o;
}

static const char *write_python(const char *name, const char *script) {
  FILE *out = fopen(tool_file(name), "w");
  ck_assert_ptr_nonnull(out);
  fprintf(out, "#!/bin/sh\n%s\n", script);
  ck_assert_int_eq(fchmod(fileno(out), 0700), 0);
  ck_assert_int_eq(fclose(out), 0);
  return tool_file(name);
}

// Where NumPy is: it need not be.
TEST(small_gathers_beside_numpy) {
  tool_output o = tool_did("bench", "whole", "--device", "cpu,sim", ONE,
                           "--no-mpi", "--passes", "2", "-o", "json");
  bool is_there = json_size(o.out, "skipped") == 3;
  assert_smalls(o.out, 4, is_there);
  if (!is_there) {
    ck_assert_uint_eq(json_size(o.out, "skipped"), 4);
    note_skipped("small gathers by np.take", "NumPy is not installed");
  }
  ck_assert(json_is(o.out, "goals.3.met", "null") != is_there);
}

// A stand-in whose call takes 1000 us: a goal that is met by far.
TEST(small_gathers_beside_a_slow_one) {
  tool_output o = run_with_python(write_python(
      "slow", "echo ready; while read line; do echo 1000.000; done"));
  assert_done(&o);
  assert_smalls(o.out, 4, true);
  ck_assert(json_is(o.out, "small_gathers.0.take_us", "1000"));
  ck_assert_double_lt(json_number(o.out, "small_gathers.0.over_take"), 1);
  ck_assert(json_is(o.out, "goals.3.met", "true"));
}

// No Python, one without NumPy, and what is none.
TEST(numpy_that_is_not_there) {
  static const char *const whys[][2] = {
      {"exit 1", "python3 does not say that it is ready"},
      {"echo 'NumPy is not installed' >&2; exit 1", "NumPy is not installed"},
      {"echo hello; sleep 100", "python3 does not say that it is ready"}};
  for (size_t i = 0; i < 3; i++) {
    tool_output o = run_with_python(write_python("python", whys[i][0]));
    assert_done(&o);
    assert_smalls(o.out, 4, false);
    ck_assert(json_is_text(o.out, "skipped.1.what", "numpy"));
    ck_assert(json_is_text(o.out, "skipped.1.why", whys[i][1]));
  }
  tool_output o = run_with_python("/nowhere/at/all");
  assert_done(&o);
  assert_smalls(o.out, 4, false);
}

// A wrong answer is a failure, and so is none.
TEST(numpy_that_lies) {
  static const char *const scripts[][2] = {
      {"echo ready; while read line; do echo soon; done", "python3 says soon"},
      {"echo ready; while read line; do echo -1; done", "python3 says -1"},
      {"echo ready; read line; exit 1", "python3 has ended, or hangs"}};
  for (size_t i = 0; i < 3; i++) {
    tool_output o = run_with_python(write_python("python", scripts[i][0]));
    ck_assert_int_eq(o.status, 1);
    assert_contains(o.err, "tarn bench whole: cpu: NumPy, rows of 64 bytes: ");
    assert_smalls(o.out, 4, false);
    ck_assert(json_is_text(o.out, "small_gathers.0.failed", scripts[i][1]));
  }
}

// --- ranks of a launcher ---------------------------------------------------

// The first of them prints, and there are as many as it has started.
TEST(ranks_of_tarn_run) {
  tool_output o = tool_did("run", "-n", "3", "--", TARN_TOOL, "bench", "whole",
                           "--device", "cpu,sim", QUICK, "-o", "json");
  assert_json_line(o.out);
  ck_assert(json_is(o.out, "ranks", "3"));
  ck_assert_uint_eq(json_size(o.out, "results"), 4 * 5 + 2 * 4 + 6 * 4);
  assert_results(o.out);
}

TEST(peers_are_not_for_ranks_of_a_launcher) {
  tool_output o = tool_did("run", "-n", "1", "--", TARN_TOOL, "bench", "whole",
                           "--device", "cpu", SMALL, "-o", "json");
  ck_assert(json_is_text(o.out, "skipped.0.what", "mpi"));
  ck_assert(
      json_is_text(o.out, "skipped.0.why", "these ranks are a launcher's"));
}

TEST(a_launcher_says_how_many) {
  tool_output o = tool_run("run", "-n", "2", "--", TARN_TOOL, "bench", "whole",
                           "-n", "3", "--device", "cpu", QUICK);
  ck_assert_int_ne(o.status, 0);
  assert_contains(o.err,
                  "tarn bench whole: the launcher has started 2 ranks: "
                  "leave -n out");
  ck_assert_str_eq(o.out, "");
}

TEST(hosts_wants_several_machines) {
  assert_misused("bench whole --hosts",
                 "--hosts wants to be started as ranks on several machines: "
                 "mpirun --host A,B tarn bench whole --hosts");
  tool_output o = tool_run("run", "-n", "2", "--", TARN_TOOL, "bench", "whole",
                           "--hosts", QUICK);
  ck_assert_int_ne(o.status, 0);
  assert_contains(o.err,
                  "tarn bench whole: --hosts: all 2 ranks are on one machine: "
                  "mpirun --host A,B starts them on several, and TARN_HOST "
                  "says on which one a rank is");
}

// --- what ranks take -------------------------------------------------------

// Nobody counts messages here. One more gather takes nothing that stays.
TEST(what_ranks_of_a_machine_take) {
  static const char *const steps[] = {"communicator", "table", "first gather",
                                      "gather", "first fetch"};
  tool_output o = tool_did("run", "-n", "3", "--", TARN_TOOL, "bench", "whole",
                           "--footprint", "--batch", "64K", "-o", "json");
  assert_json_line(o.out);
  assert_keys(o.out, "",
              "device,ranks,machines,table_bytes,batch_bytes,row_bytes,"
              "results,machine");
  ck_assert(json_is(o.out, "ranks", "3"));
  ck_assert(json_is(o.out, "machines", "1"));
  ck_assert(json_is(o.out, "table_bytes", "3145728"));
  ck_assert_uint_eq(json_size(o.out, "results"), 5);
  for (size_t i = 0; i < 5; i++) {
    assert_keys(o.out, json_row(i, ""),
                "step,messages,messages_mean,host_bytes,peak_bytes,"
                "shared_bytes,mapped_bytes,descriptors");
    ck_assert(has(o.out, i, "step", steps[i]));
    ck_assert(json_is(o.out, json_row(i, "messages"), "null"));
    double own = json_number(o.out, json_row(i, "host_bytes"));
    ck_assert_double_ge(json_number(o.out, json_row(i, "peak_bytes")), own);
    ck_assert_double_eq(json_number(o.out, json_row(i, "mapped_bytes")),
                        3 * json_number(o.out, json_row(i, "shared_bytes")));
    ck_assert(i == 3 ? own == 0 : own > 0);
  }
  ck_assert_double_gt(json_number(o.out, "results.2.shared_bytes"), 0);
}

// --- wrong use -------------------------------------------------------------

TEST(help) {
  tool_output o = tool_done("bench whole --help");
  assert_contains(o.out, "usage: tarn bench whole ");
  o = tool_line("bench --help");
  assert_contains(o.out, "\n       tarn bench whole ");
}

TEST(wrong_names_and_values) {
  assert_misused("bench whole --device cpu:7", "cpu:7");
  assert_misused("bench whole --device sim,sim", "device 'sim' is named twice");
  assert_misused("bench whole cpu", "'cpu' is unexpected");
  assert_misused("bench whole -n 0", "--ranks wants a whole number");
  assert_misused("bench whole -n 65", "--ranks wants a whole number");
  assert_misused("bench whole --passes 102", "--passes wants a whole number");
  assert_misused("bench whole --rows 64,96",
                 "powers of two from 4 to 65536, not '96'");
  assert_misused("bench whole --rows 2", "not '2'");
  assert_misused("bench whole --rows 64,1K,64",
                 "rows of 64 bytes are named twice");
  assert_misused("bench whole --rows 128K", "not '128K'");
  assert_misused("bench whole --rows 4,8,16,32,64,128,256,512,1024",
                 "up to 8 powers of two");
  assert_misused("bench whole --size much", "--size");
  assert_misused("bench whole --interface lo", "--interface is for --hosts");
  assert_misused("bench whole --hosts --device cpu,sim",
                 "--hosts is for one device");
  assert_misused("bench whole --footprint", "wants to be started as ranks");
  assert_misused("bench whole --footprint --hosts", "not for --hosts");
  assert_misused("bench whole --footprint --rows 64,256", "one size of rows");
  assert_misused("bench whole -o xml", "'xml' is not a format");
}
