// Rows of one rank's part, of its staging and of its dense block, from one to
// the other. Where the host can touch both ends it does so, past every check
// but that of numbers which others have written; elsewhere rows_carry.c does.
#include <string.h>

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

// The part of |rank|, which is mapped here; row 0 is the first in it.
static end owned_end(const tarn__whole_course *c, size_t rank,
                     const tarn__whole_span *span) {
  const tarn_whole *whole = c->whole;
  const tarn__whole_tensor *table = &c->order->table;
  size_t first = tarn__course_first(c, rank);
  return (end){.base = whole->parts[rank] + table->offset +
                       first * table->stride - whole->offsets[rank] +
                       span->element * tarn_dtype_size(table->dtype),
               .stride = table->stride,
               .dtype = table->dtype};
}

// Row 0 is that of position |piece|.
static end dense_end(const tarn__whole_course *c, size_t element,
                     size_t piece) {
  const tarn_rows *rows = &c->order->rows;
  return (end){.base = rows->dense + piece * rows->dense_stride +
                       element * tarn_dtype_size(rows->dense_dtype),
               .stride = rows->dense_stride,
               .dtype = rows->dense_dtype};
}

static end staged_end(const tarn__whole_course *c, size_t width,
                      const unsigned char *staged) {
  return (end){.base = address_of(staged),
               .stride = width * tarn_dtype_size(c->dtype),
               .dtype = c->dtype};
}

// --- which rows ------------------------------------------------------------

typedef enum list_kind {
  NARROW,   // int32_t, rows of the table; dense rows go in order
  WIDE,     // int64_t, likewise
  ENTRIES,  // uint64_t, of both: entries of this rank's own rows
  BAD,      // likewise, but of the table there is no row
  MATCHES,  // tarn__whole_match: of staged rows, and dense ones as the table
} list_kind;

typedef struct run {
  end table;
  end dense;
  list_kind kind;
  const void *numbers;
  size_t count;
  size_t width;  // elements of each
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

PAIRER(pair_matches, tarn__whole_match, row_of(&t, numbers[k].position),
       row_of(&d, numbers[k].staged))

static pairer *const pairers[] = {[NARROW] = pair_narrow,
                                  [WIDE] = pair_wide,
                                  [ENTRIES] = pair_entries,
                                  [BAD] = pair_bad,
                                  [MATCHES] = pair_matches};

static tarn_rows rows_of(const run *r) {
  return (tarn_rows){.struct_size = sizeof(tarn_rows),
                     .table_dtype = r->table.dtype,
                     .table_stride = r->table.stride,
                     .width = r->width,
                     .dense = r->dense.base,
                     .dense_dtype = r->dense.dtype,
                     .dense_stride = r->dense.stride,
                     .index_count = r->count};
}

// A call fetches the pairs that the next call moves.
static void move(tarn__rows_action action, const run *r) {
  tarn__rows_pair pairs[WINDOW + TARN__ROWS_AHEAD] = {{NULL, NULL}};
  bool own = r->kind == ENTRIES || r->kind == BAD;
  tarn_rows rows = rows_of(r);
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
static tarn_status carry(tarn_device *host, tarn__rows_action action,
                         tarn_place place, const run *r) {
  size_t row = r->width * tarn_dtype_size(r->table.dtype);
  size_t size = r->limit > 0 ? (r->limit - 1) * r->table.stride + row : 0;
  size_t ends[2] = {0, size};
  tarn__whole_carriage carriage = {.action = action,
                                   .rows = rows_of(r),
                                   .table = place,
                                   .dense = TARN_HOST,
                                   .host = host};
  tarn_rows *rows = &carriage.rows;
  rows->table = (tarn_reference){&r->table.base, ends, 1};
  rows->table_count = r->limit;
  rows->indices = address_of(r->numbers);
  rows->index_dtype = number_dtype(r);
  rows->flags = action == TARN__ROWS_GATHER ? TARN_ROWS_SKIP_BAD : 0;
  return tarn__rows_carry(&carriage, NULL);
}

// --- from one to the other -------------------------------------------------

static tarn_status go_between(const tarn__whole_course *c,
                              tarn__rows_action action, tarn_place place,
                              const run *r) {
  if (!tarn__rows_are_touchable(place)) {
    return carry(c->whole->host, action, place, r);
  }
  move(action, r);
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

tarn_status tarn__move_owned(const tarn__whole_course *c,
                             const tarn__whole_span *span, size_t owner,
                             size_t rank, const void *numbers, size_t count,
                             unsigned char *staged) {
  run wanted = {.table = owned_end(c, owner, span),
                .dense = staged_end(c, span->width, staged),
                .kind = c->kept->sorted.narrow ? NARROW : WIDE,
                .numbers = numbers,
                .count = count,
                .width = span->width,
                .limit = tarn__course_rows(c, owner)};
  if (rank != c->whole->rank) TARN__TRY(check_list(&wanted));
  if (c->order->sink != NULL) {
    return tarn__sink_staged(c, span, numbers, count, staged);
  }
  if (c->whole->pager != NULL) {
    return tarn__paged_staged(c, span, numbers, count, staged);
  }
  return go_between(c, c->order->action, c->whole->place, &wanted);
}

tarn_status tarn__move_dense(const tarn__whole_course *c,
                             tarn__rows_action action,
                             const tarn__whole_posted *posted,
                             unsigned char *staged) {
  run placed = {.table = dense_end(c, posted->span.element, posted->piece),
                .dense = staged_end(c, posted->span.width, staged),
                .kind = NARROW,
                .numbers = posted->positions,
                .count = posted->count,
                .width = posted->span.width,
                .limit = c->order->rows.index_count - posted->piece};
  return go_between(c, action, c->order->place, &placed);
}

// --- rows that were bought -------------------------------------------------

// In the order of |matches|, one behind the other.
static void line_up(const tarn__whole_match *matches, size_t count,
                    size_t row_bytes, const unsigned char *staged,
                    int32_t *positions, unsigned char *out) {
  for (size_t k = 0; k < count; k++) {
    positions[k] = (int32_t)matches[k].position;
    memcpy(out + k * row_bytes, staged + matches[k].staged * row_bytes,
           row_bytes);
  }
}

tarn_status tarn__move_matches(const tarn__whole_course *c,
                               const tarn__whole_span *span,
                               const tarn__whole_match *matches, size_t count,
                               const unsigned char *staged) {
  run placed = {.table = dense_end(c, span->element, 0),
                .dense = staged_end(c, span->width, staged),
                .kind = MATCHES,
                .numbers = matches,
                .count = count,
                .width = span->width};
  if (tarn__rows_are_touchable(c->order->place)) {
    move(TARN__ROWS_SCATTER, &placed);
    return TARN_OK;
  }
  int32_t *positions = (int32_t *)(void *)c->kept->homes;
  const tarn__whole_posted lined_up = {
      .count = count, .span = *span, .positions = positions};
  line_up(matches, count, span->row_bytes, staged, positions, c->kept->bounce);
  return tarn__move_dense(c, TARN__ROWS_SCATTER, &lined_up, c->kept->bounce);
}

// --- rows that this rank reaches -------------------------------------------

// From one end to the other: entries tell rows of the whole table.
static void move_mapped(const tarn__whole_course *c, size_t rank,
                        const uint64_t *entries, size_t count, bool bad) {
  run own = {.table = owned_end(c, rank, &c->span),
             .dense = dense_end(c, c->span.element, c->piece),
             .kind = bad ? BAD : ENTRIES,
             .numbers = entries,
             .count = count,
             .width = c->span.width};
  own.table.base -= tarn__course_first(c, rank) * own.table.stride;
  move(c->order->action, &own);
}

// Good ones come before bad ones, and do not go together with them.
tarn_status tarn__move_mapped(const tarn__whole_course *c, size_t rank,
                              size_t count) {
  tarn__whole_sorted *sorted = &c->kept->sorted;
  size_t *next = &sorted->next[rank];
  const uint64_t *entries = sorted->entries + *next;
  size_t good =
      *next < sorted->bad ? tarn__lesser(count, sorted->bad - *next) : 0;
  if (rank != c->whole->rank) good = count;
  *next += count;
  if (c->order->sink != NULL) return tarn__sink_entries(c, entries, good);
  move_mapped(c, rank, entries + good, count - good, true);
  if (c->whole->pager != NULL) return tarn__paged_entries(c, entries, good);
  move_mapped(c, rank, entries, good, false);
  return TARN_OK;
}
