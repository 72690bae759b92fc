// A file of blocks that loses power, or its process, at any moment: it opens
// with an epoch that is whole, the newest whose flush had returned or the one
// after, and the epoch before that is there too.
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "crash.h"
#include "disk/blocks.h"
#include "folder.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/mix.h"
#include "support/run.h"

SECONDS(3000);

enum {
  USED = 64,   // blocks that are written
  EPOCHS = 3,  // of which the model keeps what they were
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
  const char *path;
  const char *lost;  // a file as a crash left it
  tarn__disk_blocks *blocks;
  uint32_t now[USED];  // versions; 0: zeros
  uint32_t epochs[EPOCHS][USED];
  uint64_t epoch;   // the newest whose flush has returned
  bool has_before;  // and the one before is there
  bool flushing;
  uint32_t version;
  uint64_t seed;
  uint64_t drawn;
  unsigned chance;  // one of so many steps is a crash; 0: none is
  size_t crashes;
  unsigned char *bytes;  // for UNDER_WAY + 1 blocks
} m;

static size_t draw(size_t below) {
  return (size_t)(mix(m.seed, m.drawn++) % below);
}

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

static void note_of(uint64_t epoch, unsigned char note[TARN__ROOT_NOTE]) {
  memset(note, 0, TARN__ROOT_NOTE);
  uint64_t word = epoch == 1 ? 0 : mix(3, epoch);
  memcpy(note + TARN__ROOT_NOTE - sizeof word, &word, sizeof word);
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

// All of the file at |path| as of |epoch|; 0: the newest. Returns which it is.
static uint64_t see_epoch(const char *path, uint64_t epoch) {
  static unsigned char bytes[12288 + 4096];
  unsigned char *at = bytes + (-(uintptr_t)bytes & 4095);
  unsigned char note[TARN__ROOT_NOTE];
  const tarn__disk_blocks_options options = {
      .depth = 4, .threads = true, .cached = true};
  tarn__disk_blocks *blocks = NULL;
  tarn_status status = tarn__blocks_open(path, epoch, &options, &blocks);
  if (status != TARN_OK) ck_abort_msg("%s", tarn_last_error());
  tarn__disk_blocks_info info = tarn__blocks_tell(blocks);
  require(epoch == 0 || info.newest == epoch);
  require(info.newest + EPOCHS > m.epoch + 1 && info.newest <= m.epoch + 1);
  const uint32_t *versions = m.epochs[info.newest % EPOCHS];
  for (size_t i = 0; i < used_blocks(); i++) {
    read_used(blocks, i, at);
    if (!is_version(at, i, versions[i])) {
      ck_abort_msg("block %zu of epoch %llu is another version", i,
                   (unsigned long long)info.newest);
    }
  }
  note_of(info.newest, note);
  require(memcmp(tarn__blocks_note(blocks), note, sizeof note) == 0);
  tarn__blocks_close(blocks);
  return info.newest;
}

// What a crash has left is whole. Returns its newest epoch.
static uint64_t see_lost(const char *path) {
  tarn__disk_blocks_info info;
  unsigned char note[TARN__ROOT_NOTE];
  unsigned char wanted[TARN__ROOT_NOTE];
  assert_status(tarn__blocks_ask(path, &info, note), TARN_OK);
  uint64_t newest = see_epoch(path, 0);
  require(newest == info.newest);
  note_of(newest, wanted);
  require(memcmp(note, wanted, sizeof note) == 0);
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
  assert_ok(tarn__blocks_open(m.path, epoch, &m.options, &m.blocks));
}

static void wait_all(void) {
  tarn__disk_block_request *request = NULL;
  while ((request = tarn__blocks_wait(m.blocks)) != NULL)
    require(tarn__blocks_check(m.blocks, request) == TARN_OK);
}

static void write_some(void) {
  tarn__disk_block_request requests[UNDER_WAY];
  size_t count = 1 + draw(UNDER_WAY);
  size_t first = draw(used_blocks());
  for (size_t i = 0; i < count; i++) {
    size_t used = (first + i * 5) % used_blocks();
    unsigned char *bytes = m.bytes + i * m.s->block;
    m.now[used] = ++m.version;
    fill(bytes, used, m.now[used]);
    requests[i] =
        (tarn__disk_block_request){.block = number_of(used), .data = bytes};
    tarn__blocks_write(m.blocks, &requests[i]);
  }
  wait_all();
}

static void read_one(void) {
  size_t used = draw(used_blocks());
  read_used(m.blocks, used, m.bytes);
  require(is_version(m.bytes, used, m.now[used]));
}

static void flush(void) {
  unsigned char note[TARN__ROOT_NOTE];
  note_of(m.epoch + 1, note);
  memcpy(m.epochs[(m.epoch + 1) % EPOCHS], m.now, sizeof m.now);
  m.flushing = true;
  assert_ok(tarn__blocks_flush(m.blocks, note));
  m.flushing = false;
  m.epoch++;
  m.has_before = true;
}

// The model is as the file, which was opened with |epoch|.
static void go_back(uint64_t epoch) {
  m.epoch = epoch;
  m.has_before = tarn__blocks_tell(m.blocks).before != 0;
  memcpy(m.now, m.epochs[epoch % EPOCHS], sizeof m.now);
}

static void reopen(void) {
  bool older = m.has_before && draw(2) == 0;
  uint64_t epoch = m.epoch - (older ? 1 : 0);
  tarn__blocks_close(m.blocks);
  m.flushing = older;  // either root may be there until it is open
  m.epoch = epoch;
  open_it(epoch);
  m.flushing = false;
  go_back(epoch);
}

// Goes on with what a crash has left.
static void crash(void) {
  tarn__blocks_close(m.blocks);
  m.blocks = NULL;
  crash_leave(m.lost, mix(m.seed, m.drawn++));
  uint64_t epoch = see_lost(m.lost);
  crash_leave(m.path, mix(m.seed, m.drawn - 1));
  crash_record(m.path, lose_power);
  open_it(0);
  require(tarn__blocks_tell(m.blocks).newest == epoch);
  go_back(epoch);
  m.crashes++;
}

static void step(void) {
  size_t what = draw(100);
  if (what < 60) {
    write_some();
  } else if (what < 80) {
    read_one();
  } else if (what < 97) {
    flush();
  } else if (what < 99) {
    reopen();
  } else {
    crash();
  }
}

// --- random operations -------------------------------------------------------

static void begin(size_t i, unsigned chance) {
  folder_make(0);
  memset(&m, 0, sizeof m);
  m.s = &shapes[i / 2 % SHAPES];
  m.options = (tarn__disk_blocks_options){
      .depth = DEPTH, .threads = i % 2 == 1, .watch = &crash_watch};
  m.path = folder_path(0, "blocks");
  m.lost = folder_path(1, "lost");
  m.epoch = 1;
  m.seed = i;
  m.chance = chance;
  require(posix_memalign((void **)&m.bytes, 4096,
                         (UNDER_WAY + 1) * m.s->block) == 0);
  after_test(free, m.bytes);
  assert_ok(tarn__blocks_create(m.path, m.s->block, m.s->count, NULL));
  crash_record(m.path, lose_power);
  open_it(0);
}

static void end(void) {
  tarn__blocks_close(m.blocks);
  (void)see_lost(m.path);
}

static void run_random(size_t i, size_t times, unsigned chance) {
  begin(i, chance);
  for (size_t k = 0; k < times; k++)
    step();
  end();
  ck_assert_uint_gt(m.crashes, times / 60);
  ck_assert_uint_gt(m.epoch, times / 20);
}

TEST_LOOP(a_crash_at_any_moment_leaves_a_flushed_epoch, 2 * SHAPES) {
  run_random((size_t)_i, EFFORT(2500, 250), EFFORT(200, 50));
}

// --- each step ---------------------------------------------------------------

// Writes, a flush, an older epoch, and two more flushes.
static void go_through(void) {
  write_some();
  flush();
  write_some();
  flush();
  tarn__blocks_close(m.blocks);
  m.flushing = true;
  m.epoch--;
  open_it(m.epoch);
  m.flushing = false;
  go_back(m.epoch);
  m.has_before = false;
  write_some();
  flush();
  write_some();
  flush();
}

TEST_LOOP(after_each_step_a_crash_leaves_a_flushed_epoch, 2 * SHAPES) {
  begin((size_t)_i, 1);
  for (size_t k = 0; k < EFFORT(4, 1); k++)
    go_through();
  end();
  ck_assert_uint_gt(m.crashes, EFFORT(150, 40));
}

// --- failures ----------------------------------------------------------------

// Those that fail keep their version.
static bool try_to_write(void) {
  tarn__disk_block_request requests[UNDER_WAY];
  tarn__disk_block_request *request = NULL;
  bool all = true;
  for (size_t i = 0; i < UNDER_WAY; i++) {
    unsigned char *bytes = m.bytes + i * m.s->block;
    fill(bytes, i, m.version + (uint32_t)i + 1);
    requests[i] =
        (tarn__disk_block_request){.block = number_of(i), .data = bytes};
    tarn__blocks_write(m.blocks, &requests[i]);
  }
  while ((request = tarn__blocks_wait(m.blocks)) != NULL) {
    size_t i = (size_t)(request - requests);
    tarn_status status = tarn__blocks_check(m.blocks, request);
    require(status == TARN_OK || status == TARN_E_IO);
    if (status == TARN_OK) m.now[i] = m.version + (uint32_t)i + 1;
    all &= status == TARN_OK;
  }
  m.version += UNDER_WAY;
  return all;
}

static bool try_to_see(void) {
  for (size_t i = 0; i < UNDER_WAY; i++) {
    tarn_status status = try_to_read(m.blocks, i, m.bytes);
    require(status == TARN_OK || status == TARN_E_IO);
    if (status != TARN_OK) return false;
    require(is_version(m.bytes, i, m.now[i]));
  }
  return true;
}

static bool try_to_flush(void) {
  unsigned char note[TARN__ROOT_NOTE];
  note_of(m.epoch + 1, note);
  memcpy(m.epochs[(m.epoch + 1) % EPOCHS], m.now, sizeof m.now);
  tarn_status status = tarn__blocks_flush(m.blocks, note);
  require(status == TARN_OK || status == TARN_E_IO);
  if (status != TARN_OK) return false;
  m.epoch++;
  m.has_before = true;
  return true;
}

static void go_until_it_fails(void) {
  for (size_t i = 0; i < 3; i++)
    if (!try_to_write() || !try_to_see() || !try_to_flush()) return;
}

// The |n|-th part fails. A flush that failed may be tried again, unless it says
// otherwise; so may all else. False: there are fewer.
static bool fail_one(size_t n, int error) {
  crash_record(m.path, NULL);
  crash_fail(n, error, false);
  go_until_it_fails();
  bool failed = crash_failed();
  crash_fail(0, 0, false);
  if (!try_to_write() || !try_to_flush()) {
    require(failed);
    assert_error_says("opened again");
    m.flushing = true;
  }
  tarn__blocks_close(m.blocks);
  (void)see_lost(m.path);
  return failed;
}

TEST_LOOP(what_fails_loses_no_flushed_epoch, 2 * SHAPES) {
  size_t n = 1;
  begin((size_t)_i, 0);
  while (fail_one(n, n % 2 == 0 ? EIO : ENOSPC)) {
    m.flushing = m.has_before = false;
    m.epoch = 1;
    memset(m.now, 0, sizeof m.now);
    memset(m.epochs, 0, sizeof m.epochs);
    assert_ok(tarn__blocks_create(m.path, m.s->block, m.s->count, NULL));
    open_it(0);
    n++;
  }
  ck_assert_uint_gt(n, 50);
}

// --- kills -------------------------------------------------------------------

typedef struct shared {
  _Atomic uint64_t flushed;
} shared;

static uint32_t version_at(uint64_t epoch, size_t used) {
  return epoch == 1 ? 0 : (uint32_t)mix(epoch, used) | 1;
}

static void write_for_ever(shared *s, bool threads) {
  unsigned char note[TARN__ROOT_NOTE];
  m.options = (tarn__disk_blocks_options){.depth = DEPTH, .threads = threads};
  MUST(tarn__blocks_open(m.path, 0, &m.options, &m.blocks) == TARN_OK);
  for (uint64_t epoch = tarn__blocks_tell(m.blocks).newest + 1;; epoch++) {
    for (size_t first = 0; first < used_blocks(); first += UNDER_WAY) {
      tarn__disk_block_request requests[UNDER_WAY];
      for (size_t i = 0; i < UNDER_WAY && first + i < used_blocks(); i++) {
        unsigned char *bytes = m.bytes + i * m.s->block;
        fill(bytes, first + i, version_at(epoch, first + i));
        requests[i] = (tarn__disk_block_request){.block = number_of(first + i),
                                                 .data = bytes};
        tarn__blocks_write(m.blocks, &requests[i]);
      }
      tarn__disk_block_request *request = NULL;
      while ((request = tarn__blocks_wait(m.blocks)) != NULL)
        MUST(tarn__blocks_check(m.blocks, request) == TARN_OK);
    }
    note_of(epoch, note);
    MUST(tarn__blocks_flush(m.blocks, note) == TARN_OK);
    s->flushed = epoch;
  }
}

static void kill_one(shared *s, size_t round) {
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) {
    child_begin(60);
    write_for_ever(s, round % 2 == 1);
  }
  // Every other one gets as far as to flush.
  uint64_t before = s->flushed;
  while (round / 2 % 2 == 0 && s->flushed == before &&
         waitpid(child, NULL, WNOHANG) == 0)
    usleep(1000);
  usleep((useconds_t)(mix(9, round) % 30000));
  require(kill(child, SIGKILL) == 0);
  int status = 0;
  require(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
}

TEST(a_killed_process_leaves_a_flushed_epoch) {
  shared *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(s != MAP_FAILED);
  s->flushed = 1;
  folder_make(1);
  memset(&m, 0, sizeof m);
  m.s = &shapes[1];
  m.path = folder_path(0, "blocks");
  m.lost = folder_path(1, "lost");
  require(posix_memalign((void **)&m.bytes, 4096, UNDER_WAY * m.s->block) == 0);
  assert_ok(tarn__blocks_create(m.path, m.s->block, m.s->count, NULL));
  for (size_t round = 0; round < EFFORT(60, 8); round++) {
    kill_one(s, round);
    m.epoch = s->flushed;
    m.flushing = true;
    for (uint64_t e = m.epoch > 1 ? m.epoch - 1 : 1; e <= m.epoch + 1; e++)
      for (size_t i = 0; i < used_blocks(); i++)
        m.epochs[e % EPOCHS][i] = version_at(e, i);
    folder_copy(m.path, m.lost);
    s->flushed = see_lost(m.lost);
  }
  ck_assert_uint_gt(s->flushed, EFFORT(60, 8) / 2);
  free(m.bytes);
  munmap(s, sizeof *s);
}

// --- a million ---------------------------------------------------------------

PART("million");

TEST_LOOP(a_million_operations, 2 * SHAPES) {
  run_random((size_t)_i, EFFORT(1000000, 100000) / (2 * SHAPES), 200);
}
