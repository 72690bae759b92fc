// tarn bench whole: several processes gather and scatter rows of whole memory,
// compared with memcpy and MPI.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench_each.h"
#include "bench_whole_report.h"
#include "kit/format.h"
#include "kit/memory.h"
#include "kit/options.h"
#include "launch.h"

static const char help[] =
    "usage: tarn bench whole [OPTION]...\n"
    "\n"
    "Tells how fast rows of a table that several processes have together are\n"
    "gathered, scattered and added to, by each of the six types of memory, "
    "over "
    "a\n"
    "memcpy by the same processes; and, where it was there when this tool was\n"
    "built, over Open MPI. Gathers of 1,024 rows that are in the caches, by "
    "one\n"
    "process, are timed beside NumPy's take. That rows are right is checked "
    "before\n"
    "and after.\n"
    "\n"
    "  -n, --ranks N    processes, 1 to 64 (default: 2)\n"
    "  --device NAME    which, any number of times or with commas between "
    "them\n"
    "                   (default: cpu,sim; sim is a device for tests)\n"
    "  --plugin PATH    a plug-in to load beforehand, any number of times\n"
    "  --size BYTES     of a table (default: 2G, or what memory allows; of "
    "sim\n"
    "                   64M)\n"
    "  --rows LIST      bytes of a row, powers of two from 4 to 64K (default:\n"
    "                   64,256,1024)\n"
    "  --batch BYTES    of rows that a process moves at a time (default: 64M; "
    "of\n"
    "                   sim 4M)\n"
    "  --passes N       passes that count, 1 to 101 (default: 7)\n"
    "  --zipf           gather by indices after Zipf's law as well\n"
    "  --no-mpi         leave Open MPI out\n"
    "  --no-numpy       leave NumPy out\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "Exit status: 1 if something could not be measured, or rows were wrong (a\n"
    "goal that is missed does not count, nor what a device cannot do, nor "
    "Open\n"
    "MPI), 2 if a device does not exist.\n";

#define MPI_PROGRAM "tarn-bench-mpi"

enum { PASSES = 7 };

static const size_t usual_table = (size_t)2 << 30;
static const size_t usual_batch = (size_t)64 << 20;
static const size_t sim_table = (size_t)64 << 20;
static const size_t sim_batch = (size_t)4 << 20;
static const size_t ready_most = (size_t)1 << 30;

typedef struct command {
  const tool_verb *verb;
  options_list devices;
  options_list plugins;
  uint64_t ranks;
  uint64_t passes;
  size_t size;   // 0: as is usual
  size_t batch;  // likewise
  size_t rows[WHOLE_ROWS_MOST];
  size_t row_count;
  bool zipf;
  bool no_mpi;
  bool no_numpy;
  options_output output;

  char *mpi;  // the program; NULL: not found
} command;

// ---------------------------------------------------------------------------
// Options
// ---------------------------------------------------------------------------

static bool is_row_size(size_t size) {
  bool is_power = (size & (size - 1)) == 0;
  return is_power && size >= WHOLE_ROW_LEAST && size <= WHOLE_ROW_MOST;
}

static bool has_row_size(const command *c, size_t size) {
  for (size_t i = 0; i < c->row_count; i++) {
    if (c->rows[i] == size) return true;
  }
  return false;
}

static bool add_row_size(command *c, const char *text) {
  size_t size = 0;
  if (!options_bytes_parse(c->verb, "--rows", text, &size)) return false;
  if (!is_row_size(size) || c->row_count == WHOLE_ROWS_MOST) {
    tool_misuse(c->verb,
                "--rows wants up to %d powers of two from %d to %d, not '%s'",
                WHOLE_ROWS_MOST, WHOLE_ROW_LEAST, WHOLE_ROW_MOST, text);
    return false;
  }
  if (has_row_size(c, size)) {
    tool_misuse(c->verb, "rows of %zu bytes are named twice", size);
    return false;
  }
  c->rows[c->row_count++] = size;
  return true;
}

static bool add_row_sizes(void *context, const char *text) {
  command *c = context;
  options_list sizes = {0};
  bool good = true;
  options_pools_split(text, &sizes);
  for (size_t i = 0; i < sizes.count && good; i++)
    good = add_row_size(c, sizes.items[i]);
  options_list_free(&sizes);
  return good;
}

// ---------------------------------------------------------------------------
// Sizes
// ---------------------------------------------------------------------------

static bool is_sim(const char *device) {
  return strncmp(device, "sim", 3) == 0;
}

// What all ranks have besides a table; SIZE_MAX: more than can be counted.
static size_t besides(const command *c, size_t batch) {
  size_t bytes = 0;
  return tarn_size_mul((size_t)c->ranks * 6, batch, &bytes) ? bytes : SIZE_MAX;
}

// Two tables, ours and that of MPI, and the batches fit into three quarters of
// the memory.
static size_t most_of_table(const command *c, size_t batch) {
  size_t others = besides(c, batch);
  size_t room = memory_available() / 4 * 3;
  return room > others ? (room - others) / 2 : 0;
}

// Where memory runs out, the kernel ends some process, which may be any.
static bool there_is_room(const command *c, const whole_bench *b) {
  char table[FORMAT_SIZE];
  char batch[FORMAT_SIZE];
  char room[FORMAT_SIZE];
  size_t all = 0;
  size_t available = memory_available();
  if (available == 0) return true;
  if (tarn_size_add(b->table_bytes, besides(c, b->batch_bytes), &all) &&
      all <= available) {
    return true;
  }
  tool_say(c->verb,
           "%s: a table of %s, and batches of %s of each rank, are too much "
           "for the %s of memory that is available",
           b->device, format_bytes(table, b->table_bytes),
           format_bytes(batch, b->batch_bytes), format_bytes(room, available));
  return false;
}

static size_t table_of(const command *c, const char *device, size_t batch) {
  if (c->size != 0) return c->size;
  if (is_sim(device)) return sim_table;
  size_t most = most_of_table(c, batch);
  size_t table = usual_table;
  while (table > most && table > batch)
    table /= 2;
  if (table < usual_table)
    tool_say(c->verb, "%s: a table of %zu MiB is all that memory allows",
             device, table >> 20);
  return table;
}

// Whole blocks, at least one for each rank.
static size_t cut(size_t size, const whole_bench *b) {
  size_t block = whole_granularity(b);
  size_t least = block * b->ranks;
  return size < least ? least : size - size % block;
}

// Empty if the tool was built without MPI.
#ifndef TARN_MPIEXEC
#define TARN_MPIEXEC ""
#endif

static const char *why_no_mpi(const command *c, const char *device) {
  if (c->no_mpi) return "not asked for";
  if (strncmp(device, "cpu", 3) != 0) return "it has no such device";
  if (TARN_MPIEXEC[0] == '\0') return "not there when this tool was built";
  return c->mpi == NULL ? MPI_PROGRAM " is not where the tool is" : NULL;
}

static void add_mpi(const command *c, whole_bench *b) {
  b->why_not = why_no_mpi(c, b->device);
  b->mpi = b->why_not == NULL ? c->mpi : NULL;
  b->mpirun = TARN_MPIEXEC;
}

static const char *why_no_take(const command *c, const char *device) {
  if (c->no_numpy) return "not asked for";
  bool is_host = strncmp(device, "cpu", 3) == 0;
  return is_host ? NULL : "it has no such device";
}

static whole_bench what_to_measure(const command *c, size_t index) {
  static const size_t usual_rows[] = {64, 256, 1024};
  const char *device = c->devices.items[index];
  whole_bench b = {.device = device,
                   .ranks = (size_t)c->ranks,
                   .passes = (size_t)c->passes,
                   .row_count = c->row_count,
                   .zipf = c->zipf};
  memcpy(b.row_bytes, c->rows, sizeof c->rows);
  if (b.row_count == 0) {
    memcpy(b.row_bytes, usual_rows, sizeof usual_rows);
    b.row_count = sizeof usual_rows / sizeof *usual_rows;
  }
  size_t batch = is_sim(device) ? sim_batch : usual_batch;
  b.batch_bytes = cut(c->batch != 0 ? c->batch : batch, &b);
  b.table_bytes = table_of(c, device, b.batch_bytes);
  b.table_bytes = cut(b.table_bytes, &b);
  bool is_large = b.table_bytes > ready_most;
  b.ready_bytes = is_large ? cut(ready_most, &b) : b.table_bytes;
  add_mpi(c, &b);
  b.why_no_take = why_no_take(c, device);
  return b;
}

static bool try_device(const void *context, size_t index,
                       char why[CHILD_TEXT_SIZE]) {
  const command *c = context;
  whole_bench bench = {.device = c->devices.items[index]};
  return whole_bench_try(&bench, why);
}

// ---------------------------------------------------------------------------
// The work
// ---------------------------------------------------------------------------

static tool_exit tell(const command *c, const bench_whole_outcome *o) {
  tool_exit status = TOOL_DONE;
  for (size_t i = 0; i < WHOLE_KINDS; i++) {
    const whole_made *m = &o->result.made[i];
    if (m->why[0] != '\0' && !m->is_skipped)
      status = tool_fail(c->verb, "%s: %s on %s: %s", o->bench.device,
                         tarn_whole_type_name(m->kind.type),
                         whole_kind_location(m->kind), m->why);
  }
  for (size_t i = 0; i < o->result.small_count; i++) {
    const whole_small *small = &o->result.smalls[i];
    if (small->why[0] != '\0')
      status = tool_fail(c->verb, "%s: NumPy, rows of %zu bytes: %s",
                         o->bench.device, small->row_bytes, small->why);
  }
  for (size_t i = 0; i < o->result.count; i++) {
    const whole_figure *f = &o->result.figures[i];
    if (f->why[0] != '\0' && !f->is_skipped)
      status =
          tool_fail(c->verb, "%s: %s on %s, %s: %s", o->bench.device,
                    tarn_whole_type_name(f->kind.type),
                    whole_kind_location(f->kind), whole_op_name(f->op), f->why);
  }
  return status;
}

static tool_exit measure_device(void *context, size_t index, void *outcome) {
  const command *c = context;
  bench_whole_outcome *o = outcome;
  char why[CHILD_TEXT_SIZE];
  o->bench = what_to_measure(c, index);
  if (!there_is_room(c, &o->bench)) return TOOL_NO;
  bool any = whole_bench_run(&o->bench, &o->result, why);
  tool_exit status = tell(c, o);
  if (why[0] == '\0' && any) return status;
  return tool_fail(c->verb, "%s: %s", o->bench.device, why);
}

// The program that runs under MPI.
static char *find_mpi(void) {
  const char *named = getenv("TARN_BENCH_MPI");
  bool is_named = named != NULL && *named != '\0';
  return is_named ? tool_text(named) : launch_find(MPI_PROGRAM);
}

static void report(const void *context, const void *outcomes) {
  const command *c = context;
  bench_whole_report_write(outcomes, c->devices.count, c->output);
}

static void deinit(void *context) {
  command *c = context;
  free(c->mpi);
}

static tool_exit work(void *context) {
  command *c = context;
  if (c->devices.count == 0) options_pools_split("cpu,sim", &c->devices);
  tool_exit status =
      bench_devices_prepare(c->verb, &c->devices, &c->plugins, try_device, c);
  if (status != TOOL_DONE) return status;
  c->mpi = find_mpi();
  return bench_each(&c->devices, sizeof(bench_whole_outcome), measure_device,
                    report, c);
}

static const options_entry entries[] = {
    OPTION_NUMBER_OR("ranks", 'n', ranks, 1, WHOLE_RANKS_MOST),
    OPTION_POOLS("device", devices),
    OPTION_LIST("plugin", plugins),
    OPTION_BYTES("size", size),
    OPTION_CALL("rows", add_row_sizes),
    OPTION_BYTES("batch", batch),
    OPTION_NUMBER("passes", passes, 1, WHOLE_PASSES_MOST),
    OPTION_FLAG("zipf", zipf),
    OPTION_FLAG("no-mpi", no_mpi),
    OPTION_FLAG("no-numpy", no_numpy),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_wholes = {
    .name = "bench whole",
    .summary = "rows of one memory over several processes, over memcpy",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.ranks = 2, .passes = PASSES),
    .work = work,
    .end = deinit,
};
