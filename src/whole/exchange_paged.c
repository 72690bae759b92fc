// Rows of this rank's part that a pager brings to memory, some at a time.
#include <string.h>

#include "base/hostmem.h"
#include "base/rows_move.h"
#include "base/status.h"
#include "whole/exchange.h"
#include "whole/pager.h"

// Rows that are brought at a time, at most. A pager reads for all of them at
// once, and with the last of them there is less and less to be read at a time:
// so the next ones are begun while these are moved.
enum { WINDOW = 4096 };

// Rows that are to be moved. A pair has its dense row; the row of the table is
// in block |blocks|.
typedef struct window {
  size_t count;
  uint64_t blocks[WINDOW];
  tarn__rows_pair pairs[WINDOW + TARN__ROWS_AHEAD];
} window;

typedef struct tarn__whole_windows {
  const tarn__whole_course *c;
  size_t column;  // the first byte of a row that is moved
  size_t byte;    // of a block, at which a row of the tensor begins
  tarn_rows rows;
  tarn__rows_plan plan;
  window all[2];
  window *filling;
  window *full;  // full, or empty
  void *pinned[WINDOW];
} windows;

tarn_status tarn__paged_keep(tarn__whole_exchange *kept) {
  kept->windows = tarn__host_alloc(sizeof *kept->windows);
  return kept->windows != NULL ? TARN_OK : TARN_E_NOMEM;
}

void tarn__paged_drop(tarn__whole_exchange *kept) {
  tarn__host_free(kept->windows, sizeof *kept->windows);
  kept->windows = NULL;
}

static windows *begin(const tarn__whole_course *c, const tarn__whole_span *span,
                      tarn_addr dense, size_t dense_stride, tarn_dtype dtype) {
  const tarn__whole_tensor *table = &c->order->table;
  windows *w = c->kept->windows;
  w->c = c;
  w->column = span->element * tarn_dtype_size(table->dtype);
  w->rows = (tarn_rows){.struct_size = sizeof w->rows,
                        .table_dtype = table->dtype,
                        .table_offset = table->offset + w->column,
                        .table_stride = table->stride,
                        .width = span->width,
                        .dense = dense,
                        .dense_dtype = dtype,
                        .dense_stride = dense_stride};
  w->plan = tarn__rows_choose(c->order->action, &w->rows);
  w->filling = &w->all[0];
  w->full = &w->all[1];
  return w;
}

// --- windows of rows -------------------------------------------------------

static void empty(window *rows) {
  memset(rows->pairs, 0, rows->count * sizeof *rows->pairs);
  rows->count = 0;
}

// Those of |rows|, and begins to bring |next|.
static tarn_status bring(windows *w, window *rows, const window *next) {
  const tarn__whole_pager *pager = w->c->whole->pager;
  size_t some = 0;
  for (size_t k = 0; k < rows->count; k += some) {
    tarn__rows_pair *pairs = rows->pairs + k;
    TARN__TRY(pager->pin(pager->context, rows->blocks + k, rows->count - k,
                         w->pinned, &some));
    if (k + some == rows->count && next->count > 0)
      pager->ahead(pager->context, next->blocks, next->count);
    for (size_t i = 0; i < some; i++)
      pairs[i].table = (unsigned char *)w->pinned[i] + w->byte + w->column;
    w->plan.move(&w->plan, pairs, some);
    pager->unpin(pager->context, w->pinned, some, !tarn__course_gathers(w->c));
  }
  return TARN_OK;
}

// Moves those of the full window, which the other becomes.
static tarn_status advance(windows *w) {
  window *rows = w->full;
  tarn_status status = bring(w, rows, w->filling);
  empty(rows);
  w->full = w->filling;
  w->filling = rows;
  if (status != TARN_OK) empty(w->full);
  return status;
}

// Moves all.
static tarn_status finish(windows *w) {
  TARN__TRY(advance(w));
  return advance(w);
}

static tarn_status add(windows *w, uint64_t number, size_t position) {
  window *rows = w->filling;
  tarn_addr dense = w->rows.dense + position * w->rows.dense_stride;
  rows->blocks[rows->count] =
      tarn__pager_find(&w->c->order->table, number, &w->byte);
  rows->pairs[rows->count++].dense = (unsigned char *)(uintptr_t)dense;
  return rows->count < WINDOW ? TARN_OK : advance(w);
}

// The dense row of an index that no row has.
static void clear(const windows *w, size_t position) {
  tarn__rows_pair pairs[1 + TARN__ROWS_AHEAD] = {{NULL, NULL}};
  tarn_addr dense = w->rows.dense + position * w->rows.dense_stride;
  pairs[0].dense = (unsigned char *)(uintptr_t)dense;
  w->plan.move(&w->plan, pairs, 1);
}

tarn_status tarn__paged_staged(const tarn__whole_course *c,
                               const tarn__whole_span *span,
                               const void *numbers, size_t count,
                               unsigned char *staged) {
  windows *w =
      begin(c, span, (tarn_addr)(uintptr_t)staged, span->row_bytes, c->dtype);
  for (size_t k = 0; k < count; k++) {
    uint64_t row = tarn__course_number_at(c, numbers, k);
    if (row >= c->kept->own_rows) {
      clear(w, k);
      continue;
    }
    TARN__TRY(add(w, c->kept->own_first + row, k));
  }
  return finish(w);
}

tarn_status tarn__paged_entries(const tarn__whole_course *c,
                                const uint64_t *entries, size_t count) {
  const tarn_rows *rows = &c->order->rows;
  size_t element = c->span.element * tarn_dtype_size(rows->dense_dtype);
  windows *w =
      begin(c, &c->span, rows->dense + c->piece * rows->dense_stride + element,
            rows->dense_stride, rows->dense_dtype);
  for (size_t k = 0; k < count; k++)
    TARN__TRY(
        add(w, tarn__entry_row(entries[k]), tarn__entry_position(entries[k])));
  return finish(w);
}
