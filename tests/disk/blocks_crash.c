// A file of blocks that loses power, or its process, at any moment: it opens
// with an epoch that is whole, the newest whose flush had returned or the one
// after, and the epoch before that is there too.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "crash.h"
#include "disk/blocks.h"
#include "folder.h"
#include "oracle.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/mix.h"
#include "support/run.h"

SECONDS(3000);

enum {
  USED = 64,  // blocks that are written
  UNDER_WAY = 8,
  DEPTH = 8,
};

// --- blocks and their versions -----------------------------------------------

typedef struct shape {
  size_t block;
  uint64_t count;
} shape;

// One, two and three levels of maps; and large blocks.
static const shape shapes[] = {
    {4096, 40}, {4096, 600}, {4096, 300000}, {12288, 1000}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static struct {
  const shape *s;
  tarn__disk_blocks_options options;
  unsigned char *bytes;  // for UNDER_WAY + 1 blocks
} m;

// The blocks that are used are far apart where there are many.
static uint64_t block_of(size_t used) {
  uint64_t apart = m.s->count / USED;
  return used * apart + used % apart;
}

static size_t used_blocks(void) {
  return m.s->count < USED ? (size_t)m.s->count : USED;
}

static uint64_t number_of(size_t used) {
  return m.s->count < USED ? used : block_of(used);
}

static void fill(unsigned char *bytes, size_t used, uint32_t version) {
  memset(bytes, 0, m.s->block);
  for (size_t i = 0; version != 0 && i < m.s->block; i += CRASH_SECTOR) {
    uint64_t word = mix(used * 64 + i / CRASH_SECTOR, version);
    memcpy(bytes + i + used, &word, sizeof word);
  }
}

static bool is_version(const unsigned char *bytes, size_t used,
                       uint32_t version) {
  static unsigned char wanted[12288];
  fill(wanted, used, version);
  return memcmp(bytes, wanted, m.s->block) == 0;
}

// --- what a file has ---------------------------------------------------------

static tarn_status try_to_read(tarn__disk_blocks *blocks, size_t used,
                               unsigned char *bytes) {
  tarn__disk_block_request request = {.block = number_of(used), .data = bytes};
  tarn__blocks_read(blocks, &request);
  require(tarn__blocks_wait(blocks) == &request);
  return tarn__blocks_check(blocks, &request);
}

static void read_used(tarn__disk_blocks *blocks, size_t used,
                      unsigned char *bytes) {
  tarn_status status = try_to_read(blocks, used, bytes);
  if (status != TARN_OK) ck_abort_msg("%s", tarn_last_error());
}

// --- a file for the oracle ---------------------------------------------------

static oracle_epochs epochs_of(const tarn__disk_blocks_info *info) {
  return (oracle_epochs){info->newest, info->before};
}

static oracle_epochs ask(const char *path) {
  tarn__disk_blocks_info info;
  unsigned char note[TARN__ROOT_NOTE];
  unsigned char wanted[ORACLE_NOTE];
  assert_ok(tarn__blocks_ask(path, &info, note));
  oracle_note(info.newest, wanted);
  require(memcmp(note, wanted, sizeof note) == 0);
  return epochs_of(&info);
}

static void *open_file(const char *path, uint64_t epoch, bool looks) {
  const tarn__disk_blocks_options look = {
      .depth = 4, .threads = true, .cached = true};
  tarn__disk_blocks *blocks = NULL;
  assert_ok(
      tarn__blocks_open(path, epoch, looks ? &look : &m.options, &blocks));
  return blocks;
}

static void close_file(void *file) {
  tarn__blocks_close(file);
}

static oracle_epochs tell(const void *file) {
  tarn__disk_blocks_info info = tarn__blocks_tell(file);
  return epochs_of(&info);
}

static const void *note_of(const void *file) {
  return tarn__blocks_note(file);
}

static void see(void *file, const uint32_t *versions) {
  static unsigned char bytes[12288 + 4096];
  unsigned char *at = bytes + (-(uintptr_t)bytes & 4095);
  for (size_t i = 0; i < used_blocks(); i++) {
    read_used(file, i, at);
    if (!is_version(at, i, versions[i]))
      ck_abort_msg("block %zu is another version", i);
  }
}

static tarn_status flush_file(void *file, const void *note) {
  return tarn__blocks_flush(file, note);
}

static const oracle_kind blocks_kind = {
    TARN__ROOT_NOTE, ask, open_file, close_file, tell,
    note_of,         see, flush_file};

// --- operations --------------------------------------------------------------

static void wait_all(void) {
  tarn__disk_block_request *request = NULL;
  while ((request = tarn__blocks_wait(oracle.file)) != NULL)
    require(tarn__blocks_check(oracle.file, request) == TARN_OK);
}

static void write_some(void) {
  tarn__disk_block_request requests[UNDER_WAY];
  size_t count = 1 + oracle_draw(UNDER_WAY);
  size_t first = oracle_draw(used_blocks());
  for (size_t i = 0; i < count; i++) {
    size_t used = (first + i * 5) % used_blocks();
    unsigned char *bytes = m.bytes + i * m.s->block;
    oracle.now[used] = ++oracle.version;
    fill(bytes, used, oracle.now[used]);
    requests[i] =
        (tarn__disk_block_request){.block = number_of(used), .data = bytes};
    tarn__blocks_write(oracle.file, &requests[i]);
  }
  wait_all();
}

static void read_one(void) {
  size_t used = oracle_draw(used_blocks());
  read_used(oracle.file, used, m.bytes);
  require(is_version(m.bytes, used, oracle.now[used]));
}

static void step(void) {
  size_t what = oracle_draw(100);
  if (what < 60) {
    write_some();
  } else if (what < 80) {
    read_one();
  } else if (what < 97) {
    assert_ok(oracle_flush());
  } else if (what < 99) {
    oracle_reopen();
  } else {
    oracle_crash();
  }
}

// --- random operations -------------------------------------------------------

static void create(void) {
  assert_ok(tarn__blocks_create(oracle.path, m.s->block, m.s->count, NULL));
}

static void choose_shape(const shape *s) {
  memset(&m, 0, sizeof m);
  m.s = s;
  require(posix_memalign((void **)&m.bytes, 4096,
                         (UNDER_WAY + 1) * m.s->block) == 0);
  after_test(free, m.bytes);
}

static void begin(size_t i, unsigned chance) {
  choose_shape(&shapes[i / 2 % SHAPES]);
  m.options = (tarn__disk_blocks_options){
      .depth = DEPTH, .threads = i % 2 == 1, .watch = &crash_watch};
  folder_make(0);
  oracle_begin(&blocks_kind, used_blocks(), i, chance);
  create();
  oracle_start();
}

static void end(void) {
  tarn__blocks_close(oracle.file);
  (void)oracle_see(oracle.path);
}

static void run_random(size_t i, size_t times, unsigned chance) {
  begin(i, chance);
  for (size_t k = 0; k < times; k++)
    step();
  end();
  ck_assert_uint_gt(oracle.crashes, times / 60);
  ck_assert_uint_gt(oracle.epoch, times / 20);
}

TEST_LOOP(a_crash_at_any_moment_leaves_a_flushed_epoch, 2 * SHAPES) {
  run_random((size_t)_i, EFFORT(2500, 250), EFFORT(200, 50));
}

// --- each step ---------------------------------------------------------------

// Writes, a flush, an older epoch, and two more flushes.
static void go_through(void) {
  for (size_t i = 0; i < 4; i++) {
    if (i == 2) {
      oracle_open(oracle.epoch - 1);
      oracle.has_before = false;
    }
    write_some();
    assert_ok(oracle_flush());
  }
}

TEST_LOOP(after_each_step_a_crash_leaves_a_flushed_epoch, 2 * SHAPES) {
  begin((size_t)_i, 1);
  for (size_t k = 0; k < EFFORT(4, 1); k++)
    go_through();
  end();
  ck_assert_uint_gt(oracle.crashes, EFFORT(150, 40));
}

// --- failures ----------------------------------------------------------------

// Those that fail keep their version.
static bool try_to_write(void) {
  tarn__disk_block_request requests[UNDER_WAY];
  tarn__disk_block_request *request = NULL;
  bool all = true;
  for (size_t i = 0; i < UNDER_WAY; i++) {
    unsigned char *bytes = m.bytes + i * m.s->block;
    fill(bytes, i, oracle.version + (uint32_t)i + 1);
    requests[i] =
        (tarn__disk_block_request){.block = number_of(i), .data = bytes};
    tarn__blocks_write(oracle.file, &requests[i]);
  }
  while ((request = tarn__blocks_wait(oracle.file)) != NULL) {
    size_t i = (size_t)(request - requests);
    tarn_status status = tarn__blocks_check(oracle.file, request);
    require(status == TARN_OK || status == TARN_E_IO);
    if (status == TARN_OK) oracle.now[i] = oracle.version + (uint32_t)i + 1;
    all &= status == TARN_OK;
  }
  oracle.version += UNDER_WAY;
  return all;
}

static bool try_to_see(void) {
  for (size_t i = 0; i < UNDER_WAY; i++) {
    tarn_status status = try_to_read(oracle.file, i, m.bytes);
    require(status == TARN_OK || status == TARN_E_IO);
    if (status != TARN_OK) return false;
    require(is_version(m.bytes, i, oracle.now[i]));
  }
  return true;
}

static bool try_to_flush(void) {
  tarn_status status = oracle_flush();
  require(status == TARN_OK || status == TARN_E_IO);
  return status == TARN_OK;
}

static void go_until_it_fails(void) {
  for (size_t i = 0; i < 3; i++)
    if (!try_to_write() || !try_to_see() || !try_to_flush()) return;
}

// The |n|-th part fails. A flush that failed may be tried again, unless it says
// otherwise; so may all else. False: there are fewer.
static bool fail_one(size_t n, int error) {
  crash_record(oracle.path, NULL);
  crash_fail(n, error, false);
  go_until_it_fails();
  bool failed = crash_failed();
  crash_fail(0, 0, false);
  if (!try_to_write() || !try_to_flush()) {
    require(failed);
    assert_error_says("opened again");
    oracle.flushing = true;
  }
  end();
  return failed;
}

TEST_LOOP(what_fails_loses_no_flushed_epoch, 2 * SHAPES) {
  size_t n = 1;
  begin((size_t)_i, 0);
  while (fail_one(n, n % 2 == 0 ? EIO : ENOSPC)) {
    create();
    oracle_start();
    n++;
  }
  ck_assert_uint_gt(n, 50);
}

// --- kills -------------------------------------------------------------------

static void choose_method(bool threads) {
  m.options = (tarn__disk_blocks_options){.depth = DEPTH, .threads = threads};
}

static void write_all(uint64_t epoch) {
  tarn__disk_block_request requests[UNDER_WAY];
  for (size_t first = 0; first < used_blocks(); first += UNDER_WAY) {
    for (size_t i = 0; i < UNDER_WAY && first + i < used_blocks(); i++) {
      unsigned char *bytes = m.bytes + i * m.s->block;
      fill(bytes, first + i, oracle_version(epoch, first + i));
      requests[i] = (tarn__disk_block_request){.block = number_of(first + i),
                                               .data = bytes};
      tarn__blocks_write(oracle.file, &requests[i]);
    }
    tarn__disk_block_request *request = NULL;
    while ((request = tarn__blocks_wait(oracle.file)) != NULL)
      MUST(tarn__blocks_check(oracle.file, request) == TARN_OK);
  }
}

TEST(a_killed_process_leaves_a_flushed_epoch) {
  const oracle_kills kills = {EFFORT(60, 8), 30000, choose_method, write_all};
  choose_shape(&shapes[1]);
  folder_make(1);
  oracle_begin(&blocks_kind, used_blocks(), 0, 0);
  create();
  oracle_kill(&kills);
}

// --- a million ---------------------------------------------------------------

PART("million");

TEST_LOOP(a_million_operations, 2 * SHAPES) {
  run_random((size_t)_i, EFFORT(1000000, 100000) / (2 * SHAPES), 200);
}
