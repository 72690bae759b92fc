// Tables on a disk: made, opened, used by batches of rows, and looked at.
#include "table_disk_scene.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "kit/process.h"
#include "kit/tool.h"
#include "whole_indices.h"

enum {
  MOST_BATCH = 32768,  // rows of a call
  PART = 8,            // of those in memory that a call asks for at most
  DRAWN = 1 << 21,     // numbers of rows, drawn at a time
  MOST_WARMING = 16,   // rows asked for before, for each line
  TIMES_MEMORY = 4,    // the table's bytes over the budget's
};

static const size_t usual_disk_size = (size_t)256 << 20;

// --- files -------------------------------------------------------------------

bool table_disk_make_file(table_scene *s, const table_disk *d) {
  enum { CHUNK = 1 << 20 };
  unsigned char *bytes = tool_array(CHUNK, 1);
  int fd = open(d->file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  bool did = fd >= 0;
  memset(bytes, 1, CHUNK);
  for (size_t done = 0; did && done < d->plain.rows * d->row; done += CHUNK)
    did = pwrite(fd, bytes, CHUNK, (off_t)done) == CHUNK;
  did = did && fsync(fd) == 0 &&
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0;
  if (!did) (void)table_refuse(s, "%s: %s", d->file, strerror(errno));
  if (fd >= 0) close(fd);
  free(bytes);
  return did;
}

static bool open_table(table_scene *s, table_disk *d, const table_disk_kept *k,
                       uint64_t flags) {
  tarn_embedding_options adam;
  if (!table_did(s, tarn_embedding_defaults(TARN_OPTIMIZER_ADAM, &adam)))
    return false;
  const tarn_disk_options options = {.struct_size = sizeof options,
                                     .path = k->path,
                                     .flags = flags,
                                     .dtype = TARN_DTYPE_F32,
                                     .rows = k->rows,
                                     .width = d->width,
                                     .optimizer = k->learns ? &adam : NULL,
                                     .memory = d->budget,
                                     .depth = TABLE_DISK_DEPTH};
  d->rows = k->rows;
  d->learns = k->learns;
  return table_did(s, tarn_disk_open(s->comm, &options, &d->table));
}

bool table_disk_close(table_scene *s, table_disk *d) {
  tarn_disk *table = d->table;
  d->table = NULL;
  return table_did(s, tarn_disk_close(table));
}

// --- rows --------------------------------------------------------------------

static tarn_whole_rows rows_of(const void *dense, const int64_t *numbers,
                               size_t count) {
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .place = TARN_HOST,
                           .dense = tarn_addr_of(dense),
                           .indices = tarn_addr_of(numbers),
                           .index_dtype = TARN_DTYPE_I64,
                           .index_count = count};
}

static bool gather(table_scene *s, const tarn_whole_tensor *table,
                   const void *dense, const int64_t *numbers, size_t count) {
  const tarn_whole_rows rows = rows_of(dense, numbers, count);
  return table_did(s, tarn_whole_gather(table, &rows, NULL));
}

// The next rows in order, as many as a batch has at most, from |first| on.
size_t table_disk_count_on(table_disk *d, size_t first) {
  size_t count = d->rows - first < d->batch ? d->rows - first : d->batch;
  for (size_t i = 0; i < count; i++)
    d->numbers[i] = (int64_t)(first + i);
  return count;
}

// All rows: one that was never written would cost no read.
static bool fill(table_scene *s, table_disk *d) {
  tarn_whole_tensor table = tarn_disk_table(d->table);
  bool did = true;
  memset(d->dense, 0, d->batch * d->row);
  for (size_t first = 0; did && first < d->rows; first += d->batch) {
    size_t count = table_disk_count_on(d, first);
    const tarn_whole_rows rows = rows_of(d->dense, d->numbers, count);
    if (!d->learns) whole_rows_fill(d->dense, d->numbers, count, d->width, 0);
    did = table_did(s, tarn_whole_scatter(&table, &rows, NULL));
  }
  return did;
}

bool table_disk_make(table_scene *s, table_disk *d, const table_disk_kept *k) {
  return open_table(s, d, k, TARN_DISK_CREATE) && fill(s, d) &&
         table_did(s, tarn_disk_flush(d->table)) && table_disk_close(s, d);
}

// New ones each time: a cache that holds all rows of one draw would have
// nothing to read.
static void draw_rows(table_disk *d) {
  static const double exponents[] = {[TABLE_DISK_ZIPF105] = 1.05,
                                     [TABLE_DISK_ZIPF109] = 1.09,
                                     [TABLE_DISK_ZIPF115] = 1.15};
  d->draws++;
  if (d->law == TABLE_DISK_UNIFORM) {
    whole_draw_uniform(d->drawn, DRAWN, d->rows, d->draws);
  } else {
    whole_draw_power(d->drawn, DRAWN, d->rows, exponents[d->law], d->draws);
  }
  d->at = 0;
}

bool table_disk_open(table_scene *s, table_disk *d, const table_disk_kept *k,
                     size_t law) {
  d->law = law;
  d->at = DRAWN;
  return open_table(s, d, k, d->flags);
}

static const int64_t *next_batch(table_disk *d) {
  if (d->at + d->batch > DRAWN) draw_rows(d);
  const int64_t *numbers = d->drawn + d->at;
  d->at += d->batch;
  return numbers;
}

// A row that a batch names several times makes one step.
static void count_steps(table_disk *d, const int64_t *numbers) {
  d->batches++;
  for (size_t i = 0; i < d->batch; i++) {
    d->steps += d->named[numbers[i]] != d->batches;
    d->named[numbers[i]] = d->batches;
  }
}

// Each element is to become 1: what it lacks is its gradient.
static void make_gradients(const table_disk *d) {
  for (size_t i = 0; i < d->batch * d->width; i++)
    d->dense[i] -= 1;
}

bool table_disk_use(table_scene *s, const table_disk *d,
                    const tarn_whole_tensor *table, tarn_embedding *learning,
                    const int64_t *numbers) {
  const tarn_whole_rows gradients = rows_of(d->dense, numbers, d->batch);
  if (!gather(s, table, d->dense, numbers, d->batch)) return false;
  if (learning == NULL) return true;
  make_gradients(d);
  return table_did(s, tarn_embedding_apply(learning, &gradients, NULL));
}

static bool query(table_scene *s, const table_disk *d, tarn_disk_info *out) {
  out->struct_size = sizeof *out;
  return table_did(s, tarn_disk_query(d->table, out));
}

// Of all threads, those of the kernel for this process too.
static double cpu_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static bool go_batches(table_scene *s, table_disk *d, double seconds,
                       table_disk_pass *out) {
  tarn_whole_tensor table = tarn_disk_table(d->table);
  tarn_embedding *learning = tarn_disk_embedding(d->table);
  *out = (table_disk_pass){0};
  while (out->seconds < seconds) {
    const int64_t *numbers = next_batch(d);
    if (learning != NULL) count_steps(d, numbers);
    double begin = process_clock();
    double cpu = cpu_clock();
    if (!table_disk_use(s, d, &table, learning, numbers)) return false;
    out->seconds += process_clock() - begin;
    out->cpu_seconds += cpu_clock() - cpu;
    out->rows += (double)d->batch;
  }
  return true;
}

bool table_disk_go(table_scene *s, table_disk *d, double seconds,
                   table_disk_pass *out) {
  tarn_disk_info before;
  tarn_disk_info after;
  if (!query(s, d, &before) || !go_batches(s, d, seconds, out) ||
      !query(s, d, &after)) {
    return false;
  }
  out->read = (double)(after.blocks_read - before.blocks_read);
  out->merged = (double)(after.blocks_merged - before.blocks_merged);
  out->written = (double)(after.blocks_written - before.blocks_written);
  return true;
}

// Until as many blocks were read as there are lines, or so many rows asked for
// that those which are asked for often are there.
bool table_disk_warm(table_scene *s, table_disk *d) {
  tarn_disk_info info;
  double rows = 0;
  table_disk_pass p;
  do {
    if (!table_disk_go(s, d, table_disk_seconds / 3, &p) || !query(s, d, &info))
      return false;
    rows += p.rows;
  } while (info.blocks_read < info.lines &&
           rows < MOST_WARMING * (double)info.lines);
  return true;
}

// --- memory ------------------------------------------------------------------

// Memory that is touched here is none that the table adds.
static void *touched(size_t count, size_t size) {
  return memset(tool_array(count, size), 1, count * size);
}

void table_disk_prepare(const table_scene *s, table_disk *d) {
  const table_bench *b = s->bench;
  size_t size = b->size != 0 ? b->size : usual_disk_size;
  d->row = b->row_bytes;
  d->width = d->row / sizeof(float);
  d->plain.rows = size / d->row;
  d->learning.rows = size / (3 * d->row + sizeof(int32_t));
  d->learning.learns = true;
  d->budget = d->plain.rows * d->row / TIMES_MEMORY;
  d->batch = d->budget / (3 * d->row + sizeof(int32_t)) / PART;
  if (d->batch > MOST_BATCH) d->batch = MOST_BATCH;
  d->drawn = touched(DRAWN, sizeof *d->drawn);
  d->numbers = touched(d->batch, sizeof *d->numbers);
  d->dense = touched(d->batch, d->row);
  d->named = touched(d->learning.rows, sizeof *d->named);
  memset(d->named, 0, d->learning.rows * sizeof *d->named);
  table_path(s, "rows", d->plain.path);
  table_path(s, "learning", d->learning.path);
  table_path(s, "plain", d->file);
}

void table_disk_end(table_disk *d) {
  (void)tarn_disk_close(d->table);
  free(d->drawn);
  free(d->numbers);
  free(d->dense);
  free(d->named);
}

// --- what the tables have in the end -----------------------------------------

bool table_disk_check_plain(table_scene *s, table_disk *d) {
  bool did = open_table(s, d, &d->plain, 0);
  tarn_whole_tensor table = tarn_disk_table(d->table);
  for (size_t first = 0; did && first < d->rows; first += d->batch) {
    size_t count = table_disk_count_on(d, first);
    did = gather(s, &table, d->dense, d->numbers, count) &&
          (whole_rows_right(d->dense, d->numbers, count, d->width, 0) ||
           table_refuse(s, "a row is wrong"));
  }
  return did && table_disk_close(s, d);
}

// All elements of a row have had the same gradients: they are the same, and
// have left 0 with the first step.
static bool is_learned(const float *row, size_t width, int32_t steps) {
  bool right = (steps > 0) == (row[0] > 0);
  for (size_t i = 1; i < width; i++)
    right = right && row[i] == row[0];
  return right;
}

static bool find_steps(table_scene *s, const table_disk *d,
                       tarn_whole_tensor *out) {
  tarn_whole_named tensors[TARN_EMBEDDING_TENSORS];
  size_t count = 0;
  if (!table_did(s, tarn_embedding_tensors(tarn_disk_embedding(d->table),
                                           tensors, &count))) {
    return false;
  }
  for (size_t i = 0; i < count; i++) {
    if (strcmp(tensors[i].name, "step") != 0) continue;
    *out = tensors[i].tensor;
    return true;
  }
  return table_refuse(s, "no steps are counted");
}

// |counts| has room for those of a batch.
static bool check_steps(table_scene *s, table_disk *d, int32_t *counts) {
  tarn_whole_tensor table = tarn_disk_table(d->table);
  tarn_whole_tensor steps;
  uint64_t made = 0;
  bool did = find_steps(s, d, &steps);
  for (size_t first = 0; did && first < d->rows; first += d->batch) {
    size_t count = table_disk_count_on(d, first);
    did = gather(s, &table, d->dense, d->numbers, count) &&
          gather(s, &steps, counts, d->numbers, count);
    for (size_t i = 0; did && i < count; i++) {
      made += (uint64_t)counts[i];
      did = is_learned(d->dense + i * d->width, d->width, counts[i]) ||
            table_refuse(s, "a row is wrong that has learned");
    }
  }
  return did &&
         (made == d->steps ||
          table_refuse(s, "rows have made %llu steps, not %llu",
                       (unsigned long long)made, (unsigned long long)d->steps));
}

bool table_disk_check_learning(table_scene *s, table_disk *d) {
  int32_t *counts = tool_array(d->batch, sizeof *counts);
  bool did = open_table(s, d, &d->learning, 0) && check_steps(s, d, counts);
  free(counts);
  return did && table_disk_close(s, d);
}
