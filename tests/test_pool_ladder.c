// No room: what is tried before a request is refused, the program's function
// among it, and what is said then.
#include <stdio.h>

#include "pool/arena.h"
#include "support/faults.h"
#include "tarn/strategy.h"
#include "test_pool_arena_kit.h"

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

enum { QUARTER = 256 * KIB };

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
  assert_ok(tarn_stream_destroy(q->a));
  assert_ok(tarn_stream_destroy(q->b));
  close_arena(&q->at);
}

static const char *const cutters[] = {"arena_pool",
                                      "buddy_pool:init=1M,realloc=1M,max=1M"};

START_TEST(holes_of_streams_that_are_done_become_one) {
  quarters q = free_quarters(cutters[_i], false);
  size_t waits = fake_seen.waits;
  tarn_block half = take(q.at.pool, 2 * QUARTER);
  ck_assert_uint_eq(fake_seen.waits, waits);
  ck_assert_uint_eq(stats_of(q.at.pool).device_frees, 0);
  end_quarters(&q, half);
}
END_TEST

START_TEST(streams_that_are_at_work_are_waited_for) {
  quarters q = free_quarters(cutters[_i], true);
  size_t copies = fake_seen.copies;
  tarn_block half = take(q.at.pool, 2 * QUARTER);
  ck_assert_uint_eq(fake_seen.copies, copies + 2);
  end_quarters(&q, half);
}
END_TEST

// What would not do even as one piece is not waited for.
START_TEST(nobody_waits_in_vain) {
  quarters q = free_quarters(cutters[_i], true);
  size_t copies = fake_seen.copies;
  refuse_here(q.at.pool, 2 * QUARTER + 1);
  ck_assert_uint_eq(fake_seen.copies, copies);
  end_quarters(&q, take(q.at.pool, QUARTER));
}
END_TEST

// More streams than are remembered by name.
START_TEST(many_streams_are_waited_for) {
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
  for (int i = 0; i < STREAMS; i++)
    assert_ok(tarn_stream_destroy(streams[i]));
  close_arena(&at);
}
END_TEST

// --- strategies that were replaced -----------------------------------------

static bool lazy;

static tarn_status trim_lazily(void *self, const tarn_source *source) {
  return lazy ? TARN_OK : TarnPoolStrategy()->trim(self, source);
}

// It kept more than it had to; the present one needs it.
START_TEST(a_replaced_strategy_gives_back_what_it_kept) {
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
  assert_ok(tarn_pool_use(TARN_HOST, "page_unit_pool"));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 2 * PAGE);
  refuse_here(pool, 2 * PAGE);
  lazy = false;
  give(take(pool, 2 * PAGE));
  give(kept);
  ck_assert(tarn_list_empty(&pool->replaced));
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn_pool_trim(pool, 0));
}
END_TEST

// --- the program's function ------------------------------------------------

// What it does, and what it saw.
typedef struct listener {
  bool answer;
  size_t calls_with_no;   // after so many calls it answers no; 0: never
  tarn_block *frees;      // each time the next, until one has no pool
  size_t raises;          // the limit by so much
  size_t takes;           // a block of so many bytes, which must be refused
  tarn_status exchanged;  // what exchanging the function came to
  bool exchanges;
  size_t calls;
  tarn_pool *pool;
  tarn_pool_need need;  // of the last call
} listener;

static bool listen(tarn_pool *pool, const tarn_pool_need *need, void *context) {
  listener *l = context;
  l->calls++;
  l->pool = pool;
  l->need = *need;
  require(need->attempt == l->calls);
  if (l->frees != NULL && l->frees->pool != NULL) give(*l->frees++);
  if (l->raises != 0) {
    assert_ok(tarn_pool_limit(pool, need->limit_bytes + l->raises));
  }
  if (l->takes != 0) refuse_here(pool, l->takes);
  if (l->exchanges) l->exchanged = tarn_pool_on_full(pool, NULL, NULL);
  return l->answer && (l->calls_with_no == 0 || l->calls < l->calls_with_no);
}

static tarn_pool *full_pool(const char *strategy, size_t limit, listener *l) {
  tarn_pool *pool = host_pool(strategy);
  assert_ok(tarn_pool_limit(pool, limit));
  assert_ok(tarn_pool_on_full(pool, listen, l));
  return pool;
}

static void end_pool(tarn_pool *pool) {
  assert_ok(tarn_pool_on_full(pool, NULL, NULL));
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn_pool_trim(pool, 0));
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).reserved_bytes, 0);
}

static const char *const all_strategies[] = {
    "page_unit_pool", "arena_pool:page=64K", "buddy_pool:init=64K,realloc=64K",
    "no_pool", "async_pool"};

START_TEST(it_makes_room) {
  size_t unit = 64 * KIBIBYTE;
  tarn_block blocks[4] = {0};
  listener l = {.answer = true, .frees = blocks};
  tarn_pool *pool = full_pool(all_strategies[_i], 4 * unit, &l);
  for (int i = 0; i < 3; i++)
    blocks[i] = take(pool, unit - 1000);
  tarn_block block = take(pool, 3 * unit);
  ck_assert_uint_ge(l.calls, 2);
  ck_assert_uint_le(l.calls, 3);
  ck_assert_ptr_eq(l.pool, pool);
  ck_assert_uint_eq(stats_of(pool).failures, 0);
  give(block);
  while (l.frees->pool != NULL)
    give(*l.frees++);
  end_pool(pool);
}
END_TEST

START_TEST(it_is_told_what_is_needed) {
  listener l = {.answer = false};
  tarn_pool *pool = full_pool("page_unit_pool", 10 * PAGE, &l);
  tarn_tag tag = tag_of("weights");
  tarn_block kept = take(pool, 4 * PAGE - 100);
  tarn_block none;
  assert_status(tarn_pool_alloc_tagged(pool, 7 * PAGE, 256, NULL, tag, &none),
                TARN_FULL);
  ck_assert_uint_eq(l.calls, 1);
  ck_assert_uint_eq(l.need.struct_size, sizeof l.need);
  ck_assert_uint_eq(l.need.size, 7 * PAGE);
  ck_assert_uint_eq(l.need.align, 256);
  ck_assert_uint_eq(l.need.tag, tag);
  ck_assert_uint_eq(l.need.reserved_bytes, 4 * PAGE);
  ck_assert_uint_eq(l.need.live_bytes, 4 * PAGE - 100);
  ck_assert_uint_eq(l.need.limit_bytes, 10 * PAGE);
  ck_assert_uint_eq(l.need.idle_bytes, 0);
  ck_assert_uint_eq(l.need.largest_hole, 0);
  give(kept);
  end_pool(pool);
}
END_TEST

START_TEST(it_may_raise_the_limit_even_above_the_request) {
  listener l = {.answer = true, .raises = 2 * PAGE};
  tarn_pool *pool = full_pool("page_unit_pool", PAGE, &l);
  give(take(pool, 5 * PAGE));
  ck_assert_uint_eq(l.calls, 2);
  ck_assert_uint_eq(stats_of(pool).limit_bytes, 5 * PAGE);
  ck_assert_uint_eq(stats_of(pool).device_allocs, 1);
  end_pool(pool);
}
END_TEST

START_TEST(it_is_not_called_where_there_is_room) {
  listener l = {.answer = true};
  tarn_pool *pool = full_pool("page_unit_pool", 4 * PAGE, &l);
  give(take(pool, 3 * PAGE));
  give(take(pool, 4 * PAGE));  // after a trim
  tarn_block none;
  assert_status(tarn_pool_alloc(pool, 0, 0, NULL, &none), TARN_E_INVALID);
  ck_assert_uint_eq(l.calls, 0);
  end_pool(pool);
}
END_TEST

START_TEST(its_no_is_final) {
  listener l = {.answer = true, .calls_with_no = 3};
  tarn_pool *pool = full_pool("page_unit_pool", PAGE, &l);
  refuse_here(pool, 2 * PAGE);
  ck_assert_uint_eq(l.calls, 3);
  ck_assert_uint_eq(stats_of(pool).failures, 1);
  end_pool(pool);
}
END_TEST

START_TEST(it_is_not_called_for_ever) {
  listener l = {.answer = true};
  tarn_pool *pool = full_pool("page_unit_pool", PAGE, &l);
  refuse_here(pool, 2 * PAGE);
  ck_assert_uint_eq(l.calls, 16);
  assert_error_says("limit of 4096");
  end_pool(pool);
}
END_TEST

START_TEST(its_own_requests_go_without_it) {
  listener l = {.answer = false, .takes = 3 * PAGE};
  tarn_pool *pool = full_pool("page_unit_pool", PAGE, &l);
  refuse_here(pool, 2 * PAGE);
  assert_error_says("no room for 8192 bytes");
  ck_assert_uint_eq(l.calls, 1);
  ck_assert_uint_eq(stats_of(pool).failures, 2);
  end_pool(pool);
}
END_TEST

START_TEST(it_cannot_be_exchanged_from_within) {
  listener l = {.exchanges = true};
  tarn_pool *pool = full_pool("page_unit_pool", PAGE, &l);
  refuse_here(pool, 2 * PAGE);
  ck_assert_int_eq(l.exchanged, TARN_E_STATE);
  l.calls = 0;
  refuse_here(pool, 2 * PAGE);
  ck_assert_uint_eq(l.calls, 1);  // it is still there
  end_pool(pool);
  assert_ok(tarn_pool_limit(pool, PAGE));
  refuse_here(pool, 2 * PAGE);
  ck_assert_uint_eq(l.calls, 1);
  assert_status(tarn_pool_on_full(NULL, listen, &l), TARN_E_INVALID);
}
END_TEST

static bool switch_strategy(tarn_pool *pool, const tarn_pool_need *need,
                            void *context) {
  (void)need;
  (void)context;
  assert_ok(tarn_pool_use(tarn_pool_place(pool), "no_pool"));
  return true;
}

// Of a size that comes with a page more in one strategy only.
START_TEST(it_may_exchange_the_strategy) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_limit(pool, PAGE + 100));
  assert_ok(tarn_pool_on_full(pool, switch_strategy, NULL));
  tarn_block block = take(pool, PAGE + 1);
  ck_assert_str_eq(stats_of(pool).strategy, "no_pool");
  give(block);
  end_pool(pool);
}
END_TEST

// --- what is idle ----------------------------------------------------------

static tarn__survey survey_of(tarn_pool *pool) {
  tarn__survey found = {.idle = 0};
  pool->current->type->survey(pool->current, &found);
  return found;
}

START_TEST(surveys_say_what_is_idle) {
  arena_place at = open_arena("fake:0", "page_unit_pool");
  tarn_stream *a = stream_on(&at);
  tarn_block kept = take(at.pool, PAGE);
  give(take(at.pool, 3 * PAGE));
  give_on(take_on(at.pool, 2 * PAGE, a), a);
  ck_assert_uint_eq(survey_of(at.pool).idle, 5 * PAGE);
  ck_assert_uint_eq(survey_of(at.pool).largest, 3 * PAGE);
  give(kept);

  assert_ok(tarn_pool_use(at.place, "arena_pool"));
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

  assert_ok(tarn_pool_use(at.place, cutters[1]));
  kept = take(at.pool, QUARTER);
  hole = take_on(at.pool, QUARTER, a);
  give_on(hole, a);
  ck_assert_uint_eq(survey_of(at.pool).idle, 3 * QUARTER);
  ck_assert_uint_eq(survey_of(at.pool).largest, 2 * QUARTER);
  ck_assert_uint_eq(survey_of(at.pool).streams.count, 1);
  give(kept);

  assert_ok(tarn_pool_use(at.place, "no_pool"));
  give(take(at.pool, PAGE));
  ck_assert_uint_eq(survey_of(at.pool).idle, 0);
  assert_ok(tarn_stream_destroy(a));
  close_arena(&at);
}
END_TEST

// The largest is not the first that is looked at, and spare pages count.
START_TEST(a_survey_of_many_holes_on_ranges) {
  arena_place at = open_arena("sim:0", "arena_pool:page=2M,small=0");
  enum { BLOCKS = 40 };
  tarn_block blocks[BLOCKS];
  for (size_t i = 0; i < BLOCKS; i++)
    blocks[i] = take(at.pool, 300 * KIBIBYTE + (i * 7 % BLOCKS) * 512);
  for (int i = 0; i < BLOCKS; i += 2)
    give(blocks[i]);
  size_t taken = 0;
  size_t largest = 0;
  for (int z = 0; z < 2; z++) {
    const tarn__arena *self = (const tarn__arena *)(void *)at.pool->current;
    taken += self->zones[z].taken_bytes;
    for (const tarn__extent *e = self->zones[z].first; e != NULL;
         e = e->after) {
      bool larger = e->kind == TARN__EXTENT_OPEN && e->size > largest;
      if (larger) largest = e->size;
    }
  }
  tarn__survey found = survey_of(at.pool);
  ck_assert_uint_eq(found.idle, stats_of(at.pool).reserved_bytes - taken);
  ck_assert_uint_eq(found.largest, largest);
  for (int i = 1; i < BLOCKS; i += 2)
    give(blocks[i]);
  close_arena(&at);
}
END_TEST

// --- what is said ----------------------------------------------------------

START_TEST(the_text_says_all_of_it) {
  tarn_pool *pool = host_pool("page_unit_pool");
  assert_ok(tarn_pool_limit(pool, 10 * PAGE));
  tarn_block blocks[] = {
      take_tagged(pool, PAGE, tag_of("weights")),
      take_tagged(pool, PAGE, tag_of("weights")),
      take(pool, 100),
      take_tagged(pool, 3 * PAGE, tag_of("activations")),
      take_tagged(pool, 7, tag_of("others")),
  };
  tarn_block none;
  assert_status(tarn_pool_alloc_tagged(pool, 5 * PAGE, 65536, NULL,
                                       tag_of("gradients"), &none),
                TARN_FULL);
  ck_assert_str_eq(
      tarn_last_error(),
      "pool of host: no room for 20480 bytes aligned to 65536 for gradients: "
      "pool: 20480 bytes more would exceed the limit of 40960: 28672 are "
      "reserved, 20587 of them live; 28672 reserved, 20587 live, 0 idle, "
      "largest hole 0, 0% fragmented; most: 12288 bytes activations (1), 8192 "
      "bytes weights (2), 100 bytes untagged (1)");
  for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
    give(blocks[i]);
  assert_status(tarn_pool_alloc(pool, 11 * PAGE, 0, NULL, &none), TARN_FULL);
  ck_assert_str_eq(
      tarn_last_error(),
      "pool of host: no room for 45056 bytes: pool: 45056 bytes more would "
      "exceed the limit of 40960: 28672 are reserved, 0 of them live; 28672 "
      "reserved, 0 live, 28672 idle, largest hole 12288, 57% fragmented");
  assert_ok(tarn_pool_limit(pool, 0));
  assert_ok(tarn_pool_trim(pool, 0));
}
END_TEST

START_TEST(the_words_of_the_device_stay) {
  arena_place at = open_arena_of(MIB, "fake:0", "arena_pool");
  tarn_block kept = take(at.pool, QUARTER);
  refuse_here(at.pool, MIB);
  assert_error_says(
      "pool of fake:0: no room for 1048576 bytes: fake:0: out of "
      "memory: 1048576 bytes");
  assert_error_says(
      "1048576 reserved, 262144 live, 786432 idle, largest hole "
      "786432, 0% fragmented; most: 262144 bytes untagged (1)");
  give(kept);
  close_arena(&at);
}
END_TEST

START_TEST(long_names_cut_the_end_only) {
  char name[200];
  tarn_pool *pool = host_pool("page_unit_pool");
  tarn_block blocks[3];
  for (int i = 0; i < 3; i++) {
    memset(name, 'a' + i, sizeof name);
    name[sizeof name - 1] = '\0';
    blocks[i] = take_tagged(pool, (size_t)100 + (size_t)i, tag_of(name));
  }
  assert_ok(tarn_pool_limit(pool, 4 * PAGE));
  tarn_block none;
  assert_status(tarn_pool_alloc_tagged(pool, SIZE_MAX / 2 + 1, SIZE_MAX / 2 + 1,
                                       NULL, tag_of(name), &none),
                TARN_FULL);
  ck_assert_uint_le(strlen(tarn_last_error()), 511);
  assert_error_says("would exceed the limit of 16384: 12288 are reserved");
  assert_error_says("12288 reserved, 303 live, 0 idle, largest hole 0, 0%");
  assert_error_says("102 bytes cccccccccccccccccccccccccccccccccccccccc (1)");
  for (int i = 0; i < 3; i++)
    give(blocks[i]);
  assert_ok(tarn_pool_limit(pool, 0));
}
END_TEST

// --- strategies of programs ------------------------------------------------

static tarn_status refuse_silently(void *self, const tarn_source *source,
                                   const tarn_request *request,
                                   tarn_stretch *out) {
  (void)self;
  (void)source;
  (void)request;
  (void)out;
  return TARN_FULL;
}

START_TEST(a_strategy_that_cannot_say_is_unknown) {
  tarn_strategy strategy = *TarnPoolStrategy();
  strategy.name = "silent_pool";
  strategy.take = refuse_silently;
  assert_ok(tarn_pool_register(&strategy));
  listener l = {.answer = false};
  tarn_pool *pool = full_pool("silent_pool", 0, &l);
  assert_status(tarn_pool_trim(NULL, 0), TARN_E_INVALID);  // its text is old
  refuse_here(pool, 100);
  ck_assert_str_eq(tarn_last_error(),
                   "pool of host: no room for 100 bytes: silent_pool: has no "
                   "room; 0 reserved, 0 live, idle and largest hole unknown");
  ck_assert_uint_eq(l.need.idle_bytes, TARN_POOL_UNKNOWN);
  ck_assert_uint_eq(l.need.largest_hole, TARN_POOL_UNKNOWN);
  end_pool(pool);
}
END_TEST

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
  (void)!tarn_pool_use(f->at.place, "page_unit_pool");
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

START_TEST(nothing_is_lost_on_the_way_up) {
  char strategy[64];
  snprintf(strategy, sizeof strategy, "%s", cutters[_i]);
  faults_install();
  fake.capacity = MIB;
  fake_add();
  overfill(strategy);
  fake.strikes = true;
  ck_assert_uint_gt(faults_sweep(overfill, strategy), 500);
}
END_TEST

static void add_loop(TCase *tcase, const TTest *test, int end) {
  tcase_add_loop_test(tcase, test, 0, end);
}

int main(void) {
  Suite *suite = suite_create("pool: no room");
  TCase *loops = tcase_create("each strategy");
  tcase_set_timeout(loops, 240);
  add_loop(loops, holes_of_streams_that_are_done_become_one, 2);
  add_loop(loops, streams_that_are_at_work_are_waited_for, 2);
  add_loop(loops, nobody_waits_in_vain, 2);
  add_loop(loops, it_makes_room, 5);
  add_loop(loops, nothing_is_lost_on_the_way_up, 2);
  suite_add_tcase(suite, loops);
  ADD_CASE(suite, "rungs", many_streams_are_waited_for,
           a_replaced_strategy_gives_back_what_it_kept);
  ADD_CASE(suite, "the program's function", it_is_told_what_is_needed,
           it_may_raise_the_limit_even_above_the_request,
           it_is_not_called_where_there_is_room, its_no_is_final,
           it_is_not_called_for_ever, its_own_requests_go_without_it,
           it_cannot_be_exchanged_from_within, it_may_exchange_the_strategy);
  ADD_CASE(suite, "surveys", surveys_say_what_is_idle,
           a_survey_of_many_holes_on_ranges);
  ADD_CASE(suite, "texts", the_text_says_all_of_it,
           the_words_of_the_device_stay, long_names_cut_the_end_only,
           a_strategy_that_cannot_say_is_unknown);
  return run_pool_suite(suite);
}
