// The sieve under threads: a small cache, so that they meet in each set.
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "cache/sieve.h"
#include "support/effort.h"
#include "support/run.h"
#include "support/threads.h"

enum { KEYS = 300, LINES = 64, THREADS = 4, MOST = 12 };

// A value is the key and how often it was changed. Thread t changes keys that
// are t modulo THREADS, and knows their values.
static _Atomic uint64_t table[KEYS];
static _Atomic uint64_t lines[LINES];
static atomic_int moving[KEYS];  // reads and writes of the table's row
static tarn__cache_sieve *sieve;
static atomic_uint_fast64_t reads;

typedef struct worker {
  size_t number;
  uint64_t seed;
  uint64_t versions[KEYS];
  tarn__cache_sieve_batch batch;
} worker;

static worker workers[THREADS];

// One at a time of each row.
static void begin_move(uint64_t key) {
  expect(atomic_fetch_add(&moving[key], 1) == 0);
}

static void end_move(uint64_t key) {
  atomic_fetch_sub(&moving[key], 1);
}

static void write_line(uint64_t key, uint32_t line) {
  begin_move(key);
  atomic_store(&table[key], atomic_load(&lines[line]));
  end_move(key);
  tarn__sieve_written(sieve, line, true);
}

static void read_line(worker *w, uint64_t key, uint32_t line) {
  bool ok = next_random(&w->seed) % 8 != 0;
  begin_move(key);
  if (ok) atomic_store(&lines[line], atomic_load(&table[key]));
  end_move(key);
  atomic_fetch_add(&reads, 1);
  tarn__sieve_filled(sieve, &line, 1, ok);
}

static void move_all(worker *w) {
  tarn__cache_sieve_batch *b = &w->batch;
  for (size_t i = 0; i < b->count; i++) {
    uint64_t key = 0;
    if (b->found[i] == TARN__SIEVE_TO_FILL) {
      read_line(w, b->keys[i], b->lines[i]);
    } else if (b->found[i] == TARN__SIEVE_TO_WRITE) {
      expect(tarn__sieve_key(sieve, b->lines[i], &key));
      write_line(key, b->lines[i]);
    }
  }
}

static void use(worker *w, uint64_t key, uint32_t line, bool changes) {
  uint64_t value = atomic_load(&lines[line]);
  expect(value % KEYS == key);
  if (key % THREADS != w->number) return;
  expect(value / KEYS == w->versions[key]);
  if (changes) atomic_store(&lines[line], ++w->versions[key] * KEYS + key);
}

// Keys that another thread changes must not become dirty by this one's leave,
// which does no harm, and shows that a row is written as it is.
static void use_all(worker *w) {
  tarn__cache_sieve_batch *b = &w->batch;
  bool changes = next_random(&w->seed) % 2 == 0;
  uint64_t absent = UINT64_MAX;
  for (size_t i = 0; i < b->count; i++) {
    bool awaited = b->found[i] == TARN__SIEVE_AWAITED ||
                   b->found[i] == TARN__SIEVE_TO_FILL;
    bool there = b->found[i] == TARN__SIEVE_THERE ||
                 (awaited && tarn__sieve_await(sieve, b->lines[i]));
    if (there) use(w, b->keys[i], b->lines[i], changes);
    if (b->found[i] == TARN__SIEVE_ABSENT) absent = b->keys[i];
  }
  tarn__sieve_leave(sieve, b, changes);
  if (absent != UINT64_MAX) tarn__sieve_await_room(sieve, absent);
}

// What is read keeps its row until the end of the read, whoever needs room.
static void read_all(worker *w) {
  tarn__cache_sieve_batch *b = &w->batch;
  unsigned reading = tarn__sieve_read(sieve, b);
  for (size_t i = 0; i < b->count; i++)
    if (b->lines[i] != UINT32_MAX) use(w, b->keys[i], b->lines[i], false);
  tarn__sieve_read_end(sieve, reading);
}

static void *work(void *element) {
  worker *w = element;
  for (int i = 0; i < EFFORT(40000, 4000); i++) {
    w->batch.count = 1 + next_random(&w->seed) % MOST;
    for (size_t k = 0; k < w->batch.count; k++)
      w->batch.keys[k] =
          next_random(&w->seed) % (1 + next_random(&w->seed) % KEYS);
    read_all(w);
    tarn__sieve_find(sieve, &w->batch, TARN__SIEVE_MAKE_ROOM);
    move_all(w);
    use_all(w);
  }
  return NULL;
}

static void flush(void) {
  enum { SOME = 5 };
  tarn__cache_sieve_line some[SOME];
  uint64_t from = 0;
  size_t count = 0;
  while ((count = tarn__sieve_take_dirty(sieve, from, some, SOME)) > 0) {
    from = some[count - 1].key + 1;
    for (size_t i = 0; i < count; i++)
      write_line(some[i].key, some[i].line);
  }
}

static atomic_bool stop;

static void *flush_often(void *unused) {
  while (!atomic_load(&stop))
    flush();
  return unused;
}

static void create(size_t count) {
  tarn__cache_sieve_options options = {
      .keys = KEYS, .lines = count, .shards = 2};
  assert_ok(tarn__sieve_create(&options, &sieve));
}

static void end(void) {
  const char *wrong = tarn__sieve_check(sieve);
  ck_assert_msg(wrong == NULL, "%s", wrong);
  tarn__sieve_destroy(sieve);
}

TEST(threads_share_rows_and_lose_none) {
  tarn__cache_sieve_tally tally;
  create(LINES);
  for (uint64_t i = 0; i < KEYS; i++)
    atomic_store(&table[i], i);
  for (size_t i = 0; i < THREADS; i++)
    workers[i] = (worker){.number = i, .seed = 77 + i};
  pthread_t flusher = start_thread(flush_often, NULL);
  run_threads_each(work, THREADS, workers, sizeof *workers);
  atomic_store(&stop, true);
  ck_assert_int_eq(pthread_join(flusher, NULL), 0);
  flush();
  assert_as_expected();
  for (uint64_t i = 0; i < KEYS; i++)
    ck_assert_uint_eq(atomic_load(&table[i]),
                      workers[i % THREADS].versions[i] * KEYS + i);
  tarn__sieve_count(sieve, &tally);
  ck_assert_uint_eq(tally.fills, atomic_load(&reads));
  ck_assert_uint_eq(tally.dirty, 0);
  end();
}

// --- waiting ---------------------------------------------------------------

static tarn__cache_sieve_batch first;
static tarn__cache_sieve_batch second;
static atomic_int began;
static bool told;

static void find(tarn__cache_sieve_batch *b, uint64_t key) {
  b->count = 1;
  b->keys[0] = key;
  tarn__sieve_find(sieve, b, TARN__SIEVE_MAKE_ROOM);
}

static void *await_line(void *unused) {
  atomic_store(&began, 1);
  told = tarn__sieve_await(sieve, second.lines[0]);
  expect(told == (atomic_load(&lines[second.lines[0]]) == 9));
  return unused;
}

static void let_wait(bool ok) {
  create(16);
  atomic_store(&began, 0);
  find(&first, 5);
  find(&second, 5);
  ck_assert_int_eq(first.found[0], TARN__SIEVE_TO_FILL);
  ck_assert_int_eq(second.found[0], TARN__SIEVE_AWAITED);
  pthread_t thread = start_thread(await_line, NULL);
  while (atomic_load(&began) == 0) {
  }
  if (ok) atomic_store(&lines[first.lines[0]], 9);
  tarn__sieve_filled(sieve, first.lines, 1, ok);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert_int_eq(told, ok);
  tarn__sieve_leave(sieve, &first, false);
  tarn__sieve_leave(sieve, &second, false);
  assert_as_expected();
  end();
}

TEST(a_second_miss_waits_for_the_first) {
  let_wait(true);
}

TEST(a_second_miss_learns_that_the_first_failed) {
  let_wait(false);
}

static atomic_bool filling;

static void *find_room(void *unused) {
  atomic_store(&began, 1);
  find(&second, 100);
  expect(second.found[0] == TARN__SIEVE_TO_FILL);
  atomic_store(&filling, true);
  tarn__sieve_filled(sieve, second.lines, 1, true);
  tarn__sieve_leave(sieve, &second, false);
  return unused;
}

TEST(who_needs_room_waits_for_reads) {
  create(16);
  for (uint64_t i = 0; i < 16; i++) {
    find(&first, i);
    tarn__sieve_filled(sieve, first.lines, 1, true);
    tarn__sieve_leave(sieve, &first, false);
  }
  unsigned reading = tarn__sieve_read(sieve, &first);
  ck_assert_uint_eq(first.tally[TARN__SIEVE_THERE], 1);
  atomic_store(&began, 0);
  pthread_t thread = start_thread(find_room, NULL);
  while (atomic_load(&began) == 0) {
  }
  usleep(2000);
  ck_assert(!atomic_load(&filling));
  tarn__sieve_read_end(sieve, reading);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert(atomic_load(&filling));
  assert_as_expected();
  end();
}

static void *await_room(void *unused) {
  atomic_store(&began, 1);
  tarn__sieve_await_room(sieve, 100);
  find(&second, 100);
  expect(second.found[0] == TARN__SIEVE_TO_FILL);
  tarn__sieve_filled(sieve, second.lines, 1, true);
  tarn__sieve_leave(sieve, &second, false);
  return unused;
}

TEST(a_full_set_is_waited_for) {
  create(16);
  first.count = 16;
  for (uint64_t i = 0; i < 16; i++)
    first.keys[i] = i;
  tarn__sieve_find(sieve, &first, TARN__SIEVE_MAKE_ROOM);
  ck_assert_uint_eq(first.tally[TARN__SIEVE_TO_FILL], 16);
  tarn__sieve_filled(sieve, first.lines, 16, true);
  find(&second, 100);
  ck_assert_int_eq(second.found[0], TARN__SIEVE_ABSENT);
  atomic_store(&began, 0);
  pthread_t thread = start_thread(await_room, NULL);
  while (atomic_load(&began) == 0) {
  }
  tarn__sieve_leave(sieve, &first, false);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  assert_as_expected();
  end();
}
