// Rounds: what is wanted, what is served, what has come.
//
//   round           k - 1         k         k + 1       k + 2
//   gather          ask        | serve   | place     |
//                              | ask     | serve     | place
//   scatter, add    ask, fill  | serve   |
//                              | ask ... | serve     |
//                              ^ a meeting
//
// Invariants:
//   * of a half of its staging, a rank writes wants and list between the
//     meetings k - 1 and k, and whoever serves reads them between k and k + 1;
//     the rank writes them again behind that
//   * rows that are gathered are written by their owners between k and k + 1,
//     and read behind that, before the half is written again
//   * nothing that stands in another's staging is believed: wants are held
//     against the sizes of the half, rows against those of the table
//   * a rank that cannot go on says so at the next meeting, and all stop there
#include <string.h>

#include "base/status.h"
#include "whole/exchange.h"

// One pass over the indices: of all ranks at a time, or of one; of whole rows,
// or of so many of their elements as the staging holds.
typedef struct pass {
  tarn_whole *whole;
  tarn__exchange *kept;
  const tarn__rows_order *order;
  bool takes_part;   // this rank asks
  size_t element;    // the first
  size_t width;      // elements of a row
  tarn_dtype dtype;  // of rows in the staging
  size_t row_bytes;  // there
  size_t ends[2];    // 0, bytes of this rank's part
  size_t begun;      // positions that have been sorted, or are
  size_t piece;      // where the piece begins that is sorted
  size_t pieces[2];  // the same of even and odd rounds
  size_t counts[2];  // rows asked for in them
} pass;

static size_t lesser(size_t a, size_t b) {
  return a < b ? a : b;
}

static size_t divide_up(size_t a, size_t b) {
  return a / b + (a % b != 0);
}

// --- rows between here and there -------------------------------------------

// Rows of the staging to or from a table at |place|.
static tarn_status carry(const pass *p, tarn__rows_action action,
                         tarn_place place, const tarn_rows *given) {
  tarn__carriage carriage = {.action = action,
                             .rows = *given,
                             .table = place,
                             .dense = TARN_HOST,
                             .host = p->whole->host};
  tarn_rows *rows = &carriage.rows;
  rows->struct_size = sizeof *rows;
  rows->width = p->width;
  rows->dense_dtype = p->dtype;
  rows->dense_stride = p->row_bytes;
  return tarn__rows_carry(&carriage, NULL);
}

static tarn_addr address_of(const void *pointer) {
  return (tarn_addr)(uintptr_t)pointer;
}

// |count| rows of this rank's part, by |list|, from or to |staged|.
static tarn_status move_owned(const pass *p, tarn__rows_action action,
                              const int64_t *list, size_t count,
                              unsigned char *staged, uint32_t flags) {
  const tarn__tensor *table = &p->order->table;
  const size_t *firsts = p->kept->sorted.firsts;
  size_t rank = p->whole->rank;
  tarn_rows rows = {
      .table = {&p->whole->parts[rank], p->ends, 1},
      .table_dtype = table->dtype,
      .table_stride = table->stride,
      .table_count = firsts[rank + 1] - firsts[rank],
      .dense = address_of(staged),
      .indices = address_of(list),
      .index_dtype = TARN_DTYPE_I64,
      .index_count = count,
      .flags = flags,
  };
  if (rows.table_count > 0) {
    rows.table_offset = table->offset + firsts[rank] * table->stride -
                        p->whole->offsets[rank] +
                        p->element * tarn_dtype_size(table->dtype);
  }
  return carry(p, action, p->whole->place, &rows);
}

// |count| dense rows, by their positions from |piece| on, to (scatter) or from
// (gather) |staged|.
static tarn_status move_dense(const pass *p, tarn__rows_action action,
                              size_t piece, const int32_t *positions,
                              size_t count, unsigned char *staged) {
  const tarn_rows *dense = &p->order->rows;
  size_t rest = dense->index_count - piece;
  size_t element = tarn_dtype_size(dense->dense_dtype);
  tarn_addr chunk =
      dense->dense + piece * dense->dense_stride + p->element * element;
  size_t size = (rest - 1) * dense->dense_stride + p->width * element;
  size_t ends[2] = {0, size};
  tarn_rows rows = {
      .table = {&chunk, ends, 1},
      .table_dtype = dense->dense_dtype,
      .table_stride = dense->dense_stride,
      .table_count = rest,
      .dense = address_of(staged),
      .indices = address_of(positions),
      .index_dtype = TARN_DTYPE_I32,
      .index_count = count,
  };
  return carry(p, action, p->order->place, &rows);
}

static bool gathers(const pass *p) {
  return p->order->action == TARN__ROWS_GATHER;
}

// --- rows of this rank's own -----------------------------------------------

static tarn_status move_own_batch(const pass *p, size_t at, size_t count) {
  tarn__sorted *sorted = &p->kept->sorted;
  size_t rank = p->whole->rank;
  unsigned char *room = tarn__staging_own(&p->kept->staging, rank);
  const int64_t *list = sorted->rows + at;
  const int32_t *positions = sorted->positions + at;
  tarn_status status = gathers(p) ? move_owned(p, TARN__ROWS_GATHER, list,
                                               count, room, TARN_ROWS_SKIP_BAD)
                                  : move_dense(p, TARN__ROWS_GATHER, p->piece,
                                               positions, count, room);
  if (status != TARN_OK) return status;
  return gathers(p) ? move_dense(p, TARN__ROWS_SCATTER, p->piece, positions,
                                 count, room)
                    : move_owned(p, p->order->action, list, count, room, 0);
}

static tarn_status move_own(const pass *p, size_t count) {
  tarn__sorted *sorted = &p->kept->sorted;
  size_t *next = &sorted->next[p->whole->rank];
  size_t end = *next + count;
  size_t most = lesser(TARN__OWN_ROOM / p->row_bytes, TARN__LIST);
  tarn_status status = TARN_OK;
  if (most == 0) most = 1;
  while (status == TARN_OK && *next < end) {
    size_t now = lesser(end - *next, most);
    status = move_own_batch(p, *next, now);
    *next += now;
  }
  return status;
}

// --- asking ----------------------------------------------------------------

static size_t left_of(const pass *p, size_t rank) {
  return p->kept->sorted.ends[rank] - p->kept->sorted.next[rank];
}

static size_t left_of_others(const pass *p) {
  size_t left = 0;
  for (size_t r = 0; r < p->whole->ranks; r++)
    if (r != p->whole->rank) left += left_of(p, r);
  return left;
}

// Sorts the next piece if nothing is left of the one before.
static tarn_status fill_up(pass *p) {
  tarn__sorted *sorted = &p->kept->sorted;
  const tarn_rows *rows = &p->order->rows;
  size_t left = left_of_others(p) + left_of(p, p->whole->rank);
  size_t count = lesser(rows->index_count - p->begun, TARN__PIECE);
  if (left > 0 || count == 0) return TARN_OK;
  tarn_status status = tarn__rows_fetch_indices(p->order->place, rows, p->begun,
                                                count, sorted->indices);
  if (status != TARN_OK) return status;
  tarn__sorted_take(sorted, count, gathers(p));
  p->piece = p->begun;
  p->begun += count;
  return TARN_OK;
}

// Divides |count| rows among the owners, as each has rows left of the |left| of
// all.
static void divide(const pass *p, size_t count, size_t left) {
  size_t *shares = p->kept->shares;
  size_t given = 0;
  for (size_t r = 0; r < p->whole->ranks; r++) {
    bool other = r != p->whole->rank && left > 0;
    shares[r] = other ? left_of(p, r) * count / left : 0;
    given += shares[r];
  }
  for (size_t r = 0; given < count; r++) {
    if (r == p->whole->rank || shares[r] == left_of(p, r)) continue;
    shares[r]++;
    given++;
  }
}

// Writes what is wanted of |rank| behind |*at| rows that are wanted already.
static void want(const pass *p, const tarn__half *half, int32_t *positions,
                 size_t rank, size_t *at) {
  tarn__sorted *sorted = &p->kept->sorted;
  size_t count = p->kept->shares[rank];
  size_t next = sorted->next[rank];
  half->wants[rank] = (tarn__want){(uint32_t)*at, (uint32_t)count};
  memcpy(half->list + *at, sorted->rows + next, count * sizeof *half->list);
  memcpy(positions + *at, sorted->positions + next, count * sizeof *positions);
  sorted->next[rank] += count;
  *at += count;
}

static void want_all(pass *p, size_t round) {
  size_t at = 0;
  tarn__half half =
      tarn__staging_half(&p->kept->staging, p->whole->rank, round);
  for (size_t r = 0; r < p->whole->ranks; r++)
    want(p, &half, p->kept->positions[round % 2], r, &at);
  p->pieces[round % 2] = p->piece;
  p->counts[round % 2] = at;
}

// Rows of others that are asked for at a time are about as many each time, and
// those of this rank's own are done by when the last of them are.
static tarn_status ask(pass *p, size_t round) {
  tarn_status status = p->takes_part ? fill_up(p) : TARN_OK;
  if (status != TARN_OK) return status;
  size_t left = left_of_others(p);
  size_t most = lesser(TARN__ROWS_ROOM / p->row_bytes, TARN__LIST);
  size_t rounds = left > 0 ? divide_up(left, most) : 1;
  divide(p, divide_up(left, rounds), left);
  want_all(p, round);
  size_t own = divide_up(left_of(p, p->whole->rank), rounds);
  status = move_own(p, own);
  if (status != TARN_OK || gathers(p) || p->counts[round % 2] == 0) {
    return status;
  }
  return move_dense(
      p, TARN__ROWS_GATHER, p->piece, p->kept->positions[round % 2],
      p->counts[round % 2],
      tarn__staging_half(&p->kept->staging, p->whole->rank, round).rows);
}

static bool may_ask(const pass *p, size_t round) {
  return p->takes_part && (p->counts[round % 2] > 0 || left_of_others(p) > 0 ||
                           left_of(p, p->whole->rank) > 0 ||
                           p->begun < p->order->rows.index_count);
}

// --- serving ---------------------------------------------------------------

static tarn_status serve_rank(const pass *p, size_t rank, size_t round) {
  tarn__half half = tarn__staging_half(&p->kept->staging, rank, round);
  tarn__want wanted = half.wants[p->whole->rank];
  size_t most = lesser(TARN__ROWS_ROOM / p->row_bytes, TARN__LIST);
  if (wanted.count == 0) return TARN_OK;
  if (wanted.first > most || wanted.count > most - wanted.first) {
    return tarn__fail(TARN_E_CORRUPT,
                      "whole rows: rank %zu wants %u rows at %u of %zu", rank,
                      (unsigned)wanted.count, (unsigned)wanted.first, most);
  }
  return move_owned(p, p->order->action, half.list + wanted.first, wanted.count,
                    half.rows + wanted.first * p->row_bytes, 0);
}

// Ranks begin with different ones.
static tarn_status serve(const pass *p, size_t round) {
  tarn_status status = TARN_OK;
  size_t ranks = p->whole->ranks;
  for (size_t i = 1; status == TARN_OK && i < ranks; i++) {
    size_t rank = (p->whole->rank + i) % ranks;
    if (p->kept->words[rank].asks != 0) status = serve_rank(p, rank, round);
  }
  return status;
}

// --- placing ---------------------------------------------------------------

static tarn_status place(const pass *p, size_t round) {
  size_t count = p->counts[round % 2];
  if (!gathers(p) || count == 0) return TARN_OK;
  tarn__half half =
      tarn__staging_half(&p->kept->staging, p->whole->rank, round);
  return move_dense(p, TARN__ROWS_SCATTER, p->pieces[round % 2],
                    p->kept->positions[round % 2], count, half.rows);
}

// --- a pass ----------------------------------------------------------------

typedef enum verdict { GO_ON, LAST, STOP } verdict;

// Says whether this rank can go on, and asks; sees what the others say.
static tarn_status meet(const pass *p, size_t round, tarn_status status,
                        verdict *out) {
  tarn__word own = {.failed = status != TARN_OK, .asks = may_ask(p, round)};
  tarn__word *words = p->kept->words;
  *out = LAST;
  tarn_status met =
      tarn_comm_allgather(p->whole->comm, &own, sizeof own, words);
  if (met != TARN_OK) return met;
  for (size_t r = 0; r < p->whole->ranks; r++) {
    if (words[r].asks != 0 && *out == LAST) *out = GO_ON;
    if (words[r].failed != 0) *out = STOP;
  }
  return TARN_OK;
}

// The text of a failure must outlive the meeting at which it is told.
static tarn_status go_through(pass *p) {
  verdict what = GO_ON;
  tarn_status status = ask(p, 0);
  for (size_t round = 0; what == GO_ON; round++) {
    tarn_status met = meet(p, round, status, &what);
    if (met != TARN_OK) return met;
    if (what == STOP) break;
    if (round > 0) status = place(p, round - 1);
    if (what == LAST) break;
    if (status == TARN_OK) status = ask(p, round + 1);
    if (status == TARN_OK) status = serve(p, round);
  }
  return tarn_comm_agree(p->whole->comm, status);
}

static void start(pass *p) {
  size_t ranks = p->whole->ranks;
  p->begun = 0;
  memset(p->counts, 0, sizeof p->counts);
  memset(p->kept->sorted.next, 0, ranks * sizeof *p->kept->sorted.next);
  memset(p->kept->sorted.ends, 0, ranks * sizeof *p->kept->sorted.ends);
}

// --- all of it -------------------------------------------------------------

// Sums have an order: that of the ranks, one after the other.
static tarn_status go_by_rank(pass *p) {
  tarn_status status = TARN_OK;
  bool one_by_one = p->order->action == TARN__ROWS_SCATTER_ADD;
  size_t turns = one_by_one ? p->whole->ranks : 1;
  for (size_t turn = 0; status == TARN_OK && turn < turns; turn++) {
    p->takes_part = !one_by_one || turn == p->whole->rank;
    start(p);
    status = go_through(p);
  }
  return status;
}

// What stands in the staging: the smaller of the two, but of sums what is
// added, which must not be rounded before.
static tarn_dtype staged_dtype(const tarn__rows_order *order) {
  tarn_dtype table = order->table.dtype;
  tarn_dtype dense = order->rows.dense_dtype;
  if (order->action == TARN__ROWS_SCATTER_ADD) return dense;
  return tarn_dtype_size(dense) < tarn_dtype_size(table) ? dense : table;
}

tarn_status tarn__exchange_go(tarn_whole *whole,
                              const tarn__rows_order *order) {
  tarn_status status = TARN_OK;
  size_t width = order->table.width;
  pass p = {.whole = whole,
            .kept = whole->exchange,
            .order = order,
            .dtype = staged_dtype(order),
            .ends = {0, tarn__whole_part_size(whole, whole->rank)}};
  size_t span = TARN__ROWS_ROOM / tarn_dtype_size(p.dtype);
  while (status == TARN_OK && p.element < width) {
    p.width = lesser(width - p.element, span);
    p.row_bytes = p.width * tarn_dtype_size(p.dtype);
    status = go_by_rank(&p);
    p.element += p.width;
  }
  return status;
}
