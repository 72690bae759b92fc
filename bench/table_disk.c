// A table on a disk, with a quarter of its bytes as memory (tarn/disk.h).
//
//   inference  rows are asked for by Zipf's law, or all alike; by turns with
//              fio's random reads of 4 KiB at the same depth
//   training   rows are gathered, and learn by Adam; by turns with fio's random
//              reads and writes, half of each
//   methods    reads by io_uring, and by threads, by turns; all rows alike
//   memmap     NumPy's, with as much memory, all rows alike
//
// There are two tables of about the same size: one that learns, whose records
// are rows with their states, and one of rows alone.
//
// What the disk allows is fio's rate over the blocks that a row costs: those
// that had to be read for it. In training each of them has changed, and is read
// and written: there it is fio's pairs of a read and a write.
//
// Only the first rank works. That rows come back, and have learned as often as
// they were told to, is checked at the end.
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit/process.h"
#include "kit/tool.h"
#include "table_disk_scene.h"
#include "table_fio.h"
#include "table_memmap.h"
#include "table_parts.h"
#include "whole_indices.h"

enum {
  BLOCK = 4096,
  DISK_PASSES = 7,  // at most: each takes seconds
};

// --- figures -----------------------------------------------------------------

enum {
  OVER_LIMIT,  // of each law
  OVER_MEMMAP = TABLE_DISK_LAWS,
  TRAIN_OVER_LIMIT,
  RESIDENT_OVER_BUDGET,
  EXCHANGE_BYTES,
  URING_OVER_THREADS,
  URING_CPU_OVER_THREADS,
  ROWS,  // of each law
  READ_BLOCKS = ROWS + TABLE_DISK_LAWS,
  FIO_READS = READ_BLOCKS + TABLE_DISK_LAWS,
  MEMMAP_ROWS,
  TRAIN_ROWS,
  TRAIN_READ,
  TRAIN_WRITTEN,
  TRAIN_OVER_REQUESTS,
  FIO_PAIRS,
  FLUSH_SECONDS,
  FIGURES
};

#define LIMIT(law, name, what) \
  [OVER_LIMIT + (law)] = {name, "ratio", what, .8, SHEET_AT_LEAST}
#define PLAIN(at, name, unit, what) \
  [at] = {name, unit, what, NAN, SHEET_AT_LEAST}

static const bench_figure figures[FIGURES] = {
    LIMIT(TABLE_DISK_ZIPF105, "disk_zipf105_over_limit",
          "fio's reads over blocks read per row; Zipf 1.05"),
    LIMIT(TABLE_DISK_ZIPF109, "disk_zipf109_over_limit", "Zipf 1.09"),
    LIMIT(TABLE_DISK_ZIPF115, "disk_zipf115_over_limit", "Zipf 1.15"),
    LIMIT(TABLE_DISK_UNIFORM, "disk_uniform_over_limit", "all rows alike"),
    [OVER_MEMMAP] = {"disk_uniform_over_memmap", "ratio",
                     "NumPy's, MADV_RANDOM, as much memory", 4, SHEET_AT_LEAST},
    [TRAIN_OVER_LIMIT] = {"disk_train_over_limit", "ratio",
                          "fio's pairs over blocks per row; Zipf 1.05", .6,
                          SHEET_AT_LEAST},
    [RESIDENT_OVER_BUDGET] = {"resident_over_budget", "ratio",
                              "all that training adds, but for exchanges", 1.02,
                              SHEET_AT_MOST},
    [EXCHANGE_BYTES] = {"disk_exchange", "MiB", "of a table in memory", NAN,
                        SHEET_AT_MOST},
    PLAIN(URING_OVER_THREADS, "disk_uring_over_threads", "ratio",
          "blocks read a second, all rows alike"),
    [URING_CPU_OVER_THREADS] = {"disk_uring_cpu_over_threads", "ratio",
                                "processor time of a block", NAN,
                                SHEET_AT_MOST},
    PLAIN(ROWS + TABLE_DISK_ZIPF105, "disk_zipf105", "rows/s", ""),
    PLAIN(ROWS + TABLE_DISK_ZIPF109, "disk_zipf109", "rows/s", ""),
    PLAIN(ROWS + TABLE_DISK_ZIPF115, "disk_zipf115", "rows/s", ""),
    PLAIN(ROWS + TABLE_DISK_UNIFORM, "disk_uniform", "rows/s", ""),
    PLAIN(READ_BLOCKS + TABLE_DISK_ZIPF105, "disk_zipf105_read", "blocks/row",
          ""),
    PLAIN(READ_BLOCKS + TABLE_DISK_ZIPF109, "disk_zipf109_read", "blocks/row",
          ""),
    PLAIN(READ_BLOCKS + TABLE_DISK_ZIPF115, "disk_zipf115_read", "blocks/row",
          ""),
    PLAIN(READ_BLOCKS + TABLE_DISK_UNIFORM, "disk_uniform_read", "blocks/row",
          ""),
    PLAIN(FIO_READS, "fio_reads", "1/s", "4 KiB, direct, 128 under way"),
    PLAIN(MEMMAP_ROWS, "memmap_uniform", "rows/s", ""),
    PLAIN(TRAIN_ROWS, "disk_train", "rows/s", "Zipf 1.05, Adam"),
    PLAIN(TRAIN_READ, "disk_train_read", "blocks/row", "of rows not in memory"),
    PLAIN(TRAIN_WRITTEN, "disk_train_written", "blocks/row",
          "gathered: fewer than change"),
    PLAIN(TRAIN_OVER_REQUESTS, "disk_train_requests_over_fio", "ratio",
          "all reads and writes over fio's"),
    PLAIN(FIO_PAIRS, "fio_pairs", "1/s", "4 KiB, direct, a read and a write"),
    [FLUSH_SECONDS] = {"disk_flush", "s", "after training", NAN, SHEET_AT_MOST},
};

typedef struct values {
  double all[TABLE_PASSES_MOST];
  size_t count;
} values;

static void add(values *v, double value) {
  if (v->count < TABLE_PASSES_MOST) v->all[v->count++] = value;
}

typedef struct disk {
  table_disk of;
  size_t passes;
  const char *no_fio;
  char why_no_fio[TABLE_TEXT_SIZE];
  values samples[FIGURES];
} disk;

// --- beside fio --------------------------------------------------------------

// Reads a second, or pairs of a read and a write.
static bool run_fio(disk *d, const char *action, double *out, char *why) {
  const table_fio_job job = {
      .path = d->of.file,
      .action = action,
      .block = BLOCK,
      .depth = TABLE_DISK_DEPTH,
      .processes = 1,
      .part = d->of.plain.rows * d->of.row / BLOCK * BLOCK,
      .seconds = table_disk_seconds};
  table_fio_speed speed;
  *out = NAN;
  if (!table_fio_run(&job, &speed, why)) return false;
  *out = speed.reads;
  return true;
}

// One pass and fio's, in turns which is first.
static bool go_beside_fio(table_scene *s, disk *d, const char *action,
                          bool turned, table_disk_pass *out, double *out_fio) {
  *out_fio = NAN;
  if (turned && d->no_fio == NULL &&
      !run_fio(d, action, out_fio, d->why_no_fio)) {
    d->no_fio = d->why_no_fio;
  }
  if (!table_disk_go(s, &d->of, table_disk_seconds, out)) return false;
  if (!turned && d->no_fio == NULL &&
      !run_fio(d, action, out_fio, d->why_no_fio)) {
    d->no_fio = d->why_no_fio;
  }
  return true;
}

static bool measure_law(table_scene *s, disk *d, size_t law) {
  if (!table_disk_open(s, &d->of, &d->of.plain, law) ||
      !table_disk_warm(s, &d->of))
    return false;
  for (size_t i = 0; i < d->passes; i++) {
    table_disk_pass p;
    double fio = NAN;
    if (!go_beside_fio(s, d, "randread", i % 2 != 0, &p, &fio)) return false;
    add(&d->samples[ROWS + law], p.rows / p.seconds);
    add(&d->samples[READ_BLOCKS + law], p.read / p.rows);
    if (d->no_fio != NULL) continue;
    add(&d->samples[OVER_LIMIT + law], p.read / p.seconds / fio);
    add(&d->samples[FIO_READS], fio);
  }
  return table_disk_close(s, &d->of);
}

// --- io_uring beside threads
// --------------------------------------------------

// Begins with nothing in memory.
static bool go_by(table_scene *s, disk *d, uint64_t flags, table_disk_pass *out,
                  const char **out_method) {
  tarn_disk_info info = {.struct_size = sizeof info};
  d->of.flags = flags;
  bool did = table_disk_open(s, &d->of, &d->of.plain, TABLE_DISK_UNIFORM);
  d->of.flags = 0;
  if (!did || !table_did(s, tarn_disk_query(d->of.table, &info)) ||
      !table_disk_go(s, &d->of, table_disk_seconds, out))
    return false;
  *out_method = info.method;
  return table_disk_close(s, &d->of);
}

static bool measure_methods(table_scene *s, disk *d, table_result *out) {
  enum { THREADS, URING, METHODS };
  for (size_t i = 0; i < d->passes; i++) {
    table_disk_pass p[METHODS];
    const char *method = NULL;
    size_t first = i % 2;
    for (size_t k = 0; k < METHODS; k++) {
      size_t m = (first + k) % METHODS;
      uint64_t flags = m == THREADS ? TARN_DISK_THREADS : 0;
      if (!go_by(s, d, flags, &p[m], &method)) return false;
      if (m == THREADS || strcmp(method, "io_uring") == 0) continue;
      table_skip(out, URING_OVER_THREADS, "no io_uring here");
      table_skip(out, URING_CPU_OVER_THREADS, "no io_uring here");
      return true;
    }
    add(&d->samples[URING_OVER_THREADS],
        p[URING].read / p[URING].seconds /
            (p[THREADS].read / p[THREADS].seconds));
    add(&d->samples[URING_CPU_OVER_THREADS],
        p[URING].cpu_seconds / p[URING].read /
            (p[THREADS].cpu_seconds / p[THREADS].read));
  }
  return true;
}

// --- training ----------------------------------------------------------------

static bool train(table_scene *s, disk *d) {
  for (size_t i = 0; i < d->passes; i++) {
    table_disk_pass p;
    double fio = NAN;
    if (!go_beside_fio(s, d, "randrw", i % 2 != 0, &p, &fio)) return false;
    add(&d->samples[TRAIN_ROWS], p.rows / p.seconds);
    add(&d->samples[TRAIN_READ], p.read / p.rows);
    add(&d->samples[TRAIN_WRITTEN], p.written / p.rows);
    if (d->no_fio != NULL) continue;
    add(&d->samples[TRAIN_OVER_LIMIT], p.read / p.seconds / fio);
    add(&d->samples[TRAIN_OVER_REQUESTS],
        (p.read + p.merged + p.written) / p.seconds / (2 * fio));
    add(&d->samples[FIO_PAIRS], fio);
  }
  double begin = process_clock();
  if (!table_did(s, tarn_disk_flush(d->of.table))) return false;
  add(&d->samples[FLUSH_SECONDS], process_clock() - begin);
  return true;
}

// --- memory ------------------------------------------------------------------

// Without what was freed before: it could be used again, and would not show.
static double resident_bytes(void) {
  unsigned long pages = 0;
  (void)malloc_trim(0);
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL) return NAN;
  if (fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
  fclose(file);
  return pages == 0 ? NAN : (double)pages * (double)sysconf(_SC_PAGESIZE);
}

// What exchanges of a batch add, whatever the table is on: the memory of a
// table on a disk is without it (tarn_disk_options). That of the table in
// memory is there before.
//
// Rows are all different first, as an apply keeps notes on each; then they are
// drawn as in training, as it adds up gradients of those that come again.
static bool use_twin(table_scene *s, disk *d, const tarn_whole_tensor *twin,
                     tarn_embedding *learning, double *out_bytes) {
  double before = resident_bytes();
  d->of.rows = d->of.batch;
  (void)table_disk_count_on(&d->of, 0);
  bool did = table_disk_use(s, &d->of, twin, learning, d->of.numbers);
  whole_draw_power(d->of.numbers, d->of.batch, d->of.batch, 1.05, 1);
  did = did && table_disk_use(s, &d->of, twin, learning, d->of.numbers);
  *out_bytes = resident_bytes() - before;
  return did;
}

static bool measure_exchange(table_scene *s, disk *d, double *out_bytes) {
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = TARN_WHOLE_DISTRIBUTED,
                                            .place = TARN_HOST,
                                            .dtype = TARN_DTYPE_F32,
                                            .rows = d->of.batch,
                                            .width = d->of.width};
  tarn_embedding_options adam;
  tarn_whole_tensor twin;
  tarn_embedding *learning = NULL;
  return table_did(s, tarn_embedding_defaults(TARN_OPTIMIZER_ADAM, &adam)) &&
         table_did(s, tarn_whole_table_create(s->comm, &options, &twin)) &&
         table_did(s, tarn_embedding_create(&twin, &adam, &learning)) &&
         use_twin(s, d, &twin, learning, out_bytes) &&
         table_did(s, tarn_embedding_destroy(learning)) &&
         table_did(s, tarn_whole_destroy(twin.whole));
}

// Training uses all that there is of a table. What exchanges take is measured
// by itself, and told by itself: it does not depend on the table's memory, and
// what the table has beyond its own must show, be it less than an exchange.
static bool measure_training(table_scene *s, disk *d) {
  double exchange = 0;
  double before = resident_bytes();
  if (!table_disk_open(s, &d->of, &d->of.learning, TABLE_DISK_ZIPF105) ||
      !table_disk_warm(s, &d->of) || !train(s, d))
    return false;
  double added = resident_bytes() - before;
  if (!table_disk_close(s, &d->of) || !measure_exchange(s, d, &exchange))
    return false;
  add(&d->samples[RESIDENT_OVER_BUDGET],
      (added - exchange) / (double)d->of.budget);
  add(&d->samples[EXCHANGE_BYTES], exchange / (1 << 20));
  return true;
}

// --- beside memmap -----------------------------------------------------------

static bool measure_memmap(table_scene *s, disk *d, table_result *out) {
  char why[TABLE_TEXT_SIZE];
  const table_memmap_job job = {.path = d->of.file,
                                .rows = d->of.plain.rows,
                                .row_bytes = d->of.row,
                                .memory = d->of.budget,
                                .batch = d->of.batch};
  double rows = 0;
  talk *memmap = table_memmap_start(&job, why);
  bool has = memmap != NULL &&
             table_memmap_measure(memmap, 4 * table_disk_seconds, &rows, why);
  bool did = table_disk_open(s, &d->of, &d->of.plain, TABLE_DISK_UNIFORM) &&
             (!has || table_disk_warm(s, &d->of));
  for (size_t i = 0; did && has && i < d->passes; i++) {
    table_disk_pass p;
    has = table_memmap_measure(memmap, table_disk_seconds, &rows, why);
    did = table_disk_go(s, &d->of, table_disk_seconds, &p);
    if (!has || !did) break;
    add(&d->samples[MEMMAP_ROWS], rows);
    add(&d->samples[OVER_MEMMAP], p.rows / p.seconds / rows);
  }
  if (!has) {
    table_skip(out, OVER_MEMMAP, why);
    table_skip(out, MEMMAP_ROWS, why);
  }
  talk_stop(memmap, false);
  return did && table_disk_close(s, &d->of);
}

// --- all ---------------------------------------------------------------------

static void note(const disk *d, table_result *out) {
  for (size_t i = 0; i < FIGURES; i++)
    table_note(out, i, d->samples[i].all, d->samples[i].count);
  if (d->no_fio == NULL) return;
  for (size_t i = OVER_LIMIT; i < TABLE_DISK_LAWS; i++)
    table_skip(out, i, d->no_fio);
  table_skip(out, TRAIN_OVER_LIMIT, d->no_fio);
  table_skip(out, TRAIN_OVER_REQUESTS, d->no_fio);
  table_skip(out, FIO_READS, d->no_fio);
  table_skip(out, FIO_PAIRS, d->no_fio);
}

static bool measure_all(table_scene *s, disk *d, table_result *out) {
  if (!table_disk_make_file(s, &d->of) ||
      !table_disk_make(s, &d->of, &d->of.plain) ||
      !table_disk_make(s, &d->of, &d->of.learning) || !measure_training(s, d)) {
    return false;
  }
  for (size_t law = 0; law < TABLE_DISK_LAWS; law++)
    if (!measure_law(s, d, law)) return false;
  return measure_methods(s, d, out) && measure_memmap(s, d, out) &&
         table_disk_check_plain(s, &d->of) &&
         table_disk_check_learning(s, &d->of);
}

static bool measure_alone(table_scene *alone, void *context) {
  table_result *out = context;
  disk *d = tool_array(1, sizeof *d);
  size_t passes = alone->bench->passes;
  d->passes = passes < DISK_PASSES ? passes : DISK_PASSES;
  table_disk_prepare(alone, &d->of);
  bool did = measure_all(alone, d, out);
  note(d, out);
  table_disk_end(&d->of);
  free(d);
  return did;
}

static bool measure(table_scene *s, table_result *out) {
  return table_alone(s, measure_alone, out);
}

const table_part table_disk_part = {
    .name = "disk", .figures = figures, .count = FIGURES, .measure = measure};
