// Pools whose blocks are memory objects of their own, exported and imported
// within one process; what is refused, and what fails.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "share_kit.h"
#include "support/child.h"
#include "support/faults.h"
#include "tarn/account.h"
#include "tarn/misuse.h"
#include "tarn/snapshot.h"

// --- blocks ----------------------------------------------------------------

TEST_LOOP(a_block_is_an_object_of_its_own, TEST_DEVICES) {
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_block a = take(pool, 1);
  tarn_block b = take(pool, STEP + 1);
  ck_assert_uint_eq(a.size, STEP);
  ck_assert_uint_eq(b.size, 2 * STEP);
  ck_assert_uint_eq(a.address % STEP, 0);
  tarn_pool_stats stats = stats_of(pool);
  ck_assert_str_eq(stats.strategy, "shareable");
  ck_assert_uint_eq(stats.live_bytes, STEP + 2);
  ck_assert_uint_eq(stats.reserved_bytes, 3 * STEP);
  ck_assert_uint_eq(stats.device_allocs, 2);
  ck_assert_uint_eq(stats.misses, 2);
  assert_ok(tarn__front_check(pool));
  tarn_trace *trace = NULL;
  assert_ok(tarn_pool_trace(pool, &trace));
  tarn_trace_destroy(trace);
  give(b);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, STEP);
  ck_assert_uint_eq(stats_of(pool).device_frees, 1);
  give(a);
}

TEST_LOOP(blocks_are_aligned_as_asked, TEST_DEVICES) {
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  for (size_t align = 1; align <= 4 * (size_t)MIB; align *= 4) {
    tarn_block block;
    assert_ok(tarn_pool_alloc(pool, 100, align, NULL, &block));
    ck_assert_uint_eq(block.address % align, 0);
    tarn_block same = {0};
    int fd = export_of(block);
    assert_ok(tarn_pool_import(pool, fd, 100, &same));
    put_byte(p.device, block, 0, 7);
    ck_assert_uint_eq(byte_at(p.device, same, 0), 7);
    close(fd);
    give(same);
    give(block);
  }
}

// --- sharing ---------------------------------------------------------------

TEST_LOOP(an_imported_block_has_the_same_bytes, TEST_DEVICES) {
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_pool *other = shareable_at(p.place, 0);
  tarn_block block = take(pool, 3 * STEP - 5);
  tarn_block import = {0};
  put_byte(p.device, block, 2 * STEP, 17);
  int fd = export_of(block);
  ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  assert_ok(tarn_pool_import(other, fd, block.size, &import));
  close(fd);
  ck_assert_ptr_eq(import.pool, other);
  ck_assert_uint_ne(import.address, block.address);
  ck_assert_uint_eq(import.size, block.size);
  ck_assert_uint_eq(byte_at(p.device, import, 2 * STEP), 17);
  put_byte(p.device, import, 9, 18);
  ck_assert_uint_eq(byte_at(p.device, block, 9), 18);
  tarn_pool_stats stats = stats_of(other);
  ck_assert_uint_eq(stats.live_blocks, 1);
  ck_assert_uint_eq(stats.live_bytes, 3 * STEP);
  ck_assert_uint_eq(stats.reserved_bytes, 3 * STEP);
  ck_assert_uint_eq(stats.allocs, 1);
  assert_ok(tarn__front_check(other));
  // What is freed here stays there, and what is taken next is other memory.
  give(block);
  tarn_block next = take(pool, 3 * STEP - 5);
  put_byte(p.device, next, 9, 99);
  ck_assert_uint_eq(byte_at(p.device, import, 9), 18);
  give(next);
  give(import);
}

TEST_LOOP(an_import_is_exported_again, TEST_DEVICES) {
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_block blocks[4] = {take(pool, STEP)};
  for (size_t i = 1; i < 4; i++) {
    int fd = export_of(blocks[i - 1]);
    assert_ok(tarn_pool_import(pool, fd, STEP, &blocks[i]));
    close(fd);
  }
  put_byte(p.device, blocks[0], 1, 77);
  give(blocks[0]);
  give(blocks[1]);
  ck_assert_uint_eq(byte_at(p.device, blocks[3], 1), 77);
  give(blocks[2]);
  give(blocks[3]);
}

// The descriptor alone keeps the memory.
TEST_LOOP(a_descriptor_outlives_the_block_and_the_pool, TEST_DEVICES) {
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_block block = take(pool, STEP);
  put_byte(p.device, block, 5, 55);
  int fd = export_of(block);
  give(block);
  end_own(pool);
  pool = shareable_at(p.place, 0);
  assert_ok(tarn_pool_import(pool, fd, STEP, &block));
  close(fd);
  ck_assert_uint_eq(byte_at(p.device, block, 5), 55);
  give(block);
}

// --- what is refused -------------------------------------------------------

static void refuse_options(tarn_place place, tarn_pool_options options,
                           tarn_status expected) {
  tarn_pool *pool = (tarn_pool *)&options;
  options.struct_size = sizeof options;
  options.flags |= TARN_POOL_SHAREABLE;
  assert_status(tarn_pool_create(place, &options, &pool), expected);
  ck_assert_ptr_null(pool);
}

TEST(nothing_else_goes_with_it) {
  static char slab[100000];
  refuse_options(TARN_HOST, (tarn_pool_options){.strategy = "arena_pool"},
                 TARN_E_INVALID);
  assert_error_says("arena_pool");
  refuse_options(TARN_HOST, (tarn_pool_options){.flags = TARN_POOL_DRY},
                 TARN_E_INVALID);
  assert_error_says("0x2");
  refuse_options(TARN_HOST, (tarn_pool_options){.flags = TARN_POOL_DEFER},
                 TARN_E_INVALID);
  tarn_pool_memory memory = {tarn_addr_of(slab), sizeof slab};
  refuse_options(TARN_HOST, (tarn_pool_options){.memory = memory},
                 TARN_E_INVALID);
  assert_error_says("100000");
}

TEST_LOOP(a_device_that_cannot_is_refused, TEST_DEVICES) {
  arena_place p = open_arena_with(_i, TEST_NEEDS_DISCRETE, "page_unit_pool");
  if (p.pool == NULL) return;
  tarn_place pinned = {.kind = TARN_PLACE_HOST, .device = p.device};
  refuse_options(pinned, (tarn_pool_options){0}, TARN_E_UNSUPPORTED);
  if (serves(p.device, true, NEEDS_SHARING)) return;
  refuse_options(p.place, (tarn_pool_options){0}, TARN_E_UNSUPPORTED);
  assert_error_says(p.name);
  assert_error_says("cannot be shared with other processes");
}

static void refuse_import(tarn_pool *pool, int fd, size_t size,
                          tarn_status expected) {
  tarn_block block;
  memset(&block, 0xff, sizeof block);
  assert_status(tarn_pool_import(pool, fd, size, &block), expected);
  assert_zero_block(block);
  assert_ok(tarn__front_check(pool));
}

static void refuse_descriptor(tarn_pool *pool, int fd) {
  char named[32];
  snprintf(named, sizeof named, "descriptor %d", fd);
  refuse_import(pool, fd, STEP, TARN_E_INVALID);
  assert_error_says(named);
}

TEST(what_is_no_descriptor_of_memory_is_refused) {
  tarn_pool *pool = shareable_at(TARN_HOST, 0);
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  refuse_descriptor(pool, -1);
  refuse_descriptor(pool, 999);
  refuse_descriptor(pool, ends[0]);
  refuse_descriptor(pool, ends[1]);
  int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  refuse_descriptor(pool, file);
  close(file);
  close(ends[0]);
  close(ends[1]);
  tarn_block block = take(pool, 2 * STEP);
  int fd = export_of(block);
  refuse_import(pool, fd, 0, TARN_E_INVALID);
  refuse_import(pool, fd, STEP, TARN_E_INVALID);
  assert_error_says("65536");
  assert_error_says("131072");
  refuse_import(pool, fd, 2 * STEP + 1, TARN_E_INVALID);
  refuse_import(pool, fd, SIZE_MAX, TARN_E_INVALID);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 1);
  close(fd);
  give(block);
}

// Each refuses what is the other's.
TEST(memory_of_another_type_of_device_is_refused) {
  arena_place p = open_faulty(ARENA_CAPACITY, "arena_pool");  // it reports
  tarn_pool *pools[2] = {shareable_at(p.place, 0), shareable_at(TARN_HOST, 0)};
  size_t misuses = tarn_sim_misuses(NULL, 0);
  for (int i = 0; i < 2; i++) {
    tarn_block block = take(pools[i], STEP);
    int fd = export_of(block);
    refuse_descriptor(pools[1 - i], fd);
    close(fd);
    give(block);
    assert_ok(tarn__front_check(pools[i]));
  }
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), misuses + 1);
  end_own(pools[0]);
  end_own(pools[1]);
  abandon(&p);
}

TEST(what_cannot_be_exported) {
  tarn_pool *pool = shareable_at(TARN_HOST, 0);
  tarn_pool *plain = host_pool("arena_pool");
  tarn_block block = take(plain, 100);
  int fd = 7;
  assert_status(tarn_pool_export(&block, &fd), TARN_E_UNSUPPORTED);
  ck_assert_int_eq(fd, 0);
  assert_error_says("TARN_POOL_SHAREABLE");
  tarn_block import;
  assert_status(tarn_pool_import(plain, 7, 100, &import), TARN_E_UNSUPPORTED);
  assert_zero_block(import);
  assert_status(tarn_pool_import(NULL, 7, 100, &import), TARN_E_INVALID);
  assert_status(tarn_pool_export(NULL, &fd), TARN_E_INVALID);
  block.pool = pool;
  assert_status(tarn_pool_export(&block, &fd), TARN_E_INVALID);
  block.pool = plain;
  give(block);
  block = take_tagged(pool, 100, tag_of("weights"));
  give(block);
  assert_status(tarn_pool_export(&block, &fd), TARN_E_INVALID);
  assert_error_says("export: the block at");
  assert_error_says("weights");
  ck_assert_int_eq(fd, 0);
  assert_status(tarn_pool_export(&(tarn_block){0}, &fd), TARN_E_INVALID);
}

TEST(what_it_cannot_do) {
  tarn_pool *pool = shareable_at(TARN_HOST, 0);
  tarn_tag tag = tag_of("weights");
  tarn_block block = take_tagged(pool, 100, tag);
  tarn_pool_debug_options debug = {.struct_size = sizeof debug,
                                   .flags = TARN_POOL_DEBUG_GUARDS};
  assert_status(tarn_pool_set_strategy(pool, "arena_pool"), TARN_E_UNSUPPORTED);
  assert_error_says("TARN_POOL_SHAREABLE");
  assert_status(tarn_pool_sleep(pool, tag, TARN_SLEEP_DROP),
                TARN_E_UNSUPPORTED);
  assert_error_says("shareable");
  assert_ok(tarn_pool_wake(pool, tag));
  assert_status(tarn_pool_debug(pool, &debug), TARN_E_UNSUPPORTED);
  assert_error_says("shareable");
  setenv("TARN_POOL_DEBUG", "all", 1);
  setenv("TARN_POOL", "none", 1);
  tarn_pool *other = shareable_at(TARN_HOST, 0);
  unsetenv("TARN_POOL_DEBUG");
  unsetenv("TARN_POOL");
  tarn_block plain = take(other, STEP);
  ck_assert_uint_eq(plain.size, STEP);
  give(plain);
  end_own(other);
  assert_status(tarn_pool_destroy(pool), TARN_E_STATE);
  give(block);
}

// --- what pools can --------------------------------------------------------

static bool say_no(tarn_pool *pool, const tarn_pool_need *need, void *context) {
  (void)pool;
  *(tarn_pool_need *)context = *need;
  return false;
}

TEST(limits_and_counters_hold) {
  tarn_pool *pool = shareable_at(TARN_HOST, 3 * STEP);
  tarn_tag tag = tag_of("cache");
  tarn_pool_need need = {0};
  tarn_block block = take_tagged(pool, STEP, tag);
  tarn_block other = {0};
  ck_assert_uint_eq(tag_stats_of(pool, tag).live_bytes, STEP);
  int fd = export_of(block);
  refuse(pool, 3 * STEP, 0, TARN_FULL);
  assert_error_says("limit of 192.00 KiB");
  assert_error_says("cache");
  assert_ok(tarn_pool_import(pool, fd, STEP, &other));
  assert_ok(tarn_pool_on_full(pool, say_no, &need));
  tarn_block third = take(pool, STEP);
  tarn_block fourth;
  assert_status(tarn_pool_import(pool, fd, STEP, &fourth), TARN_FULL);
  assert_zero_block(fourth);
  ck_assert_uint_eq(need.size, STEP);
  ck_assert(need.can_fit);
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn_pool_import(pool, fd, STEP, &fourth));
  close(fd);
  give(fourth);
  give(third);
  give(other);
  assert_ok(tarn_pool_resize(&block, STEP, NULL));
  assert_status(tarn_pool_resize(&block, STEP + 1, NULL), TARN_FULL);
  assert_ok(tarn_pool_trim(pool, 0));
  tarn_block found;
  size_t offset = 0;
  assert_ok(tarn_block_of(TARN_HOST, block.address + 3, &found, &offset));
  assert_same_block(found, block);
  assert_ok(tarn_free(TARN_HOST, block.address, NULL));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

// Memory that is there takes none of what is free.
TEST_LOOP(an_import_needs_no_room_on_the_device, TEST_DEVICES) {
  arena_place p =
      open_arena_with(_i, NEEDS_SHARING | NEEDS_CAPACITY, "arena_pool");
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_block block = take(pool, ARENA_CAPACITY / 8 * 5);
  tarn_block import = {0};
  int fd = export_of(block);
  refuse(pool, ARENA_CAPACITY / 2, 0, TARN_FULL);
  assert_error_says("memory_create");
  assert_ok(tarn_pool_import(pool, fd, block.size, &import));
  close(fd);
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 2 * block.size);
  give(import);
  give(block);
}

// What another stream has queued is done before the memory goes.
TEST_LOOP(a_free_waits_for_streams, TEST_DEVICES) {
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_stream *a = stream_on(&p);
  tarn_stream *b = stream_on(&p);
  static char out[2][8];
  for (int round = 0; round < 50; round++) {
    tarn_block block = take_on(pool, STEP, a);
    assert_ok(tarn_copy_h2d(p.device, block.address, "queued ", 8, a));
    assert_ok(tarn_copy_d2h(p.device, out[0], block.address, 8, a));
    assert_ok(tarn_stream_join(b, tarn_stream_serial(a)));
    assert_ok(tarn_copy_d2h(p.device, out[1], block.address, 8, b));
    assert_ok(tarn_block_use_on(&block, b));
    give_on(block, a);
    assert_ok(tarn__front_check(pool));
    ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  }
  assert_ok(tarn_stream_synchronize(a));
  assert_ok(tarn_stream_synchronize(b));
  ck_assert_str_eq(out[0], "queued ");
  ck_assert_str_eq(out[1], "queued ");
}

static tarn_pool *pool_in_callback;
static atomic_int refused;

static void use_in_callback(void *context, tarn_status status) {
  (void)status;
  tarn_block block = *(tarn_block *)context;
  int fd = 0;
  atomic_fetch_add(&refused, tarn_pool_export(&block, &fd) == TARN_E_STATE);
  atomic_fetch_add(&refused, tarn_pool_import(pool_in_callback, 5, STEP,
                                              &block) == TARN_E_STATE);
}

TEST(a_callback_cannot) {
  arena_place p = open_arena("cpu:0", "arena_pool");
  tarn_stream *stream = stream_on(&p);
  pool_in_callback = shareable_at(p.place, 0);
  tarn_block block = take(pool_in_callback, STEP);
  assert_ok(tarn_stream_add_callback(stream, use_in_callback, &block));
  assert_ok(tarn_stream_synchronize(stream));
  ck_assert_int_eq(atomic_load(&refused), 2);
  give(block);
}

static void use_the_parent_s(tarn_pool *pool, tarn_block block, int fd) {
  tarn_block other;
  int again = 7;
  MUST(tarn_pool_export(&block, &again) == TARN_E_STATE);
  MUST(again == 0);
  MUST(tarn_pool_import(pool, fd, STEP, &other) == TARN_E_STATE);
  MUST(other.pool == NULL);
  MUST(tarn_pool_destroy(pool) == TARN_OK);
  // With a pool of its own it can have the memory that the descriptor is for.
  tarn_pool_options options = {.struct_size = sizeof options,
                               .flags = TARN_POOL_SHAREABLE};
  MUST(tarn_pool_create(TARN_HOST, &options, &pool) == TARN_OK);
  MUST(tarn_pool_import(pool, fd, STEP, &other) == TARN_OK);
  *(volatile char *)other.pointer = 42;
  MUST(tarn_pool_free(&other, NULL) == TARN_OK);
  MUST(tarn_pool_destroy(pool) == TARN_OK);
}

TEST(a_child_has_no_part_in_it) {
  tarn_pool *pool = shareable_at(TARN_HOST, 0);
  tarn_block block = take(pool, STEP);
  int fd = export_of(block);
  pid_t child = fork();
  if (child == 0) {
    child_begin(30);
    use_the_parent_s(pool, block, fd);
    _exit(0);
  }
  assert_child_ended_well(child);
  ck_assert_int_eq(*(volatile char *)block.pointer, 42);
  close(fd);
  give(block);
}

// --- when things fail ------------------------------------------------------

typedef struct scene {
  arena_place p;
  size_t errors;
} scene;

static bool holds(scene *s, tarn_status status) {
  if (status != TARN_OK) s->errors++;
  return status == TARN_OK;
}

static void play(scene *s) {
  tarn_pool_options options = {.struct_size = sizeof options,
                               .flags = TARN_POOL_SHAREABLE};
  tarn_pool *pool = NULL;
  tarn_block blocks[2] = {0};
  int fd = 0;
  if (!holds(s, tarn_pool_create(s->p.place, &options, &pool))) return;
  holds(s, tarn_pool_alloc(pool, STEP, 0, NULL, &blocks[0]));
  if (blocks[0].pool != NULL) holds(s, tarn_pool_export(&blocks[0], &fd));
  if (fd > 0) holds(s, tarn_pool_import(pool, fd, STEP, &blocks[1]));
  if (fd > 0) close(fd);
  assert_ok(tarn__front_check(pool));
  for (int i = 0; i < 2; i++) {
    if (blocks[i].pool != NULL) holds(s, tarn_pool_free(&blocks[i], NULL));
  }
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
  ck_assert_uint_eq(stats_of(pool).live_blocks, 0);
  holds(s, tarn_pool_destroy(pool));
}

static void play_scene(void *context) {
  play(context);
}

TEST_LOOP(nothing_is_lost_without_host_memory, TEST_DEVICES) {
  faults_install();
  scene s = {.p = open_sharing(_i)};
  if (s.p.pool == NULL) return;
  play(&s);
  ck_assert_uint_eq(s.errors, 0);
  ck_assert_uint_gt(faults_sweep(play_scene, &s), 5);
}

// The memory goes back all the same, but for what the call that failed was to
// give back. Where all fail from then on, nothing hangs, and the device closes.
static bool play_with(const char *faults, bool onwards) {
  scene s = {.p = open_faulty(ARENA_CAPACITY, "arena_pool")};
  assert_ok(tarn_sim_faults(faults));
  play(&s);
  assert_ok(tarn_sim_faults(""));
  if (!onwards) {
    ck_assert_uint_le(s.errors, 1);  // what was not had is not freed
    ck_assert_uint_le(s.p.available - available_on(s.p.device), STEP);
  }
  abandon(&s.p);
  return s.errors > 0;
}

TEST_LOOP(a_device_that_fails_loses_little, 2) {
  ck_assert_uint_gt(sweep_sim(play_with, _i != 0, 1, 20), 10);
}

TEST(what_was_not_unmapped_is_unmapped_by_a_trim) {
  arena_place p = open_faulty(ARENA_CAPACITY, "arena_pool");
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_block block = take(pool, STEP);
  tarn_block other = take(pool, STEP);
  assert_ok(tarn_sim_faults("range_unmap@1+"));
  assert_status(tarn_pool_free(&block, NULL), TARN_E_DEVICE);
  assert_status(tarn_pool_free(&other, NULL), TARN_E_DEVICE);
  assert_status(tarn_pool_trim(pool, 0), TARN_E_DEVICE);
  assert_ok(tarn_sim_faults(""));
  assert_ok(tarn_pool_trim(pool, 0));
  ck_assert_uint_eq(available_on(p.device), p.available);
}
