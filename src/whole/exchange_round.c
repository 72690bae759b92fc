// Rounds: asking for rows, serving the others, placing what was received.
//
//   round           k - 1         k         k + 1       k + 2
//   gather          ask        | serve   | place     |
//                              | ask     | serve     | place
//   scatter, add    ask, fill  | serve   |
//                              | ask ... | serve     |
//                              ^ an exchange of headers
//
// Invariants:
//   * in a half of its staging, a rank writes wants and list between the header
//     exchanges k - 1 and k; owners read them between k and k + 1; after that
//     the rank may write them again
//   * owners write gathered rows between k and k + 1; the rank reads them after
//     that, before it writes the half again
//   * data of other ranks is checked: wants against the size of the half, row
//     numbers against the table
//   * a rank that cannot go on says so in the next header exchange, and all
//     ranks stop there
#include <string.h>

#include "base/status.h"
#include "whole/exchange.h"

static size_t divide_up(size_t a, size_t b) {
  return a / b + (a % b != 0);
}

static bool gathers(const tarn__whole_pass *p) {
  return p->order->action == TARN__ROWS_GATHER;
}

// --- asking ----------------------------------------------------------------

static size_t left_of(const tarn__whole_pass *p, size_t rank) {
  return p->kept->sorted.ends[rank] - p->kept->sorted.next[rank];
}

// Rows that a rank may ask for in a round.
static size_t most_asked(const tarn__whole_pass *p) {
  return tarn__lesser(TARN__ROWS_ROOM / p->row_bytes, TARN__LIST);
}

static size_t left_to_ask(const tarn__whole_pass *p) {
  size_t left = 0;
  for (size_t r = 0; r < p->whole->ranks; r++)
    if (r != p->whole->rank) left += left_of(p, r);
  return left;
}

// Sorts the next piece if nothing is left of the one before.
static tarn_status fill_up(tarn__whole_pass *p) {
  tarn__whole_sorted *sorted = &p->kept->sorted;
  const tarn_rows *rows = &p->order->rows;
  size_t left = left_to_ask(p) + left_of(p, p->whole->rank);
  size_t count = tarn__lesser(rows->index_count - p->begun, TARN__PIECE);
  if (left > 0 || count == 0) return TARN_OK;
  const void *indices = NULL;
  TARN__TRY(tarn__rows_view_indices(p->order->place, rows, p->begun, count,
                                    sorted->indices, &indices));
  tarn__sorted_take(sorted, indices, count, gathers(p));
  p->piece = p->begun;
  p->begun += count;
  return TARN_OK;
}

// Divides |count| rows among the owners, as each has rows left of the |left| of
// all.
static void divide(const tarn__whole_pass *p, size_t count, size_t left) {
  size_t *shares = p->kept->shares;
  size_t given = 0;
  for (size_t r = 0; r < p->whole->ranks; r++) {
    bool asked = r != p->whole->rank && left > 0;
    shares[r] = asked ? left_of(p, r) * count / left : 0;
    given += shares[r];
  }
  for (size_t r = 0; given < count; r++) {
    if (r == p->whole->rank || shares[r] == left_of(p, r)) continue;
    shares[r]++;
    given++;
  }
}

// Writes the next rows of |rank|'s into the list, and where they come from.
static void write_list(tarn__whole_sorted *sorted, size_t rank, size_t at,
                       size_t count, void *list, int32_t *positions) {
  const uint64_t *entries = sorted->entries + sorted->next[rank];
  uint64_t first = sorted->firsts[rank];
  int32_t *narrow = list;
  int64_t *wide = list;
  for (size_t k = 0; sorted->narrow && k < count; k++)
    narrow[at + k] = (int32_t)(tarn__entry_row(entries[k]) - first);
  for (size_t k = 0; !sorted->narrow && k < count; k++)
    wide[at + k] = (int64_t)(tarn__entry_row(entries[k]) - first);
  for (size_t k = 0; k < count; k++)
    positions[at + k] = (int32_t)tarn__entry_position(entries[k]);
  for (size_t k = 0; rank == sorted->rank && k < count; k++) {
    if (sorted->next[rank] + k < sorted->bad) continue;
    if (sorted->narrow) narrow[at + k] = -1;  // an index out of range
    if (!sorted->narrow) wide[at + k] = -1;
  }
  sorted->next[rank] += count;
}

static void want_all(tarn__whole_pass *p, size_t round) {
  size_t at = 0;
  tarn__whole_sorted *sorted = &p->kept->sorted;
  tarn__whole_half half =
      tarn__staging_half(&p->kept->staging, p->whole->rank, round);
  for (size_t r = 0; r < p->whole->ranks; r++) {
    size_t count = p->kept->shares[r];
    half.wants[r] = (tarn__whole_want){(uint32_t)at, (uint32_t)count};
    write_list(sorted, r, at, count, half.list, p->kept->positions[round % 2]);
    at += count;
  }
  p->counts[round % 2] = at;
}

// The rounds that it takes to ask for |left| rows, and to move |own| others.
static size_t rounds_for(const tarn__whole_pass *p, size_t left, size_t own) {
  size_t most = most_asked(p);
  size_t asking = divide_up(left, most);
  size_t moving = divide_up(own, most * TARN__OWN_TIMES);
  size_t rounds = asking > moving ? asking : moving;
  return rounds > 0 ? rounds : 1;
}

// Moves |count| dense rows to (gather) or from the half of |round|.
static tarn_status pass_half(const tarn__whole_pass *p,
                             tarn__rows_action action, size_t round,
                             size_t count) {
  if (count == 0) return TARN_OK;
  return tarn__pass_dense(
      p, action, p->pieces[round % 2], p->kept->positions[round % 2], count,
      tarn__staging_half(&p->kept->staging, p->whole->rank, round).rows);
}

// Moves the next |count| rows of this rank's part. Where the host cannot touch
// both ends, they pass through the half of |round|, which is free.
static tarn_status move_own(const tarn__whole_pass *p, size_t round,
                            size_t count) {
  size_t rank = p->whole->rank;
  int32_t *positions = p->kept->positions[round % 2];
  tarn__whole_half half = tarn__staging_half(&p->kept->staging, rank, round);
  if (tarn__rows_are_touchable(p->whole->place) &&
      tarn__rows_are_touchable(p->order->place)) {
    tarn__pass_own(p, count);
    return TARN_OK;
  }
  for (size_t now = 0; count > 0; count -= now) {
    now = tarn__lesser(count, most_asked(p));
    write_list(&p->kept->sorted, rank, 0, now, half.list, positions);
    if (!gathers(p)) TARN__TRY(pass_half(p, TARN__ROWS_GATHER, round, now));
    TARN__TRY(tarn__pass_owned(p, rank, half.list, now, half.rows));
    if (gathers(p)) TARN__TRY(pass_half(p, TARN__ROWS_SCATTER, round, now));
  }
  return TARN_OK;
}

// Rows that are asked for at a time are about as many each time, and so are
// those of this rank's own.
static tarn_status ask(tarn__whole_pass *p, size_t round) {
  TARN__TRY(p->takes_part ? fill_up(p) : TARN_OK);
  p->pieces[round % 2] = p->piece;
  size_t left = left_to_ask(p);
  size_t own = left_of(p, p->whole->rank);
  size_t rounds = rounds_for(p, left, own);
  TARN__TRY(move_own(p, round, divide_up(own, rounds)));
  divide(p, divide_up(left, rounds), left);
  want_all(p, round);
  return gathers(p)
             ? TARN_OK
             : pass_half(p, TARN__ROWS_GATHER, round, p->counts[round % 2]);
}

static bool may_ask(const tarn__whole_pass *p, size_t round) {
  return p->takes_part && (p->counts[round % 2] > 0 || left_to_ask(p) > 0 ||
                           left_of(p, p->whole->rank) > 0 ||
                           p->begun < p->order->rows.index_count);
}

// --- serving ---------------------------------------------------------------

static tarn_status serve_rank(const tarn__whole_pass *p, size_t rank,
                              size_t round) {
  tarn__whole_half half = tarn__staging_half(&p->kept->staging, rank, round);
  tarn__whole_want wanted = half.wants[p->whole->rank];
  size_t most = most_asked(p);
  if (wanted.count == 0) return TARN_OK;
  if (wanted.first > most || wanted.count > most - wanted.first) {
    return tarn__fail(TARN_E_CORRUPT,
                      "whole rows: rank %zu asks for %u rows from %u on in a "
                      "list of at most %zu",
                      rank, (unsigned)wanted.count, (unsigned)wanted.first,
                      most);
  }
  size_t width = p->kept->sorted.narrow ? sizeof(int32_t) : sizeof(int64_t);
  return tarn__pass_owned(
      p, rank, (unsigned char *)half.list + wanted.first * width, wanted.count,
      half.rows + wanted.first * p->row_bytes);
}

// Ranks begin with different ones.
static tarn_status serve(const tarn__whole_pass *p, size_t round) {
  size_t ranks = p->whole->ranks;
  for (size_t i = 1; i < ranks; i++) {
    size_t rank = (p->whole->rank + i) % ranks;
    if (p->kept->words[rank].asks != 0) TARN__TRY(serve_rank(p, rank, round));
  }
  return TARN_OK;
}

// --- a pass ----------------------------------------------------------------

typedef enum verdict { GO_ON, LAST, STOP } verdict;

// Tells the others whether this rank can go on and asks for rows; reads the
// same of them.
static tarn_status meet(const tarn__whole_pass *p, size_t round,
                        tarn_status status, verdict *out) {
  tarn__whole_word own = {.failed = status != TARN_OK,
                          .asks = may_ask(p, round)};
  tarn__whole_word *words = p->kept->words;
  *out = LAST;
  TARN__TRY(tarn_comm_allgather(p->whole->comm, &own, sizeof own, words));
  for (size_t r = 0; r < p->whole->ranks; r++) {
    if (words[r].asks != 0 && *out == LAST) *out = GO_ON;
    if (words[r].failed != 0) *out = STOP;
  }
  return TARN_OK;
}

// The text of a failure must outlive the header exchange that reports it.
static tarn_status go_through(tarn__whole_pass *p) {
  verdict what = GO_ON;
  tarn_status status = ask(p, 0);
  for (size_t round = 0; what == GO_ON; round++) {
    TARN__TRY(meet(p, round, status, &what));
    if (what == STOP) break;
    if (round > 0 && gathers(p)) {
      status = pass_half(p, TARN__ROWS_SCATTER, round - 1,
                         p->counts[(round - 1) % 2]);
    }
    if (what == LAST) break;
    if (status == TARN_OK) status = ask(p, round + 1);
    if (status == TARN_OK) status = serve(p, round);
  }
  return tarn_comm_agree(p->whole->comm, status);
}

static void start(tarn__whole_pass *p) {
  size_t ranks = p->whole->ranks;
  p->begun = 0;
  memset(p->counts, 0, sizeof p->counts);
  memset(p->kept->sorted.next, 0, ranks * sizeof *p->kept->sorted.next);
  memset(p->kept->sorted.ends, 0, ranks * sizeof *p->kept->sorted.ends);
}

// --- all of it -------------------------------------------------------------

// Sums have an order: that of the ranks, one after the other.
static tarn_status go_by_rank(tarn__whole_pass *p) {
  bool one_by_one = p->order->action == TARN__ROWS_SCATTER_ADD;
  size_t turns = one_by_one ? p->whole->ranks : 1;
  for (size_t turn = 0; turn < turns; turn++) {
    p->takes_part = !one_by_one || turn == p->whole->rank;
    start(p);
    TARN__TRY(go_through(p));
  }
  return TARN_OK;
}

// The dtype of staged rows: the smaller one, but for sums that of the dense
// rows, which must not be rounded before they are added.
static tarn_dtype staged_dtype(const tarn__whole_rows_order *order) {
  tarn_dtype table = order->table.dtype;
  tarn_dtype dense = order->rows.dense_dtype;
  if (order->action == TARN__ROWS_SCATTER_ADD) return dense;
  return tarn_dtype_size(dense) < tarn_dtype_size(table) ? dense : table;
}

tarn_status tarn__exchange_go(tarn_whole *whole,
                              const tarn__whole_rows_order *order) {
  size_t width = order->table.width;
  tarn__whole_pass p = {.whole = whole,
                        .kept = whole->exchange,
                        .order = order,
                        .dtype = staged_dtype(order)};
  size_t span = TARN__ROWS_ROOM / tarn_dtype_size(p.dtype);
  while (p.element < width) {
    p.width = tarn__lesser(width - p.element, span);
    p.row_bytes = p.width * tarn_dtype_size(p.dtype);
    TARN__TRY(go_by_rank(&p));
    p.element += p.width;
  }
  return TARN_OK;
}
