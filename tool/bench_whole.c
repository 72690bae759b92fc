// tarn bench whole: several processes gather and scatter rows of whole memory,
// compared with memcpy and MPI.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "bench/place.h"
#include "bench_each.h"
#include "bench_footprint.h"
#include "bench_hosts.h"
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
    "  -n, --ranks N    processes, 1 to 64 (default: 2). Under mpirun, srun "
    "or\n"
    "                   'tarn run' its ranks are the processes, and the first\n"
    "                   one prints\n"
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
    "  --hosts          instead of all that: distributed tables over several\n"
    "                   machines, beside the link between them and a gather "
    "by\n"
    "                   MPI_Alltoallv. To be started as ranks on several "
    "machines:\n"
    "                   mpirun --host A,B tarn bench whole --hosts\n"
    "  --interface NAME of the network between them (default: the first that "
    "two\n"
    "                   machines have in common)\n"
    "  --footprint      instead of all that: what ranks, a table and gathers "
    "take\n"
    "                   of each rank, in messages and memory. To be started as "
    "ranks:\n"
    "                   tarn run -n 4 -- tarn bench whole --footprint\n"
    "  -o FORMAT        table (default), json, csv or md\n"
    "  -h, --help       this text\n"
    "\n"
    "Exit status: 1 if something could not be measured, or rows were wrong (a\n"
    "goal that is missed does not count, nor what a device cannot do, nor "
    "Open\n"
    "MPI), 2 if a device does not exist.\n";

#define MPI_PROGRAM "tarn-bench-mpi"

enum { RANKS = 2, PASSES = 7 };

static const size_t usual_table = (size_t)2 << 30;
static const size_t usual_batch = (size_t)64 << 20;
static const size_t sim_table = (size_t)64 << 20;
static const size_t sim_batch = (size_t)4 << 20;
static const size_t hosts_table = (size_t)256 << 20;
static const size_t hosts_batch = (size_t)32 << 20;
static const size_t footprint_bytes = (size_t)1 << 20;
static const size_t footprint_row = 256;
static const size_t ready_most = (size_t)1 << 30;

typedef struct command {
  const tool_verb *verb;
  options_list devices;
  options_list plugins;
  uint64_t ranks;  // 0: as is usual, or as a launcher says
  uint64_t passes;
  size_t size;   // 0: as is usual
  size_t batch;  // likewise
  size_t rows[WHOLE_ROWS_MOST];
  size_t row_count;
  bool zipf;
  bool no_mpi;
  bool no_numpy;
  bool hosts;
  const char *interface;
  bool footprint;
  options_output output;

  char *mpi;        // the program; NULL: not found
  tarn_comm *comm;  // of a launcher's ranks; NULL: there is none
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

// Whether this process is the one that speaks.
static bool is_first(const command *c) {
  return c->comm == NULL || tarn_comm_rank(c->comm) == 0;
}

static size_t table_of(const command *c, const char *device, size_t batch) {
  if (c->size != 0) return c->size;
  if (is_sim(device)) return sim_table;
  size_t most = most_of_table(c, batch);
  size_t usual = c->hosts ? hosts_table : usual_table;
  size_t table = usual;
  while (table > most && table > batch)
    table /= 2;
  if (table < usual && is_first(c))
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

static whole_bench what_is_asked(const command *c, size_t index) {
  static const size_t usual_rows[] = {64, 256, 1024};
  const char *device = c->devices.items[index];
  whole_bench b = {.device = device,
                   .ranks = (size_t)c->ranks,
                   .comm = c->comm,
                   .passes = (size_t)c->passes,
                   .row_count = c->row_count,
                   .zipf = c->zipf};
  memcpy(b.row_bytes, c->rows, sizeof c->rows);
  if (b.row_count == 0) {
    memcpy(b.row_bytes, usual_rows, sizeof usual_rows);
    b.row_count = sizeof usual_rows / sizeof *usual_rows;
  }
  size_t batch = is_sim(device) ? sim_batch
                 : c->hosts     ? hosts_batch
                                : usual_batch;
  b.batch_bytes = cut(c->batch != 0 ? c->batch : batch, &b);
  b.table_bytes = table_of(c, device, b.batch_bytes);
  b.table_bytes = cut(b.table_bytes, &b);
  bool is_large = b.table_bytes > ready_most;
  b.ready_bytes = is_large ? cut(ready_most, &b) : b.table_bytes;
  add_mpi(c, &b);
  b.why_no_take = why_no_take(c, device);
  return b;
}

// The sizes of the first rank are those of all: each sees other memory that is
// available. False: it does not go on.
static bool agree(const command *c, whole_bench *b, bool *has_room, char *why) {
  struct {
    size_t table, batch, ready;
    bool has_room;
  } said = {b->table_bytes, b->batch_bytes, b->ready_bytes, *has_room};
  if (c->comm == NULL) return true;
  if (!place_tell(c->comm, &said, sizeof said, why)) return false;
  b->table_bytes = said.table;
  b->batch_bytes = said.batch;
  b->ready_bytes = said.ready;
  *has_room = said.has_room;
  return true;
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
  o->bench = what_is_asked(c, index);
  bool has_room = !is_first(c) || there_is_room(c, &o->bench);
  if (!agree(c, &o->bench, &has_room, why))
    return tool_fail(c->verb, "%s: %s", o->bench.device, why);
  if (!has_room) return TOOL_NO;
  bool any = whole_bench_run(&o->bench, &o->result, why);
  if (!is_first(c)) return TOOL_DONE;
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
  if (!is_first(c)) return;
  bench_whole_report_write(outcomes, c->devices.count, c->output);
}

static void deinit(void *context) {
  command *c = context;
  free(c->mpi);
}

// Ranks that a launcher has started are as many as it says.
static tool_exit take_place(command *c) {
  char why[CHILD_TEXT_SIZE];
  if (!place_take(WHOLE_TIMEOUT_MS, &c->comm, why))
    return tool_fail(c->verb, "%s", why);
  size_t ranks = tarn_comm_size(c->comm);
  if (ranks > WHOLE_RANKS_MOST || (c->ranks != 0 && c->ranks != ranks)) {
    return !is_first(c) ? TOOL_MISUSE
                        : tool_misuse(c->verb,
                                      "the launcher has started %zu ranks: "
                                      "leave -n out, with at most %d of them",
                                      ranks, WHOLE_RANKS_MOST);
  }
  c->ranks = ranks;
  return TOOL_DONE;
}

// The first rank's, so that a launcher is told one thing.
static tool_exit leave_place(command *c, tool_exit status) {
  char why[CHILD_TEXT_SIZE];
  if (c->comm == NULL) return status;
  int said = (int)status;
  if (!place_tell(c->comm, &said, sizeof said, why)) said = TOOL_NO;
  (void)tarn_comm_destroy(c->comm);
  c->comm = NULL;
  return (tool_exit)said;
}

static tool_exit measure_devices(command *c) {
  c->mpi = find_mpi();
  return bench_each(&c->devices, sizeof(bench_whole_outcome), measure_device,
                    report, c);
}

static tool_exit measure_hosts(command *c) {
  char why[CHILD_TEXT_SIZE];
  whole_bench b = what_is_asked(c, 0);
  bool has_room = !is_first(c) || there_is_room(c, &b);
  if (!agree(c, &b, &has_room, why)) return tool_fail(c->verb, "%s", why);
  if (!has_room) return TOOL_NO;
  return bench_hosts_measure(c->verb, &b, c->interface, c->no_mpi, c->output);
}

// A part of the table, and a batch, are the same with any number of ranks.
static tool_exit measure_footprint(const command *c, footprint_view joined) {
  whole_bench b = {.device = c->devices.items[0],
                   .ranks = (size_t)c->ranks,
                   .comm = c->comm,
                   .row_count = 1};
  b.row_bytes[0] = c->row_count != 0 ? c->rows[0] : footprint_row;
  size_t table = footprint_bytes * b.ranks;
  b.batch_bytes = cut(c->batch != 0 ? c->batch : footprint_bytes, &b);
  b.table_bytes = cut(c->size != 0 ? c->size : table, &b);
  return bench_footprint_measure(c->verb, &b, joined, c->output);
}

// Ranks of one machine have clocks in common; what they share is another
// benchmark's.
static tool_exit see_machines(const command *c) {
  if (c->comm == NULL && !c->hosts) return TOOL_DONE;
  if (c->comm == NULL) {
    return tool_misuse(c->verb,
                       "--hosts wants to be started as ranks on several "
                       "machines: mpirun --host A,B tarn bench whole --hosts");
  }
  size_t machines = hosts_count(c->comm);
  if ((machines > 1) == c->hosts) return TOOL_DONE;
  if (!is_first(c)) return TOOL_MISUSE;
  return c->hosts ? tool_misuse(c->verb,
                                "--hosts: all %zu ranks are on one machine: "
                                "mpirun --host A,B starts them on several, and "
                                "TARN_HOST says on which one a rank is",
                                (size_t)c->ranks)
                  : tool_misuse(c->verb,
                                "the ranks are on %zu machines, which --hosts "
                                "is for",
                                machines);
}

static tool_exit measure(command *c) {
  tool_exit status = place_is_given() ? take_place(c) : TOOL_DONE;
  if (status == TOOL_DONE && c->footprint && c->comm != NULL) {
    return leave_place(c, measure_footprint(c, footprint_look()));
  }
  if (c->ranks == 0) c->ranks = RANKS;
  if (status == TOOL_DONE) status = see_machines(c);
  if (status == TOOL_DONE)
    status = c->hosts ? measure_hosts(c) : measure_devices(c);
  return leave_place(c, status);
}

static tool_exit check_hosts(const command *c) {
  if (c->interface != NULL && !c->hosts)
    return tool_misuse(c->verb, "--interface is for --hosts");
  if (c->hosts && c->devices.count > 1)
    return tool_misuse(c->verb, "--hosts is for one device");
  return TOOL_DONE;
}

static tool_exit check_footprint(const command *c) {
  if (!c->footprint) return TOOL_DONE;
  if (c->hosts) return tool_misuse(c->verb, "--footprint is not for --hosts");
  if (c->devices.count > 1 || c->row_count > 1)
    return tool_misuse(c->verb,
                       "--footprint is for one device and one size of rows");
  if (!place_is_given())
    return tool_misuse(c->verb,
                       "--footprint wants to be started as ranks: tarn run -n "
                       "4 -- tarn bench whole --footprint");
  return TOOL_DONE;
}

// Devices are tried in children, which there can be before MPI has begun.
static tool_exit work(void *context) {
  command *c = context;
  const char *usual = c->hosts || c->footprint ? "cpu" : "cpu,sim";
  if (c->footprint) footprint_watch();
  if (c->devices.count == 0) options_pools_split(usual, &c->devices);
  if (check_hosts(c) != TOOL_DONE || check_footprint(c) != TOOL_DONE)
    return TOOL_MISUSE;
  tool_exit status =
      bench_devices_prepare(c->verb, &c->devices, &c->plugins, try_device, c);
  return status == TOOL_DONE ? measure(c) : status;
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
    OPTION_FLAG("hosts", hosts),
    OPTION_TEXT("interface", interface),
    OPTION_FLAG("footprint", footprint),
    OPTION_OUTPUT(output),
    {0},
};

const tool_verb bench_of_wholes = {
    .name = "bench whole",
    .summary = "rows of one memory over several processes, over memcpy",
    .help = help,
    .entries = entries,
    OPTIONS_COMMAND(.passes = PASSES),
    .work = work,
    .end = deinit,
};
