// A share of the rows. It moves them in the order of their indices, or sorts a
// batch of them by region of the table first. Which is faster depends on the
// size of the table's pages, and on how many of them the processor keeps track
// of, neither of which is known here. So both are timed, again and again:
//
//   batches   [ as they come ][ sorted ][ the faster of the two ] . . .
//
// Some rows are found, then as many are moved, while those found last are
// fetched:
//
//   pairs   [ moved . . . ][ fetched . . . ]
//
// A batch is sorted by counting: how many of its rows are in each region, where
// those of each begin, then each row to its place. Rows of a region keep their
// order, so that sums do not change, and of equal indices the last wins.
//
//   regions    0    1    2         to clear
//   ends     [ 3 ][ 3 ][ 7 ] . . . [ 12 ]
//   entries  [ . . . ][ . . . . ]  [ . ]
//
// An entry takes 8 bytes for every table: it has the row's number within its
// region only. A table with too many regions has larger ones.
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "common/rows_direct.h"

enum {
  TRY_EVERY = 32,  // batches, the first two of which are tries
  WINDOW = 128,    // rows that are found together
};

// --- indices ---------------------------------------------------------------

typedef enum verdict {
  TAKE,
  PASS,   // nothing is to be done here
  CLEAR,  // the dense row is to be zero
  STOP,   // |fault| is set
} verdict;

// Rows are dealt out by the upper bits of a product, so that neighbouring rows,
// which may all be in demand, are in different shares.
static inline bool is_of(const tarn__common_rows_share *share, size_t row) {
  if (share->of == 1) return true;
  uint64_t mixed = ((uint64_t)row * UINT64_C(0x9e3779b97f4a7c15)) >> 32;
  return (mixed * share->of) >> 32 == share->number;
}

// What to do with an index that is out of range.
static verdict judge(tarn__common_rows_share *share, int64_t index,
                     size_t position) {
  const tarn__rows_plan *plan = share->plan;
  if ((plan->rows->flags & TARN_ROWS_SKIP_BAD) != 0) {
    return plan->action == TARN__ROWS_GATHER ? CLEAR : PASS;
  }
  share->fault = (tarn__common_rows_fault){index, position};
  return STOP;
}

// Checks the index at |position| and stores it in |*out|. |rows| are those of
// the share's plan, or a copy.
static inline verdict admit(tarn__common_rows_share *share,
                            const tarn_rows *rows, size_t position,
                            size_t *out) {
  int64_t index = tarn__rows_index_at(
      rows->index_dtype, (const void *)(uintptr_t)rows->indices, position);
  *out = (size_t)index;
  if (!tarn__rows_has(rows, index)) {
    return judge(share, index, position);
  }
  return is_of(share, *out) ? TAKE : PASS;
}

// --- sorting ---------------------------------------------------------------

enum {
  REGION_SIZE = 2 << 20,   // the processor keeps track of its pages
  REGIONS_MAX = 1024,      // as many lines as fit a near cache
  TABLE_LEAST = 32 << 20,  // below, it keeps track of all pages
  ROW_MOST = 512,          // above, finding a page costs little
  BATCH_MOST = 32 << 10,   // positions: an entry of each fits a near cache
  BATCH_LEAST = 4 << 10,   // below, few rows would share a region
  BATCHES = 32,            // of a share, at least: one is for trying
  SHIFT_MOST = 32,         // for an entry
};

// A batch of rows to move, by region of the table; within one, in the order of
// their positions.
typedef struct entry {
  uint32_t position;  // from the first of the batch on
  uint32_t row;       // from the first of its region on
} entry;

typedef struct buckets {
  unsigned shift;  // a row is in region row >> shift
  size_t count;    // regions
  size_t batch;    // positions that are sorted at a time, at most
  uint32_t *ends;  // of each region's entries, and of those to clear
  entry *entries;
} buckets;

// The rows of a region are a power of two.
static unsigned shift_of(const tarn_rows *rows) {
  unsigned shift = 0;
  while (rows->table_stride <= (size_t)REGION_SIZE >> (shift + 1))
    shift++;
  while ((rows->table_count - 1) >> shift >= REGIONS_MAX)
    shift++;
  return shift;
}

// A gather that goes through caches wants to write one line after the other.
static bool is_worth_it(const tarn__common_rows_share *share) {
  const tarn__rows_plan *plan = share->plan;
  const tarn_rows *rows = plan->rows;
  if (plan->action == TARN__ROWS_GATHER && !plan->streams) return false;
  return share->end - share->first >= (size_t)BATCHES * BATCH_LEAST &&
         plan->table_bytes != 0 && plan->table_bytes <= ROW_MOST &&
         rows->table_count >= TABLE_LEAST / rows->table_stride;
}

static size_t batch_of(const tarn__common_rows_share *share) {
  size_t batch = (share->end - share->first) / BATCHES;
  return batch < BATCH_MOST ? batch : BATCH_MOST;
}

static void buckets_end(buckets *b) {
  tarn__host_free_array(b->entries, b->batch, sizeof(entry));
  tarn__host_free_array(b->ends, b->count + 1, sizeof(uint32_t));
}

// False if sorting is of no use for |share|, or there is no memory; then there
// is nothing to end. Takes a quarter of a MiB at most.
static bool buckets_begin(buckets *b, const tarn__common_rows_share *share) {
  const tarn_rows *rows = share->plan->rows;
  *b = (buckets){0};
  if (!is_worth_it(share)) return false;
  b->shift = shift_of(rows);
  if (b->shift > SHIFT_MOST) return false;
  b->count = ((rows->table_count - 1) >> b->shift) + 1;
  b->batch = batch_of(share);
  b->ends = tarn__host_array(b->count + 1, sizeof(uint32_t));
  b->entries = tarn__host_array(b->batch, sizeof(entry));
  if (b->ends != NULL && b->entries != NULL) return true;
  buckets_end(b);
  return false;
}

// Calls |found| for each position to move; the region after the last holds the
// positions to clear. False: a fault.
static inline bool each(buckets *b, tarn__common_rows_share *share,
                        size_t first, size_t count,
                        void (*found)(buckets *b, size_t region, size_t row,
                                      size_t k)) {
  const tarn_rows rows = *share->plan->rows;
  for (size_t k = 0; k < count; k++) {
    size_t row = 0;
    verdict what = admit(share, &rows, first + k, &row);
    if (what == STOP) return false;
    if (what == TAKE) found(b, row >> b->shift, row, k);
    if (what == CLEAR) found(b, b->count, 0, k);
  }
  return true;
}

static void count_one(buckets *b, size_t region, size_t row, size_t k) {
  (void)row;
  (void)k;
  b->ends[region]++;
}

static void put_one(buckets *b, size_t region, size_t row, size_t k) {
  size_t mask = ((size_t)1 << b->shift) - 1;
  b->entries[b->ends[region]++] = (entry){(uint32_t)k, (uint32_t)(row & mask)};
}

// Counts become beginnings, which putting makes ends.
static void begin_regions(buckets *b) {
  uint32_t begin = 0;
  for (size_t region = 0; region <= b->count; region++) {
    uint32_t count = b->ends[region];
    b->ends[region] = begin;
    begin += count;
  }
}

// Sorts |count| positions, at most |batch|, from |first| on. False: a fault.
static bool buckets_sort(buckets *b, tarn__common_rows_share *share,
                         size_t first, size_t count) {
  memset(b->ends, 0, (b->count + 1) * sizeof *b->ends);
  if (!each(b, share, first, count, count_one)) return false;
  begin_regions(b);
  return each(b, share, first, count, put_one);
}

// --- the window ------------------------------------------------------------

typedef enum order { AS_THEY_COME, SORTED, ORDERS } order;

// The state of a thread.
typedef struct worker {
  tarn__common_rows_share *share;
  buckets sorted;
  bool can_sort;
  size_t turn;             // the next batch
  uint64_t costs[ORDERS];  // ns of a batch when it was last done so
  size_t count;            // of the pairs
  tarn__rows_pair pairs[WINDOW + 2 * TARN__ROWS_AHEAD];
} worker;

static void move_first(worker *w, size_t count) {
  const tarn__rows_plan *plan = w->share->plan;
  plan->move(plan, w->pairs, count);
  w->count -= count;
}

// Moves all pairs except those kept for prefetching.
static void move_ready(worker *w) {
  if (w->count <= TARN__ROWS_AHEAD) return;
  size_t ready = w->count - TARN__ROWS_AHEAD;
  move_first(w, ready);
  memmove(w->pairs, w->pairs + ready, TARN__ROWS_AHEAD * sizeof w->pairs[0]);
}

// Moves all pairs. In place of pairs behind them the last one is fetched.
static void move_rest(worker *w) {
  if (w->count == 0) return;
  tarn__rows_pair *behind = w->pairs + w->count;
  for (size_t k = 0; k < w->share->plan->ahead; k++)
    behind[k] = behind[-1];
  move_first(w, w->count);
}

// --- rows ------------------------------------------------------------------

static inline unsigned char *dense_at(const tarn_rows *rows, size_t position) {
  return (unsigned char *)(uintptr_t)(rows->dense +
                                      position * rows->dense_stride);
}

// Where |row| of |bytes| is; NULL for a fault.
static inline unsigned char *place(tarn__common_rows_share *share,
                                   const tarn_rows *rows, size_t bytes,
                                   size_t row, size_t position) {
  tarn_addr at = tarn__rows_place(rows, row, bytes);
  if (at == 0) share->fault = (tarn__common_rows_fault){(int64_t)row, position};
  return (unsigned char *)(uintptr_t)at;
}

static inline verdict find_row(tarn__common_rows_share *share,
                               const tarn_rows *rows, size_t bytes,
                               size_t position, tarn__rows_pair *out) {
  size_t row = 0;
  verdict what = admit(share, rows, position, &row);
  *out = (tarn__rows_pair){NULL, dense_at(rows, position)};
  if (what != TAKE) return what;
  if (bytes == 0) return PASS;
  out->table = place(share, rows, bytes, row, position);
  return out->table != NULL ? TAKE : STOP;
}

// Whether every index that the table has is of a row that the share moves, in
// one chunk. As a rule it is so.
static bool is_plain(const tarn__common_rows_share *share) {
  const tarn__rows_plan *plan = share->plan;
  return share->of == 1 && plan->rows->table.count == 1 &&
         plan->table_bytes != 0;
}

// The rows of |count| positions from |first| on, up to the first index that the
// table does not have. Returns how many they are.
static inline __attribute__((always_inline)) size_t find_plain_of(
    tarn_dtype dtype, const tarn_rows *given, size_t first, size_t count,
    tarn__rows_pair *out) {
  const tarn_rows rows = *given;
  const void *indices = (const void *)(uintptr_t)rows.indices;
  const tarn_addr table = rows.table.chunks[0] + rows.table_offset;
  unsigned char *dense = dense_at(&rows, first);
  for (size_t k = 0; k < count; k++) {
    int64_t index = tarn__rows_index_at(dtype, indices, first + k);
    if (!tarn__rows_has(&rows, index)) return k;
    tarn_addr row = table + (size_t)index * rows.table_stride;
    out[k] = (tarn__rows_pair){(unsigned char *)(uintptr_t)row, dense};
    dense += rows.dense_stride;
  }
  return count;
}

// A loop for each type of indices.
static size_t find_plain(const tarn_rows *rows, size_t first, size_t count,
                         tarn__rows_pair *out) {
  return rows->index_dtype == TARN_DTYPE_I64
             ? find_plain_of(TARN_DTYPE_I64, rows, first, count, out)
             : find_plain_of(TARN_DTYPE_I32, rows, first, count, out);
}

// Adds the rows of |count| positions from |first| on. False: a fault. The loop
// reads copies, since it writes pairs, which the compiler could take for
// aliases.
static bool find_rows(worker *w, size_t first, size_t count) {
  tarn__common_rows_share *share = w->share;
  const tarn_rows rows = *share->plan->rows;
  const size_t bytes = share->plan->table_bytes;
  const size_t end = first + count;
  const bool plain = is_plain(share);
  tarn__rows_pair *out = w->pairs + w->count;
  for (size_t i = first; i < end; i++) {
    size_t found = plain ? find_plain(&rows, i, end - i, out) : 0;
    out += found;
    i += found;
    if (i == end) break;
    verdict what = find_row(share, &rows, bytes, i, out);
    if (what == STOP) return false;
    out += what != PASS;
  }
  w->count = (size_t)(out - w->pairs);
  return true;
}

// --- batches ---------------------------------------------------------------

static bool move_as_they_come(worker *w, size_t first, size_t count) {
  for (size_t end = first + count; first < end;) {
    size_t now = end - first < WINDOW ? end - first : WINDOW;
    if (!find_rows(w, first, now)) return false;
    move_ready(w);
    first += now;
  }
  move_rest(w);
  return true;
}

static inline void push(worker *w, unsigned char *table, size_t position) {
  unsigned char *dense = dense_at(w->share->plan->rows, position);
  w->pairs[w->count++] = (tarn__rows_pair){table, dense};
  if (w->count == WINDOW + TARN__ROWS_AHEAD) move_ready(w);
}

static bool move_region(worker *w, size_t region, size_t first, size_t begin) {
  const buckets *b = &w->sorted;
  const tarn__rows_plan *plan = w->share->plan;
  for (size_t k = begin; k < b->ends[region]; k++) {
    const entry *e = &b->entries[k];
    size_t row = (region << b->shift) + e->row;
    size_t position = first + e->position;
    unsigned char *table =
        place(w->share, plan->rows, plan->table_bytes, row, position);
    if (table == NULL) return false;
    push(w, table, position);
  }
  return true;
}

static void clear_rows(worker *w, size_t first, size_t begin, size_t end) {
  for (size_t k = begin; k < end; k++) {
    push(w, NULL, first + w->sorted.entries[k].position);
  }
}

static bool move_sorted(worker *w, size_t first, size_t count) {
  const buckets *b = &w->sorted;
  if (!buckets_sort(&w->sorted, w->share, first, count)) {
    return false;
  }
  size_t begin = 0;
  for (size_t region = 0; region < b->count; region++) {
    if (!move_region(w, region, first, begin)) return false;
    begin = b->ends[region];
  }
  clear_rows(w, first, begin, b->ends[b->count]);
  move_rest(w);
  return true;
}

static order next_order(const worker *w) {
  size_t turn = w->turn % TRY_EVERY;
  if (!w->can_sort || turn == AS_THEY_COME) return AS_THEY_COME;
  if (turn == SORTED) return SORTED;
  return w->costs[SORTED] < w->costs[AS_THEY_COME] ? SORTED : AS_THEY_COME;
}

// False: a fault. The clock is read only where there is a choice: for a small
// call it takes long.
static bool move_batch(worker *w, size_t first, size_t count) {
  if (!w->can_sort) return move_as_they_come(w, first, count);
  order how = next_order(w);
  uint64_t begin = tarn__os_busy_ns();
  bool fine = how == SORTED ? move_sorted(w, first, count)
                            : move_as_they_come(w, first, count);
  w->costs[how] = tarn__os_busy_ns() - begin;
  w->turn++;
  return fine;
}

// Pairs are left as they are until rows are found: to clear them takes longer
// than some calls do.
static void worker_begin(worker *w, tarn__common_rows_share *share) {
  w->share = share;
  w->can_sort = buckets_begin(&w->sorted, share);
  w->turn = 0;
  w->costs[AS_THEY_COME] = 0;
  w->costs[SORTED] = 0;
  w->count = 0;
}

void tarn__rows_share_run(tarn__common_rows_share *share) {
  worker w;
  worker_begin(&w, share);
  size_t left = share->end - share->first;
  bool fine = true;
  while (fine && left != 0) {
    size_t now = w.can_sort && left > w.sorted.batch ? w.sorted.batch : left;
    fine = move_batch(&w, share->end - left, now);
    left -= now;
  }
  if (w.can_sort) buckets_end(&w.sorted);
  if (share->plan->streams) tarn__rows_settle();
}
