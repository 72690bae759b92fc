// A rank of a program that uses MPI itself: it does what its argument says.
//
//   levels   a communicator at each level of threads, of the world and of parts
//   early    before MPI is initialized, and after it is finalized
//   thread   by another thread than MPI allows
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tarn_mpi.h"

static void expect(bool holds, const char *what) {
  if (holds) return;
  fprintf(stderr, "from_mpi: not so: %s: %s\n", what, tarn_last_error());
  exit(EXIT_FAILURE);
}

static void refuse(const char *says) {
  tarn_comm *comm = (tarn_comm *)&comm;
  tarn_status status = tarn_comm_from_mpi(MPI_COMM_WORLD, NULL, &comm);
  expect(status == TARN_E_STATE, "it is refused");
  expect(comm == NULL, "there is no communicator");
  expect(strstr(tarn_last_error(), says) != NULL, says);
}

static void *refuse_here(void *unused) {
  (void)unused;
  refuse("MPI allows only the thread that has initialized it");
  return NULL;
}

// Sums of numbers of ranks, by both.
static void compare(MPI_Comm mpi) {
  int rank = 0;
  int size = 0;
  tarn_comm *comm = NULL;
  MPI_Comm_rank(mpi, &rank);
  MPI_Comm_size(mpi, &size);
  expect(tarn_comm_from_mpi(mpi, NULL, &comm) == TARN_OK, "it is made");
  expect(tarn_comm_rank(comm) == (size_t)rank, "the rank is MPI's");
  expect(tarn_comm_size(comm) == (size_t)size, "the size is MPI's");
  int numbers[64] = {0};
  int sum = 0;
  int wanted = 0;
  int own = rank * rank + 1;
  expect(tarn_comm_allgather(comm, &own, sizeof own, numbers) == TARN_OK,
         "an allgather");
  for (int i = 0; i < size; i++)
    sum += numbers[i];
  MPI_Allreduce(&own, &wanted, 1, MPI_INT, MPI_SUM, mpi);
  expect(sum == wanted, "sums are the same");
  expect(tarn_comm_barrier(comm) == TARN_OK, "a barrier");
  expect(tarn_comm_destroy(comm) == TARN_OK, "destroy");
}

static void compare_all(void) {
  int rank = 0;
  MPI_Comm half;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &half);
  compare(MPI_COMM_WORLD);
  compare(half);
  compare(MPI_COMM_SELF);
  MPI_Comm_free(&half);
  compare(MPI_COMM_WORLD);
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "levels";
  int wanted = argc > 2 ? atoi(argv[2]) : MPI_THREAD_MULTIPLE;
  int level = 0;
  int rank = 0;
  bool early = strcmp(what, "early") == 0;
  if (early) refuse("MPI is not initialized");
  MPI_Init_thread(&argc, &argv, wanted, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (strcmp(what, "thread") == 0) {
    pthread_t thread;
    expect(level < MPI_THREAD_SERIALIZED, "the level is as low as asked for");
    expect(pthread_create(&thread, NULL, refuse_here, NULL) == 0, "a thread");
    expect(pthread_join(thread, NULL) == 0, "its end");
  }
  compare_all();
  MPI_Finalize();
  if (early) refuse("MPI is finalized");
  if (rank == 0) printf("done\n");
  return EXIT_SUCCESS;
}
