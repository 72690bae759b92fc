// Write back and warm: many rows, a part at a time. Ranks have different
// numbers of parts; where rows are moved together, those that are done take
// part until all are.
#include "base/hostmem.h"
#include "base/status.h"
#include "cache/cache.h"

// Whether any rank has |*io_more|. A failure of one rank is told to all.
static tarn_status ask_all(const tarn_cache *cache, tarn_status status,
                           bool *io_more) {
  tarn_comm *comm = tarn_whole_comm(cache->table.whole);
  size_t ranks = tarn_comm_size(comm);
  uint8_t mine = *io_more;
  if (tarn__cache_is_alone(cache)) return status;
  uint8_t *all = tarn__host_alloc(ranks);
  if (all == NULL && status == TARN_OK) status = TARN_E_NOMEM;
  status = tarn_comm_agree(comm, status);
  if (status == TARN_OK && all != NULL)
    status = tarn_comm_allgather(comm, &mine, sizeof mine, all);
  for (size_t r = 0; status == TARN_OK && all != NULL && r < ranks; r++)
    *io_more = *io_more || all[r] != 0;
  tarn__host_free(all, ranks);
  return status;
}

// --- write back ------------------------------------------------------------

typedef struct writing {
  tarn__cache_part part;
  tarn__cache_sieve_line *dirty;
  uint64_t from;
} writing;

static size_t take_dirty(writing *w) {
  tarn__cache_sieve *sieve = w->part.call->cache->sieve;
  size_t count =
      tarn__sieve_take_dirty(sieve, w->from, w->dirty, w->part.count);
  for (size_t i = 0; i < count; i++) {
    w->part.rows[i] = (int64_t)w->dirty[i].key;
    w->part.slots[i] = w->dirty[i].line;
  }
  if (count > 0) w->from = w->dirty[count - 1].key + 1;
  return count;
}

static tarn_status write_some(writing *w, tarn_status status, bool *out_more) {
  tarn__cache_part *part = &w->part;
  tarn_cache *cache = part->call->cache;
  const tarn__cache_rows lines = tarn__cache_lines(cache);
  size_t count = status == TARN_OK ? take_dirty(w) : 0;
  part->staging.count = count;
  if (status == TARN_OK)
    status = tarn__cache_carry(part->call, TARN__ROWS_GATHER, &lines,
                               &part->staging, part->slots, TARN_DTYPE_I64);
  status = tarn__cache_part_move(part, TARN__ROWS_SCATTER, count, status);
  for (size_t i = 0; i < count; i++)
    tarn__sieve_written(cache->sieve, w->dirty[i].line, status == TARN_OK);
  *out_more = count == part->count;
  return ask_all(cache, status, out_more);
}

static tarn_status write_all(tarn__cache_call *call) {
  bool more = true;
  writing w = {
      .part = {.call = call,
               .count = tarn__lesser(tarn__cache_part_rows(call->cache),
                                     call->cache->lines)}};
  tarn_status status = tarn__cache_part_begin(&w.part);
  w.dirty = tarn__host_array(w.part.count, sizeof *w.dirty);
  if (status == TARN_OK && w.dirty == NULL) status = TARN_E_NOMEM;
  while (more) {
    status = write_some(&w, status, &more);
    if (status != TARN_OK) break;
  }
  tarn__host_free_array(w.dirty, w.part.count, sizeof *w.dirty);
  tarn__cache_part_end(&w.part, false);
  return status;
}

tarn_status tarn_cache_write_back(tarn_cache *cache) {
  TARN__TRY(tarn__cache_check(cache));
  if (cache->mode == TARN_CACHE_READ_ONLY) return TARN_OK;
  TARN__TRY(tarn__whole_check(cache->table.whole));
  tarn__cache_call call = {.cache = cache};
  return write_all(&call);
}

// --- warm ------------------------------------------------------------------

typedef struct use {
  uint64_t count;
  uint64_t row;
} use;

static bool is_less(const use *a, const use *b) {
  return a->count != b->count ? a->count < b->count : a->row > b->row;
}

// A heap whose first is the least used.
static void sink(use *heap, size_t count, size_t at, use item) {
  for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
    if (child + 1 < count && is_less(&heap[child + 1], &heap[child])) child++;
    if (!is_less(&heap[child], &item)) break;
    heap[at] = heap[child];
    at = child;
  }
  heap[at] = item;
}

static void rise(use *heap, size_t at, use item) {
  for (; at > 0 && is_less(&item, &heap[(at - 1) / 2]); at = (at - 1) / 2)
    heap[at] = heap[(at - 1) / 2];
  heap[at] = item;
}

// The |most| rows that are used most, as a heap.
static size_t choose(const uint64_t *counts, size_t rows, use *heap,
                     size_t most) {
  size_t count = 0;
  for (size_t i = 0; i < rows; i++) {
    const use item = {counts[i], i};
    if (item.count == 0) continue;
    if (count < most) {
      rise(heap, count++, item);
    } else if (is_less(&heap[0], &item)) {
      sink(heap, count, 0, item);
    }
  }
  return count;
}

// The most used first. What comes out of the heap is the least used.
static void order(use *heap, size_t count, uint64_t *keys) {
  while (count-- > 0) {
    keys[count] = heap[0].row;
    sink(heap, count, 0, heap[count]);
  }
}

static tarn_status read_some(tarn__cache_call *call, const uint64_t *keys,
                             size_t count, tarn_status status) {
  tarn__cache_part part = {.call = call,
                           .count = count,
                           .keys = keys,
                           .flags = TARN__SIEVE_FREE_ROOM};
  if (status == TARN_OK) status = tarn__cache_part_begin(&part);
  status = tarn__cache_part_fill(&part, NULL, status);
  tarn__cache_part_end(&part, false);
  return status;
}

static tarn_status read_all(tarn__cache_call *call, const uint64_t *keys,
                            size_t count, tarn_status status) {
  size_t most = tarn__cache_part_rows(call->cache);
  size_t at = 0;
  bool more = true;
  while (more) {
    size_t some = tarn__lesser(count - at, most);
    status = read_some(call, some > 0 ? keys + at : NULL, some, status);
    at += some;
    more = at < count;
    status = ask_all(call->cache, status, &more);
    if (status != TARN_OK) break;
  }
  return status;
}

tarn_status tarn_cache_warm(tarn_cache *cache, const uint64_t *counts) {
  TARN__TRY(tarn__cache_check(cache));
  if (counts == NULL) return tarn__fail(TARN_E_INVALID, "cache: no counts");
  TARN__TRY(tarn__whole_check(cache->table.whole));
  // Where a set of lines is full the next ones are for others.
  size_t most = tarn__lesser(2 * cache->lines, cache->table.rows);
  size_t count = 0;
  tarn__cache_call call = {.cache = cache};
  use *heap = tarn__host_array(most, sizeof *heap);
  uint64_t *keys = tarn__host_array(most, sizeof *keys);
  bool all = heap != NULL && keys != NULL;
  if (all) {
    count = choose(counts, cache->table.rows, heap, most);
    order(heap, count, keys);
  }
  tarn__host_free_array(heap, most, sizeof *heap);
  tarn_status status =
      read_all(&call, keys, count, all ? TARN_OK : TARN_E_NOMEM);
  tarn__host_free_array(keys, most, sizeof *keys);
  return status;
}
