// Random operations on arena_pool, against a naive model: a sorted array of
// the blocks that are out, and a mark at either end of each.
#include "arena_kit.h"
#include "support/effort.h"
#include "support/strategy.h"
#include "support/threads.h"

enum {
  BLOCKS = 300,
  STREAMS = 3,
  WALK_EVERY = 2000,
  OPERATIONS = EFFORT(200000, 40000),
  RENEW_EVERY = 500,
  MARK = 8,
};

typedef struct model_block {
  tarn_block block;
  size_t asked;
  unsigned stream;  // of its use; 0: the host
  uint64_t mark;
} model_block;

static struct {
  arena_place at;
  tarn_stream *streams[STREAMS];
  model_block blocks[BLOCKS];  // by rising address
  size_t count;
  size_t live_bytes;
  uint64_t allocs;
  uint64_t frees;
  uint64_t failures;
  uint64_t writes;
  uint64_t grown;
  uint64_t shrunk;
  size_t limit;
  unsigned switches;
  uint64_t state;
} m;

static size_t random_below(size_t limit) {
  return next_random(&m.state) % limit;
}

// --- contents --------------------------------------------------------------

// The streams may not get to it before long, so it is kept for a while.
static void write_marks(const model_block *b) {
  static uint64_t kept[1 << 16];
  uint64_t *mark = &kept[m.writes++ % (1 << 16)];
  *mark = b->mark;
  tarn_addr last = b->block.address + b->block.size - MARK;
  tarn_stream *stream = m.streams[b->stream];
  require(tarn_copy_h2d(m.at.device, b->block.address, mark, MARK, stream) ==
          TARN_OK);
  require(tarn_copy_h2d(m.at.device, last, mark, MARK, stream) == TARN_OK);
}

static void check_marks(const model_block *b) {
  tarn_addr last = b->block.address + b->block.size - MARK;
  tarn_stream *stream = m.streams[b->stream];
  uint64_t marks[2] = {0, 0};
  require(tarn_copy_d2h(m.at.device, &marks[0], b->block.address, MARK,
                        stream) == TARN_OK);
  require(tarn_copy_d2h(m.at.device, &marks[1], last, MARK, stream) == TARN_OK);
  if (stream != NULL) require(tarn_stream_synchronize(stream) == TARN_OK);
  require(marks[0] == b->mark && marks[1] == b->mark);
}

static void check_first_mark(const model_block *b) {
  tarn_stream *stream = m.streams[b->stream];
  uint64_t mark = 0;
  require(tarn_copy_d2h(m.at.device, &mark, b->block.address, MARK, stream) ==
          TARN_OK);
  if (stream != NULL) require(tarn_stream_synchronize(stream) == TARN_OK);
  require(mark == b->mark);
}

// --- operations ------------------------------------------------------------

// With room for both marks.
static size_t random_size(void) {
  switch (random_below(12)) {
    case 0:
      return random_below((size_t)3 * MIB) + 16;
    case 1:
    case 2:
      return random_below(300 * KIBIBYTE) + 16;
    case 3:
      return (size_t)64 * KIBIBYTE + random_below(3) - 1;
    default:
      return random_below(20000) + 16;
  }
}

static size_t random_align(void) {
  return random_below(8) != 0 ? 0 : (size_t)1 << random_below(23);
}

// Where |address| belongs among the blocks.
static size_t rank_of(tarn_addr address) {
  size_t low = 0;
  size_t high = m.count;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (m.blocks[middle].block.address < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

static void insert(model_block b) {
  size_t at = rank_of(b.block.address);
  tarn_addr end = b.block.address + b.block.size;
  if (at > 0) {
    const tarn_block *before = &m.blocks[at - 1].block;
    require(before->address + before->size <= b.block.address);
  }
  require(at == m.count || end <= m.blocks[at].block.address);
  memmove(&m.blocks[at + 1], &m.blocks[at], (m.count - at) * sizeof b);
  m.blocks[at] = b;
  m.count++;
}

static void alloc_one(void) {
  if (m.count == BLOCKS) return;
  model_block b = {.asked = random_size(), .mark = m.state};
  b.stream = (unsigned)random_below(STREAMS);
  size_t align = random_align();
  tarn_status status =
      tarn_pool_alloc(m.at.pool, b.asked, align, m.streams[b.stream], &b.block);
  require(status == TARN_OK || status == TARN_FULL);
  if (status == TARN_FULL) {
    require(b.block.address == 0 && b.block.pool == NULL);
    m.failures++;
    return;
  }
  require(b.block.size >= b.asked && b.block.size >= MARK);
  require(align == 0 || b.block.address % align == 0);
  insert(b);
  write_marks(&b);
  m.live_bytes += b.asked;
  m.allocs++;
}

static void free_one(bool by_address) {
  if (m.count == 0) return;
  size_t at = random_below(m.count);
  model_block b = m.blocks[at];
  check_marks(&b);
  memmove(&m.blocks[at], &m.blocks[at + 1], (m.count - at - 1) * sizeof b);
  m.count--;
  m.live_bytes -= b.asked;
  m.frees++;
  tarn_stream *stream = m.streams[b.stream];
  if (by_address) {
    require(tarn_pool_free_address(m.at.pool, b.block.address, stream) ==
            TARN_OK);
  } else {
    require(tarn_pool_free(&b.block, stream) == TARN_OK);
  }
  require(tarn_pool_free(&b.block, stream) == TARN_E_INVALID);
}

// Not beyond the next block; the contents stay, and a failure changes nothing.
static void resize_one(void) {
  if (m.count == 0) return;
  size_t at = random_below(m.count);
  model_block *b = &m.blocks[at];
  tarn_block before = b->block;
  size_t size = random_size();
  check_marks(b);
  tarn_status status = tarn_pool_resize(&b->block, size, m.streams[b->stream]);
  require(status == TARN_OK || status == TARN_FULL);
  require(b->block.address == before.address && b->block.id == before.id);
  if (status == TARN_FULL) {
    require(size > before.size && b->block.size == before.size);
    check_marks(b);
    return;
  }
  require(b->block.size >= size);
  require(at + 1 == m.count ||
          before.address + b->block.size <= m.blocks[at + 1].block.address);
  m.grown += b->block.size > before.size;
  m.shrunk += b->block.size < before.size;
  m.live_bytes += size - b->asked;
  b->asked = size;
  check_first_mark(b);
  write_marks(b);
}

static void use_another(void) {
  static const char *const strategies[] = {
      "arena_pool",          "arena_pool:page=64K",
      "page_unit_pool",      "arena_pool:page=4M",
      "arena_pool:small=2K", "arena_pool:slack=0",
      "arena_pool:page=512", "arena_pool:slack=5%,move=1000",
      "arena_pool:move=0",   "no_pool"};
  size_t count = sizeof strategies / sizeof strategies[0];
  require(use_strategy(m.at.place, strategies[random_below(count)]) == TARN_OK);
  m.switches++;
}

static void set_limit(void) {
  size_t reserved = stats_of(m.at.pool).reserved_bytes;
  size_t choice = random_below(3);
  m.limit = choice == 0   ? 0
            : choice == 1 ? reserved + random_below((size_t)4 * MIB)
                          : random_below(reserved + 1) + 1;
  require(tarn_pool_limit(m.at.pool, m.limit) == TARN_OK);
}

// What it was used for is over then.
static void replace_stream(unsigned at) {
  for (size_t i = 0; i < m.count; i++)
    if (m.blocks[i].stream == at) m.blocks[i].stream = 0;
  end_stream(m.streams[at]);
  m.streams[at] = stream_on(&m.at);
}

static void operate(void) {
  size_t before = stats_of(m.at.pool).reserved_bytes;
  size_t choice = random_below(10000);
  if (choice < 1000) {
    resize_one();
  } else if (choice < 5460) {
    alloc_one();
  } else if (choice < 9900) {
    free_one(choice % 3 == 0);
  } else if (choice < 9920) {
    require(tarn_pool_trim(m.at.pool, 0) == TARN_OK);
  } else if (choice < 9970) {
    set_limit();
  } else if (choice < 9980) {
    replace_stream(1 + (unsigned)random_below(STREAMS - 1));
  } else if (choice < 9990) {
    use_another();
  }
  size_t after = stats_of(m.at.pool).reserved_bytes;
  require(m.limit == 0 || after <= m.limit || after <= before);
}

// --- runs ------------------------------------------------------------------

static void walk(void) {
  tarn_pool_stats stats = stats_of(m.at.pool);
  require(tarn__front_check(m.at.pool) == TARN_OK);
  require(stats.live_blocks == m.count && stats.live_bytes == m.live_bytes);
  require(stats.allocs == m.allocs && stats.frees == m.frees);
  require(stats.failures == m.failures);
  require(stats.hits <= stats.allocs);
  require(stats.reserved_bytes >= stats.live_bytes);
}

static void run_seed(int device, uint64_t seed, int operations) {
  m.state = seed * 0x9e3779b97f4a7c15u;
  m.at = open_arena_with(device, 0, "arena_pool");
  for (int i = 1; i < STREAMS; i++)
    m.streams[i] = stream_on(&m.at);
  for (int i = 1; i <= operations; i++) {
    operate();
    // Streams of the test double have room for so many operations.
    if (i % RENEW_EVERY == 0)
      replace_stream(1 + (unsigned)(i / RENEW_EVERY) % 2);
    if (i % WALK_EVERY == 0) walk();
  }
  // It was no walk past everything.
  tarn_pool_stats stats = stats_of(m.at.pool);
  ck_assert_uint_gt(stats.hits, (unsigned)operations / 20);
  ck_assert_uint_gt(stats.misses, (unsigned)operations / 200);
  ck_assert_uint_gt(stats.failures, (unsigned)operations / 1000);
  ck_assert_uint_gt(stats.stream_crossings, (unsigned)operations / 1000);
  ck_assert_uint_gt(m.grown, (unsigned)operations / 1000);
  ck_assert_uint_gt(m.shrunk, (unsigned)operations / 200);
  ck_assert_uint_gt(m.switches, (unsigned)operations / 5000);
  assert_ok(tarn_pool_limit(m.at.pool, 0));
  while (m.count > 0)
    free_one(false);
  walk();
}

TEST_LOOP(what_is_out_is_its_own, 2 * TEST_DEVICES) {
  run_seed(_i / 2, (uint64_t)_i + 1, (int)effort_on(_i / 2, OPERATIONS));
}
