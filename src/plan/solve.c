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

#include "base/hostmem.h"
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

typedef struct outcome {
  bool found;
  bool proved_none;
  uint64_t nodes;  // of all threads
} outcome;

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
} worker;

typedef struct portfolio {
  const tarn__plan_instance *in;
  tarn__plan_neighbours near;
  worker *workers;
  uint32_t count;
} portfolio;

// --- one try ----------------------------------------------------------------

// After all members have had their turn they come again, disturbed.
static uint64_t seed_of(const worker *w) {
  return w->next->seed + w->member / MEMBERS;
}

static void try_in_depth(worker *w) {
  static const tarn__plan_order orders[TARN__PLAN_ORDERS] = {
      TARN__PLAN_BY_PRESSURE, TARN__PLAN_BY_PRESSURE_AREA, TARN__PLAN_BY_LENGTH,
      TARN__PLAN_BY_AREA};
  uint64_t turn = w->member % MEMBERS;
  tarn__plan_run run = {.capacity = w->next->capacity,
                        .node_limit = w->next->node_limit,
                        .order = orders[turn % TARN__PLAN_ORDERS],
                        .seed = seed_of(w),
                        .scarce_first = turn >= TARN__PLAN_ORDERS,
                        .stop = w->stop};
  w->status = tarn__plan_search_run(w->search[w->next->which], &run, w->offsets,
                                    &w->outcome, &w->nodes);
}

// Where no room is to be left, and there is none to begin with.
static tarn__plan_beam *beam_for(const worker *w) {
  bool leaves_none = w->next->capacity == w->in->bound;
  return leaves_none && w->skylines != NULL ? w->skylines : w->beam;
}

static void try_in_breadth(worker *w) {
  static const struct {
    tarn__plan_order order;
    uint32_t ease;
  } members[MEMBERS] = {
      {TARN__PLAN_BY_PRESSURE_AREA, 4},  {TARN__PLAN_BY_LENGTH, 4},
      {TARN__PLAN_BY_PRESSURE, 16},      {TARN__PLAN_BY_AREA, 16},
      {TARN__PLAN_BY_PRESSURE_AREA, 16}, {TARN__PLAN_BY_LENGTH, 16},
      {TARN__PLAN_BY_PRESSURE, 4},       {TARN__PLAN_BY_AREA, 4},
  };
  uint64_t turn = w->member % MEMBERS;
  tarn__plan_run run = {.capacity = w->next->capacity,
                        .width = w->next->width,
                        .ease = members[turn].ease,
                        .order = members[turn].order,
                        .seed = seed_of(w),
                        .node_limit = w->next->node_limit,
                        .stop = w->stop};
  tarn__plan_beam_run(beam_for(w), &run, w->offsets, &w->outcome, &w->nodes);
}

static void *work(void *user) {
  worker *w = user;
  w->status = TARN_OK;
  if (w->next->which == IN_BREADTH) {
    try_in_breadth(w);
  } else {
    try_in_depth(w);
  }
  return NULL;
}

// --- a trial -----------------------------------------------------------------

static void run_all(portfolio *p) {
  for (uint32_t i = 1; i < p->count; i++) {
    worker *w = &p->workers[i];
    w->started = pthread_create(&w->thread, NULL, work, w) == 0;
  }
  work(&p->workers[0]);
  for (uint32_t i = 1; i < p->count; i++) {
    worker *w = &p->workers[i];
    if (w->started) {
      pthread_join(w->thread, NULL);
    } else {
      work(w);
    }
  }
}

static void take_lowest(const portfolio *p, const worker *w, uint64_t *offsets,
                        uint64_t *height) {
  uint64_t own = tarn__plan_instance_height(p->in, w->offsets);
  if (own >= *height) return;
  memcpy(offsets, w->offsets, p->in->item_count * sizeof *offsets);
  *height = own;
}

// Each thread makes one try. |offsets|: the lowest plan that was found.
static tarn_status try_all(portfolio *p, const trial *next, uint64_t *offsets,
                           outcome *out) {
  tarn_status status = TARN_OK;
  uint64_t height = UINT64_MAX;
  *out = (outcome){0};
  for (uint32_t i = 0; i < p->count; i++) {
    p->workers[i].next = next;
    p->workers[i].member = next->member + i;
  }
  run_all(p);
  for (uint32_t i = 0; i < p->count; i++) {
    const worker *w = &p->workers[i];
    if (status == TARN_OK) status = w->status;
    out->nodes += w->nodes;
    if (w->outcome == TARN__PLAN_NONE) out->proved_none = true;
    if (w->outcome != TARN__PLAN_FOUND) continue;
    out->found = true;
    take_lowest(p, w, offsets, &height);
  }
  return status;
}

// --- making them ------------------------------------------------------------

static tarn_status make_worker(portfolio *p, worker *w, tarn__plan_stop *stop) {
  w->own_stop =
      (tarn__plan_stop){.deadline_ns = stop->deadline_ns, .asked = stop->asked};
  w->in = p->in;
  w->stop = w == p->workers ? stop : &w->own_stop;
  w->offsets = tarn__host_array(p->in->item_count + 1, sizeof *w->offsets);
  if (w->offsets == NULL) return TARN_E_NOMEM;
  tarn_status status = TARN_OK;
  for (int i = 0; i < IN_BREADTH && status == TARN_OK; i++) {
    status = tarn__plan_search_create(&p->near, TABLE_SIZE, &w->search[i]);
  }
  return status;
}

// TARN_FULL: the instance is too large to be searched.
static tarn_status make_portfolio(const tarn__plan_instance *instance,
                                  uint32_t threads, tarn__plan_stop *stop,
                                  portfolio *p) {
  p->in = instance;
  p->workers = tarn__host_array(threads, sizeof *p->workers);
  if (p->workers == NULL) return TARN_E_NOMEM;
  p->count = threads;
  tarn_status status =
      tarn__plan_neighbours_make(instance, LISTS_SIZE, &p->near);
  for (uint32_t i = 0; status == TARN_OK && i < threads; i++) {
    status = make_worker(p, &p->workers[i], stop);
  }
  return status;
}

static void free_portfolio(portfolio *p) {
  for (uint32_t i = 0; i < p->count; i++) {
    worker *w = &p->workers[i];
    for (int k = 0; k < IN_BREADTH; k++) {
      tarn__plan_search_destroy(w->search[k]);
    }
    tarn__plan_beam_destroy(w->beam);
    tarn__plan_beam_destroy(w->skylines);
    tarn__host_free_array(w->offsets, p->in->item_count + 1,
                          sizeof *w->offsets);
  }
  tarn__plan_neighbours_free(&p->near);
  tarn__host_free_array(p->workers, p->count, sizeof *p->workers);
}

static tarn_status make_beams(const tarn__plan_neighbours *near, worker *w) {
  if (w->beam != NULL) return TARN_OK;
  tarn_status status = tarn__plan_beam_create(near, TARN__PLAN_OF_SPOTS,
                                              WIDEST_BEAM, BEAM_SIZE, &w->beam);
  if (status != TARN_OK || !tarn__plan_is_tight(near->in)) return status;
  return tarn__plan_beam_create(near, TARN__PLAN_OF_SKYLINES, WIDEST_BEAM,
                                BEAM_SIZE, &w->skylines);
}

// Of the beams of one worker the narrower one counts for both.
static uint32_t width_of(const worker *w) {
  uint32_t width = tarn__plan_beam_width(w->beam);
  if (w->skylines == NULL) return width;
  uint32_t other = tarn__plan_beam_width(w->skylines);
  return other < width ? other : width;
}

// Makes the beams, which take more memory than all else, when they are first
// needed. |*out_width|: the greatest width; 0: the instance is too large.
static tarn_status make_all_beams(portfolio *p, uint32_t *out_width) {
  tarn_status status = TARN_OK;
  *out_width = 0;
  for (uint32_t i = 0; i < p->count && status == TARN_OK; i++) {
    status = make_beams(&p->near, &p->workers[i]);
  }
  if (status == TARN_FULL) return TARN_OK;
  if (status == TARN_OK) *out_width = width_of(&p->workers[0]);
  return status;
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
  portfolio all;
  tarn__plan_moves *moves;  // NULL: not made yet
  tarn__plan_stop stop;
  uint64_t *tried;  // offsets of a trial
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

static void take(solving *s, const uint64_t *offsets) {
  uint64_t height = tarn__plan_instance_height(s->in, offsets);
  if (height >= s->found->height) return;
  memcpy(s->offsets, offsets, s->in->item_count * sizeof *offsets);
  s->found->height = height;
  tell_or_stop(s);
}

// Rather than any that fits.
static bool wants_lowest(const solving *s) {
  return s->share.minimise || s->share.capacity == UINT64_MAX;
}

// The height at which nothing more is asked for.
static uint64_t goal(const solving *s) {
  return wants_lowest(s) ? s->found->bound : s->share.capacity;
}

static bool is_done(const solving *s) {
  return s->found->height <= goal(s) || s->found->bound > s->share.capacity;
}

// --- trials ------------------------------------------------------------------

static bool is_over(const solving *s, tarn_status status) {
  uint64_t limit = s->share.node_limit;
  return status != TARN_OK || is_done(s) ||
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

static tarn_status take_trial(solving *s, trial next, bool *found) {
  outcome out;
  next.node_limit = nodes_left(s, next.node_limit);
  tarn_status status = try_all(&s->all, &next, s->tried, &out);
  s->found->nodes += out.nodes;
  if (out.found) take(s, s->tried);
  if (out.proved_none && s->found->bound <= next.capacity) {
    s->found->bound = next.capacity + 1;
  }
  *found = out.found;
  return status;
}

static uint64_t below_best(const solving *s) {
  uint64_t below = s->found->height - 1;
  return below < s->share.capacity ? below : s->share.capacity;
}

// Items are moved about, |limit| of them or as many as may be.
static tarn_status move_some(solving *s, uint64_t limit) {
  tarn_status status = TARN_OK;
  if (s->moves == NULL) status = tarn__plan_moves_create(s->in, &s->moves);
  if (status != TARN_OK) return status;
  uint64_t left = s->share.node_limit == 0
                      ? UINT64_MAX
                      : s->share.node_limit - s->found->nodes;
  tarn__plan_moves_run run = {.target = goal(s),
                              .node_limit = left < limit ? left : limit,
                              .stop = &s->stop};
  uint64_t nodes;
  status = tarn__plan_moves_lower(s->moves, &run, s->offsets, &s->found->height,
                                  &nodes);
  s->found->nodes += nodes;
  tell_or_stop(s);
  return status;
}

// As long as |limit| of them lower the plan.
static tarn_status move_on(solving *s, uint64_t limit) {
  tarn_status status = TARN_OK;
  uint64_t before = UINT64_MAX;
  while (!is_over(s, status) && s->found->height < before) {
    before = s->found->height;
    status = move_some(s, limit);
  }
  return status;
}

// One member in depth half-way between the bound and the best plan, again and
// again: a few short searches come closer than a long one, and soon give a good
// plan.
static tarn_status come_down(solving *s) {
  trial next = {
      .which = BELOW_BEST,
      .node_limit = FIRST_NODES_OF_ITEM * (uint64_t)s->in->item_count};
  tarn_status status = TARN_OK;
  uint64_t failed = s->found->bound;
  for (int i = 0; i < QUICK_HALVINGS && !is_over(s, status); i++) {
    bool found;
    next.capacity = failed + (s->found->height - failed) / 2;
    if (next.capacity == failed) break;
    status = take_trial(s, next, &found);
    if (!found) failed = next.capacity;
  }
  return status;
}

// The members below |end| in depth, one after the other.
static tarn_status search_in_depth(solving *s, trial next, uint64_t end) {
  tarn_status status = TARN_OK;
  for (; next.member < end && !is_over(s, status);
       next.member += s->call->options.threads) {
    bool found;
    next.capacity = next.which == AT_BOUND ? s->found->bound : below_best(s);
    status = take_trial(s, next, &found);
  }
  return status;
}

// All members undisturbed, then repeatedly, disturbed, those that look for
// scarce sections first. The latter find a plan that leaves no room at all soon
// or never: so most of their runs are short, and no two are alike. If a plan
// may leave room, they are not worth it.
static tarn_status search_at_bound(solving *s, int round, uint64_t shortest) {
  uint64_t first = UINT64_C(1) << round;
  trial next = {.which = AT_BOUND, .node_limit = shortest * first};
  tarn_status status = search_in_depth(s, next, TARN__PLAN_ORDERS);
  if (goal(s) > s->found->bound) return status;
  for (uint64_t pass = first; pass < 2 * first && !is_over(s, status); pass++) {
    if (pass == first && pass > 1) continue;
    next.member = TARN__PLAN_ORDERS;
    next.node_limit = shortest / 2 * (pass & -pass);
    next.seed = pass - 1;
    status = search_in_depth(s, next, MEMBERS);
  }
  return status;
}

static tarn_status search_below_best(solving *s, uint64_t limit) {
  trial next = {.which = BELOW_BEST, .node_limit = limit};
  return search_in_depth(s, next, TARN__PLAN_ORDERS);
}

// Each member at the bound, and at a height between it and the best plan,
// nearer to the plan after each failure, and then from the bound on again.
static tarn_status search_in_breadth(solving *s, trial next) {
  uint64_t failed = s->found->bound;
  tarn_status status = TARN_OK;
  for (uint32_t i = 0; i < MEMBERS && !is_over(s, status);
       i += s->call->options.threads) {
    bool found;
    next.member = i;
    next.capacity = s->found->bound;
    status = take_trial(s, next, &found);
    if (is_over(s, status) || below_best(s) <= s->found->bound) continue;
    uint64_t gap = below_best(s) - s->found->bound;
    if (below_best(s) < failed + gap / LAST_PART) failed = s->found->bound;
    uint64_t at = failed + (below_best(s) - failed + 1) / 2;
    next.capacity = at;
    status = take_trial(s, next, &found);
    if (!found) failed = at;
  }
  return status;
}

static tarn_status beam_round(solving *s, int round) {
  uint32_t widest;
  tarn_status status = make_all_beams(&s->all, &widest);
  if (status != TARN_OK || widest == 0) return status;
  int doublings = round - FIRST_BEAMS;
  uint32_t width = NARROWEST << (doublings < WIDEST ? doublings : WIDEST);
  // At the greatest width other seeds give other beams.
  trial next = {.which = IN_BREADTH,
                .node_limit = UINT64_MAX,
                .width = width < widest ? width : widest,
                .seed = width < widest ? 0 : (uint64_t)round};
  return search_in_breadth(s, next);
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

static tarn_status one_round(solving *s, int round) {
  uint64_t shortest =
      FIRST_NODES + FIRST_NODES_OF_ITEM * (uint64_t)s->in->item_count;
  int depth = round < EAGER ? round : EAGER + (round - EAGER) / 2;
  tarn_status status = search_at_bound(s, depth, shortest);
  if (!is_over(s, status) && is_below_worth_it(s, round)) {
    status = search_below_best(s, shortest << round);
  }
  bool moves = !is_over(s, status) && round >= FIRST_MOVES;
  if (moves) status = move_on(s, shortest << round);
  bool beams = !is_over(s, status) && round >= FIRST_BEAMS;
  return beams ? beam_round(s, round) : status;
}

static tarn_status search_on(solving *s) {
  uint64_t items = s->in->item_count;
  tarn_status status = TARN_OK;
  if (wants_lowest(s)) {
    bool is_small = s->in->item_count <= SMALL;
    status = is_small ? come_down(s) : move_on(s, FIRST_MOVES_OF_ITEM * items);
  }
  for (int round = 0; !is_over(s, status); round++) {
    status = one_round(s, round < LAST_ROUND ? round : LAST_ROUND);
  }
  return status;
}

// --- the whole --------------------------------------------------------------

static tarn_plan_answer answer_of(const solving *s) {
  const tarn__plan_found *found = s->found;
  if (found->bound > s->share.capacity) return TARN_PLAN_INFEASIBLE;
  if (found->height <= found->bound) return TARN_PLAN_OPTIMAL;
  return found->height <= s->share.capacity ? TARN_PLAN_FEASIBLE
                                            : TARN_PLAN_OUT_OF_TIME;
}

static tarn_status search(solving *s) {
  size_t count = s->in->item_count + 1;
  s->tried = tarn__host_array(count, sizeof *s->tried);
  if (s->tried == NULL) return TARN_E_NOMEM;
  tarn_status status =
      make_portfolio(s->in, s->call->options.threads, &s->stop, &s->all);
  if (status == TARN_OK) {
    status = search_on(s);
  } else if (status == TARN_FULL) {
    uint64_t most = MOST_MOVES_OF_ITEM * (uint64_t)s->in->item_count;
    status = move_some(s, is_endless(s) ? most : UINT64_MAX);
  }
  free_portfolio(&s->all);
  tarn__plan_moves_destroy(s->moves);
  tarn__host_free_array(s->tried, count, sizeof *s->tried);
  return status == TARN_FULL ? TARN_OK : status;
}

static tarn_status find(solving *s) {
  tarn_status status = tarn__plan_greedy(s->in, goal(s), &s->stop, s->offsets,
                                         &s->found->height);
  tell_or_stop(s);
  return status != TARN_OK || is_done(s) ? status : search(s);
}

// A limit of 0 is none, so that a spent one is 1.
static uint64_t nodes_for(const tarn__plan_call *call, uint64_t share) {
  uint64_t limit = call->options.node_limit;
  if (limit == 0) return share;
  uint64_t left = call->nodes < limit ? limit - call->nodes : 1;
  return share == 0 || left < share ? left : share;
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
  bool collide = false;
  s.share.node_limit = nodes_for(call, share->node_limit);
  s.stop = make_stop(&s);
  *found = (tarn__plan_found){.answer = TARN_PLAN_INFEASIBLE,
                              .height = UINT64_MAX,
                              .bound = instance->bound};
  tarn_status status = tarn__plan_fixed_collide(instance, &collide);
  if (status != TARN_OK || collide) return status;
  if (instance->item_count == 0) found->height = 0;
  if (!is_done(&s)) status = find(&s);
  found->answer = answer_of(&s);
  call->nodes += found->nodes;
  // If there is a plan, only a better one is missing.
  return found->height == UINT64_MAX ? status : TARN_OK;
}
