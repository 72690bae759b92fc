// table_bench.h - tables that are kept in files, learn, and are larger than
// memory (tarn/table.h and what builds on it).
//
// `tarn bench table --help` tells what is measured. A part is a file
// table_NAME.c, which defines a table_part, and a row of the table in
// table_bench.c.
#ifndef TARN_BENCH_TABLE_BENCH_H_
#define TARN_BENCH_TABLE_BENCH_H_

#include "figure.h"

enum {
  TABLE_RANKS_MOST = 64,
  TABLE_PASSES_MOST = 101,
  TABLE_FIGURES_MOST = 48,  // of a part
  TABLE_TEXT_SIZE = 192,
  TABLE_PATH_SIZE = 512,
  TABLE_TIMEOUT_MS = 240000,  // for which ranks wait for each other
};

typedef struct table_bench {
  size_t ranks;
  size_t passes;       // that count
  size_t size;         // bytes of a table; 0: as is usual for the part
  size_t row_bytes;    // a multiple of 4
  const char *folder;  // in which files are made
} table_bench;

// What was measured of a part, figure by figure.
typedef struct table_value {
  double value;               // the median; NaN: none
  double low, high;           // the quartiles of what it is the median of
  char why[TABLE_TEXT_SIZE];  // there is no value; "": there is, or it was not
                              // reached
  bool is_skipped;            // that is no failure
} table_value;

typedef struct table_result {
  table_value values[TABLE_FIGURES_MOST];
  char failed[TABLE_TEXT_SIZE];  // why the part ended early; "": it did not
} table_result;

struct table_scene;

typedef struct table_part {
  const char *name;             // "files"
  const bench_figure *figures;  // in the order of their values
  size_t count;
  // Measures: all ranks call it, and the first one's |out| counts. False: a
  // rank has failed, and the scene's |why| says how.
  bool (*measure)(struct table_scene *s, table_result *out);
} table_part;

// NULL from the end on.
const table_part *table_part_at(size_t index);

// Measures the part in processes of its own, in a folder of its own in
// |bench|->folder, of which nothing stays. False if there are no figures at
// all: |why|, CHILD_TEXT_SIZE bytes, says what became of it.
bool table_bench_run(const table_bench *bench, const table_part *part,
                     table_result *out, char *why);

#endif  // TARN_BENCH_TABLE_BENCH_H_
