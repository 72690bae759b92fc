// Greedy plans first; then a portfolio of searches, in rounds.
//
// A member of the portfolio is an order of the search and a way to disturb it.
// Each round runs every member at two heights: at the proven bound, which is
// often reached at once where heights above it are not, and a little below the
// best plan; the limit of nodes doubles from round to round. What a search
// proves at a height raises the bound, what it finds lowers the plan, and when
// the two meet the plan is the lowest there is.
//
// Each thread has searches of its own, and takes every n-th member. A step is
// over when all threads have come to the end of theirs, and of two plans that
// were found in one step the one of the first thread counts: so that what
// comes out does not depend on who was quicker.
#include "plan/solve.h"

#include <pthread.h>
#include <string.h>

#include "base/hostmem.h"
#include "plan/greedy.h"
#include "plan/search.h"

// The first limit of nodes: so many, and some for each item, of which each
// takes one at least. And what tables of failed states may take.
enum { FIRST_NODES = 1000, FIRST_NODES_OF_ITEM = 2, DESCENT_STEPS = 6 };
#define TABLE_SIZE ((size_t)8 << 20)

typedef enum depth {
  AT_BOUND = 0,
  BELOW_BEST,
  DEPTHS,
} depth;

typedef struct solving solving;

typedef struct worker {
  solving *all;
  tarn__plan_search *search[DEPTHS];
  tarn__plan_run run;
  depth at;
  tarn__plan_stop stop;
  uint64_t *offsets;
  tarn__plan_outcome outcome;
  uint64_t nodes;
  tarn_status status;
  pthread_t thread;
  bool started;
} worker;

struct solving {
  const tarn__plan_instance *in;
  const tarn__plan_aim *aim;
  uint64_t *offsets;
  tarn__plan_found *found;
  worker *workers;
  uint32_t worker_count;
};

// --- how far it is -----------------------------------------------------------

static bool tell(solving *s, uint64_t nodes) {
  const tarn__plan_watcher *watcher = s->aim->watcher;
  if (watcher == NULL) return true;
  return watcher->tell(watcher->user, s->found->height, s->found->bound,
                       s->found->nodes + nodes);
}

static bool watch(void *user, uint64_t nodes) {
  return tell(user, nodes);
}

static tarn__plan_stop make_stop(solving *s, bool is_callers) {
  return (tarn__plan_stop){
      .deadline_ns = s->aim->deadline_ns,
      .asked = s->aim->asked,
      .watch = is_callers && s->aim->watcher != NULL ? watch : NULL,
      .user = s,
      .watch_ns = tarn__os_now_ns() + TARN__PLAN_WATCH_EACH_NS};
}

static void take(solving *s, const uint64_t *offsets) {
  uint64_t height = tarn__plan_instance_height(s->in, offsets);
  if (height >= s->found->height) return;
  memcpy(s->offsets, offsets, s->in->item_count * sizeof *offsets);
  s->found->height = height;
  if (!tell(s, 0)) {
    atomic_store_explicit(s->aim->asked, true, memory_order_relaxed);
  }
}

// The height at which nothing more is asked for.
static uint64_t goal(const solving *s) {
  bool lowest = s->aim->minimise || s->aim->capacity == UINT64_MAX;
  return lowest ? s->found->bound : s->aim->capacity;
}

static bool is_done(const solving *s) {
  return s->found->height <= goal(s) || s->found->bound > s->aim->capacity;
}

// --- one step: each thread runs one member
// --------------------------------------

static void *work(void *user) {
  worker *w = user;
  w->status = tarn__plan_search_run(w->search[w->at], &w->run, w->offsets,
                                    &w->outcome, &w->nodes);
  if (w->status != TARN_OK) {
    atomic_store_explicit(w->all->aim->asked, true, memory_order_relaxed);
  }
  return NULL;
}

// The second half runs the same orders, disturbed.
static void aim_at(worker *w, uint64_t member, depth at, uint64_t capacity,
                   uint64_t limit) {
  static const tarn__plan_order orders[] = {
      TARN__PLAN_BY_CROWD, TARN__PLAN_BY_CROWD_AREA, TARN__PLAN_BY_LENGTH,
      TARN__PLAN_BY_AREA};
  w->at = at;
  w->run = (tarn__plan_run){.capacity = capacity,
                            .node_limit = limit,
                            .order = orders[member % TARN__PLAN_ORDERS],
                            .seed = member / TARN__PLAN_ORDERS,
                            .stop = &w->stop};
}

static void run_all(solving *s) {
  for (uint32_t i = 1; i < s->worker_count; i++) {
    worker *w = &s->workers[i];
    w->started = pthread_create(&w->thread, NULL, work, w) == 0;
  }
  work(&s->workers[0]);
  for (uint32_t i = 1; i < s->worker_count; i++) {
    worker *w = &s->workers[i];
    if (w->started) {
      pthread_join(w->thread, NULL);
    } else {
      work(w);
    }
  }
}

static tarn_status step(solving *s, uint64_t member, depth at,
                        uint64_t capacity, uint64_t limit) {
  for (uint32_t i = 0; i < s->worker_count; i++) {
    aim_at(&s->workers[i], member + i, at, capacity, limit);
  }
  run_all(s);
  tarn_status status = TARN_OK;
  for (uint32_t i = 0; i < s->worker_count; i++) {
    worker *w = &s->workers[i];
    if (status == TARN_OK) status = w->status;
    if (w->status != TARN_OK) continue;
    s->found->nodes += w->nodes;
    if (w->outcome == TARN__PLAN_FOUND) take(s, w->offsets);
    if (w->outcome == TARN__PLAN_NONE && s->found->bound <= capacity) {
      s->found->bound = capacity + 1;
    }
  }
  return status;
}

// --- rounds
// ----------------------------------------------------------------------

static bool is_over(const solving *s, tarn_status status) {
  const tarn__plan_aim *aim = s->aim;
  return status != TARN_OK || is_done(s) ||
         (aim->node_limit != 0 && s->found->nodes >= aim->node_limit) ||
         atomic_load_explicit(aim->asked, memory_order_relaxed) ||
         tarn__os_now_ns() >= aim->deadline_ns;
}

static uint64_t height_of(const solving *s, depth at) {
  if (at == AT_BOUND) return s->found->bound;
  uint64_t below = s->found->height - 1;
  return below < s->aim->capacity ? below : s->aim->capacity;
}

// What is left of the limit of nodes, no more than |limit|.
static uint64_t nodes_left(const solving *s, uint64_t limit) {
  if (s->aim->node_limit == 0) return limit;
  uint64_t left = (s->aim->node_limit - s->found->nodes) / s->worker_count + 1;
  return left < limit ? left : limit;
}

static tarn_status round_of(solving *s, depth at, uint64_t limit) {
  tarn_status status = TARN_OK;
  for (uint64_t m = 0; m < TARN__PLAN_ORDERS && !is_over(s, status);
       m += s->worker_count) {
    status = step(s, m, at, height_of(s, at), nodes_left(s, limit));
  }
  return status;
}

// The first member between the bound and the plan that there is, again and
// again at half of what is between them: a few steps that take little come
// closer than one that takes long, where a plan is wanted soon.
static tarn_status descend(solving *s) {
  tarn_status status = TARN_OK;
  uint64_t low = s->found->bound;
  uint64_t limit = FIRST_NODES_OF_ITEM * (uint64_t)s->in->item_count;
  for (int i = 0; i < DESCENT_STEPS && !is_over(s, status); i++) {
    uint64_t target = low + (s->found->height - low) / 2;
    if (target == low) break;
    status = step(s, 0, BELOW_BEST, target, nodes_left(s, limit));
    if (s->found->height > target) low = target;
  }
  return status;
}

static tarn_status search_on(solving *s) {
  tarn_status status = TARN_OK;
  if (goal(s) == s->found->bound && s->found->height != UINT64_MAX) {
    status = descend(s);
  }
  uint64_t limit =
      FIRST_NODES + FIRST_NODES_OF_ITEM * (uint64_t)s->in->item_count;
  for (; !is_over(s, status); limit *= 2) {
    status = round_of(s, AT_BOUND, limit);
    if (is_over(s, status) || height_of(s, BELOW_BEST) == s->found->bound) {
      continue;
    }
    status = round_of(s, BELOW_BEST, limit);
  }
  return status;
}

// --- the whole
// ---------------------------------------------------------------------

static void free_workers(solving *s) {
  for (uint32_t i = 0; s->workers != NULL && i < s->worker_count; i++) {
    worker *w = &s->workers[i];
    for (int at = 0; at < DEPTHS; at++)
      tarn__plan_search_destroy(w->search[at]);
    tarn__host_free_array(w->offsets, s->in->item_count + 1,
                          sizeof *w->offsets);
  }
  tarn__host_free_array(s->workers, s->worker_count, sizeof *s->workers);
}

static tarn_status make_workers(solving *s) {
  s->worker_count = s->aim->threads;
  s->workers = tarn__host_array(s->worker_count, sizeof *s->workers);
  if (s->workers == NULL) return TARN_E_NOMEM;
  for (uint32_t i = 0; i < s->worker_count; i++) {
    worker *w = &s->workers[i];
    w->all = s;
    w->stop = make_stop(s, i == 0);
    w->offsets = tarn__host_array(s->in->item_count + 1, sizeof *w->offsets);
    if (w->offsets == NULL) return TARN_E_NOMEM;
    for (int at = 0; at < DEPTHS; at++) {
      tarn_status status =
          tarn__plan_search_create(s->in, TABLE_SIZE, &w->search[at]);
      if (status != TARN_OK) return status;
    }
  }
  return TARN_OK;
}

static tarn_plan_answer answer_of(const solving *s) {
  const tarn__plan_found *found = s->found;
  if (found->bound > s->aim->capacity) return TARN_PLAN_INFEASIBLE;
  if (found->height <= found->bound) return TARN_PLAN_OPTIMAL;
  return found->height <= s->aim->capacity ? TARN_PLAN_FEASIBLE
                                           : TARN_PLAN_OUT_OF_TIME;
}

static tarn_status find(solving *s) {
  tarn__plan_stop stop = make_stop(s, true);
  tarn_status status =
      tarn__plan_greedy(s->in, goal(s), &stop, s->offsets, &s->found->height);
  if (status != TARN_OK || is_done(s)) return status;
  status = make_workers(s);
  if (status == TARN_OK) status = search_on(s);
  free_workers(s);
  return status;
}

tarn_status tarn__plan_solve(const tarn__plan_instance *instance,
                             const tarn__plan_aim *aim, uint64_t *offsets,
                             tarn__plan_found *found) {
  solving s = {.in = instance, .aim = aim, .offsets = offsets, .found = found};
  found->bound = instance->bound;
  found->nodes = 0;
  tarn_status status = TARN_OK;
  if (instance->item_count == 0) found->height = 0;
  if (!is_done(&s)) status = find(&s);
  found->answer = answer_of(&s);
  // With a plan, what is missing is only a better one.
  return found->height == UINT64_MAX ? status : TARN_OK;
}
