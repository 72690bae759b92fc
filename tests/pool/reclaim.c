// No room: what is tried before a request is refused, what strategies say of
// what is idle, and faults on the way up.
#include <stdio.h>

#include "arena_kit.h"
#include "pool/arena.h"
#include "support/faults.h"
#include "support/strategy.h"
#include "tarn/strategy.h"

static const size_t PAGE = 4096;

static void refuse_here(tarn_pool *pool, size_t size) {
  refuse(pool, size, 0, TARN_FULL);
}

static void queue_copy(tarn_block block, tarn_device *device,
                       tarn_stream *stream) {
  static const char text[64] = "at work";
  assert_ok(tarn_copy_h2d(device, block.address, text, sizeof text, stream));
}

// --- holes of several streams ----------------------------------------------

static const size_t QUARTER = (size_t)256 * KIB;

// A device that is all one chunk: two quarters of it stay, two are freed, each
// on a stream of its own, with work on it if |busy|.
typedef struct quarters {
  arena_place at;
  tarn_stream *a;
  tarn_stream *b;
  tarn_block kept[2];
} quarters;

static quarters free_quarters(const char *strategy, bool busy) {
  quarters q = {.at = open_arena_of(MIB, "fake:0", strategy)};
  tarn_block freed[2];
  q.a = stream_on(&q.at);
  q.b = stream_on(&q.at);
  q.kept[0] = take(q.at.pool, QUARTER);
  q.kept[1] = take(q.at.pool, QUARTER);
  freed[0] = take_on(q.at.pool, QUARTER, q.a);
  freed[1] = take_on(q.at.pool, QUARTER, q.b);
  if (busy) queue_copy(freed[0], q.at.device, q.a);
  if (busy) queue_copy(freed[1], q.at.device, q.b);
  give_on(freed[0], q.a);
  give_on(freed[1], q.b);
  ck_assert_uint_eq(stats_of(q.at.pool).reserved_bytes, MIB);
  return q;
}

static void end_quarters(quarters *q, tarn_block half) {
  give(half);
  give(q->kept[0]);
  give(q->kept[1]);
}

static const char *const cutters[] = {"arena_pool",
                                      "buddy_pool:init=1M,realloc=1M,max=1M"};

TEST_LOOP(holes_of_streams_that_are_done_become_one, 2) {
  quarters q = free_quarters(cutters[_i], false);
  size_t waits = fake_seen.waits;
  tarn_block half = take(q.at.pool, 2 * QUARTER);
  ck_assert_uint_eq(fake_seen.waits, waits);
  ck_assert_uint_eq(stats_of(q.at.pool).device_frees, 0);
  end_quarters(&q, half);
}

TEST_LOOP(streams_that_are_at_work_are_waited_for, 2) {
  quarters q = free_quarters(cutters[_i], true);
  size_t copies = fake_seen.copies;
  tarn_block half = take(q.at.pool, 2 * QUARTER);
  ck_assert_uint_eq(fake_seen.copies, copies + 2);
  end_quarters(&q, half);
}

// What would not do even as one piece is not waited for.
TEST_LOOP(nobody_waits_in_vain, 2) {
  quarters q = free_quarters(cutters[_i], true);
  size_t copies = fake_seen.copies;
  refuse_here(q.at.pool, 2 * QUARTER + 1);
  ck_assert_uint_eq(fake_seen.copies, copies);
  end_quarters(&q, take(q.at.pool, QUARTER));
}

// More streams than are remembered by name.
TEST(many_streams_are_waited_for) {
  enum { STREAMS = 7 };
  arena_place at = open_arena_of(MIB, "fake:0", "arena_pool");
  tarn_stream *streams[STREAMS];
  tarn_block blocks[STREAMS];
  size_t part = 128 * KIBIBYTE;
  tarn_block kept = take(at.pool, part);
  for (int i = 0; i < STREAMS; i++) {
    streams[i] = stream_on(&at);
    blocks[i] = take_on(at.pool, part, streams[i]);
    queue_copy(blocks[i], at.device, streams[i]);
  }
  for (int i = 0; i < STREAMS; i++)
    give_on(blocks[i], streams[i]);
  tarn_block all = take(at.pool, STREAMS * part);
  give(all);
  give(kept);
}

// --- strategies that were replaced -----------------------------------------

static bool lazy;

static tarn_status trim_lazily(void *self, const tarn_source *source) {
  return lazy ? TARN_OK : TarnPoolStrategy()->trim(self, source);
}

// It kept more than it had to; the present one needs it.
TEST(a_replaced_strategy_gives_back_what_it_kept) {
  tarn_strategy strategy = *TarnPoolStrategy();
  strategy.name = "lazy_pool";
  strategy.trim = trim_lazily;
  assert_ok(tarn_pool_register(&strategy));
  tarn_pool *pool = host_pool("lazy_pool");
  assert_ok(tarn_pool_limit(pool, 3 * PAGE));
  tarn_block kept = take(pool, PAGE);
  tarn_block idle = take(pool, PAGE);
  lazy = true;
  give(idle);
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 2 * PAGE);
  refuse_here(pool, 2 * PAGE);
  lazy = false;
  give(take(pool, 2 * PAGE));
  give(kept);
  ck_assert(tarn_list_empty(&pool->replaced));
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn_pool_trim(pool, 0));
}

// --- what is idle ----------------------------------------------------------

static tarn__pool_survey survey_of(tarn_pool *pool) {
  tarn__pool_survey found = {.idle = 0};
  pool->current->type->survey(pool->current, &found);
  return found;
}

TEST(surveys_say_what_is_idle) {
  arena_place at = open_arena("fake:0", "page_unit_pool");
  tarn_stream *a = stream_on(&at);
  tarn_block kept = take(at.pool, PAGE);
  give(take(at.pool, 3 * PAGE));
  give_on(take_on(at.pool, 2 * PAGE, a), a);
  ck_assert_uint_eq(survey_of(at.pool).idle, 5 * PAGE);
  ck_assert_uint_eq(survey_of(at.pool).largest, 3 * PAGE);
  give(kept);

  assert_ok(use_strategy(at.place, "arena_pool"));
  kept = take(at.pool, QUARTER);
  tarn_block hole = take_on(at.pool, QUARTER, a);
  tarn_block wall = take(at.pool, QUARTER);
  give_on(hole, a);
  ck_assert_uint_eq(survey_of(at.pool).idle, 2 * QUARTER);
  ck_assert_uint_eq(survey_of(at.pool).largest, QUARTER);
  ck_assert_uint_eq(survey_of(at.pool).streams.count, 1);
  ck_assert_uint_eq(survey_of(at.pool).streams.serials[0],
                    tarn_stream_serial(a));
  give(kept);
  give(wall);
  ck_assert_uint_eq(survey_of(at.pool).idle, 4 * QUARTER);

  assert_ok(use_strategy(at.place, cutters[1]));
  kept = take(at.pool, QUARTER);
  hole = take_on(at.pool, QUARTER, a);
  give_on(hole, a);
  ck_assert_uint_eq(survey_of(at.pool).idle, 3 * QUARTER);
  ck_assert_uint_eq(survey_of(at.pool).largest, 2 * QUARTER);
  ck_assert_uint_eq(survey_of(at.pool).streams.count, 1);
  give(kept);

  assert_ok(use_strategy(at.place, "no_pool"));
  give(take(at.pool, PAGE));
  ck_assert_uint_eq(survey_of(at.pool).idle, 0);
}

// The largest is not the first that is looked at, and spare pages count.
TEST_LOOP(a_survey_of_many_holes_on_ranges, TEST_DEVICES) {
  arena_place at =
      open_arena_with(_i, TEST_NEEDS_RANGES, "arena_pool:page=2M,small=0");
  if (at.pool == NULL) return;
  enum { BLOCKS = 40 };
  tarn_block blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++)
    blocks[i] = take(at.pool, 300 * KIBIBYTE + (i * 7 % BLOCKS) * 512);
  for (int i = 0; i < BLOCKS; i += 2)
    give(blocks[i]);
  size_t taken = 0;
  size_t largest = 0;
  for (int z = 0; z < 2; z++) {
    const tarn__pool_arena *self =
        (const tarn__pool_arena *)(void *)at.pool->current;
    taken += self->zones[z].taken_bytes;
    for (const tarn__pool_extent *e = self->zones[z].first; e != NULL;
         e = e->after) {
      bool larger = e->kind == TARN__EXTENT_OPEN && e->size > largest;
      if (larger) largest = e->size;
    }
  }
  tarn__pool_survey found = survey_of(at.pool);
  ck_assert_uint_eq(found.idle, stats_of(at.pool).reserved_bytes - taken);
  ck_assert_uint_eq(found.largest, largest);
  for (int i = 1; i < BLOCKS; i += 2)
    give(blocks[i]);
}

TEST(the_words_of_the_device_stay) {
  fake.boasts = true;
  arena_place at = open_arena_of(MIB, "fake:0", "arena_pool");
  tarn_block kept = take(at.pool, QUARTER);
  refuse_here(at.pool, MIB);
  assert_error_says(
      "pool of fake:0: no room for 1.00 MiB: fake:0: out of memory: 1048576 "
      "bytes were refused; that much is reserved, 256.00 KiB (262144 bytes) "
      "live, 768.00 KiB (786432 bytes) idle in one hole; most: untagged (1)");
  give(kept);
}

// --- faults ----------------------------------------------------------------

typedef struct faulty {
  arena_place at;
  tarn_stream *streams[2];
  tarn_block blocks[6];
  size_t count;
} faulty;

static bool free_one(tarn_pool *pool, const tarn_pool_need *need,
                     void *context) {
  faulty *f = context;
  (void)need;
  require(tarn__front_check(pool) == TARN_OK);
  if (f->count == 0) return false;
  tarn_status status = tarn_pool_free(&f->blocks[--f->count], NULL);
  require(status <= TARN_OK && status != TARN_E_INVALID);
  return true;
}

static void try_take(faulty *f, size_t size, tarn_stream *stream) {
  tarn_block block;
  tarn_status status = tarn_pool_alloc(f->at.pool, size, 0, stream, &block);
  if (status == TARN_OK) {
    f->blocks[f->count++] = block;
  } else {
    ck_assert_str_ne(tarn_last_error(), "");
  }
  assert_ok(tarn__front_check(f->at.pool));
}

static void free_all(faulty *f) {
  while (f->count > 0) {
    f->count--;
    (void)tarn_pool_free(&f->blocks[f->count], f->streams[f->count % 2]);
  }
  assert_ok(tarn__front_check(f->at.pool));
}

static void fill_and_overfill(faulty *f) {
  for (size_t i = 0; i < 4; i++)
    try_take(f, QUARTER - 1000 * i, f->streams[i % 2]);
  free_all(f);
  try_take(f, QUARTER, NULL);
  try_take(f, 3 * QUARTER, f->streams[0]);
  (void)!tarn_pool_on_full(f->at.pool, free_one, f);
  try_take(f, 4 * QUARTER, NULL);
  (void)!use_strategy(f->at.place, "page_unit_pool");
  try_take(f, QUARTER, f->streams[1]);
  try_take(f, 4 * QUARTER, f->streams[1]);
  free_all(f);
}

static void overfill(void *strategy) {
  faulty f = {.count = 0};
  setenv("TARN_POOL", strategy, 1);
  if (tarn_device_open("fake:0", &f.at.device) != TARN_OK) return;
  f.at.place = tarn_place_on(f.at.device);
  for (int i = 0; i < 2; i++)
    (void)!tarn_stream_create(f.at.device, &f.streams[i]);
  if (tarn_pool_of(f.at.place, &f.at.pool) == TARN_OK) fill_and_overfill(&f);
  for (int i = 0; i < 2; i++)
    (void)tarn_stream_destroy(f.streams[i]);
  ck_assert_int_ne(tarn_device_close(f.at.device), TARN_E_STATE);
  ck_assert_uint_eq(fake_seen.live_blocks, 0);
  ck_assert_uint_eq(fake_seen.streams, 0);
  ck_assert_uint_eq(fake_seen.wrong_size, 0);
}

TEST_LOOP(nothing_is_lost_on_the_way_up, 2) {
  char strategy[64];
  snprintf(strategy, sizeof strategy, "%s", cutters[_i]);
  faults_install();
  fake.capacity = MIB;
  fake_add();
  overfill(strategy);
  fake.strikes = true;
  ck_assert_uint_gt(faults_sweep(overfill, strategy), 500);
}
