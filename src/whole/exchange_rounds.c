// Rows between ranks that have neither common memory nor messages: in rounds,
// by the collectives that every communicator has.
//
//   round   each rank tells all others how many rows it wants of them
//           lists go to the owners, with a scatter rows as well
//           with a gather, rows come back
//
// For sums one rank asks at a time, in the order of ranks.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "whole/exchange.h"

enum { ROOM = 2 << 20 };  // bytes of lists and rows, each way

typedef enum word { NO_MORE, ASKS, FAILED } word;

// Bytes to or from each rank: a part of |bytes| for each.
typedef struct side {
  unsigned char *bytes;  // ROOM
  size_t *counts;        // rows
  size_t *sizes;         // bytes
  size_t *offsets;
} side;

typedef struct rounds {
  tarn__whole_course *course;
  size_t ranks;
  size_t part;
  word *words;   // of each rank
  side own;      // what this rank asks
  side others;   // what is asked of it
  bool is_turn;  // of this rank to ask
} rounds;

// --- memory ----------------------------------------------------------------

static size_t part_of(size_t ranks) {
  return (size_t)ROOM / ranks & ~(size_t)63;
}

void tarn__rounds_lay_out(tarn__whole_exchange *kept) {
  kept->staging.slots = kept->ranks;
  kept->staging.room = part_of(kept->ranks);
}

static bool make_side(side *s, size_t ranks) {
  s->bytes = tarn__host_alloc(ROOM);
  s->counts = tarn__host_array(ranks, sizeof *s->counts);
  s->sizes = tarn__host_array(ranks, sizeof *s->sizes);
  s->offsets = tarn__host_array(ranks, sizeof *s->offsets);
  return s->bytes != NULL && s->counts != NULL && s->sizes != NULL &&
         s->offsets != NULL;
}

static void free_side(side *s, size_t ranks) {
  tarn__host_free(s->bytes, ROOM);
  tarn__host_free_array(s->counts, ranks, sizeof *s->counts);
  tarn__host_free_array(s->sizes, ranks, sizeof *s->sizes);
  tarn__host_free_array(s->offsets, ranks, sizeof *s->offsets);
}

static tarn_status make(rounds *r) {
  r->words = tarn__host_array(r->ranks, sizeof *r->words);
  bool all = make_side(&r->own, r->ranks);
  all = make_side(&r->others, r->ranks) && all;
  return all && r->words != NULL ? TARN_OK : TARN_E_NOMEM;
}

static void drop(rounds *r) {
  tarn__host_free_array(r->words, r->ranks, sizeof *r->words);
  free_side(&r->own, r->ranks);
  free_side(&r->others, r->ranks);
}

// --- asking ----------------------------------------------------------------

static tarn__whole_posted *posted_of(const rounds *r, size_t rank) {
  tarn__whole_exchange *kept = r->course->kept;
  tarn__whole_posted *posted = &kept->posted[0];
  posted->positions =
      kept->positions + rank * (TARN__UNDER_WAY / kept->staging.slots);
  return posted;
}

// Rows of this rank itself are moved at once, some of them.
static tarn_status ask_rank(rounds *r, size_t rank) {
  tarn__whole_course *c = r->course;
  const tarn__whole_sorted *sorted = &c->kept->sorted;
  unsigned char *room = r->own.bytes + rank * r->part;
  size_t left = sorted->ends[rank] - sorted->next[rank];
  size_t count = tarn__lesser(left, tarn__course_most(c, c->span.row_bytes));
  if (rank == c->whole->rank) {
    return tarn__ask_own_by(c, posted_of(r, rank), room);
  }
  r->own.counts[rank] = count;
  return tarn__ask_fill(c, rank, count, posted_of(r, rank), room);
}

static tarn_status ask(rounds *r) {
  memset(r->own.counts, 0, r->ranks * sizeof *r->own.counts);
  if (!r->is_turn) return TARN_OK;
  TARN__TRY(tarn__ask_sort(r->course));
  for (size_t rank = 0; rank < r->ranks; rank++)
    TARN__TRY(ask_rank(r, rank));
  return TARN_OK;
}

// --- passing ---------------------------------------------------------------

// Sizes and offsets of lists, or of rows, or of both.
static void measure(const rounds *r, side *s, bool lists, bool rows) {
  const tarn__whole_course *c = r->course;
  for (size_t rank = 0; rank < r->ranks; rank++) {
    size_t list = tarn__course_list(c, s->counts[rank]);
    size_t bytes = s->counts[rank] * c->span.row_bytes;
    s->sizes[rank] = (lists ? list : 0) + (rows ? bytes : 0);
    s->offsets[rank] = rank * r->part + (lists ? 0 : list);
  }
}

static tarn_status pass(const rounds *r, const side *from, const side *to) {
  return tarn_comm_alltoallv(r->course->kept->comm, from->bytes, from->sizes,
                             from->offsets, to->bytes, to->sizes, to->offsets);
}

static tarn_status pass_counts(rounds *r) {
  side from = r->own;
  side to = r->others;
  from.bytes = (unsigned char *)r->own.counts;
  to.bytes = (unsigned char *)r->others.counts;
  for (size_t rank = 0; rank < r->ranks; rank++) {
    from.sizes[rank] = to.sizes[rank] = sizeof(size_t);
    from.offsets[rank] = to.offsets[rank] = rank * sizeof(size_t);
  }
  return pass(r, &from, &to);
}

static tarn_status serve(const rounds *r) {
  const tarn__whole_course *c = r->course;
  for (size_t rank = 0; rank < r->ranks; rank++) {
    const tarn__whole_ask ask = {.from = (uint32_t)rank,
                                 .count = (uint32_t)r->others.counts[rank],
                                 .element = c->span.element,
                                 .width = c->span.width};
    TARN__TRY(tarn__serve_check(c, rank, &ask));
    TARN__TRY(tarn__serve_one(c, rank, &ask, r->others.bytes + rank * r->part));
  }
  return TARN_OK;
}

static tarn_status place(const rounds *r) {
  tarn__whole_course *c = r->course;
  for (size_t rank = 0; rank < r->ranks; rank++) {
    tarn__whole_posted *posted = posted_of(r, rank);
    posted->count = r->own.counts[rank];
    posted->piece = c->piece;
    posted->span = c->span;
    if (posted->count == 0) continue;
    TARN__TRY(tarn__ask_put(c, posted, r->own.bytes + rank * r->part));
  }
  return TARN_OK;
}

// --- a round ---------------------------------------------------------------

// What all ranks are up to: FAILED if one is, ASKS if one does.
static tarn_status meet(const rounds *r, tarn_status status, word *out) {
  const tarn__whole_course *c = r->course;
  word own = r->is_turn && !c->asked_all ? ASKS : NO_MORE;
  if (status != TARN_OK) own = FAILED;
  *out = NO_MORE;
  TARN__TRY(tarn_comm_allgather(c->kept->comm, &own, sizeof own, r->words));
  for (size_t rank = 0; rank < r->ranks; rank++)
    if (r->words[rank] > *out) *out = r->words[rank];
  return TARN_OK;
}

static tarn_status go_round(rounds *r, tarn_status *io_status) {
  bool gathers = tarn__course_gathers(r->course);
  TARN__TRY(pass_counts(r));
  measure(r, &r->own, true, !gathers);
  measure(r, &r->others, true, !gathers);
  TARN__TRY(pass(r, &r->own, &r->others));
  *io_status = serve(r);
  if (!gathers) return TARN_OK;
  measure(r, &r->own, false, true);
  measure(r, &r->others, false, true);
  TARN__TRY(pass(r, &r->others, &r->own));
  if (*io_status == TARN_OK) *io_status = place(r);
  return TARN_OK;
}

// |*io_status|: of this rank's own, which all learn of in the next round.
static tarn_status go_through(rounds *r, tarn_status *io_status) {
  word what = ASKS;
  for (;;) {
    if (*io_status == TARN_OK) *io_status = ask(r);
    TARN__TRY(meet(r, *io_status, &what));
    if (what != ASKS) return TARN_OK;
    TARN__TRY(go_round(r, io_status));
  }
}

// --- all of it -------------------------------------------------------------

// Ranks begin with the same elements, so that a list needs to name none.
static tarn_status go_by_elements(rounds *r, tarn_status *io_status) {
  tarn__whole_course *c = r->course;
  bool one_by_one = tarn__course_adds(c);
  size_t turns = one_by_one ? r->ranks : 1;
  for (size_t first = 0; first < c->order->table.width; first = c->end) {
    for (size_t turn = 0; turn < turns; turn++) {
      r->is_turn = !one_by_one || turn == c->whole->rank;
      tarn__ask_begin(c, first);
      c->end = first + c->span.width;
      TARN__TRY(go_through(r, io_status));
    }
  }
  return TARN_OK;
}

// All ranks turn to the same copy.
static tarn_status go_by_copies(rounds *r, tarn_status *io_status) {
  tarn__whole_course *c = r->course;
  size_t copies = c->copies;
  if (copies == 0) return go_by_elements(r, io_status);
  c->machine = c->copies = 0;
  for (size_t i = 0; i < copies; i++) {
    tarn__ask_next_copy(c);
    TARN__TRY(go_by_elements(r, io_status));
  }
  return TARN_OK;
}

tarn_status tarn__rounds_go(tarn__whole_course *course) {
  tarn_comm *comm = course->kept->comm;
  rounds r = {.course = course,
              .ranks = course->whole->ranks,
              .part = part_of(course->whole->ranks)};
  tarn_status status = tarn_comm_agree(comm, make(&r));
  if (status == TARN_OK) {
    tarn_status own = TARN_OK;
    status = go_by_copies(&r, &own);
    if (status == TARN_OK) status = tarn_comm_agree(comm, own);
  }
  drop(&r);
  return status;
}
