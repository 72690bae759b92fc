// Extents of a space, against a map of bytes that is kept beside them.
#include "pool/extents.h"

#include <stdlib.h>
#include <string.h>

#include "support/run.h"

enum {
  PAGES = 64,
  UNITS = PAGES * 16,  // granules
  BLOCKS = 256,
};

static const size_t GRANULE = 512;
static const size_t PAGE = 8192;
static const uint64_t BASE = UINT64_C(0x7f0000000000);

static tarn__pool_extents extents;

static void check(void) {
  size_t taken = 0;
  assert_ok(tarn__extents_check(&extents, &taken));
}

static void check_and_deinit(void *unused) {
  (void)unused;
  check();
  tarn__extents_deinit(&extents);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}

// A row of bare pages that begins at BASE.
static void begin(void) {
  assert_ok(tarn__extents_init(&extents, GRANULE, PAGE));
  require(tarn__extents_reserve(&extents, 0));
  tarn__extents_add(&extents, BASE, (size_t)PAGES * PAGE, TARN__EXTENT_BARE);
  after_test(check_and_deinit, &extents);
}

static size_t open_bytes(void) {
  size_t sum = 0;
  for (const tarn__pool_bins *b = extents.bins; b != NULL; b = b->next)
    sum += b->bytes;
  return sum;
}

static tarn__pool_extent *take_for(size_t size, size_t align, uint64_t serial) {
  uint64_t last = 0;
  require(tarn__extents_reserve(&extents, serial));
  return tarn__extents_take(&extents, size, align, serial, &last);
}

static tarn__pool_extent *take(size_t size) {
  return take_for(size, GRANULE, 0);
}

static tarn__pool_extent *give_of(tarn__pool_extent *e, uint64_t serial) {
  require(tarn__extents_reserve(&extents, serial));
  return tarn__extents_give(&extents, e, serial);
}

static tarn__pool_extent *give(tarn__pool_extent *e) {
  return give_of(e, 0);
}

// Takes a block for which memory is added.
static tarn__pool_extent *grow(size_t size, size_t align, uint64_t serial) {
  uint64_t last = 0;
  require(tarn__extents_reserve(&extents, serial));
  tarn__pool_extent_plan p = tarn__extents_plan(&extents, size, align, serial);
  if (p.bare == NULL) return NULL;
  tarn__pool_extent *e = tarn__extents_claim(&extents, &p, size, &last);
  return tarn__extents_keep(&extents, e, &p, size);
}

static tarn__pool_extent *strip(size_t most) {
  require(tarn__extents_reserve(&extents, 0));
  return tarn__extents_strip(&extents, most);
}

static tarn__pool_extent *strip_run(uint64_t *cursor, size_t most,
                                    tarn__pool_waits *waits) {
  require(tarn__extents_reserve(&extents, 0));
  return tarn__extents_strip_run(&extents, cursor, most, waits);
}

// So many pages from BASE on are open.
static void open_pages(size_t count) {
  give(grow(count * PAGE, GRANULE, 0));
  ck_assert_uint_eq(open_bytes(), count * PAGE);
}

// --- blocks ----------------------------------------------------------------

TEST(nothing_is_open_at_first) {
  begin();
  ck_assert_ptr_null(take(1));
  ck_assert_uint_eq(open_bytes(), 0);
  ck_assert_uint_eq(extents.bare_count, 1);
}

TEST(sizes_are_rounded_and_holes_are_cut) {
  begin();
  open_pages(1);
  tarn__pool_extent *a = take(1);
  tarn__pool_extent *b = take(GRANULE + 1);
  ck_assert_uint_eq(a->offset, BASE);
  ck_assert_uint_eq(a->size, GRANULE);
  ck_assert_uint_eq(b->offset, BASE + GRANULE);
  ck_assert_uint_eq(b->size, 2 * GRANULE);
  ck_assert_uint_eq(extents.taken_bytes, 3 * GRANULE);
  ck_assert_uint_eq(open_bytes(), PAGE - 3 * GRANULE);
}

TEST(an_alignment_leaves_a_hole_before) {
  begin();
  open_pages(2);
  (void)take(1);
  ck_assert_uint_eq(take_for(1, PAGE, 0)->offset, BASE + PAGE);
  ck_assert_uint_eq(take(PAGE - GRANULE)->offset, BASE + GRANULE);
}

TEST(what_is_given_back_is_one_hole) {
  begin();
  open_pages(1);
  tarn__pool_extent *a = take(PAGE / 4);
  tarn__pool_extent *b = take(PAGE / 4);
  tarn__pool_extent *c = take(PAGE / 2);
  ck_assert_ptr_null(take(1));
  give(a);
  give(c);
  ck_assert_ptr_null(take(PAGE / 2 + 1));
  tarn__pool_extent *whole = give(b);
  ck_assert_uint_eq(whole->offset, BASE);
  ck_assert_uint_eq(whole->size, PAGE);
  ck_assert_ptr_eq(take(PAGE), whole);
}

TEST(the_closest_fit_is_taken) {
  begin();
  open_pages(4);
  tarn__pool_extent *large = take(4 * GRANULE);
  (void)take(GRANULE);
  tarn__pool_extent *small = take(3 * GRANULE);
  (void)take(GRANULE);
  uint64_t offset = small->offset;
  give(large);
  give(small);
  ck_assert_uint_eq(take(3 * GRANULE)->offset, offset);
}

// More holes of one bin than are looked at, of which only the first one fits.
TEST(a_hole_that_the_first_look_misses_is_found) {
  enum { HOLES = 20, LEAST = 32 };  // 32 and 33 granules share a bin
  tarn__pool_extent *holes[HOLES];
  begin();
  open_pages(PAGES);
  for (int i = 0; i < HOLES; i++) {
    holes[i] = take((LEAST + (i == 0 ? 1u : 0u)) * (size_t)GRANULE);
    (void)take(GRANULE);
  }
  (void)take(open_bytes());
  uint64_t offset = holes[0]->offset;
  for (int i = 0; i < HOLES; i++)
    give(holes[i]);
  tarn__pool_extent *found = take((LEAST + 1) * (size_t)GRANULE);
  ck_assert_ptr_nonnull(found);
  ck_assert_uint_eq(found->offset, offset);
}

TEST(a_block_is_resized_in_place) {
  begin();
  open_pages(1);
  tarn__pool_extent *a = take(GRANULE);
  ck_assert(tarn__extents_resize(&extents, a, 3 * GRANULE, 0));
  ck_assert_uint_eq(a->size, 3 * GRANULE);
  ck_assert(tarn__extents_resize(&extents, a, PAGE, 0));
  ck_assert_uint_eq(open_bytes(), 0);
  ck_assert(!tarn__extents_resize(&extents, a, PAGE + 1, 0));
  ck_assert_uint_eq(a->size, PAGE);
  check();
  ck_assert(tarn__extents_resize(&extents, a, 1, 0));
  ck_assert_uint_eq(a->size, GRANULE);
  ck_assert_uint_eq(open_bytes(), PAGE - GRANULE);
}

TEST(what_is_outside_is_left_alone) {
  begin();
  open_pages(PAGES);
  require(tarn__extents_reserve(&extents, 0));
  tarn__pool_extent *all = take((size_t)PAGES * PAGE);
  ck_assert_uint_eq(all->size, (size_t)PAGES * PAGE);
  ck_assert(!tarn__extents_resize(&extents, all, all->size + 1, 0));
  all = give(all);
  require(tarn__extents_reserve(&extents, 0));
  tarn__extents_remove(&extents, all);
  ck_assert_ptr_null(take(1));
  ck_assert_ptr_null(grow(1, GRANULE, 0));
  tarn__extents_add(&extents, BASE, PAGE, TARN__EXTENT_OPEN);
  require(tarn__extents_reserve(&extents, 0));
  tarn__extents_add(&extents, BASE + PAGE, PAGE, TARN__EXTENT_OPEN);
  check();
  ck_assert_ptr_null(take(PAGE + 1));
  ck_assert_ptr_nonnull(take(PAGE));
}

// --- streams ---------------------------------------------------------------

TEST(holes_of_streams_stay_apart) {
  begin();
  open_pages(1);
  tarn__pool_extent *a = take(PAGE / 2);
  tarn__pool_extent *b = take(PAGE / 2);
  give_of(a, 7);
  give_of(b, 8);
  check();
  ck_assert_ptr_null(take_for(PAGE, GRANULE, 7));
  ck_assert_ptr_null(take_for(1, GRANULE, 9));
  uint64_t last = 0;
  tarn__pool_extent *own = tarn__extents_take(&extents, 1, GRANULE, 8, &last);
  ck_assert_uint_eq(own->offset, BASE + PAGE / 2);
  ck_assert_uint_eq(last, 8);
  tarn__pool_extent *any =
      tarn__extents_take_any(&extents, PAGE / 2, GRANULE, &last);
  ck_assert_uint_eq(any->offset, BASE);
  ck_assert_uint_eq(last, 7);
}

TEST(a_hole_that_no_stream_uses_joins_with_any) {
  begin();
  open_pages(1);
  tarn__pool_extent *a = take(PAGE / 2);
  give_of(a, 7);
  ck_assert_ptr_null(take_for(1, GRANULE, 0));
  ck_assert_ptr_nonnull(take_for(PAGE, GRANULE, 7));
}

TEST(what_a_stream_is_done_with_is_anybodys) {
  begin();
  open_pages(2);
  tarn__pool_extent *parts[4];
  for (int i = 0; i < 4; i++)
    parts[i] = take(PAGE / 2);
  give_of(parts[0], 7);
  give_of(parts[1], 8);
  give_of(parts[2], 7);
  give_of(parts[3], 8);
  tarn__extents_move(&extents, 7, 0);
  check();
  ck_assert_ptr_null(take_for(1, GRANULE, 7));
  tarn__extents_move(&extents, 8, 0);
  check();
  ck_assert_ptr_nonnull(take(2 * PAGE));
}

// --- memory that comes and goes --------------------------------------------

TEST(a_plan_uses_what_is_open_already) {
  begin();
  tarn__pool_extent *a = grow(3 * PAGE / 2, GRANULE, 0);
  ck_assert_uint_eq(a->offset, BASE);
  ck_assert_uint_eq(open_bytes(), PAGE / 2);
  // Half a page is left, so a page and a half need one page more.
  tarn__pool_extent_plan p =
      tarn__extents_plan(&extents, 3 * PAGE / 2, GRANULE, 0);
  ck_assert_uint_eq(p.offset, BASE + 3 * PAGE / 2);
  ck_assert_uint_eq(p.from, BASE + 2 * PAGE);
  ck_assert_uint_eq(p.to, BASE + 3 * PAGE);
  p = tarn__extents_plan(&extents, (size_t)PAGES * PAGE, GRANULE, 0);
  ck_assert_ptr_null(p.bare);
}

TEST(a_plan_leaves_the_holes_of_other_streams) {
  begin();
  open_pages(1);
  give_of(take(PAGE), 7);
  tarn__pool_extent_plan p = tarn__extents_plan(&extents, PAGE, GRANULE, 8);
  ck_assert_uint_eq(p.offset, BASE + PAGE);
  p = tarn__extents_plan(&extents, 2 * PAGE, GRANULE, 7);
  ck_assert_uint_eq(p.offset, BASE);
  ck_assert_uint_eq(p.to, BASE + 2 * PAGE);
}

// Bare pages between two holes: the block ends with the hole behind them where
// that needs less.
TEST(a_plan_ends_with_a_hole_if_that_is_less) {
  begin();
  open_pages(4);
  (void)take(PAGE);
  tarn__pool_extent *b = take(PAGE);
  tarn__pool_extent *c = take(2 * PAGE);
  give(b);
  tarn__pool_extent *page = strip(PAGE);
  ck_assert_uint_eq(page->offset, BASE + PAGE);
  ck_assert_uint_eq(page->size, PAGE);
  tarn__extents_end_strip(&extents, page, TARN__EXTENT_BARE);
  give(c);
  tarn__pool_extent_plan p = tarn__extents_plan(&extents, 3 * PAGE, GRANULE, 0);
  ck_assert_uint_eq(p.from, BASE + PAGE);
  ck_assert_uint_eq(p.to, BASE + 2 * PAGE);
}

TEST(a_claim_that_gets_no_memory_leaves_no_trace) {
  begin();
  open_pages(2);
  (void)take(PAGE);
  uint64_t last = 9;
  tarn__pool_extent_plan p =
      tarn__extents_plan(&extents, 3 * PAGE + 1, PAGE, 0);
  require(tarn__extents_reserve(&extents, 0));
  tarn__pool_extent *e = tarn__extents_claim(&extents, &p, 3 * PAGE + 1, &last);
  ck_assert_uint_eq(last, 0);
  ck_assert_uint_eq(open_bytes(), 0);
  ck_assert_ptr_null(take(1));
  check();
  tarn__extents_unclaim(&extents, e, &p, last, TARN__EXTENT_BARE);
  ck_assert_uint_eq(open_bytes(), PAGE);
  ck_assert_uint_eq(extents.taken_bytes, PAGE);
  ck_assert_uint_eq(extents.bare_count, 1);
}

TEST(only_whole_open_pages_are_stripped) {
  begin();
  open_pages(3);
  tarn__pool_extent *a = take(GRANULE);
  tarn__pool_extent *b = take(3 * PAGE - 2 * GRANULE);
  tarn__pool_extent *c = take(GRANULE);
  ck_assert_ptr_null(strip(PAGE));
  give(b);
  tarn__pool_extent *page = strip(5 * PAGE);
  ck_assert_uint_eq(page->offset, BASE + PAGE);
  ck_assert_uint_eq(page->size, PAGE);
  tarn__extents_end_strip(&extents, page, TARN__EXTENT_BARE);
  ck_assert_uint_eq(extents.bare_count, 2);
  ck_assert_ptr_null(strip(PAGE));
  give(a);
  give(c);
}

// Holes of two pages each: by rising address, and what was given last behind
// all others.
TEST(a_hand_goes_round_the_holes) {
  enum { HOLES = 4 };
  static const uint64_t order[] = {0, 1, 3, 4, 6, 7, 9, 10};
  tarn__pool_extent *blocks[2 * HOLES];
  begin();
  open_pages(3 * HOLES);
  for (int i = 0; i < 2 * HOLES; i++)
    blocks[i] = take(i % 2 == 0 ? 2 * PAGE : PAGE);
  for (int i = 0; i < 2 * HOLES; i += 2)
    give(blocks[i]);
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    tarn__pool_extent *page = strip(PAGE);
    ck_assert_ptr_nonnull(page);
    ck_assert_uint_eq(page->offset, BASE + order[i] * PAGE);
    tarn__extents_end_strip(&extents, page, TARN__EXTENT_BARE);
    check();
  }
  ck_assert_ptr_null(strip(PAGE));
}

// Behind more small blocks than the hand passes at a time.
TEST(rare_pages_are_found) {
  enum { SMALL = 600 };
  tarn__pool_extent *blocks[SMALL];
  begin();
  open_pages(PAGES);
  for (int i = 0; i < SMALL; i++)
    blocks[i] = take(GRANULE);
  for (int i = 0; i < SMALL; i += 2)
    give(blocks[i]);
  tarn__pool_extent *pages = strip(2 * PAGE);
  ck_assert_uint_eq(pages->size, 2 * PAGE);
  ck_assert_uint_ge(pages->offset, BASE + SMALL * GRANULE);
  give(pages);
}

// Two streams share the second page; a run is both of theirs.
TEST(a_run_is_stripped_whoever_has_its_holes) {
  begin();
  open_pages(3);
  (void)take(GRANULE);
  tarn__pool_extent *a = take(PAGE + GRANULE);
  tarn__pool_extent *b = take(2 * PAGE - 2 * GRANULE);
  give_of(a, 7);
  tarn__pool_extent *hole = give_of(b, 8);
  tarn__pool_extent_run run = tarn__extents_run(hole);
  ck_assert_uint_eq(run.first->offset, BASE + GRANULE);
  ck_assert_uint_eq(tarn__extent_end(run.last), BASE + 3 * PAGE);
  tarn__pool_waits waits;
  uint64_t cursor = 0;
  tarn__pool_extent *e = strip_run(&cursor, PAGE, &waits);
  ck_assert_uint_eq(e->offset, BASE + PAGE);
  ck_assert_uint_eq(e->size, PAGE);
  ck_assert_uint_eq(cursor, BASE + 2 * PAGE);
  ck_assert_uint_eq(waits.count, 2);
  tarn__extents_end_strip(&extents, e, TARN__EXTENT_LOST);
  check();
  // Behind the cursor there is one more, of one stream only.
  e = strip_run(&cursor, 5 * PAGE, &waits);
  ck_assert_uint_eq(e->offset, BASE + 2 * PAGE);
  ck_assert_uint_eq(waits.count, 1);
  ck_assert_uint_eq(waits.serials[0], 8);
  tarn__extents_end_strip(&extents, e, TARN__EXTENT_BARE);
  ck_assert_ptr_null(strip_run(&cursor, PAGE, &waits));
  ck_assert_uint_eq(cursor, UINT64_MAX);
  // A lost extent is in no plan.
  tarn__pool_extent_plan p = tarn__extents_plan(&extents, PAGE, PAGE, 0);
  ck_assert_uint_ge(p.from, BASE + 2 * PAGE);
}

TEST(the_space_has_an_end) {
  ck_assert(tarn__extents_reach(0, UINT64_C(1) << 62));
  ck_assert(!tarn__extents_reach(GRANULE, UINT64_C(1) << 62));
  ck_assert(!tarn__extents_reach(UINT64_MAX - GRANULE, 2 * GRANULE));
  ck_assert(!tarn__extents_reach(0, UINT64_MAX));
}

// --- at random -------------------------------------------------------------

enum { STREAMS = 3 };  // serials 0 to 2; 0: none

typedef struct model {
  tarn__pool_extent *blocks[BLOCKS];
  uint64_t streams[BLOCKS];
  size_t count;
  uint64_t most_streams;
  bool backed[PAGES];
  bool taken[UNITS];
  uint64_t used_by[UNITS];  // who may still be at work there
} model;

static size_t unit_of(uint64_t offset) {
  return (size_t)(offset - BASE) / GRANULE;
}

static void mark(model *m, const tarn__pool_extent *e, bool taken) {
  for (size_t u = unit_of(e->offset); u < unit_of(e->offset + e->size); u++) {
    require(m->taken[u] != taken);
    require(m->backed[u * GRANULE / PAGE]);
    m->taken[u] = taken;
  }
}

static void mark_user(model *m, const tarn__pool_extent *e, uint64_t serial) {
  for (size_t u = unit_of(e->offset); u < unit_of(e->offset + e->size); u++)
    m->used_by[u] = serial;
}

// Only the streams |serial| and |last| may be at work in a block.
static void require_ordered(const model *m, const tarn__pool_extent *e,
                            uint64_t serial, uint64_t last) {
  for (size_t u = unit_of(e->offset); u < unit_of(e->offset + e->size); u++) {
    uint64_t user = m->used_by[u];
    require(user == 0 || user == serial || user == last);
  }
}

// Whether there is a hole that would do, where all holes are of no stream.
static bool has_room(const model *m, size_t size, size_t align) {
  size_t units = (size + GRANULE - 1) / GRANULE;
  for (size_t at = 0; at < UNITS; at += align / GRANULE) {
    size_t run = 0;
    while (run < units && at + run < UNITS && !m->taken[at + run] &&
           m->backed[(at + run) * GRANULE / PAGE]) {
      run++;
    }
    if (run == units) return true;
  }
  return false;
}

static void back_pages(model *m, const tarn__pool_extent_plan *p, bool backed) {
  require(p->from < p->to && p->from % PAGE == 0 && p->to % PAGE == 0);
  for (uint64_t at = p->from; at < p->to; at += PAGE) {
    require(m->backed[unit_of(at) * GRANULE / PAGE] != backed);
    m->backed[unit_of(at) * GRANULE / PAGE] = backed;
  }
}

static tarn__pool_extent *grow_model(model *m, size_t size, size_t align,
                                     uint64_t serial, uint64_t *last) {
  require(tarn__extents_reserve(&extents, serial));
  tarn__pool_extent_plan p = tarn__extents_plan(&extents, size, align, serial);
  if (p.bare == NULL) return NULL;
  tarn__pool_extent *e = tarn__extents_claim(&extents, &p, size, last);
  if (rand() % 4 == 0) {
    tarn__extents_unclaim(&extents, e, &p, *last, TARN__EXTENT_BARE);
    return NULL;
  }
  back_pages(m, &p, true);
  for (uint64_t at = p.from; at < p.to; at += GRANULE)
    m->used_by[unit_of(at)] = 0;
  return tarn__extents_keep(&extents, e, &p, size);
}

static void try_take(model *m, size_t size, size_t align) {
  uint64_t serial = (uint64_t)rand() % m->most_streams;
  uint64_t last = 0;
  if (m->count == BLOCKS) return;
  require(tarn__extents_reserve(&extents, serial));
  bool room = has_room(m, size, align);
  tarn__pool_extent *e =
      tarn__extents_take(&extents, size, align, serial, &last);
  require(m->most_streams > 1 || (e != NULL) == room);
  if (e == NULL && rand() % 2) {
    e = tarn__extents_take_any(&extents, size, align, &last);
  }
  if (e == NULL) e = grow_model(m, size, align, serial, &last);
  if (e == NULL) return;
  require(e->offset % align == 0 && e->size >= size);
  require_ordered(m, e, serial, last);
  mark(m, e, true);
  m->streams[m->count] = serial;
  m->blocks[m->count++] = e;
}

static void give_any(model *m) {
  if (m->count == 0) return;
  size_t at = (size_t)rand() % m->count;
  uint64_t serial = m->streams[at];
  mark(m, m->blocks[at], false);
  mark_user(m, m->blocks[at], serial);
  give_of(m->blocks[at], serial);
  m->count--;
  m->blocks[at] = m->blocks[m->count];
  m->streams[at] = m->streams[m->count];
}

static void resize_any(model *m, size_t size) {
  if (m->count == 0) return;
  size_t at = (size_t)rand() % m->count;
  tarn__pool_extent *e = m->blocks[at];
  require(tarn__extents_reserve(&extents, m->streams[at]));
  mark(m, e, false);
  mark_user(m, e, m->streams[at]);
  bool done = tarn__extents_resize(&extents, e, size, m->streams[at]);
  require(!done || e->size >= size);
  require_ordered(m, e, m->streams[at], 0);
  mark(m, e, true);
}

// Each stream that may be at work in |e| is waited for.
static void require_waited(const model *m, const tarn__pool_extent *e,
                           const tarn__pool_waits *waits) {
  if (waits->count > TARN__WAITS) return;
  for (size_t u = unit_of(e->offset); u < unit_of(e->offset + e->size); u++) {
    bool found = m->used_by[u] == 0;
    for (size_t i = 0; i < waits->count; i++)
      found = found || waits->serials[i] == m->used_by[u];
    require(found);
  }
}

static void strip_some(model *m) {
  size_t most = PAGE * (1 + (size_t)rand() % 3);
  uint64_t cursor = PAGE * ((uint64_t)rand() % 3);
  uint64_t behind = cursor;
  bool of_any = rand() % 2 != 0;
  tarn__pool_waits waits = {.count = 0};
  tarn__pool_extent *e =
      of_any ? strip_run(&cursor, most, &waits) : strip(most);
  if (e == NULL) return;
  require(e->size <= most && e->size % PAGE == 0);
  require(!of_any || (e->offset >= behind && e->offset + e->size == cursor));
  require_waited(m, e, &waits);
  mark_user(m, e, 0);
  mark(m, e, true);
  mark(m, e, false);
  tarn__pool_extent_plan p = {.from = e->offset, .to = e->offset + e->size};
  back_pages(m, &p, false);
  tarn__extents_end_strip(&extents, e, TARN__EXTENT_BARE);
}

static void finish_stream(model *m) {
  uint64_t serial = (uint64_t)rand() % m->most_streams;
  tarn__extents_move(&extents, serial, 0);
  for (size_t u = 0; u < UNITS; u++) {
    if (m->used_by[u] == serial) m->used_by[u] = 0;
  }
}

static void step(model *m) {
  size_t size = 1 + (size_t)rand() % (rand() % 4 ? 4 * GRANULE : 4 * PAGE);
  size_t align = (size_t)GRANULE << (rand() % 4 ? 0 : rand() % 6);
  int what = rand() % 32;
  if (what < 14) try_take(m, size, align);
  if (what >= 14 && what < 26) give_any(m);
  if (what >= 26 && what < 29) resize_any(m, size);
  if (what >= 29 && what < 31) strip_some(m);
  if (what == 31 && rand() % 4 == 0) finish_stream(m);
}

TEST_LOOP(at_random_with_one_stream_or_several, 8) {
  model m = {.most_streams = _i % 2 == 0 ? 1 : STREAMS};
  srand(1 + (unsigned)_i / 2);
  begin();
  for (int i = 0; i < 20000; i++) {
    step(&m);
    if (i % 64 == 0) check();
  }
  while (m.count > 0)
    give_any(&m);
  ck_assert_uint_eq(extents.taken_bytes, 0);
}
