// Threads are started for each step and joined at its end: a step takes
// milliseconds, a thread microseconds.
#include "plan/portfolio.h"

#include <pthread.h>
#include <string.h>

#include "base/hostmem.h"

// Bytes of the lists of neighbours, of one table of failed states, and of the
// states of one beam.
#define LISTS_SIZE ((size_t)8 << 20)
#define TABLE_SIZE ((size_t)4 << 20)
#define BEAM_SIZE ((size_t)8 << 20)

enum { WIDEST = 1024 };

typedef struct worker {
  const tarn__plan_instance *in;
  const tarn__plan_step *step;
  uint64_t member;
  tarn__plan_search *search[TARN__PLAN_IN_BREADTH];
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

struct tarn__plan_portfolio {
  const tarn__plan_instance *in;
  tarn__plan_neighbours near;
  worker *workers;
  uint32_t count;
};

// --- one try ----------------------------------------------------------------

// After all members have had their turn they come again, disturbed.
static uint64_t seed_of(const worker *w) {
  return w->step->seed + w->member / TARN__PLAN_MEMBERS;
}

static void search_in_depth(worker *w) {
  static const tarn__plan_order orders[TARN__PLAN_ORDERS] = {
      TARN__PLAN_BY_PRESSURE, TARN__PLAN_BY_PRESSURE_AREA, TARN__PLAN_BY_LENGTH,
      TARN__PLAN_BY_AREA};
  uint64_t turn = w->member % TARN__PLAN_MEMBERS;
  tarn__plan_run run = {.capacity = w->step->capacity,
                        .node_limit = w->step->node_limit,
                        .order = orders[turn % TARN__PLAN_ORDERS],
                        .seed = seed_of(w),
                        .scarce_first = turn >= TARN__PLAN_ORDERS,
                        .stop = w->stop};
  w->status = tarn__plan_search_run(w->search[w->step->kind], &run, w->offsets,
                                    &w->outcome, &w->nodes);
}

// Where no room is to be left, and there is none to begin with.
static tarn__plan_beam *beam_for(const worker *w) {
  bool leaves_none = w->step->capacity == w->in->bound;
  return leaves_none && w->skylines != NULL ? w->skylines : w->beam;
}

static void search_in_breadth(worker *w) {
  static const struct {
    tarn__plan_order order;
    uint32_t ease;
  } members[TARN__PLAN_MEMBERS] = {
      {TARN__PLAN_BY_PRESSURE_AREA, 4},  {TARN__PLAN_BY_LENGTH, 4},
      {TARN__PLAN_BY_PRESSURE, 16},      {TARN__PLAN_BY_AREA, 16},
      {TARN__PLAN_BY_PRESSURE_AREA, 16}, {TARN__PLAN_BY_LENGTH, 16},
      {TARN__PLAN_BY_PRESSURE, 4},       {TARN__PLAN_BY_AREA, 4},
  };
  uint64_t turn = w->member % TARN__PLAN_MEMBERS;
  tarn__plan_run run = {.capacity = w->step->capacity,
                        .width = w->step->width,
                        .ease = members[turn].ease,
                        .order = members[turn].order,
                        .seed = seed_of(w),
                        .node_limit = w->step->node_limit,
                        .stop = w->stop};
  tarn__plan_beam_run(beam_for(w), &run, w->offsets, &w->outcome, &w->nodes);
}

static void *work(void *user) {
  worker *w = user;
  w->status = TARN_OK;
  if (w->step->kind == TARN__PLAN_IN_BREADTH) {
    search_in_breadth(w);
  } else {
    search_in_depth(w);
  }
  return NULL;
}

// --- a step -----------------------------------------------------------------

static void run_all(tarn__plan_portfolio *p) {
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

static void take(const tarn__plan_portfolio *p, const worker *w,
                 uint64_t *offsets, uint64_t *height) {
  uint64_t own = tarn__plan_instance_height(p->in, w->offsets);
  if (own >= *height) return;
  memcpy(offsets, w->offsets, p->in->item_count * sizeof *offsets);
  *height = own;
}

tarn_status tarn__plan_portfolio_step(tarn__plan_portfolio *p,
                                      const tarn__plan_step *step,
                                      uint64_t *offsets,
                                      tarn__plan_stepped *out) {
  tarn_status status = TARN_OK;
  uint64_t height = UINT64_MAX;
  *out = (tarn__plan_stepped){0};
  for (uint32_t i = 0; i < p->count; i++) {
    p->workers[i].step = step;
    p->workers[i].member = step->member + i;
  }
  run_all(p);
  for (uint32_t i = 0; i < p->count; i++) {
    const worker *w = &p->workers[i];
    if (status == TARN_OK) status = w->status;
    out->nodes += w->nodes;
    if (w->outcome == TARN__PLAN_NONE) out->proved_none = true;
    if (w->outcome != TARN__PLAN_FOUND) continue;
    out->found = true;
    take(p, w, offsets, &height);
  }
  return status;
}

// --- the whole --------------------------------------------------------------

static tarn_status make_worker(tarn__plan_portfolio *p, worker *w,
                               tarn__plan_stop *stop) {
  w->own_stop =
      (tarn__plan_stop){.deadline_ns = stop->deadline_ns, .asked = stop->asked};
  w->in = p->in;
  w->stop = w == p->workers ? stop : &w->own_stop;
  w->offsets = tarn__host_array(p->in->item_count + 1, sizeof *w->offsets);
  if (w->offsets == NULL) return TARN_E_NOMEM;
  tarn_status status = TARN_OK;
  for (int kind = 0; kind < TARN__PLAN_IN_BREADTH && status == TARN_OK;
       kind++) {
    status = tarn__plan_search_create(&p->near, TABLE_SIZE, &w->search[kind]);
  }
  return status;
}

tarn_status tarn__plan_portfolio_create(const tarn__plan_instance *instance,
                                        uint32_t threads, tarn__plan_stop *stop,
                                        tarn__plan_portfolio **out_portfolio) {
  *out_portfolio = NULL;
  tarn__plan_portfolio *p = tarn__host_alloc(sizeof *p);
  if (p == NULL) return TARN_E_NOMEM;
  p->in = instance;
  p->workers = tarn__host_array(threads, sizeof *p->workers);
  if (p->workers != NULL) p->count = threads;
  tarn_status status = p->workers == NULL ? TARN_E_NOMEM : TARN_OK;
  if (status == TARN_OK) {
    status = tarn__plan_neighbours_make(instance, LISTS_SIZE, &p->near);
  }
  for (uint32_t i = 0; status == TARN_OK && i < threads; i++) {
    status = make_worker(p, &p->workers[i], stop);
  }
  if (status == TARN_OK) {
    *out_portfolio = p;
  } else {
    tarn__plan_portfolio_destroy(p);
  }
  return status;
}

void tarn__plan_portfolio_destroy(tarn__plan_portfolio *p) {
  if (p == NULL) return;
  for (uint32_t i = 0; p->workers != NULL && i < p->count; i++) {
    worker *w = &p->workers[i];
    for (int kind = 0; kind < TARN__PLAN_IN_BREADTH; kind++) {
      tarn__plan_search_destroy(w->search[kind]);
    }
    tarn__plan_beam_destroy(w->beam);
    tarn__plan_beam_destroy(w->skylines);
    tarn__host_free_array(w->offsets, p->in->item_count + 1,
                          sizeof *w->offsets);
  }
  tarn__plan_neighbours_free(&p->near);
  tarn__host_free_array(p->workers, p->count, sizeof *p->workers);
  tarn__host_free(p, sizeof *p);
}

static tarn_status make_beams(const tarn__plan_neighbours *near, worker *w) {
  if (w->beam != NULL) return TARN_OK;
  tarn_status status = tarn__plan_beam_create(near, TARN__PLAN_OF_SPOTS, WIDEST,
                                              BEAM_SIZE, &w->beam);
  if (status != TARN_OK || !tarn__plan_is_tight(near->in)) return status;
  return tarn__plan_beam_create(near, TARN__PLAN_OF_SKYLINES, WIDEST, BEAM_SIZE,
                                &w->skylines);
}

// Of the beams of one worker the narrower one counts for both.
static uint32_t width_of(const worker *w) {
  uint32_t width = tarn__plan_beam_width(w->beam);
  if (w->skylines == NULL) return width;
  uint32_t other = tarn__plan_beam_width(w->skylines);
  return other < width ? other : width;
}

tarn_status tarn__plan_portfolio_beams(tarn__plan_portfolio *p,
                                       uint32_t *out_width) {
  tarn_status status = TARN_OK;
  *out_width = 0;
  for (uint32_t i = 0; i < p->count && status == TARN_OK; i++) {
    status = make_beams(&p->near, &p->workers[i]);
  }
  if (status == TARN_FULL) return TARN_OK;
  if (status == TARN_OK) *out_width = width_of(&p->workers[0]);
  return status;
}
