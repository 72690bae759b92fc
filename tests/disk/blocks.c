// Files of blocks: what they keep, what they refuse, and what damage to them
// is told as.
#include "disk/blocks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/crc32c.h"
#include "crash.h"
#include "folder.h"
#include "support/faults.h"
#include "support/mix.h"
#include "support/run.h"

enum { BLOCK = 4096, COUNT = 1000, HEAD = 8192 };

static _Alignas(4096) unsigned char bytes[BLOCK];
static const unsigned char no_note[TARN__ROOT_NOTE];
static unsigned char note[TARN__ROOT_NOTE];

static const char *file(void) {
  return folder_path(0, "blocks");
}

static void set_up(void) {
  folder_make(0);
}

FIXTURE(set_up, NULL);

// --- blocks that say which they are ------------------------------------------

static void fill(uint64_t block, uint64_t version) {
  for (size_t i = 0; i < BLOCK / sizeof(uint64_t); i++) {
    uint64_t word = version == 0 ? 0 : mix(block, version + i * 1000);
    memcpy(bytes + i * sizeof word, &word, sizeof word);
  }
}

static void put(tarn__disk_blocks *b, uint64_t block, uint64_t version) {
  tarn__disk_block_request request = {.block = block, .data = bytes};
  fill(block, version);
  tarn__blocks_write(b, &request);
  ck_assert_ptr_eq(tarn__blocks_wait(b), &request);
  assert_ok(tarn__blocks_check(b, &request));
}

static tarn_status get(tarn__disk_blocks *b, uint64_t block) {
  tarn__disk_block_request request = {.block = block, .data = bytes};
  tarn__blocks_read(b, &request);
  ck_assert_ptr_eq(tarn__blocks_wait(b), &request);
  return tarn__blocks_check(b, &request);
}

static void see(tarn__disk_blocks *b, uint64_t block, uint64_t version) {
  static unsigned char read[BLOCK];
  assert_ok(get(b, block));
  memcpy(read, bytes, BLOCK);
  fill(block, version);
  ck_assert_mem_eq(read, bytes, BLOCK);
}

static void make(void) {
  assert_ok(tarn__blocks_create(file(), BLOCK, COUNT, NULL));
}

static tarn__disk_blocks *open_at(uint64_t epoch) {
  tarn__disk_blocks *b = NULL;
  assert_ok(tarn__blocks_open(file(), epoch, NULL, &b));
  return b;
}

// Epochs 2 and 3 of a file, in which block |i| has version 2 or 3.
static void make_two(void) {
  make();
  tarn__disk_blocks *b = open_at(0);
  for (uint64_t version = 2; version <= 3; version++) {
    for (uint64_t i = 0; i < COUNT; i += 100)
      put(b, i, version);
    assert_ok(tarn__blocks_flush(b, no_note));
  }
  tarn__blocks_close(b);
}

static void must_not_open(uint64_t epoch, tarn_status status,
                          const char *text) {
  tarn__disk_blocks *b = NULL;
  assert_fails(tarn__blocks_open(file(), epoch, NULL, &b), status, text);
  ck_assert_ptr_null(b);
}

// --- what is kept ------------------------------------------------------------

TEST(a_new_file_is_zeros_and_epoch_1) {
  snprintf((char *)note, sizeof note, "what it is");
  assert_ok(tarn__blocks_create(file(), BLOCK, COUNT, note));
  tarn__disk_blocks *b = open_at(0);
  tarn__disk_blocks_info info = tarn__blocks_tell(b);
  ck_assert_uint_eq(info.block, BLOCK);
  ck_assert_uint_eq(info.count, COUNT);
  ck_assert_uint_eq(info.newest, 1);
  ck_assert_uint_eq(info.before, 0);
  ck_assert_mem_eq(tarn__blocks_note(b), note, sizeof note);
  for (uint64_t i = 0; i < COUNT; i += 37)
    see(b, i, 0);
  ck_assert_ptr_null(tarn__blocks_wait(b));
  tarn__blocks_close(b);
}

TEST(what_was_not_flushed_is_lost) {
  make_two();
  tarn__disk_blocks *b = open_at(0);
  put(b, 0, 9);
  put(b, 1, 9);
  see(b, 0, 9);
  tarn__blocks_close(b);
  b = open_at(0);
  see(b, 0, 3);
  see(b, 1, 0);
  tarn__blocks_close(b);
}

TEST(an_older_epoch_ends_the_newer_one) {
  make_two();
  tarn__disk_blocks *b = open_at(2);
  ck_assert_uint_eq(tarn__blocks_tell(b).newest, 2);
  ck_assert_uint_eq(tarn__blocks_tell(b).before, 0);
  see(b, 100, 2);
  tarn__blocks_close(b);
  must_not_open(3, TARN_E_INVALID, "no epoch 3");
  b = open_at(0);
  put(b, 100, 4);
  assert_ok(tarn__blocks_flush(b, no_note));
  ck_assert_uint_eq(tarn__blocks_tell(b).newest, 3);
  tarn__blocks_close(b);
  b = open_at(2);
  see(b, 100, 2);
  tarn__blocks_close(b);
}

TEST(a_file_is_open_once) {
  make();
  tarn__disk_blocks *b = open_at(0);
  must_not_open(0, TARN_E_STATE, "open already");
  tarn__blocks_close(b);
  tarn__blocks_close(open_at(0));
}

// All blocks change between any two flushes, some of them more than once.
TEST(a_file_is_no_larger_than_three_epochs) {
  // What it grew in advance is an eighth and a quarter MiB at most.
  enum { FEW = 50, MOST = (3 * FEW + 1) * 9 / 8 + 65 };
  assert_ok(tarn__blocks_create(file(), BLOCK, FEW, NULL));
  tarn__disk_blocks *b = open_at(0);
  for (uint64_t epoch = 2; epoch < 30; epoch++) {
    for (uint64_t i = 0; i < FEW; i++) {
      put(b, i, epoch);
      if (mix(epoch, i) % 3 == 0) put(b, i, epoch + 1);
    }
    assert_ok(tarn__blocks_flush(b, no_note));
  }
  tarn__blocks_close(b);
  ck_assert_uint_le(folder_size(file()), HEAD + (size_t)MOST * BLOCK);
}

TEST(a_file_on_a_disk_is_read_past_the_page_cache) {
  folder_make(1);
  make();
  tarn__disk_blocks *b = open_at(0);
  put(b, 7, 7);
  assert_ok(tarn__blocks_flush(b, no_note));
  see(b, 7, 7);
  if (!tarn__blocks_is_direct(b))
    note_skipped("O_DIRECT", "the file system of /tmp has none");
  tarn__blocks_close(b);
  const tarn__disk_blocks_options options = {.cached = true, .threads = true};
  assert_ok(tarn__blocks_open(file(), 0, &options, &b));
  ck_assert(!tarn__blocks_is_direct(b));
  ck_assert_str_eq(tarn__blocks_method(b), "threads");
  see(b, 7, 7);
  tarn__blocks_close(b);
}

// --- what is refused ---------------------------------------------------------

TEST(no_file_of_another_shape_is_made) {
  assert_fails(tarn__blocks_create(file(), 0, 1, NULL), TARN_E_INVALID,
               "1 blocks of 0 bytes");
  assert_status(tarn__blocks_create(file(), 5000, 1, NULL), TARN_E_INVALID);
  assert_status(tarn__blocks_create(file(), (size_t)128 << 20, 1, NULL),
                TARN_E_INVALID);
  assert_status(tarn__blocks_create(file(), BLOCK, 0, NULL), TARN_E_INVALID);
  assert_status(tarn__blocks_create(file(), BLOCK, UINT64_C(1) << 31, NULL),
                TARN_E_INVALID);
  assert_status(
      tarn__blocks_create(folder_path(1, "no/blocks"), BLOCK, 1, NULL),
      TARN_E_IO);
  ck_assert_uint_eq(tarn__blocks_memory(0, 1), 0);
  ck_assert_uint_ge(tarn__blocks_memory(BLOCK, COUNT), (size_t)11 * COUNT);
}

TEST(what_is_no_such_file_is_named) {
  tarn__disk_blocks_info info;
  must_not_open(0, TARN_E_IO, "cannot open it: No such file");
  assert_fails(tarn__blocks_ask(file(), &info, note), TARN_E_IO,
               "No such file");
  make();
  folder_resize(file(), 0);
  must_not_open(0, TARN_E_CORRUPT, "ends at byte 0");
  folder_resize(file(), HEAD);
  must_not_open(0, TARN_E_CORRUPT, "\"TARNDISK\"");
  assert_fails(tarn__blocks_ask(file(), &info, note), TARN_E_CORRUPT,
               "no root");
  ck_assert_uint_eq(info.newest, 0);
}

// --- damage ------------------------------------------------------------------

// Every byte of either root.
TEST(a_damaged_root_is_as_good_as_none) {
  make_two();
  for (size_t at = 0; at < HEAD; at += 7) {
    tarn__disk_blocks_info info;
    folder_flip(file(), at, 1);
    tarn_status status = tarn__blocks_ask(file(), &info, note);
    require(status == TARN_OK);
    require(info.newest == (at < HEAD / 2 ? 3 : 2) && info.before == 0);
    folder_flip(file(), at, 1);
  }
  folder_flip(file(), 700, 4);
  folder_flip(file(), 5000, 4);
  must_not_open(0, TARN_E_CORRUPT, "checksum");
}

// Flips a byte in each place of the file: it is in no use, or found.
TEST(damage_to_any_place_is_found_or_not_in_the_way) {
  make_two();
  size_t pages = 0;
  size_t blocks = 0;
  size_t none = 0;
  for (uint64_t at = HEAD + 99; at < folder_size(file()); at += BLOCK) {
    folder_copy(file(), folder_path(1, "whole"));
    folder_flip(file(), at, 16);
    tarn__disk_blocks *b = NULL;
    tarn_status status = tarn__blocks_open(file(), 0, NULL, &b);
    if (status != TARN_OK) {
      assert_status(status, TARN_E_CORRUPT);
      assert_error_says("a page of the map");
      pages++;
    }
    size_t damaged = 0;
    for (uint64_t i = 0; status == TARN_OK && i < COUNT; i += 100) {
      if (get(b, i) == TARN_OK) {
        see(b, i, 3);
      } else {
        assert_error_says("a block is damaged");
        damaged++;
      }
    }
    ck_assert_uint_le(damaged, 1);
    blocks += damaged;
    none += status == TARN_OK && damaged == 0;
    tarn__blocks_close(b);
    folder_copy(folder_path(1, "whole"), file());
  }
  ck_assert_uint_eq(pages, 2);
  ck_assert_uint_eq(blocks, 10);
  ck_assert_uint_ge(none, 12);
}

// The newest one opens, and its flush makes a new one beside it.
TEST(a_damaged_epoch_before_is_not_kept) {
  make_two();
  tarn__disk_blocks *b = NULL;
  bool found = false;
  for (uint64_t at = HEAD; !found && at < folder_size(file()); at += BLOCK) {
    folder_copy(file(), folder_path(1, "whole"));
    folder_flip(file(), at, 16);
    tarn_status status = tarn__blocks_open(file(), 0, NULL, &b);
    found = status == TARN_OK && tarn__blocks_tell(b).before == 0;
    if (!found) {
      tarn__blocks_close(b);
      folder_copy(folder_path(1, "whole"), file());
    }
  }
  ck_assert(found);
  put(b, 5, 5);
  assert_ok(tarn__blocks_flush(b, no_note));
  ck_assert_uint_eq(tarn__blocks_tell(b).before, 3);
  tarn__blocks_close(b);
  b = open_at(3);
  see(b, 5, 0);
  see(b, 100, 3);
  tarn__blocks_close(b);
}

TEST(a_file_that_was_cut_is_told_as_that) {
  make_two();
  folder_resize(file(), HEAD + 3 * BLOCK);
  must_not_open(0, TARN_E_CORRUPT, "and should go on to");
}

// --- failures ----------------------------------------------------------------

TEST(a_flush_whose_sync_failed_must_be_opened_again) {
  make_two();
  const tarn__disk_blocks_options options = {.watch = &crash_watch};
  tarn__disk_blocks *b = NULL;
  assert_ok(tarn__blocks_open(file(), 0, &options, &b));
  crash_record(file(), NULL);
  put(b, 0, 5);
  crash_fail(3, EIO, false);  // two pages of a map come before it
  assert_fails(tarn__blocks_flush(b, no_note), TARN_E_IO, "epoch 3 or 4");
  assert_fails(tarn__blocks_flush(b, no_note), TARN_E_IO, "opened again");
  tarn__disk_block_request request = {.block = 1, .data = bytes};
  tarn__blocks_write(b, &request);
  ck_assert_ptr_eq(tarn__blocks_wait(b), &request);
  assert_fails(tarn__blocks_check(b, &request), TARN_E_IO, "opened again");
  see(b, 0, 5);
  tarn__blocks_close(b);
  b = open_at(0);
  see(b, 0, 3);
  tarn__blocks_close(b);
}

static void scenario(void *context) {
  (void)context;
  tarn__disk_blocks *b = NULL;
  tarn__disk_blocks_info info;
  tarn_status status = tarn__blocks_create(file(), BLOCK, COUNT, NULL);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  if (status != TARN_OK) return;
  status = tarn__blocks_ask(file(), &info, note);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  status = tarn__blocks_open(file(), 0, NULL, &b);
  require((status == TARN_OK) == (b != NULL));
  require(status == TARN_OK || status == TARN_E_NOMEM);
  if (status == TARN_OK) {
    put(b, 3, 3);
    assert_ok(tarn__blocks_flush(b, no_note));
  }
  tarn__blocks_close(b);
}

TEST(without_memory_nothing_is_left) {
  faults_install();
  ck_assert_uint_gt(faults_sweep(scenario, NULL), 8);
}
