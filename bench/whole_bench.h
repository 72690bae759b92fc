// whole_bench.h - rows of whole memory (tarn/whole.h), gathered and scattered
// by several ranks at a time.
//
// `tarn bench whole --help` tells what is measured, whole_scene.h how.
#ifndef TARN_BENCH_WHOLE_BENCH_H_
#define TARN_BENCH_WHOLE_BENCH_H_

#include "kit/child.h"
#include "tarn/whole.h"

enum {
  WHOLE_RANKS_MOST = 64,
  WHOLE_ROWS_MOST = 8,  // sizes of rows in a run
  WHOLE_PASSES_MOST = 101,
  WHOLE_KINDS = 6,      // three types, on the device and on the host
  WHOLE_ROW_LEAST = 4,  // bytes: an element
  WHOLE_ROW_MOST = 65536,
  WHOLE_NAME_SIZE = 64,
  WHOLE_TEXT_SIZE = 192,
};

// One of the six: a type, and where its memory is.
typedef struct whole_kind {
  tarn_whole_type type;
  bool on_host;
} whole_kind;

// |index| is below WHOLE_KINDS.
whole_kind whole_kind_at(size_t index);
const char *whole_kind_location(whole_kind kind);  // "device" or "host"

typedef enum whole_op {
  WHOLE_GATHER = 0,
  WHOLE_SCATTER,
  WHOLE_SCATTER_ADD,
  WHOLE_PLAIN_GATHER,   // one process alone, with memcpy, row by row
  WHOLE_MEMCPY,         // all ranks at a time, each its own memory
  WHOLE_MPI_WINDOW,     // the same as GATHER of mapped types, by Open MPI
  WHOLE_MPI_ALLTOALLV,  // the same as GATHER of distributed ones
  WHOLE_OPS
} whole_op;

const char *whole_op_name(whole_op op);  // "gather"

typedef struct whole_bench {
  const char *device;  // "cpu", "sim:1"; without a number each rank opens that
                       // of its own number, or else 0
  size_t ranks;
  tarn_comm *comm;     // of a launcher's ranks, which are |ranks|; NULL: they
                       // are started for it
  size_t table_bytes;  // of each whole; a multiple of each of |row_bytes|, at
                       // least the largest of them for each rank
  size_t batch_bytes;  // of rows that a rank moves at a time
  size_t ready_bytes;  // of the table whose making is timed
  size_t passes;       // that count
  size_t row_bytes[WHOLE_ROWS_MOST];
  size_t row_count;
  bool zipf;            // gather by such indices too
  const char *mpi;      // the program that runs under MPI; NULL: not available
  const char *mpirun;   // the command that starts it
  const char *why_not;  // why |mpi| is NULL
  const char *why_no_take;  // why NumPy is left out; NULL: it is not
} whole_bench;

// The measurements of one kind and size of rows.
typedef struct whole_figure {
  whole_kind kind;
  whole_op op;
  bool zipf;
  size_t row_bytes;    // 0: WHOLE_MEMCPY
  double gbs;          // payload of all ranks that take part, 1e9 bytes a
                       // second; NaN: none
  double over_memcpy;  // of the same passes
  double over_mpi;     // WHOLE_GATHER: likewise; NaN: not measured
  double over_plain;   // WHOLE_GATHER: by one process alone, over its plain one
  double alone_gbs;    // that process's gather
  char why[WHOLE_TEXT_SIZE];  // why it was not measured; "": it was
  bool is_skipped;            // there cannot be one here, which is no failure
} whole_figure;

// How a table came to be.
typedef struct whole_made {
  whole_kind kind;    // .type 0: not reached
  size_t page_size;   // the smallest behind the first rank's part; 0: not known
  size_t huge_bytes;  // of that part
  double ready_ms;    // NaN: none
  double touch_ms;    // one byte of each page of as much shared memory
  char why[WHOLE_TEXT_SIZE];  // there is no table, or it was not ended well
  bool is_skipped;            // as of a figure
} whole_made;

// 1,024 rows, or as many as there are, gathered by one process alone while all
// is in the caches: of mapped types that the host reaches.
typedef struct whole_small {
  whole_kind kind;
  size_t row_bytes;
  size_t rows;
  double gather_us;           // of a call
  double take_us;             // the same by np.take; NaN: not measured
  double over_take;           // of the same passes; NaN: likewise
  char why[WHOLE_TEXT_SIZE];  // why np.take failed; "": it did not
} whole_small;

enum { WHOLE_SMALLS_MOST = WHOLE_KINDS * WHOLE_ROWS_MOST };

enum {
  WHOLE_FIGURES_MOST = WHOLE_KINDS * (1 + WHOLE_ROWS_MOST * (WHOLE_OPS + 1))
};

typedef struct whole_result {
  whole_made made[WHOLE_KINDS];
  whole_figure figures[WHOLE_FIGURES_MOST];
  size_t count;
  whole_small smalls[WHOLE_SMALLS_MOST];
  size_t small_count;
  char mpi_skipped[WHOLE_TEXT_SIZE];   // "": it ran
  char take_skipped[WHOLE_TEXT_SIZE];  // likewise
  char failed[WHOLE_TEXT_SIZE];        // why figures are missing; "": none are
} whole_result;

// Bytes of a block: the largest of the rows, which all others divide.
size_t whole_granularity(const whole_bench *bench);

// How long ranks wait for each other.
enum { WHOLE_TIMEOUT_MS = 240000 };

// Measures: in processes of its own, or, where a launcher has started the
// ranks, in each of those, which all call it. False if there are no figures at
// all: |why|, CHILD_TEXT_SIZE bytes, says what became of it.
bool whole_bench_run(const whole_bench *bench, whole_result *out, char *why);

// The mean of WHOLE_MEMCPY over its kinds; NaN: none was measured.
double whole_memcpy_gbs(const whole_result *result);

// Whether there is such a device; asked in a process of its own. False: |why|
// as above.
bool whole_bench_try(const whole_bench *bench, char *why);

// ---------------------------------------------------------------------------
// Goals
// ---------------------------------------------------------------------------

// Of two ranks on the cpu device, rows of 64, 256 and 1024 bytes.
typedef struct whole_goal {
  const char *name;  // "gather_over_memcpy"
  whole_kind kind;
  size_t row_bytes;  // 0: it is about no rows
  double value;      // NaN: not measured
  double goal;
  bool at_most;  // the goal is the most that |value| may be, else the least
} whole_goal;

enum { WHOLE_GOALS_MOST = WHOLE_KINDS * 20 };

// Fills |out|, of WHOLE_GOALS_MOST, with the goals that |bench| can measure.
// Returns their number.
size_t whole_goals(const whole_bench *bench, const whole_result *result,
                   whole_goal *out);
bool whole_goal_is_met(const whole_goal *goal);

#endif  // TARN_BENCH_WHOLE_BENCH_H_
