// Arenas for users: offsets in a range of their own.
#include "tarn/arena.h"

#include <stdlib.h>
#include <string.h>

#include "support/faults.h"
#include "support/run.h"

enum { GRANULE = 64, UNITS = 512, RANGE = GRANULE * UNITS, BLOCKS = 128 };

static tarn_arena *arena;

static void begin(void) {
  tarn_arena_options options = {
      .struct_size = sizeof options, .size = RANGE, .granule = GRANULE};
  assert_ok(tarn_arena_create(&options, &arena));
}

static void end(void) {
  tarn_arena_destroy(arena);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

static tarn_arena_stats query(void) {
  tarn_arena_stats stats = {.struct_size = sizeof stats};
  assert_ok(tarn_arena_query(arena, &stats));
  return stats;
}

static size_t take(size_t size) {
  size_t offset = 0;
  assert_ok(tarn_arena_alloc(arena, size, 0, &offset));
  return offset;
}

// --- one after the other ---------------------------------------------------

TEST(blocks_are_taken_and_given_back) {
  begin();
  size_t a = take(1);
  size_t b = take(GRANULE + 1);
  ck_assert_uint_eq(a, 0);
  ck_assert_uint_eq(b, GRANULE);
  tarn_arena_stats stats = query();
  ck_assert_uint_eq(stats.size, RANGE);
  ck_assert_uint_eq(stats.taken_bytes, 3 * GRANULE);
  ck_assert_uint_eq(stats.blocks, 2);
  ck_assert_uint_eq(stats.holes, 1);
  ck_assert_uint_eq(stats.largest_hole, RANGE - 3 * GRANULE);
  assert_ok(tarn_arena_free(arena, a));
  ck_assert_uint_eq(query().holes, 2);
  assert_ok(tarn_arena_free(arena, b));
  stats = query();
  ck_assert_uint_eq(stats.holes, 1);
  ck_assert_uint_eq(stats.taken_bytes, 0);
  ck_assert_uint_eq(stats.peak_bytes, 3 * GRANULE);
  ck_assert_uint_eq(stats.peak_end, 3 * GRANULE);
  end();
}

TEST(a_full_arena_says_what_is_left) {
  size_t offset = 7;
  begin();
  size_t a = take(RANGE / 2);
  (void)take(GRANULE);
  assert_status(tarn_arena_alloc(arena, RANGE / 2, 0, &offset), TARN_FULL);
  ck_assert_uint_eq(offset, 0);
  assert_error_says("arena: 16384 bytes do not fit: 16320 are free in 1 holes");
  assert_ok(tarn_arena_free(arena, a));
  assert_status(tarn_arena_alloc(arena, RANGE / 2 + 1, 0, &offset), TARN_FULL);
  assert_error_says("in 2 holes, the largest of 16384");
  assert_status(tarn_arena_alloc(arena, SIZE_MAX, 0, &offset), TARN_FULL);
  assert_status(tarn_arena_alloc(arena, 1, (size_t)1 << 63, &offset),
                TARN_FULL);
  end();
}

TEST(offsets_are_aligned) {
  size_t offset = 0;
  begin();
  (void)take(1);
  assert_ok(tarn_arena_alloc(arena, 1, 4096, &offset));
  ck_assert_uint_eq(offset, 4096);
  assert_ok(tarn_arena_alloc(arena, 1, 1, &offset));
  ck_assert_uint_eq(offset % GRANULE, 0);
  end();
}

TEST(a_block_is_resized_where_it_is) {
  begin();
  size_t a = take(GRANULE);
  size_t b = take(GRANULE);
  assert_status(tarn_arena_resize(arena, a, 2 * GRANULE), TARN_FULL);
  assert_ok(tarn_arena_resize(arena, b, RANGE - GRANULE));
  ck_assert_uint_eq(query().holes, 0);
  assert_status(tarn_arena_resize(arena, b, RANGE), TARN_FULL);
  assert_status(tarn_arena_resize(arena, b, SIZE_MAX), TARN_FULL);
  assert_ok(tarn_arena_resize(arena, b, 1));
  ck_assert_uint_eq(query().taken_bytes, 2 * GRANULE);
  ck_assert_uint_eq(query().peak_bytes, RANGE);
  assert_ok(tarn_arena_free(arena, b));
  assert_ok(tarn_arena_resize(arena, a, 2 * GRANULE));
  end();
}

TEST(a_range_grows) {
  size_t offset = 0;
  begin();
  size_t a = take(RANGE - GRANULE);
  assert_status(tarn_arena_alloc(arena, 2 * GRANULE, 0, &offset), TARN_FULL);
  assert_ok(tarn_arena_extend(arena, GRANULE));
  // What is new is one with the hole before it.
  ck_assert_uint_eq(query().holes, 1);
  ck_assert_uint_eq(take(2 * GRANULE), a + RANGE - GRANULE);
  assert_ok(tarn_arena_extend(arena, RANGE));
  ck_assert_uint_eq(query().size, 2 * RANGE + GRANULE);
  ck_assert_uint_eq(take(RANGE), RANGE + GRANULE);
  assert_ok(tarn_arena_free(arena, a));
  end();
}

TEST(wrong_use_changes_nothing) {
  size_t offset = 1;
  tarn_arena *none = NULL;
  tarn_arena_options options = {.struct_size = sizeof options};
  assert_status(tarn_arena_create(&options, &none), TARN_E_INVALID);
  options.size = RANGE;
  options.granule = 48;
  assert_status(tarn_arena_create(&options, &none), TARN_E_INVALID);
  options.granule = 0;
  options.size = SIZE_MAX;
  assert_status(tarn_arena_create(&options, &none), TARN_E_INVALID);
  options.struct_size = 8;
  assert_status(tarn_arena_create(&options, &none), TARN_E_INVALID);
  assert_status(tarn_arena_create(NULL, &none), TARN_E_INVALID);
  ck_assert_ptr_null(none);
  tarn_arena_destroy(NULL);
  assert_status(tarn_arena_alloc(NULL, 1, 0, &offset), TARN_E_INVALID);
  assert_status(tarn_arena_free(NULL, 0), TARN_E_INVALID);
  begin();
  size_t a = take(4 * GRANULE);
  assert_status(tarn_arena_alloc(arena, 0, 0, &offset), TARN_E_INVALID);
  assert_status(tarn_arena_alloc(arena, 1, 3, &offset), TARN_E_INVALID);
  ck_assert_uint_eq(offset, 0);
  assert_status(tarn_arena_free(arena, a + GRANULE), TARN_E_INVALID);
  assert_error_says("no block begins at offset 64");
  assert_status(tarn_arena_free(arena, SIZE_MAX), TARN_E_INVALID);
  assert_status(tarn_arena_resize(arena, a, 0), TARN_E_INVALID);
  assert_status(tarn_arena_extend(arena, 1), TARN_E_INVALID);
  assert_status(tarn_arena_extend(arena, SIZE_MAX - GRANULE + 1),
                TARN_E_INVALID);
  tarn_arena_stats stats = {.struct_size = 3};
  assert_status(tarn_arena_query(arena, &stats), TARN_E_INVALID);
  assert_ok(tarn_arena_free(arena, a));
  assert_status(tarn_arena_free(arena, a), TARN_E_INVALID);
  end();
}

// --- at random, and without memory -----------------------------------------

typedef struct block {
  size_t offset;
  size_t units;
} block;

static void mark(unsigned char *map, const block *b, unsigned char value) {
  for (size_t u = 0; u < b->units; u++) {
    size_t at = b->offset / GRANULE + u;
    require(at < UNITS && map[at] != value);
    map[at] = value;
  }
}

static bool has_room(const unsigned char *map, size_t units) {
  size_t run = 0;
  for (size_t at = 0; at < UNITS && run < units; at++)
    run = map[at] ? 0 : run + 1;
  return run == units;
}

TEST(at_random) {
  static unsigned char map[UNITS];
  static block blocks[BLOCKS];
  size_t count = 0;
  srand(7);
  begin();
  for (int step = 0; step < 100000; step++) {
    if (rand() % 2 && count < BLOCKS) {
      block b = {.units = 1 + (size_t)rand() % 24};
      tarn_status status =
          tarn_arena_alloc(arena, b.units * GRANULE, 0, &b.offset);
      require((status == TARN_OK) == has_room(map, b.units));
      if (status != TARN_OK) continue;
      mark(map, &b, 1);
      blocks[count++] = b;
    } else if (count > 0) {
      size_t at = (size_t)rand() % count;
      require(tarn_arena_free(arena, blocks[at].offset) == TARN_OK);
      mark(map, &blocks[at], 0);
      blocks[at] = blocks[--count];
    }
  }
  ck_assert_uint_eq(query().blocks, count);
  end();
}

static void scenario(void *context) {
  (void)context;
  tarn_arena_options options = {.struct_size = sizeof options, .size = 1 << 20};
  size_t offset = 0;
  tarn_arena *a = NULL;
  if (tarn_arena_create(&options, &a) != TARN_OK) return;
  for (int i = 0; i < 400; i++) {
    tarn_status status = tarn_arena_alloc(a, 512, 0, &offset);
    require(status == TARN_OK || status == TARN_E_NOMEM);
  }
  tarn_status resized = tarn_arena_resize(a, offset, 256);
  tarn_status extended = tarn_arena_extend(a, 256);
  require(resized == TARN_OK || resized == TARN_E_INVALID ||
          resized == TARN_E_NOMEM);
  require(extended == TARN_OK || extended == TARN_E_NOMEM);
  tarn_arena_destroy(a);
}

TEST(without_host_memory) {
  faults_install();
  ck_assert_uint_ge(faults_sweep(scenario, NULL), 10);
}
