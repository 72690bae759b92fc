// Random operations on the host's pool, each against a naive model of it.
#include "kit.h"
#include "pool_model.h"
#include "support/effort.h"
#include "support/threads.h"

enum { OPERATIONS = EFFORT(200000, 50000), WALK_EVERY = 1000 };

static pool_model model;
static uint64_t state;

static size_t random_below(size_t limit) {
  return next_random(&state) % limit;
}

static unsigned random_stream(void) {
  return (unsigned)random_below(MODEL_STREAMS);
}

// Mostly few sizes, as programs have them; sometimes any.
static size_t random_size(void) {
  static const size_t usual[] = {1,    64,   256,   3000,  4096,  4097,
                                 8192, 9999, 12288, 20000, 32768, 65536};
  switch (random_below(10)) {
    case 0:
      return random_below(200000) + 1;
    case 1:
    case 2:
      return random_below(20000) + 1;
    default:
      return usual[random_below(sizeof usual / sizeof usual[0])];
  }
}

static size_t random_align(void) {
  if (random_below(8) != 0) return 0;
  size_t largest = model.stats.limit_bytes == 0 ? 65536 : model.natural_align;
  size_t align = (size_t)1 << random_below(17);
  return align < largest ? align : largest;
}

// Above what is held, below it, or none.
static size_t random_limit(void) {
  switch (random_below(4)) {
    case 0:
    case 1:
      return 0;
    case 2:
      return random_below(model.stats.reserved_bytes + 1);
    default:
      return model.stats.reserved_bytes + random_below(MIB) + 1;
  }
}

static void random_rare(void) {
  static const size_t pages[] = {4096, 4096, 0, 16384, 512};
  switch (random_below(4)) {
    case 0:
      model_trim(&model);
      break;
    case 1:
      model_use(&model, pages[random_below(sizeof pages / sizeof pages[0])]);
      break;
    case 2:
      model_limit(&model, random_limit());
      break;
    default:
      model_reset_peaks(&model);
  }
}

static void random_alloc(void) {
  if (model.block_count == MODEL_BLOCKS) return;
  unsigned tag = (unsigned)random_below(MODEL_TAGS);
  model_alloc(&model, random_size(), random_align(), tag, random_stream());
}

static void random_use_of_a_block(size_t choice) {
  if (model.block_count == 0) return;
  size_t index = random_below(model.block_count);
  if (choice < 93) {
    model_free(&model, index, random_stream(), random_below(3) == 0);
  } else {
    model_find(&model, index);
  }
}

static void random_operation(void) {
  size_t choice = random_below(100);
  if (choice < 49) {
    random_alloc();
  } else if (choice < 96) {
    random_use_of_a_block(choice);
  } else if (choice < 98) {
    size_t known = model.stale_count < MODEL_STALE ? model.stale_count
                                                   : (size_t)MODEL_STALE;
    if (known > 0) model_free_stale(&model, random_below(known));
  } else {
    random_rare();
  }
}

static void run_seed(unsigned seed) {
  state = seed * 0x9e3779b97f4a7c15u;
  model_begin(&model, seed);
  for (int i = 1; i <= OPERATIONS; i++) {
    random_operation();
    if (i % WALK_EVERY == 0) model_walk(&model);
  }
  model_end(&model);
  // The run was not a walk past everything.
  ck_assert_uint_gt(model.stats.hits, OPERATIONS / 20);
  ck_assert_uint_gt(model.stats.misses, OPERATIONS / 20);
  ck_assert_uint_gt(model.stats.failures, OPERATIONS / 1000);
  ck_assert_uint_gt(model.stats.stream_crossings, OPERATIONS / 100);
  ck_assert_uint_gt(model.epoch, OPERATIONS / 1000);
}

TEST(seed_1) {
  run_seed(1);
}

TEST(seed_2) {
  run_seed(2);
}

TEST(seed_3) {
  run_seed(3);
}
