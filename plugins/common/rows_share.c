// A share of the rows, which go one after the other as they come, or a batch of
// them sorted by region of the table. Which of the two is faster depends on
// what is not known here: on the size of the table's pages, and on how many of
// them the processor remembers. So both are tried, and tried again now and
// then.
//
//   batches   [ as they come ][ sorted ][ the faster of the two ] . . .
//
// Some rows are found, then as many are moved, while those that were found last
// are fetched:
//
//   pairs   [ moved . . . ][ fetched . . . ]
#include <string.h>

#include "base/os.h"
#include "common/rows_direct.h"

enum {
  TRY_EVERY = 32,  // batches, the first two of which are tries
  WINDOW = 32,     // rows that are found together
};

typedef enum order { AS_THEY_COME, SORTED, ORDERS } order;

// What the thread works with.
typedef struct worker {
  tarn__common_rows_share *share;
  tarn__common_rows_buckets buckets;
  bool can_sort;
  size_t turn;             // the next batch
  uint64_t costs[ORDERS];  // ns of a batch when it was last done so
  size_t count;            // of the pairs
  tarn__rows_pair pairs[WINDOW + 2 * TARN__ROWS_AHEAD];
} worker;

// --- the window ------------------------------------------------------------

static void move_first(worker *w, size_t count) {
  const tarn__rows_plan *plan = w->share->plan;
  plan->move(plan, w->pairs, count);
  w->count -= count;
}

// Moves all pairs but those that stand there to be fetched.
static void move_ready(worker *w) {
  if (w->count <= TARN__ROWS_AHEAD) return;
  size_t ready = w->count - TARN__ROWS_AHEAD;
  move_first(w, ready);
  memmove(w->pairs, w->pairs + ready, TARN__ROWS_AHEAD * sizeof w->pairs[0]);
}

// Moves all there are; what stood behind them is fetched in vain.
static void move_rest(worker *w) {
  move_first(w, w->count);
}

// --- indices ---------------------------------------------------------------

static void stop(tarn__common_rows_share *share,
                 tarn__common_rows_fault_kind kind, int64_t index,
                 size_t position) {
  share->fault = (tarn__common_rows_fault){kind, index, position};
}

tarn__common_rows_verdict tarn__rows_judge(tarn__common_rows_share *share,
                                           int64_t index, size_t position) {
  const tarn__rows_plan *plan = share->plan;
  if ((plan->rows->flags & TARN_ROWS_SKIP_BAD) != 0) {
    return plan->action == TARN__ROWS_GATHER ? TARN__ROWS_CLEAR
                                             : TARN__ROWS_PASS;
  }
  stop(share, TARN__ROWS_BAD_INDEX, index, position);
  return TARN__ROWS_STOP;
}

static inline unsigned char *dense_at(const tarn_rows *rows, size_t position) {
  return (unsigned char *)(uintptr_t)(rows->dense +
                                      position * rows->dense_stride);
}

// Where |row| of |bytes| is; NULL for a fault.
static inline unsigned char *place(tarn__common_rows_share *share,
                                   const tarn_rows *rows, size_t bytes,
                                   size_t row, size_t position) {
  tarn_addr at = tarn__rows_place(rows, row, bytes);
  if (at == 0) stop(share, TARN__ROWS_IN_TWO, (int64_t)row, position);
  return (unsigned char *)(uintptr_t)at;
}

static inline tarn__common_rows_verdict find_row(tarn__common_rows_share *share,
                                                 const tarn_rows *rows,
                                                 size_t bytes, size_t position,
                                                 tarn__rows_pair *out) {
  size_t row = 0;
  tarn__common_rows_verdict verdict =
      tarn__rows_admit(share, rows, position, &row);
  *out = (tarn__rows_pair){NULL, dense_at(rows, position)};
  if (verdict != TARN__ROWS_TAKE) return verdict;
  if (bytes == 0) return TARN__ROWS_PASS;
  out->table = place(share, rows, bytes, row, position);
  return out->table != NULL ? TARN__ROWS_TAKE : TARN__ROWS_STOP;
}

// Adds the rows of |count| positions from |first| on. False: a fault. The loop
// has a copy of what it asks for each of them, which no pair that is written
// could have changed.
static bool find_rows(worker *w, size_t first, size_t count) {
  tarn__common_rows_share *share = w->share;
  const tarn_rows rows = *share->plan->rows;
  const size_t bytes = share->plan->table_bytes;
  tarn__rows_pair *out = w->pairs + w->count;
  for (size_t i = first; i < first + count; i++) {
    tarn__common_rows_verdict verdict = find_row(share, &rows, bytes, i, out);
    if (verdict == TARN__ROWS_STOP) return false;
    out += verdict != TARN__ROWS_PASS;
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
  const tarn__common_rows_buckets *b = &w->buckets;
  const tarn__rows_plan *plan = w->share->plan;
  for (size_t k = begin; k < b->ends[region]; k++) {
    const tarn__common_rows_entry *e = &b->entries[k];
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
    push(w, NULL, first + w->buckets.entries[k].position);
  }
}

static bool move_sorted(worker *w, size_t first, size_t count) {
  const tarn__common_rows_buckets *b = &w->buckets;
  if (!tarn__rows_buckets_sort(&w->buckets, w->share, first, count)) {
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

// False: a fault.
static bool move_batch(worker *w, size_t first, size_t count) {
  order how = next_order(w);
  uint64_t begin = tarn__os_busy_ns();
  bool fine = how == SORTED ? move_sorted(w, first, count)
                            : move_as_they_come(w, first, count);
  w->costs[how] = tarn__os_busy_ns() - begin;
  w->turn++;
  return fine;
}

void tarn__rows_share_run(tarn__common_rows_share *share) {
  worker w = {.share = share};
  size_t left = share->end - share->first;
  bool fine = true;
  w.can_sort = tarn__rows_buckets_begin(&w.buckets, share);
  while (fine && left != 0) {
    size_t now = w.can_sort && left > w.buckets.batch ? w.buckets.batch : left;
    fine = move_batch(&w, share->end - left, now);
    left -= now;
  }
  if (w.can_sort) tarn__rows_buckets_end(&w.buckets);
  tarn__rows_settle();
}
