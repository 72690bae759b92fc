// Greedy plans first; then a portfolio of searches, in rounds.
//
// Each round gives every kind of search more than the round before: searches in
// depth more nodes, beams twice the width. The kinds are good at different
// things. A search in depth at the proven bound finds plans that leave no room
// at all; one below the best plan proves that there is none. A beam proves
// nothing, but finds low plans where the others do not reach the bound. Which
// member of the portfolio finds one is luck, at each width anew: so all of them
// are tried at the bound, and at heights half-way between the last failure and
// the best plan.
//
// A proof at a height raises the bound, a plan lowers the height; when the two
// meet, the plan is the lowest.
//
// The portfolio: searches of several kinds and orders, on several threads.
// Which search finds a plan depends on luck: on the order of items and on the
// height. So many are tried for a short time each, one after another and in
// parallel. Each thread has its own searches. A round of tries ends when every
// thread has ended its try, and of two equal plans that of the first thread is
// taken: the result does not depend on which thread was quicker. Threads are
// started for each try and joined at its end: a try takes milliseconds, a
// thread microseconds.
#include "plan/call.h"

#include <pthread.h>
#include <string.h>

#include "base/status.h"
#include "plan/greedy.h"
#include "plan/moves.h"
#include "plan/overlap.h"
#include "plan/search.h"

typedef enum kind {
  AT_BOUND = 0,  // in depth, at the proven bound
  BELOW_BEST,    // in depth, below the best plan so far
  IN_BREADTH,    // a beam
} kind;

enum { MEMBERS = 2 * TARN__PLAN_ORDERS };

typedef struct trial {
  kind which;
  uint64_t capacity;    // units
  uint64_t node_limit;  // of each thread
  uint32_t width;       // of a beam
  // Of the first thread; those of the others follow. Members are numbered from
  // 0 to MEMBERS - 1. In depth the first TARN__PLAN_ORDERS of them
  // go by their orders alone, and the others by what is scarce before.
  uint64_t member;
  uint64_t seed;  // 0: members as they are; else disturbed by it
} trial;

// Bytes of the lists of neighbours, of one table of failed states, and of the
// states of one beam.
#define LISTS_SIZE ((size_t)8 << 20)
#define TABLE_SIZE ((size_t)4 << 20)
#define BEAM_SIZE ((size_t)8 << 20)

enum { WIDEST_BEAM = 1024 };

typedef struct worker {
  const tarn__plan_instance *in;
  const trial *next;
  uint64_t member;
  tarn__plan_search *search[IN_BREADTH];
  tarn__plan_beam *beam;
  tarn__plan_beam *skylines;  // NULL: the instance is not tight
  tarn__plan_stop *stop;
  tarn__plan_stop own_stop;
  uint64_t *offsets;
  tarn__plan_outcome outcome;
  uint64_t nodes;
  tarn_status status;
  pthread_t thread;
  bool started;
  tarn__plan_memory memory;  // of this thread alone
} worker;

// --- one try ----------------------------------------------------------------

// Where no room is to be left, and there is none to begin with.
static tarn__plan_beam *beam_for(const worker *w) {
  bool leaves_none = w->next->capacity == w->in->bound;
  return leaves_none && w->skylines != NULL ? w->skylines : w->beam;
}

static void *work(void *user) {
  static const tarn__plan_order orders[TARN__PLAN_ORDERS] = {
      TARN__PLAN_BY_PRESSURE, TARN__PLAN_BY_PRESSURE_AREA, TARN__PLAN_BY_LENGTH,
      TARN__PLAN_BY_AREA};
  static const struct {
    tarn__plan_order order;
    uint32_t ease;
  } beams[MEMBERS] = {
      {TARN__PLAN_BY_PRESSURE_AREA, 4},  {TARN__PLAN_BY_LENGTH, 4},
      {TARN__PLAN_BY_PRESSURE, 16},      {TARN__PLAN_BY_AREA, 16},
      {TARN__PLAN_BY_PRESSURE_AREA, 16}, {TARN__PLAN_BY_LENGTH, 16},
      {TARN__PLAN_BY_PRESSURE, 4},       {TARN__PLAN_BY_AREA, 4},
  };
  worker *w = user;
  uint64_t turn = w->member % MEMBERS;
  // After all members have had their turn they come again, disturbed.
  tarn__plan_run run = {.capacity = w->next->capacity,
                        .node_limit = w->next->node_limit,
                        .seed = w->next->seed + w->member / MEMBERS,
                        .stop = w->stop};
  w->status = TARN_OK;
  if (w->next->which == IN_BREADTH) {
    run.width = w->next->width;
    run.order = beams[turn].order;
    run.ease = beams[turn].ease;
    tarn__plan_beam_run(beam_for(w), &run, w->offsets, &w->outcome, &w->nodes);
  } else {
    run.order = orders[turn % TARN__PLAN_ORDERS];
    run.scarce_first = turn >= TARN__PLAN_ORDERS;
    w->status = tarn__plan_search_run(w->search[w->next->which], &run,
                                      w->offsets, &w->outcome, &w->nodes);
  }
  return NULL;
}

// Each thread makes one try.
static void run_all(worker *workers, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    worker *w = &workers[i];
    w->started = pthread_create(&w->thread, NULL, work, w) == 0;
  }
  work(&workers[0]);
  for (uint32_t i = 1; i < count; i++) {
    worker *w = &workers[i];
    if (w->started) {
      pthread_join(w->thread, NULL);
    } else {
      work(w);
    }
  }
}

// --- rounds ------------------------------------------------------------------

// The first limit of nodes: a constant, and some for each item, as each takes
// at least one.
enum { FIRST_NODES = 1000, FIRST_NODES_OF_ITEM = 2 };

// With no more items than that a search in depth makes good plans sooner than
// moves do; how many of these there are first if it does not.
enum { SMALL = 2000, FIRST_MOVES_OF_ITEM = 32 };

// Trials before the first round; from which round on items are moved about;
// from which round on nothing takes longer.
enum { QUICK_HALVINGS = 6, FIRST_MOVES = 1, LAST_ROUND = 30 };

// Moves for each item after which a call without limits ends, if the instance
// is too large for a proof.
enum { MOST_MOVES_OF_ITEM = 16 };

// The first round with beams, how wide they are in it, and how often that is
// doubled. Narrower ones find little.
enum { FIRST_BEAMS = 2, WIDEST = 20 };
#define NARROWEST UINT32_C(5)

// Heights are looked for from the bound on again when what failed is nearer to
// the best plan than this part of what is between them.
enum { LAST_PART = 8 };

// In depth at the bound every other round gets more from this one on.
enum { EAGER = 3 };

// Below the best plan is searched from this round on, or if it is nearer to
// the bound than this part of it.
enum { PATIENCE = 3, NEAR = 32 };

typedef struct solving {
  tarn__plan_call *call;
  const tarn__plan_instance *in;
  tarn__plan_share share;
  uint64_t *offsets;
  tarn__plan_found *found;
  tarn__plan_neighbours near;
  worker *workers;          // one for each thread
  tarn__plan_moves *moves;  // NULL: not made yet
  tarn__plan_stop stop;
  tarn_status status;  // of the first failure
  tarn__plan_memory memory;
} solving;

// --- how far it is ----------------------------------------------------------

static bool tell(void *user, uint64_t nodes) {
  const solving *s = user;
  return tarn__plan_call_tell(s->call, &s->share, s->in->unit, s->found, nodes);
}

static tarn__plan_stop make_stop(solving *s) {
  return (tarn__plan_stop){
      .deadline_ns = s->call->deadline_ns,
      .asked = &s->call->asked,
      .watch = s->call->options.progress != NULL ? tell : NULL,
      .user = s,
      .watch_ns = tarn__os_now_ns() + TARN__PLAN_WATCH_EACH_NS};
}

static void tell_or_stop(solving *s) {
  if (tell(s, 0)) return;
  atomic_store_explicit(&s->call->asked, true, memory_order_relaxed);
}

static void take(solving *s, const uint64_t *offsets, uint64_t height) {
  if (height >= s->found->height) return;
  memcpy(s->offsets, offsets, s->in->item_count * sizeof *offsets);
  s->found->height = height;
  tell_or_stop(s);
}

static bool is_done(const solving *s) {
  return tarn__plan_is_done(&s->share, s->found);
}

// --- workers -----------------------------------------------------------------

static tarn_status make_worker(solving *s, worker *w) {
  w->own_stop = (tarn__plan_stop){.deadline_ns = s->stop.deadline_ns,
                                  .asked = s->stop.asked};
  w->in = s->in;
  w->stop = w == s->workers ? &s->stop : &w->own_stop;
  w->offsets =
      tarn__plan_array(&w->memory, s->in->item_count + 1, sizeof *w->offsets);
  for (int i = 0; i < IN_BREADTH; i++) {
    TARN__TRY(tarn__plan_search_create(&s->near, TABLE_SIZE, &w->memory,
                                       &w->search[i]));
  }
  return TARN_OK;
}

// TARN_FULL: the instance is too large to be searched.
static tarn_status make_workers(solving *s) {
  uint32_t threads = s->call->options.threads;
  s->workers = tarn__plan_array(&s->memory, threads, sizeof *s->workers);
  if (s->workers == NULL) return TARN_E_NOMEM;
  TARN__TRY(
      tarn__plan_neighbours_make(s->in, LISTS_SIZE, &s->memory, &s->near));
  for (uint32_t i = 0; i < threads; i++)
    TARN__TRY(make_worker(s, &s->workers[i]));
  return TARN_OK;
}

static tarn_status make_beams(const tarn__plan_neighbours *near, worker *w) {
  if (w->beam != NULL) return TARN_OK;
  TARN__TRY(tarn__plan_beam_create(near, TARN__PLAN_OF_SPOTS, WIDEST_BEAM,
                                   BEAM_SIZE, &w->memory, &w->beam));
  if (!tarn__plan_is_tight(near->in)) return TARN_OK;
  return tarn__plan_beam_create(near, TARN__PLAN_OF_SKYLINES, WIDEST_BEAM,
                                BEAM_SIZE, &w->memory, &w->skylines);
}

// Of the beams of one worker the narrower one counts for both.
static uint32_t width_of(const worker *w) {
  uint32_t width = tarn__plan_beam_width(w->beam);
  if (w->skylines == NULL) return width;
  uint32_t other = tarn__plan_beam_width(w->skylines);
  return other < width ? other : width;
}

// Makes the beams, which take more memory than all else, when they are first
// needed. Returns the greatest width; 0: a failure, or the instance is too
// large.
static uint32_t make_all_beams(solving *s) {
  for (uint32_t i = 0; i < s->call->options.threads; i++) {
    tarn_status status = make_beams(&s->near, &s->workers[i]);
    if (status == TARN_OK) continue;
    if (status != TARN_FULL) s->status = status;
    return 0;
  }
  return width_of(&s->workers[0]);
}

// --- trials ------------------------------------------------------------------

static bool is_over(const solving *s) {
  uint64_t limit = s->share.node_limit;
  return s->status != TARN_OK || is_done(s) ||
         (limit != 0 && s->found->nodes >= limit) ||
         tarn__plan_call_late(s->call);
}

// Nothing ends it but a proof.
static bool is_endless(const solving *s) {
  return s->share.node_limit == 0 && s->call->deadline_ns == UINT64_MAX;
}

// The nodes left for each thread, no more than |limit|.
static uint64_t nodes_left(const solving *s, uint64_t limit) {
  if (s->share.node_limit == 0) return limit;
  uint64_t left =
      (s->share.node_limit - s->found->nodes) / s->call->options.threads + 1;
  return left < limit ? left : limit;
}

// One try of each thread, of which the lowest plan is taken. False: there is
// none.
static bool take_trial(solving *s, trial next) {
  uint64_t lowest = UINT64_MAX;
  const worker *best = NULL;
  bool proved_none = false;
  uint32_t threads = s->call->options.threads;
  next.node_limit = nodes_left(s, next.node_limit);
  for (uint32_t i = 0; i < threads; i++) {
    s->workers[i].next = &next;
    s->workers[i].member = next.member + i;
  }
  run_all(s->workers, threads);
  for (const worker *w = s->workers; w < s->workers + threads; w++) {
    tarn__keep_first(&s->status, w->status);
    s->found->nodes += w->nodes;
    if (w->outcome == TARN__PLAN_NONE) proved_none = true;
    if (w->outcome != TARN__PLAN_FOUND) continue;
    uint64_t height = tarn__plan_instance_height(s->in, w->offsets);
    if (height >= lowest) continue;
    lowest = height;
    best = w;
  }
  if (best != NULL) take(s, best->offsets, lowest);
  if (proved_none && s->found->bound <= next.capacity) {
    s->found->bound = next.capacity + 1;
  }
  return best != NULL;
}

static uint64_t below_best(const solving *s) {
  return tarn__plan_below_best(&s->share, s->found);
}

// Items are moved about, |limit| of them or as many as may be.
static void move_some(solving *s, uint64_t limit) {
  uint64_t nodes;
  if (s->moves == NULL) {
    s->status = tarn__plan_moves_create(s->in, &s->memory, &s->moves);
  }
  if (s->status != TARN_OK) return;
  tarn__plan_moves_run run = {.target = tarn__plan_goal(&s->share, s->found),
                              .node_limit = tarn__plan_nodes_left(
                                  s->share.node_limit, s->found->nodes, limit),
                              .stop = &s->stop};
  s->status = tarn__plan_moves_lower(s->moves, &run, s->offsets,
                                     &s->found->height, &nodes);
  s->found->nodes += nodes;
  tell_or_stop(s);
}

// As long as |limit| of them lower the plan.
static void move_on(solving *s, uint64_t limit) {
  uint64_t before = UINT64_MAX;
  while (!is_over(s) && s->found->height < before) {
    before = s->found->height;
    move_some(s, limit);
  }
}

// One member in depth half-way between the bound and the best plan, again and
// again: a few short searches come closer than a long one, and soon give a good
// plan.
static void come_down(solving *s) {
  trial next = {
      .which = BELOW_BEST,
      .node_limit = FIRST_NODES_OF_ITEM * (uint64_t)s->in->item_count};
  uint64_t failed = s->found->bound;
  for (int i = 0; i < QUICK_HALVINGS && !is_over(s); i++) {
    next.capacity = failed + (s->found->height - failed) / 2;
    if (next.capacity == failed) break;
    if (!take_trial(s, next)) failed = next.capacity;
  }
}

// The members below |end| in depth, one after the other.
static void search_in_depth(solving *s, trial next, uint64_t end) {
  for (; next.member < end && !is_over(s);
       next.member += s->call->options.threads) {
    next.capacity = next.which == AT_BOUND ? s->found->bound : below_best(s);
    (void)take_trial(s, next);
  }
}

// All members undisturbed, then repeatedly, disturbed, those that look for
// scarce sections first. The latter find a plan that leaves no room at all soon
// or never: so most of their runs are short, and no two are alike. If a plan
// may leave room, they are not worth it.
static void search_at_bound(solving *s, int round, uint64_t shortest) {
  uint64_t first = UINT64_C(1) << round;
  trial next = {.which = AT_BOUND, .node_limit = shortest * first};
  search_in_depth(s, next, TARN__PLAN_ORDERS);
  if (tarn__plan_goal(&s->share, s->found) > s->found->bound) return;
  for (uint64_t pass = first; pass < 2 * first && !is_over(s); pass++) {
    if (pass == first && pass > 1) continue;
    next.member = TARN__PLAN_ORDERS;
    next.node_limit = shortest / 2 * (pass & -pass);
    next.seed = pass - 1;
    search_in_depth(s, next, MEMBERS);
  }
}

// Each member at the bound, and at a height between it and the best plan,
// nearer to the plan after each failure, and then from the bound on again.
static void search_in_breadth(solving *s, trial next) {
  uint64_t failed = s->found->bound;
  for (; next.member < MEMBERS && !is_over(s);
       next.member += s->call->options.threads) {
    next.capacity = s->found->bound;
    (void)take_trial(s, next);
    if (is_over(s) || below_best(s) <= s->found->bound) continue;
    uint64_t gap = below_best(s) - s->found->bound;
    if (below_best(s) < failed + gap / LAST_PART) failed = s->found->bound;
    next.capacity = failed + (below_best(s) - failed + 1) / 2;
    if (!take_trial(s, next)) failed = next.capacity;
  }
}

static void beam_round(solving *s, int round) {
  uint32_t widest = make_all_beams(s);
  if (widest == 0) return;
  int doublings = round - FIRST_BEAMS;
  uint32_t width = NARROWEST << (doublings < WIDEST ? doublings : WIDEST);
  // At the greatest width other seeds give other beams.
  trial next = {.which = IN_BREADTH,
                .node_limit = UINT64_MAX,
                .width = width < widest ? width : widest,
                .seed = width < widest ? 0 : (uint64_t)round};
  search_in_breadth(s, next);
}

// A plan above the capacity is worth searching below. Else, while the best plan
// is far above the bound, a little below it is no progress: beams get further
// at once.
static bool is_below_worth_it(const solving *s, int round) {
  uint64_t gap = s->found->height - s->found->bound;
  if (below_best(s) <= s->found->bound) return false;
  return s->found->height > s->share.capacity || round >= PATIENCE ||
         gap <= s->found->bound / NEAR;
}

static void one_round(solving *s, int round) {
  uint64_t shortest =
      FIRST_NODES + FIRST_NODES_OF_ITEM * (uint64_t)s->in->item_count;
  search_at_bound(s, round < EAGER ? round : EAGER + (round - EAGER) / 2,
                  shortest);
  if (!is_over(s) && is_below_worth_it(s, round)) {
    trial below = {.which = BELOW_BEST, .node_limit = shortest << round};
    search_in_depth(s, below, TARN__PLAN_ORDERS);
  }
  if (!is_over(s) && round >= FIRST_MOVES) move_on(s, shortest << round);
  if (!is_over(s) && round >= FIRST_BEAMS) beam_round(s, round);
}

static void search_on(solving *s) {
  uint64_t items = s->in->item_count;
  if (tarn__plan_wants_lowest(&s->share)) {
    if (items <= SMALL) {
      come_down(s);
    } else {
      move_on(s, FIRST_MOVES_OF_ITEM * items);
    }
  }
  for (int round = 0; !is_over(s); round++)
    one_round(s, round < LAST_ROUND ? round : LAST_ROUND);
}

// --- the whole --------------------------------------------------------------

static void search(solving *s) {
  s->status = make_workers(s);
  if (s->status == TARN_OK) {
    search_on(s);
  } else if (s->status == TARN_FULL) {
    uint64_t most = MOST_MOVES_OF_ITEM * (uint64_t)s->in->item_count;
    s->status = TARN_OK;
    move_some(s, is_endless(s) ? most : UINT64_MAX);
  }
  for (uint32_t i = 0; i < s->call->options.threads; i++)
    if (s->workers != NULL) tarn__plan_memory_free(&s->workers[i].memory);
  tarn__plan_memory_free(&s->memory);
  if (s->status == TARN_FULL) s->status = TARN_OK;
}

static void find(solving *s) {
  s->status = tarn__plan_greedy(s->in, tarn__plan_goal(&s->share, s->found),
                                &s->stop, s->offsets, &s->found->height);
  tell_or_stop(s);
  if (s->status == TARN_OK && !is_done(s)) search(s);
}

tarn_status tarn__plan_solve(tarn__plan_call *call,
                             const tarn__plan_instance *instance,
                             const tarn__plan_share *share, uint64_t *offsets,
                             tarn__plan_found *found) {
  solving s = {.call = call,
               .in = instance,
               .share = *share,
               .offsets = offsets,
               .found = found};
  uint32_t items[2];
  s.share.node_limit = tarn__plan_nodes_left(call->options.node_limit,
                                             call->nodes, share->node_limit);
  s.stop = make_stop(&s);
  *found = (tarn__plan_found){.answer = TARN_PLAN_INFEASIBLE,
                              .height = UINT64_MAX,
                              .bound = instance->bound};
  TARN__TRY(tarn__plan_fixed_overlap(instance, items));
  if (items[0] != TARN__PLAN_NO_ITEM) return TARN_OK;
  if (instance->item_count == 0) found->height = 0;
  if (!is_done(&s)) find(&s);
  found->answer = tarn__plan_answer_of(&s.share, found);
  call->nodes += found->nodes;
  // If there is a plan, only a better one is missing.
  return found->height == UINT64_MAX ? s.status : TARN_OK;
}
