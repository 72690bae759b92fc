// The exact search: against all ways to place a few items, one by one.
#include "search_kit.h"
#include "support/effort.h"

enum { STEPS = 8, MOST = 8 };
#define ANYWHERE UINT64_MAX

// --- small problems ----------------------------------------------------------

// What a problem may have.
typedef struct kind {
  bool gaps;
  bool aligned;
  bool fixed;
  bool pairs;
} kind;

typedef struct small {
  tarn_plan_buffer buffers[MOST];
  tarn_plan_gap gaps[MOST][1];
  tarn_plan_pair pairs[MOST];
  bool merged[MOST];
  uint32_t place[MOST];  // by buffer: those merged have the first one's number
  tarn_plan_problem problem;
  uint64_t scale;
} small;

static tarn_plan_buffer *add_buffer(small *s, kind k) {
  size_t index = s->problem.count++;
  tarn_plan_buffer *b = &s->buffers[index];
  s->place[index] = (uint32_t)index;
  if (k.aligned && chance(3)) b->alignment = s->scale * (1 + random_below(4));
  if (k.fixed && chance(4)) {
    uint64_t step = b->alignment == 0 ? s->scale : b->alignment;
    b->flags = TARN_PLAN_FIXED;
    b->offset = step * random_below(6 * s->scale / step + 1);
  }
  return b;
}

static void open_gap(small *s, size_t index) {
  tarn_plan_buffer *b = &s->buffers[index];
  if (b->last - b->first < 3 || chance(2)) return;
  uint64_t first = b->first + 1 + random_below(b->last - b->first - 2);
  uint64_t last = first + 1 + random_below(b->last - first - 1);
  s->gaps[index][0] = (tarn_plan_gap){first, last};
  b->gaps = s->gaps[index];
  b->gap_count = 1;
}

// Here and there.
static void add_loose(small *s, kind k) {
  size_t count = 2 + random_below(5);
  s->scale = count > 4 || chance(2) ? 1 : 3;
  while (s->problem.count < count) {
    tarn_plan_buffer *b = add_buffer(s, k);
    b->first = random_below(STEPS - 1);
    b->last = b->first + 1 + random_below(STEPS - b->first);
    b->size = s->scale * (1 + random_below(4));
  }
}

// All steps full, as long as there is room for buffers: often there is no plan
// of the height that they have.
static void add_tight(small *s, kind k) {
  uint64_t left[STEPS];
  uint64_t height = 3 + random_below(4);
  for (size_t step = 0; step < STEPS; step++)
    left[step] = height;
  s->scale = 1;
  for (uint64_t step = 0; step < STEPS; step++) {
    while (left[step] > 0 && s->problem.count < MOST) {
      tarn_plan_buffer *b = add_buffer(s, k);
      b->first = step;
      b->last = step + 1 + random_below(STEPS - step);
      b->size = 1 + random_below(left[step]);
      for (uint64_t i = step; i < b->last; i++)
        left[i] -= b->size;
    }
  }
}

static bool may_merge(const small *s, size_t giver, size_t taker) {
  const tarn_plan_buffer *a = &s->buffers[giver];
  const tarn_plan_buffer *b = &s->buffers[taker];
  if (((a->flags | b->flags) & TARN_PLAN_FIXED) != 0) return false;
  for (size_t i = 0; i < s->problem.pair_count; i++) {
    if (s->pairs[i].giver == giver || s->pairs[i].taker == taker) return false;
  }
  return a->last - 1 == b->first && a->first < b->first;
}

static void merge(small *s) {
  for (size_t giver = 0; giver < s->problem.count; giver++) {
    for (size_t taker = 0; taker < s->problem.count; taker++) {
      if (!may_merge(s, giver, taker)) continue;
      s->merged[s->problem.pair_count] = true;
      s->pairs[s->problem.pair_count++] = (tarn_plan_pair){giver, taker};
      uint32_t old = s->place[taker];
      for (size_t i = 0; i < s->problem.count; i++) {
        if (s->place[i] == old) s->place[i] = s->place[giver];
      }
    }
  }
}

static void make_small(small *s, kind k) {
  memset(s, 0, sizeof *s);
  s->problem.struct_size = sizeof s->problem;
  s->problem.buffers = s->buffers;
  s->problem.pairs = s->pairs;
  if (chance(2)) {
    add_loose(s, k);
  } else {
    add_tight(s, k);
  }
  for (size_t i = 0; k.gaps && i < s->problem.count; i++)
    open_gap(s, i);
  if (k.pairs) merge(s);
}

// --- all ways to place them --------------------------------------------------

// Sizes of those that share a place, by step; bytes that are taken, by step.
typedef struct brute {
  const small *s;
  uint64_t need[MOST][STEPS];
  uint64_t fixed[MOST];  // by place, or ANYWHERE
  uint64_t taken[STEPS];
  uint64_t capacity;
} brute;

static bool is_needed(const tarn_plan_buffer *b, uint64_t step) {
  for (size_t i = 0; i < b->gap_count; i++) {
    if (b->gaps[i].first <= step && step < b->gaps[i].last) return false;
  }
  return b->first <= step && step < b->last;
}

static void make_brute(brute *b, const small *s) {
  memset(b, 0, sizeof *b);
  b->s = s;
  memset(b->fixed, 0xff, sizeof b->fixed);
  for (size_t i = 0; i < s->problem.count; i++) {
    const tarn_plan_buffer *buffer = &s->buffers[i];
    uint32_t place = s->place[i];
    if ((buffer->flags & TARN_PLAN_FIXED) != 0)
      b->fixed[place] = buffer->offset;
    for (uint64_t step = 0; step < STEPS; step++) {
      uint64_t *need = &b->need[place][step];
      if (is_needed(buffer, step) && *need < buffer->size) *need = buffer->size;
    }
  }
}

static uint64_t bits(uint64_t size, uint64_t offset) {
  return ((UINT64_C(1) << size) - 1) << offset;
}

static bool may_lie(const brute *b, size_t place, uint64_t offset) {
  for (size_t i = 0; i < b->s->problem.count; i++) {
    uint64_t alignment = b->s->buffers[i].alignment;
    if (b->s->place[i] != place) continue;
    if (alignment != 0 && offset % alignment != 0) return false;
  }
  for (size_t step = 0; step < STEPS; step++) {
    uint64_t need = b->need[place][step];
    if (need == 0) continue;
    if (offset + need > b->capacity) return false;
    if ((b->taken[step] & bits(need, offset)) != 0) return false;
  }
  return true;
}

static void turn(brute *b, size_t place, uint64_t offset) {
  for (size_t step = 0; step < STEPS; step++) {
    b->taken[step] ^= bits(b->need[place][step], offset);
  }
}

static bool place_all(brute *b, size_t place) {
  while (place < b->s->problem.count && b->s->place[place] != place)
    place++;
  if (place == b->s->problem.count) return true;
  bool fixed = b->fixed[place] != ANYWHERE;
  uint64_t from = fixed ? b->fixed[place] : 0;
  uint64_t last = fixed ? from : b->capacity;
  for (uint64_t offset = from; offset <= last; offset++) {
    if (!may_lie(b, place, offset)) continue;
    turn(b, place, offset);
    bool all = place_all(b, place + 1);
    turn(b, place, offset);
    if (all) return true;
  }
  return false;
}

static bool brute_fits(brute *b, uint64_t capacity) {
  b->capacity = capacity;
  return place_all(b, 0);
}

static bool is_plan(brute *b, const uint64_t *offsets) {
  bool all = true;
  memset(b->taken, 0, sizeof b->taken);
  for (size_t i = 0; i < b->s->problem.count && all; i++) {
    if (b->s->place[i] != i) continue;
    all = may_lie(b, i, offsets[i]) &&
          (b->fixed[i] == ANYWHERE || b->fixed[i] == offsets[i]);
    if (all) turn(b, i, offsets[i]);
  }
  memset(b->taken, 0, sizeof b->taken);
  return all;
}

// --- one against the other ---------------------------------------------------

static size_t seen[3];  // by outcome

static void require_same(brute *b, tarn__plan_instance *in,
                         tarn__plan_search *search, tarn__plan_run run,
                         uint64_t capacity, bool fits) {
  tarn__plan_stop stop = never();
  uint64_t units[MOST];
  uint64_t offsets[MOST];
  uint64_t nodes;
  tarn__plan_outcome outcome;
  run.capacity = capacity / in->unit;
  run.stop = &stop;
  run.order = (tarn__plan_order)random_below(TARN__PLAN_ORDERS);
  run.scarce_first = random_below(2) == 1;
  run.seed = chance(2) ? 0 : random_below(100);
  tarn_status status =
      tarn__plan_search_run(search, &run, units, &outcome, &nodes);
  require(status == TARN_OK);
  require(outcome == (fits ? TARN__PLAN_FOUND : TARN__PLAN_NONE));
  seen[outcome]++;
  if (!fits) return;
  for (size_t i = 0; i < b->s->problem.count; i++) {
    offsets[i] = units[in->item_of[i]] * in->unit;
  }
  b->capacity = capacity;
  require(is_plan(b, offsets));
}

// The least height, or |most| + 1 where there is none up to that.
static uint64_t lowest(brute *b, uint64_t from, uint64_t most) {
  while (from <= most && !brute_fits(b, from))
    from++;
  return from;
}

static void compare(const small *s, brute *b, field *f) {
  tarn__plan_search *search;
  tarn__plan_run run = {0};
  uint64_t most = 13 * s->scale;
  uint64_t best = lowest(b, f->in.bound * f->in.unit, most);
  bool any = best <= most;
  require(tarn__plan_search_create(&f->near, TABLE, &search) == TARN_OK);
  if (best + s->scale <= most) {
    require_same(b, &f->in, search, run, best + s->scale, true);
  }
  for (int i = 0; i < 2; i++) {
    if (any) require_same(b, &f->in, search, run, best, true);
    require_same(b, &f->in, search, run, best - 1, false);
  }
  if (any) require_same(b, &f->in, search, run, best, true);
  tarn__plan_search_destroy(search);
}

static void compare_many(kind k, size_t all) {
  size_t count = EFFORT(all, all / 4);
  small s;
  brute b;
  memset(seen, 0, sizeof seen);
  for (size_t i = 0; i < count; i++) {
    field f;
    make_small(&s, k);
    tarn__plan_choice choice = {.merged = s.merged};
    open_field(&s.problem, &choice, &f);
    make_brute(&b, &s);
    compare(&s, &b, &f);
    close_field(&f);
  }
  ck_assert_uint_gt(seen[TARN__PLAN_FOUND], count);
  ck_assert_uint_gt(seen[TARN__PLAN_NONE], count);
}

TEST(plain_ones) {
  compare_many((kind){0}, 3000);
}

TEST(with_gaps) {
  compare_many((kind){.gaps = true}, 2000);
}

TEST(with_alignments) {
  compare_many((kind){.aligned = true}, 2000);
}

TEST(with_fixed_offsets) {
  compare_many((kind){.fixed = true}, 2000);
}

TEST(with_places_taken_over) {
  compare_many((kind){.pairs = true}, 2000);
}

TEST(with_all_of_it) {
  compare_many((kind){true, true, true, true}, 3000);
}
