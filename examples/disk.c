// A table of 73 MiB with the states of its optimizer, which is on a disk, and
// learns with 16 MiB of memory.
#include <stdio.h>
#include <stdlib.h>
#include <tarn/tarn.h>

enum { ROWS = 100000, WIDTH = 64, BATCH = 1000, STEPS = 50 };

static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "disk: %s: %s\n", tarn_status_name(status),
          tarn_last_error());
  exit(EXIT_FAILURE);
}

int main(void) {
  static float batch[BATCH][WIDTH];
  static int64_t ids[BATCH];
  tarn_comm *comm;
  tarn_embedding_options adam;
  check(tarn_comm_from_environment(NULL, &comm));
  check(tarn_embedding_defaults(TARN_OPTIMIZER_ADAM, &adam));
  const tarn_disk_options options = {.struct_size = sizeof options,
                                     .path = "users",
                                     .flags = TARN_DISK_CREATE,
                                     .dtype = TARN_DTYPE_F32,
                                     .rows = ROWS,
                                     .width = WIDTH,
                                     .optimizer = &adam,
                                     .memory = (size_t)16 << 20};
  tarn_disk *users;
  check(tarn_disk_open(comm, &options, &users));
  tarn_whole_tensor table = tarn_disk_table(users);
  const tarn_whole_rows rows = {.struct_size = sizeof rows,
                                .dense = tarn_addr_of(batch),
                                .indices = tarn_addr_of(ids),
                                .index_dtype = TARN_DTYPE_I64,
                                .index_count = BATCH};
  for (int64_t step = 0; step < STEPS; step++) {
    for (int64_t i = 0; i < BATCH; i++)
      ids[i] = (step * BATCH + i) * 7919 % ROWS;
    check(tarn_whole_gather(&table, &rows, NULL));
    for (size_t i = 0; i < BATCH; i++)
      for (size_t k = 0; k < WIDTH; k++)
        batch[i][k] -= 1;  // the gradient of a row that is to become 1
    check(tarn_embedding_apply(tarn_disk_embedding(users), &rows, NULL));
  }
  check(tarn_disk_flush(users));  // from here on it survives a loss of power
  tarn_disk_info info = {.struct_size = sizeof info};
  check(tarn_disk_query(users, &info));
  printf("epoch %llu: %zu of %d records in memory, %llu blocks written\n",
         (unsigned long long)info.epoch, info.used, ROWS,
         (unsigned long long)info.blocks_written);
  check(tarn_disk_close(users));
  check(tarn_comm_destroy(comm));
  return EXIT_SUCCESS;
}
