// What ranks are: each says who it is, and all of them learn of all others.
//
//   build/tarn run -n 4 -l build/examples/ranks
#include <stdio.h>
#include <stdlib.h>
#include <tarn/tarn.h>
#include <unistd.h>

static int fail(const char *what) {
  fprintf(stderr, "ranks: %s: %s\n", what, tarn_last_error());
  return EXIT_FAILURE;
}

static long sum_of(const long *numbers, size_t count) {
  long sum = 0;
  for (size_t i = 0; i < count; i++)
    sum += numbers[i];
  return sum;
}

int main(void) {
  long pids[TARN_COMM_MOST_RANKS], mine = getpid(), square, sum;
  long squares[TARN_COMM_MOST_RANKS];
  tarn_comm *comm = NULL;
  if (tarn_comm_from_environment(NULL, &comm) != TARN_OK) return fail("join");
  size_t rank = tarn_comm_rank(comm), size = tarn_comm_size(comm);

  // What each has goes to all: its process, and the square of its rank.
  square = (long)(rank * rank);
  if (tarn_comm_allgather(comm, &mine, sizeof mine, pids) != TARN_OK ||
      tarn_comm_allgather(comm, &square, sizeof square, squares) != TARN_OK) {
    return fail("allgather");
  }

  // What rank 0 says goes to all.
  sum = rank == 0 ? sum_of(squares, size) : 0;
  if (tarn_comm_broadcast(comm, 0, &sum, sizeof sum) != TARN_OK)
    return fail("broadcast");
  printf("rank %zu of %zu: %ld is the sum of the squares; next is process %s\n",
         rank, size, sum,
         pids[(rank + 1) % size] == mine ? "mine" : "another's");
  return tarn_comm_destroy(comm) == TARN_OK ? EXIT_SUCCESS : fail("destroy");
}
