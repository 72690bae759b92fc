// Gather: hits are moved out of the cache as they are found, and what is missed
// is noted; then the table is asked for that, once.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "cache/cache.h"

enum {
  BATCH = TARN__SIEVE_BATCH,
  HOST_BATCHES = 2,     // whose rows move at a time: so few that all is near
  DEVICE_BATCHES = 32,  // so many that a call of the device is worth it
};

// --- what is missed --------------------------------------------------------

typedef struct misses {
  uint64_t *keys;
  uint64_t *at;  // rows of the user
  size_t count;
  size_t keys_room;
  size_t at_room;
} misses;

static tarn_status note_miss(misses *m, uint64_t key, uint64_t at) {
  if (m->count == m->at_room) {
    uint64_t *keys = tarn__host_grow(m->keys, &m->keys_room, m->count + 1,
                                     BATCH, sizeof *keys);
    if (keys == NULL) return TARN_E_NOMEM;
    m->keys = keys;
    uint64_t *more =
        tarn__host_grow(m->at, &m->at_room, m->count + 1, BATCH, sizeof *more);
    if (more == NULL) return TARN_E_NOMEM;
    m->at = more;
  }
  m->keys[m->count] = key;
  m->at[m->count++] = at;
  return TARN_OK;
}

static void free_misses(misses *m) {
  tarn__host_free_array(m->keys, m->keys_room, sizeof *m->keys);
  tarn__host_free_array(m->at, m->at_room, sizeof *m->at);
}

// --- hits ------------------------------------------------------------------

typedef struct hits {
  tarn__cache_call *call;
  misses *misses;
  uint32_t *slots;  // lines of |room| rows; UINT32_MAX: none
  size_t room;
  unsigned readings[DEVICE_BATCHES];
  size_t reading_count;
} hits;

// The keys of |indices|; false: some of them are no row.
static bool load_keys(tarn__cache_call *call, const void *indices,
                      size_t count) {
  const uint64_t rows = call->rows.table_count;
  uint64_t *keys = call->batch.keys;
  bool bad = false;
  memcpy(keys, indices, count * sizeof *keys);
  for (size_t i = 0; i < count; i++)
    bad |= keys[i] >= rows;
  call->batch.count = count;
  return !bad;
}

// Leaves those out that are no row, which the user has asked to pass over:
// |from| has the positions of the others.
static void leave_out_bad(tarn__cache_call *call, uint16_t *from) {
  tarn__cache_sieve_batch *batch = &call->batch;
  size_t keys = 0;
  for (size_t i = 0; i < batch->count; i++) {
    from[keys] = (uint16_t)i;
    batch->keys[keys] = batch->keys[i];
    keys += batch->keys[keys] < call->rows.table_count;
  }
  batch->count = keys;
}

// |from| NULL: none was left out.
static tarn_status note_misses(hits *h, size_t first, const uint16_t *from) {
  const tarn__cache_sieve_batch *batch = &h->call->batch;
  if (batch->tally[TARN__SIEVE_ABSENT] == 0) return TARN_OK;
  for (size_t i = 0; i < batch->count; i++)
    if (batch->lines[i] == UINT32_MAX)
      TARN__TRY(note_miss(h->misses, batch->keys[i],
                          first + (from != NULL ? from[i] : i)));
  return TARN_OK;
}

// Rows |first| to |first| + |count| - 1 of the user, at most BATCH. The read
// goes on.
static tarn_status look_up(hits *h, size_t first, size_t count,
                           uint32_t *slots) {
  uint16_t from[BATCH] = {0};
  tarn__cache_call *call = h->call;
  tarn__cache_sieve_batch *batch = &call->batch;
  const void *indices = NULL;
  TARN__TRY(tarn__rows_view_indices(call->user.place, &call->rows, first, count,
                                    call->room, &indices));
  bool good = load_keys(call, indices, count);
  if (!good) TARN__TRY(tarn__cache_call_check(call));
  if (!good) leave_out_bad(call, from);
  h->readings[h->reading_count++] = tarn__sieve_read(call->cache->sieve, batch);
  if (good) {
    memcpy(slots, batch->lines, count * sizeof *slots);
    return note_misses(h, first, NULL);
  }
  memset(slots, 0xff, count * sizeof *slots);
  for (size_t i = 0; i < batch->count; i++)
    slots[from[i]] = batch->lines[i];
  return note_misses(h, first, from);
}

// The user's rows from |first| on.
static tarn__cache_rows user_rows(const tarn__cache_call *call, size_t first,
                                  size_t count) {
  tarn__cache_rows rows = call->user;
  rows.address += first * rows.stride;
  rows.count = count;
  return rows;
}

static tarn_status take_some(hits *h, size_t first, size_t count) {
  const tarn__cache_rows lines = tarn__cache_lines(h->call->cache);
  const tarn__cache_rows user = user_rows(h->call, first, count);
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < count && status == TARN_OK; i += BATCH)
    status =
        look_up(h, first + i, tarn__lesser(count - i, BATCH), h->slots + i);
  if (status == TARN_OK)
    status = tarn__cache_carry(h->call, TARN__ROWS_GATHER, &lines, &user,
                               h->slots, TARN_DTYPE_I32);
  while (h->reading_count > 0)
    tarn__sieve_read_end(h->call->cache->sieve,
                         h->readings[--h->reading_count]);
  return status;
}

static bool is_host(const tarn__cache_call *call) {
  return tarn__rows_are_touchable(call->cache->place) &&
         tarn__rows_are_touchable(call->user.place);
}

static tarn_status take_hits(tarn__cache_call *call, misses *missed) {
  bool few = is_host(call) && call->rows.threads <= 1;
  size_t all = call->user.count;
  hits h = {.call = call, .misses = missed};
  tarn_status status = TARN_OK;
  h.room =
      tarn__lesser((few ? HOST_BATCHES : DEVICE_BATCHES) * (size_t)BATCH, all);
  if (all == 0) return TARN_OK;
  h.slots = tarn__host_array(h.room, sizeof *h.slots);
  if (h.slots == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < all && status == TARN_OK; i += h.room)
    status = take_some(&h, i, tarn__lesser(all - i, h.room));
  tarn__host_free_array(h.slots, h.room, sizeof *h.slots);
  return status;
}

// --- fill ------------------------------------------------------------------

static bool is_read(const tarn__cache_part *part, size_t i) {
  return part->found[i] == TARN__SIEVE_TO_FILL ||
         part->found[i] == TARN__SIEVE_ABSENT;
}

// Rows of the table for staging, and lines for them.
static size_t name_reads(tarn__cache_part *part, bool all) {
  size_t count = 0;
  size_t around = 0;
  for (size_t i = 0; i < part->count; i++) {
    bool fills = part->found[i] == TARN__SIEVE_TO_FILL;
    if (!is_read(part, i) || !(fills || all)) continue;
    part->rows[count] = (int64_t)part->keys[i];
    part->slots[count++] = fills ? (int64_t)part->lines[i] : -1;
    around += !fills;
  }
  atomic_fetch_add(&part->call->cache->around, around);
  return count;
}

// Staging has the rows of the entries that are |read|, or of the others.
static tarn_status give_user(tarn__cache_part *part, const uint64_t *at,
                             bool read) {
  size_t count = 0;
  if (at == NULL) return TARN_OK;
  for (size_t i = 0; i < part->count; i++)
    if (read ? is_read(part, i) : part->found[i] == TARN__SIEVE_THERE)
      part->slots[count++] = (int64_t)at[i];
  part->staging.count = count;
  return tarn__cache_carry(part->call, TARN__ROWS_SCATTER, &part->call->user,
                           &part->staging, part->slots, TARN_DTYPE_I64);
}

// What has come to be there since it was missed.
static tarn_status give_found(tarn__cache_part *part, const uint64_t *at) {
  const tarn__cache_rows lines = tarn__cache_lines(part->call->cache);
  size_t count = 0;
  for (size_t i = 0; i < part->count; i++)
    if (part->found[i] == TARN__SIEVE_THERE)
      part->slots[count++] = part->lines[i];
  if (count == 0 || at == NULL) return TARN_OK;
  part->staging.count = count;
  TARN__TRY(tarn__cache_carry(part->call, TARN__ROWS_GATHER, &lines,
                              &part->staging, part->slots, TARN_DTYPE_I64));
  return give_user(part, at, false);
}

// Entries that are read may not change state until the user has them.
static tarn_status fill_lines(tarn__cache_part *part, const uint64_t *at) {
  const tarn__cache_rows lines = tarn__cache_lines(part->call->cache);
  TARN__TRY(tarn__cache_carry(part->call, TARN__ROWS_SCATTER, &lines,
                              &part->staging, part->slots, TARN_DTYPE_I64));
  return give_user(part, at, true);
}

// Another thread's failure is that thread's: the row is read once more, alone.
static tarn_status give_awaited(tarn__cache_part *part, const uint64_t *at) {
  const tarn__cache_rows user = part->call->user;
  size_t count = 0;
  for (size_t i = 0; i < part->count; i++) {
    if (part->found[i] != TARN__SIEVE_AWAITED) continue;
    part->found[i] = TARN__SIEVE_THERE;
    if (tarn__sieve_await(part->call->cache->sieve, part->lines[i])) continue;
    part->rows[count] = (int64_t)part->keys[i];
    part->slots[count++] = at != NULL ? (int64_t)at[i] : -1;
    tarn__sieve_let_go(part->call->cache->sieve, part->lines[i], false);
    part->found[i] = TARN__SIEVE_ABSENT;
  }
  if (count == 0 || at == NULL) return TARN_OK;
  part->staging.count = count;
  TARN__TRY(tarn__cache_part_move(part, TARN__ROWS_GATHER, count, TARN_OK));
  return tarn__cache_carry(part->call, TARN__ROWS_SCATTER, &user,
                           &part->staging, part->slots, TARN_DTYPE_I64);
}

// Staging has the rows that were read.
static tarn_status use_rows(tarn__cache_part *part, const uint64_t *at) {
  if (part->found == NULL) return TARN_OK;
  tarn_status status = fill_lines(part, at);
  tarn__cache_part_filled(part, status == TARN_OK);
  TARN__TRY(status);
  TARN__TRY(give_awaited(part, at));
  return give_found(part, at);
}

// The last of what each rank does on its own: all are told how it went, unless
// they know already.
static tarn_status agree(const tarn_cache *cache, tarn_status status,
                         bool known) {
  if (known || tarn__cache_is_alone(cache)) return status;
  return tarn_comm_agree(tarn_whole_comm(cache->table.whole), status);
}

tarn_status tarn__cache_part_fill(tarn__cache_part *part, const uint64_t *at,
                                  tarn_status status) {
  const tarn_cache *cache = part->call->cache;
  status = tarn__cache_part_find_room(part, status);
  size_t count = status == TARN_OK ? name_reads(part, at != NULL) : 0;
  part->staging.count = count;
  status = tarn__cache_part_move(part, TARN__ROWS_GATHER, count, status);
  bool moved = status == TARN_OK;
  if (moved) {
    status = use_rows(part, at);
  } else if (part->found != NULL) {
    tarn__cache_part_filled(part, false);
  }
  bool together = !tarn__rows_are_alone(TARN__ROWS_GATHER, cache->table.whole);
  return agree(cache, status, !moved && together);
}

// --- all of it -------------------------------------------------------------

static tarn_status fill_some(tarn__cache_call *call, const uint64_t *keys,
                             const uint64_t *at, size_t count,
                             tarn_status status) {
  tarn__cache_part part = {.call = call,
                           .count = count,
                           .keys = keys,
                           .flags = TARN__SIEVE_MAKE_ROOM};
  if (status == TARN_OK) status = tarn__cache_part_begin(&part);
  status = tarn__cache_part_fill(&part, at, status);
  tarn__cache_part_end(&part, false);
  return status;
}

// Where others take part there is one part, whatever this rank misses.
static tarn_status fill_all(tarn__cache_call *call, const misses *missed,
                            tarn_status status) {
  size_t most = tarn__cache_part_rows(call->cache);
  if (!tarn__cache_is_alone(call->cache))
    return fill_some(call, missed->keys, missed->at,
                     status == TARN_OK ? missed->count : 0, status);
  for (size_t i = 0; i < missed->count && status == TARN_OK; i += most)
    status = fill_some(call, missed->keys + i, missed->at + i,
                       tarn__lesser(missed->count - i, most), status);
  return status;
}

tarn_status tarn_cache_gather(tarn_cache *cache, const tarn_whole_rows *rows,
                              tarn_stream *stream) {
  misses missed = {.count = 0};
  TARN__TRY(tarn__cache_check(cache));
  tarn__cache_call call = {.cache = cache, .action = TARN__ROWS_GATHER};
  tarn_status status = tarn__cache_call_read(&call, rows, stream);
  // Alone, a bad index is met when it is looked up.
  if (status == TARN_OK && !tarn__cache_is_alone(cache))
    status = tarn__cache_call_check(&call);
  if (status == TARN_OK) status = take_hits(&call, &missed);
  status = fill_all(&call, &missed, status);
  free_misses(&missed);
  return status;
}
