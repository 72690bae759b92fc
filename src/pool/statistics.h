// statistics.h - what a pool counts: sums, tags, events. The caller holds the
// lock.
#ifndef TARN_POOL_STATISTICS_H_
#define TARN_POOL_STATISTICS_H_

#include "pool/state.h"

static inline bool tarn__front_counts(const tarn_pool *pool,
                                      uint32_t counters) {
  return (pool->stats.counters & counters) != 0;
}

static inline void tarn__raise_peak(size_t value, size_t *peak) {
  if (value > *peak) *peak = value;
}

static inline void tarn__front_raise_live(tarn_pool *pool) {
  tarn__raise_peak(pool->stats.live_bytes, &pool->stats.live_peak_bytes);
  tarn__raise_peak(pool->stats.live_bytes, &pool->decay.peak);
}

// A tag may have what lanes have leased, and the sum lacks what they have freed
// under it.
static inline void tarn__front_raise_tag(const tarn_pool *pool,
                                         tarn_pool_tag_stats *tag) {
  tarn__raise_peak(tag->live_bytes + pool->lanes.leased_most,
                   &tag->live_peak_bytes);
}

// Counts |piece| as a live block. |asked|: the device was asked for it. Where
// peaks are not counted, the live peak is only kept up at calls of the device.
static inline void tarn__front_count_live(tarn_pool *pool,
                                          const tarn__pool_piece *piece,
                                          bool asked) {
  tarn_pool_stats *stats = &pool->stats;
  stats->live_bytes += piece->requested;
  stats->live_blocks++;
  if (asked || tarn__front_counts(pool, TARN_COUNT_PEAKS)) {
    tarn__front_raise_live(pool);
  } else {
    tarn__raise_peak(stats->live_bytes, &pool->decay.peak);
  }
  if (piece->counted) {
    tarn_pool_tag_stats *tag = &pool->tags[piece->tag];
    tag->live_bytes += piece->requested;
    tag->live_blocks++;
    tarn__front_raise_tag(pool, tag);
  }
  piece->owner->live++;
}

static inline void tarn__front_count_dead(tarn_pool *pool,
                                          tarn__pool_piece *piece) {
  tarn_pool_stats *stats = &pool->stats;
  stats->live_bytes -= piece->requested;
  stats->live_blocks--;
  if (!piece->counted) return;
  tarn_pool_tag_stats *tag = &pool->tags[piece->tag];
  if (pool->lanes.leased_most != 0) tarn__front_raise_tag(pool, tag);
  tag->live_bytes -= piece->requested;
  tag->live_blocks--;
  piece->counted = false;
}

// The counts of |tag|; all 0 if it has none.
static inline tarn_pool_tag_stats tarn__tag_stats_of(const tarn_pool *pool,
                                                     tarn_tag tag) {
  return tag < pool->tag_count ? pool->tags[tag] : (tarn_pool_tag_stats){0};
}

// Makes room for the counts of |tag|, before anything is taken or sleeps under
// it. TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__front_prepare_tag(tarn_pool *pool,
                                                    tarn_tag tag);

// Counts |blocks| of |tag| that fall asleep: |bytes| went back to the device,
// and the host now holds |saved|. Counts blocks that wake or are freed.
void tarn__front_count_asleep(tarn_pool *pool, tarn_tag tag, size_t blocks,
                              size_t bytes, size_t saved);
void tarn__front_count_awake(tarn_pool *pool, tarn_tag tag, size_t blocks,
                             size_t bytes, size_t saved);

// Counts a request that failed, which is an event.
void tarn__front_count_failure(tarn_pool *pool,
                               const tarn__pool_request *request,
                               tarn_status why);

// Events: the first only where they are on.
void tarn__front_note_block(tarn_pool *pool, tarn_pool_event_kind kind,
                            const tarn__pool_piece *piece, size_t size_before,
                            uint64_t serial);
void tarn__front_note_memory(tarn_pool *pool, tarn_pool_event_kind kind,
                             tarn_addr address, size_t size, uint64_t serial);
void tarn__front_note_change(tarn_pool *pool, tarn_pool_event_kind kind,
                             size_t size, tarn_tag tag);

// Whether tarn_pool_tag has given |tag|; 0 is always known.
bool tarn__tag_is_known(tarn_tag tag);

// Writes one line about live and charged bytes to |out|: of the |most| tags
// that hold most.
void tarn__front_top_holders(const tarn_pool *pool, size_t most, char *out,
                             size_t out_size);

// ", 4.00 KiB (4096 bytes) charged besides", or nothing. The lock is held.
enum { TARN__CHARGES_SIZE = 80 };
void tarn__front_describe_charges(const tarn_pool *pool,
                                  char out[TARN__CHARGES_SIZE]);

// What keeps the pool from ending, likewise, with all its holders. False: there
// is nothing. The lock is held.
bool tarn__front_describe_out(const tarn_pool *pool, char *out,
                              size_t out_size);

#endif  // TARN_POOL_STATISTICS_H_
