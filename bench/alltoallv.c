// Rows are types of MPI, so that counts are rows and stay below 2^31.
#include "alltoallv.h"

#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_memory.h"

enum { RANKS_MOST = ALLTOALLV_RANKS_MOST };

struct alltoallv {
  int ranks;
  size_t index_bytes;
  unsigned char *asked;     // indices by owner
  uint32_t *places;         // their origin
  unsigned char *received;  // rows, in the order of |asked|
  // What others ask for; these grow.
  unsigned char *wanted;
  size_t wanted_size;
  unsigned char *sent;
  size_t sent_size;
};

// Counts of what goes to and comes from each rank, and where it begins.
typedef struct traffic {
  int out[RANKS_MOST];
  int out_at[RANKS_MOST];
  int in[RANKS_MOST];
  int in_at[RANKS_MOST];
} traffic;

static alltoallv *make(size_t rows_most, size_t bytes_most,
                       size_t index_bytes) {
  alltoallv *a = mpi_array(sizeof *a);
  memset(a, 0, sizeof *a);
  MPI_Comm_size(MPI_COMM_WORLD, &a->ranks);
  a->index_bytes = index_bytes;
  a->asked = mpi_array(rows_most * index_bytes);
  a->places = mpi_array(rows_most * sizeof *a->places);
  a->received = mpi_array(bytes_most);
  return a;
}

static void unmake(alltoallv *a) {
  free(a->sent);
  free(a->wanted);
  free(a->received);
  free(a->places);
  free(a->asked);
  free(a);
}

static int offsets_of(const int *counts, int *out, int ranks) {
  int sum = 0;
  for (int r = 0; r < ranks; r++) {
    out[r] = sum;
    sum += counts[r];
  }
  return sum;
}

static size_t index_at(const alltoallv *a, const void *indices, size_t i) {
  return a->index_bytes == sizeof(int32_t)
             ? (size_t)((const int32_t *)indices)[i]
             : (size_t)((const int64_t *)indices)[i];
}

// By owner, in the order in which they were.
static void sort_by_owner(alltoallv *a, const alltoallv_rows *rows,
                          traffic *t) {
  int next[RANKS_MOST];
  const unsigned char *indices = rows->indices;
  for (size_t i = 0; i < rows->count; i++)
    t->out[index_at(a, indices, i) / rows->part_rows]++;
  (void)offsets_of(t->out, t->out_at, a->ranks);
  memcpy(next, t->out_at, sizeof next);
  for (size_t i = 0; i < rows->count; i++) {
    size_t at = (size_t)next[index_at(a, indices, i) / rows->part_rows]++;
    memcpy(a->asked + at * a->index_bytes, indices + i * a->index_bytes,
           a->index_bytes);
    a->places[at] = (uint32_t)i;
  }
}

static void *grow(void *old, size_t *size, size_t needed) {
  if (needed <= *size) return old;
  free(old);
  *size = needed;
  return mpi_array(needed);
}

static void gather_for_others(const alltoallv *a, const alltoallv_rows *rows,
                              size_t count, size_t first) {
  size_t row = rows->row_bytes;
  for (size_t i = 0; i < count; i++) {
    size_t at = index_at(a, a->wanted, i) - first;
    memcpy(a->sent + i * row, rows->part + at * row, row);
  }
}

static void put_in_place(const alltoallv *a, const alltoallv_rows *rows) {
  size_t row = rows->row_bytes;
  for (size_t i = 0; i < rows->count; i++)
    memcpy(rows->dense + a->places[i] * row, a->received + i * row, row);
}

static void gather(alltoallv *a, const alltoallv_rows *rows) {
  traffic t = {0};
  MPI_Datatype type;
  MPI_Datatype index =
      a->index_bytes == sizeof(int32_t) ? MPI_INT32_T : MPI_INT64_T;
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  sort_by_owner(a, rows, &t);
  MPI_Alltoall(t.out, 1, MPI_INT, t.in, 1, MPI_INT, MPI_COMM_WORLD);
  size_t all = (size_t)offsets_of(t.in, t.in_at, a->ranks);
  a->wanted = grow(a->wanted, &a->wanted_size, all * a->index_bytes);
  a->sent = grow(a->sent, &a->sent_size, all * rows->row_bytes);
  MPI_Alltoallv(a->asked, t.out, t.out_at, index, a->wanted, t.in, t.in_at,
                index, MPI_COMM_WORLD);
  gather_for_others(a, rows, all, (size_t)rank * rows->part_rows);
  MPI_Type_contiguous((int)rows->row_bytes, MPI_BYTE, &type);
  MPI_Type_commit(&type);
  MPI_Alltoallv(a->sent, t.in, t.in_at, type, a->received, t.out, t.out_at,
                type, MPI_COMM_WORLD);
  MPI_Type_free(&type);
  put_in_place(a, rows);
}

__attribute__((visibility("default")))
const alltoallv_ops tarn_bench_alltoallv = {
    .make = make, .gather = gather, .unmake = unmake};
