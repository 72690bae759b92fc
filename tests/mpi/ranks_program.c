// A rank of a job that mpirun or `tarn run` has started: it does what its
// argument says, and is linked with no MPI.
//
//   all      every collective, in this communicator and in parts of it
//   silent   rank 1 stops for ever before a barrier
//   killed   rank 1 is killed before a barrier
//   near     every collective among the ranks of a machine; says how many
//   ended    as killed, when the others wait; says how soon they were told
//   cut      barriers and broadcasts until one fails; says "begun" before
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tarn/comm.h"

static void must(tarn_status status, const char *what) {
  if (status == TARN_OK) return;
  fprintf(stderr, "ranks: %s: %s: %s\n", what, tarn_status_name(status),
          tarn_last_error());
  exit(EXIT_FAILURE);
}

static void expect(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "ranks: not so: %s\n", what);
  exit(EXIT_FAILURE);
}

static unsigned char byte_of(size_t from, size_t to, size_t i) {
  return (unsigned char)(from * 31 + to * 7 + i * 3 + i / 251);
}

static unsigned char *room_for(size_t size) {
  unsigned char *bytes = malloc(size != 0 ? size : 1);
  expect(bytes != NULL, "there is memory");
  memset(bytes, 0xee, size);
  return bytes;
}

// --- each collective -------------------------------------------------------

static void try_broadcast(tarn_comm *comm, size_t root, size_t size) {
  unsigned char *bytes = room_for(size);
  bool is_root = tarn_comm_rank(comm) == root;
  for (size_t i = 0; is_root && i < size; i++)
    bytes[i] = byte_of(root, 0, i);
  must(tarn_comm_broadcast(comm, root, bytes, size), "broadcast");
  for (size_t i = 0; i < size; i++)
    expect(bytes[i] == byte_of(root, 0, i), "a byte of a broadcast");
  free(bytes);
}

static void try_allgather(tarn_comm *comm, size_t size) {
  size_t ranks = tarn_comm_size(comm);
  size_t rank = tarn_comm_rank(comm);
  unsigned char *all = room_for(ranks * size);
  for (size_t i = 0; i < size; i++)
    all[rank * size + i] = byte_of(rank, 1, i);
  must(tarn_comm_allgather(comm, all + rank * size, size, all), "allgather");
  for (size_t r = 0; r < ranks; r++) {
    for (size_t i = 0; i < size; i++)
      expect(all[r * size + i] == byte_of(r, 1, i), "a byte of an allgather");
  }
  free(all);
}

// Rank r sends r * |unit| + s bytes to rank s, and none to rank r + 1.
static size_t size_between(size_t from, size_t to, size_t ranks, size_t unit) {
  return to == (from + 1) % ranks ? 0 : from * unit + to;
}

static void try_alltoallv(tarn_comm *comm, size_t unit) {
  size_t ranks = tarn_comm_size(comm);
  size_t rank = tarn_comm_rank(comm);
  size_t *numbers = calloc(4 * ranks, sizeof *numbers);
  expect(numbers != NULL, "there is memory");
  size_t *out_sizes = numbers, *out_at = numbers + ranks;
  size_t *in_sizes = numbers + 2 * ranks, *in_at = numbers + 3 * ranks;
  size_t out_size = 0, in_size = 0;
  for (size_t r = 0; r < ranks; r++) {
    out_sizes[r] = size_between(rank, r, ranks, unit);
    in_sizes[r] = size_between(r, rank, ranks, unit);
    out_at[r] = out_size;
    in_at[r] = in_size;
    out_size += out_sizes[r];
    in_size += in_sizes[r];
  }
  unsigned char *out = room_for(out_size);
  unsigned char *in = room_for(in_size);
  for (size_t r = 0; r < ranks; r++)
    for (size_t i = 0; i < out_sizes[r]; i++)
      out[out_at[r] + i] = byte_of(rank, r, i);
  must(tarn_comm_alltoallv(comm, out, out_sizes, out_at, in, in_sizes, in_at),
       "alltoallv");
  for (size_t r = 0; r < ranks; r++)
    for (size_t i = 0; i < in_sizes[r]; i++)
      expect(in[in_at[r] + i] == byte_of(r, rank, i), "a byte of an alltoallv");
  free(out);
  free(in);
  free(numbers);
}

static void try_disagreement(tarn_comm *comm) {
  size_t rank = tarn_comm_rank(comm);
  size_t last = tarn_comm_size(comm) - 1;
  if (last == 0) return;
  tarn_status status =
      tarn_comm_same(comm, &rank, sizeof rank, rank == 0 ? "one" : "other");
  expect(status == TARN_E_INVALID, "ranks are told that they differ");
  expect(strstr(tarn_last_error(), "rank 0 has one, rank 1 has other") != NULL,
         "and in which words");
  status = rank == last ? TARN_E_NOMEM : TARN_OK;
  status = tarn_comm_agree(comm, status);
  expect(status == TARN_E_NOMEM, "the status of the last rank is all ranks'");
}

static void try_collectives(tarn_comm *comm) {
  static const size_t sizes[] = {0, 1, 296, 297, 5000, 3 << 20};
  must(tarn_comm_barrier(comm), "barrier");
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    for (size_t root = 0; root < tarn_comm_size(comm); root++)
      try_broadcast(comm, root, sizes[i]);
    try_allgather(comm, sizes[i]);
    try_alltoallv(comm, sizes[i]);
  }
  try_disagreement(comm);
  must(tarn_comm_check(comm), "check");
  must(tarn_comm_barrier(comm), "barrier");  // nobody has left before
}

// Odd ranks and even ones, those backwards; then the first of each.
static void try_parts(tarn_comm *comm) {
  tarn_comm *part = NULL;
  tarn_comm *first = NULL;
  int64_t rank = (int64_t)tarn_comm_rank(comm);
  must(tarn_comm_split(comm, rank % 2, -rank, &part), "split");
  try_collectives(part);
  int64_t color = tarn_comm_rank(part) == 0 ? 1 : TARN_COMM_NONE;
  must(tarn_comm_split(comm, color, 0, &first), "split of few");
  if (first != NULL) try_collectives(first);
  try_collectives(comm);
  try_collectives(part);
  must(tarn_comm_destroy(first), "destroy");
  must(tarn_comm_destroy(part), "destroy");
}

// --- machines --------------------------------------------------------------

static int work_near(tarn_comm *comm) {
  tarn_comm *near = NULL;
  must(tarn_comm_split_by_machine(comm, &near), "split by machine");
  try_collectives(near);
  printf("rank %zu: %zu of %zu by %s, %zu machines\n", tarn_comm_rank(comm),
         tarn_comm_rank(near), tarn_comm_size(near), tarn_comm_kind(near),
         tarn_comm_machines(comm));
  fflush(stdout);
  must(tarn_comm_destroy(near), "destroy");
  try_collectives(comm);
  must(tarn_comm_destroy(comm), "destroy");
  return EXIT_SUCCESS;
}

// --- failures --------------------------------------------------------------

static int tell_loss(tarn_comm *comm, tarn_status status) {
  printf("rank %zu: %s: %s\n", tarn_comm_rank(comm), tarn_status_name(status),
         tarn_last_error());
  fflush(stdout);
  expect(status != TARN_OK, "a rank is lost");
  expect(tarn_comm_barrier(comm) == status, "it stays lost");
  must(tarn_comm_destroy(comm), "destroy");
  return 3;
}

// Whole seconds are enough for a test.
static int see_end(tarn_comm *comm) {
  must(tarn_comm_barrier(comm), "barrier");
  if (tarn_comm_rank(comm) == 1) {
    sleep(1);
    (void)raise(SIGKILL);
  }
  time_t begin = time(NULL);
  tarn_status status = tarn_comm_barrier(comm);
  bool soon = time(NULL) - begin <= 3;
  printf("rank %zu: told %s\n", tarn_comm_rank(comm), soon ? "soon" : "late");
  return tell_loss(comm, status);
}

static int lose(tarn_comm *comm, int signal) {
  must(tarn_comm_barrier(comm), "barrier");
  if (tarn_comm_rank(comm) == 1) (void)raise(signal);
  return tell_loss(comm, tarn_comm_barrier(comm));
}

static int go_on(tarn_comm *comm) {
  enum { SIZE = 100000 };
  static unsigned char bytes[SIZE];
  must(tarn_comm_barrier(comm), "barrier");
  if (tarn_comm_rank(comm) == 0) printf("begun\n");
  fflush(stdout);
  tarn_status status = TARN_OK;
  for (size_t i = 0; status == TARN_OK; i++) {
    size_t root = i % tarn_comm_size(comm);
    status = tarn_comm_broadcast(comm, root, bytes, i * 37 % SIZE);
    if (status == TARN_OK) status = tarn_comm_barrier(comm);
  }
  return tell_loss(comm, status);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "all";
  tarn_comm *comm = NULL;
  must(tarn_comm_from_environment(NULL, &comm), "join");
  if (strcmp(what, "silent") == 0) return lose(comm, SIGSTOP);
  if (strcmp(what, "killed") == 0) return lose(comm, SIGKILL);
  if (strcmp(what, "cut") == 0) return go_on(comm);
  if (strcmp(what, "near") == 0) return work_near(comm);
  if (strcmp(what, "ended") == 0) return see_end(comm);
  try_collectives(comm);
  try_parts(comm);
  must(tarn_comm_barrier(comm), "barrier");
  if (tarn_comm_rank(comm) == 0) {
    printf("%zu ranks by %s\n", tarn_comm_size(comm), tarn_comm_kind(comm));
  }
  must(tarn_comm_destroy(comm), "destroy");
  return EXIT_SUCCESS;
}
