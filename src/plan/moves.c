// A try lowers the plan below a limit. Items that end above the limit wait. Of
// those that wait the hardest to place is put down next, at the lowest free
// offset. If that is too high, it is put down where the items in its way cost
// least; they are taken out and wait in turn. An item that found no room gets
// more weight, so that it is not taken out for the same other one again and
// again. When no item waits, the plan is lower.
//
// A limit is a part of the way from the plan to the bound, half of it at most.
// The part is doubled when a try succeeds and halved when it fails. After each
// failure the costs and the order of waiting items are computed in another
// manner, for none is best for all problems.
//
// At first, and after several failures in a row, new plans are made in random
// orders: which of many items of one size come first can decide. A new plan
// that is no lower than the best is abandoned, except the last, with which the
// next try begins.
#include "plan/moves.h"

#include <math.h>
#include <string.h>

#include "base/status.h"
#include "plan/neighbours.h"
#include "plan/placements.h"

enum {
  MOST_PIECES = 1 << 21,
  NODES_PER_LOOK = 16,   // at the clock
  ITEMS_PER_LOOK = 256,  // while the best plan is placed again
  FIRST_NODES = 500,     // of a try, besides one for some of the items
  ITEMS_PER_NODE = 8,
  LARGEST_PART = 2,  // of the way to the bound: a half
  SMALLEST_PART = 64,
  TRIES_PER_GROWTH = 4,  // failures after which tries become longer
  TRIES_PER_ORDERS = 6,  // ... after which plans are made anew
  TRIES_PER_WEIGHTS = 3,
  MOST_GROWTH = 32,    // of a try
  ORDERS = 16,         // that lower nothing
  LEAST_DISORDER = 7,  // as a logarithm
  CANDIDATES = 8,      // places that are looked at closely
  PROBES = 64,         // sections of an item that are looked at
};

// The cost of an item, and how hard it is to place: products of its size and of
// how many others are there with it, or of their roots.
typedef enum measure {
  SIZE = 0,
  SIZE_BY_ROOT_COUNT,
  ROOT_SIZE_BY_COUNT,
  ROOT_OF_BOTH,
  SIZE_BY_COUNT,
  MEASURES,
} measure;

static const struct {
  measure cost;
  measure hardness;
} manners[] = {
    {ROOT_OF_BOTH, SIZE_BY_COUNT},
    {ROOT_SIZE_BY_COUNT, SIZE},
    {SIZE, SIZE},
    {ROOT_OF_BOTH, SIZE_BY_ROOT_COUNT},
    {ROOT_SIZE_BY_COUNT, SIZE_BY_COUNT},
    {SIZE, SIZE_BY_ROOT_COUNT},
    {ROOT_OF_BOTH, SIZE},
    {SIZE, SIZE_BY_COUNT},
    {ROOT_SIZE_BY_COUNT, SIZE_BY_ROOT_COUNT},
};

enum { MANNERS = sizeof manners / sizeof *manners };

typedef struct place {
  uint64_t at;
  double guess;  // its cost in one section
  double cost;
} place;

struct tarn__plan_moves {
  const tarn__plan_instance *in;
  tarn__plan_spans spans;
  tarn__plan_placing plan;
  bool has_equals;    // most have the size of another
  uint32_t *busiest;  // by item: a section of it in which much is live
  double *weight;     // by item: 1, and 1 more each time that it found no room
  double *cost;       // by item
  double *hardness;   // by item
  uint32_t *waiting;  // a heap, the hardest first
  size_t waiting_count;
  uint32_t *met;  // items, while they are looked through
  uint64_t chance;
  uint32_t part;      // of the way to the bound: one in so many
  uint32_t failures;  // in a row
  uint32_t manner;
  uint32_t orders;      // times that plans were made anew
  uint64_t try_nodes;   // of one try
  uint64_t most_nodes;  // ... at which they become no longer
  // Of the run.
  const tarn__plan_moves_run *run;
  bool stopped;
};

typedef tarn__plan_moves moves;

// --- chance ------------------------------------------------------------------

static uint64_t draw(moves *m, uint64_t below) {
  return tarn__plan_mix(++m->chance * UINT64_C(0x9e3779b97f4a7c15)) % below;
}

// --- limits ------------------------------------------------------------------

static bool look(moves *m) {
  if (!m->stopped)
    m->stopped = tarn__plan_stop_now(m->plan.stop, m->plan.nodes);
  return m->stopped;
}

static bool is_over(void *user) {
  moves *m = user;
  if (m->plan.nodes >= m->run->node_limit) m->stopped = true;
  return m->plan.nodes % NODES_PER_LOOK == 0 ? look(m) : m->stopped;
}

// --- up and down -------------------------------------------------------------

static const tarn__plan_item *item_at(const moves *m, uint32_t index) {
  return &m->in->items[index];
}

static bool is_down(const moves *m, uint32_t index) {
  return m->plan.placed.at[index] != TARN__PLAN_NOWHERE;
}

// From any state to the best plan, unless it is stopped.
static tarn_status go_back(moves *m) {
  for (uint32_t i = 0; i < m->in->item_count; i++) {
    if (is_down(m, i) && m->plan.placed.at[i] != m->plan.best[i]) {
      TARN__TRY(tarn__plan_placed_remove(&m->plan.placed, i));
    }
  }
  for (uint32_t i = 0; i < m->in->item_count; i++) {
    if (i % ITEMS_PER_LOOK == 0 && look(m)) break;
    if (is_down(m, i)) continue;
    TARN__TRY(tarn__plan_placed_add(&m->plan.placed, i, m->plan.best[i]));
  }
  return TARN_OK;
}

// --- what waits --------------------------------------------------------------

static bool is_harder(const moves *m, uint32_t a, uint32_t b) {
  if (m->hardness[a] != m->hardness[b]) return m->hardness[a] > m->hardness[b];
  return a < b;
}

static void wait_for(moves *m, uint32_t index) {
  size_t i = m->waiting_count++;
  for (; i > 0 && is_harder(m, index, m->waiting[(i - 1) / 2]); i = (i - 1) / 2)
    m->waiting[i] = m->waiting[(i - 1) / 2];
  m->waiting[i] = index;
}

static uint32_t next_waiting(moves *m) {
  uint32_t *heap = m->waiting;
  uint32_t hardest = heap[0];
  uint32_t last = heap[--m->waiting_count];
  size_t i = 0;
  for (size_t child = 1; child < m->waiting_count; child = 2 * i + 1) {
    if (child + 1 < m->waiting_count &&
        is_harder(m, heap[child + 1], heap[child])) {
      child++;
    }
    if (is_harder(m, last, heap[child])) break;
    heap[i] = heap[child];
    i = child;
  }
  heap[i] = last;
  return hardest;
}

// --- where it costs least ----------------------------------------------------

static double cost_of(const moves *m, uint32_t index) {
  return item_at(m, index)->fixed ? INFINITY
                                  : m->weight[index] * m->cost[index];
}

static uint64_t end_of(const moves *m, uint32_t index) {
  return m->plan.placed.at[index] + item_at(m, index)->size;
}

static bool is_in_way(const moves *m, uint32_t index, uint64_t at,
                      uint64_t size) {
  return m->plan.placed.at[index] < at + size && end_of(m, index) > at;
}

// Lists in |met| the items that are down and overlap the sections.
static size_t meet(moves *m, uint32_t first, uint32_t last) {
  size_t count = tarn__plan_spans_meet(&m->spans, first, last, m->met);
  size_t kept = 0;
  for (size_t i = 0; i < count; i++) {
    if (is_down(m, m->met[i])) m->met[kept++] = m->met[i];
  }
  return kept;
}

// By shell sort: they are few.
static void sort_by_offset(moves *m, size_t count) {
  static const size_t gaps[] = {701, 301, 132, 57, 23, 10, 4, 1};
  const uint64_t *at = m->plan.placed.at;
  for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
    for (size_t i = gaps[g]; i < count; i++) {
      uint32_t moved = m->met[i];
      size_t to = i;
      for (; to >= gaps[g] && at[m->met[to - gaps[g]]] > at[moved];
           to -= gaps[g])
        m->met[to] = m->met[to - gaps[g]];
      m->met[to] = moved;
    }
  }
}

// Keeps the cheapest guesses, the cheapest first.
static size_t add_place(place *places, size_t count, place added) {
  size_t to = count;
  if (count == CANDIDATES) {
    to = count - 1;
    if (places[to].guess <= added.guess) return count;
  } else {
    count++;
  }
  for (; to > 0 && places[to - 1].guess > added.guess; to--)
    places[to] = places[to - 1];
  places[to] = added;
  return count;
}

// Candidate places for |index| up to |highest|, at the bottom and on top of
// each item in one of its sections, by their cost there. Costs are blurred at
// random, so that a place that only looks good is not tried for ever.
static size_t guess_places(moves *m, uint32_t index, uint64_t highest,
                           place *places) {
  const tarn__plan_item *item = item_at(m, index);
  uint32_t section = m->busiest[index];
  if (draw(m, 4) == 0) {
    section = item->first + (uint32_t)draw(m, item->last - item->first);
  }
  size_t met = meet(m, section, section + 1);
  sort_by_offset(m, met);
  size_t count = 0;
  uint64_t at = 0;
  for (size_t i = 0, below = 0;; i++) {
    double cost = 0;
    while (below < met && end_of(m, m->met[below]) <= at)
      below++;
    for (size_t k = below;
         k < met && m->plan.placed.at[m->met[k]] < at + item->size; k++)
      cost += cost_of(m, m->met[k]);
    double blur = 0.9 + 0.2 * (double)draw(m, 1024) / 1024;
    count = add_place(places, count, (place){.at = at, .guess = cost * blur});
    if (i == met) break;
    at = tarn__plan_align_up(end_of(m, m->met[i]), item->alignment);
    if (at > highest) break;
  }
  return count;
}

// False: something that is fixed is in the way everywhere.
static bool find_cheapest(moves *m, uint32_t index, uint64_t highest,
                          uint64_t *out) {
  const tarn__plan_item *item = item_at(m, index);
  place places[CANDIDATES];
  size_t count = guess_places(m, index, highest, places);
  size_t met = meet(m, item->first, item->last);
  for (size_t p = 0; p < count; p++)
    places[p].cost = 0;
  for (size_t i = 0; i < met; i++) {
    uint32_t other = m->met[i];
    for (size_t p = 0; p < count; p++) {
      if (is_in_way(m, other, places[p].at, item->size) &&
          tarn__plan_items_meet(m->in, index, other)) {
        places[p].cost += cost_of(m, other);
      }
    }
  }
  size_t best = 0;
  for (size_t p = 1; p < count; p++) {
    if (places[p].cost < places[best].cost) best = p;
  }
  *out = places[best].at;
  return places[best].cost < INFINITY;
}

// The items in the way of |index| wait.
static tarn_status clear_way(moves *m, uint32_t index, uint64_t at) {
  const tarn__plan_item *item = item_at(m, index);
  size_t met = meet(m, item->first, item->last);
  for (size_t i = 0; i < met; i++) {
    uint32_t other = m->met[i];
    if (!is_in_way(m, other, at, item->size) ||
        !tarn__plan_items_meet(m->in, index, other)) {
      continue;
    }
    TARN__TRY(tarn__plan_placed_remove(&m->plan.placed, other));
    wait_for(m, other);
  }
  return TARN_OK;
}

// --- a try -------------------------------------------------------------------

static double measured(measure by, double size, double count) {
  switch (by) {
    case SIZE:
      return size;
    case SIZE_BY_ROOT_COUNT:
      return size * tarn__plan_root(count);
    case ROOT_SIZE_BY_COUNT:
      return tarn__plan_root(size) * count;
    case ROOT_OF_BOTH:
      return tarn__plan_root(size * count);
    default:
      return size * count;
  }
}

static void begin_manner(moves *m) {
  for (uint32_t i = 0; i < m->in->item_count; i++) {
    double size = (double)item_at(m, i)->size;
    double count = tarn__plan_spans_count(&m->spans, item_at(m, i));
    m->cost[i] = measured(manners[m->manner].cost, size, count);
    m->hardness[i] = measured(manners[m->manner].hardness, size, count);
  }
}

static void begin_weights(moves *m) {
  for (size_t i = 0; i < m->in->item_count; i++)
    m->weight[i] = 1;
}

// |*out_stuck|: it can lie nowhere below |limit|.
static tarn_status place_one(moves *m, uint32_t index, uint64_t limit,
                             bool *out_stuck) {
  const tarn__plan_item *item = item_at(m, index);
  uint64_t at = tarn__plan_placed_lowest(&m->plan.placed, index);
  if (at + item->size > limit) {
    m->weight[index]++;
    *out_stuck = !find_cheapest(m, index, limit - item->size, &at);
    if (*out_stuck) return TARN_OK;
    TARN__TRY(clear_way(m, index, at));
  }
  return tarn__plan_placed_add(&m->plan.placed, index, at);
}

// |*out_done|: all lies below |limit|.
static tarn_status try_below(moves *m, uint64_t limit, bool *out_done) {
  uint64_t enough = m->plan.nodes + m->try_nodes;
  bool stuck = false;
  m->waiting_count = 0;
  begin_manner(m);
  for (uint32_t i = 0; i < m->in->item_count; i++) {
    if (end_of(m, i) <= limit) continue;
    TARN__TRY(tarn__plan_placed_remove(&m->plan.placed, i));
    wait_for(m, i);
  }
  while (m->waiting_count > 0 && !stuck) {
    if (m->plan.nodes >= enough || is_over(m)) break;
    m->plan.nodes++;
    TARN__TRY(place_one(m, next_waiting(m), limit, &stuck));
  }
  *out_done = m->waiting_count == 0 && !stuck;
  return TARN_OK;
}

// --- other plans -------------------------------------------------------------

// Where many have one size, half of the orders go by size, and differ only in
// which of equals come first.
static tarn__plan_powers draw_powers(moves *m) {
  tarn__plan_powers powers = {.size = 4, .pressure = -1, .disorder = 1};
  for (uint64_t i = draw(m, LEAST_DISORDER); i > 0; i--)
    powers.disorder /= 4;
  powers.seed = m->chance;
  if (m->has_equals && draw(m, 2) == 0) return powers;
  powers.size = 1 + (int)draw(m, 4);
  powers.length = (int)draw(m, 6) - 1;
  powers.pressure = (int)draw(m, 14) - 7;
  return powers;
}

// In a random order, while the plan is below |limit|; a complete plan is kept
// if it is the best.
static tarn_status make_anew(moves *m, uint64_t limit) {
  tarn__plan_sort_keys_mix(&m->plan.keys, draw_powers(m));
  return tarn__plan_place_all(&m->plan, limit);
}

// What lowers the plan is followed by as many again.
static tarn_status make_many(moves *m) {
  for (int i = 0; i < ORDERS && !m->stopped; i++) {
    uint64_t before = *m->plan.height;
    if (before <= m->run->target) return TARN_OK;
    TARN__TRY(make_anew(m, before));
    if (*m->plan.height < before) i = -1;
  }
  return TARN_OK;
}

static tarn_status begin_anew(moves *m) {
  TARN__TRY(make_many(m));
  if (m->stopped) return TARN_OK;
  bool best = m->orders++ % 2 == 0;
  return best ? go_back(m) : make_anew(m, UINT64_MAX);
}

static tarn_status after_failure(moves *m) {
  m->failures++;
  m->manner = (m->manner + 1) % MANNERS;
  if (m->part < SMALLEST_PART) m->part *= 2;
  if (m->failures % TRIES_PER_GROWTH == 0 && m->try_nodes < m->most_nodes) {
    m->try_nodes += m->try_nodes / 2;
  }
  if (m->failures % TRIES_PER_WEIGHTS == 0) begin_weights(m);
  bool anew = m->failures % TRIES_PER_ORDERS == 0;
  return anew ? begin_anew(m) : go_back(m);
}

// --- a run -------------------------------------------------------------------

static uint64_t next_limit(const moves *m) {
  uint64_t way = *m->plan.height - m->in->bound;
  uint64_t limit = *m->plan.height - (way / m->part > 0 ? way / m->part : 1);
  return limit < m->run->target ? m->run->target : limit;
}

static bool is_done(const moves *m) {
  return m->stopped || *m->plan.height <= m->run->target;
}

static tarn_status lower(moves *m) {
  if (is_done(m)) return TARN_OK;
  TARN__TRY(m->orders == 0 ? begin_anew(m) : go_back(m));
  while (!is_done(m)) {
    bool done;
    TARN__TRY(try_below(m, next_limit(m), &done));
    if (done) {
      tarn__plan_keep_lower(&m->plan);
      m->failures = 0;
      if (m->part > LARGEST_PART) m->part /= 2;
    } else if (!m->stopped) {
      TARN__TRY(after_failure(m));
    }
  }
  return TARN_OK;
}

tarn_status tarn__plan_moves_lower(tarn__plan_moves *m,
                                   const tarn__plan_moves_run *run,
                                   uint64_t *offsets, uint64_t *height,
                                   uint64_t *out_nodes) {
  m->run = run;
  m->plan.stop = run->stop;
  m->plan.best = offsets;
  m->plan.height = height;
  m->plan.nodes = 0;
  m->stopped = false;
  tarn_status status = lower(m);
  *out_nodes = m->plan.nodes;
  return status;
}

// --- the whole ---------------------------------------------------------------

// One of a few of its sections.
static uint32_t find_busiest(const moves *m, const tarn__plan_item *item) {
  uint32_t stride = (item->last - item->first) / PROBES + 1;
  uint32_t best = item->first;
  for (uint32_t t = item->first; t < item->last; t += stride) {
    if (m->in->live[t] > m->in->live[best]) best = t;
  }
  return best;
}

static bool find_equals(moves *m) {
  size_t count = m->in->item_count;
  size_t equals = 0;
  tarn__plan_sort_keys_order(&m->plan.keys, TARN__PLAN_LARGEST);
  for (size_t i = 1; i < count; i++)
    equals += m->plan.keys.order[i].key == m->plan.keys.order[i - 1].key;
  return equals > count / 2;
}

static tarn_status make(moves *m, tarn__plan_memory *memory) {
  size_t items = m->in->item_count + 1;
  m->busiest = tarn__plan_array(memory, items, sizeof *m->busiest);
  m->weight = tarn__plan_array(memory, items, sizeof *m->weight);
  m->cost = tarn__plan_array(memory, items, sizeof *m->cost);
  m->hardness = tarn__plan_array(memory, items, sizeof *m->hardness);
  m->waiting = tarn__plan_array(memory, items, sizeof *m->waiting);
  m->met = tarn__plan_array(memory, items, sizeof *m->met);
  if (memory->failed) return TARN_E_NOMEM;
  TARN__TRY(tarn__plan_spans_make(m->in, memory, &m->spans));
  m->plan.is_over = is_over;
  m->plan.user = m;
  TARN__TRY(tarn__plan_placing_make(m->in, false, memory, &m->plan));
  for (uint32_t i = 0; i < m->in->item_count; i++)
    m->busiest[i] = find_busiest(m, item_at(m, i));
  begin_weights(m);
  m->has_equals = find_equals(m);
  return TARN_OK;
}

tarn_status tarn__plan_moves_create(const tarn__plan_instance *instance,
                                    tarn__plan_memory *memory,
                                    tarn__plan_moves **out_moves) {
  *out_moves = NULL;
  if (instance->piece_count > MOST_PIECES) return TARN_FULL;
  moves *m = tarn__plan_array(memory, 1, sizeof *m);
  if (m == NULL) return TARN_E_NOMEM;
  uint64_t nodes = FIRST_NODES + instance->item_count / ITEMS_PER_NODE;
  *m = (moves){.in = instance,
               .part = 2 * LARGEST_PART,
               .try_nodes = nodes,
               .most_nodes = MOST_GROWTH * nodes};
  TARN__TRY(make(m, memory));
  *out_moves = m;
  return TARN_OK;
}
