// Deals requests out to threads, and keeps those but the caller's.
#include "crossing.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "placement.h"
#include "tool.h"

// One thread and its part. The caller's, the first, has no thread of its own.
typedef struct lane {
  crossing *all;
  crossing_side side;
  pthread_t thread;
  bool served;
  _Atomic uint32_t answered;
} lane;

// The other threads get their work through a number that grows; each answers
// with the same number.
struct crossing {
  request_list requests;
  uint32_t *slots;  // the new number of each slot of the trace
  size_t thread_count;
  placement *where;  // processors for spread threads; NULL: they are not
  lane *lanes;
  crossing_pace *paces;  // of each; NULL: the trace names no threads
  size_t started;        // of the other threads
  atomic_bool broken;
  uint32_t passes_done;
  _Atomic uint32_t asked;
  crossing_work *work;  // NULL: they are to end
  void *context;
};

// ---------------------------------------------------------------------------
// Dealing out
// ---------------------------------------------------------------------------

// Whose request each one is, by the order of the trace.
static uint8_t *share_out(const crossing *c, const request_list *requests) {
  uint8_t *by = tool_array(requests->count, sizeof *by);
  uint8_t *owners = tool_array(requests->slot_count, sizeof *owners);
  size_t allocs = 0;
  for (size_t i = 0; i < requests->count; i++) {
    const request *r = &requests->items[i];
    if (requests->threads != NULL) {
      by[i] = (uint8_t)(requests->threads[i] % c->thread_count);
    } else if (r->size > 0) {
      by[i] = owners[r->slot] = (uint8_t)(allocs++ % c->thread_count);
    } else {
      by[i] = (uint8_t)((owners[r->slot] + 1u) % c->thread_count);
    }
  }
  free(owners);
  return by;
}

// Which thread fills each slot: what the trace never takes is as the first's.
static uint8_t *owners_of(const request_list *requests, const uint8_t *by) {
  uint8_t *owners = tool_array(requests->slot_count, sizeof *owners);
  for (size_t i = 0; i < requests->count; i++) {
    if (requests->items[i].size > 0) owners[requests->items[i].slot] = by[i];
  }
  return owners;
}

// The slots that the first thread fills come first, then those of the second,
// and so on, each with a line of the cache to itself behind them.
static void renumber(crossing *c, const request_list *requests,
                     const uint8_t *by) {
  enum { GAP = 16 };
  uint8_t *owners = owners_of(requests, by);
  size_t next = 0;
  c->slots = tool_array(requests->slot_count, sizeof *c->slots);
  for (size_t k = 0; k < c->thread_count; k++) {
    for (size_t i = 0; i < requests->slot_count; i++) {
      if (owners[i] == k) c->slots[i] = (uint32_t)next++;
    }
    next = (next + (size_t)2 * GAP - 1) / GAP * GAP;
  }
  c->requests.slot_count = next;
  free(owners);
}

static void give_to(lane *l, const request *r, size_t place) {
  crossing_side *side = &l->side;
  side->places[side->requests.count] = (uint32_t)place;
  side->requests.items[side->requests.count++] = *r;
}

static void deal_out(crossing *c, const request_list *requests,
                     const uint8_t *by) {
  for (size_t i = 0; i < requests->count; i++) {
    request *r = &c->requests.items[i];
    *r = requests->items[i];
    r->slot = c->slots[r->slot];
    give_to(&c->lanes[by[i]], r, i);
  }
}

static void make_paces(crossing *c) {
  size_t size = c->thread_count * sizeof *c->paces;
  c->paces = aligned_alloc(_Alignof(crossing_pace), size);
  if (c->paces == NULL) tool_no_memory(c->thread_count, sizeof *c->paces);
  memset(c->paces, 0, size);
}

static void make_lanes(crossing *c, const request_list *requests) {
  size_t slots = c->requests.slot_count;
  _Atomic uint32_t *filled = tool_array_ready(slots, sizeof *filled);
  _Atomic uint32_t *emptied = tool_array_ready(slots, sizeof *emptied);
  for (size_t i = 0; i < c->thread_count; i++) {
    crossing_side *side = &c->lanes[i].side;
    c->lanes[i].all = c;
    side->requests = c->requests;
    side->requests.count = 0;
    side->requests.items = tool_array_ready(requests->count, sizeof(request));
    side->places = tool_array_ready(requests->count, sizeof *side->places);
    side->filled = filled;
    side->emptied = emptied;
    side->broken = &c->broken;
    side->paces = c->paces;
    side->thread_count = c->thread_count;
    side->number = i;
    side->total = requests->count;
  }
}

static void make_parts(crossing *c, const request_list *requests) {
  uint8_t *by = share_out(c, requests);
  c->requests = *requests;
  c->requests.threads = NULL;
  c->requests.items = tool_array_ready(requests->count, sizeof(request));
  renumber(c, requests, by);
  if (requests->threads != NULL) make_paces(c);
  make_lanes(c, requests);
  deal_out(c, requests, by);
  free(by);
}

static void free_parts(crossing *c) {
  free(c->lanes[0].side.filled);
  free(c->lanes[0].side.emptied);
  for (size_t i = 0; i < c->thread_count; i++) {
    free(c->lanes[i].side.requests.items);
    free(c->lanes[i].side.places);
  }
  free(c->paces);
  free(c->requests.items);
  free(c->slots);
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

static void tell_pace(crossing_pace *pace, uint64_t next) {
  atomic_store_explicit(&pace->next, next, memory_order_release);
}

// A thread that is done keeps nobody back.
static void run_lane(lane *l) {
  crossing *c = l->all;
  l->served = c->work(c->context, &l->side);
  if (!l->served) atomic_store(&c->broken, true);
  if (c->paces != NULL) tell_pace(&c->paces[l->side.number], UINT64_MAX);
}

static void *other_thread(void *context) {
  lane *l = context;
  const placement *where = l->all->where;
  if (where != NULL) placement_pin(where, l->side.number);
  for (uint32_t number = 1;; number++) {
    wait_until(&l->all->asked, number);
    if (l->all->work == NULL) return NULL;
    run_lane(l);
    atomic_store_explicit(&l->answered, number, memory_order_release);
  }
}

static uint32_t ask(crossing *c, crossing_work *work) {
  uint32_t number = atomic_load_explicit(&c->asked, memory_order_relaxed) + 1;
  c->work = work;
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

crossing *crossing_create(const request_list *requests, size_t threads,
                          bool spread) {
  crossing *c = tool_array(1, sizeof *c);
  c->thread_count = threads;
  c->lanes = tool_array(threads, sizeof *c->lanes);
  make_parts(c, requests);
  if (spread) {
    c->where = placement_create();
    placement_pin(c->where, 0);
  }
  if (start_threads(c)) return c;
  crossing_destroy(c);
  return NULL;
}

void crossing_destroy(crossing *c) {
  if (c == NULL) return;
  (void)ask(c, NULL);
  for (size_t i = 1; i <= c->started; i++)
    pthread_join(c->lanes[i].thread, NULL);
  if (c->where != NULL) placement_unpin(c->where);
  placement_destroy(c->where);
  free_parts(c);
}

const request_list *crossing_requests(const crossing *c) {
  return &c->requests;
}

uint32_t crossing_slot(const crossing *c, uint32_t slot) {
  return c->slots[slot];
}

// Nobody but the caller runs: the next |ask| makes the words known.
void crossing_reset(crossing *c, size_t held) {
  const crossing_side *side = &c->lanes[0].side;
  for (size_t i = 0; i < c->requests.slot_count; i++) {
    atomic_store_explicit(&side->filled[i], c->passes_done,
                          memory_order_relaxed);
    atomic_store_explicit(&side->emptied[i], c->passes_done,
                          memory_order_relaxed);
  }
  for (size_t i = 0; i < held; i++) {
    atomic_store_explicit(&side->filled[c->slots[i]], c->passes_done + 1,
                          memory_order_relaxed);
  }
}

static void begin_pace(const crossing *c, crossing_pace *pace) {
  pace->slowest = (uint64_t)(c->passes_done + 1) * c->requests.count;
  tell_pace(pace, pace->slowest);
}

bool crossing_run(crossing *c, crossing_work *work, void *context,
                  uint32_t passes) {
  bool served = true;
  for (size_t i = 0; i < c->thread_count; i++) {
    c->lanes[i].side.first_pass = c->passes_done + 1;
    c->lanes[i].side.passes = passes;
    if (c->paces != NULL) begin_pace(c, &c->paces[i]);
  }
  c->passes_done += passes;
  c->context = context;
  uint32_t number = ask(c, work);
  run_lane(&c->lanes[0]);
  for (size_t i = 1; i < c->thread_count; i++)
    wait_until(&c->lanes[i].answered, number);
  for (size_t i = 0; i < c->thread_count; i++)
    served = served && c->lanes[i].served;
  return served;
}
