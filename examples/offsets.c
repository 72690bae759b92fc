// Tensors in a buffer of one's own: an arena says where, and touches nothing.
#include <stdio.h>
#include <stdlib.h>
#include <tarn/tarn.h>

static int fail(const char *what) {
  fprintf(stderr, "offsets: %s: %s\n", what, tarn_last_error());
  return EXIT_FAILURE;
}

int main(void) {
  tarn_arena_options options = {.struct_size = sizeof options, .size = 1 << 20};
  tarn_arena_stats stats = {.struct_size = sizeof stats};
  tarn_arena *arena = NULL;
  size_t weights = 0;
  size_t scratch = 0;
  size_t output = 0;
  if (tarn_arena_create(&options, &arena) != TARN_OK) return fail("create");
  float *base = malloc(options.size);
  if (base == NULL || tarn_arena_alloc(arena, 400000, 0, &weights) != TARN_OK ||
      tarn_arena_alloc(arena, 300000, 0, &scratch) != TARN_OK) {
    return fail("alloc");
  }
  base[weights / sizeof(float)] = 1.0f;  // the bytes are ours

  // The scratch is over, and the output takes its place.
  if (tarn_arena_free(arena, scratch) != TARN_OK ||
      tarn_arena_alloc(arena, 200000, 0, &output) != TARN_OK ||
      tarn_arena_query(arena, &stats) != TARN_OK) {
    return fail("reuse");
  }
  printf(
      "weights at %zu, output at %zu, once scratch: %zu of %zu bytes would "
      "have done\n",
      weights, output, stats.peak_end, stats.size);
  free(base);
  tarn_arena_destroy(arena);
  return EXIT_SUCCESS;
}
