// Traces of pools: of every strategy, on the host and on a simulated device,
// they hold what the pool's own statistics and events say.
#include <pthread.h>
#include <stdio.h>

#include "pool/arena.h"
#include "support/faults.h"
#include "tarn/account.h"
#include "tarn/capture.h"
#include "tarn/misuse.h"
#include "tarn/snapshot.h"
#include "tarn/strategy.h"
#include "test_pool_kit.h"

enum { BLOCKS = 48, TAGS = 4, STEPS = 600, MOST_EVENTS = 8192 };

static const char *const devices[] = {"cpu:0", "sim:0"};
enum { DEVICES = sizeof devices / sizeof *devices };

static tarn_tag tags[TAGS];  // the first is "untagged"

static void name_tags(void) {
  tags[1] = tag_of("weights");
  tags[2] = tag_of("activations");
  tags[3] = tag_of("caf\xc3\xa9 <b>");
}

static tarn_trace *trace_of(tarn_pool *pool) {
  tarn_trace *trace = NULL;
  assert_ok(tarn_pool_trace(pool, &trace));
  ck_assert_ptr_nonnull(trace);
  return trace;
}

// --- what is compared ------------------------------------------------------

// A tag's number in the trace; 0 also where it has none of that name.
static uint32_t number_of(const tarn_trace *trace, tarn_tag tag) {
  for (uint32_t i = 1; tag != 0 && i < trace->tag_count; i++) {
    if (strcmp(trace->tags[i], tarn_pool_tag_name(tag)) == 0) return i;
  }
  return 0;
}

static bool is_out(const tarn_trace_block *block) {
  return block->died == TARN_TRACE_NEVER;
}

// Of what is out under |tag|, or under any.
static void sum_out(const tarn_trace *trace, const tarn_tag *tag, size_t *bytes,
                    size_t *count) {
  uint32_t number = tag != NULL ? number_of(trace, *tag) : 0;
  *bytes = *count = 0;
  if (tag != NULL && *tag != 0 && number == 0) return;
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (!is_out(block) || (tag != NULL && block->tag != number)) continue;
    *bytes += block->size;
    ++*count;
  }
}

static void check_tags(tarn_pool *pool, const tarn_trace *trace) {
  for (size_t i = 0; i < TAGS; i++) {
    size_t bytes = 0;
    size_t count = 0;
    sum_out(trace, &tags[i], &bytes, &count);
    tarn_pool_tag_stats stats = tag_stats_of(pool, tags[i]);
    ck_assert_uint_eq(bytes, stats.live_bytes);
    ck_assert_uint_eq(count, stats.live_blocks);
  }
}

static bool has_memory(const tarn_trace *trace, const tarn_trace_block *block) {
  for (size_t i = 0; i < trace->segment_count; i++) {
    const tarn_trace_segment *s = &trace->segments[i];
    if (block->address >= s->address &&
        block->address - s->address + block->size <= s->size) {
      return true;
    }
  }
  return false;
}

static void check_no_overlap(const tarn_trace *trace) {
  for (size_t i = 0; i < trace->segment_count; i++) {
    const tarn_trace_segment *a = &trace->segments[i];
    require(a->size > 0);
    for (size_t j = 0; j < i; j++) {
      const tarn_trace_segment *b = &trace->segments[j];
      require(a->address + a->size <= b->address ||
              b->address + b->size <= a->address);
    }
  }
}

static void check_memory(const tarn_trace *trace, tarn_pool_stats stats) {
  size_t held = 0;
  for (size_t i = 0; i < trace->segment_count; i++)
    held += trace->segments[i].size;
  ck_assert_uint_eq(held, stats.reserved_bytes);
  check_no_overlap(trace);
  for (size_t i = 0; stats.asleep_bytes == 0 && i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (is_out(block)) require(has_memory(trace, block));
  }
}

static void check_blocks(tarn_pool *pool, const tarn_trace *trace) {
  for (size_t i = 0; i < trace->block_count; i++) {
    const tarn_trace_block *block = &trace->blocks[i];
    if (!is_out(block)) continue;
    const tarn__piece *piece = tarn__front_at(pool, block->address);
    require(piece != NULL && piece->live);
    require(piece->requested == block->size);
  }
}

// All that does not need the events.
static void check_state(tarn_pool *pool, const tarn_trace *trace) {
  size_t bytes = 0;
  size_t count = 0;
  tarn_pool_stats stats = stats_of(pool);
  sum_out(trace, NULL, &bytes, &count);
  ck_assert_uint_eq(bytes, stats.live_bytes);
  ck_assert_uint_eq(count, stats.live_blocks);
  ck_assert_uint_eq(trace->ignored_count, 0);
  ck_assert_uint_eq(trace->unknown_count, 0);
  check_tags(pool, trace);
  check_memory(trace, stats);
  check_blocks(pool, trace);
  ck_assert_uint_ge(trace->event_count, 1);
  const tarn_trace_event *last = &trace->events[trace->event_count - 1];
  ck_assert_int_eq(last->kind, TARN_TRACE_SNAPSHOT);
}

// --- events ----------------------------------------------------------------

static tarn_pool_event seen[MOST_EVENTS];

static tarn_trace_kind kind_of(const tarn_pool_event *e) {
  bool whole = e->address != 0;
  switch (e->kind) {
    case TARN_POOL_EVENT_ALLOC:
      return TARN_TRACE_ALLOC;
    case TARN_POOL_EVENT_FREE:
      return TARN_TRACE_FREE;
    case TARN_POOL_EVENT_GROW:
      return whole ? TARN_TRACE_SEGMENT_ALLOC : TARN_TRACE_SEGMENT_MAP;
    case TARN_POOL_EVENT_SHRINK:
      return whole ? TARN_TRACE_SEGMENT_FREE : TARN_TRACE_SEGMENT_UNMAP;
    case TARN_POOL_EVENT_FAIL:
      return TARN_TRACE_OOM;
    default:
      ck_abort_msg("event %d", (int)e->kind);
  }
}

static void check_event(const tarn_trace *trace, const tarn_trace_event *told,
                        const tarn_pool_event *e, tarn_trace_kind kind,
                        size_t size) {
  require(told->kind == kind);
  require(told->address == e->address);
  require(told->size == size);
  require(told->stream == e->stream);
  require(told->thread == e->thread);
  require(told->time_us == e->time_ns / 1000);
  require(told->stack == TARN_TRACE_NO_STACK);
  require(told->tag == number_of(trace, e->tag));
}

// The trace's events are the ring's, in their order, and the snapshot.
static void check_events(tarn_pool *pool, const tarn_trace *trace,
                         uint64_t from) {
  size_t count = 0;
  size_t at = 0;
  uint64_t next = 0;
  assert_ok(tarn_pool_events(pool, from, seen, MOST_EVENTS, &count, &next));
  ck_assert_uint_eq(trace->lost_count, next - count);
  for (size_t i = 0; i < count; i++) {
    const tarn_pool_event *e = &seen[i];
    const tarn_trace_event *told = &trace->events[at];
    if (e->kind == TARN_POOL_EVENT_SWITCH) continue;
    if (e->kind == TARN_POOL_EVENT_RESIZE) {
      if (e->size == e->size_before) continue;
      check_event(trace, told, e, TARN_TRACE_FREE, e->size_before);
      check_event(trace, told + 1, e, TARN_TRACE_ALLOC, e->size);
      at += 2;
    } else {
      check_event(trace, told, e, kind_of(e), e->size);
      at++;
    }
  }
  ck_assert_uint_eq(trace->event_count, at + 1);
}

// --- files -----------------------------------------------------------------

typedef struct bytes {
  unsigned char *at;
  size_t size;
} bytes;

static tarn_status append(void *context, const void *from, size_t size) {
  bytes *b = context;
  b->at = realloc(b->at, b->size + size);
  require(b->at != NULL);
  memcpy(b->at + b->size, from, size);
  b->size += size;
  return TARN_OK;
}

// What is written in |format| is read as the same blocks and the same memory.
static void check_written(const tarn_trace *trace, tarn_trace_format format) {
  bytes b = {NULL, 0};
  tarn_trace *again = NULL;
  assert_ok(tarn_trace_write_to(trace, format, append, &b));
  assert_ok(tarn_trace_read_bytes(b.at, b.size, "written", NULL, &again));
  free(b.at);
  size_t bytes_out[2];
  size_t count_out[2];
  sum_out(trace, NULL, &bytes_out[0], &count_out[0]);
  sum_out(again, NULL, &bytes_out[1], &count_out[1]);
  ck_assert_uint_eq(bytes_out[0], bytes_out[1]);
  ck_assert_uint_eq(count_out[0], count_out[1]);
  ck_assert_uint_eq(again->request_count, trace->request_count);
  ck_assert_uint_eq(again->live_peak_bytes, trace->live_peak_bytes);
  // PyTorch's has one more for blocks that sleep.
  require(again->segment_count >= trace->segment_count);
  require(again->segment_count == trace->segment_count ||
          format == TARN_TRACE_FORMAT_PYTORCH);
  tarn_trace_destroy(again);
}

// --- a program -------------------------------------------------------------

typedef struct program {
  tarn_pool *pool;
  tarn_stream *streams[2];  // the first is the host
  tarn_block blocks[BLOCKS];
  uint64_t state;
} program;

static size_t below(program *p, size_t limit) {
  p->state = p->state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(p->state >> 33) % limit;
}

static void begin_program(program *p, tarn_pool *pool, tarn_stream *stream) {
  *p = (program){.pool = pool, .streams = {NULL, stream}, .state = 42};
}

static void step(program *p) {
  tarn_block *block = &p->blocks[below(p, BLOCKS)];
  tarn_stream *stream = p->streams[below(p, 2)];
  if (block->pool == NULL) {
    size_t size = 1 + below(p, (size_t)1 << (4 + below(p, 17)));
    require(tarn_pool_alloc_tagged(p->pool, size, 0, stream,
                                   tags[below(p, TAGS)], block) == TARN_OK);
  } else if (below(p, 5) == 0) {
    // Where it cannot grow it stays as it is.
    require(tarn_pool_resize(block, 1 + below(p, block->size * 2), stream) >=
            TARN_OK);
  } else {
    require(tarn_pool_free(block, stream) == TARN_OK);
    *block = (tarn_block){0};
  }
}

static void run(program *p, size_t steps) {
  while (steps-- > 0)
    step(p);
}

static void end_program(program *p) {
  for (size_t i = 0; i < BLOCKS; i++) {
    if (p->blocks[i].pool != NULL) give_on(p->blocks[i], NULL);
  }
}

typedef struct scene {
  tarn_device *device;
  tarn_stream *stream;
  tarn_pool *pool;
} scene;

static const char *strategy_at(int index) {
  return tarn_pool_strategy_name((size_t)index / DEVICES);
}

// Whether that strategy can be had on that device.
static bool open_scene(scene *s, int index) {
  *s = (scene){NULL, NULL, NULL};
  name_tags();
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  require(strategy_at(index) != NULL);
  assert_ok(tarn_device_open(devices[index % DEVICES], &s->device));
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = strategy_at(index)};
  tarn_status status =
      tarn_pool_create(tarn_place_on(s->device), &options, &s->pool);
  if (status == TARN_OK) {
    assert_ok(tarn_stream_create(s->device, &s->stream));
    return true;
  }
  assert_status(status, TARN_E_UNSUPPORTED);
  assert_ok(tarn_device_close(s->device));
  return false;
}

static void close_scene(scene *s) {
  assert_ok(tarn__front_check(s->pool));
  assert_ok(tarn_pool_destroy(s->pool));
  assert_ok(tarn_stream_destroy(s->stream));
  assert_ok(tarn_device_close(s->device));
}

enum { STRATEGIES = 6, SCENES = STRATEGIES * DEVICES };

// --- every strategy --------------------------------------------------------

static void check_all(tarn_pool *pool, uint64_t from) {
  tarn_trace *trace = trace_of(pool);
  check_state(pool, trace);
  check_events(pool, trace, from);
  ck_assert_str_eq(trace->format, "built");
  ck_assert_ptr_nonnull(strstr(trace->name, "pool of "));
  check_written(trace, TARN_TRACE_FORMAT_TARN);
  check_written(trace, TARN_TRACE_FORMAT_PYTORCH);
  tarn_trace_destroy(trace);
}

START_TEST(there_are_as_many_strategies) {
  assert_ok(tarn_pool_register(TarnPoolStrategy()));
  ck_assert_ptr_nonnull(tarn_pool_strategy_name(STRATEGIES - 1));
  ck_assert_ptr_null(tarn_pool_strategy_name(STRATEGIES));
}
END_TEST

START_TEST(an_empty_pool_is_a_snapshot_and_nothing_else) {
  scene s;
  if (!open_scene(&s, _i)) return;
  tarn_trace *trace = trace_of(s.pool);
  check_state(s.pool, trace);
  ck_assert_uint_eq(trace->event_count, 1);
  ck_assert_uint_eq(trace->block_count, 0);
  ck_assert_uint_eq(trace->lost_count, 0);
  tarn_trace_destroy(trace);
  close_scene(&s);
}
END_TEST

START_TEST(without_events_all_blocks_are_the_baseline) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  begin_program(&p, s.pool, s.stream);
  run(&p, STEPS);
  tarn_trace *trace = trace_of(s.pool);
  check_state(s.pool, trace);
  ck_assert_uint_gt(trace->block_count, 4);
  ck_assert_uint_eq(trace->baseline_count, trace->block_count);
  ck_assert_uint_eq(trace->event_count, 1);
  tarn_trace_destroy(trace);
  end_program(&p);
  close_scene(&s);
}
END_TEST

START_TEST(events_become_the_trace) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  assert_ok(tarn_pool_account(
      s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS | TARN_COUNT_TIMES));
  begin_program(&p, s.pool, s.stream);
  for (int i = 0; i < 6; i++) {
    run(&p, STEPS / 6);
    check_all(s.pool, 0);
  }
  tarn_trace *trace = trace_of(s.pool);
  ck_assert_uint_eq(trace->baseline_count, 0);
  ck_assert_uint_eq(trace->lost_count, 0);
  tarn_trace_destroy(trace);
  end_program(&p);
  check_all(s.pool, 0);
  close_scene(&s);
}
END_TEST

// What is older than the ring is the baseline, whether it is still out or not.
START_TEST(a_small_ring_loses_events_and_no_blocks) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  assert_ok(tarn_pool_account_ring(s.pool, 16));
  begin_program(&p, s.pool, s.stream);
  for (int i = 0; i < 40; i++) {
    run(&p, STEPS / 40);
    check_all(s.pool, 0);
  }
  tarn_trace *trace = trace_of(s.pool);
  ck_assert_uint_gt(trace->lost_count, 0);
  ck_assert_uint_gt(trace->baseline_count, 0);
  tarn_trace_destroy(trace);
  end_program(&p);
  close_scene(&s);
}
END_TEST

// What happened while nothing was written may contradict what was written
// before: an address has another block now.
START_TEST(events_from_before_a_gap_are_not_believed) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  begin_program(&p, s.pool, s.stream);
  for (uint32_t round = 0; round < 6; round++) {
    uint64_t from = s.pool->events.next;
    uint32_t events = round % 2 == 0 ? TARN_COUNT_EVENTS : 0;
    assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | events));
    run(&p, STEPS / 6);
    check_all(s.pool, from);
  }
  // To switch on what is on leaves no gap.
  uint64_t from = s.pool->events.next;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  run(&p, 50);
  assert_ok(tarn_pool_account(
      s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS | TARN_COUNT_TIMES));
  run(&p, 50);
  check_all(s.pool, from);
  end_program(&p);
  close_scene(&s);
}
END_TEST

// Blocks of a strategy that was replaced, and its memory, are still the pool's.
START_TEST(replaced_strategies_are_part_of_it) {
  scene s;
  program p;
  if (!open_scene(&s, _i)) return;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  begin_program(&p, s.pool, s.stream);
  for (size_t i = 0; i < STRATEGIES; i++) {
    const char *next = tarn_pool_strategy_name(i);
    run(&p, STEPS / 6);
    tarn_status status = tarn_pool_exchange(s.pool, next);
    require(status == TARN_OK || status == TARN_E_UNSUPPORTED);
    check_all(s.pool, 0);
  }
  end_program(&p);
  check_all(s.pool, 0);
  close_scene(&s);
}
END_TEST

// Without a ring a step that is learned is played: what was played is on the
// books before they are copied.
START_TEST(steps_that_are_played_are_seen) {
  scene s;
  if (!open_scene(&s, _i)) return;
  for (size_t round = 0; round < 200; round++) {
    tarn_block blocks[5];
    for (size_t i = 0; i < 5; i++)
      require(tarn_pool_alloc_tagged(s.pool, (i + 1) * 3000, 0, NULL,
                                     tags[i % TAGS], &blocks[i]) == TARN_OK);
    if (round % 50 == 49) {
      tarn_trace *trace = trace_of(s.pool);
      check_state(s.pool, trace);
      ck_assert_uint_eq(trace->block_count, 5);
      tarn_trace_destroy(trace);
    }
    for (size_t i = 0; i < 5; i++)
      require(tarn_pool_free(&blocks[i], NULL) == TARN_OK);
  }
  bool learns = strcmp(strategy_at(_i), "arena_pool") == 0;
  ck_assert_int_eq(s.pool->play.stage != NULL, learns);
  tarn_trace *trace = trace_of(s.pool);
  check_state(s.pool, trace);
  tarn_trace_destroy(trace);
  close_scene(&s);
}
END_TEST

// --- what else a pool may do -----------------------------------------------

START_TEST(debugging_changes_nothing) {
  program p;
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
  tarn_block block;
  assert_status(tarn_pool_alloc(pool, (size_t)1 << 40, 0, NULL, &block),
                TARN_FULL);
  tarn_trace *trace = trace_of(pool);
  const tarn_trace_event *refused = &trace->events[trace->event_count - 2];
  ck_assert_int_eq(refused->kind, TARN_TRACE_OOM);
  ck_assert_uint_eq(refused->size, (size_t)1 << 40);  // without its guard
  tarn_trace_destroy(trace);
  end_program(&p);
  assert_ok(tarn__front_check(pool));
}
END_TEST

START_TEST(sleeping_blocks_are_held) {
  scene s;
  name_tags();
  for (int i = 0; i < SCENES; i++) {
    if (i % DEVICES != _i || strcmp(strategy_at(i), "arena_pool") != 0)
      continue;
    ck_assert(open_scene(&s, i));
    break;
  }
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  tarn_block weights = take_tagged(s.pool, 8 * MIB, tags[1]);
  tarn_block other = take_tagged(s.pool, 100, tags[2]);
  assert_ok(tarn_pool_sleep(s.pool, tags[1], TARN_SLEEP_DROP));
  ck_assert_uint_gt(stats_of(s.pool).asleep_bytes, 0);
  check_all(s.pool, 0);
  assert_ok(tarn_pool_wake(s.pool, tags[1]));
  check_all(s.pool, 0);
  give(weights);
  give(other);
  close_scene(&s);
}
END_TEST

// As if a page had been taken out of its place, and its new place had failed.
static void add_spare(tarn_pool *pool) {
  tarn__arena *self = (tarn__arena *)(void *)pool->current;
  tarn__regions *regions = &self->regions;
  ck_assert_uint_gt(regions->spare_room, 0);
  ck_assert_uint_eq(regions->spare_count, 0);
  assert_ok(regions->supply->calls->create(regions->supply, regions->page,
                                           &regions->spares[0]));
  tarn__front_enter(pool);
  regions->spare_count = 1;
  tarn__source_charge(&self->base, regions->page);
  tarn__front_leave(pool);
}

// At address 0, since it has none.
START_TEST(spare_pages_are_memory_too) {
  scene s;
  name_tags();
  for (int i = 0; i < SCENES; i++) {
    if (i % DEVICES != _i || strcmp(strategy_at(i), "arena_pool") != 0)
      continue;
    ck_assert(open_scene(&s, i));
    break;
  }
  tarn_block block = take_tagged(s.pool, MIB, tags[1]);
  add_spare(s.pool);
  check_all(s.pool, 0);
  tarn_trace *trace = trace_of(s.pool);
  ck_assert_uint_eq(trace->segment_count, 2);
  ck_assert_uint_eq(trace->segments[0].address * trace->segments[1].address, 0);
  tarn_trace_destroy(trace);
  give(block);
  close_scene(&s);
}
END_TEST

START_TEST(captures_and_dry_pools_are_told_as_any) {
  tarn_device *device = NULL;
  tarn_pool *pool = NULL;
  name_tags();
  assert_ok(tarn_device_open(devices[_i % DEVICES], &device));
  uint32_t flags = _i < DEVICES ? TARN_POOL_DEFER : TARN_POOL_DRY;
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
    assert_ok(tarn_pool_release(pool));
  }
  check_all(pool, 0);
  assert_ok(tarn_pool_destroy(pool));
  assert_ok(tarn_device_close(device));
}
END_TEST

START_TEST(refusals_are_out_of_memory) {
  tarn_pool *pool = host_pool("page_unit_pool");
  name_tags();
  assert_ok(tarn_pool_account(pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  assert_ok(tarn_pool_limit(pool, 4096));
  tarn_block block;
  assert_status(tarn_pool_alloc_tagged(pool, 5000, 0, NULL, tags[3], &block),
                TARN_FULL);
  tarn_trace *trace = trace_of(pool);
  ck_assert_uint_eq(trace->event_count, 2);
  ck_assert_int_eq(trace->events[0].kind, TARN_TRACE_OOM);
  ck_assert_uint_eq(trace->events[0].size, 5000);
  ck_assert_str_eq(trace->tags[trace->events[0].tag],
                   tarn_pool_tag_name(tags[3]));
  tarn_trace_destroy(trace);
}
END_TEST

// --- threads ---------------------------------------------------------------

static void *churn(void *context) {
  program p;
  begin_program(&p, context, NULL);
  p.state = (uint64_t)(uintptr_t)&p;
  run(&p, 8000);
  end_program(&p);
  return NULL;
}

// Whatever the moment, the trace agrees with itself: the builder refuses two
// blocks at one address, and a free of what is not there.
START_TEST(a_moment_is_one_while_others_work) {
  scene s;
  pthread_t threads[3];
  if (!open_scene(&s, _i)) return;
  assert_ok(tarn_pool_account(s.pool, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  assert_ok(tarn_pool_account_ring(s.pool, 512));
  for (size_t i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, s.pool), 0);
  for (int i = 0; i < 30; i++) {
    tarn_trace *trace = trace_of(s.pool);
    check_no_overlap(trace);
    require(trace->ignored_count == 0 && trace->unknown_count == 0);
    tarn_trace_destroy(trace);
  }
  for (size_t i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  check_all(s.pool, 0);
  close_scene(&s);
}
END_TEST

// --- errors ----------------------------------------------------------------

START_TEST(wrong_calls_give_no_trace) {
  tarn_trace *trace = (tarn_trace *)&trace;
  assert_status(tarn_pool_trace(NULL, &trace), TARN_E_INVALID);
  ck_assert_ptr_null(trace);
}
END_TEST

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

START_TEST(no_host_memory_means_no_trace) {
  program p;
  name_tags();
  swept = host_pool("arena_pool");
  assert_ok(tarn_pool_account(swept, TARN_COUNT_DEFAULT | TARN_COUNT_EVENTS));
  begin_program(&p, swept, NULL);
  run(&p, 100);
  ck_assert_uint_gt(faults_sweep(trace_scenario, NULL), 10);
  end_program(&p);
}
END_TEST

int main(void) {
  faults_install();
  Suite *suite = suite_create("pool_snapshot");
  TCase *scenes = tcase_create("strategies");
  tcase_set_timeout(scenes, 120);
  tcase_add_test(scenes, there_are_as_many_strategies);
  tcase_add_loop_test(scenes, an_empty_pool_is_a_snapshot_and_nothing_else, 0,
                      SCENES);
  tcase_add_loop_test(scenes, without_events_all_blocks_are_the_baseline, 0,
                      SCENES);
  tcase_add_loop_test(scenes, events_become_the_trace, 0, SCENES);
  tcase_add_loop_test(scenes, a_small_ring_loses_events_and_no_blocks, 0,
                      SCENES);
  tcase_add_loop_test(scenes, events_from_before_a_gap_are_not_believed, 0,
                      SCENES);
  tcase_add_loop_test(scenes, replaced_strategies_are_part_of_it, 0, SCENES);
  tcase_add_loop_test(scenes, steps_that_are_played_are_seen, 0, SCENES);
  tcase_add_loop_test(scenes, a_moment_is_one_while_others_work, 0, SCENES);
  suite_add_tcase(suite, scenes);
  TCase *states = tcase_create("states");
  tcase_set_timeout(states, 120);
  tcase_add_loop_test(states, debugging_changes_nothing, 0, 2);
  tcase_add_loop_test(states, sleeping_blocks_are_held, 0, DEVICES);
  tcase_add_loop_test(states, spare_pages_are_memory_too, 0, DEVICES);
  tcase_add_loop_test(states, captures_and_dry_pools_are_told_as_any, 0,
                      2 * DEVICES);
  suite_add_tcase(suite, states);
  ADD_CASE(suite, "single", refusals_are_out_of_memory,
           wrong_calls_give_no_trace, no_host_memory_means_no_trace);
  return run_pool_suite(suite);
}
