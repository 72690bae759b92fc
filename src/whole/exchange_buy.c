// Gathers of rows of other machines: of the ranks of a machine, one buys a row
// for all that want it.
//
//   owner          buyer, of another machine          takers, of that machine
//   gathers  ◄───  merges what the ranks of its
//            ───►  machine want of it, into a slot ──► copy those that they
//            want
//                  is free for the next ◄─────────────  and say so
//
// Rows of an owner are bought in ascending order, so that each is bought once
// in a call. A slot names the owner in place of the asker, and counts the ranks
// that have to look at it.
#include "base/status.h"
#include "whole/exchange.h"

static tarn__whole_slot slot_of(const tarn__whole_course *c, size_t slot) {
  const tarn__whole_staging *staging = &c->kept->staging;
  return tarn__staging_slot(staging, staging->self, slot);
}

// --- what is to be bought --------------------------------------------------

// Of the list of a rank: what is left to be bought of an owner.
typedef struct tarn__whole_lane {
  size_t next;
  size_t end;
} lane;

static lane *lanes_of(const tarn__whole_course *c, size_t owner) {
  return c->kept->lanes + owner * c->kept->staging.count;
}

size_t tarn__buy_lanes_size(size_t ranks, size_t near) {
  return ranks * near * sizeof(lane);
}

// All that the lists have, of the elements from |element| on.
static void begin_span(tarn__whole_course *c, size_t element) {
  const tarn__whole_exchange *kept = c->kept;
  c->bought = tarn__ask_span(c, element);
  for (size_t r = 0; r < c->whole->ranks; r++) {
    if (kept->places[r] != TARN__FAR) continue;
    for (size_t i = 0; i < kept->staging.count; i++) {
      tarn__whole_list list = tarn__wants_of(kept, i, kept->staging.self);
      lanes_of(c, r)[i] =
          (lane){tarn__wants_from(&list, kept->sorted.firsts[r]),
                 tarn__wants_from(&list, kept->sorted.firsts[r + 1])};
    }
  }
}

static bool has_more(const tarn__whole_course *c, size_t owner) {
  const lane *lanes = lanes_of(c, owner);
  for (size_t i = 0; i < c->kept->staging.count; i++) {
    if (lanes[i].next < lanes[i].end) return true;
  }
  return false;
}

// The lowest row that is left, past which all lanes then go.
static bool pop_row(const tarn__whole_list *lists, lane *lanes, size_t near,
                    uint64_t *out_row) {
  uint64_t least = UINT64_MAX;
  for (size_t i = 0; i < near; i++) {
    if (lanes[i].next < lanes[i].end && lists[i].rows[lanes[i].next] < least)
      least = lists[i].rows[lanes[i].next];
  }
  for (size_t i = 0; i < near; i++) {
    while (lanes[i].next < lanes[i].end &&
           lists[i].rows[lanes[i].next] <= least)
      lanes[i].next++;
  }
  *out_row = least;
  return least != UINT64_MAX;
}

// Writes the next rows of |owner| into |room|; returns how many.
static size_t write_list(const tarn__whole_course *c, size_t owner,
                         void *room) {
  const tarn__whole_exchange *kept = c->kept;
  tarn__whole_list lists[TARN_COMM_MOST_RANKS];
  size_t near = kept->staging.count;
  size_t most = tarn__course_most(c, c->bought.row_bytes);
  uint64_t first = kept->sorted.firsts[owner];
  uint64_t row = 0;
  size_t count = 0;
  for (size_t i = 0; i < near; i++)
    lists[i] = tarn__wants_of(kept, i, kept->staging.self);
  while (count < most && pop_row(lists, lanes_of(c, owner), near, &row)) {
    if (kept->sorted.narrow) ((int32_t *)room)[count] = (int32_t)(row - first);
    if (!kept->sorted.narrow) ((int64_t *)room)[count] = (int64_t)(row - first);
    count++;
  }
  return count;
}

// --- buying ----------------------------------------------------------------

static bool are_all_listed(const tarn__whole_course *c) {
  for (size_t i = 0; i < c->kept->staging.count; i++) {
    if (!tarn__wants_are_listed(c->kept, i)) return false;
  }
  return true;
}

static tarn_status buy(tarn__whole_course *c, size_t owner, size_t slot) {
  tarn__whole_slot own = slot_of(c, slot);
  tarn__whole_posted *posted = &c->kept->posted[slot];
  posted->rank = owner;
  posted->span = c->bought;
  posted->handed = false;
  posted->count = write_list(c, owner, own.room);
  posted->letter.ask =
      (tarn__whole_ask){.from = (uint32_t)c->whole->rank,
                        .count = (uint32_t)posted->count,
                        .number = c->asks++,
                        .element = c->bought.element,
                        .width = c->bought.width,
                        .list = (uint32_t)tarn__course_list(c, posted->count)};
  *own.ask = posted->letter.ask;
  own.ask->from = (uint32_t)owner;
  posted->open = true;
  c->open++;
  return tarn__far_ask(c, slot);
}

// Slots are shared out to the owners.
static size_t most_open(const tarn__whole_course *c) {
  size_t each = c->kept->staging.slots / c->kept->far.count;
  return each > 2 ? each : 2;
}

// The number of ranks if there is none of whom to buy now; |*out_over|: and
// nothing is left.
static size_t find_owner(const tarn__whole_course *c, bool *out_over) {
  size_t ranks = c->whole->ranks;
  *out_over = true;
  for (size_t i = 1; i <= ranks; i++) {
    size_t rank = (c->next + i) % ranks;
    if (c->kept->places[rank] != TARN__FAR || !has_more(c, rank)) continue;
    *out_over = false;
    if (tarn__ask_open_with(c, rank) < most_open(c)) return rank;
  }
  return ranks;
}

tarn_status tarn__buy_more(tarn__whole_course *c) {
  size_t slot = 0;
  if (c->bought_all || !are_all_listed(c)) return TARN_OK;
  if (c->bought.width == 0) begin_span(c, 0);
  while ((slot = tarn__ask_find_free(c)) < c->kept->staging.slots) {
    bool over = false;
    size_t owner = find_owner(c, &over);
    size_t end = c->bought.element + c->bought.width;
    c->bought_all = over && end == c->order->table.width;
    c->moved = c->moved || over || owner < c->whole->ranks;
    if (c->bought_all || (!over && owner == c->whole->ranks)) return TARN_OK;
    if (over) {
      begin_span(c, end);
      continue;
    }
    c->next = owner;
    TARN__TRY(buy(c, owner, slot));
  }
  return TARN_OK;
}

// --- taking ----------------------------------------------------------------

// A slot of a buyer as a taker sees it: read once, and checked.
typedef struct offer {
  tarn__whole_ask ask;
  tarn__whole_list list;  // what this rank wants of that buyer
  const unsigned char *numbers;
  unsigned char *rows;
  uint64_t first;  // row of the owner
} offer;

static uint64_t number_at(const tarn__whole_course *c, const offer *o,
                          size_t i) {
  tarn_dtype dtype = c->kept->sorted.narrow ? TARN_DTYPE_I32 : TARN_DTYPE_I64;
  return o->first + (uint64_t)tarn__rows_index_at(dtype, o->numbers, i);
}

// Rows of both lists, which ascend, from |*at| and |*staged| on: at most
// |most|.
static size_t match(const tarn__whole_course *c, const offer *o, size_t *at,
                    size_t *staged, tarn__whole_match *out, size_t most) {
  size_t count = 0;
  while (count < most && *at < o->list.count && *staged < o->ask.count) {
    uint64_t wanted = o->list.rows[*at];
    uint64_t there = number_at(c, o, *staged);
    if (wanted > there) {
      ++*staged;
      continue;
    }
    if (wanted == there) {
      out[count++] = (tarn__whole_match){(uint32_t)o->list.positions[*at],
                                         (uint32_t)*staged};
    }
    ++*at;
  }
  return count;
}

static tarn_status take(const tarn__whole_course *c, size_t buyer,
                        size_t slot) {
  tarn__whole_exchange *kept = c->kept;
  tarn__whole_slot from = tarn__staging_slot(&kept->staging, buyer, slot);
  offer o = {.ask = *from.ask,
             .list = tarn__wants_of(kept, kept->staging.self, buyer),
             .numbers = from.room};
  TARN__TRY(tarn__serve_check(c, tarn__near_rank(kept, buyer), &o.ask));
  if (o.ask.from >= c->whole->ranks || o.ask.count == 0) return TARN_OK;
  o.first = kept->sorted.firsts[o.ask.from];
  o.rows = from.room + tarn__course_list(c, o.ask.count);
  const tarn__whole_span span = {o.ask.element, o.ask.width,
                                 o.ask.width * tarn_dtype_size(c->dtype)};
  size_t at = tarn__wants_from(&o.list, number_at(c, &o, 0));
  size_t staged = 0;
  size_t count = 0;
  size_t most = tarn__lesser(TARN__PIECE, tarn__course_most(c, span.row_bytes));
  tarn__whole_match *matches = (tarn__whole_match *)(void *)kept->indices;
  while ((count = match(c, &o, &at, &staged, matches, most)) > 0)
    TARN__TRY(tarn__move_matches(c, &span, matches, count, o.rows));
  return TARN_OK;
}

static tarn_status take_of(tarn__whole_course *c, size_t buyer) {
  const tarn__whole_staging *staging = &c->kept->staging;
  atomic_ullong *word =
      &tarn__staging_board(staging, staging->self)->of[buyer].offered;
  tarn_status status = TARN_OK;
  if (atomic_load_explicit(word, memory_order_relaxed) == 0) return TARN_OK;
  uint64_t offered = atomic_exchange_explicit(word, 0, memory_order_acquire);
  c->moved = true;
  for (size_t slot = 0; slot < staging->slots; slot++) {
    if ((offered >> slot & 1) == 0) continue;
    tarn__keep_first(&status, take(c, buyer, slot));
    atomic_fetch_sub_explicit(tarn__staging_slot(staging, buyer, slot).served,
                              1, memory_order_release);
  }
  return status;
}

tarn_status tarn__buy_take(tarn__whole_course *c) {
  const tarn__whole_staging *staging = &c->kept->staging;
  for (size_t i = 1; i < staging->count; i++)
    TARN__TRY(take_of(c, (staging->self + i) % staging->count));
  return TARN_OK;
}

// --- handing on ------------------------------------------------------------

// Whether rank |near| wants a row of the slot, or one between two of them.
static bool may_want(const tarn__whole_course *c, size_t near, const offer *o) {
  tarn__whole_list list = tarn__wants_of(c->kept, near, c->kept->staging.self);
  size_t at = tarn__wants_from(&list, number_at(c, o, 0));
  return at < list.count && list.rows[at] <= number_at(c, o, o->ask.count - 1);
}

static tarn_status hand_on(tarn__whole_course *c, size_t slot) {
  const tarn__whole_staging *staging = &c->kept->staging;
  tarn__whole_slot own = slot_of(c, slot);
  tarn__whole_posted *posted = &c->kept->posted[slot];
  const offer o = {.ask = posted->letter.ask,
                   .numbers = own.room,
                   .first = c->kept->sorted.firsts[posted->rank]};
  posted->handed = c->moved = true;
  atomic_store_explicit(own.served, (unsigned)staging->count,
                        memory_order_relaxed);
  for (size_t i = 0; i < staging->count; i++) {
    if (i == staging->self || !may_want(c, i, &o)) {
      atomic_fetch_sub_explicit(own.served, 1, memory_order_relaxed);
      continue;
    }
    tarn__whole_board *board = tarn__staging_board(staging, i);
    atomic_fetch_or_explicit(&board->of[staging->self].offered,
                             UINT64_C(1) << slot, memory_order_release);
  }
  return take(c, staging->self, slot);
}

tarn_status tarn__buy_place(tarn__whole_course *c) {
  for (size_t i = 0; i < c->kept->staging.slots; i++) {
    tarn__whole_posted *posted = &c->kept->posted[i];
    if (!posted->open) continue;
    if (!posted->handed && tarn__far_is_served(c, i)) TARN__TRY(hand_on(c, i));
    if (!posted->handed ||
        atomic_load_explicit(slot_of(c, i).served, memory_order_acquire) != 0)
      continue;
    posted->open = false;
    c->open--;
    c->moved = true;
  }
  return TARN_OK;
}

// --- waiting ---------------------------------------------------------------

bool tarn__buy_has_come(const tarn__whole_course *c) {
  for (size_t i = 0; i < c->kept->staging.slots; i++) {
    if (c->kept->posted[i].open && !c->kept->posted[i].handed) return false;
  }
  return c->bought_all;
}

static size_t find_taker(const tarn__whole_course *c, size_t slot) {
  const tarn__whole_staging *staging = &c->kept->staging;
  for (size_t i = 0; i < staging->count; i++) {
    tarn__whole_board *board = tarn__staging_board(staging, i);
    uint64_t word = atomic_load_explicit(&board->of[staging->self].offered,
                                         memory_order_relaxed);
    if ((word >> slot & 1) != 0) return tarn__near_rank(c->kept, i);
  }
  return c->kept->posted[slot].rank;
}

size_t tarn__buy_find_awaited(const tarn__whole_course *c) {
  const tarn__whole_exchange *kept = c->kept;
  for (size_t i = 0; i < kept->staging.count; i++) {
    if (!tarn__wants_are_listed(kept, i)) return tarn__near_rank(kept, i);
  }
  for (size_t i = 0; i < kept->staging.slots; i++) {
    if (!kept->posted[i].open) continue;
    return kept->posted[i].handed ? find_taker(c, i) : kept->posted[i].rank;
  }
  return c->whole->ranks;
}
