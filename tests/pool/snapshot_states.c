// Traces of pools that debug, sleep, capture, have no memory or no room; and of
// none.
#include "pool/arena.h"
#include "snapshot_scene.h"
#include "support/faults.h"
#include "support/tagged.h"
#include "tarn/capture.h"
#include "tarn/misuse.h"

// --- what else a pool may do -----------------------------------------------

TEST_LOOP(debugging_changes_nothing, 2) {
  program p;
  tarn_block block;
  name_tags();
  tarn_pool *pool = host_pool(_i == 0 ? "arena_pool" : "page_unit_pool");
  tarn_pool_debug_options all = {.struct_size = sizeof all,
                                 .flags = TARN_POOL_DEBUG_GUARDS |
                                          TARN_POOL_DEBUG_POISON |
                                          TARN_POOL_DEBUG_QUARANTINE};
  assert_ok(tarn_pool_debug(pool, &all));
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  begin_program(&p, pool, NULL);
  for (int i = 0; i < 10; i++) {
    run(&p, STEPS / 10);
    check_all(pool, 0);
  }
  assert_ok(tarn_pool_limit(pool, stats_of(pool).reserved_bytes));
  assert_status(alloc_tagged(pool, (size_t)1 << 40, 0, NULL, tags[3], &block),
                TARN_FULL);
  tarn_trace *trace = trace_of(pool);
  const tarn_trace_event *refused = &trace->events[trace->event_count - 2];
  ck_assert_int_eq(refused->kind, TARN_TRACE_OOM);
  ck_assert_uint_eq(refused->size, (size_t)1 << 40);  // without its guard
  ck_assert_str_eq(trace->tags[refused->tag], tarn_pool_tag_name(tags[3]));
  tarn_trace_destroy(trace);
  end_program(&p);
  assert_ok(tarn__front_check(pool));
}

// False: the device has no ranges.
static bool open_arena_scene(scene *s, int device) {
  name_tags();
  for (int i = device; i < SCENES_ON_DEVICES; i += TEST_DEVICES) {
    if (strcmp(strategy_at(i), "arena_pool") != 0) continue;
    ck_assert(open_scene(s, i));
    return device_has(s->device, TEST_NEEDS_RANGES);
  }
  ck_abort_msg("no arena_pool");
}

TEST_LOOP(sleeping_blocks_are_held, TEST_DEVICES) {
  scene s;
  if (!open_arena_scene(&s, _i)) return;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  tarn_block weights = take_tagged(s.pool, (size_t)8 * MIB, tags[1]);
  tarn_block other = take_tagged(s.pool, 100, tags[2]);
  assert_ok(tarn_pool_sleep(s.pool, tags[1], TARN_SLEEP_DROP));
  ck_assert_uint_gt(stats_of(s.pool).asleep_bytes, 0);
  check_all(s.pool, 0);
  assert_ok(tarn_pool_wake(s.pool, tags[1]));
  check_all(s.pool, 0);
  give(weights);
  give(other);
}

// As if a page had been taken out of its place, and its new place had failed.
static void add_spare(tarn_pool *pool) {
  tarn__pool_arena *self = (tarn__pool_arena *)(void *)pool->current;
  tarn__pool_regions *regions = &self->regions;
  size_t count = regions->spare_count;
  ck_assert_uint_gt(regions->spare_room, count);
  assert_ok(tarn__supply_create(regions->supply, regions->page,
                                &regions->spares[count]));
  tarn__front_enter(pool);
  regions->spare_count++;
  tarn__source_charge(&self->base, regions->page);
  tarn__front_note_memory(pool, TARN_POOL_EVENT_MAP, 0, regions->page, 0);
  tarn__front_leave(pool);
}

// Memory that moves is never without an address.
static bool has_spares(const tarn_pool *pool) {
  return !tarn__supply_moves(&pool->supply);
}

static size_t count_nowhere(const tarn_trace *trace) {
  size_t count = 0;
  for (size_t i = 0; i < trace->segment_count; i++)
    count += trace->segments[i].address == 0 ? 1 : 0;
  return count;
}

// At address 0, since it has none.
TEST_LOOP(spare_pages_are_memory_too, TEST_DEVICES) {
  scene s;
  if (!open_arena_scene(&s, _i) || !has_spares(s.pool)) return;
  tarn_block block = take_tagged(s.pool, MIB, tags[1]);
  add_spare(s.pool);
  check_all(s.pool, 0);
  tarn_trace *trace = trace_of(s.pool);
  ck_assert_uint_eq(trace->segment_count, 2);
  ck_assert_uint_eq(count_nowhere(trace), 1);
  tarn_trace_destroy(trace);
  give(block);
}

// Whichever arenas have them, and however they came: nothing lies in one place
// with something else, now or before.
TEST_LOOP(spare_pages_of_two_arenas_lie_side_by_side, TEST_DEVICES) {
  scene s;
  if (!open_arena_scene(&s, _i) || !has_spares(s.pool)) return;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  tarn_block old = take_tagged(s.pool, MIB, tags[1]);
  assert_ok(tarn_pool_set_strategy(s.pool, "arena_pool:slack=64M"));
  tarn_block block = take_tagged(s.pool, MIB, tags[1]);
  tarn__pool_arena *first = (tarn__pool_arena *)(void *)tarn_list_entry(
      s.pool->replaced.next, tarn__pool_strategy, node);
  tarn__pool_strategy *second = s.pool->current;
  s.pool->current = &first->base;
  add_spare(s.pool);
  s.pool->current = second;
  add_spare(s.pool);
  add_spare(s.pool);
  tarn_trace *trace = trace_of(s.pool);
  ck_assert_uint_eq(count_nowhere(trace), 1);
  check_state(s.pool, trace);
  check_history(trace);
  size_t page = first->regions.page;
  uint64_t next = 0;
  for (size_t i = 0; i < trace->event_count; i++) {
    const tarn_trace_event *e = &trace->events[i];
    if (e->kind != TARN_TRACE_SEGMENT_MAP || e->address >= 3 * page) continue;
    ck_assert_uint_eq(e->address, next);
    next += page;
  }
  ck_assert_uint_eq(next, 3 * page);
  tarn_trace_destroy(trace);
  assert_ok(tarn_pool_trim(s.pool, 0));
  trace = trace_of(s.pool);
  check_history(trace);
  tarn_trace_destroy(trace);
  give(block);
  give(old);
}

TEST_LOOP(captures_and_dry_pools_are_told_as_any, 2 * TEST_DEVICES) {
  tarn_device *device = open_device(test_devices[_i % TEST_DEVICES]);
  tarn_pool *pool = NULL;
  name_tags();
  uint32_t flags = _i < TEST_DEVICES ? TARN_POOL_DEFER : TARN_POOL_DRY;
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = "page_unit_pool",
                               .flags = flags};
  assert_ok(tarn_pool_create(tarn_place_on(device), &options, &pool));
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  tarn_block kept = take_tagged(pool, 1000, tags[1]);
  bool captures = (flags & TARN_POOL_DEFER) != 0;
  if (captures) assert_ok(tarn_pool_begin_capture(pool));
  tarn_block block = take_tagged(pool, 5000, tags[2]);
  give(kept);  // deferred in a capture: it is out until that ends
  check_all(pool, 0);
  give(block);
  check_all(pool, 0);
  if (captures) {
    assert_ok(tarn_pool_end_capture(pool));
    assert_ok(tarn_pool_end_graphs(pool));
  }
  check_all(pool, 0);
  assert_ok(tarn_pool_destroy(pool));
}

static size_t count_kind(const tarn_trace *trace, tarn_trace_kind kind) {
  size_t count = 0;
  for (size_t i = 0; i < trace->event_count; i++)
    count += trace->events[i].kind == kind ? 1 : 0;
  return count;
}

// Holes give their pages to a block that fits in none of them, with no more
// held than before: what the events say of addresses still adds up.
TEST_LOOP(pages_that_move_are_told, TEST_DEVICES) {
  scene s;
  tarn_block blocks[8];
  if (!open_arena_scene(&s, _i)) return;
  assert_ok(tarn_pool_set_strategy(s.pool, "arena_pool:slack=0"));
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  for (size_t i = 0; i < 8; i++)
    blocks[i] = take_tagged(s.pool, (size_t)4 * MIB, tags[1]);
  size_t held = stats_of(s.pool).reserved_bytes;
  for (size_t i = 0; i < 8; i += 2)
    give(blocks[i]);
  tarn_block large = take_tagged(s.pool, (size_t)12 * MIB, tags[2]);
  ck_assert_uint_eq(stats_of(s.pool).reserved_bytes, held);
  tarn_trace *trace = trace_of(s.pool);
  ck_assert_uint_ge(count_kind(trace, TARN_TRACE_SEGMENT_UNMAP), 3);
  check_history(trace);
  tarn_trace_destroy(trace);
  check_all(s.pool, 0);
  give(large);
  for (size_t i = 1; i < 8; i += 2)
    give(blocks[i]);
}

// --- errors ----------------------------------------------------------------

TEST(wrong_calls_give_no_trace) {
  tarn_trace *trace = (tarn_trace *)&trace;
  assert_status(tarn_pool_trace(NULL, &trace), TARN_E_INVALID);
  ck_assert_ptr_null(trace);
}

static tarn_pool *swept;

static void trace_scenario(void *context) {
  (void)context;
  tarn_trace *trace = (tarn_trace *)&trace;
  tarn_pool_stats before = stats_of(swept);
  tarn_status status = tarn_pool_trace(swept, &trace);
  if (status == TARN_OK) {
    tarn_trace_destroy(trace);
  } else {
    assert_status(status, TARN_E_NOMEM);
    ck_assert_ptr_null(trace);
  }
  assert_same_stats(before, stats_of(swept));
  assert_ok(tarn__front_check(swept));
}

TEST(no_host_memory_means_no_trace) {
  program p;
  name_tags();
  swept = host_pool("arena_pool");
  assert_ok(tarn_pool_account(swept, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  begin_program(&p, swept, NULL);
  run(&p, 100);
  ck_assert_uint_gt(faults_sweep(trace_scenario, NULL), 10);
  end_program(&p);
}

int main(void) {
  faults_install();
  return run_tests();
}
