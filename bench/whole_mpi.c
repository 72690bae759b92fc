// What `tarn bench whole` compares with: the same gathers by the means of MPI.
//
//   mpirun -n N tarn-bench-mpi TABLE PART BATCH ROW
//
// bytes: of the table, of a rank's part, of the rows that a rank gathers at a
// time, and of the smallest row.
//
// Each line of stdin is a pass, "OP ROW SEED", and is answered by one of
// stdout:
//   mpi_window      MPI_Win_allocate_shared, a memcpy for each row
//   mpi_alltoallv   as alltoallv.h says
// Between passes ranks sleep: MPI's own waiting would take the processors.
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alltoallv.h"
#include "kit/stopwatch.h"
#include "mpi_memory.h"
#include "whole_indices.h"

enum { RANKS_MOST = ALLTOALLV_RANKS_MOST, LINE_SIZE = 256 };

// The message of the first rank to the others.
typedef struct order {
  _Atomic uint32_t number;  // of passes begun
  uint32_t is_window;
  uint64_t row_bytes;  // 0: the end
  uint64_t seed;
} order;

typedef struct scene {
  int rank;
  int ranks;
  size_t table_bytes;
  size_t part_bytes;
  size_t batch_bytes;
  size_t row_least;

  order *order;
  MPI_Win order_window;
  unsigned char *table;  // of all ranks, one part after the other
  MPI_Win window;

  unsigned char *dense;
  int64_t *indices;
  alltoallv *alltoallv;
} scene;

// ---------------------------------------------------------------------------
// The window
// ---------------------------------------------------------------------------

static unsigned char *share(size_t size, MPI_Win *out) {
  void *mine = NULL;
  void *first = NULL;
  MPI_Aint first_size = 0;
  int unit = 0;
  MPI_Win_allocate_shared((MPI_Aint)size, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
                          &mine, out);
  MPI_Win_shared_query(*out, 0, &first_size, &unit, &first);
  return first;
}

static void gather_window(scene *s, size_t row, size_t count) {
  for (size_t i = 0; i < count; i++)
    memcpy(s->dense + i * row, s->table + (size_t)s->indices[i] * row, row);
}

// ---------------------------------------------------------------------------
// Alltoallv
// ---------------------------------------------------------------------------

static void gather_alltoallv(scene *s, size_t row, size_t count) {
  const alltoallv_rows rows = {
      .part = s->table + (size_t)s->rank * s->part_bytes,
      .part_rows = s->part_bytes / row,
      .row_bytes = row,
      .indices = s->indices,
      .count = count,
      .dense = s->dense};
  tarn_bench_alltoallv.gather(s->alltoallv, &rows);
}

// ---------------------------------------------------------------------------
// Passes
// ---------------------------------------------------------------------------

// A moment soon, the same for all.
static uint64_t begin_together(void) {
  enum { AHEAD_NS = 50000 };
  uint64_t begin = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  uint64_t now = stopwatch_clock_ns();
  MPI_Allreduce(&now, &begin, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  begin += AHEAD_NS;
  while (stopwatch_clock_ns() < begin) {
  }
  return begin;
}

static double pass(scene *s, bool is_window, size_t row, uint64_t seed) {
  size_t count = s->batch_bytes / row;
  uint64_t last = 0;
  whole_draw_uniform(s->indices, count, s->table_bytes / row,
                     seed * RANKS_MOST + (uint64_t)s->rank);
  uint64_t begin = begin_together();
  (is_window ? gather_window : gather_alltoallv)(s, row, count);
  uint64_t end = stopwatch_clock_ns();
  MPI_Allreduce(&end, &last, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return (double)((size_t)s->ranks * count * row) / (double)(last - begin);
}

// Each row of the last pass.
static void check(const scene *s, size_t row) {
  if (whole_rows_right((const float *)(const void *)s->dense, s->indices,
                       s->batch_bytes / row, row / sizeof(float), 0)) {
    return;
  }
  fprintf(stderr, "rows of %zu bytes are wrong at rank %d under MPI\n", row,
          s->rank);
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double do_order(scene *s) {
  double gbs =
      pass(s, s->order->is_window != 0, s->order->row_bytes, s->order->seed);
  check(s, s->order->row_bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  return gbs;
}

static void give_order(scene *s, bool is_window, size_t row, uint64_t seed) {
  s->order->is_window = is_window;
  s->order->row_bytes = row;
  s->order->seed = seed;
  atomic_fetch_add(&s->order->number, 1);
}

static void lead(scene *s) {
  char line[LINE_SIZE];
  char op[32];
  size_t row = 0;
  unsigned long long seed = 0;
  printf("{\"ready\":true}\n");
  fflush(stdout);
  while (fgets(line, sizeof line, stdin) != NULL &&
         sscanf(line, "%31s %zu %llu", op, &row, &seed) == 3 &&
         row >= s->row_least) {
    give_order(s, strcmp(op, "mpi_window") == 0, row, seed);
    printf("{\"op\":\"%s\",\"row_bytes\":%zu,\"gbs\":%.6f}\n", op, row,
           do_order(s));
    fflush(stdout);
  }
  give_order(s, false, 0, 0);
}

static void follow(scene *s) {
  static const struct timespec pause = {.tv_nsec = 500000};
  for (uint32_t seen = 0;; seen++) {
    while (atomic_load(&s->order->number) == seen)
      (void)nanosleep(&pause, NULL);
    if (s->order->row_bytes == 0) return;
    (void)do_order(s);
  }
}

// ---------------------------------------------------------------------------
// Beginning and end
// ---------------------------------------------------------------------------

// Each rank touches its part first.
static void fill(scene *s) {
  size_t first = (size_t)s->rank * s->part_bytes;
  whole_fill((float *)(void *)(s->table + first), s->part_bytes / sizeof(float),
             first / sizeof(float));
  MPI_Barrier(MPI_COMM_WORLD);
}

// Memory of a batch is touched here, and not when it is timed.
static void make(scene *s) {
  size_t most = s->batch_bytes / s->row_least;
  MPI_Comm_rank(MPI_COMM_WORLD, &s->rank);
  MPI_Comm_size(MPI_COMM_WORLD, &s->ranks);
  s->order = (order *)(void *)share(s->rank == 0 ? sizeof(order) : 0,
                                    &s->order_window);
  s->table = share(s->part_bytes, &s->window);
  s->dense = mpi_array(s->batch_bytes);
  s->indices = mpi_array(most * sizeof *s->indices);
  s->alltoallv =
      tarn_bench_alltoallv.make(most, s->batch_bytes, sizeof *s->indices);
  if (s->rank == 0) memset((void *)s->order, 0, sizeof *s->order);
  fill(s);
}

static void unmake(scene *s) {
  tarn_bench_alltoallv.unmake(s->alltoallv);
  free(s->indices);
  free(s->dense);
  MPI_Win_free(&s->window);
  MPI_Win_free(&s->order_window);
}

int main(int argc, char **argv) {
  scene s = {0};
  if (argc != 5) {
    fprintf(stderr, "usage: mpirun -n N tarn-bench-mpi TABLE PART BATCH ROW\n");
    return EXIT_FAILURE;
  }
  s.table_bytes = strtoull(argv[1], NULL, 10);
  s.part_bytes = strtoull(argv[2], NULL, 10);
  s.batch_bytes = strtoull(argv[3], NULL, 10);
  s.row_least = strtoull(argv[4], NULL, 10);
  MPI_Init(&argc, &argv);
  make(&s);
  (s.rank == 0 ? lead : follow)(&s);
  unmake(&s);
  MPI_Finalize();
  return EXIT_SUCCESS;
}
