// Rows of one rank's part, of its staging and of its dense block, from one to
// the other. Where the host can touch both ends it does so, past every check
// but that of numbers which others have written; elsewhere rows_carry.c does.
#include "base/convert.h"
#include "base/rows_move.h"
#include "base/status.h"
#include "whole/exchange.h"

enum { WINDOW = 256 };  // rows that are moved by one call

static bool gathers(const tarn__whole_pass *p) {
  return p->order->action == TARN__ROWS_GATHER;
}

static tarn_addr address_of(const void *pointer) {
  return (tarn_addr)(uintptr_t)pointer;
}

// --- the ends --------------------------------------------------------------

// Rows |stride| apart, the first at |base|.
typedef struct end {
  tarn_addr base;
  size_t stride;
  tarn_dtype dtype;
} end;

// This rank's part; row 0 is the first in it.
static end owned_end(const tarn__whole_pass *p) {
  const tarn_whole *whole = p->whole;
  const tarn__whole_tensor *table = &p->order->table;
  size_t first = p->kept->sorted.firsts[whole->rank];
  return (end){.base = whole->parts[whole->rank] + table->offset +
                       first * table->stride - whole->offsets[whole->rank] +
                       p->element * tarn_dtype_size(table->dtype),
               .stride = table->stride,
               .dtype = table->dtype};
}

// Row 0 is that of position |piece|.
static end dense_end(const tarn__whole_pass *p, size_t piece) {
  const tarn_rows *rows = &p->order->rows;
  return (end){.base = rows->dense + piece * rows->dense_stride +
                       p->element * tarn_dtype_size(rows->dense_dtype),
               .stride = rows->dense_stride,
               .dtype = rows->dense_dtype};
}

static end staged_end(const tarn__whole_pass *p, const unsigned char *staged) {
  return (end){
      .base = address_of(staged), .stride = p->row_bytes, .dtype = p->dtype};
}

// --- which rows ------------------------------------------------------------

typedef enum list_kind {
  NARROW,   // int32_t, rows of the table; dense rows go in order
  WIDE,     // int64_t, likewise
  ENTRIES,  // uint64_t, of both: entries of this rank's own rows
  BAD,      // likewise, but of the table there is no row
} list_kind;

typedef struct row_list {
  list_kind kind;
  const void *numbers;
  size_t count;
  size_t limit;  // NARROW, WIDE: rows of the table
} row_list;

static size_t owned_count(const tarn__whole_pass *p) {
  const size_t *firsts = p->kept->sorted.firsts;
  return firsts[p->whole->rank + 1] - firsts[p->whole->rank];
}

static row_list owned_list(const tarn__whole_pass *p, const void *numbers,
                           size_t count) {
  return (row_list){.kind = p->kept->sorted.narrow ? NARROW : WIDE,
                    .numbers = numbers,
                    .count = count,
                    .limit = owned_count(p)};
}

// --- by the host -----------------------------------------------------------

static inline unsigned char *row_of(const end *e, uint64_t row) {
  return (unsigned char *)(uintptr_t)(e->base + row * e->stride);
}

// Another rank may change its numbers after they were checked: a number out of
// range has no address, and nothing is moved.
static inline unsigned char *listed_row(const end *e, size_t limit,
                                        int64_t row) {
  return (uint64_t)row < limit ? row_of(e, (uint64_t)row) : NULL;
}

// Makes |count| pairs, from the list's number |first| on.
typedef void pairer(const row_list *list, const end *table, const end *dense,
                    size_t first, size_t count, tarn__rows_pair *out);

// The loop writes nothing that it reads.
#define PAIRER(name, type, of_table, of_dense)                               \
  static void name(const row_list *list, const end *table, const end *dense, \
                   size_t first, size_t count, tarn__rows_pair *out) {       \
    const type *numbers = (const type *)list->numbers + first;               \
    const size_t limit = list->limit;                                        \
    const end t = *table;                                                    \
    const end d = *dense;                                                    \
    (void)t, (void)limit;                                                    \
    for (size_t k = 0; k < count; k++)                                       \
      out[k] = (tarn__rows_pair){of_table, of_dense};                        \
  }

PAIRER(pair_narrow, int32_t, listed_row(&t, limit, numbers[k]),
       row_of(&d, first + k))
PAIRER(pair_wide, int64_t, listed_row(&t, limit, numbers[k]),
       row_of(&d, first + k))
PAIRER(pair_entries, uint64_t, row_of(&t, tarn__entry_row(numbers[k])),
       row_of(&d, tarn__entry_position(numbers[k])))
PAIRER(pair_bad, uint64_t, NULL, row_of(&d, tarn__entry_position(numbers[k])))

static pairer *const pairers[] = {[NARROW] = pair_narrow,
                                  [WIDE] = pair_wide,
                                  [ENTRIES] = pair_entries,
                                  [BAD] = pair_bad};

// A call fetches the pairs that the next call moves.
static void move_all(const tarn__rows_plan *plan, const row_list *list,
                     const end *table, const end *dense) {
  tarn__rows_pair pairs[WINDOW + TARN__ROWS_AHEAD] = {{NULL, NULL}};
  pairer *pair = pairers[list->kind];
  for (size_t k = 0; k < list->count; k += WINDOW) {
    size_t left = list->count - k;
    pair(list, table, dense, k, tarn__lesser(left, WINDOW + TARN__ROWS_AHEAD),
         pairs);
    plan->move(plan, pairs, tarn__lesser(left, WINDOW));
  }
  tarn__rows_settle();
}

static void move(const tarn__whole_pass *p, tarn__rows_action action,
                 const row_list *list, const end *table, const end *dense) {
  bool own = list->kind == ENTRIES || list->kind == BAD;
  tarn_rows rows = {
      .struct_size = sizeof rows,
      .table_dtype = table->dtype,
      .table_offset = table->base,
      .table_stride = table->stride,
      .width = p->width,
      .dense = dense->base,
      .dense_dtype = dense->dtype,
      .dense_stride = dense->stride,
      .index_count = list->count,
      // Else it is the staging that is written, which is read next.
      .flags = action == TARN__ROWS_SCATTER || own ? TARN_ROWS_PAST_CACHES : 0};
  tarn__rows_plan plan = {.action = action,
                          .rows = &rows,
                          .table_bytes = tarn__rows_table_bytes(&rows),
                          .dense_bytes = tarn__rows_dense_bytes(&rows)};
  tarn__rows_choose(&plan);
  move_all(&plan, list, table, dense);
}

// --- by devices ------------------------------------------------------------

// Rows of the staging to or from those of |table|, which a list of numbers
// tells.
static tarn_status carry(const tarn__whole_pass *p, tarn__rows_action action,
                         tarn_place place, const row_list *list,
                         const end *table, const end *staged) {
  size_t row = p->width * tarn_dtype_size(table->dtype);
  size_t size = list->limit > 0 ? (list->limit - 1) * table->stride + row : 0;
  size_t ends[2] = {0, size};
  tarn__whole_carriage carriage = {.action = action,
                                   .table = place,
                                   .dense = TARN_HOST,
                                   .host = p->whole->host};
  carriage.rows = (tarn_rows){
      .struct_size = sizeof carriage.rows,
      .table = {&table->base, ends, 1},
      .table_dtype = table->dtype,
      .table_stride = table->stride,
      .table_count = list->limit,
      .width = p->width,
      .dense = staged->base,
      .dense_dtype = staged->dtype,
      .dense_stride = staged->stride,
      .indices = address_of(list->numbers),
      .index_dtype = list->kind == NARROW ? TARN_DTYPE_I32 : TARN_DTYPE_I64,
      .index_count = list->count,
      .flags = action == TARN__ROWS_GATHER ? TARN_ROWS_SKIP_BAD : 0,
  };
  return tarn__rows_carry(&carriage, NULL);
}

// --- from one to the other -------------------------------------------------

static tarn_status go_between(const tarn__whole_pass *p,
                              tarn__rows_action action, tarn_place place,
                              const row_list *list, const end *table,
                              const end *staged) {
  if (!tarn__rows_are_touchable(place)) {
    return carry(p, action, place, list, table, staged);
  }
  move(p, action, list, table, staged);
  return TARN_OK;
}

// Numbers that others have written.
static tarn_status check_list(const row_list *list) {
  const int32_t *narrow = list->numbers;
  const int64_t *wide = list->numbers;
  for (size_t i = 0; i < list->count; i++) {
    int64_t row = list->kind == NARROW ? narrow[i] : wide[i];
    if ((uint64_t)row < list->limit) continue;
    return tarn__fail(
        TARN_E_CORRUPT,
        "whole rows: a rank asks for row %lld of the %zu rows of this rank",
        (long long)row, list->limit);
  }
  return TARN_OK;
}

tarn_status tarn__pass_owned(const tarn__whole_pass *p, const void *numbers,
                             size_t count, unsigned char *staged) {
  row_list wanted = owned_list(p, numbers, count);
  end table = owned_end(p);
  end dense = staged_end(p, staged);
  tarn_status status = check_list(&wanted);
  if (status != TARN_OK) return status;
  return go_between(p, p->order->action, p->whole->place, &wanted, &table,
                    &dense);
}

tarn_status tarn__pass_dense(const tarn__whole_pass *p,
                             tarn__rows_action action, size_t piece,
                             const int32_t *positions, size_t count,
                             unsigned char *staged) {
  row_list places = {.kind = NARROW,
                     .numbers = positions,
                     .count = count,
                     .limit = p->order->rows.index_count - piece};
  end table = dense_end(p, piece);
  end dense = staged_end(p, staged);
  return go_between(p, action, p->order->place, &places, &table, &dense);
}

// --- rows of this rank's own -----------------------------------------------

// Entries become numbers of rows and positions, in the room in which indices
// were sorted.
static void take_apart(const tarn__whole_pass *p, const uint64_t *entries,
                       size_t count, bool bad, int32_t *positions) {
  tarn__whole_sorted *sorted = &p->kept->sorted;
  for (size_t k = 0; k < count; k++) {
    uint64_t row = tarn__entry_row(entries[k]) - sorted->firsts[sorted->rank];
    sorted->indices[k] = bad ? -1 : (int64_t)row;
    positions[k] = (int32_t)tarn__entry_position(entries[k]);
  }
}

// By way of the staging, where no row is that of another rank's.
static tarn_status carry_some_own(const tarn__whole_pass *p,
                                  const uint64_t *entries, size_t count,
                                  bool bad) {
  tarn__whole_sorted *sorted = &p->kept->sorted;
  int32_t *positions = (int32_t *)sorted->homes;
  unsigned char *room = tarn__staging_own(&p->kept->staging, p->whole->rank);
  row_list rows = {WIDE, sorted->indices, count, owned_count(p)};
  end table = owned_end(p);
  end staged = staged_end(p, room);
  tarn_status status = TARN_OK;
  take_apart(p, entries, count, bad, positions);
  if (!gathers(p)) {
    status = tarn__pass_dense(p, TARN__ROWS_GATHER, p->piece, positions, count,
                              room);
  }
  if (status != TARN_OK) return status;
  status = carry(p, p->order->action, p->whole->place, &rows, &table, &staged);
  if (status != TARN_OK || !gathers(p)) return status;
  return tarn__pass_dense(p, TARN__ROWS_SCATTER, p->piece, positions, count,
                          room);
}

static tarn_status carry_own(const tarn__whole_pass *p, const uint64_t *entries,
                             size_t count, bool bad) {
  tarn_status status = TARN_OK;
  size_t most = tarn__lesser(TARN__OWN_ROOM / p->row_bytes, TARN__LIST);
  if (most == 0) most = 1;
  for (size_t k = 0; status == TARN_OK && k < count; k += most)
    status = carry_some_own(p, entries + k, tarn__lesser(count - k, most), bad);
  return status;
}

// From one end to the other: entries tell rows of the whole table.
static void move_own(const tarn__whole_pass *p, const uint64_t *entries,
                     size_t count, bool bad) {
  row_list rows = {
      .kind = bad ? BAD : ENTRIES, .numbers = entries, .count = count};
  end table = owned_end(p);
  end dense = dense_end(p, p->piece);
  table.base -= p->kept->sorted.firsts[p->whole->rank] * table.stride;
  move(p, p->order->action, &rows, &table, &dense);
}

static tarn_status go_own(const tarn__whole_pass *p, const uint64_t *entries,
                          size_t count, bool bad) {
  if (!tarn__rows_are_touchable(p->whole->place) ||
      !tarn__rows_are_touchable(p->order->place)) {
    return carry_own(p, entries, count, bad);
  }
  move_own(p, entries, count, bad);
  return TARN_OK;
}

// Good ones come before bad ones, and do not go together with them.
tarn_status tarn__pass_own(const tarn__whole_pass *p, size_t count) {
  tarn__whole_sorted *sorted = &p->kept->sorted;
  size_t *next = &sorted->next[p->whole->rank];
  const uint64_t *entries = sorted->entries + *next;
  size_t good =
      *next < sorted->bad ? tarn__lesser(count, sorted->bad - *next) : 0;
  *next += count;
  tarn_status status = go_own(p, entries, good, false);
  if (status != TARN_OK) return status;
  return go_own(p, entries + good, count - good, true);
}
