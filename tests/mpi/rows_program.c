// A rank of a job over one machine or several: rows of distributed and of
// hierarchical tables are gathered, scattered and added to, and must be those
// of a model.
//
//   rows_program          tables of all shapes
//   rows_program few      of the small ones
//   rows_program same     all ranks gather the same rows of hierarchical memory
//   rows_program until [parts]
//                         gathers until one fails, of distributed memory or of
//                         such in parts; says "begun" before
//   rows_program loop     gathers and collectives in turn until one fails; says
//                         when, by the clock of `date +%s.%N`
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/row_trial.h"
#include "tarn/comm.h"

static void say_begun(void) {
  printf("begun\n");
  (void)fflush(stdout);
}

static int go_until(tarn_comm *comm, const row_kind *kind) {
  tarn_status status = gather_until(comm, kind, say_begun, NULL);
  printf("rank %zu: %s: %s\n", tarn_comm_rank(comm), tarn_status_name(status),
         tarn_last_error());
  (void)fflush(stdout);
  return EXIT_FAILURE;
}

static tarn_status meet(tarn_comm *comm) {
  enum { SIZE = 30000, MOST_RANKS = 64 };
  static unsigned char bytes[SIZE];
  static size_t all[MOST_RANKS];
  size_t rank = tarn_comm_rank(comm);
  tarn_status status =
      tarn_comm_broadcast(comm, tarn_comm_size(comm) - 1, bytes, SIZE);
  if (status == TARN_OK) {
    status = tarn_comm_allgather(comm, &rank, sizeof rank, all);
  }
  return status == TARN_OK ? tarn_comm_barrier(comm) : status;
}

static int go_around(tarn_comm *comm) {
  struct timespec now;
  tarn_status status =
      gather_until(comm, &row_kinds[ROW_DISTRIBUTED], say_begun, meet);
  (void)clock_gettime(CLOCK_REALTIME, &now);
  printf("told %lld.%09ld rank %zu: %s: %s\n", (long long)now.tv_sec,
         now.tv_nsec, tarn_comm_rank(comm), tarn_status_name(status),
         tarn_last_error());
  (void)fflush(stdout);
  (void)tarn_comm_destroy(comm);
  return EXIT_FAILURE;
}

enum { SMALL_SHAPES = 3 };

static void try(tarn_comm *comm, const row_kind *kind, size_t shapes) {
  try_rows(comm, kind, shapes);
  if (tarn_comm_rank(comm) != 0) return;
  printf("%s rows of %zu ranks by %s are right\n", kind->name,
         tarn_comm_size(comm), tarn_comm_kind(comm));
}

int main(int argc, char **argv) {
  tarn_comm *comm = NULL;
  if (tarn_comm_from_environment(NULL, &comm) != TARN_OK) {
    fprintf(stderr, "rows: %s\n", tarn_last_error());
    return EXIT_FAILURE;
  }
  if (argc > 1 && strcmp(argv[1], "until") == 0) {
    return go_until(comm, &row_kinds[argc > 2 ? ROW_PARTS : ROW_DISTRIBUTED]);
  }
  if (argc > 1 && strcmp(argv[1], "loop") == 0) return go_around(comm);
  if (argc > 1 && strcmp(argv[1], "same") == 0) {
    gather_same(comm);
    printf("rank %zu has the same rows\n", tarn_comm_rank(comm));
    return tarn_comm_destroy(comm) == TARN_OK ? 0 : EXIT_FAILURE;
  }
  bool few = argc > 1 && strcmp(argv[1], "few") == 0;
  for (int i = 0; i < ROW_KINDS; i++)
    try(comm, &row_kinds[i], few ? SMALL_SHAPES : ROW_SHAPES);
  return tarn_comm_destroy(comm) == TARN_OK ? 0 : EXIT_FAILURE;
}
