// Rows of one rank's part, of its staging and of its dense block, from one to
// the other. Where the host can touch both ends it does so, past every check
// but that of numbers which others have written; elsewhere rows_carry.c does.
#include "base/convert.h"
#include "base/rows_move.h"
#include "base/status.h"
#include "whole/exchange.h"

enum { WINDOW = 256 };  // rows that are moved by one call

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

typedef struct run {
  end table;
  end dense;
  list_kind kind;
  const void *numbers;
  size_t count;
  size_t limit;  // NARROW, WIDE: rows of the table
} run;

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
typedef void pairer(const run *r, size_t first, size_t count,
                    tarn__rows_pair *out);

// The loop writes nothing that it reads.
#define PAIRER(name, type, of_table, of_dense)               \
  static void name(const run *r, size_t first, size_t count, \
                   tarn__rows_pair *out) {                   \
    const type *numbers = (const type *)r->numbers + first;  \
    const size_t limit = r->limit;                           \
    const end t = r->table;                                  \
    const end d = r->dense;                                  \
    (void)t, (void)limit;                                    \
    for (size_t k = 0; k < count; k++)                       \
      out[k] = (tarn__rows_pair){of_table, of_dense};        \
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

static tarn_rows rows_of(const tarn__whole_pass *p, const run *r) {
  return (tarn_rows){.struct_size = sizeof(tarn_rows),
                     .table_dtype = r->table.dtype,
                     .table_stride = r->table.stride,
                     .width = p->width,
                     .dense = r->dense.base,
                     .dense_dtype = r->dense.dtype,
                     .dense_stride = r->dense.stride,
                     .index_count = r->count};
}

// A call fetches the pairs that the next call moves.
static void move(const tarn__whole_pass *p, tarn__rows_action action,
                 const run *r) {
  tarn__rows_pair pairs[WINDOW + TARN__ROWS_AHEAD] = {{NULL, NULL}};
  bool own = r->kind == ENTRIES || r->kind == BAD;
  tarn_rows rows = rows_of(p, r);
  rows.table_offset = r->table.base;
  // Else it is the staging that is written, which is read next.
  if (action == TARN__ROWS_SCATTER || own) rows.flags = TARN_ROWS_PAST_CACHES;
  tarn__rows_plan plan = tarn__rows_choose(action, &rows);
  for (size_t k = 0; k < r->count; k += WINDOW) {
    size_t left = r->count - k;
    pairers[r->kind](r, k, tarn__lesser(left, WINDOW + TARN__ROWS_AHEAD),
                     pairs);
    plan.move(&plan, pairs, tarn__lesser(left, WINDOW));
  }
  tarn__rows_settle();
}

// --- by devices ------------------------------------------------------------

static tarn_dtype number_dtype(const run *r) {
  return r->kind == NARROW ? TARN_DTYPE_I32 : TARN_DTYPE_I64;
}

// Rows of the staging to or from those of |r->table|, at |place|, that a list
// of numbers names.
static tarn_status carry(const tarn__whole_pass *p, tarn__rows_action action,
                         tarn_place place, const run *r) {
  size_t row = p->width * tarn_dtype_size(r->table.dtype);
  size_t size = r->limit > 0 ? (r->limit - 1) * r->table.stride + row : 0;
  size_t ends[2] = {0, size};
  tarn__whole_carriage carriage = {.action = action,
                                   .rows = rows_of(p, r),
                                   .table = place,
                                   .dense = TARN_HOST,
                                   .host = p->whole->host};
  tarn_rows *rows = &carriage.rows;
  rows->table = (tarn_reference){&r->table.base, ends, 1};
  rows->table_count = r->limit;
  rows->indices = address_of(r->numbers);
  rows->index_dtype = number_dtype(r);
  rows->flags = action == TARN__ROWS_GATHER ? TARN_ROWS_SKIP_BAD : 0;
  return tarn__rows_carry(&carriage, NULL);
}

// --- from one to the other -------------------------------------------------

static tarn_status go_between(const tarn__whole_pass *p,
                              tarn__rows_action action, tarn_place place,
                              const run *r) {
  if (!tarn__rows_are_touchable(place)) return carry(p, action, place, r);
  move(p, action, r);
  return TARN_OK;
}

// Numbers that others have written.
static tarn_status check_list(const run *r) {
  for (size_t i = 0; i < r->count; i++) {
    int64_t row = tarn__rows_index_at(number_dtype(r), r->numbers, i);
    if ((uint64_t)row < r->limit) continue;
    return tarn__fail(
        TARN_E_CORRUPT,
        "whole rows: a rank asks for row %lld of the %zu rows of this rank",
        (long long)row, r->limit);
  }
  return TARN_OK;
}

tarn_status tarn__pass_owned(const tarn__whole_pass *p, size_t rank,
                             const void *numbers, size_t count,
                             unsigned char *staged) {
  const size_t *firsts = p->kept->sorted.firsts + p->whole->rank;
  run wanted = {.table = owned_end(p),
                .dense = staged_end(p, staged),
                .kind = p->kept->sorted.narrow ? NARROW : WIDE,
                .numbers = numbers,
                .count = count,
                .limit = firsts[1] - firsts[0]};
  if (rank != p->whole->rank) TARN__TRY(check_list(&wanted));
  return go_between(p, p->order->action, p->whole->place, &wanted);
}

tarn_status tarn__pass_dense(const tarn__whole_pass *p,
                             tarn__rows_action action, size_t piece,
                             const int32_t *positions, size_t count,
                             unsigned char *staged) {
  run placed = {.table = dense_end(p, piece),
                .dense = staged_end(p, staged),
                .kind = NARROW,
                .numbers = positions,
                .count = count,
                .limit = p->order->rows.index_count - piece};
  return go_between(p, action, p->order->place, &placed);
}

// --- rows of this rank's own -----------------------------------------------

// From one end to the other: entries tell rows of the whole table.
static void move_own(const tarn__whole_pass *p, const uint64_t *entries,
                     size_t count, bool bad) {
  run own = {.table = owned_end(p),
             .dense = dense_end(p, p->piece),
             .kind = bad ? BAD : ENTRIES,
             .numbers = entries,
             .count = count};
  own.table.base -= p->kept->sorted.firsts[p->whole->rank] * own.table.stride;
  move(p, p->order->action, &own);
}

// Good ones come before bad ones, and do not go together with them.
void tarn__pass_own(const tarn__whole_pass *p, size_t count) {
  tarn__whole_sorted *sorted = &p->kept->sorted;
  size_t *next = &sorted->next[p->whole->rank];
  const uint64_t *entries = sorted->entries + *next;
  size_t good =
      *next < sorted->bad ? tarn__lesser(count, sorted->bad - *next) : 0;
  *next += count;
  move_own(p, entries, good, false);
  move_own(p, entries + good, count - good, true);
}
