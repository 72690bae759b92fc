// Deals requests out to threads, and keeps those but the caller's.
#include "crossing.h"

#include <pthread.h>
#include <stdlib.h>

#include "course.h"

// One thread and its part. The caller's, the first, has no thread of its own.
typedef struct lane {
  crossing *all;
  crossing_side side;
  pthread_t thread;
  peer_run run;
  bool served;
  _Atomic uint32_t answered;
} lane;

// The other threads get their work through a number that grows; each answers
// with the same number.
struct crossing {
  request_list requests;
  size_t thread_count;
  lane *lanes;
  size_t started;  // of the other threads
  atomic_bool broken;
  uint32_t passes_done;
  _Atomic uint32_t asked;
  peer_pass *pass;  // NULL: they are to end
  void *self;
};

// ---------------------------------------------------------------------------
// Dealing out
// ---------------------------------------------------------------------------

// Slots of one thread.
static size_t slots_of_each(const crossing *c, const request_list *requests) {
  return (requests->slot_count + c->thread_count - 1) / c->thread_count;
}

// The new number of each slot of the trace: the slots of the first thread come
// first, then those of the second, and so on, |each| of them.
static uint32_t *renumber(const crossing *c, const request_list *requests,
                          size_t each) {
  uint32_t *slots = tool_array(requests->slot_count, sizeof *slots);
  size_t count = 0;
  for (size_t i = 0; i < requests->count; i++) {
    const request *r = &requests->items[i];
    if (r->size == 0) continue;
    slots[r->slot] =
        (uint32_t)(count / c->thread_count + count % c->thread_count * each);
    count++;
  }
  return slots;
}

static void give_to(lane *l, const request *r, size_t place) {
  crossing_side *side = &l->side;
  side->places[side->requests.count] = (uint32_t)place;
  side->requests.items[side->requests.count++] = *r;
}

static void deal_out(crossing *c, const request_list *requests) {
  size_t each = slots_of_each(c, requests);
  uint32_t *slots = renumber(c, requests, each);
  for (size_t i = 0; i < requests->count; i++) {
    request *r = &c->requests.items[i];
    *r = requests->items[i];
    r->slot = slots[r->slot];
    size_t by = r->slot / each;
    if (r->size == 0) by = (by + 1) % c->thread_count;
    give_to(&c->lanes[by], r, i);
  }
  free(slots);
}

static void make_lanes(crossing *c, const request_list *requests) {
  size_t slots = slots_of_each(c, requests) * c->thread_count;
  _Atomic uint32_t *filled = course_array(slots, sizeof *filled);
  _Atomic uint32_t *emptied = course_array(slots, sizeof *emptied);
  c->requests = *requests;
  c->requests.slot_count = slots;
  c->requests.items = course_array(requests->count, sizeof(request));
  for (size_t i = 0; i < c->thread_count; i++) {
    crossing_side *side = &c->lanes[i].side;
    c->lanes[i].all = c;
    side->requests = c->requests;
    side->requests.count = 0;
    side->requests.items = course_array(requests->count, sizeof(request));
    side->places = course_array(requests->count, sizeof *side->places);
    side->filled = filled;
    side->emptied = emptied;
    side->broken = &c->broken;
  }
  deal_out(c, requests);
}

static void free_lanes(crossing *c) {
  free(c->lanes[0].side.filled);
  free(c->lanes[0].side.emptied);
  for (size_t i = 0; i < c->thread_count; i++) {
    free(c->lanes[i].side.requests.items);
    free(c->lanes[i].side.places);
  }
  free(c->requests.items);
  free(c->lanes);
  free(c);
}

// ---------------------------------------------------------------------------
// The other threads
// ---------------------------------------------------------------------------

static void wait_until(_Atomic uint32_t *word, uint32_t value) {
  enum { SPINS = 10000 };
  for (unsigned i = 0;
       atomic_load_explicit(word, memory_order_acquire) != value; i++) {
    if (i > SPINS) sched_yield();
  }
}

static void run_lane(lane *l) {
  crossing *c = l->all;
  l->served = c->pass(c->self, &l->run);
  if (!l->served) atomic_store(&c->broken, true);
}

static void *other_thread(void *context) {
  lane *l = context;
  for (uint32_t number = 1;; number++) {
    wait_until(&l->all->asked, number);
    if (l->all->pass == NULL) return NULL;
    run_lane(l);
    atomic_store_explicit(&l->answered, number, memory_order_release);
  }
}

static uint32_t ask(crossing *c, peer_pass *pass) {
  uint32_t number = atomic_load_explicit(&c->asked, memory_order_relaxed) + 1;
  c->pass = pass;
  atomic_store_explicit(&c->asked, number, memory_order_release);
  return number;
}

static bool start_threads(crossing *c) {
  while (c->started + 1 < c->thread_count) {
    lane *l = &c->lanes[c->started + 1];
    if (pthread_create(&l->thread, NULL, other_thread, l) != 0) return false;
    c->started++;
  }
  return true;
}

// ---------------------------------------------------------------------------
// All of it
// ---------------------------------------------------------------------------

crossing *crossing_create(const request_list *requests, size_t threads) {
  crossing *c = tool_array(1, sizeof *c);
  c->thread_count = threads;
  c->lanes = tool_array(threads, sizeof *c->lanes);
  make_lanes(c, requests);
  if (start_threads(c)) return c;
  crossing_destroy(c);
  return NULL;
}

void crossing_destroy(crossing *c) {
  if (c == NULL) return;
  (void)ask(c, NULL);
  for (size_t i = 1; i <= c->started; i++)
    pthread_join(c->lanes[i].thread, NULL);
  free_lanes(c);
}

const request_list *crossing_requests(const crossing *c) {
  return &c->requests;
}

bool crossing_pass(crossing *c, peer_pass *pass, void *self,
                   const peer_run *run, uint32_t passes) {
  bool served = true;
  for (size_t i = 0; i < c->thread_count; i++) {
    lane *l = &c->lanes[i];
    l->side.first_pass = c->passes_done + 1;
    l->side.passes = passes;
    l->run = *run;
    l->run.side = &l->side;
  }
  c->passes_done += passes;
  c->self = self;
  uint32_t number = ask(c, pass);
  run_lane(&c->lanes[0]);
  for (size_t i = 1; i < c->thread_count; i++)
    wait_until(&c->lanes[i].answered, number);
  for (size_t i = 0; i < c->thread_count; i++)
    served = served && c->lanes[i].served;
  return served;
}
