// The sieve: keys in sets, replacement against a plain SIEVE, and rows that are
// read, changed, written and dropped against an array.
#include "cache/sieve.h"

#include <string.h>

#include "cache/sieve_shard.h"
#include "support/effort.h"
#include "support/faults.h"
#include "support/run.h"
#include "support/threads.h"

static uint64_t seed = 88172645463325252u;

static uint64_t random_below(uint64_t bound) {
  return (next_random(&seed) << 31 | next_random(&seed)) % bound;
}

static tarn__cache_sieve *make(uint64_t keys, size_t lines, size_t shards) {
  tarn__cache_sieve *sieve = NULL;
  tarn__cache_sieve_options options = {keys, lines, shards};
  assert_ok(tarn__sieve_create(&options, &sieve));
  return sieve;
}

static void end(tarn__cache_sieve *sieve) {
  const char *wrong = tarn__sieve_check(sieve);
  ck_assert_msg(wrong == NULL, "%s", wrong);
  tarn__sieve_destroy(sieve);
}

// --- keys ------------------------------------------------------------------

static void try_keys(uint64_t count, uint64_t sets) {
  tarn__cache_sieve_keys keys;
  require(tarn__sieve_keys_init(&keys, count, sets));
  for (int i = 0; i < 2000; i++) {
    uint32_t word = 0;
    uint64_t key = i < 2 ? (count - 1) * (uint64_t)i : random_below(count);
    uint32_t set = tarn__sieve_place(&keys, key, &word);
    require(set < sets);
    require((word & TARN__SIEVE_MARKS) == 0);
    require((word | TARN__SIEVE_MARKS) != TARN__SIEVE_NO_KEY);
    require(tarn__sieve_key_at(&keys, set, word) == key);
    require(tarn__sieve_key_at(&keys, set, word | TARN__SIEVE_MARKS) == key);
  }
}

TEST(a_set_and_a_tag_make_up_the_key) {
  static const uint64_t sets[] = {1, 2, 3, 5, 63, 64, 65, 1000, 1u << 27};
  for (size_t i = 0; i < sizeof sets / sizeof *sets; i++)
    for (unsigned bits = 0; bits <= 35; bits++)
      if (bits < 24 || sets[i] << 24 >> bits != 0) {
        try_keys(UINT64_C(1) << bits, sets[i]);
        try_keys((UINT64_C(1) << bits) + 1, sets[i]);
      }
}

TEST(no_two_keys_of_a_set_have_one_tag) {
  enum { KEYS = 5000, SETS = 37 };
  static uint32_t words[SETS][KEYS];
  static size_t counts[SETS];
  tarn__cache_sieve_keys keys;
  require(tarn__sieve_keys_init(&keys, KEYS, SETS));
  for (uint64_t key = 0; key < KEYS; key++) {
    uint32_t word = 0;
    uint32_t set = tarn__sieve_place(&keys, key, &word);
    for (size_t i = 0; i < counts[set]; i++)
      require(words[set][i] != word);
    words[set][counts[set]++] = word;
  }
  for (size_t i = 0; i < SETS; i++)  // 135 on average
    ck_assert(counts[i] > 80 && counts[i] < 200);
}

TEST(wrong_options_are_refused) {
  static const struct {
    tarn__cache_sieve_options options;
    tarn_status status;
    const char *says;
  } cases[] = {
      {{0, 16, 0}, TARN_E_INVALID, "without rows"},
      {{9, 0, 0}, TARN_E_INVALID, "0 lines"},
      {{9, 17, 0}, TARN_E_INVALID, "17 lines"},
      {{9, (size_t)1 << 31, 0}, TARN_E_INVALID, "2147483648 lines"},
      {{9, 16, 3}, TARN_E_INVALID, "3 shards"},
      {{9, 16, 512}, TARN_E_INVALID, "512 shards"},
      {{UINT64_C(1) << 30, 16, 0}, TARN_E_UNSUPPORTED, "16 lines"},
      {{UINT64_MAX, 1600, 0}, TARN_E_UNSUPPORTED, "1600 lines"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    tarn__cache_sieve *sieve = (tarn__cache_sieve *)&seed;
    assert_fails(tarn__sieve_create(&cases[i].options, &sieve), cases[i].status,
                 cases[i].says);
    ck_assert_ptr_null(sieve);
  }
  tarn__sieve_destroy(NULL);
}

// --- memory ----------------------------------------------------------------

static void create_once(void *options) {
  tarn__cache_sieve *sieve = NULL;
  tarn_status status = tarn__sieve_create(options, &sieve);
  ck_assert(status == TARN_OK || status == TARN_E_NOMEM);
  ck_assert_int_eq(status == TARN_OK, sieve != NULL);
  tarn__sieve_destroy(sieve);
}

TEST(its_memory_is_known_before) {
  tarn__cache_sieve_options options = {.keys = 100000, .lines = 16000};
  faults_install();
  faults_peak_reset();
  ck_assert_uint_eq(faults_sweep(create_once, &options), 2);
  ck_assert_uint_eq(faults_peak(), tarn__sieve_bytes(&options));
  ck_assert_uint_lt(faults_peak(), 10 * options.lines);
}

TEST(as_many_lines_as_fit) {
  static const size_t budgets[] = {0, 4000, 100000, 12345678, SIZE_MAX};
  static const size_t sizes[] = {0, 1, 256, 4096};
  for (size_t i = 0; i < sizeof budgets / sizeof *budgets; i++) {
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
      size_t lines = tarn__sieve_fit(budgets[i], sizes[k], 0);
      tarn__cache_sieve_options fits = {.keys = 1, .lines = lines};
      tarn__cache_sieve_options more = {.keys = 1, .lines = lines + 16};
      ck_assert_uint_eq(lines % 16, 0);
      ck_assert_uint_le(lines, INT32_MAX);
      ck_assert(lines == 0 ||
                tarn__sieve_bytes(&fits) + lines * sizes[k] <= budgets[i]);
      ck_assert(lines + 16 > INT32_MAX ||
                tarn__sieve_bytes(&more) + more.lines * sizes[k] > budgets[i]);
    }
  }
}

// --- a plain SIEVE ---------------------------------------------------------

enum { KEYS = 400, LINES = 64, SETS = LINES / 16 };

// From the oldest to the newest.
typedef struct plain {
  uint64_t keys[16];
  bool visited[16];
  size_t count;
  size_t hand;
} plain;

static plain plain_sets[SETS];
static tarn__cache_sieve_batch batch;

static plain *plain_of(const tarn__cache_sieve *sieve, uint64_t key) {
  uint32_t word = 0;
  return &plain_sets[tarn__sieve_place(&sieve->keys, key, &word)];
}

static void plain_remove(plain *p, size_t at) {
  p->count--;
  for (size_t i = at; i < p->count; i++) {
    p->keys[i] = p->keys[i + 1];
    p->visited[i] = p->visited[i + 1];
  }
  if (p->hand > at) p->hand--;
}

static void plain_evict(plain *p) {
  for (; p->visited[p->hand]; p->hand = (p->hand + 1) % 16)
    p->visited[p->hand] = false;
  bool newest = p->hand == 15;
  plain_remove(p, p->hand);
  if (newest) p->hand = 0;
}

static size_t plain_at(const plain *p, uint64_t key) {
  size_t i = 0;
  while (i < p->count && p->keys[i] != key)
    i++;
  return i;
}

// Whether |key| was there.
static bool plain_find(plain *p, uint64_t key) {
  size_t at = plain_at(p, key);
  if (at < p->count) return p->visited[at] = true;
  if (p->count == 16) plain_evict(p);
  p->keys[p->count] = key;
  p->visited[p->count++] = false;
  return false;
}

static bool reads(tarn__cache_sieve *sieve, uint64_t key) {
  batch.count = 1;
  batch.keys[0] = key;
  tarn__sieve_read_end(sieve, tarn__sieve_read(sieve, &batch));
  require(batch.tally[TARN__SIEVE_THERE] == (batch.lines[0] != UINT32_MAX));
  require(batch.tally[TARN__SIEVE_ABSENT] == (batch.lines[0] == UINT32_MAX));
  return batch.lines[0] != UINT32_MAX;
}

// Half of the keys that are there are found by a read.
static bool finds(tarn__cache_sieve *sieve, uint64_t key) {
  if (random_below(2) == 0 && reads(sieve, key)) return true;
  batch.count = 1;
  batch.keys[0] = key;
  tarn__sieve_find(sieve, &batch, TARN__SIEVE_MAKE_ROOM);
  bool there = batch.found[0] == TARN__SIEVE_THERE;
  require(there || batch.found[0] == TARN__SIEVE_TO_FILL);
  if (!there) tarn__sieve_filled(sieve, batch.lines, 1, true);
  tarn__sieve_leave(sieve, &batch, false);
  return there;
}

// Keys are skewed, so that some are often there.
static uint64_t some_key(void) {
  return random_below(1 + random_below(KEYS));
}

TEST(it_replaces_as_a_plain_sieve_does) {
  tarn__cache_sieve *sieve = make(KEYS, LINES, 2);
  uint64_t hits = 0;
  uint64_t steps = EFFORT(400000, 40000);
  for (uint64_t i = 0; i < steps; i++) {
    uint64_t key = some_key();
    bool there = finds(sieve, key);
    require(plain_find(plain_of(sieve, key), key) == there);
    hits += there;
  }
  tarn__cache_sieve_tally tally;
  tarn__sieve_count(sieve, &tally);
  ck_assert(hits > steps / 4 && hits < steps * 3 / 4);
  ck_assert_uint_eq(tally.hits, hits);
  ck_assert_uint_eq(tally.fills, steps - hits);
  ck_assert_uint_eq(tally.used, LINES);
  ck_assert_uint_eq(tally.evictions, tally.fills - LINES);
  end(sieve);
}

TEST(what_is_dropped_makes_room_first) {
  tarn__cache_sieve *sieve = make(KEYS, LINES, 2);
  for (int i = 0; i < 20000; i++) {
    uint64_t key = some_key();
    plain *p = plain_of(sieve, key);
    if (random_below(4) == 0) {
      size_t at = plain_at(p, key);
      tarn__sieve_drop(sieve, key);
      if (at < p->count) plain_remove(p, at);
    } else {
      require(plain_find(p, key) == finds(sieve, key));
    }
  }
  tarn__sieve_drop_all(sieve);
  tarn__cache_sieve_tally tally;
  tarn__sieve_count(sieve, &tally);
  ck_assert_uint_eq(tally.used, 0);
  end(sieve);
}

// --- rows ------------------------------------------------------------------

// A table, its rows as all know them, and the lines.
static uint64_t table[KEYS];
static uint64_t truth[KEYS];
static uint64_t lines[LINES];
enum { OPEN = 4 };
static tarn__cache_sieve_batch open[OPEN];
static bool unfilled[OPEN];  // the TO_FILL of the batch are that still

static void fill(tarn__cache_sieve *sieve, size_t which) {
  tarn__cache_sieve_batch *b = &open[which];
  for (size_t i = 0; i < b->count; i++) {
    if (b->found[i] != TARN__SIEVE_TO_FILL) continue;
    lines[b->lines[i]] = table[b->keys[i]];
    tarn__sieve_filled(sieve, &b->lines[i], 1, true);
  }
  unfilled[which] = false;
}

static void write_row(tarn__cache_sieve *sieve, uint64_t key, uint32_t line,
                      bool ok) {
  if (ok) table[key] = lines[line];
  tarn__sieve_written(sieve, line, ok);
}

static void write_victims(tarn__cache_sieve *sieve,
                          tarn__cache_sieve_batch *b) {
  for (size_t i = 0; i < b->count; i++) {
    uint64_t key = 0;
    if (b->found[i] != TARN__SIEVE_TO_WRITE) continue;
    require(tarn__sieve_key(sieve, b->lines[i], &key));
    write_row(sieve, key, b->lines[i], random_below(8) != 0);
  }
}

static void open_one(tarn__cache_sieve *sieve, size_t which) {
  tarn__cache_sieve_batch *b = &open[which];
  bool looks = random_below(4) == 0;
  size_t sum = 0;
  b->count = 1 + random_below(12);
  for (size_t i = 0; i < b->count; i++)
    b->keys[i] = some_key();
  tarn__sieve_find(sieve, b, looks ? 0 : TARN__SIEVE_MAKE_ROOM);
  for (size_t i = 0; i <= TARN__SIEVE_TO_WRITE; i++)
    sum += b->tally[i];
  require(sum == b->count);
  require(!looks || b->tally[TARN__SIEVE_TO_FILL] == 0);
  write_victims(sieve, b);
  unfilled[which] = true;
  if (random_below(2) == 0) fill(sieve, which);
}

// All that it has found is as it was, or as others have changed it since.
static void close_one(tarn__cache_sieve *sieve, size_t which) {
  tarn__cache_sieve_batch *b = &open[which];
  bool changes = random_below(3) == 0;
  for (size_t i = 0; i < OPEN; i++)
    if (unfilled[i]) fill(sieve, i);
  for (size_t i = 0; i < b->count; i++) {
    bool found = b->found[i] != TARN__SIEVE_ABSENT &&
                 b->found[i] != TARN__SIEVE_TO_WRITE;
    if (!found) continue;
    require(tarn__sieve_await(sieve, b->lines[i]));
    require(lines[b->lines[i]] == truth[b->keys[i]]);
    if (changes) truth[b->keys[i]] = lines[b->lines[i]] = next_random(&seed);
  }
  tarn__sieve_leave(sieve, b, changes);
  b->count = 0;
}

static void flush(tarn__cache_sieve *sieve, bool ok) {
  enum { SOME = 7 };
  tarn__cache_sieve_line some[SOME];
  uint64_t from = 0;
  size_t count = 0;
  while ((count = tarn__sieve_take_dirty(sieve, from, some, SOME)) > 0) {
    for (size_t i = 0; i < count; i++) {
      require(some[i].key >= from);
      from = some[i].key + 1;
      write_row(sieve, some[i].key, some[i].line, ok);
    }
  }
}

static void step(tarn__cache_sieve *sieve) {
  size_t which = random_below(OPEN);
  if (random_below(100) == 0) flush(sieve, random_below(4) != 0);
  if (open[which].count > 0)
    close_one(sieve, which);
  else
    open_one(sieve, which);
}

TEST(rows_are_never_lost) {
  tarn__cache_sieve *sieve = make(KEYS, LINES, 4);
  tarn__cache_sieve_tally tally;
  for (size_t i = 0; i < KEYS; i++)
    truth[i] = table[i] = next_random(&seed);
  for (int i = 0; i < EFFORT(200000, 20000); i++) {
    step(sieve);
    if (i % 100 == 0) require(tarn__sieve_check(sieve) == NULL);
  }
  for (size_t i = 0; i < OPEN; i++)
    if (open[i].count > 0) close_one(sieve, i);
  tarn__sieve_count(sieve, &tally);
  ck_assert_uint_gt(tally.written, 100);
  ck_assert_uint_gt(tally.joined, 100);
  ck_assert_uint_gt(tally.dirty, 0);
  flush(sieve, true);
  tarn__sieve_count(sieve, &tally);
  ck_assert_uint_eq(tally.dirty, 0);
  ck_assert_mem_eq(table, truth, sizeof table);
  end(sieve);
}

// --- one thing at a time ---------------------------------------------------

static tarn__cache_sieve_found find(tarn__cache_sieve *sieve,
                                    tarn__cache_sieve_batch *b, uint64_t key) {
  b->count = 1;
  b->keys[0] = key;
  tarn__sieve_find(sieve, b, TARN__SIEVE_MAKE_ROOM);
  return (tarn__cache_sieve_found)b->found[0];
}

// |b| holds |key|, which was in no line, and is filled now.
static void hold(tarn__cache_sieve *sieve, tarn__cache_sieve_batch *b,
                 uint64_t key) {
  ck_assert_int_eq(find(sieve, b, key), TARN__SIEVE_TO_FILL);
  tarn__sieve_filled(sieve, b->lines, 1, true);
}

TEST(a_pinned_line_stays) {
  static tarn__cache_sieve_batch held[16];
  tarn__cache_sieve *sieve = make(KEYS, 16, 0);
  for (uint64_t i = 0; i < 16; i++)
    hold(sieve, &held[i], i);
  ck_assert_int_eq(find(sieve, &batch, 100), TARN__SIEVE_ABSENT);
  ck_assert_uint_eq(batch.lines[0], UINT32_MAX);
  tarn__sieve_leave(sieve, &held[5], false);
  tarn__sieve_await_room(sieve, 100);
  hold(sieve, &batch, 100);
  ck_assert_int_eq(find(sieve, &held[5], 5), TARN__SIEVE_ABSENT);
  tarn__sieve_leave(sieve, &batch, false);
  for (uint64_t i = 0; i < 16; i++)
    tarn__sieve_leave(sieve, &held[i], false);
  end(sieve);
}

TEST(free_room_takes_no_line_from_a_key) {
  tarn__cache_sieve *sieve = make(KEYS, 16, 0);
  for (uint64_t i = 0; i < 15; i++) {
    hold(sieve, &batch, i);
    tarn__sieve_leave(sieve, &batch, false);
  }
  batch.count = 2;
  batch.keys[0] = 100;
  batch.keys[1] = 101;
  tarn__sieve_find(sieve, &batch, TARN__SIEVE_FREE_ROOM);
  ck_assert_int_eq(batch.found[0], TARN__SIEVE_TO_FILL);
  ck_assert_int_eq(batch.found[1], TARN__SIEVE_ABSENT);
  tarn__sieve_filled(sieve, batch.lines, 1, true);
  tarn__sieve_leave(sieve, &batch, false);
  end(sieve);
}

TEST(a_dirty_line_is_written_before_it_goes) {
  tarn__cache_sieve *sieve = make(KEYS, 16, 0);
  uint64_t key = 0;
  for (uint64_t i = 0; i < 16; i++) {
    hold(sieve, &batch, i);
    tarn__sieve_leave(sieve, &batch, i < 2);
  }
  static tarn__cache_sieve_batch other;
  ck_assert_int_eq(find(sieve, &batch, 100), TARN__SIEVE_TO_WRITE);
  ck_assert(tarn__sieve_key(sieve, batch.lines[0], &key));
  ck_assert_uint_eq(key, 0);
  // Another one meanwhile: 1 is next, and 0 is still there.
  ck_assert_int_eq(find(sieve, &other, 101), TARN__SIEVE_TO_WRITE);
  ck_assert(tarn__sieve_key(sieve, other.lines[0], &key));
  ck_assert_uint_eq(key, 1);
  tarn__sieve_written(sieve, other.lines[0], true);
  tarn__sieve_written(sieve, batch.lines[0], true);
  // It is written, and is the first to go, since nobody has found it.
  uint32_t line = batch.lines[0];
  hold(sieve, &batch, 100);
  ck_assert_uint_eq(batch.lines[0], line);
  tarn__sieve_leave(sieve, &batch, false);
  end(sieve);
}

TEST(a_line_that_was_dropped_is_written_no_more) {
  tarn__cache_sieve_line line;
  uint64_t key = 0;
  tarn__cache_sieve *sieve = make(KEYS, 16, 0);
  hold(sieve, &batch, 7);
  tarn__sieve_leave(sieve, &batch, true);
  ck_assert_uint_eq(tarn__sieve_take_dirty(sieve, 8, &line, 1), 0);
  ck_assert_uint_eq(tarn__sieve_take_dirty(sieve, 7, &line, 1), 1);
  ck_assert_uint_eq(tarn__sieve_take_dirty(sieve, 0, &line, 1), 0);
  ck_assert(tarn__sieve_key(sieve, line.line, &key));
  ck_assert_uint_eq(key, 7);
  tarn__sieve_drop(sieve, 7);
  ck_assert(!tarn__sieve_key(sieve, line.line, &key));
  tarn__sieve_written(sieve, line.line, false);
  ck_assert_uint_eq(tarn__sieve_take_dirty(sieve, 0, &line, 1), 0);
  end(sieve);
}

TEST(a_dirty_line_is_taken_by_its_key) {
  uint32_t line = 0;
  tarn__cache_sieve *sieve = make(KEYS, 16, 0);
  hold(sieve, &batch, 7);
  ck_assert(!tarn__sieve_take(sieve, 7, &line));
  ck_assert(!tarn__sieve_take(sieve, 8, &line));
  uint32_t held = batch.lines[0];
  tarn__sieve_let_go(sieve, held, true);
  ck_assert(tarn__sieve_take(sieve, 7, &line));
  ck_assert_uint_eq(line, held);
  ck_assert(!tarn__sieve_take(sieve, 7, &line));
  tarn__sieve_written(sieve, line, false);
  ck_assert(tarn__sieve_take(sieve, 7, &line));
  tarn__sieve_written(sieve, line, true);
  ck_assert(!tarn__sieve_take(sieve, 7, &line));
  end(sieve);
}

TEST(what_is_dropped_while_it_is_filled_is_not_found_later) {
  static tarn__cache_sieve_batch other;
  tarn__cache_sieve *sieve = make(KEYS, 16, 0);
  ck_assert_int_eq(find(sieve, &batch, 7), TARN__SIEVE_TO_FILL);
  ck_assert_int_eq(find(sieve, &other, 7), TARN__SIEVE_AWAITED);
  tarn__sieve_drop(sieve, 7);
  tarn__sieve_filled(sieve, batch.lines, 1, true);
  ck_assert(tarn__sieve_await(sieve, other.lines[0]));
  tarn__sieve_leave(sieve, &batch, false);
  tarn__sieve_leave(sieve, &other, false);
  hold(sieve, &batch, 7);
  tarn__sieve_leave(sieve, &batch, false);
  end(sieve);
}

TEST(a_read_finds_what_is_filled) {
  tarn__cache_sieve *sieve = make(KEYS, 16, 0);
  ck_assert(!reads(sieve, 7));
  static tarn__cache_sieve_batch other;
  ck_assert_int_eq(find(sieve, &other, 7), TARN__SIEVE_TO_FILL);
  ck_assert(!reads(sieve, 7));
  tarn__sieve_filled(sieve, other.lines, 1, true);
  ck_assert(reads(sieve, 7));
  ck_assert_uint_eq(batch.lines[0], other.lines[0]);
  tarn__sieve_leave(sieve, &other, true);
  ck_assert(reads(sieve, 7));
  tarn__sieve_drop(sieve, 7);
  ck_assert(!reads(sieve, 7));
  end(sieve);
}

TEST(who_awaits_what_is_given_up_is_told) {
  static tarn__cache_sieve_batch other;
  tarn__cache_sieve *sieve = make(KEYS, 16, 0);
  ck_assert_int_eq(find(sieve, &batch, 7), TARN__SIEVE_TO_FILL);
  ck_assert_int_eq(find(sieve, &other, 7), TARN__SIEVE_AWAITED);
  tarn__sieve_filled(sieve, batch.lines, 1, false);
  tarn__sieve_leave(sieve, &batch, false);
  ck_assert(!tarn__sieve_await(sieve, other.lines[0]));
  tarn__sieve_leave(sieve, &other, false);
  hold(sieve, &batch, 7);
  tarn__sieve_leave(sieve, &batch, false);
  end(sieve);
}
