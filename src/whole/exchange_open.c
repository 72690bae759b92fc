// How an exchange begins. Far ranks are a delay away, and ranks agree on a call
// before they move rows. So a gather of few rows asks for them before that:
//
//   asker                                 owner
//   header           ────────┐    ┌────── header
//   openings, lists  ──────┐ │    │
//   agrees           ◄─────┼─┼────┘
//                          │ └──────────► agrees
//                          └────────────► hears openings, reads lists, and
//                    ◄─────────────────── answers with rows
//
// Rows are served, awaited and placed only by ranks that have agreed. An
// opening has the number of its call: one of a call that failed is left by the
// owner, with its list, when it hears openings of that rank the next time.
// Until a rank's own openings have gone, which an engine may put off until
// then, it asks nothing new.
//
// A gather of many rows says in its openings that asks follow, and so it goes
// as a scatter does, which has none.
#include "base/status.h"
#include "whole/exchange.h"

// --- the course ------------------------------------------------------------

// The dtype of rows in a slot: the smaller one, but for sums that of the dense
// rows, which must not be rounded before they are added.
static tarn_dtype staged_dtype(const tarn__whole_rows_order *order) {
  tarn_dtype table = order->table.dtype;
  tarn_dtype dense = order->rows.dense_dtype;
  if (order->action == TARN__ROWS_SCATTER_ADD) return dense;
  return tarn_dtype_size(dense) < tarn_dtype_size(table) ? dense : table;
}

static void close_all(tarn__whole_exchange *kept) {
  for (size_t i = 0; i < kept->staging.slots; i++)
    kept->posted[i].open = false;
  for (size_t i = 0; i < TARN__SERVINGS; i++)
    kept->far.servings[i].stage = TARN__IDLE;
  kept->far.greeted = kept->far.opened = kept->far.said_goodbye = 0;
}

// What is bought is known only after ranks have agreed.
static bool opens(const tarn__whole_exchange *kept,
                  const tarn__whole_rows_order *order) {
  return order->action == TARN__ROWS_GATHER && kept->far.count > 0 &&
         !kept->by_collectives && !kept->buys;
}

// The copy of this rank's machine is the last one.
static void begin(tarn__whole_exchange *kept, tarn_whole *whole,
                  const tarn__whole_rows_order *order) {
  tarn__whole_course *c = &kept->course;
  *c = (tarn__whole_course){.whole = whole,
                            .kept = kept,
                            .order = order,
                            .dtype = staged_dtype(order),
                            .call = c->call,
                            .opens = opens(kept, order),
                            .awaited = SIZE_MAX};
  if (kept->sorted.copies) {
    c->machine = whole->machines[whole->rank];
    c->copies = tarn__hierarchy_count(whole);
  }
  if (kept->by_collectives) return;
  close_all(kept);
  if (c->copies > 0) {
    c->copies--;
    tarn__ask_next_copy(c);
  }
  tarn__ask_begin(c, 0);
}

void tarn__open_course(tarn__whole_exchange *kept, tarn_whole *whole,
                       const tarn__whole_rows_order *order) {
  tarn__whole_course *c = &kept->course;
  if (!c->opened) begin(kept, whole, order);
  c->order = order;
}

// --- openings --------------------------------------------------------------

static bool is_few(const tarn__whole_course *c) {
  return c->order->rows.index_count <= TARN__EARLY && c->span.width == c->end;
}

// Whether all slots together have room for what is asked of far ranks.
static bool fits(const tarn__whole_course *c) {
  size_t most = tarn__course_most(c, c->span.row_bytes);
  size_t asks = 0;
  for (size_t r = 0; r < c->whole->ranks; r++) {
    if (c->kept->places[r] == TARN__FAR)
      asks += tarn__divide_up(tarn__course_left(c, r), most);
  }
  return asks <= c->kept->staging.slots;
}

static tarn_status ask(tarn__whole_course *c, size_t rank) {
  if (tarn__course_left(c, rank) == 0) {
    return tarn__far_open(c, rank, TARN__THEN_NOTHING);
  }
  while (tarn__course_left(c, rank) > 0)
    TARN__TRY(tarn__ask_next(c, rank, tarn__ask_find_free(c), true));
  return TARN_OK;
}

static tarn_status open_with(tarn__whole_course *c, size_t rank) {
  return c->said_goodbye ? ask(c, rank)
                         : tarn__far_open(c, rank, TARN__THEN_ASKS);
}

static tarn_status open_all(tarn__whole_course *c) {
  for (size_t r = 0; r < c->whole->ranks; r++) {
    if (c->kept->places[r] == TARN__FAR) TARN__TRY(open_with(c, r));
  }
  return TARN_OK;
}

tarn_status tarn__open_all(tarn__whole_course *c) {
  if (c->opened) return TARN_OK;
  TARN__TRY(tarn__far_is_settled(c->kept, &c->opened));
  c->moved = c->moved || c->opened;
  if (!c->opened || !c->opens) return TARN_OK;
  if (is_few(c)) {
    TARN__TRY(tarn__ask_sort(c));
    c->said_goodbye = fits(c);
  }
  return open_all(c);
}

// --- before ranks agree ----------------------------------------------------

// Others may have got a part of it: a rank that fails in the middle breaks the
// communicator.
static void send_early(tarn__whole_course *c) {
  tarn__whole_exchange *kept = c->kept;
  c->said_goodbye = c->opened = fits(c);
  tarn_status status = c->opened ? open_all(c) : TARN_OK;
  if (status == TARN_OK) return;
  tarn__far_drop(kept);
  (void)tarn__comm_give_up(kept->comm, status);
}

// What fails before anything was sent fails once more later.
static void ask_early(void *context) {
  tarn__whole_exchange *kept = context;
  bool settled = false;
  tarn_status status = tarn__far_is_settled(kept, &settled);
  if (status == TARN_OK && settled) status = tarn__ask_sort(&kept->course);
  if (status == TARN_OK && settled) send_early(&kept->course);
}

void tarn__open_begin(tarn__whole_exchange *kept, tarn_whole *whole,
                      const tarn__whole_rows_order *order) {
  tarn__whole_course *c = &kept->course;
  c->opened = false;
  c->call = tarn__comm_meetings(kept->comm);
  if (kept->staging.size == 0 || !opens(kept, order)) return;
  begin(kept, whole, order);
  if (is_few(c)) tarn__comm_meanwhile(kept->comm, ask_early, kept);
}
