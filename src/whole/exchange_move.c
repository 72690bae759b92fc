// Rows of one rank's part, of its staging and of its dense block, from one to
// the other. Where the host can touch both ends it does so, past every check
// but that of numbers which others have written; elsewhere rows_carry.c does.
#include "base/convert.h"
#include "base/rows_move.h"
#include "base/status.h"
#include "whole/exchange.h"

enum { WINDOW = 256 };  // rows that are moved by one call

static size_t lesser(size_t a, size_t b) {
  return a < b ? a : b;
}

static bool gathers(const tarn__pass *p) {
  return p->order->action == TARN__ROWS_GATHER;
}

static tarn_addr address_of(const void *pointer) {
  return (tarn_addr)(uintptr_t)pointer;
}

// --- the ends --------------------------------------------------------------

// What says which row of an end a move's row k is.
typedef enum numbers {
  IN_ORDER,   // k
  NARROW,     // int32_t
  WIDE,       // int64_t
  ROWS,       // uint64_t, the row of an entry
  POSITIONS,  // uint64_t, the position of an entry
  NOWHERE,    // there is none
} numbers;

typedef struct end {
  tarn_addr base;  // of row 0
  size_t stride;
  size_t count;  // of rows, where NARROW or WIDE numbers say which
  tarn_dtype dtype;
  numbers kind;
  const void *numbers;
} end;

// This rank's part; row 0 is the first in it.
static end owned_end(const tarn__pass *p, const void *list) {
  const tarn_whole *whole = p->whole;
  const tarn__tensor *table = &p->order->table;
  size_t first = p->kept->sorted.firsts[whole->rank];
  return (end){.base = whole->parts[whole->rank] + table->offset +
                       first * table->stride - whole->offsets[whole->rank] +
                       p->element * tarn_dtype_size(table->dtype),
               .stride = table->stride,
               .count = p->kept->sorted.firsts[whole->rank + 1] - first,
               .dtype = table->dtype,
               .kind = p->kept->sorted.narrow ? NARROW : WIDE,
               .numbers = list};
}

static end dense_end(const tarn__pass *p, size_t piece, numbers kind,
                     const void *list) {
  const tarn_rows *rows = &p->order->rows;
  return (end){.base = rows->dense + piece * rows->dense_stride +
                       p->element * tarn_dtype_size(rows->dense_dtype),
               .stride = rows->dense_stride,
               .count = rows->index_count - piece,
               .dtype = rows->dense_dtype,
               .kind = kind,
               .numbers = list};
}

static end staged_end(const tarn__pass *p, const unsigned char *staged) {
  return (end){
      .base = address_of(staged), .stride = p->row_bytes, .dtype = p->dtype};
}

// --- by the host -----------------------------------------------------------

// Numbers that others have written may be others by now than those that were
// looked at: what is no row has no address, and nothing is moved.
static inline unsigned char *row_at(const end *e, uint64_t row) {
  tarn_addr at = e->base + row * e->stride;
  return row < e->count ? (unsigned char *)(uintptr_t)at : NULL;
}

#define EACH(statement)                \
  do {                                 \
    for (size_t k = 0; k < count; k++) \
      (statement);                     \
    return;                            \
  } while (0)

// Sets the |member| of |count| pairs, from the move's row |first| on.
#define FINDER(member)                                                         \
  static void find_##member(const end *e, size_t first, size_t count,          \
                            tarn__rows_pair *out) {                            \
    unsigned char *base = (unsigned char *)(uintptr_t)e->base;                 \
    const int32_t *narrow = e->numbers;                                        \
    const int64_t *wide = e->numbers;                                          \
    const uint64_t *entries = e->numbers;                                      \
    switch (e->kind) {                                                         \
      case IN_ORDER:                                                           \
        EACH(out[k].member = base + (first + k) * e->stride);                  \
      case NARROW:                                                             \
        EACH(out[k].member = row_at(e, (uint64_t)narrow[first + k]));          \
      case WIDE:                                                               \
        EACH(out[k].member = row_at(e, (uint64_t)wide[first + k]));            \
      case ROWS:                                                               \
        EACH(out[k].member =                                                   \
                 base + tarn__entry_row(entries[first + k]) * e->stride);      \
      case POSITIONS:                                                          \
        EACH(out[k].member =                                                   \
                 base + tarn__entry_position(entries[first + k]) * e->stride); \
      case NOWHERE:                                                            \
        EACH(out[k].member = NULL);                                            \
    }                                                                          \
  }

FINDER(table)
FINDER(dense)

// The pairs that a move only fetches are those that the next one moves.
static void move_all(const tarn__rows_plan *plan, const end *table,
                     const end *dense, size_t count) {
  tarn__rows_pair pairs[WINDOW + TARN__ROWS_AHEAD] = {{NULL, NULL}};
  for (size_t k = 0; k < count; k += WINDOW) {
    size_t ahead = lesser(count - k, WINDOW + TARN__ROWS_AHEAD);
    find_table(table, k, ahead, pairs);
    find_dense(dense, k, ahead, pairs);
    plan->move(plan, pairs, lesser(count - k, WINDOW));
  }
  tarn__rows_settle();
}

static void move(const tarn__pass *p, tarn__rows_action action,
                 const end *table, const end *dense, size_t count) {
  tarn_rows rows = {
      .struct_size = sizeof rows,
      .table_dtype = table->dtype,
      .table_offset = table->base,
      .table_stride = table->stride,
      .width = p->width,
      .dense = dense->base,
      .dense_dtype = dense->dtype,
      .dense_stride = dense->stride,
      .index_count = count,
      // Else it is the staging that is written, which is read next.
      .flags = action == TARN__ROWS_SCATTER || dense->kind != IN_ORDER
                   ? TARN_ROWS_PAST_CACHES
                   : 0};
  tarn__rows_plan plan = {.action = action,
                          .rows = &rows,
                          .table_bytes = tarn__rows_table_bytes(&rows),
                          .dense_bytes = tarn__rows_dense_bytes(&rows)};
  tarn__rows_choose(&plan);
  move_all(&plan, table, dense, count);
}

// Numbers that others have written.
static tarn_status check_list(const end *table, size_t count) {
  const int32_t *narrow = table->numbers;
  const int64_t *wide = table->numbers;
  for (size_t i = 0; i < count; i++) {
    int64_t row = table->kind == NARROW ? narrow[i] : wide[i];
    if ((uint64_t)row < table->count) continue;
    return tarn__fail(TARN_E_CORRUPT,
                      "whole rows: a rank wants row %lld of %zu",
                      (long long)row, table->count);
  }
  return TARN_OK;
}

// --- by devices ------------------------------------------------------------

// Rows of the staging to or from |count| rows of |table|.
static tarn_status carry(const tarn__pass *p, tarn__rows_action action,
                         tarn_place place, const end *table, const end *staged,
                         size_t count) {
  size_t row = p->width * tarn_dtype_size(table->dtype);
  size_t size = table->count > 0 ? (table->count - 1) * table->stride + row : 0;
  size_t ends[2] = {0, size};
  tarn__carriage carriage = {.action = action,
                             .table = place,
                             .dense = TARN_HOST,
                             .host = p->whole->host};
  carriage.rows = (tarn_rows){
      .struct_size = sizeof carriage.rows,
      .table = {&table->base, ends, 1},
      .table_dtype = table->dtype,
      .table_stride = table->stride,
      .table_count = table->count,
      .width = p->width,
      .dense = staged->base,
      .dense_dtype = staged->dtype,
      .dense_stride = staged->stride,
      .indices = address_of(table->numbers),
      .index_dtype = table->kind == NARROW ? TARN_DTYPE_I32 : TARN_DTYPE_I64,
      .index_count = count,
      .flags = action == TARN__ROWS_GATHER ? TARN_ROWS_SKIP_BAD : 0,
  };
  return tarn__rows_carry(&carriage, NULL);
}

// --- from one to the other -------------------------------------------------

tarn_status tarn__pass_owned(const tarn__pass *p, const void *list,
                             size_t count, unsigned char *staged) {
  tarn__rows_action action = p->order->action;
  end table = owned_end(p, list);
  end dense = staged_end(p, staged);
  tarn_status status = check_list(&table, count);
  if (status != TARN_OK) return status;
  if (!tarn__rows_are_touchable(p->whole->place)) {
    return carry(p, action, p->whole->place, &table, &dense, count);
  }
  move(p, action, &table, &dense, count);
  return TARN_OK;
}

tarn_status tarn__pass_dense(const tarn__pass *p, tarn__rows_action action,
                             size_t piece, const int32_t *positions,
                             size_t count, unsigned char *staged) {
  end table = dense_end(p, piece, NARROW, positions);
  end dense = staged_end(p, staged);
  if (!tarn__rows_are_touchable(p->order->place)) {
    return carry(p, action, p->order->place, &table, &dense, count);
  }
  move(p, action, &table, &dense, count);
  return TARN_OK;
}

// --- rows of this rank's own -----------------------------------------------

// By way of the staging, where no row is that of another rank's. Entries become
// numbers of rows and positions, in the room in which indices were sorted.
static tarn_status carry_own(const tarn__pass *p, const uint64_t *entries,
                             size_t count, bool bad) {
  tarn__sorted *sorted = &p->kept->sorted;
  int32_t *positions = (int32_t *)sorted->homes;
  unsigned char *room = tarn__staging_own(&p->kept->staging, p->whole->rank);
  end table = owned_end(p, sorted->indices);
  end staged = staged_end(p, room);
  tarn_status status = TARN_OK;
  table.kind = WIDE;
  for (size_t k = 0; k < count; k++) {
    uint64_t row = tarn__entry_row(entries[k]) - sorted->firsts[sorted->rank];
    sorted->indices[k] = bad ? -1 : (int64_t)row;
    positions[k] = (int32_t)tarn__entry_position(entries[k]);
  }
  if (!gathers(p)) {
    status = tarn__pass_dense(p, TARN__ROWS_GATHER, p->piece, positions, count,
                              room);
  }
  if (status != TARN_OK) return status;
  status = carry(p, p->order->action, p->whole->place, &table, &staged, count);
  if (status != TARN_OK || !gathers(p)) return status;
  return tarn__pass_dense(p, TARN__ROWS_SCATTER, p->piece, positions, count,
                          room);
}

static tarn_status move_own(const tarn__pass *p, const uint64_t *entries,
                            size_t count, bool bad) {
  end table = owned_end(p, entries);
  end dense = dense_end(p, p->piece, POSITIONS, entries);
  if (!tarn__rows_are_touchable(p->whole->place) ||
      !tarn__rows_are_touchable(p->order->place)) {
    return carry_own(p, entries, count, bad);
  }
  table.kind = bad ? NOWHERE : ROWS;
  table.base -= p->kept->sorted.firsts[p->whole->rank] * table.stride;
  move(p, p->order->action, &table, &dense, count);
  return TARN_OK;
}

// Good ones come before bad ones, and do not go together with them.
tarn_status tarn__pass_own(const tarn__pass *p, size_t count) {
  tarn__sorted *sorted = &p->kept->sorted;
  size_t *next = &sorted->next[p->whole->rank];
  size_t stop = *next + count;
  size_t most = lesser(TARN__OWN_ROOM / p->row_bytes, TARN__LIST);
  tarn_status status = TARN_OK;
  if (most == 0) most = 1;
  while (status == TARN_OK && *next < stop) {
    bool bad = *next >= sorted->bad;
    size_t now = lesser((bad ? stop : lesser(stop, sorted->bad)) - *next, most);
    status = move_own(p, sorted->entries + *next, now, bad);
    *next += now;
  }
  return status;
}
