// Deals requests out to two threads, and keeps the second one.
#include "crossing.h"

#include <pthread.h>
#include <stdlib.h>

#include "course.h"

// The second thread gets its work through a number that grows; it answers with
// the same number.
struct crossing {
  request_list requests;
  crossing_side sides[CROSSING_THREADS];
  atomic_bool broken;
  uint32_t passes_done;
  pthread_t thread;
  _Atomic uint32_t asked;
  _Atomic uint32_t answered;
  peer_pass *pass;  // NULL: it is to end
  void *self;
  peer_run run;
  bool served;
};

// ---------------------------------------------------------------------------
// Dealing out
// ---------------------------------------------------------------------------

// The new number of each slot of the trace: the slots of the first thread come
// first, then those of the second. |out_second|: where the latter begin.
static uint32_t *renumber(const request_list *requests, uint32_t *out_second) {
  uint32_t *slots = tool_array(requests->slot_count, sizeof *slots);
  uint32_t count = 0, half = (uint32_t)(requests->slot_count + 1) / 2;
  for (size_t i = 0; i < requests->count; i++) {
    const request *r = &requests->items[i];
    if (r->size == 0) continue;
    slots[r->slot] = count / 2 + (count % 2 == 0 ? 0 : half);
    count++;
  }
  *out_second = half;
  return slots;
}

static void give_to(crossing_side *side, const request *r, size_t place) {
  side->places[side->requests.count] = (uint32_t)place;
  side->requests.items[side->requests.count++] = *r;
}

static void deal_out(crossing *c, const request_list *requests) {
  uint32_t second = 0;
  uint32_t *slots = renumber(requests, &second);
  for (size_t i = 0; i < requests->count; i++) {
    request *r = &c->requests.items[i];
    *r = requests->items[i];
    r->slot = slots[r->slot];
    bool allocated_by_second = r->slot >= second;
    bool is_alloc = r->size > 0;
    give_to(&c->sides[allocated_by_second == is_alloc], r, i);
  }
  free(slots);
}

static void make_lanes(crossing *c, const request_list *requests) {
  size_t slots = requests->slot_count + 1;  // an odd count has one to spare
  _Atomic uint32_t *filled = course_array(slots, sizeof *filled);
  _Atomic uint32_t *emptied = course_array(slots, sizeof *emptied);
  c->requests = *requests;
  c->requests.slot_count = slots;
  c->requests.items = course_array(requests->count, sizeof(request));
  for (size_t i = 0; i < CROSSING_THREADS; i++) {
    crossing_side *side = &c->sides[i];
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
  for (size_t i = 0; i < CROSSING_THREADS; i++) {
    free(c->sides[i].requests.items);
    free(c->sides[i].places);
  }
  free(c->sides[0].filled);
  free(c->sides[0].emptied);
  free(c->requests.items);
  free(c);
}

// ---------------------------------------------------------------------------
// The second thread
// ---------------------------------------------------------------------------

static void wait_until(_Atomic uint32_t *word, uint32_t value) {
  enum { SPINS = 10000 };
  for (unsigned i = 0;
       atomic_load_explicit(word, memory_order_acquire) != value; i++) {
    if (i > SPINS) sched_yield();
  }
}

static bool run_lane(crossing *c, peer_pass *pass, void *self,
                     const peer_run *run) {
  bool served = pass(self, run);
  if (!served) atomic_store(&c->broken, true);
  return served;
}

static void *second_thread(void *context) {
  crossing *c = context;
  for (uint32_t number = 1;; number++) {
    wait_until(&c->asked, number);
    if (c->pass == NULL) return NULL;
    c->served = run_lane(c, c->pass, c->self, &c->run);
    atomic_store_explicit(&c->answered, number, memory_order_release);
  }
}

static uint32_t ask(crossing *c, peer_pass *pass) {
  uint32_t number = atomic_load_explicit(&c->asked, memory_order_relaxed) + 1;
  c->pass = pass;
  atomic_store_explicit(&c->asked, number, memory_order_release);
  return number;
}

// ---------------------------------------------------------------------------
// All of it
// ---------------------------------------------------------------------------

crossing *crossing_create(const request_list *requests) {
  crossing *c = tool_array(1, sizeof *c);
  make_lanes(c, requests);
  if (pthread_create(&c->thread, NULL, second_thread, c) == 0) return c;
  free_lanes(c);
  return NULL;
}

void crossing_destroy(crossing *c) {
  if (c == NULL) return;
  (void)ask(c, NULL);
  pthread_join(c->thread, NULL);
  free_lanes(c);
}

const request_list *crossing_requests(const crossing *c) {
  return &c->requests;
}

bool crossing_pass(crossing *c, peer_pass *pass, void *self,
                   const peer_run *run, uint32_t passes) {
  for (size_t i = 0; i < CROSSING_THREADS; i++) {
    c->sides[i].first_pass = c->passes_done + 1;
    c->sides[i].passes = passes;
  }
  c->passes_done += passes;
  c->self = self;
  c->run = *run;
  c->run.side = &c->sides[1];
  peer_run own = *run;
  own.side = &c->sides[0];
  uint32_t number = ask(c, pass);
  bool served = run_lane(c, pass, self, &own);
  wait_until(&c->answered, number);
  return served && c->served;
}
