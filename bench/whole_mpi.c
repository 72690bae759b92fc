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
//   mpi_alltoallv   indices to the owners, which gather; rows back by
//                   MPI_Alltoallv, and each to its place
// Between passes ranks sleep: MPI's own waiting would take the processors.
#include <mpi.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kit/stopwatch.h"
#include "whole_indices.h"

// As whole_bench.h has it.
enum { RANKS_MOST = 64, LINE_SIZE = 256 };

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
  // For alltoallv: indices by owner, their origin, the indices that others ask
  // for, and rows in transit.
  int64_t *asked;
  uint32_t *places;
  int64_t *wanted;
  size_t wanted_size;
  unsigned char *sent;
  size_t sent_size;
  unsigned char *received;
} scene;

// MPI ends all ranks on an error; so does this.
static void *array(size_t size) {
  void *bytes = malloc(size);
  if (bytes == NULL) {
    fprintf(stderr, "no %zu bytes of memory\n", size);
    MPI_Abort(MPI_COMM_WORLD, 1);
    exit(EXIT_FAILURE);
  }
  memset(bytes, 1, size);
  return bytes;
}

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

// Counts of what goes to and comes from each rank, and where it begins.
typedef struct traffic {
  int out[RANKS_MOST];
  int out_at[RANKS_MOST];
  int in[RANKS_MOST];
  int in_at[RANKS_MOST];
} traffic;

static int offsets_of(const int *counts, int *out, int ranks) {
  int sum = 0;
  for (int r = 0; r < ranks; r++) {
    out[r] = sum;
    sum += counts[r];
  }
  return sum;
}

// By owner, in the order in which they were.
static void sort_by_owner(scene *s, size_t part_rows, size_t count,
                          traffic *t) {
  int next[RANKS_MOST];
  for (size_t i = 0; i < count; i++)
    t->out[(size_t)s->indices[i] / part_rows]++;
  (void)offsets_of(t->out, t->out_at, s->ranks);
  memcpy(next, t->out_at, sizeof next);
  for (size_t i = 0; i < count; i++) {
    int at = next[(size_t)s->indices[i] / part_rows]++;
    s->asked[at] = s->indices[i];
    s->places[at] = (uint32_t)i;
  }
}

static void *grow(void *old, size_t *size, size_t needed) {
  if (needed <= *size) return old;
  free(old);
  *size = needed;
  return array(needed);
}

static void gather_for_others(scene *s, size_t row, size_t count) {
  for (size_t i = 0; i < count; i++)
    memcpy(s->sent + i * row, s->table + (size_t)s->wanted[i] * row, row);
}

static void gather_alltoallv(scene *s, size_t row, size_t count) {
  traffic t = {0};
  MPI_Datatype rows;
  sort_by_owner(s, s->part_bytes / row, count, &t);
  MPI_Alltoall(t.out, 1, MPI_INT, t.in, 1, MPI_INT, MPI_COMM_WORLD);
  size_t all = (size_t)offsets_of(t.in, t.in_at, s->ranks);
  s->wanted = grow(s->wanted, &s->wanted_size, all * sizeof *s->wanted);
  s->sent = grow(s->sent, &s->sent_size, all * row);
  MPI_Alltoallv(s->asked, t.out, t.out_at, MPI_INT64_T, s->wanted, t.in,
                t.in_at, MPI_INT64_T, MPI_COMM_WORLD);
  gather_for_others(s, row, all);
  MPI_Type_contiguous((int)row, MPI_BYTE, &rows);
  MPI_Type_commit(&rows);
  MPI_Alltoallv(s->sent, t.in, t.in_at, rows, s->received, t.out, t.out_at,
                rows, MPI_COMM_WORLD);
  MPI_Type_free(&rows);
  for (size_t i = 0; i < count; i++)
    memcpy(s->dense + s->places[i] * row, s->received + i * row, row);
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
  s->dense = array(s->batch_bytes);
  s->received = array(s->batch_bytes);
  s->indices = array(most * sizeof *s->indices);
  s->asked = array(most * sizeof *s->asked);
  s->places = array(most * sizeof *s->places);
  if (s->rank == 0) memset((void *)s->order, 0, sizeof *s->order);
  fill(s);
}

static void unmake(scene *s) {
  free(s->places);
  free(s->asked);
  free(s->indices);
  free(s->received);
  free(s->dense);
  free(s->sent);
  free(s->wanted);
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
