// Rows that are ready: where the host sees a part they are updated in place,
// elsewhere they are copied, updated, and copied back, some at a time.
#include "base/convert.h"
#include "base/hostmem.h"
#include "base/status.h"
#include "embedding/embedding.h"
#include "whole/pager.h"

enum {
  LINE = 64,
  BYTES_AHEAD = 512,  // of a row; the rest the processor fetches by itself
  ROWS_AHEAD = 6,
};

// --- memory ----------------------------------------------------------------

static size_t columns_of(const tarn_embedding *e,
                         const tarn__embedding_part *part) {
  return part->tensor.width == 1 ? 1 : tarn__embedding_columns(e);
}

static size_t scratch_size(const tarn_embedding *e,
                           const tarn__embedding_part *part) {
  return TARN__UPDATE_ROWS * columns_of(e, part) * part->element;
}

tarn_status tarn__update_begin(tarn_embedding *e) {
  if (tarn__embedding_table(e)->dtype != TARN_DTYPE_F32) {
    e->wide = tarn__host_array(tarn__embedding_columns(e), sizeof *e->wide);
    if (e->wide == NULL) return TARN_E_NOMEM;
  }
  for (size_t i = 0; i < e->part_count; i++) {
    tarn__embedding_part *part = &e->parts[i];
    bool paged = part->tensor.whole->pager != NULL;
    if (part->view != NULL || e->rows == 0 || paged) continue;
    part->scratch = tarn__host_alloc(scratch_size(e, part));
    if (part->scratch == NULL) return TARN_E_NOMEM;
  }
  return TARN_OK;
}

void tarn__update_end(tarn_embedding *e) {
  tarn__host_free_array(e->wide, tarn__embedding_columns(e), sizeof *e->wide);
  e->wide = NULL;
  for (size_t i = 0; i < e->part_count; i++) {
    tarn__host_free(e->parts[i].scratch, scratch_size(e, &e->parts[i]));
    e->parts[i].scratch = NULL;
  }
}

// --- rows that the host does not see ---------------------------------------

static tarn_addr address_of(const void *pointer) {
  return (tarn_addr)(uintptr_t)pointer;
}

// Columns |column| to |column| + |width| - 1 of rows |numbers|, to the scratch
// or back.
static tarn_status carry(const tarn_embedding *e,
                         const tarn__embedding_part *part,
                         tarn__rows_action action, const int64_t *numbers,
                         size_t count, size_t column, size_t width) {
  const tarn_whole *whole = part->tensor.whole;
  size_t ends[2] = {
      0, (e->rows - 1) * part->stride + part->tensor.width * part->element};
  const tarn__whole_carriage carriage = {
      .action = action,
      .rows = {.struct_size = sizeof(tarn_rows),
               .table = {&part->address, ends, 1},
               .table_dtype = part->tensor.dtype,
               .table_offset = column * part->element,
               .table_stride = part->stride,
               .table_count = e->rows,
               .width = width,
               .dense = address_of(part->scratch),
               .dense_dtype = part->tensor.dtype,
               .dense_stride = width * part->element,
               .indices = address_of(numbers),
               .index_dtype = TARN_DTYPE_I64,
               .index_count = count},
      .table = whole->place,
      .dense = TARN_HOST,
      .host = whole->host};
  return tarn__rows_carry(&carriage, NULL);
}

// --- columns of parts --------------------------------------------------------

// What of a part is updated: |size| bytes of each row, from |base| on, |stride|
// apart. Rows that the host does not see are in the order of the update, and so
// are blocks that a pager has brought.
typedef struct lane {
  unsigned char *base;
  size_t stride;
  size_t column;
  size_t width;
  size_t size;
  bool seen;
  void *const *pinned;  // blocks; NULL: there are none
  size_t byte;          // of a block
} lane;

static lane lane_of(const tarn__embedding_part *part,
                    const tarn__embedding_update *update, void *const *pinned) {
  bool one = part->tensor.width == 1;
  size_t width = one ? 1 : update->width;
  size_t column = one ? 0 : update->column;
  size_t size = width * part->element;
  bool seen = part->view != NULL;
  return (lane){
      .base = seen ? part->view + column * part->element : part->scratch,
      .stride = seen ? part->stride : size,
      .column = column,
      .width = width,
      .size = size,
      .seen = seen || pinned != NULL,
      .pinned = pinned,
      .byte = (part->tensor.offset + column) * part->element};
}

static bool are_all_seen(const tarn_embedding *e, const lane *lanes) {
  bool all = true;
  for (size_t i = 0; i < e->part_count; i++)
    all = all && lanes[i].seen;
  return all;
}

static tarn_status carry_all(const tarn_embedding *e, const lane *lanes,
                             tarn__rows_action action,
                             const tarn__embedding_tally_ready *ready,
                             size_t count) {
  int64_t numbers[TARN__UPDATE_ROWS];
  if (are_all_seen(e, lanes)) return TARN_OK;
  for (size_t k = 0; k < count; k++)
    numbers[k] = ready[k].entry->row;
  for (size_t i = 0; i < e->part_count; i++) {
    if (lanes[i].seen) continue;
    TARN__TRY(carry(e, &e->parts[i], action, numbers, count, lanes[i].column,
                    lanes[i].width));
  }
  return TARN_OK;
}

// Of row |row|, the |k|th of those that are updated.
static unsigned char *row_at(const lane *l, size_t row, size_t k) {
  if (l->pinned != NULL) return (unsigned char *)l->pinned[k] + l->byte;
  return l->base + (l->seen ? row : k) * l->stride;
}

// Always inline: gcc drops calls of what only prefetches.
static inline __attribute__((always_inline)) void fetch(const lane *lanes,
                                                        size_t count,
                                                        size_t row, size_t k) {
  for (size_t i = 0; i < count; i++) {
    if (!lanes[i].seen) continue;
    const unsigned char *at = row_at(&lanes[i], row, k);
    size_t size = tarn__lesser(lanes[i].size, BYTES_AHEAD);
    for (size_t b = 0; b < size; b += LINE)
      __builtin_prefetch(at + b, 1);
  }
}

// --- a row -----------------------------------------------------------------

static tarn__embedding_row row_of(const tarn_embedding *e,
                                  const tarn__embedding_update *update,
                                  const lane *lanes,
                                  const tarn__embedding_tally_ready *ready,
                                  size_t k) {
  size_t row = ready->entry->row;
  size_t all = tarn__embedding_table(e)->width;
  tarn__embedding_row r = {.values = (float *)(void *)row_at(&lanes[0], row, k),
                           .gradient = ready->gradient,
                           .width = update->width,
                           .whole_width = all,
                           .begins = update->column == 0,
                           .ends = update->column + update->width == all};
  for (size_t i = 1, state = 0; i < e->part_count; i++) {
    void *at = row_at(&lanes[i], row, k);
    if (e->parts[i].tensor.dtype == TARN_DTYPE_I32) {
      r.count = at;
    } else {
      r.states[state++] = at;
    }
  }
  return r;
}

static void narrow(tarn_embedding *e, const tarn__embedding_update *update,
                   const tarn__embedding_tally_ready *ready, void *values) {
  const tarn_embedding_options *o = &e->optimizer.options;
  tarn_dtype dtype = tarn__embedding_table(e)->dtype;
  if ((o->flags & TARN_EMBEDDING_STOCHASTIC) == 0) {
    tarn__convert(dtype, values, TARN_DTYPE_F32, e->wide, update->width);
    return;
  }
  uint64_t row =
      tarn__stochastic_row(o->seed, e->applies, e->first + ready->entry->row);
  tarn__stochastic_round(dtype, values, e->wide, update->width, row,
                         update->column);
}

static void update_row(tarn_embedding *e, const tarn__embedding_update *update,
                       const lane *lanes,
                       const tarn__embedding_tally_ready *ready, size_t k) {
  tarn__embedding_row r = row_of(e, update, lanes, ready, k);
  tarn_dtype dtype = tarn__embedding_table(e)->dtype;
  void *values = r.values;
  if (e->wide != NULL) {
    tarn__convert(TARN_DTYPE_F32, e->wide, dtype, values, update->width);
    r.values = e->wide;
  }
  if (update->measures) {
    ready->entry->square += tarn__optimizer_square(&e->optimizer, &r);
    return;
  }
  if (tarn__optimizer_is_row_wise(&e->optimizer) && r.begins) {
    r.square = update->measured ? ready->entry->square
                                : tarn__optimizer_square(&e->optimizer, &r);
  }
  tarn__optimizer_update(&e->optimizer, &r);
  if (e->wide != NULL) narrow(e, update, ready, values);
}

static tarn_status update_rows(tarn_embedding *e,
                               const tarn__embedding_update *update,
                               void *const *pinned,
                               const tarn__embedding_tally_ready *ready,
                               size_t count) {
  lane lanes[TARN__PARTS] = {{.base = NULL}};
  for (size_t i = 0; i < e->part_count; i++)
    lanes[i] = lane_of(&e->parts[i], update, pinned);
  TARN__TRY(carry_all(e, lanes, TARN__ROWS_GATHER, ready, count));
  for (size_t k = 0; k < count && k < ROWS_AHEAD; k++)
    fetch(lanes, e->part_count, ready[k].entry->row, k);
  for (size_t k = 0; k < count; k++) {
    if (k + ROWS_AHEAD < count) {
      fetch(lanes, e->part_count, ready[k + ROWS_AHEAD].entry->row,
            k + ROWS_AHEAD);
    }
    update_row(e, update, lanes, &ready[k], k);
  }
  if (update->measures) return TARN_OK;
  return carry_all(e, lanes, TARN__ROWS_SCATTER, ready, count);
}

// Row i is in block i.
static tarn_status update_paged(tarn_embedding *e,
                                const tarn__whole_pager *pager,
                                const tarn__embedding_update *update,
                                const tarn__embedding_tally_ready *ready,
                                size_t count) {
  uint64_t blocks[TARN__UPDATE_ROWS];
  void *pinned[TARN__UPDATE_ROWS];
  size_t some = 0;
  for (size_t k = 0; k < count; k++)
    blocks[k] = ready[k].entry->row;
  for (size_t k = 0; k < count; k += some) {
    TARN__TRY(pager->pin(pager->context, blocks + k, count - k, pinned, &some));
    tarn_status status = update_rows(e, update, pinned, ready + k, some);
    pager->unpin(pager->context, pinned, some, !update->measures);
    TARN__TRY(status);
  }
  return TARN_OK;
}

tarn_status tarn__update_rows(tarn_embedding *e,
                              const tarn__embedding_update *update,
                              const tarn__embedding_tally_ready *ready,
                              size_t count) {
  const tarn__whole_pager *pager = tarn__embedding_table(e)->whole->pager;
  return pager != NULL ? update_paged(e, pager, update, ready, count)
                       : update_rows(e, update, NULL, ready, count);
}
