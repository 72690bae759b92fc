// The loop of a rank in an exchange: whatever can be done next, until all that
// it asked for has come, and no rank asks it any more.
//
// Invariants:
//   * data of other ranks is checked: asks against the size of a slot and of
//   the
//     table, row numbers against this rank's part
//   * a rank serves and asks before it waits, so that no two ranks wait for
//   each
//     other
//   * ranks of one machine agree in the end on how it went: one that has failed
//     asks no more, serves without moving rows, and says so there. Over
//     messages completion is local: a rank that fails breaks the communicator
#include "base/status.h"
#include "whole/exchange.h"

// --- the others ------------------------------------------------------------

// Whether |rank|, another one, has asked for all that it wants, and got it.
static bool is_done_with(const tarn__whole_course *c, size_t rank) {
  uint32_t near = c->kept->places[rank];
  return near != TARN__FAR ? tarn__serve_is_done_with(c, near)
                           : tarn__far_is_done_with(c, rank);
}

// Rows are added in the order of ranks.
static void take_turns(tarn__whole_course *c) {
  while (tarn__course_adds(c) && c->turn < c->whole->ranks) {
    bool over =
        c->turn == c->whole->rank ? c->asked_all : is_done_with(c, c->turn);
    if (!over) return;
    c->turn++;
    c->moved = true;
  }
}

// --- waiting ---------------------------------------------------------------

// A rank that is to be waited for.
static size_t find_awaited(const tarn__whole_course *c) {
  size_t awaited = c->buys ? tarn__buy_find_awaited(c) : c->whole->ranks;
  if (awaited < c->whole->ranks) return awaited;
  for (size_t i = 0; i < c->kept->staging.slots; i++)
    if (c->kept->posted[i].open) return c->kept->posted[i].rank;
  for (size_t i = 1; i < c->whole->ranks; i++) {
    size_t rank = (c->whole->rank + i) % c->whole->ranks;
    if (!is_done_with(c, rank)) return rank;
  }
  return (c->whole->rank + 1) % c->whole->ranks;
}

// Whether |rank|, of this machine, has gone through its loop since the last
// look.
static bool has_a_pulse(tarn__whole_course *c, size_t rank) {
  uint32_t near = c->kept->places[rank];
  if (near == TARN__FAR) return false;
  uint64_t beat =
      atomic_load_explicit(&tarn__staging_board(&c->kept->staging, near)->beat,
                           memory_order_relaxed);
  bool same = c->awaited == rank && c->beat == beat;
  c->awaited = rank;
  c->beat = beat;
  return !same;
}

static tarn_status wait_a_while(tarn__whole_course *c,
                                tarn__comm_progress *progress) {
  size_t rank = find_awaited(c);
  if (progress->by.turn % 64 == 63 && has_a_pulse(c, rank)) {
    tarn__comm_progress_extend(progress);
  }
  return tarn__comm_progress_idle(progress, rank);
}

static void show_a_pulse(const tarn__whole_course *c) {
  const tarn__whole_staging *staging = &c->kept->staging;
  atomic_ullong *beat = &tarn__staging_board(staging, staging->self)->beat;
  atomic_store_explicit(beat,
                        atomic_load_explicit(beat, memory_order_relaxed) + 1,
                        memory_order_relaxed);
}

// --- the end ---------------------------------------------------------------

static void say_goodbye_near(const tarn__whole_course *c) {
  const tarn__whole_staging *staging = &c->kept->staging;
  for (size_t i = 0; i < staging->count; i++) {
    tarn__whole_board *board = tarn__staging_board(staging, i);
    atomic_store_explicit(&board->of[staging->self].finished, c->kept->serial,
                          memory_order_release);
  }
}

// A buyer is through with ranks of its machine when it offers them no more.
static tarn_status say_goodbye(tarn__whole_course *c) {
  bool asks = c->buys ? !c->bought_all : !c->asked_all;
  if (!c->said_near && !asks && (!c->buys || tarn__buy_has_come(c))) {
    c->said_near = c->moved = true;
    say_goodbye_near(c);
  }
  if (asks || c->said_goodbye) return TARN_OK;
  c->said_goodbye = c->moved = true;
  return tarn__far_say_goodbye(c);
}

static tarn_status is_over(tarn__whole_course *c, bool *out_over) {
  *out_over = c->asked_all && c->said_goodbye && c->said_near && c->open == 0;
  for (size_t r = 0; *out_over && r < c->whole->ranks; r++) {
    *out_over = r == c->whole->rank || is_done_with(c, r);
  }
  return *out_over ? tarn__far_is_quiet(c, out_over) : TARN_OK;
}

// --- the loop --------------------------------------------------------------

static tarn_status trade(tarn__whole_course *c) {
  TARN__TRY(tarn__buy_place(c));
  TARN__TRY(tarn__buy_more(c));
  TARN__TRY(tarn__buy_take(c));
  return c->moved ? TARN_OK : tarn__ask_sort(c);
}

static tarn_status ask(tarn__whole_course *c) {
  TARN__TRY(tarn__ask_place(c));
  return tarn__ask_more(c);
}

static tarn_status take_steps(tarn__whole_course *c) {
  TARN__TRY(tarn__serve_near(c));
  take_turns(c);
  TARN__TRY(tarn__far_serve(c));
  TARN__TRY(tarn__open_all(c));
  if (!c->opened) return TARN_OK;
  TARN__TRY(c->buys ? trade(c) : ask(c));
  // The next piece is asked for when own rows of this one have been moved, and
  // a link would have nothing to do meanwhile.
  bool far = c->kept->far.count > 0;
  if (far || !c->moved) TARN__TRY(tarn__ask_own(c));
  return say_goodbye(c);
}

// A failure of this rank's own, while it can still serve others.
static tarn_status note_failure(tarn__whole_course *c, tarn_status status) {
  if (status == TARN_OK || c->kept->far.count > 0) return status;
  tarn__failure_note(&c->failure, status);
  tarn__ask_stop(c);
  c->moved = true;
  return TARN_OK;
}

static tarn_status go_through(tarn__whole_course *c) {
  tarn__comm_progress progress;
  bool over = false;
  TARN__TRY(tarn__comm_progress_begin(c->kept->comm, &progress));
  for (;;) {
    c->moved = false;
    show_a_pulse(c);
    TARN__TRY(note_failure(c, take_steps(c)));
    TARN__TRY(is_over(c, &over));
    if (over) break;
    TARN__TRY(c->moved ? tarn__comm_progress_moved(&progress)
                       : wait_a_while(c, &progress));
  }
  tarn__comm_progress_end(&progress);
  return tarn__failure_tell(&c->failure);
}

// --- all of it -------------------------------------------------------------

tarn_status tarn__exchange_go(tarn__whole_exchange *kept, tarn_whole *whole,
                              const tarn__whole_rows_order *order) {
  tarn__whole_course *c = &kept->course;
  tarn__open_course(kept, whole, order);
  if (kept->by_collectives) return tarn__rounds_go(c);
  c->buys = kept->buys && tarn__course_gathers(c) && kept->wants.fit;
  kept->serial++;
  tarn_status status = c->buys ? tarn__wants_list(c) : TARN_OK;
  if (status == TARN_OK) status = tarn__far_await(c);
  if (status == TARN_OK) status = go_through(c);
  if (kept->far.count == 0) return tarn_comm_agree(kept->comm, status);
  if (status == TARN_OK) return TARN_OK;
  tarn__far_drop(kept);
  return tarn__comm_give_up(kept->comm, status);
}
