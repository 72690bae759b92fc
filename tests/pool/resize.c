// Resizing blocks where they stand: into holes, into bare addresses, on every
// strategy, in the order of streams, and what is no block.
#include "arena_kit.h"
#include "support/strategy.h"
#include "tarn/strategy.h"

static void fill(const arena_place *p, tarn_addr address, size_t size,
                 int value, tarn_stream *stream) {
  static unsigned char bytes[8][64 * KIB];  // stay until streams are done
  static unsigned next;
  unsigned char *one = bytes[next++ % 8];
  memset(one, value, sizeof bytes[0]);
  for (size_t at = 0; at < size; at += sizeof bytes[0]) {
    size_t part = size - at < sizeof bytes[0] ? size - at : sizeof bytes[0];
    require(tarn_copy_h2d(p->device, address + at, one, part, stream) ==
            TARN_OK);
  }
}

static int byte_at(const arena_place *p, tarn_addr address) {
  unsigned char byte = 0;
  require(tarn_copy_d2h(p->device, &byte, address, 1, NULL) == TARN_OK);
  return byte;
}

static void resize_to(tarn_block *block, size_t size, tarn_stream *stream) {
  tarn_block before = *block;
  assert_ok(tarn_pool_resize(block, size, stream));
  ck_assert_uint_ge(block->size, size);
  before.size = block->size;
  assert_same_block(*block, before);
  assert_ok(tarn__front_check(block->pool));
}

// Nothing changes.
static void stay(tarn_block *block, size_t size, tarn_stream *stream,
                 tarn_status expected) {
  tarn_block before = *block;
  tarn_pool_stats stats = stats_of(block->pool);
  assert_status(tarn_pool_resize(block, size, stream), expected);
  assert_same_block(*block, before);
  assert_same_stats(stats_of(block->pool), stats);
  assert_ok(tarn__front_check(block->pool));
}

// --- holes -----------------------------------------------------------------

TEST_LOOP(a_block_grows_into_the_hole_behind_it, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_block a = take(p.pool, 100 * KIBIBYTE);
  tarn_block b = take(p.pool, 100 * KIBIBYTE);
  tarn_block c = take(p.pool, 100 * KIBIBYTE);
  ck_assert_uint_eq(a.address + 100 * KIBIBYTE, b.address);
  fill(&p, a.address, a.size, 1, NULL);
  fill(&p, c.address, c.size, 3, NULL);
  stay(&a, 100 * KIBIBYTE + 1, NULL, TARN_FULL);
  give(b);
  tarn_pool_stats before = stats_of(p.pool);
  resize_to(&a, 150 * KIBIBYTE, NULL);
  ck_assert_uint_eq(a.size, 150 * KIBIBYTE);
  resize_to(&a, 200 * KIBIBYTE, NULL);
  fill(&p, a.address + 100 * KIBIBYTE, 100 * KIBIBYTE, 2, NULL);
  stay(&a, 200 * KIBIBYTE + 1, NULL, TARN_FULL);
  ck_assert_int_eq(byte_at(&p, a.address + 100 * KIBIBYTE - 1), 1);
  ck_assert_int_eq(byte_at(&p, c.address), 3);
  tarn_pool_stats after = stats_of(p.pool);
  ck_assert_uint_eq(after.reserved_bytes, before.reserved_bytes);
  ck_assert_uint_eq(after.device_allocs, before.device_allocs);
  give(a);
  give(c);
}

TEST_LOOP(a_block_that_shrinks_leaves_a_hole, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_block a = take(p.pool, 300 * KIBIBYTE);
  fill(&p, a.address, a.size, 1, NULL);
  uint64_t misses = stats_of(p.pool).misses;
  resize_to(&a, 100 * KIBIBYTE, NULL);
  ck_assert_uint_eq(a.size, 100 * KIBIBYTE);
  tarn_block rest = take(p.pool, 200 * KIBIBYTE);
  ck_assert_uint_eq(rest.address, a.address + a.size);
  ck_assert_uint_eq(stats_of(p.pool).misses, misses);
  fill(&p, rest.address, rest.size, 2, NULL);
  ck_assert_int_eq(byte_at(&p, a.address), 1);
  ck_assert_int_eq(byte_at(&p, a.address + a.size - 1), 1);
  resize_to(&a, 100 * KIBIBYTE, NULL);  // the same again
  give(a);
  give(rest);
}

// It stays among those that it was taken among.
TEST_LOOP(a_block_may_become_small_or_large, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_FREE_GROWTH, "arena_pool");
  if (p.pool == NULL) return;
  tarn_block small = take(p.pool, 1000);
  tarn_block large = take(p.pool, 500 * KIBIBYTE);
  resize_to(&small, 200 * KIBIBYTE, NULL);
  resize_to(&large, 1, NULL);
  ck_assert_uint_eq(large.size, 512);
  give(small);
  assert_ok(tarn__front_check(p.pool));
  give(large);
}

TEST_LOOP(what_it_has_is_accounted, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_tag tag = tag_of("cache");
  tarn_block block = take_tagged(p.pool, 1000, tag);
  tarn_block copy = block;
  resize_to(&block, 5000, NULL);
  resize_to(&block, 3000, NULL);
  tarn_pool_stats stats = stats_of(p.pool);
  ck_assert_uint_eq(stats.live_bytes, 3000);
  ck_assert_uint_eq(stats.live_peak_bytes, 5000);
  ck_assert_uint_eq(stats.live_blocks, 1);
  ck_assert_uint_eq(stats.allocs, 1);
  ck_assert_uint_eq(stats.frees, 0);
  tarn_pool_tag_stats tagged = tag_stats_of(p.pool, tag);
  ck_assert_uint_eq(tagged.live_bytes, 3000);
  ck_assert_uint_eq(tagged.live_peak_bytes, 5000);
  tarn_block found;
  assert_ok(tarn_pool_block_of(p.pool, block.address, &found, NULL));
  assert_same_block(found, block);
  give(copy);  // its size is no part of what a block is
  ck_assert_uint_eq(tag_stats_of(p.pool, tag).live_bytes, 0);
  stay(&block, 10, NULL, TARN_E_INVALID);
  assert_error_says("resize: the block");
  assert_error_says("cache");
}

TEST(padding_stays_behind_it) {
  fake.padding = 100;
  arena_place p = open_arena("fake:0", "arena_pool");
  tarn_block block = take(p.pool, 512);
  ck_assert_uint_eq(block.size, 1024 - 100);
  resize_to(&block, 1024, NULL);
  ck_assert_uint_eq(block.size, 1536 - 100);
  resize_to(&block, 400, NULL);
  ck_assert_uint_eq(block.size, 512 - 100);
  give(block);
}

// --- bare addresses --------------------------------------------------------

TEST_LOOP(memory_is_mapped_behind_a_block, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES, "arena_pool:page=2M");
  if (p.pool == NULL) return;
  tarn_block a = take(p.pool, MIB);
  fill(&p, a.address, a.size, 1, NULL);
  resize_to(&a, 9 * (size_t)MIB + 1, NULL);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 5 * SIM_PAGE);
  fill(&p, a.address + MIB, 8 * (size_t)MIB, 2, NULL);
  ck_assert_int_eq(byte_at(&p, a.address + MIB - 1), 1);
  // What is too much of the last page is a hole.
  tarn_block b = take(p.pool, 512 * KIBIBYTE);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 5 * SIM_PAGE);
  stay(&a, ARENA_CAPACITY, NULL, TARN_FULL);
  give(b);
  resize_to(&a, 512, NULL);
  assert_ok(tarn_pool_trim(p.pool, 0));
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, SIM_PAGE);
  give(a);
}

// What is behind: bare, bare and a hole, a block.
TEST_LOOP(a_hole_behind_bare_pages_is_used, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES, "arena_pool:page=2M");
  if (p.pool == NULL) return;
  tarn_block a = take(p.pool, SIM_PAGE);
  tarn_block b = take(p.pool, SIM_PAGE);
  tarn_block c = take(p.pool, 2 * SIM_PAGE);
  tarn_block d = take(p.pool, SIM_PAGE);
  give(b);
  assert_ok(tarn_pool_trim(p.pool, 0));
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 4 * SIM_PAGE);
  stay(&a, 2 * SIM_PAGE + 1, NULL, TARN_FULL);
  give(c);
  resize_to(&a, 3 * SIM_PAGE, NULL);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 5 * SIM_PAGE);
  resize_to(&a, 4 * SIM_PAGE, NULL);
  stay(&a, 4 * SIM_PAGE + 1, NULL, TARN_FULL);
  ck_assert_uint_eq(d.address, a.address + 4 * SIM_PAGE);
  give(a);
  give(d);
}

TEST_LOOP(a_limit_holds_for_what_is_added, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES, "arena_pool:page=2M");
  if (p.pool == NULL) return;
  tarn_block a = take(p.pool, SIM_PAGE);
  assert_ok(tarn_pool_limit(p.pool, 3 * SIM_PAGE));
  assert_status(tarn_pool_resize(&a, 4 * SIM_PAGE, NULL), TARN_FULL);
  assert_error_says("limit of 6.00 MiB (6291456 bytes)");
  ck_assert_uint_eq(a.size, SIM_PAGE);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, SIM_PAGE);
  resize_to(&a, 3 * SIM_PAGE, NULL);
  give(a);
}

// Its last block grows by what the holes before it have.
TEST_LOOP(pages_of_holes_serve_when_the_device_has_no_more, TEST_DEVICES) {
  enum { ALL = 32 };
  arena_place p = open_arena_with(_i, TEST_NEEDS_RANGES | NEEDS_CAPACITY,
                                  "arena_pool:page=2M,slack=1G");
  if (p.pool == NULL) return;
  tarn_block blocks[ALL];
  take_many(p.pool, SIM_PAGE, blocks, ALL);
  assert_status(tarn_pool_resize(&blocks[ALL - 1], 2 * SIM_PAGE, NULL),
                TARN_FULL);
  for (int i = 0; i < ALL; i += 2)
    give(blocks[i]);
  fill(&p, blocks[ALL - 1].address, SIM_PAGE, 7, NULL);
  resize_to(&blocks[ALL - 1], (1 + ALL / 2) * SIM_PAGE, NULL);
  ck_assert_int_eq(byte_at(&p, blocks[ALL - 1].address + SIM_PAGE - 1), 7);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, ALL * SIM_PAGE);
  for (int i = 1; i < ALL; i += 2)
    give(blocks[i]);
}

// --- streams ---------------------------------------------------------------

TEST_LOOP(a_hole_of_another_stream_is_not_taken, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, 0, "arena_pool");
  tarn_stream *one = stream_on(&p);
  tarn_stream *two = stream_on(&p);
  tarn_block a = take_on(p.pool, 100 * KIBIBYTE, one);
  tarn_block b = take_on(p.pool, 100 * KIBIBYTE, two);
  tarn_block c = take_on(p.pool, 100 * KIBIBYTE, two);
  give_on(b, two);
  stay(&a, 200 * KIBIBYTE, one, TARN_FULL);
  stay(&a, 200 * KIBIBYTE, NULL, TARN_FULL);
  resize_to(&a, 150 * KIBIBYTE, two);
  end_stream(two);  // any stream may use what it had
  resize_to(&a, 200 * KIBIBYTE, one);
  give_on(a, one);
  give_on(c, one);
}

// The test double runs queued work when a caller waits for it.
TEST(what_is_cut_off_is_the_stream_s) {
  arena_place p = open_arena("fake:0", "arena_pool");
  tarn_stream *one = stream_on(&p);
  tarn_block a = take_on(p.pool, 200 * KIBIBYTE, one);
  fill(&p, a.address, a.size, 1, one);
  resize_to(&a, 100 * KIBIBYTE, one);
  tarn_block rest = take(p.pool, 100 * KIBIBYTE);
  ck_assert_uint_eq(rest.address, a.address + a.size);
  ck_assert_int_eq(byte_at(&p, rest.address), 1);  // the host has waited
  ck_assert_uint_eq(stats_of(p.pool).stream_crossings, 1);
  give_on(a, one);
  give(rest);
}

// It grew into what work of |one| is still queued for, and was never used.
TEST(what_was_added_stays_behind_its_stream) {
  arena_place p = open_arena("fake:0", "arena_pool");
  tarn_stream *one = stream_on(&p);
  tarn_stream *two = stream_on(&p);
  tarn_block a = take(p.pool, 100 * KIBIBYTE);
  tarn_block b = take_on(p.pool, 100 * KIBIBYTE, one);
  tarn_addr address = b.address;
  fill(&p, b.address, b.size, 1, one);
  give_on(b, one);
  resize_to(&a, 200 * KIBIBYTE, one);
  give_on(a, two);
  a = take_on(p.pool, 200 * KIBIBYTE, two);
  ck_assert_uint_eq(a.address + 100 * KIBIBYTE, address);
  fill(&p, address, 100 * KIBIBYTE, 2, two);
  assert_ok(tarn_stream_synchronize(two));
  assert_ok(tarn_stream_synchronize(one));
  ck_assert_int_eq(byte_at(&p, address), 2);
  give_on(a, two);
}

// Taken for |two| behind |one|, and cut before it was used, by the host or a
// third stream: what is cut off stays behind |one|.
static void check_cut_unused(bool by_third) {
  arena_place p = open_arena("fake:0", "arena_pool");
  tarn_stream *streams[3];
  for (int i = 0; i < 3; i++)
    streams[i] = stream_on(&p);
  tarn_block a = take_on(p.pool, 200 * KIBIBYTE, streams[0]);
  fill(&p, a.address, a.size, 1, streams[0]);
  give_on(a, streams[0]);
  a = take_on(p.pool, 200 * KIBIBYTE, streams[1]);
  resize_to(&a, 100 * KIBIBYTE, by_third ? streams[2] : NULL);
  tarn_block rest = take(p.pool, 100 * KIBIBYTE);
  ck_assert_uint_eq(rest.address, a.address + a.size);
  ck_assert_int_eq(byte_at(&p, rest.address), 1);
  give(rest);
  give_on(a, streams[1]);
  for (int i = 0; i < 3; i++)
    end_stream(streams[i]);
  close_arena(&p);
}

TEST(what_the_host_cuts_off_unused_stays_behind_its_last_user) {
  check_cut_unused(false);
}

TEST(what_a_third_stream_cuts_off_unused_stays_behind_it_too) {
  check_cut_unused(true);
}

// --- other strategies ------------------------------------------------------

static void check_within(const char *strategy) {
  tarn_pool *pool = host_pool(strategy);
  tarn_block block = take(pool, 1000);
  size_t size = block.size;
  memset(bytes_of(block), 0x33, size);
  resize_to(&block, 1, NULL);
  ck_assert_uint_eq(stats_of(pool).live_bytes, 1);
  resize_to(&block, size, NULL);
  ck_assert_uint_eq(block.size, size);
  ck_assert_uint_eq(stats_of(pool).live_bytes, size);
  ck_assert_int_eq(bytes_of(block)[size - 1], 0x33);
  stay(&block, size + 1, NULL, TARN_FULL);
  stay(&block, SIZE_MAX, NULL, TARN_FULL);
  give(block);
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

TEST(others_give_what_the_block_has) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  check_within("page_unit_pool");
  check_within("buddy_pool:init=1M,realloc=1M,max=1M");
  check_within("buddy_pool:max=0");
  check_within("no_pool");
  check_within("async_pool");
  check_within("power_pool");
}

TEST(one_that_was_replaced_gives_no_more) {
  arena_place p = open_arena("cpu:0", "arena_pool");
  tarn_block block = take(p.pool, 100 * KIBIBYTE);
  assert_ok(use_strategy(p.place, "page_unit_pool"));
  resize_to(&block, 10, NULL);
  ck_assert_uint_eq(block.size, 100 * KIBIBYTE);
  stay(&block, 100 * KIBIBYTE + 1, NULL, TARN_FULL);
  give(block);
  ck_assert_uint_eq(stats_of(p.pool).reserved_bytes, 0);
}

// --- strategies of programs ------------------------------------------------

enum { ROOM = 64 * KIB };

static tarn_status take_room(void *self, const tarn_source *source,
                             const tarn_request *request,
                             tarn_suballocation *out) {
  (void)self;
  tarn_chunk *chunk = NULL;
  if (request->size > ROOM) return source->refuse(source, TARN_FULL, "large");
  tarn_status status = source->grow(source, ROOM, request->align, &chunk);
  if (status != TARN_OK) return status;
  *out = (tarn_suballocation){chunk->address, request->size, 0, chunk};
  return TARN_OK;
}

static tarn_status give_room(void *self, const tarn_source *source,
                             const tarn_suballocation *memory) {
  (void)self;
  return source->shrink(source, memory->own);
}

static tarn_status trim_none(void *self, const tarn_source *source) {
  (void)self;
  (void)source;
  return TARN_OK;
}

static tarn_status resize_room(void *self, const tarn_source *source,
                               const tarn_request *request,
                               tarn_suballocation *memory) {
  tarn_chunk *chunk = NULL;
  (void)self;
  if (request->size > ROOM) return source->refuse(source, TARN_FULL, "large");
  if (request->size == 13) memory->address += 64;
  if (source->grow(source, 1, 1, &chunk) != TARN_E_STATE) return TARN_E_CORRUPT;
  memory->size = request->size - (request->size == 14);
  return TARN_OK;
}

TEST(a_strategy_of_a_program_may_resize) {
  tarn_strategy rooms = {.struct_size = sizeof rooms,
                         .name = "rooms",
                         .take = take_room,
                         .give = give_room,
                         .trim = trim_none,
                         .resize = resize_room};
  assert_ok(tarn_pool_register(&rooms));
  tarn_pool *pool = host_pool("rooms");
  tarn_block block = take(pool, 100);
  resize_to(&block, ROOM, NULL);
  ck_assert_uint_eq(block.size, ROOM);
  ck_assert_uint_eq(stats_of(pool).live_bytes, ROOM);
  stay(&block, ROOM + 1, NULL, TARN_FULL);
  assert_error_says("rooms: large");
  resize_to(&block, 100, NULL);
  ck_assert_uint_eq(block.size, 100);
  // What it answers is looked at.
  stay(&block, 13, NULL, TARN_E_CORRUPT);
  stay(&block, 14, NULL, TARN_E_CORRUPT);
  assert_error_says("rooms: resized 100 bytes");
  give(block);
}

TEST(a_table_of_before_has_no_such_function) {
  tarn_strategy rooms = {.struct_size = offsetof(tarn_strategy, resize),
                         .name = "rooms",
                         .take = take_room,
                         .give = give_room,
                         .trim = trim_none,
                         .resize = resize_room};
  assert_ok(tarn_pool_register(&rooms));
  tarn_pool *pool = host_pool("rooms");
  tarn_block block = take(pool, 100);
  stay(&block, 101, NULL, TARN_FULL);
  assert_error_says("rooms: blocks cannot grow");
  resize_to(&block, 50, NULL);
  give(block);
}

// --- what is no block ------------------------------------------------------

static void check_misuse(const char *strategy) {
  tarn_pool *pool = host_pool(strategy);
  tarn_block block = take(pool, 5000);
  tarn_block none = {0};
  assert_status(tarn_pool_resize(NULL, 1, NULL), TARN_E_INVALID);
  assert_status(tarn_pool_resize(&none, 1, NULL), TARN_E_INVALID);
  stay(&block, 0, NULL, TARN_E_INVALID);
  tarn_block wrong = block;
  wrong.address += 512;
  stay(&wrong, 10, NULL, TARN_E_INVALID);
  wrong = block;
  wrong.id = 100000;
  stay(&wrong, 10, NULL, TARN_E_INVALID);
  wrong = block;
  wrong.generation++;
  stay(&wrong, 10, NULL, TARN_E_INVALID);
  give(block);
  stay(&block, 10, NULL, TARN_E_INVALID);
  assert_error_says("freed before");
}

TEST(what_is_no_block_is_refused) {
  check_misuse("arena_pool");
  check_misuse("page_unit_pool");
  check_misuse("no_pool");
  tarn_pool *pool = host_pool("arena_pool");
  tarn_block block = take(pool, 10);
  stay(&block, SIZE_MAX, NULL, TARN_E_INVALID);
  stay(&block, SIZE_MAX / 2, NULL, TARN_FULL);
  give(block);
}

TEST_LOOP(a_block_of_another_device_s_pool_is_refused, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_DISCRETE, "arena_pool");
  if (p.pool == NULL) return;
  tarn_pool *host = host_pool("arena_pool");
  tarn_block block = take(p.pool, 1000);
  tarn_block wrong = block;
  wrong.pool = host;
  stay(&wrong, 10, NULL, TARN_E_INVALID);
  give(block);
}
