// Records against a model in memory: pinned, changed, flushed, with a cache
// that holds a part of them, on a disk that loses power at any moment.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"
#include "disk/records.h"
#include "folder.h"
#include "oracle.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/mix.h"
#include "support/run.h"

SECONDS(3000);

enum { PINS = 24 };  // at a time

typedef struct kind {
  size_t size;
  uint64_t count;
  size_t budget;
} kind;

// Records that fill blocks, that do not, that are tiny, and that are larger
// than a block; each file has several times the lines of its budget.
static const kind kinds[] = {{256, 2400, 260000},
                             {1500, 500, 300000},
                             {4, 8000, 72000},
                             {9000, 300, 1400000}};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static struct {
  const kind *k;
  tarn__disk_records_options options;
  size_t under_way;  // blocks, at most
} m;

// --- records and their versions ----------------------------------------------

static void fill(void *record, uint64_t number, uint32_t version) {
  uint32_t word = version == 0 ? 0 : (uint32_t)mix(number, version) | 1;
  for (size_t i = 0; i < m.k->size; i += sizeof word) {
    memcpy((unsigned char *)record + i, &word, sizeof word);
    if (version != 0) word += 2;
  }
}

static bool is_version(const void *record, uint64_t number, uint32_t version) {
  static unsigned char wanted[9000];
  fill(wanted, number, version);
  return memcmp(record, wanted, m.k->size) == 0;
}

// --- a file for the oracle ---------------------------------------------------

static oracle_epochs epochs_of(const tarn__disk_records_info *info) {
  return (oracle_epochs){info->newest, info->before};
}

static oracle_epochs ask(const char *path) {
  tarn__disk_records_info info;
  assert_ok(tarn__records_ask(path, &info));
  require(info.shape.size == m.k->size && info.shape.count == m.k->count);
  return epochs_of(&info);
}

static void *open_file(const char *path, uint64_t epoch, bool looks) {
  tarn__disk_records *records = NULL;
  tarn__disk_records_options options = m.options;
  if (looks)
    options = (tarn__disk_records_options){.budget = m.k->budget,
                                           .depth = 1 + oracle_draw(8),
                                           .threads = true,
                                           .cached = true};
  assert_ok(tarn__records_open(path, epoch, &options, &records));
  return records;
}

static void close_file(void *file) {
  tarn__disk_records_tally tally;
  tarn__records_count(file, &tally);
  ck_assert_uint_lt(2 * tally.lines, m.k->count);
  if (file == oracle.file && tally.most_under_way > m.under_way)
    m.under_way = tally.most_under_way;
  tarn__records_close(file);
}

static oracle_epochs tell(const void *file) {
  tarn__disk_records_info info = tarn__records_tell(file);
  return epochs_of(&info);
}

static const void *note_of(const void *file) {
  static tarn__disk_records_info info;
  info = tarn__records_tell(file);
  return info.note;
}

static void see(void *file, const uint32_t *versions) {
  uint64_t numbers[16];
  void *pointers[16];
  for (uint64_t first = 0; first < m.k->count; first += 16) {
    size_t count = m.k->count - first < 16 ? (size_t)(m.k->count - first) : 16;
    for (size_t i = 0; i < count; i++)
      numbers[i] = first + i;
    tarn_status status = tarn__records_pin(file, numbers, count, pointers);
    if (status != TARN_OK) ck_abort_msg("%s", tarn_last_error());
    for (size_t i = 0; i < count; i++)
      require(is_version(pointers[i], numbers[i], versions[numbers[i]]));
    tarn__records_unpin(file, pointers, count, false);
  }
}

static tarn_status flush_file(void *file, const void *note) {
  return tarn__records_flush(file, note);
}

static const oracle_kind records_kind = {
    TARN__RECORDS_NOTE, ask, open_file, close_file, tell, note_of, see,
    flush_file};

// --- operations --------------------------------------------------------------

// Half of them near one another, so that blocks have several that change.
static size_t choose(uint64_t *numbers) {
  size_t count = 1 + oracle_draw(PINS);
  bool near = oracle_draw(2) == 0;
  uint64_t first = oracle_draw((size_t)m.k->count);
  for (size_t i = 0; i < count; i++) {
    numbers[i] = near ? (first + oracle_draw((size_t)2 * PINS)) % m.k->count
                      : oracle_draw((size_t)m.k->count);
  }
  return count;
}

// Begins the |next| numbers after those, if there are any.
static bool use(const uint64_t *numbers, size_t count, size_t next,
                bool change) {
  void *pointers[PINS];
  tarn_status status = tarn__records_pin(oracle.file, numbers, count, pointers);
  if (status != TARN_OK) return false;
  if (next > 0) tarn__records_begin(oracle.file, numbers + count, next);
  for (size_t i = 0; i < count; i++)
    require(is_version(pointers[i], numbers[i], oracle.now[numbers[i]]));
  for (size_t i = 0; change && i < count; i++) {
    oracle.now[numbers[i]] = ++oracle.version;
    fill(pointers[i], numbers[i], oracle.version);
  }
  tarn__records_unpin(oracle.file, pointers, count, change);
  return true;
}

// All at once, or half of them while the others are on their way.
static bool use_some(bool change) {
  uint64_t numbers[PINS];
  size_t count = choose(numbers);
  size_t later = oracle_draw(2) * count / 2;
  return use(numbers, count - later, later, change) &&
         use(numbers + count - later, later, 0, change);
}

static void step(void) {
  size_t what = oracle_draw(1000);
  if (what < 400) {
    require(use_some(false));
  } else if (what < 930) {
    require(use_some(true));
  } else if (what < 985) {
    assert_ok(oracle_flush());
  } else if (what < 995) {
    oracle_reopen();
  } else {
    oracle_crash();
  }
}

// --- random operations -------------------------------------------------------

static void create(void) {
  const tarn__disk_records_shape shape = {m.k->size, m.k->count};
  assert_ok(tarn__records_create(oracle.path, &shape, NULL));
}

static void choose_kind(const kind *k) {
  memset(&m, 0, sizeof m);
  m.k = k;
}

static void begin(size_t i, unsigned chance) {
  choose_kind(&kinds[i / 2 % KINDS]);
  m.options = (tarn__disk_records_options){.budget = m.k->budget,
                                           .depth = 16,
                                           .threads = i % 2 == 1,
                                           .watch = &crash_watch};
  folder_make(0);
  oracle_begin(&records_kind, (size_t)m.k->count, i, chance);
  create();
  oracle_start();
}

static void run_random(size_t i, size_t times, unsigned chance) {
  begin(i, chance);
  for (size_t k = 0; k < times; k++)
    step();
  close_file(oracle.file);
  ck_assert_uint_gt(m.under_way, 1);
  (void)oracle_see(oracle.path);
  ck_assert_uint_gt(oracle.crashes, times / 200);
  ck_assert_uint_gt(oracle.epoch, times / 100);
}

TEST_LOOP(records_match_a_model_whatever_crashes, 2 * KINDS) {
  run_random((size_t)_i, EFFORT(2500, 250), EFFORT(1000, 100));
}

// --- failures ----------------------------------------------------------------

static bool go_until_it_fails(void) {
  for (size_t i = 0; i < 12; i++) {
    if (!use_some(true)) return false;
    if (i % 4 == 3 && oracle_flush() != TARN_OK) return false;
  }
  return true;
}

// The |n|-th part fails. What was changed is still there, and a flush may be
// tried again, unless it says otherwise. False: there are fewer parts.
static bool fail_one(size_t n, int error) {
  oracle.seed = n;
  oracle.drawn = 0;
  crash_fail(n, error, false);
  bool all = go_until_it_fails();
  bool failed = crash_failed();
  require(all || failed);
  if (!all) assert_error_says(oracle.path);
  crash_fail(0, 0, false);
  tarn_status status = oracle_flush();
  if (status == TARN_OK) {
    see(oracle.file, oracle.now);
  } else {
    require(failed);
    assert_error_says("opened again");
    oracle.flushing = true;
  }
  tarn__records_close(oracle.file);
  (void)oracle_see(oracle.path);
  return failed;
}

TEST_LOOP(what_fails_loses_nothing, 2 * KINDS) {
  size_t n = 1;
  begin((size_t)_i, 0);
  while (fail_one(n, n % 2 == 0 ? EIO : ENOSPC)) {
    create();
    oracle_start();
    n += EFFORT(1, 7);
  }
  ck_assert_uint_gt(n, 40);
}

// --- kills -------------------------------------------------------------------

static void choose_method(bool threads) {
  m.options =
      (tarn__disk_records_options){.budget = m.k->budget, .threads = threads};
}

// A few at a time, in an order of each epoch's own.
static void write_all(uint64_t epoch) {
  for (uint64_t first = 0; first < m.k->count; first += PINS) {
    uint64_t numbers[PINS];
    void *pointers[PINS];
    for (size_t i = 0; i < PINS; i++)
      numbers[i] = ((first + i) * 389 + epoch) % m.k->count;
    MUST(tarn__records_pin(oracle.file, numbers, PINS, pointers) == TARN_OK);
    for (size_t i = 0; i < PINS; i++)
      fill(pointers[i], numbers[i], oracle_version(epoch, numbers[i]));
    tarn__records_unpin(oracle.file, pointers, PINS, true);
  }
}

TEST(a_killed_process_leaves_a_flushed_epoch) {
  const oracle_kills kills = {EFFORT(16, 6), 100000, choose_method, write_all};
  choose_kind(&kinds[0]);
  folder_make(1);
  oracle_begin(&records_kind, (size_t)m.k->count, 0, 0);
  create();
  oracle_kill(&kills);
}

// --- a million ---------------------------------------------------------------

PART("million");

TEST_LOOP(a_million_operations, 2 * KINDS) {
  run_random((size_t)_i, EFFORT(1000000, 50000) / (2 * KINDS), 3000);
}
