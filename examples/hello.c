// hello.c - one block of a device's pool: write to it, read it back, free it.
#include <stdio.h>
#include <stdlib.h>
#include <tarn/tarn.h>

static void check(tarn_status status) {
  if (status == TARN_OK) return;
  fprintf(stderr, "%s: %s\n", tarn_status_name(status), tarn_last_error());
  exit(EXIT_FAILURE);
}

int main(int argc, char **argv) {
  tarn_device *device;
  check(tarn_device_open(argc > 1 ? argv[1] : "cpu:0", &device));
  tarn_pool *pool;
  check(tarn_pool_of(tarn_place_on(device), &pool));

  char text[] = "hello from", back[sizeof text];
  tarn_block block;
  check(tarn_pool_alloc(pool, sizeof text, 0, NULL, &block));
  // NULL: the copy is done when the call returns. **With a stream, text must
  // stay, unchanged, until tarn_stream_synchronize has returned.**
  check(tarn_copy_h2d(device, block.address, text, sizeof text, NULL));
  check(tarn_copy_d2h(device, back, block.address, sizeof back, NULL));
  check(tarn_pool_free(&block, NULL));

  tarn_pool_stats stats = {.struct_size = sizeof stats};
  check(tarn_pool_query(pool, &stats));
  printf("%s %s: peak %zu bytes live, %zu reserved, by %s\n", back,
         tarn_device_name(device), stats.live_peak_bytes,
         stats.reserved_peak_bytes, stats.strategy);
  check(tarn_device_close(device));
  return EXIT_SUCCESS;
}
