// A table on a disk, with a quarter of its bytes as memory.
//
//   inference  rows are asked for by Zipf's law, or all alike; by turns with
//              fio's random reads of 4 KiB at the same depth
//   training   each row that is asked for is changed; by turns with fio's
//              random reads and writes, half of each
//   memmap     NumPy's, with as much memory, all rows alike
//
// What the disk allows is fio's rate over the blocks that a row costs: those
// that had to be read for it. In training each of them has changed, and is read
// and written: there it is fio's pairs of a read and a write.
//
// Only the first rank works: a table is one rank's. That rows come back is
// checked at the end.
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "disk/records.h"
#include "kit/process.h"
#include "kit/tool.h"
#include "table_fio.h"
#include "table_memmap.h"
#include "table_parts.h"
#include "table_scene.h"
#include "whole_indices.h"

enum {
  BLOCK = 4096,
  DEPTH = 128,
  MOST_BATCH = 32768,  // rows of a call
  PART = 8,            // of those in memory that a call asks for at most
  DRAWN = 1 << 21,     // numbers of rows, drawn at a time
  MOST_WARMING = 16,   // rows asked for before, for each line
  DISK_PASSES = 7,     // at most: each takes seconds
  TIMES_MEMORY = 4,    // the table's bytes over the budget's
};

static const size_t usual_disk_size = (size_t)256 << 20;
static const double pass_seconds = 1.5;

// --- figures -----------------------------------------------------------------

enum { ZIPF105, ZIPF109, ZIPF115, UNIFORM, READ_LAWS };

enum {
  OVER_LIMIT,  // of each law
  OVER_MEMMAP = READ_LAWS,
  TRAIN_OVER_LIMIT,
  RESIDENT_OVER_BUDGET,
  ROWS,  // of each law
  READ_BLOCKS = ROWS + READ_LAWS,
  FIO_READS = READ_BLOCKS + READ_LAWS,
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
    LIMIT(ZIPF105, "disk_zipf105_over_limit",
          "fio's reads over blocks read per row; Zipf 1.05"),
    LIMIT(ZIPF109, "disk_zipf109_over_limit", "Zipf 1.09"),
    LIMIT(ZIPF115, "disk_zipf115_over_limit", "Zipf 1.15"),
    LIMIT(UNIFORM, "disk_uniform_over_limit", "all rows alike"),
    [OVER_MEMMAP] = {"disk_uniform_over_memmap", "ratio",
                     "NumPy's, MADV_RANDOM, as much memory", 4, SHEET_AT_LEAST},
    [TRAIN_OVER_LIMIT] = {"disk_train_over_limit", "ratio",
                          "fio's pairs over blocks per row; Zipf 1.05", .6,
                          SHEET_AT_LEAST},
    [RESIDENT_OVER_BUDGET] = {"resident_over_budget", "ratio",
                              "all of the process that the store adds", 1.02,
                              SHEET_AT_MOST},
    PLAIN(ROWS + ZIPF105, "disk_zipf105", "rows/s", ""),
    PLAIN(ROWS + ZIPF109, "disk_zipf109", "rows/s", ""),
    PLAIN(ROWS + ZIPF115, "disk_zipf115", "rows/s", ""),
    PLAIN(ROWS + UNIFORM, "disk_uniform", "rows/s", ""),
    PLAIN(READ_BLOCKS + ZIPF105, "disk_zipf105_read", "blocks/row", ""),
    PLAIN(READ_BLOCKS + ZIPF109, "disk_zipf109_read", "blocks/row", ""),
    PLAIN(READ_BLOCKS + ZIPF115, "disk_zipf115_read", "blocks/row", ""),
    PLAIN(READ_BLOCKS + UNIFORM, "disk_uniform_read", "blocks/row", ""),
    PLAIN(FIO_READS, "fio_reads", "1/s", "4 KiB, direct, 128 under way"),
    PLAIN(MEMMAP_ROWS, "memmap_uniform", "rows/s", ""),
    PLAIN(TRAIN_ROWS, "disk_train", "rows/s", "Zipf 1.05, each row changes"),
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
  size_t rows;
  size_t row;
  size_t budget;
  size_t passes;
  size_t batch;
  char path[TABLE_PATH_SIZE];
  char plain[TABLE_PATH_SIZE];  // as large, for fio and memmap
  size_t law;
  uint64_t draws;
  int64_t *drawn;
  size_t at;  // of the next batch
  void **pinned;
  tarn__disk_records *records;
  bool train;
  uint64_t changes;  // that rows have had
  const char *no_fio;
  char why_no_fio[TABLE_TEXT_SIZE];
  values samples[FIGURES];
} disk;

// --- files -------------------------------------------------------------------

static bool make_plain(table_scene *s, const disk *d) {
  enum { CHUNK = 1 << 20 };
  unsigned char *bytes = tool_array(CHUNK, 1);
  int fd = open(d->plain, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bool did = fd >= 0;
  memset(bytes, 1, CHUNK);
  for (size_t done = 0; did && done < d->rows * d->row; done += CHUNK)
    did = pwrite(fd, bytes, CHUNK, (off_t)done) == CHUNK;
  did = did && fsync(fd) == 0 &&
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
  if (!did) (void)table_refuse(s, "%s: %s", d->plain, strerror(errno));
  if (fd >= 0) close(fd);
  free(bytes);
  return did;
}

static bool open_records(table_scene *s, disk *d, size_t budget) {
  const tarn__disk_records_options options = {.budget = budget, .depth = DEPTH};
  return table_did(s, tarn__records_open(d->path, 0, &options, &d->records));
}

static void close_records(disk *d) {
  tarn__records_close(d->records);
  d->records = NULL;
}

// A row says which it is, and how often it has changed.
static void fill(const disk *d, uint64_t row, unsigned char *record) {
  memset(record, (int)(row & 0x7f), d->row);
  memset(record, 0, sizeof(uint32_t));
}

static bool make_records(table_scene *s, disk *d) {
  const tarn__disk_records_shape shape = {d->row, d->rows};
  uint64_t *numbers = tool_array(d->batch, sizeof *numbers);
  bool did = table_did(s, tarn__records_create(d->path, &shape, NULL)) &&
             open_records(s, d, d->budget);
  for (size_t first = 0; did && first < d->rows; first += d->batch) {
    size_t count = d->rows - first < d->batch ? d->rows - first : d->batch;
    for (size_t i = 0; i < count; i++)
      numbers[i] = first + i;
    did =
        table_did(s, tarn__records_pin(d->records, numbers, count, d->pinned));
    for (size_t i = 0; did && i < count; i++)
      fill(d, first + i, d->pinned[i]);
    if (did) tarn__records_unpin(d->records, d->pinned, count, true);
  }
  did = did && table_did(s, tarn__records_flush(d->records, NULL));
  close_records(d);
  free(numbers);
  return did;
}

// --- rows --------------------------------------------------------------------

// New ones each time: a cache that holds all rows of one draw would have
// nothing to read.
static void draw_rows(disk *d) {
  static const double exponents[] = {
      [ZIPF105] = 1.05, [ZIPF109] = 1.09, [ZIPF115] = 1.15};
  d->draws++;
  if (d->law == UNIFORM) {
    whole_draw_uniform(d->drawn, DRAWN, d->rows, d->draws);
  } else {
    whole_draw_power(d->drawn, DRAWN, d->rows, exponents[d->law], d->draws);
  }
  d->at = 0;
}

static void choose_law(disk *d, size_t law) {
  d->law = law;
  draw_rows(d);
}

static void change(void *row) {
  uint32_t count = 0;
  memcpy(&count, row, sizeof count);
  count++;
  memcpy(row, &count, sizeof count);
}

static bool go_batch(table_scene *s, disk *d) {
  const uint64_t *numbers = (const uint64_t *)(const void *)d->drawn + d->at;
  d->at += d->batch;
  if (!table_did(s,
                 tarn__records_pin(d->records, numbers, d->batch, d->pinned)))
    return false;
  uint32_t sum = 0;
  for (size_t i = 0; i < d->batch; i++) {
    if (d->train) change(d->pinned[i]);
    sum += *(const unsigned char *)d->pinned[i];
  }
  __asm__ volatile("" ::"r"(sum));
  tarn__records_unpin(d->records, d->pinned, d->batch, d->train);
  if (d->train) d->changes += d->batch;
  return true;
}

// What a pass came to.
typedef struct pass {
  double rows;
  double read;  // blocks, for rows that were not in memory
  double merged;
  double written;
  double seconds;
} pass;

static bool go(table_scene *s, disk *d, double seconds, pass *out) {
  tarn__disk_records_tally before;
  tarn__disk_records_tally after;
  double taken = 0;
  tarn__records_count(d->records, &before);
  while (taken < seconds) {
    if (d->at + d->batch > DRAWN) draw_rows(d);
    double begin = process_clock();
    if (!go_batch(s, d)) return false;
    taken += process_clock() - begin;
  }
  tarn__records_count(d->records, &after);
  *out =
      (pass){.rows = (double)(after.asked - before.asked),
             .read = (double)(after.blocks_read - before.blocks_read),
             .merged = (double)(after.blocks_merged - before.blocks_merged),
             .written = (double)(after.blocks_written - before.blocks_written),
             .seconds = taken};
  return true;
}

// Until as many blocks were read as there are lines, or so many rows asked for
// that those which are asked for often are there.
static bool warm(table_scene *s, disk *d) {
  tarn__disk_records_tally tally;
  pass unused;
  do {
    if (!go(s, d, pass_seconds / 3, &unused)) return false;
    tarn__records_count(d->records, &tally);
  } while (tally.blocks_read < tally.lines &&
           tally.asked < MOST_WARMING * tally.lines);
  return true;
}

// --- beside fio --------------------------------------------------------------

// Reads a second, or pairs of a read and a write.
static bool run_fio(disk *d, const char *action, double *out, char *why) {
  const table_fio_job job = {.path = d->plain,
                             .action = action,
                             .block = BLOCK,
                             .depth = DEPTH,
                             .processes = 1,
                             .part = d->rows * d->row / BLOCK * BLOCK,
                             .seconds = pass_seconds};
  table_fio_speed speed;
  *out = NAN;
  if (!table_fio_run(&job, &speed, why)) return false;
  *out = speed.reads;
  return true;
}

// One pass and fio's, in turns which is first.
static bool go_beside_fio(table_scene *s, disk *d, const char *action,
                          bool turned, pass *out, double *out_fio) {
  *out_fio = NAN;
  if (turned && d->no_fio == NULL &&
      !run_fio(d, action, out_fio, d->why_no_fio)) {
    d->no_fio = d->why_no_fio;
  }
  if (!go(s, d, pass_seconds, out)) return false;
  if (!turned && d->no_fio == NULL &&
      !run_fio(d, action, out_fio, d->why_no_fio)) {
    d->no_fio = d->why_no_fio;
  }
  return true;
}

static bool measure_law(table_scene *s, disk *d, size_t law) {
  choose_law(d, law);
  if (!open_records(s, d, d->budget) || !warm(s, d)) return false;
  for (size_t i = 0; i < d->passes; i++) {
    pass p;
    double fio = NAN;
    if (!go_beside_fio(s, d, "randread", i % 2 != 0, &p, &fio)) return false;
    add(&d->samples[ROWS + law], p.rows / p.seconds);
    add(&d->samples[READ_BLOCKS + law], p.read / p.rows);
    if (d->no_fio != NULL) continue;
    add(&d->samples[OVER_LIMIT + law], p.read / p.seconds / fio);
    add(&d->samples[FIO_READS], fio);
  }
  close_records(d);
  return true;
}

// --- memory ------------------------------------------------------------------

static double resident_bytes(void) {
  unsigned long pages = 0;
  FILE *file = fopen("/proc/self/statm", "re");
  if (file == NULL) return NAN;
  if (fscanf(file, "%*u %lu", &pages) != 1) pages = 0;
  fclose(file);
  return pages == 0 ? NAN : (double)pages * (double)sysconf(_SC_PAGESIZE);
}

// Training, which uses all that there is of a store, and then a flush.
static bool measure_training(table_scene *s, disk *d) {
  choose_law(d, ZIPF105);
  double before = resident_bytes();
  d->train = true;
  if (!open_records(s, d, d->budget) || !warm(s, d)) return false;
  for (size_t i = 0; i < d->passes; i++) {
    pass p;
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
  if (!table_did(s, tarn__records_flush(d->records, NULL))) return false;
  add(&d->samples[FLUSH_SECONDS], process_clock() - begin);
  add(&d->samples[RESIDENT_OVER_BUDGET],
      (resident_bytes() - before) / (double)d->budget);
  close_records(d);
  d->train = false;
  return true;
}

// --- beside memmap -----------------------------------------------------------

static bool measure_memmap(table_scene *s, disk *d, table_result *out) {
  char why[TABLE_TEXT_SIZE];
  const table_memmap_job job = {.path = d->plain,
                                .rows = d->rows,
                                .row_bytes = d->row,
                                .memory = d->budget,
                                .batch = d->batch};
  double rows = 0;
  talk *memmap = table_memmap_start(&job, why);
  bool has = memmap != NULL &&
             table_memmap_measure(memmap, 4 * pass_seconds, &rows, why);
  choose_law(d, UNIFORM);
  bool did = !has || (open_records(s, d, d->budget) && warm(s, d));
  for (size_t i = 0; did && has && i < d->passes; i++) {
    pass p;
    has = table_memmap_measure(memmap, pass_seconds, &rows, why);
    did = go(s, d, pass_seconds, &p);
    if (!has || !did) break;
    add(&d->samples[MEMMAP_ROWS], rows);
    add(&d->samples[OVER_MEMMAP], p.rows / p.seconds / rows);
  }
  if (!has) {
    table_skip(out, OVER_MEMMAP, why);
    table_skip(out, MEMMAP_ROWS, why);
  }
  talk_stop(memmap, false);
  close_records(d);
  return did;
}

// --- all ---------------------------------------------------------------------

// Every row is what it was, with as many changes as were made.
static bool check(table_scene *s, disk *d) {
  uint64_t changes = 0;
  bool did = open_records(s, d, d->budget);
  for (uint64_t first = 0; did && first < d->rows; first++) {
    void *row = NULL;
    uint32_t count = 0;
    did = table_did(s, tarn__records_pin(d->records, &first, 1, &row));
    if (!did) break;
    memcpy(&count, row, sizeof count);
    changes += count;
    const unsigned char *bytes = row;
    for (size_t i = sizeof count; did && i < d->row; i++)
      did = bytes[i] == (first & 0x7f) || table_refuse(s, "a row is wrong");
    tarn__records_unpin(d->records, &row, 1, false);
  }
  close_records(d);
  return did && (changes == d->changes ||
                 table_refuse(s, "%llu changes of rows were lost",
                              (unsigned long long)(d->changes - changes)));
}

static void note(const disk *d, table_result *out) {
  for (size_t i = 0; i < FIGURES; i++)
    table_note(out, i, d->samples[i].all, d->samples[i].count);
  if (d->no_fio == NULL) return;
  for (size_t i = OVER_LIMIT; i < READ_LAWS; i++)
    table_skip(out, i, d->no_fio);
  table_skip(out, TRAIN_OVER_LIMIT, d->no_fio);
  table_skip(out, TRAIN_OVER_REQUESTS, d->no_fio);
  table_skip(out, FIO_READS, d->no_fio);
  table_skip(out, FIO_PAIRS, d->no_fio);
}

static void prepare(const table_scene *s, disk *d) {
  const table_bench *b = s->bench;
  size_t size = b->size != 0 ? b->size : usual_disk_size;
  d->row = b->row_bytes;
  d->rows = size / d->row;
  d->budget = d->rows * d->row / TIMES_MEMORY;
  d->passes = b->passes < DISK_PASSES ? b->passes : DISK_PASSES;
  d->batch = d->budget / d->row / PART;
  if (d->batch > MOST_BATCH) d->batch = MOST_BATCH;
  d->drawn = tool_array(DRAWN, sizeof *d->drawn);
  d->pinned = tool_array(d->batch, sizeof *d->pinned);
  memset(d->pinned, 1, d->batch * sizeof *d->pinned);  // it is resident
  table_path(s, "table.disk", d->path);
  table_path(s, "table.plain", d->plain);
}

static bool measure_all(table_scene *s, disk *d, table_result *out) {
  if (!make_plain(s, d) || !make_records(s, d)) return false;
  if (!measure_training(s, d)) return false;
  for (size_t law = 0; law < READ_LAWS; law++)
    if (!measure_law(s, d, law)) return false;
  return measure_memmap(s, d, out) && check(s, d);
}

static bool measure(table_scene *s, table_result *out) {
  disk *d = tool_array(1, sizeof *d);
  bool did = true;
  if (s->rank == 0) {
    prepare(s, d);
    did = measure_all(s, d, out);
    note(d, out);
    close_records(d);
    free(d->drawn);
    free(d->pinned);
  }
  free(d);
  return table_agree(s, did);
}

const table_part table_disk_part = {
    .name = "disk", .figures = figures, .count = FIGURES, .measure = measure};
