// Moves rows of memory that is reached by calls: a device's memory by copies,
// memory in pieces where a piece ends within an element.
//
//   the room     [ indices | of the table | of the dense rows ]
//
// The indices are read in pieces, twice: first to check all of them before a
// row moves, then to move the rows. A group of adjacent dense rows, or a span
// of a wide row, is moved at a time:
//
//   gather           table ──view──► move ──write──► dense
//   scatter, _add    dense ──view──► move ──write──► table
//                    (add: table ──view──┘)
//
// Rows are moved in order, each written before the next one is read, so that an
// index that occurs twice adds twice.
#include "base/rows_walk.h"

#include "base/rows_move.h"
#include "base/status.h"

typedef struct walk {
  tarn__rows_action action;
  const tarn_rows *rows;
  const tarn__rows_reach *reach;
  char *text;
  size_t text_size;
  size_t index_room;  // bytes
  size_t part_room;   // bytes of the table, and of the dense rows
  const unsigned char *indices;
  size_t loaded;  // the position of the first index that is here, and how
  size_t count;   // many are
} walk;

// --- indices ---------------------------------------------------------------

static tarn_status load_indices(walk *w, size_t first) {
  size_t size = tarn_dtype_size(w->rows->index_dtype);
  size_t count =
      tarn__lesser(w->rows->index_count - first, w->index_room / size);
  unsigned char *bytes = w->reach->room;
  if (w->loaded == first && w->count == count) return TARN_OK;
  TARN__TRY(w->reach->view(w->reach->context, w->rows->indices + first * size,
                           count * size, true, &bytes));
  w->indices = bytes;
  w->loaded = first;
  w->count = count;
  return TARN_OK;
}

// Where the row of the index at |position|, which is loaded, stands; 0 for one
// to pass over.
static tarn_status find_row(const walk *w, size_t position, tarn_addr *out) {
  int64_t index = tarn__rows_index_at(w->rows->index_dtype, w->indices,
                                      position - w->loaded);
  bool exists = tarn__rows_has(w->rows, index);
  *out = 0;
  if (exists && w->rows->width == 0) return TARN_OK;
  if (exists) {
    *out = tarn__rows_place(w->rows, (size_t)index,
                            tarn__rows_table_bytes(w->rows));
  }
  if (*out != 0) return TARN_OK;
  if (!exists && (w->rows->flags & TARN_ROWS_SKIP_BAD) != 0) return TARN_OK;
  tarn__rows_say_bad(w->rows, index, position, w->text, w->text_size);
  return TARN_E_INVALID;
}

static tarn_status check_rows(const walk *w) {
  for (size_t i = 0; i < w->count; i++) {
    tarn_addr row = 0;
    TARN__TRY(find_row(w, w->loaded + i, &row));
  }
  return TARN_OK;
}

// Calls |each| with each piece of the indices.
static tarn_status in_pieces(walk *w, tarn_status (*each)(const walk *w)) {
  for (size_t first = 0; first < w->rows->index_count; first += w->count) {
    TARN__TRY(load_indices(w, first));
    TARN__TRY(each(w));
  }
  return TARN_OK;
}

// --- rows by way of the host -----------------------------------------------

static bool gathers(const walk *w) {
  return w->action == TARN__ROWS_GATHER;
}

// Elements from |element| on of the row at |position|; |dense| are its dense
// ones.
static tarn_status move_row(const walk *w, const tarn__rows_plan *plan,
                            size_t position, size_t element,
                            unsigned char *dense) {
  const tarn__rows_reach *reach = w->reach;
  unsigned char *room = reach->room + w->index_room;
  tarn__rows_pair pairs[1 + TARN__ROWS_AHEAD] = {{NULL, dense}};
  tarn_addr row = 0;
  TARN__TRY(find_row(w, position, &row));
  if (row == 0 && !gathers(w)) return TARN_OK;
  if (row != 0) {
    pairs[0].table = room;
    row += element * tarn_dtype_size(w->rows->table_dtype);
    TARN__TRY(reach->view(reach->context, row, plan->table_bytes,
                          w->action != TARN__ROWS_SCATTER, &pairs[0].table));
  }
  plan->move(plan, pairs, 1);
  if (gathers(w) || pairs[0].table != room) return TARN_OK;
  return reach->write(reach->context, row, room, plan->table_bytes);
}

static tarn_addr dense_at(const walk *w, size_t position) {
  return w->rows->dense + position * w->rows->dense_stride;
}

// |width| elements from |element| on of |count| rows. Several rows are adjacent
// and whole.
static tarn_status move_block(const walk *w, size_t position, size_t count,
                              size_t element, size_t width) {
  const tarn__rows_reach *reach = w->reach;
  unsigned char *room = reach->room + w->index_room + w->part_room;
  unsigned char *dense = room;
  tarn_rows rows = *w->rows;
  rows.width = width;
  rows.index_count = 1;
  rows.flags = 0;  // the room is read next
  const tarn__rows_plan plan = tarn__rows_choose(w->action, &rows);
  size_t size = count * plan.dense_bytes;
  tarn_addr at =
      dense_at(w, position) + element * tarn_dtype_size(rows.dense_dtype);
  TARN__TRY(reach->view(reach->context, at, size, !gathers(w), &dense));
  for (size_t k = 0; k < count; k++) {
    TARN__TRY(move_row(w, &plan, position + k, element,
                       dense + k * plan.dense_bytes));
  }
  if (!gathers(w) || dense != room) return TARN_OK;
  return reach->write(reach->context, at, room, size);
}

static tarn_status move_some(const walk *w, size_t first, size_t end) {
  size_t width = w->rows->width;
  size_t dense = tarn_dtype_size(w->rows->dense_dtype);
  size_t table = tarn_dtype_size(w->rows->table_dtype);
  size_t span = w->part_room / (dense > table ? dense : table);
  bool packed = width * dense == w->rows->dense_stride;
  size_t group = packed && span > width ? span / width : 1;
  for (size_t i = first; i < end; i += group) {
    for (size_t e = 0; e < width; e += span) {
      TARN__TRY(move_block(w, i, tarn__lesser(end - i, group), e,
                           tarn__lesser(width - e, span)));
    }
  }
  return TARN_OK;
}

static tarn_status move_rows(const walk *w) {
  return move_some(w, w->loaded, w->loaded + w->count);
}

// --- rows as they are ------------------------------------------------------

static tarn_status copy_row(const walk *w, size_t position) {
  tarn_addr row = 0;
  tarn_addr dense = dense_at(w, position);
  size_t size = tarn__rows_dense_bytes(w->rows);
  TARN__TRY(find_row(w, position, &row));
  if (row == 0) {
    return gathers(w) ? move_some(w, position, position + 1) : TARN_OK;
  }
  return w->reach->copy(w->reach->context, gathers(w) ? dense : row,
                        gathers(w) ? row : dense, size);
}

static tarn_status copy_rows(const walk *w) {
  for (size_t i = 0; i < w->count; i++) {
    TARN__TRY(copy_row(w, w->loaded + i));
  }
  return TARN_OK;
}

// --- all of it -------------------------------------------------------------

tarn_status tarn__rows_walk(tarn__rows_action action, const tarn_rows *rows,
                            const tarn__rows_reach *reach, char *text,
                            size_t text_size) {
  bool as_it_is = reach->copy != NULL && action != TARN__ROWS_SCATTER_ADD &&
                  rows->table_dtype == rows->dense_dtype;
  walk w = {.action = action,
            .rows = rows,
            .reach = reach,
            .text = text,
            .text_size = text_size,
            .index_room = reach->room_size / 8,
            .part_room = reach->room_size / 16 * 7};
  if (text_size != 0) text[0] = '\0';
  TARN__TRY(in_pieces(&w, check_rows));
  if (rows->width == 0) return TARN_OK;
  return in_pieces(&w, as_it_is ? copy_rows : move_rows);
}
