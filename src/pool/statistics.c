// Statistics of a pool: sums, tags, events, and their texts.
//
// Invariants (tarn__front_check walks them):
//   * a piece is live, or idle with its owner, or in the quarantine, or on its
//     way to the device
//   * live_bytes and live_blocks are sums over the live pieces, and those of
//     every tag over the live pieces that were counted under it
//   * reserved_bytes is the sum over all pieces
//   * a strategy's |live| counts its pieces that are live or in the quarantine
#include "pool/statistics.h"

#include <stdio.h>

#include "base/bytes.h"
#include "base/hostmem.h"
#include "base/status.h"

// --- blocks ----------------------------------------------------------------

tarn_status tarn__front_prepare_tag(tarn_pool *pool, tarn_tag tag) {
  if (tag < pool->tag_count) return TARN_OK;
  tarn_pool_tag_stats *tags = tarn__host_grow(pool->tags, &pool->tag_count,
                                              (size_t)tag + 1, 8, sizeof *tags);
  if (tags == NULL) return TARN_E_NOMEM;
  pool->tags = tags;
  return TARN_OK;
}

// --- sleep -----------------------------------------------------------------

void tarn__front_count_asleep(tarn_pool *pool, tarn_tag tag, size_t blocks,
                              size_t bytes, size_t saved) {
  if (blocks == 0) return;
  tarn_pool_tag_stats *count = &pool->tags[tag];
  count->asleep_blocks += blocks;
  count->asleep_bytes += bytes;
  count->saved_bytes += saved;
  pool->stats.asleep_bytes += bytes;
  pool->stats.saved_bytes += saved;
}

void tarn__front_count_awake(tarn_pool *pool, tarn_tag tag, size_t blocks,
                             size_t bytes, size_t saved) {
  // Sums wrap around, so that this subtracts.
  tarn__front_count_asleep(pool, tag, -blocks, -bytes, -saved);
}

// --- events ----------------------------------------------------------------

static tarn_pool_event *note(tarn_pool *pool, tarn_pool_event_kind kind) {
  return tarn__events_add(&pool->events, kind,
                          tarn__front_counts(pool, TARN_COUNT_TIMES));
}

void tarn__front_note_block(tarn_pool *pool, tarn_pool_event_kind kind,
                            const tarn__pool_piece *piece, size_t size_before,
                            uint64_t serial) {
  tarn_pool_event *event = note(pool, kind);
  event->address = piece->address;
  event->size = piece->requested;
  event->size_before = size_before;
  event->stream = serial;
  event->tag = piece->tag;
}

void tarn__front_count_failure(tarn_pool *pool,
                               const tarn__pool_request *request,
                               tarn_status why) {
  pool->stats.failures++;
  if (!tarn__front_counts(pool, TARN_COUNT_EVENTS)) return;
  tarn_pool_event *event = note(pool, TARN_POOL_EVENT_FAIL);
  event->size = request->size - request->guard;
  event->stream = request->serial;
  event->tag = request->tag;
  event->status = why;
}

void tarn__front_note_memory(tarn_pool *pool, tarn_pool_event_kind kind,
                             tarn_addr address, size_t size, uint64_t serial) {
  if (!tarn__front_counts(pool, TARN_COUNT_EVENTS) || size == 0) return;
  tarn_pool_event *event = note(pool, kind);
  event->address = address;
  event->size = size;
  event->stream = serial;
}

void tarn__front_note_change(tarn_pool *pool, tarn_pool_event_kind kind,
                             size_t size, tarn_tag tag) {
  if (!tarn__front_counts(pool, TARN_COUNT_EVENTS)) return;
  tarn_pool_event *event = note(pool, kind);
  event->size = size;
  event->tag = tag;
}

// --- texts -----------------------------------------------------------------

void tarn__front_describe_charges(const tarn_pool *pool,
                                  char out[TARN__CHARGES_SIZE]) {
  out[0] = '\0';
  if (pool->stats.charged_bytes == 0) return;
  char text[TARN__BYTES_TEXT];
  snprintf(out, TARN__CHARGES_SIZE, ", %s charged besides",
           tarn__bytes_text(pool->stats.charged_bytes, text));
}

static size_t bytes_held(const tarn_pool *pool, size_t tag) {
  return pool->tags[tag].live_bytes + pool->tags[tag].charged_bytes;
}

static bool holds_any(const tarn_pool *pool, size_t tag) {
  return pool->tags[tag].live_blocks != 0 || pool->tags[tag].charged_bytes != 0;
}

// Whether |a| sorts before |b|: more bytes first, then the older tag.
static bool holds_more(const tarn_pool *pool, size_t a, size_t b) {
  size_t x = bytes_held(pool, a);
  size_t y = bytes_held(pool, b);
  return x != y ? x > y : a < b;
}

// The next tag after |*tag| with blocks or charges; SIZE_MAX is before all.
// False: there is none.
static bool next_holder(const tarn_pool *pool, size_t *tag) {
  size_t next = SIZE_MAX;
  for (size_t i = 0; i < pool->tag_count; i++) {
    if (!holds_any(pool, i)) continue;
    if (*tag != SIZE_MAX && !holds_more(pool, *tag, i)) continue;
    if (next == SIZE_MAX || holds_more(pool, i, next)) next = i;
  }
  *tag = next;
  return next != SIZE_MAX;
}

// "4.00 KiB (4096 bytes) weights (2)", the blocks, or with charges "... (2 and
// 100 bytes charged)". The figures of the only one are those of the pool.
static int describe_holder(const tarn_pool *pool, size_t tag, bool only,
                           char *out, size_t out_size) {
  const tarn_pool_tag_stats *count = &pool->tags[tag];
  char held[TARN__BYTES_TEXT];
  char text[TARN__BYTES_TEXT];
  char charged[TARN__CHARGES_SIZE] = "";
  if (count->charged_bytes != 0 && !only) {
    snprintf(charged, sizeof charged, " and %s charged",
             tarn__bytes_text(count->charged_bytes, text));
  }
  tarn__bytes_text(bytes_held(pool, tag), held);
  return snprintf(out, out_size, "%s%s%.40s (%zu%s)", only ? "" : held,
                  only ? "" : " ", tarn_pool_tag_name((tarn_tag)tag),
                  count->live_blocks, charged);
}

void tarn__front_top_holders(const tarn_pool *pool, size_t most, char *out,
                             size_t out_size) {
  size_t used = 0;
  size_t tag = SIZE_MAX;
  out[0] = '\0';
  for (; most > 0 && next_holder(pool, &tag); most--) {
    size_t other = tag;
    bool only = used == 0 && !next_holder(pool, &other);
    if (used != 0) used += (size_t)snprintf(out + used, out_size - used, ", ");
    if (used >= out_size) return;
    int n = describe_holder(pool, tag, only, out + used, out_size - used);
    used += n > 0 ? (size_t)n : 0;
    if (used >= out_size) return;
  }
}

bool tarn__front_describe_out(const tarn_pool *pool, char *out,
                              size_t out_size) {
  const tarn_pool_stats *stats = &pool->stats;
  char charged[TARN__CHARGES_SIZE];
  char holders[256];
  char live[TARN__BYTES_TEXT];
  tarn__front_describe_charges(pool, charged);
  tarn__front_top_holders(pool, SIZE_MAX, holders, sizeof holders);
  snprintf(out, out_size, "%zu blocks of %s are out%s: %s", stats->live_blocks,
           tarn__bytes_text(stats->live_bytes, live), charged, holders);
  return stats->live_blocks != 0 || stats->charged_bytes != 0;
}
