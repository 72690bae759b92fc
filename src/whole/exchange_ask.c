// Asking the owners for rows, and placing what has come.
#include <string.h>

#include "base/status.h"
#include "whole/exchange.h"

static size_t left_of_all(const tarn__whole_course *c) {
  size_t left = 0;
  for (size_t r = 0; r < c->whole->ranks; r++)
    left += tarn__course_left(c, r);
  return left;
}

static tarn__whole_slot slot_of(const tarn__whole_course *c, size_t slot) {
  const tarn__whole_staging *staging = &c->kept->staging;
  return tarn__staging_slot(staging, staging->self, slot);
}

// --- what is asked for -----------------------------------------------------

tarn__whole_span tarn__ask_span(const tarn__whole_course *c, size_t element) {
  size_t each = tarn_dtype_size(c->dtype);
  size_t room = c->kept->staging.room - 63 - tarn__course_number(c);
  size_t width = tarn__lesser(c->order->table.width - element, room / each);
  return (tarn__whole_span){element, width, width * each};
}

void tarn__ask_next_copy(tarn__whole_course *c) {
  tarn__whole_exchange *kept = c->kept;
  c->machine = tarn__hierarchy_next(c->whole, c->machine);
  tarn__hierarchy_offsets(c->whole, c->machine, kept->offsets);
  tarn__sorted_look_at(&kept->sorted, &c->order->table, kept->offsets);
}

// After all indices: the next elements of the rows, or the next copy.
static void begin_anew(tarn__whole_course *c) {
  size_t end = c->span.element + c->span.width;
  if (end < c->end) {
    c->span = tarn__ask_span(c, end);
    c->begun = 0;
  } else if (c->copies > 0) {
    c->copies--;
    tarn__ask_next_copy(c);
    c->span = tarn__ask_span(c, 0);
    c->begun = 0;
  }
}

// They are bought.
static void leave_far(const tarn__whole_course *c) {
  for (size_t r = 0; r < c->whole->ranks; r++) {
    if (c->kept->places[r] == TARN__FAR)
      c->kept->sorted.next[r] = c->kept->sorted.ends[r];
  }
}

tarn_status tarn__ask_sort(tarn__whole_course *c) {
  tarn__whole_sorted *sorted = &c->kept->sorted;
  const tarn_rows *rows = &c->order->rows;
  const void *indices = NULL;
  if (c->asked_all || left_of_all(c) > 0) return TARN_OK;
  c->moved = true;
  if (c->begun == rows->index_count) begin_anew(c);
  size_t count = tarn__lesser(rows->index_count - c->begun, TARN__PIECE);
  c->asked_all = count == 0;
  if (count == 0) return TARN_OK;
  TARN__TRY(tarn__rows_view_indices(c->order->place, rows, c->begun, count,
                                    sorted->indices, &indices));
  tarn__sorted_take(sorted, indices, count, tarn__course_gathers(c));
  c->piece = c->begun;
  c->begun += count;
  if (c->buys) leave_far(c);
  return TARN_OK;
}

void tarn__ask_begin(tarn__whole_course *c, size_t element) {
  size_t size = c->whole->ranks * sizeof(size_t);
  memset(c->kept->sorted.next, 0, size);
  memset(c->kept->sorted.ends, 0, size);
  c->next = c->whole->rank;
  c->begun = 0;
  c->asked_all = false;
  c->span = tarn__ask_span(c, element);
  c->end = c->order->table.width;
}

// --- a slot ----------------------------------------------------------------

// Writes the next |count| rows of |rank|'s into |list|, and where they go.
static void write_list(tarn__whole_sorted *sorted, size_t rank, size_t count,
                       void *list, int32_t *positions) {
  const uint64_t *entries = sorted->entries + sorted->next[rank];
  uint64_t first = sorted->firsts[rank];
  int32_t *narrow = list;
  int64_t *wide = list;
  for (size_t k = 0; sorted->narrow && k < count; k++)
    narrow[k] = (int32_t)(tarn__entry_row(entries[k]) - first);
  for (size_t k = 0; !sorted->narrow && k < count; k++)
    wide[k] = (int64_t)(tarn__entry_row(entries[k]) - first);
  for (size_t k = 0; k < count; k++)
    positions[k] = (int32_t)tarn__entry_position(entries[k]);
  for (size_t k = 0; rank == sorted->rank && k < count; k++) {
    if (sorted->next[rank] + k < sorted->bad) continue;
    if (sorted->narrow) narrow[k] = -1;  // an index out of range
    if (!sorted->narrow) wide[k] = -1;
  }
  sorted->next[rank] += count;
}

size_t tarn__ask_find_free(const tarn__whole_course *c) {
  size_t i = 0;
  while (i < c->kept->staging.slots && c->kept->posted[i].open)
    i++;
  return i;
}

tarn_status tarn__ask_fill(tarn__whole_course *c, size_t rank, size_t count,
                           tarn__whole_posted *posted, unsigned char *room) {
  posted->rank = rank;
  posted->piece = c->piece;
  posted->count = count;
  posted->span = c->span;
  write_list(&c->kept->sorted, rank, count, room, posted->positions);
  if (tarn__course_gathers(c)) return TARN_OK;
  return tarn__move_dense(c, TARN__ROWS_GATHER, posted,
                          room + tarn__course_list(c, count));
}

static void post_near(tarn__whole_course *c, size_t slot) {
  const tarn__whole_staging *staging = &c->kept->staging;
  const tarn__whole_posted *posted = &c->kept->posted[slot];
  tarn__whole_slot own = slot_of(c, slot);
  tarn__whole_board *board =
      tarn__staging_board(staging, c->kept->places[posted->rank]);
  *own.ask = posted->letter.ask;
  atomic_store_explicit(own.served, 0, memory_order_relaxed);
  atomic_fetch_or_explicit(&board->of[staging->self].posted,
                           UINT64_C(1) << slot, memory_order_release);
}

static tarn_status post(tarn__whole_course *c, size_t slot,
                        tarn__whole_then then) {
  tarn__whole_posted *posted = &c->kept->posted[slot];
  posted->letter.ask =
      (tarn__whole_ask){.from = (uint32_t)c->whole->rank,
                        .count = (uint32_t)posted->count,
                        .number = c->asks++,
                        .element = posted->span.element,
                        .width = posted->span.width,
                        .call = c->call,
                        .list = (uint32_t)tarn__course_list(c, posted->count),
                        .then = then};
  posted->open = true;
  c->open++;
  if (c->kept->places[posted->rank] == TARN__FAR) return tarn__far_ask(c, slot);
  post_near(c, slot);
  return TARN_OK;
}

// --- asking ----------------------------------------------------------------

// Slots that may be open with one owner: where there are several, what is asked
// of one must not keep the others waiting.
static size_t most_open(const tarn__whole_course *c) {
  size_t slots = c->kept->staging.slots;
  size_t owners = c->whole->ranks - 1;
  return owners > 0 && slots / owners > 2 ? slots / owners : 2;
}

size_t tarn__ask_open_with(const tarn__whole_course *c, size_t rank) {
  size_t count = 0;
  for (size_t i = 0; i < c->kept->staging.slots; i++)
    count += c->kept->posted[i].open && c->kept->posted[i].rank == rank;
  return count;
}

// The next owner, after the last that was asked, that can be asked now; the
// number of ranks if there is none.
static size_t find_owner(const tarn__whole_course *c) {
  size_t ranks = c->whole->ranks;
  for (size_t i = 1; i <= ranks; i++) {
    size_t rank = (c->next + i) % ranks;
    if (rank != c->whole->rank && tarn__course_left(c, rank) > 0 &&
        tarn__ask_open_with(c, rank) < most_open(c)) {
      return rank;
    }
  }
  return ranks;
}

// Asks that are about equally large, so that the last one is not a small one.
static size_t share_of(const tarn__whole_course *c, size_t rank) {
  size_t left = tarn__course_left(c, rank);
  return tarn__divide_up(
      left, tarn__divide_up(left, tarn__course_most(c, c->span.row_bytes)));
}

tarn_status tarn__ask_next(tarn__whole_course *c, size_t rank, size_t slot,
                           bool opens) {
  TARN__TRY(tarn__ask_fill(c, rank, share_of(c, rank), &c->kept->posted[slot],
                           slot_of(c, slot).room));
  bool more = tarn__course_left(c, rank) > 0;
  tarn__whole_then then = more ? TARN__THEN_OPENS : TARN__THEN_NOTHING;
  return post(c, slot, opens ? then : TARN__NO_OPENING);
}

tarn_status tarn__ask_more(tarn__whole_course *c) {
  size_t slot = 0;
  TARN__TRY(tarn__ask_sort(c));
  while (!c->asked_all &&
         (slot = tarn__ask_find_free(c)) < c->kept->staging.slots) {
    size_t rank = find_owner(c);
    if (rank == c->whole->ranks) return TARN_OK;
    c->next = rank;
    c->moved = true;
    TARN__TRY(tarn__ask_next(c, rank, slot, false));
  }
  return TARN_OK;
}

void tarn__ask_stop(tarn__whole_course *c) {
  c->asked_all = true;
}

// --- placing ---------------------------------------------------------------

static bool is_served(const tarn__whole_course *c, size_t slot) {
  const tarn__whole_posted *posted = &c->kept->posted[slot];
  if (c->kept->places[posted->rank] == TARN__FAR) {
    return tarn__far_is_served(c, slot);
  }
  return atomic_load_explicit(slot_of(c, slot).served, memory_order_acquire) !=
         0;
}

tarn_status tarn__ask_put(const tarn__whole_course *c,
                          const tarn__whole_posted *posted,
                          unsigned char *room) {
  return tarn__move_dense(c, TARN__ROWS_SCATTER, posted,
                          room + tarn__course_list(c, posted->count));
}

tarn_status tarn__ask_place(tarn__whole_course *c) {
  for (size_t i = 0; i < c->kept->staging.slots; i++) {
    tarn__whole_posted *posted = &c->kept->posted[i];
    if (!posted->open || !is_served(c, i)) continue;
    posted->open = false;
    c->open--;
    c->moved = true;
    if (!tarn__course_gathers(c) || c->failure.status != TARN_OK) continue;
    TARN__TRY(tarn__ask_put(c, posted, slot_of(c, i).room));
  }
  return TARN_OK;
}

// --- own rows --------------------------------------------------------------

// A sink reaches the table itself.
static bool is_touchable(const tarn__whole_course *c) {
  return (c->order->sink != NULL ||
          tarn__rows_are_touchable(c->whole->place)) &&
         tarn__rows_are_touchable(c->order->place);
}

// The next rank, this one first, of which rows are left that this one reaches.
static size_t find_mapped(const tarn__whole_course *c) {
  size_t own = c->whole->rank;
  if (!c->buys || tarn__course_left(c, own) > 0) return own;
  for (size_t r = 0; r < c->whole->ranks; r++) {
    if (tarn__course_left(c, r) > 0) return r;
  }
  return own;
}

static tarn_status pass_through(tarn__whole_course *c, size_t rank,
                                size_t count, tarn__whole_posted *posted,
                                unsigned char *room) {
  TARN__TRY(tarn__ask_fill(c, rank, count, posted, room));
  TARN__TRY(tarn__move_owned(c, &c->span, rank, c->whole->rank, room, count,
                             room + tarn__course_list(c, count)));
  return tarn__course_gathers(c) ? tarn__ask_put(c, posted, room) : TARN_OK;
}

// Rows. Each of those that a pager brings may be a read of its own.
static size_t own_share(const tarn__whole_course *c) {
  bool paged = c->whole->pager != NULL;
  size_t bytes = paged ? TARN__PAGED_SHARE : TARN__OWN_SHARE;
  if (c->kept->far.count > 0) bytes = TARN__FAR_SHARE;
  size_t rows = bytes / c->span.row_bytes + 1;
  return paged ? tarn__lesser(rows, TARN__PAGED_ROWS) : rows;
}

tarn_status tarn__ask_own_by(tarn__whole_course *c, tarn__whole_posted *posted,
                             unsigned char *room) {
  size_t share = own_share(c);
  size_t rank = find_mapped(c);
  size_t count = tarn__lesser(tarn__course_left(c, rank), share);
  size_t most = tarn__course_most(c, c->span.row_bytes);
  if (count == 0) return TARN_OK;
  c->moved = true;
  if (!is_touchable(c)) {
    return pass_through(c, rank, tarn__lesser(count, most), posted, room);
  }
  return tarn__move_mapped(c, rank, count);
}

// There may be no slot that is free now.
tarn_status tarn__ask_own(tarn__whole_course *c) {
  size_t slot = is_touchable(c) ? 0 : tarn__ask_find_free(c);
  bool waits = tarn__course_adds(c) && c->turn != c->whole->rank;
  if (c->asked_all || waits || slot == c->kept->staging.slots) return TARN_OK;
  return tarn__ask_own_by(c, &c->kept->posted[slot], slot_of(c, slot).room);
}
