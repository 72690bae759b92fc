// Stores of records: what they keep, how they divide a budget, and what they
// refuse.
#include "disk/records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"
#include "disk/blocks.h"
#include "folder.h"
#include "support/faults.h"
#include "support/mix.h"
#include "support/run.h"

#define MIB ((size_t)1 << 20)

static const char *file(void) {
  return folder_path(0, "records");
}

static void set_up(void) {
  folder_make(0);
}

FIXTURE(set_up, NULL);

static void make(size_t size, uint64_t count) {
  const tarn__disk_records_shape shape = {size, count};
  assert_ok(tarn__records_create(file(), &shape, NULL));
}

static tarn__disk_records *open_with(tarn__disk_records_options options) {
  tarn__disk_records *r = NULL;
  assert_ok(tarn__records_open(file(), 0, &options, &r));
  return r;
}

static tarn__disk_records *open_in(size_t budget) {
  return open_with((tarn__disk_records_options){.budget = budget});
}

static tarn__disk_records_tally tally_of(const tarn__disk_records *r) {
  tarn__disk_records_tally tally;
  tarn__records_count(r, &tally);
  return tally;
}

static void *pin_one(tarn__disk_records *r, uint64_t number) {
  void *record = NULL;
  assert_ok(tarn__records_pin(r, &number, 1, &record));
  return record;
}

static void unpin_one(tarn__disk_records *r, void *record, bool dirty) {
  tarn__records_unpin(r, &record, 1, dirty);
}

static void put(tarn__disk_records *r, uint64_t number, int byte, size_t size) {
  void *record = pin_one(r, number);
  memset(record, byte, size);
  unpin_one(r, record, true);
}

static void see(tarn__disk_records *r, uint64_t number, int byte, size_t size) {
  const unsigned char *record = pin_one(r, number);
  for (size_t i = 0; i < size; i++)
    require(record[i] == byte);
  unpin_one(r, (void *)(uintptr_t)record, false);
}

// --- what is kept ------------------------------------------------------------

// Each size with a budget of a few records.
TEST(records_of_any_size_come_back) {
  static const size_t sizes[] = {1,    4,    100,  256,           2048,    2049,
                                 4096, 4097, 9000, (4 * MIB) + 4, 64 * MIB};
  enum { COUNT = 40 };
  for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
    size_t size = sizes[k];
    size_t count = size > MIB ? 3 : COUNT;
    make(size, count);
    tarn__disk_records *r = open_in(MIB + 20 * size + (size_t)2 * 4096);
    for (uint64_t i = 0; i < count; i++)
      put(r, i, (int)(i + 1), size);
    assert_ok(tarn__records_flush(r, NULL));
    tarn__records_close(r);
    r = open_in(MIB + 20 * size + (size_t)2 * 4096);
    for (uint64_t i = count; i-- > 0;)
      see(r, i, (int)(i + 1), size);
    ck_assert_uint_le(
        folder_size(file()),
        3 * tarn__records_file_size(&(tarn__disk_records_shape){size, count}) +
            MIB);
    tarn__records_close(r);
  }
}

TEST(what_they_are_is_in_the_file) {
  unsigned char note[TARN__RECORDS_NOTE] = "at first";
  tarn__disk_records_info info;
  const tarn__disk_records_shape shape = {300, 12345};
  assert_ok(tarn__records_create(file(), &shape, note));
  assert_ok(tarn__records_ask(file(), &info));
  ck_assert_uint_eq(info.shape.size, 300);
  ck_assert_uint_eq(info.shape.count, 12345);
  ck_assert_uint_eq(info.newest, 1);
  ck_assert_uint_eq(info.before, 0);
  tarn__disk_records *r = open_in(MIB);
  ck_assert_mem_eq(tarn__records_tell(r).note, note, sizeof note);
  snprintf((char *)note, sizeof note, "and then");
  assert_ok(tarn__records_flush(r, note));
  ck_assert_mem_eq(tarn__records_tell(r).note, note, sizeof note);
  ck_assert_uint_eq(tarn__records_tell(r).newest, 2);
  ck_assert_uint_eq(tarn__records_tell(r).before, 1);
  tarn__records_close(r);
}

TEST(an_older_epoch_is_opened_by_its_number) {
  tarn__disk_records *r = NULL;
  const tarn__disk_records_options options = {.budget = MIB};
  make(256, 1000);
  r = open_in(MIB);
  for (int i = 2; i < 5; i++) {
    put(r, 500, i, 256);
    assert_ok(tarn__records_flush(r, NULL));
  }
  tarn__records_close(r);
  assert_fails(tarn__records_open(file(), 2, &options, &r), TARN_E_INVALID,
               "no epoch 2");
  assert_ok(tarn__records_open(file(), 3, &options, &r));
  see(r, 500, 3, 256);
  tarn__records_close(r);
}

// --- pins --------------------------------------------------------------------

TEST(records_of_a_block_are_read_once) {
  uint64_t numbers[64];
  void *pointers[64];
  make(256, 1000);
  tarn__disk_records *r = open_in(MIB);
  for (uint64_t i = 0; i < 1000; i++)
    put(r, i, (int)(i & 0xff), 256);
  assert_ok(tarn__records_flush(r, NULL));
  ck_assert_uint_eq(tally_of(r).blocks_written, 63);
  tarn__records_close(r);
  r = open_in(MIB);
  for (size_t i = 0; i < 64; i++)
    numbers[i] = 160 + i * 7 % 32;
  assert_ok(tarn__records_pin(r, numbers, 64, pointers));
  for (size_t i = 0; i < 64; i++) {
    require(*(unsigned char *)pointers[i] == (numbers[i] & 0xff));
    require(pointers[i] == pointers[i & 31]);
  }
  tarn__disk_records_tally tally = tally_of(r);
  ck_assert_uint_eq(tally.asked, 64);
  ck_assert_uint_eq(tally.blocks_read, 2);
  ck_assert_uint_eq(tally.bytes_read, 8192);
  ck_assert_uint_eq(tally.used, 32);
  assert_fails(tarn__records_flush(r, NULL), TARN_E_STATE, "64 records");
  tarn__records_unpin(r, pointers, 64, false);
  ck_assert_uint_eq(tally_of(r).dirty, 0);
  assert_ok(tarn__records_flush(r, NULL));
  ck_assert_uint_eq(tally_of(r).blocks_written, 0);
  tarn__records_close(r);
}

// A hundred records change in each of 50 blocks, of which a few fit: each
// write takes along what has changed in its block.
TEST(what_changes_in_a_block_is_written_together) {
  enum { ALL = 128 * 50 };
  make(32, ALL);
  tarn__disk_records *r = open_in(250000);
  for (uint64_t block = 0; block < 50; block++)
    for (uint64_t i = 0; i < 100; i++)
      put(r, block * 128 + i, (int)(block + i + 1), 32);
  tarn__disk_records_tally tally = tally_of(r);
  ck_assert_uint_lt(tally.lines, ALL);
  assert_ok(tarn__records_flush(r, NULL));
  tally = tally_of(r);
  ck_assert_uint_ge(tally.records_written, 5000);
  ck_assert_uint_lt(tally.blocks_written, tally.records_written / 20);
  for (uint64_t block = 0; block < 50; block++)
    for (uint64_t i = 0; i < 128; i += 9)
      see(r, block * 128 + i, i < 100 ? (int)(block + i + 1) : 0, 32);
  tarn__records_close(r);
}

TEST(too_many_pins_are_refused_and_undone) {
  enum { COUNT = 4000 };
  static uint64_t numbers[COUNT];
  static void *pointers[COUNT];
  make(256, COUNT);
  tarn__disk_records *r = open_in(MIB / 4);
  size_t lines = tally_of(r).lines;
  ck_assert_uint_lt(lines, COUNT);
  put(r, 77, 7, 256);
  for (size_t i = 0; i < COUNT; i++)
    numbers[i] = i;
  assert_fails(tarn__records_pin(r, numbers, COUNT, pointers), TARN_FULL,
               "no room");
  for (size_t i = 0; i < COUNT; i++)
    require(pointers[i] == NULL);
  assert_ok(tarn__records_pin(r, numbers, lines / 4, pointers));
  tarn__records_unpin(r, pointers, lines / 4, false);
  see(r, 77, 7, 256);
  assert_ok(tarn__records_flush(r, NULL));
  tarn__records_close(r);
}

TEST(a_number_beyond_the_last_is_named) {
  uint64_t numbers[] = {1, 2, 100};
  void *pointers[3];
  make(256, 100);
  tarn__disk_records *r = open_in(MIB);
  assert_fails(tarn__records_pin(r, numbers, 3, pointers), TARN_E_INVALID,
               "number 100 at position 2");
  ck_assert_uint_eq(tally_of(r).used, 0);
  assert_ok(tarn__records_pin(r, numbers, 0, pointers));
  tarn__records_close(r);
}

// --- what is begun -----------------------------------------------------------

// Numbers of a window, some of them several times.
static void draw(uint64_t *numbers, size_t count, uint64_t all, uint64_t seed) {
  for (size_t i = 0; i < count; i++)
    numbers[i] = mix(seed, i % (count - count / 8)) % all;
}

// Each window changes while the next one is on its way, and changed records
// have to give way for it.
TEST(windows_are_begun_while_others_change) {
  enum { ALL = 9000, COUNT = 200, ROUNDS = 300 };
  static unsigned char wanted[ALL];
  static uint64_t numbers[2][COUNT];
  void *pointers[COUNT];
  size_t begun = 0;
  make(256, ALL);
  tarn__disk_records *r = open_in(MIB);
  ck_assert_uint_lt(tally_of(r).lines, ALL / 2);
  memset(wanted, 0, sizeof wanted);
  draw(numbers[0], COUNT, ALL, 0);
  for (size_t n = 0; n < ROUNDS; n++) {
    const uint64_t *now = numbers[n % 2];
    uint64_t *next = numbers[(n + 1) % 2];
    assert_ok(tarn__records_pin(r, now, COUNT, pointers));
    ck_assert(!tarn__records_has_begun(r));
    draw(next, COUNT, ALL, n + 1);
    tarn__records_begin(r, next, COUNT);
    begun += tarn__records_has_begun(r);
    for (size_t i = 0; i < COUNT; i++) {
      const unsigned char *record = pointers[i];
      require(record[0] == wanted[now[i]] && record[255] == wanted[now[i]]);
    }
    for (size_t i = 0; i < COUNT; i++) {
      wanted[now[i]] = (unsigned char)(n + 1);
      memset(pointers[i], (int)(n + 1), 256);
    }
    tarn__records_unpin(r, pointers, COUNT, true);
    if (n % 50 != 49) continue;
    tarn__records_stop(r);
    assert_ok(tarn__records_flush(r, NULL));
  }
  tarn__records_stop(r);
  ck_assert_uint_gt(begun, ROUNDS / 2);
  ck_assert_uint_gt(tally_of(r).blocks_merged, 0);
  assert_ok(tarn__records_flush(r, NULL));
  tarn__records_close(r);
  r = open_in(MIB);
  for (uint64_t i = 0; i < ALL; i++)
    see(r, i, wanted[i], 256);
  tarn__records_close(r);
}

TEST(what_was_begun_may_be_left) {
  enum { COUNT = 100, MANY = 1000 };
  uint64_t numbers[COUNT];
  static uint64_t many[MANY];
  void *pointers[COUNT];
  make(256, 4000);
  tarn__disk_records *r = open_in(MIB);
  put(r, 17, 5, 256);
  draw(numbers, COUNT, 4000, 1);
  draw(many, MANY, 4000, 2);
  tarn__records_begin(r, numbers, COUNT);
  ck_assert(tarn__records_has_begun(r));
  see(r, 17, 5, 256);  // another pin ends it
  ck_assert(!tarn__records_has_begun(r));
  tarn__records_begin(r, numbers, COUNT);
  tarn__records_begin(r, numbers + 1, COUNT - 1);
  ck_assert(tarn__records_has_begun(r));
  assert_ok(tarn__records_pin(r, numbers + 1, COUNT - 1, pointers));
  tarn__records_begin(r, many, MANY);  // too many to be pinned beside those
  ck_assert(!tarn__records_has_begun(r));
  tarn__records_unpin(r, pointers, COUNT - 1, false);
  numbers[5] = 4000;
  tarn__records_begin(r, numbers, COUNT);
  ck_assert(!tarn__records_has_begun(r));
  tarn__records_stop(r);
  assert_ok(tarn__records_flush(r, NULL));  // which no pin may be left for
  tarn__records_close(r);
}

// --- budgets -----------------------------------------------------------------

TEST(a_budget_is_divided_and_kept) {
  static const size_t sizes[] = {4, 256, 3000, 100000};
  for (size_t k = 0; k < 4; k++) {
    for (size_t budget = 4 * MIB; budget <= 64 * MIB; budget *= 4) {
      make(sizes[k], 8 * budget / sizes[k]);
      tarn__disk_records *r = open_in(budget);
      tarn__disk_records_tally tally = tally_of(r);
      ck_assert_uint_le(tally.memory, budget);
      ck_assert_uint_ge(tally.memory, budget - 17 * (sizes[k] + 64));
      ck_assert_uint_ge(tally.lines * sizes[k],
                        (sizes[k] < 10 ? budget / 6 : budget / 4 * 3));
      tarn__records_close(r);
    }
  }
}

TEST(a_small_table_takes_less_than_its_budget) {
  make(256, 100);
  tarn__disk_records *r = open_in(64 * MIB);
  ck_assert_uint_eq(tally_of(r).lines, 208);
  ck_assert_uint_lt(tally_of(r).memory, 3 * MIB);
  tarn__records_close(r);
}

TEST(a_budget_that_is_too_small_is_told_what_is_needed) {
  tarn__disk_records *r = NULL;
  make(256, 100000);
  assert_fails(
      tarn__records_open(file(), 0,
                         &(tarn__disk_records_options){.budget = 1000}, &r),
      TARN_E_INVALID, "need ");
  size_t needed = strtoul(strstr(tarn_last_error(), "need ") + 5, NULL, 10);
  ck_assert_uint_gt(needed, 70000);
  r = open_in(needed);
  ck_assert_uint_ge(tally_of(r).lines, 16);
  put(r, 5, 5, 256);
  tarn__records_close(r);
}

// --- refusals and failures ---------------------------------------------------

TEST(no_store_of_another_shape_is_made) {
  static const tarn__disk_records_shape shapes[] = {
      {0, 1}, {1, 0}, {64 * MIB + 1, 1}, {4096, UINT64_C(1) << 31}};
  for (size_t i = 0; i < 4; i++) {
    assert_fails(tarn__records_create(file(), &shapes[i], NULL), TARN_E_INVALID,
                 "records of");
    ck_assert_uint_eq(tarn__records_file_size(&shapes[i]), 0);
  }
}

TEST(other_files_of_blocks_are_no_stores) {
  tarn__disk_records_info info;
  tarn__disk_records *r = NULL;
  const tarn__disk_records_options options = {.budget = MIB};
  assert_ok(tarn__blocks_create(file(), 4096, 100, NULL));
  assert_fails(tarn__records_ask(file(), &info), TARN_E_CORRUPT, "no records");
  assert_fails(tarn__records_open(file(), 0, &options, &r), TARN_E_CORRUPT,
               "byte 4160");
  ck_assert_ptr_null(r);
}

TEST(a_damaged_block_is_told_and_the_rest_stays) {
  void *record = NULL;
  uint64_t number = 20;
  make(256, 64);
  tarn__disk_records *r = open_in(MIB);
  for (uint64_t i = 0; i < 64; i++)
    put(r, i, 1, 256);
  assert_ok(tarn__records_flush(r, NULL));
  tarn__records_close(r);
  folder_flip(file(), 8192 + 4096 + 5, 1);
  r = open_in(MIB);
  assert_fails(tarn__records_pin(r, &number, 1, &record), TARN_E_CORRUPT,
               "bytes 12288 to 16383");
  see(r, 5, 1, 256);
  see(r, 50, 1, 256);
  uint64_t numbers[] = {40, 20, 41};
  void *pointers[3];
  tarn__records_begin(r, numbers, 3);
  ck_assert(tarn__records_has_begun(r));
  assert_fails(tarn__records_pin(r, numbers, 3, pointers), TARN_E_CORRUPT,
               "bytes 12288 to 16383");
  tarn__records_begin(r, numbers, 3);
  tarn__records_stop(r);
  see(r, 40, 1, 256);
  assert_ok(tarn__records_flush(r, NULL));
  tarn__records_close(r);
}

TEST(what_gives_way_is_kept_when_it_cannot_be_written) {
  make(256, 4000);
  tarn__disk_records *r = open_with(
      (tarn__disk_records_options){.budget = MIB / 4, .watch = &crash_watch});
  crash_record(file(), NULL);
  uint64_t number = 0;
  while (number < tally_of(r).lines)
    put(r, number++, 3, 256);
  ck_assert_uint_gt(tally_of(r).dirty, number / 2);
  crash_fail(1, ENOSPC, true);
  void *record = NULL;
  tarn_status status = TARN_OK;
  for (uint64_t i = number; status == TARN_OK; i++) {
    status = tarn__records_pin(r, &i, 1, &record);
    if (status == TARN_OK) unpin_one(r, record, false);
  }
  assert_status(status, TARN_E_IO);
  assert_error_says("No space left");
  crash_fail(0, 0, false);
  for (uint64_t i = 0; i < number; i++)
    see(r, i, 3, 256);
  assert_ok(tarn__records_flush(r, NULL));
  tarn__records_close(r);
}

static void scenario(void *context) {
  (void)context;
  const tarn__disk_records_shape shape = {256, 5000};
  tarn__disk_records *r = NULL;
  tarn__disk_records_info info;
  tarn_status status = tarn__records_create(file(), &shape, NULL);
  if (status == TARN_OK) status = tarn__records_ask(file(), &info);
  if (status == TARN_OK) {
    const tarn__disk_records_options options = {.budget = MIB / 2,
                                                .threads = true};
    status = tarn__records_open(file(), 0, &options, &r);
    require((status == TARN_OK) == (r != NULL));
  }
  require(status == TARN_OK || status == TARN_E_NOMEM);
  if (status == TARN_OK) {
    put(r, 3, 3, 256);
    assert_ok(tarn__records_flush(r, NULL));
  }
  tarn__records_close(r);
}

TEST(without_memory_nothing_is_left) {
  faults_install();
  ck_assert_uint_gt(faults_sweep(scenario, NULL), 15);
}
