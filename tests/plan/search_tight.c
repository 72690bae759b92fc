// The exact search on problems that are too large to try all ways, but low: a
// sweep over time that keeps all pictures of what is live gives the answer.
#include "search_kit.h"

#include <stdlib.h>

enum { CELLS = 10, STEPS = 30, PICTURES = 1 << 11 };

// Whose each cell is, less one.
typedef struct picture {
  uint8_t owner[CELLS];
} picture;

typedef struct sweep {
  const large *l;
  uint64_t capacity;
  picture *now;
  picture *next;
  size_t now_count;
  size_t next_count;
  bool full;  // there were too many pictures: the answer is unknown
} sweep;

static int by_cells(const void *a, const void *b) {
  return memcmp(a, b, sizeof(picture));
}

// What was made becomes what is there, once each.
static void turn_over(sweep *s) {
  picture *was = s->now;
  qsort(s->next, s->next_count, sizeof *s->next, by_cells);
  s->now_count = 0;
  for (size_t i = 0; i < s->next_count; i++) {
    bool again = i > 0 && by_cells(&s->next[i], &s->next[i - 1]) == 0;
    if (!again) s->next[s->now_count++] = s->next[i];
  }
  s->now = s->next;
  s->next = was;
  s->next_count = 0;
}

static bool may_lie(const sweep *s, const picture *p, const tarn_plan_buffer *b,
                    uint64_t offset) {
  bool fixed = (b->flags & TARN_PLAN_FIXED) != 0;
  if (b->alignment != 0 && offset % b->alignment != 0) return false;
  if (fixed && offset != b->offset) return false;
  if (offset + b->size > s->capacity) return false;
  for (uint64_t i = 0; i < b->size; i++) {
    if (p->owner[offset + i] != 0) return false;
  }
  return true;
}

static void add_pictures(sweep *s, const picture *p, size_t buffer) {
  const tarn_plan_buffer *b = &s->l->buffers[buffer];
  for (uint64_t offset = 0; offset < s->capacity; offset++) {
    if (!may_lie(s, p, b, offset)) continue;
    s->full = s->full || s->next_count == PICTURES;
    if (s->full) return;
    picture *added = &s->next[s->next_count++];
    *added = *p;
    memset(added->owner + offset, (int)buffer + 1, b->size);
  }
}

static void begin_buffers(sweep *s, uint64_t step) {
  for (size_t i = 0; i < s->l->count; i++) {
    if (s->l->buffers[i].first != step) continue;
    for (size_t p = 0; p < s->now_count; p++)
      add_pictures(s, &s->now[p], i);
    turn_over(s);
  }
}

static void end_buffers(sweep *s, uint64_t step) {
  for (size_t p = 0; p < s->now_count; p++) {
    picture *left = &s->next[s->next_count++];
    *left = s->now[p];
    for (size_t i = 0; i < CELLS; i++) {
      uint8_t owner = left->owner[i];
      if (owner == 0 || s->l->buffers[owner - 1].last > step) continue;
      left->owner[i] = 0;
    }
  }
  turn_over(s);
}

static bool sweep_over(const large *l, uint64_t capacity, bool *fits) {
  static picture pictures[2][PICTURES];
  sweep s = {.l = l,
             .capacity = capacity,
             .now = pictures[0],
             .next = pictures[1],
             .now_count = 1};
  pictures[0][0] = (picture){0};
  for (uint64_t step = 0; step < STEPS && !s.full; step++) {
    end_buffers(&s, step);
    begin_buffers(&s, step);
  }
  *fits = s.now_count > 0;
  return !s.full;
}

// --- problems ----------------------------------------------------------------

typedef struct kind {
  bool aligned;
  bool fixed;
} kind;

// All steps are full: in one of ten cases there is no plan of that height.
static void make_tight(large *l, uint64_t steps, kind k) {
  uint64_t left[STEPS];
  memset(l, 0, sizeof *l);
  for (size_t step = 0; step < steps; step++)
    left[step] = 8;
  for (uint64_t step = 0; step < steps; step++) {
    while (left[step] > 0) {
      tarn_plan_buffer *b = &l->buffers[l->count++];
      uint64_t length = 1 + random_below(8);
      b->first = step;
      b->last = step + length < steps ? step + length : steps;
      b->size = 1 + random_below(4);
      if (l->count > 1 && b[-1].first == step && chance(2)) {
        *b = b[-1];  // an identical one, as long as there is room
        b->flags = 0;
      }
      if (b->size > left[step]) b->size = left[step];
      if (k.aligned && chance(8)) b->alignment = 2;
      if (k.fixed && chance(8)) {
        b->flags = TARN_PLAN_FIXED;
        b->offset = 2 * random_below((10 - b->size) / 2 + 1);
      }
      for (uint64_t i = step; i < b->last; i++)
        left[i] -= b->size;
    }
  }
  open_large(l);
}

static size_t failed;  // after at least one node
static size_t found;

static void require_same(const large *l, tarn__plan_search *search,
                         tarn__plan_run run, bool fits) {
  answer got;
  run.order = (tarn__plan_order)random_below(TARN__PLAN_ORDERS);
  run.seed = random_below(3);
  run.scarce_first = random_below(2) == 1;
  require(run_with(search, run, &got) == TARN_OK);
  require(got.outcome == (fits ? TARN__PLAN_FOUND : TARN__PLAN_NONE));
  found += fits;
  failed += !fits && got.nodes > 0;
  if (!fits) return;
  require_plan(l, got.units, run.capacity * l->f.in.unit);
  for (size_t i = 0; i < l->count; i++) {
    const tarn_plan_buffer *b = &l->buffers[i];
    uint64_t offset = got.units[l->f.in.item_of[i]] * l->f.in.unit;
    require(b->alignment == 0 || offset % b->alignment == 0);
    require((b->flags & TARN_PLAN_FIXED) == 0 || offset == b->offset);
  }
}

// With an empty table, and with what the first runs stored.
static void compare(large *l) {
  tarn__plan_search *search = search_of(&l->f);
  for (uint64_t capacity = 9; capacity >= 8; capacity--) {
    tarn__plan_run run = {.capacity = capacity / l->f.in.unit};
    bool fits;
    if (!sweep_over(l, run.capacity * l->f.in.unit, &fits)) continue;
    for (int i = 0; i < 3; i++)
      require_same(l, search, run, fits);
  }
}

static void compare_many(size_t count, uint64_t steps, kind k) {
  found = 0;
  failed = 0;
  for (size_t i = 0; i < count; i++) {
    large l;
    make_tight(&l, steps, k);
    compare(&l);
    close_field(&l.f);
  }
  ck_assert_uint_gt(found, count);
  ck_assert_uint_gt(failed, count / 10);
}

TEST(tight_ones) {
  compare_many(600, STEPS, (kind){0});
}

TEST(tight_ones_with_alignments) {
  compare_many(600, 12, (kind){.aligned = true});
}

TEST(tight_ones_with_fixed_offsets) {
  compare_many(800, 8, (kind){.fixed = true});
}

TEST(tight_ones_with_both) {
  compare_many(800, 8, (kind){true, true});
}
