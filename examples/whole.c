// A table that three processes have together: each owns a part of its rows and
// fills it, and then takes rows of all parts by their numbers.
//
//   build/examples/whole                             starts its ranks itself
//   build/tarn run -n 4 -l -- build/examples/whole   is started as ranks
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tarn/tarn.h>
#include <unistd.h>

enum { RANKS = 3, ROWS = 14, WIDTH = 64, WANTED = 3 };

typedef float row[WIDTH];

static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "whole: %s: %s\n", tarn_status_name(status),
          tarn_last_error());
  exit(EXIT_FAILURE);
}

// Forks before any device is opened. A rank that could not be is told of by
// number to those that wait for it.
static tarn_comm *start(void) {
  tarn_rendezvous *meeting;
  tarn_comm *comm;
  size_t rank = 0;
  check(tarn_rendezvous_create(RANKS, &meeting));
  for (size_t r = 1; r < RANKS && rank == 0; r++)
    if (fork() == 0) rank = r;
  check(tarn_comm_join(meeting, rank, NULL, &comm));
  tarn_rendezvous_destroy(meeting);
  return comm;
}

static tarn_comm *meet(void) {
  tarn_comm *comm;
  if (getenv("TARN_COMM") == NULL) return start();
  check(tarn_comm_from_environment(NULL, &comm));
  return comm;
}

// Each element of row i becomes i. On the host a rank writes to what it owns.
static void fill(const tarn_whole_tensor *table, size_t first, size_t count) {
  tarn_addr address;
  void *view;
  if (count == 0) return;  // more ranks than there are rows for
  check(tarn_whole_tensor_local(table, &address));
  check(tarn_device_host_view(TARN_HOST, address, count * sizeof(row), &view));
  row *own = view;
  for (size_t i = 0; i < count; i++)
    for (size_t j = 0; j < WIDTH; j++)
      own[i][j] = (float)(first + i);
}

// Whether batch[i] is row ids[i] then.
static bool gather(const tarn_whole_tensor *table, const int64_t *ids,
                   row *batch) {
  tarn_whole_rows wanted = {.struct_size = sizeof wanted,
                            .dense = tarn_addr_of(batch),
                            .indices = tarn_addr_of(ids),
                            .index_dtype = TARN_DTYPE_I64,
                            .index_count = WANTED};
  bool right = true;
  check(tarn_whole_gather(table, &wanted, NULL));
  for (size_t i = 0; i < WANTED; i++)
    for (size_t j = 0; j < WIDTH; j++)
      right = right && batch[i][j] == (float)ids[i];
  return right;
}

static bool children_succeeded(void) {
  bool all = true;
  for (int status; wait(&status) > 0;)
    all = all && status == 0;
  return all;
}

int main(void) {
  row batch[WANTED];
  tarn_whole_tensor table;
  tarn_comm *comm = meet();
  size_t rank = tarn_comm_rank(comm), first, count;
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = TARN_WHOLE_CONTINUOUS,
                                      .place = TARN_HOST,
                                      .dtype = TARN_DTYPE_F32,
                                      .rows = ROWS,
                                      .width = WIDTH};
  check(tarn_whole_table_create(comm, &options, &table));
  check(tarn_whole_tensor_rows(&table, rank, &first, &count));
  fill(&table, first, count);
  check(tarn_comm_barrier(comm));  // until all have written theirs

  const int64_t ids[WANTED] = {0, (int64_t)(rank + 5) % ROWS, ROWS - 1};
  bool right = gather(&table, ids, batch);
  printf("rank %zu of %zu owns %zu rows from %zu on, and got %g, %g and %g\n",
         rank, tarn_comm_size(comm), count, first, batch[0][0], batch[1][0],
         batch[2][0]);
  check(tarn_whole_destroy(table.whole));
  check(tarn_comm_destroy(comm));
  return right && children_succeeded() ? EXIT_SUCCESS : EXIT_FAILURE;
}
