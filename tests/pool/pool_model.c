// The model: what the pool must answer is worked out first, then it is asked.
#include "pool_model.h"

#include <stdio.h>
#include <string.h>

#include "pool/front.h"
#include "support/run.h"
#include "support/strategy.h"
#include "support/tagged.h"

// Check's own assertions write a line for each that holds: too slow here.
#define MUST(m, condition)                                                    \
  do {                                                                        \
    if (!(condition)) {                                                       \
      ck_abort_msg("seed %u, operation %lu: not %s; last error: %s",          \
                   (m)->seed, (m)->operation, #condition, tarn_last_error()); \
    }                                                                         \
  } while (0)

#define MUST_EQUAL(m, field)                                              \
  do {                                                                    \
    if (real.field != (m)->stats.field) {                                 \
      ck_abort_msg("seed %u, operation %lu: %s is %zu, should be %zu",    \
                   (m)->seed, (m)->operation, #field, (size_t)real.field, \
                   (size_t)(m)->stats.field);                             \
    }                                                                     \
  } while (0)

// --- comparing -------------------------------------------------------------

static void compare(pool_model *m) {
  tarn_pool_stats real = {.struct_size = sizeof real};
  MUST(m, tarn_pool_query(m->pool, &real) == TARN_OK);
  MUST(m, strcmp(real.strategy, m->stats.strategy) == 0);
  MUST_EQUAL(m, live_bytes);
  MUST_EQUAL(m, live_peak_bytes);
  MUST_EQUAL(m, live_blocks);
  MUST_EQUAL(m, reserved_bytes);
  MUST_EQUAL(m, reserved_peak_bytes);
  MUST_EQUAL(m, limit_bytes);
  MUST_EQUAL(m, allocs);
  MUST_EQUAL(m, frees);
  MUST_EQUAL(m, hits);
  MUST_EQUAL(m, misses);
  MUST_EQUAL(m, failures);
  MUST_EQUAL(m, device_allocs);
  MUST_EQUAL(m, device_frees);
  MUST_EQUAL(m, stream_crossings);
  m->operation++;
}

static void compare_tag(pool_model *m, unsigned tag) {
  tarn_pool_tag_stats real = {.struct_size = sizeof real};
  const tarn_pool_tag_stats *own = &m->of_tag[tag];
  MUST(m, tarn_pool_query_tag(m->pool, m->tags[tag], &real) == TARN_OK);
  MUST(m, real.live_bytes == own->live_bytes);
  MUST(m, real.live_peak_bytes == own->live_peak_bytes);
  MUST(m, real.live_blocks == own->live_blocks);
}

// --- marks -----------------------------------------------------------------

enum { MARKED = 64 };  // bytes at the front, and the last one

static void write_mark(const model_block *b) {
  unsigned char *bytes = (unsigned char *)(uintptr_t)b->block.address;
  size_t size = b->block.size;
  memset(bytes, b->mark, size < MARKED ? size : MARKED);
  bytes[size - 1] = b->mark;
}

static void check_mark(pool_model *m, const model_block *b) {
  const unsigned char *bytes = (unsigned char *)(uintptr_t)b->block.address;
  size_t size = b->block.size;
  for (size_t i = 0; i < MARKED && i < size; i++)
    MUST(m, bytes[i] == b->mark);
  MUST(m, bytes[size - 1] == b->mark);
}

// --- the blocks that are out -----------------------------------------------

static void insert(pool_model *m, model_block b) {
  size_t at = m->block_count;
  while (at > 0 && m->blocks[at - 1].block.address > b.block.address)
    at--;
  const model_block *before = at > 0 ? &m->blocks[at - 1] : NULL;
  const model_block *behind = at < m->block_count ? &m->blocks[at] : NULL;
  MUST(m, before == NULL ||
              before->block.address + before->block.size <= b.block.address);
  MUST(m, behind == NULL ||
              b.block.address + b.block.size <= behind->block.address);
  memmove(&m->blocks[at + 1], &m->blocks[at],
          (m->block_count - at) * sizeof m->blocks[0]);
  m->blocks[at] = b;
  m->block_count++;
}

static model_block extract(pool_model *m, size_t index) {
  model_block b = m->blocks[index];
  m->block_count--;
  memmove(&m->blocks[index], &m->blocks[index + 1],
          (m->block_count - index) * sizeof m->blocks[0]);
  return b;
}

static void count_live(pool_model *m, const model_block *b) {
  tarn_pool_tag_stats *tag = &m->of_tag[b->tag];
  m->stats.allocs++;
  m->stats.live_blocks++;
  m->stats.live_bytes += b->asked;
  if (m->stats.live_bytes > m->stats.live_peak_bytes) {
    m->stats.live_peak_bytes = m->stats.live_bytes;
  }
  tag->live_blocks++;
  tag->live_bytes += b->asked;
  if (tag->live_bytes > tag->live_peak_bytes) {
    tag->live_peak_bytes = tag->live_bytes;
  }
}

// --- idle memory -----------------------------------------------------------

static bool fits(const model_idle *idle, const model_block *wanted) {
  return idle->size == wanted->block.size && idle->align == wanted->align;
}

// How good an idle piece is for |stream|: 2 its own, 1 the host's, 0 another's.
static int rank_of(const model_idle *idle, unsigned stream) {
  if (idle->stream == stream) return 2;
  return idle->stream == 0 ? 1 : 0;
}

// The best there is for |wanted|; -1 if there is none.
static int best_rank(const pool_model *m, const model_block *wanted,
                     unsigned stream) {
  int best = -1;
  for (size_t i = 0; i < m->idle_count; i++) {
    if (!fits(&m->idle[i], wanted)) continue;
    int rank = rank_of(&m->idle[i], stream);
    if (rank > best) best = rank;
  }
  return best;
}

static model_idle take_idle(pool_model *m, tarn_addr address) {
  size_t i = 0;
  while (i < m->idle_count && m->idle[i].address != address)
    i++;
  MUST(m, i < m->idle_count);
  model_idle idle = m->idle[i];
  m->idle[i] = m->idle[--m->idle_count];
  return idle;
}

static void return_idle(pool_model *m) {
  for (size_t i = 0; i < m->idle_count; i++)
    m->stats.reserved_bytes -= m->idle[i].held;
  m->stats.device_frees += m->idle_count;
  m->idle_count = 0;
}

// --- taking ----------------------------------------------------------------

static bool within_limit(const pool_model *m, size_t size) {
  size_t limit = m->stats.limit_bytes;
  return limit == 0 || m->stats.reserved_bytes + size <= limit;
}

static void expect_hit(pool_model *m, model_block *b, unsigned stream,
                       int rank) {
  model_idle idle = take_idle(m, b->block.address);
  MUST(m, fits(&idle, b));
  MUST(m, rank_of(&idle, stream) == rank);
  m->stats.hits++;
  if (rank == 0) m->stats.stream_crossings++;
  if (idle.stream != 0) b->waits_on = stream;
  b->held = idle.held;
}

// What is not aligned as it comes is given back, and more is asked for: from
// then on at once.
static void expect_miss(pool_model *m, model_block *b) {
  const tarn__pool_piece *piece =
      tarn__pieces_at(&m->pool->pieces, b->block.id);
  bool padded = piece->base_size != b->block.size;
  bool expected = b->align > m->aligns;
  b->held = b->block.size + (padded ? b->align : 0);
  MUST(m, piece->base_size == b->held);
  MUST(m, !padded || b->align > m->natural_align);
  m->stats.misses++;
  MUST(m, padded || !expected);
  m->stats.device_allocs += padded && !expected ? 2 : 1;
  m->stats.device_frees += padded && !expected ? 1 : 0;
  if (padded && !expected) m->aligns = b->align / 2;
  m->stats.reserved_bytes += b->held;
  if (m->stats.reserved_bytes > m->stats.reserved_peak_bytes) {
    m->stats.reserved_peak_bytes = m->stats.reserved_bytes;
  }
}

void model_alloc(pool_model *m, size_t size, size_t align, unsigned tag,
                 unsigned stream) {
  model_block b = {.asked = size, .tag = tag, .epoch = m->epoch};
  b.mark = (unsigned char)m->operation;
  b.align = align > m->natural_align ? align : m->natural_align;
  b.block.size = m->page == 0 ? size : (size + m->page - 1) / m->page * m->page;
  size_t rounded = b.block.size;
  int rank = best_rank(m, &b, stream);
  size_t needed = rounded + (b.align > m->aligns ? b.align : 0);
  bool hopeless = m->stats.limit_bytes != 0 && b.asked > m->stats.limit_bytes;
  bool tries = rank < 0 && !within_limit(m, needed) && !hopeless;
  if (tries) return_idle(m);
  bool full = rank < 0 && !within_limit(m, needed);

  tarn_status status = alloc_tagged(m->pool, size, align, m->streams[stream],
                                    m->tags[tag], &b.block);
  MUST(m, status == (full ? TARN_FULL : TARN_OK));
  if (full) {
    MUST(m, b.block.address == 0 && b.block.pool == NULL);
    m->stats.failures++;
  } else {
    MUST(m, b.block.pool == m->pool && b.block.size == rounded);
    MUST(m, b.block.address != 0 && b.block.address % b.align == 0);
    if (rank >= 0) expect_hit(m, &b, stream, rank);
    if (rank < 0) expect_miss(m, &b);
    count_live(m, &b);
    insert(m, b);
    write_mark(&b);
  }
  compare(m);
}

// --- giving back -----------------------------------------------------------

static void keep_or_return(pool_model *m, const model_block *b,
                           unsigned stream) {
  if (b->epoch != m->epoch || m->page == 0) {
    m->stats.device_frees++;
    m->stats.reserved_bytes -= b->held;
    return;
  }
  MUST(m, m->idle_count < MODEL_IDLE);
  m->idle[m->idle_count++] = (model_idle){
      .address = b->block.address,
      .size = b->block.size,
      .align = b->align,
      .held = b->held,
      .stream = stream,
  };
}

void model_free(pool_model *m, size_t index, unsigned stream, bool by_address) {
  model_block b = extract(m, index);
  check_mark(m, &b);
  m->stats.frees++;
  m->stats.live_blocks--;
  m->stats.live_bytes -= b.asked;
  m->of_tag[b.tag].live_blocks--;
  m->of_tag[b.tag].live_bytes -= b.asked;
  // Freed by the host, it is still behind what it was made to wait for.
  keep_or_return(m, &b, stream != 0 ? stream : b.waits_on);
  m->stale[m->stale_count++ % MODEL_STALE] = b.block;
  tarn_stream *on = m->streams[stream];
  MUST(m, (by_address ? tarn_pool_free_address(m->pool, b.block.address, on)
                      : tarn_pool_free(&b.block, on)) == TARN_OK);
  compare(m);
}

void model_find(pool_model *m, size_t index) {
  tarn_block found;
  const tarn_block *own = &m->blocks[index].block;
  MUST(m, tarn_pool_block_of(m->pool, own->address, &found, NULL) == TARN_OK);
  MUST(m, found.id == own->id && found.generation == own->generation &&
              found.size == own->size && found.address == own->address);
  compare(m);
}

void model_free_stale(pool_model *m, size_t index) {
  const tarn_block *stale = &m->stale[index];
  MUST(m, tarn_pool_free(stale, NULL) == TARN_E_INVALID);
  compare(m);
}

// --- all the rest ----------------------------------------------------------

void model_trim(pool_model *m) {
  return_idle(m);
  MUST(m, tarn_pool_trim(m->pool, 0) == TARN_OK);
  compare(m);
}

void model_limit(pool_model *m, size_t bytes) {
  m->stats.limit_bytes = bytes;
  MUST(m, tarn_pool_limit(m->pool, bytes) == TARN_OK);
  compare(m);
}

void model_reset_peaks(pool_model *m) {
  m->stats.live_peak_bytes = m->stats.live_bytes;
  m->stats.reserved_peak_bytes = m->stats.reserved_bytes;
  for (int i = 0; i < MODEL_TAGS; i++)
    m->of_tag[i].live_peak_bytes = m->of_tag[i].live_bytes;
  MUST(m, tarn_pool_reset_peaks(m->pool) == TARN_OK);
  compare(m);
}

void model_use(pool_model *m, size_t page) {
  char text[64] = "no_pool";
  if (page != 0) snprintf(text, sizeof text, "page_unit_pool:page=%zu", page);
  return_idle(m);
  m->page = page;
  m->epoch++;
  m->stats.strategy = page != 0 ? "page_unit_pool" : "no_pool";
  MUST(m, use_strategy(TARN_HOST, text) == TARN_OK);
  compare(m);
}

void model_walk(pool_model *m) {
  for (size_t i = 0; i < m->block_count; i++)
    check_mark(m, &m->blocks[i]);
  for (unsigned i = 0; i < MODEL_TAGS; i++)
    compare_tag(m, i);
  MUST(m, tarn__front_check(m->pool) == TARN_OK);
}

void model_begin(pool_model *m, unsigned seed) {
  *m = (pool_model){.seed = seed, .page = 4096};
  tarn_device *cpu = NULL;
  tarn_device_info info = {.struct_size = sizeof info};
  assert_ok(tarn_device_open("cpu:0", &cpu));
  assert_ok(tarn_device_query(cpu, &info));
  m->natural_align = info.min_chunk;
  m->aligns = SIZE_MAX;
  for (int i = 1; i < MODEL_STREAMS; i++)
    assert_ok(tarn_stream_create(cpu, &m->streams[i]));
  for (int i = 1; i < MODEL_TAGS; i++) {
    char name[32];
    snprintf(name, sizeof name, "model %d", i);
    assert_ok(tarn_pool_tag(name, &m->tags[i]));
  }
  assert_ok(use_strategy(TARN_HOST, "page_unit_pool"));
  assert_ok(tarn_pool_of(TARN_HOST, &m->pool));
  m->stats.strategy = "page_unit_pool";
  compare(m);
}

void model_end(pool_model *m) {
  while (m->block_count > 0)
    model_free(m, m->block_count - 1, 0, false);
  model_trim(m);
  model_walk(m);
  MUST(m, m->stats.reserved_bytes == 0);
  tarn_device *cpu = tarn_stream_device(m->streams[1]);
  for (int i = 1; i < MODEL_STREAMS; i++)
    assert_ok(tarn_stream_destroy(m->streams[i]));
  assert_ok(tarn_device_close(cpu));
}
