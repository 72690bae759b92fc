// Records against a model in memory: pinned, changed, flushed, with a cache
// that holds a part of them, on a disk that loses power at any moment.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "crash.h"
#include "disk/records.h"
#include "folder.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/mix.h"
#include "support/run.h"

SECONDS(3000);

enum {
  MOST = 8000,  // records
  EPOCHS = 3,   // of which the model keeps what they were
  PINS = 24,    // at a time
};

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
  const char *path;
  const char *lost;
  tarn__disk_records *records;
  uint32_t now[MOST];  // versions; 0: zeros
  uint32_t epochs[EPOCHS][MOST];
  uint64_t epoch;  // the newest whose flush has returned
  bool has_before;
  bool flushing;
  uint32_t version;
  uint64_t seed;
  uint64_t drawn;
  unsigned chance;
  size_t crashes;
  size_t under_way;  // blocks, at most
} m;

static size_t draw(size_t below) {
  return (size_t)(mix(m.seed, m.drawn++) % below);
}

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

static void note_of(uint64_t epoch, unsigned char note[TARN__RECORDS_NOTE]) {
  memset(note, 0, TARN__RECORDS_NOTE);
  uint64_t word = epoch == 1 ? 0 : mix(3, epoch);
  memcpy(note + TARN__RECORDS_NOTE - sizeof word, &word, sizeof word);
}

// --- what a file has ---------------------------------------------------------

static void see_all(tarn__disk_records *records, const uint32_t *versions) {
  uint64_t numbers[16];
  void *pointers[16];
  for (uint64_t first = 0; first < m.k->count; first += 16) {
    size_t count = m.k->count - first < 16 ? (size_t)(m.k->count - first) : 16;
    for (size_t i = 0; i < count; i++)
      numbers[i] = first + i;
    tarn_status status = tarn__records_pin(records, numbers, count, pointers);
    if (status != TARN_OK) ck_abort_msg("%s", tarn_last_error());
    for (size_t i = 0; i < count; i++)
      require(is_version(pointers[i], numbers[i], versions[numbers[i]]));
    tarn__records_unpin(records, pointers, count, false);
  }
}

// All of the file at |path| as of |epoch|; 0: the newest. Returns which it is.
static uint64_t see_epoch(const char *path, uint64_t epoch) {
  const tarn__disk_records_options options = {.budget = m.k->budget,
                                              .depth = 1 + draw(8),
                                              .threads = true,
                                              .cached = true};
  unsigned char note[TARN__RECORDS_NOTE];
  tarn__disk_records *records = NULL;
  tarn_status status = tarn__records_open(path, epoch, &options, &records);
  if (status != TARN_OK) ck_abort_msg("%s", tarn_last_error());
  tarn__disk_records_info info = tarn__records_tell(records);
  require(epoch == 0 || info.newest == epoch);
  require(info.newest + EPOCHS > m.epoch + 1 && info.newest <= m.epoch + 1);
  see_all(records, m.epochs[info.newest % EPOCHS]);
  note_of(info.newest, note);
  require(memcmp(tarn__records_note(records), note, sizeof note) == 0);
  tarn__records_close(records);
  return info.newest;
}

static uint64_t see_lost(const char *path) {
  tarn__disk_records_info info;
  tarn_status status = tarn__records_ask(path, &info);
  if (status != TARN_OK) ck_abort_msg("%s", tarn_last_error());
  require(info.shape.size == m.k->size && info.shape.count == m.k->count);
  uint64_t newest = see_epoch(path, 0);
  require(newest == info.newest);
  require(newest == m.epoch || (m.flushing && newest == m.epoch + 1));
  bool must = newest > m.epoch || (!m.flushing && m.has_before);
  require(info.before == newest - 1 || (!must && info.before == 0));
  if (info.before != 0) (void)see_epoch(path, info.before);
  return newest;
}

static void lose_power(void) {
  if (m.chance == 0 || draw(m.chance) != 0) return;
  crash_leave(m.lost, mix(m.seed, m.drawn++));
  (void)see_lost(m.lost);
  m.crashes++;
}

// --- operations --------------------------------------------------------------

static void open_it(uint64_t epoch) {
  assert_ok(tarn__records_open(m.path, epoch, &m.options, &m.records));
}

static void close_it(void) {
  tarn__disk_records_tally tally;
  tarn__records_count(m.records, &tally);
  ck_assert_uint_lt(2 * tally.lines, m.k->count);
  if (tally.most_under_way > m.under_way) m.under_way = tally.most_under_way;
  tarn__records_close(m.records);
}

// Half of them near one another, so that blocks have several that change.
static size_t choose(uint64_t *numbers) {
  size_t count = 1 + draw(PINS);
  bool near = draw(2) == 0;
  uint64_t first = draw((size_t)m.k->count);
  for (size_t i = 0; i < count; i++) {
    numbers[i] = near ? (first + draw((size_t)2 * PINS)) % m.k->count
                      : draw((size_t)m.k->count);
  }
  return count;
}

static bool use_some(bool change) {
  uint64_t numbers[PINS];
  void *pointers[PINS];
  size_t count = choose(numbers);
  tarn_status status = tarn__records_pin(m.records, numbers, count, pointers);
  if (status != TARN_OK) return false;
  for (size_t i = 0; i < count; i++)
    require(is_version(pointers[i], numbers[i], m.now[numbers[i]]));
  for (size_t i = 0; change && i < count; i++) {
    m.now[numbers[i]] = ++m.version;
    fill(pointers[i], numbers[i], m.version);
  }
  tarn__records_unpin(m.records, pointers, count, change);
  return true;
}

static tarn_status flush(void) {
  unsigned char note[TARN__RECORDS_NOTE];
  note_of(m.epoch + 1, note);
  memcpy(m.epochs[(m.epoch + 1) % EPOCHS], m.now, sizeof m.now);
  m.flushing = true;
  tarn_status status = tarn__records_flush(m.records, note);
  m.flushing = false;
  if (status != TARN_OK) return status;
  m.epoch++;
  m.has_before = true;
  return TARN_OK;
}

static void go_back(uint64_t epoch) {
  m.epoch = epoch;
  m.has_before = tarn__records_tell(m.records).before != 0;
  memcpy(m.now, m.epochs[epoch % EPOCHS], sizeof m.now);
}

static void reopen(void) {
  bool older = m.has_before && draw(2) == 0;
  uint64_t epoch = m.epoch - (older ? 1 : 0);
  close_it();
  m.flushing = older;  // either root may be there until it is open
  m.epoch = epoch;
  open_it(epoch);
  m.flushing = false;
  go_back(epoch);
}

static void crash(void) {
  close_it();
  uint64_t seed = mix(m.seed, m.drawn++);
  crash_leave(m.lost, seed);
  uint64_t epoch = see_lost(m.lost);
  crash_leave(m.path, seed);
  crash_record(m.path, lose_power);
  open_it(0);
  require(tarn__records_tell(m.records).newest == epoch);
  go_back(epoch);
  m.crashes++;
}

static void step(void) {
  size_t what = draw(1000);
  if (what < 400) {
    require(use_some(false));
  } else if (what < 930) {
    require(use_some(true));
  } else if (what < 985) {
    if (flush() != TARN_OK) ck_abort_msg("%s", tarn_last_error());
  } else if (what < 995) {
    reopen();
  } else {
    crash();
  }
}

// --- random operations -------------------------------------------------------

static void start_anew(void) {
  const tarn__disk_records_shape shape = {m.k->size, m.k->count};
  assert_ok(tarn__records_create(m.path, &shape, NULL));
  m.epoch = 1;
  m.has_before = m.flushing = false;
  memset(m.now, 0, sizeof m.now);
  memset(m.epochs, 0, sizeof m.epochs);
  crash_record(m.path, lose_power);
  open_it(0);
}

static void begin(size_t i, unsigned chance) {
  folder_make(0);
  memset(&m, 0, sizeof m);
  m.k = &kinds[i / 2 % KINDS];
  require(m.k->count <= MOST);
  m.options = (tarn__disk_records_options){.budget = m.k->budget,
                                           .depth = 16,
                                           .threads = i % 2 == 1,
                                           .watch = &crash_watch};
  m.path = folder_path(0, "records");
  m.lost = folder_path(1, "lost");
  m.seed = i;
  m.chance = chance;
  start_anew();
}

static void run_random(size_t i, size_t times, unsigned chance) {
  begin(i, chance);
  for (size_t k = 0; k < times; k++)
    step();
  close_it();
  ck_assert_uint_gt(m.under_way, 1);
  (void)see_lost(m.path);
  ck_assert_uint_gt(m.crashes, times / 200);
  ck_assert_uint_gt(m.epoch, times / 100);
}

TEST_LOOP(records_match_a_model_whatever_crashes, 2 * KINDS) {
  run_random((size_t)_i, EFFORT(2500, 250), EFFORT(1000, 100));
}

// --- failures ----------------------------------------------------------------

static bool go_until_it_fails(void) {
  for (size_t i = 0; i < 12; i++) {
    if (!use_some(true)) return false;
    if (i % 4 == 3 && flush() != TARN_OK) return false;
  }
  return true;
}

// The |n|-th part fails. What was changed is still there, and a flush may be
// tried again, unless it says otherwise. False: there are fewer parts.
static bool fail_one(size_t n, int error) {
  m.seed = n;
  m.drawn = 0;
  crash_fail(n, error, false);
  bool all = go_until_it_fails();
  bool failed = crash_failed();
  require(all || failed);
  if (!all) assert_error_says(m.path);
  crash_fail(0, 0, false);
  tarn_status status = flush();
  if (status == TARN_OK) {
    see_all(m.records, m.now);
  } else {
    require(failed);
    assert_error_says("opened again");
    m.flushing = true;
  }
  tarn__records_close(m.records);
  (void)see_lost(m.path);
  return failed;
}

TEST_LOOP(what_fails_loses_nothing, 2 * KINDS) {
  size_t n = 1;
  begin((size_t)_i, 0);
  while (fail_one(n, n % 2 == 0 ? EIO : ENOSPC)) {
    start_anew();
    n += EFFORT(1, 7);
  }
  ck_assert_uint_gt(n, 40);
}

// --- kills -------------------------------------------------------------------

static uint32_t version_at(uint64_t epoch, uint64_t number) {
  return epoch == 1 ? 0 : (uint32_t)mix(epoch, number) | 1;
}

// Each epoch changes all records, a few at a time, in an order of its own.
static void write_for_ever(_Atomic uint64_t *flushed, bool threads) {
  unsigned char note[TARN__RECORDS_NOTE];
  m.options =
      (tarn__disk_records_options){.budget = m.k->budget, .threads = threads};
  MUST(tarn__records_open(m.path, 0, &m.options, &m.records) == TARN_OK);
  for (uint64_t epoch = tarn__records_tell(m.records).newest + 1;; epoch++) {
    for (uint64_t first = 0; first < m.k->count; first += PINS) {
      uint64_t numbers[PINS];
      void *pointers[PINS];
      for (size_t i = 0; i < PINS; i++)
        numbers[i] = ((first + i) * 389 + epoch) % m.k->count;
      MUST(tarn__records_pin(m.records, numbers, PINS, pointers) == TARN_OK);
      for (size_t i = 0; i < PINS; i++)
        fill(pointers[i], numbers[i], version_at(epoch, numbers[i]));
      tarn__records_unpin(m.records, pointers, PINS, true);
    }
    note_of(epoch, note);
    MUST(tarn__records_flush(m.records, note) == TARN_OK);
    *flushed = epoch;
  }
}

static void kill_one(_Atomic uint64_t *flushed, size_t round) {
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) {
    child_begin(60);
    write_for_ever(flushed, round % 2 == 1);
  }
  // Every other one gets as far as to flush.
  uint64_t before = *flushed;
  while (round / 2 % 2 == 0 && *flushed == before &&
         waitpid(child, NULL, WNOHANG) == 0)
    usleep(1000);
  usleep((useconds_t)(mix(9, round) % 100000));
  require(kill(child, SIGKILL) == 0);
  int status = 0;
  require(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

static void know_epoch(uint64_t epoch) {
  for (uint64_t i = 0; i < m.k->count; i++)
    m.epochs[epoch % EPOCHS][i] = version_at(epoch, i);
}

TEST(a_killed_process_leaves_a_flushed_epoch) {
  enum { ROUNDS = EFFORT(16, 6) };
  _Atomic uint64_t *flushed =
      mmap(NULL, sizeof *flushed, PROT_READ | PROT_WRITE,
           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(flushed != MAP_FAILED);
  *flushed = 1;
  begin(0, 0);
  tarn__records_close(m.records);
  folder_make(1);
  m.path = folder_path(2, "records");
  m.lost = folder_path(3, "lost");
  const tarn__disk_records_shape shape = {m.k->size, m.k->count};
  assert_ok(tarn__records_create(m.path, &shape, NULL));
  for (size_t round = 0; round < ROUNDS; round++) {
    kill_one(flushed, round);
    m.epoch = *flushed;
    m.flushing = true;
    if (m.epoch > 1) know_epoch(m.epoch - 1);
    know_epoch(m.epoch);
    know_epoch(m.epoch + 1);
    folder_copy(m.path, m.lost);
    *flushed = see_lost(m.lost);
  }
  ck_assert_uint_gt(*flushed, ROUNDS / 2);
  munmap(flushed, sizeof *flushed);
}

// --- a million ---------------------------------------------------------------

PART("million");

TEST_LOOP(a_million_operations, 2 * KINDS) {
  run_random((size_t)_i, EFFORT(1000000, 50000) / (2 * KINDS), 3000);
}
