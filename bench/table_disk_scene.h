// table_disk_scene.h - what `tarn bench table disk` measures: two tables on a
// disk, with a quarter of their bytes as memory, one of rows alone and one that
// learns by Adam.
#ifndef TARN_BENCH_TABLE_DISK_SCENE_H_
#define TARN_BENCH_TABLE_DISK_SCENE_H_

#include "table_scene.h"
#include "tarn/disk.h"

enum { TABLE_DISK_DEPTH = 128 };  // blocks under way

static const double table_disk_seconds = 1.5;  // of a pass

// How rows are drawn: by Zipf's law, or all alike.
enum {
  TABLE_DISK_ZIPF105,
  TABLE_DISK_ZIPF109,
  TABLE_DISK_ZIPF115,
  TABLE_DISK_UNIFORM,
  TABLE_DISK_LAWS
};

// A table on the disk.
typedef struct table_disk_kept {
  char path[TABLE_PATH_SIZE];
  size_t rows;
  bool learns;
} table_disk_kept;

typedef struct table_disk {
  size_t row;  // bytes
  size_t width;
  size_t budget;
  size_t batch;
  table_disk_kept plain;
  table_disk_kept learning;
  char file[TABLE_PATH_SIZE];  // as large as the plain table, without rows
  uint64_t flags;              // with which tables are opened
  size_t law;
  uint64_t draws;
  int64_t *drawn;
  size_t at;  // of the next batch
  int64_t *numbers;
  float *dense;      // rows of a batch, and then their gradients
  uint32_t *named;   // of each row that learns, the last batch that had it
  uint32_t batches;  // that have learned
  uint64_t steps;    // that rows have made in them
  tarn_disk *table;  // that is open
  size_t rows;       // of it
  bool learns;       // likewise
} table_disk;

// Sizes, names and memory, which is touched; and its end, with that of a table
// that is open.
void table_disk_prepare(const table_scene *s, table_disk *d);
void table_disk_end(table_disk *d);

// All others return false after a failure, which the scene has.

// Makes the file, or a table with all of its rows.
bool table_disk_make_file(table_scene *s, const table_disk *d);
bool table_disk_make(table_scene *s, table_disk *d, const table_disk_kept *k);

// Opens a table, of which rows are drawn by |law|; and closes it.
bool table_disk_open(table_scene *s, table_disk *d, const table_disk_kept *k,
                     size_t law);
bool table_disk_close(table_scene *s, table_disk *d);

// The next rows in order, as many as a batch has at most, from |first| on, into
// |d->numbers|.
size_t table_disk_count_on(table_disk *d, size_t first);

// Gathers a batch of |table|, and applies its gradients unless |learning| is
// NULL.
bool table_disk_use(table_scene *s, const table_disk *d,
                    const tarn_whole_tensor *table, tarn_embedding *learning,
                    const int64_t *numbers);

// What a pass came to.
typedef struct table_disk_pass {
  double rows;  // that were asked for
  double read;  // blocks, for rows that were not in memory
  double merged;
  double written;
  double seconds;
  double cpu_seconds;
} table_disk_pass;

// Batches for |seconds|.
bool table_disk_go(table_scene *s, table_disk *d, double seconds,
                   table_disk_pass *out);

// Batches until memory has what is asked for often.
bool table_disk_warm(table_scene *s, table_disk *d);

// Whether rows are as they were written, and have learned as often as they were
// told to.
bool table_disk_check_plain(table_scene *s, table_disk *d);
bool table_disk_check_learning(table_scene *s, table_disk *d);

#endif  // TARN_BENCH_TABLE_DISK_SCENE_H_
