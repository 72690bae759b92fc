// A depth-first search for a plan within a capacity, with two branches per
// state: the lowest item is placed where it is, or it is passed over.
//
// The proof
// ---------
// Pushed down. Of two items that share sections one is below the other: k is
// below j if j's offset is at least k's and d(k, j), the largest size of k
// where j is too. A plan stays one when an item is moved down to an offset
// that it may have (aligned, clear of what is fixed) and that nothing blocks.
// As sums of offsets cannot fall for ever, there is a plan within a capacity
// if and only if there is one in which each lower offset that an item may have
// is blocked by another. An item blocks p for j, below j, if it lies below
// p + d(j, k) and its end is above p; it is then below j in the plan too, as it
// is not above j: that begins at j's offset and d(j, k), or more.
//
// States. U are the free items that are not down. at(j) is the least offset
// that j may have above all that is down and below it; some of U are passed
// over. T(state) are all ways to give each j of U an offset f(j) >= at(j) that
// it may have, apart from each other and within the capacity, so that f(j) >
// at(j) for what is passed over, and each p that j may have, at(j) <= p < f(j),
// is blocked by another of U. It depends on U, at and what is passed over, on
// nothing else: not on how they came about, the order, nor what is down. With
// less capacity it is a subset. At first nothing is down or passed over, and T
// is empty if and only if there is no plan. Fixed items are in no U; they are
// in which offsets others may have, and so need no rules of their own: what is
// passed over because of at(j) is never lifted by something fixed, which does
// not block at(j), but by one of U.
//
// Bounds. Each j of U has a least(j) that f(j) is not below, for all of T:
// at(j), if it is not passed over. Else at(j) is blocked by some k of U that
// lies below at(j) + d(j, k), and is below j: f(j) is at least the least, over
// all k with least(k) < at(j) + d(j, k), of least(k) + d(k, j). Without any
// such k T is empty. Bounds of a state are bounds of all that it leads to, as
// T only loses members on the way; so they may be found late, but not lost. In
// a section all of U lies above the least of the least offsets there, each
// with its size of its own, and so does what is fixed above: the sum must be
// within the capacity.
//
// Steps. Let c be the lowest, by at, of what is not passed over. Members of T
// with f(c) > at(c) are those of the state with c passed over. Now f(c) =
// at(c). No k of U has f(k) < at(c): at(k) < at(c), so that k is passed over
// and at(k) blocked by something of U lower than k, which would be passed over
// too, and so on without an end. So all k that share sections with c are above
// it, f(k) >= at(c) + d(c, k), which becomes at(k); the rest of f is in T of
// the state with c down: what blocks p >= at(k) for k there is not c. An item
// that is lifted is not passed over any more; others go on to be. If both ways
// fail, T is empty. A plan that is found is one, pushed down or not. Nothing
// blocks at(c) for c if nothing of U shares sections with it: passing it over
// fails at once.
//
// Narrow states. Turned round, T of the state with c down may have members that
// are none of T with c at at(c): where c lifts j, each p from the at(j) before
// to the new one must have been blocked for j. By c it is, if at(c) < at(j) +
// d(j, c): so it is for all that was not passed over, as c is the lowest. One
// that was and has all of its size at or below at(c) is blocked at at(j) by
// nothing, as nothing of U lies lower than c: T is empty. Between the two, for
// items of several sizes only, the state with c down is narrow, and all that
// comes of it: what is looked for there are members of its T that began as
// members of one before, bounds are bounds of these alone, and that there are
// none says nothing of its T. Such a state is not stored, and in it nothing is
// said of identical items. To find it in the table is an answer as ever.
//
// Identical items. If c cannot lie at at(c), no identical item that is not
// passed over can lie there: exchange the two in a member of T.
//
// Parts. Items of different parts share no sections: T is the product of
// theirs. If one fails there is no need to look at others, and what came before
// need not be tried in other ways; the smallest goes first.
//
// The table. A state that failed is stored only when both ways were followed
// to their end, never when a run was stopped, and not if it is narrow. Its key
// is made of (item, at(item), whether it is passed over) of all items of a
// part, which is all that T is made of: so it holds for all orders and seeds,
// for all later runs, and for smaller capacities; not for larger ones, nor
// where other items are fixed. Keys are sums, so that steps are differences.
// Two states with the same key by mistake: see failed_table.
//
// The order in which equals are tried, the ranks, matters for speed only.
#include "plan/depth.h"

#include <assert.h>
#include <string.h>

#include "base/status.h"

enum { STOP_EACH = 16, BUCKET = 4, LEAST_ROOM = 1024 };

// A set of states, each known by 128 bits. Two different states have the same
// bits with a chance of 2^-128 if the bits are as good as random: a search that
// stores 2^20 states and asks 2^40 times errs with a chance of 2^-68, far below
// that of a fault of the machine.
//
// The table has buckets of four keys, a cache line each. A key is in its bucket
// or nowhere; in a full bucket of a table that cannot grow it replaces another
// key, chosen by bits of its own.
typedef struct failed_table {
  tarn__plan_memory *memory;
  tarn__plan_key *keys;  // two zeros: an empty place
  size_t room;           // a power of two
  size_t most;
  size_t count;
  tarn__plan_key salt;  // of all that were put in since it was last cleared
} failed_table;

// A part that is being worked on, within the one before.
typedef struct frame {
  tarn__plan_part part;
  tarn__plan_key key;     // of the state without |chosen|
  tarn__plan_mark start;  // when work on it began
  tarn__plan_mark mark;   // before |chosen| was placed
  size_t first_key;       // its states so far, in the search's |keys|
  uint32_t chosen;        // the last item of the part, or TARN__PLAN_NO_ITEM
  bool is_narrow;         // T has more members than are looked for
  bool narrows;           // so is what lies above |chosen|
} frame;

struct tarn__plan_search {
  tarn__plan_state state;
  failed_table failed;
  uint32_t *identical;  // by item
  uint32_t *rivals;     // by section, where they were counted in this look
  uint64_t *count_of;   // by section: the look that they were counted in
  uint64_t looks;
  frame *frames;
  size_t depth;
  tarn__plan_key *keys;  // of the states that led to where it is
  size_t key_count;
  size_t key_room;

  uint64_t last_capacity;
  const tarn__plan_run *run;
  uint64_t *found;  // by item: its offset
  uint64_t nodes;
  tarn__plan_outcome outcome;
  tarn__plan_memory *memory;
};

typedef tarn__plan_search tree;

// --- failed states -----------------------------------------------------------

static size_t bucket_of(const failed_table *f, tarn__plan_key key) {
  return (size_t)key.low & (f->room - 1) & ~(size_t)(BUCKET - 1);
}

static bool is_empty(tarn__plan_key key) {
  return key.low == 0 && key.high == 0;
}

static tarn__plan_key salted(const failed_table *f, tarn__plan_key key) {
  return (tarn__plan_key){key.low + f->salt.low, key.high + f->salt.high};
}

// Of at most |size| bytes; it begins smaller and grows. A full one replaces old
// keys.
static tarn_status make_table(size_t size, tarn__plan_memory *memory,
                              failed_table *out) {
  *out =
      (failed_table){.memory = memory, .room = LEAST_ROOM, .most = LEAST_ROOM};
  while (out->most <= size / sizeof *out->keys / 2)
    out->most *= 2;
  out->keys = tarn__plan_array(memory, out->room, sizeof *out->keys);
  return tarn__plan_memory_status(memory);
}

// Cost: O(1).
static void clear_table(failed_table *failed) {
  failed->salt.low = tarn__plan_mix(failed->salt.low + 1);
  failed->salt.high = tarn__plan_mix(failed->salt.high + 2);
}

static bool has_failed(const failed_table *failed, tarn__plan_key key) {
  key = salted(failed, key);
  const tarn__plan_key *bucket = failed->keys + bucket_of(failed, key);
  for (int i = 0; i < BUCKET; i++) {
    if (tarn__plan_key_same(bucket[i], key)) return true;
  }
  return false;
}

static void put_key(failed_table *f, tarn__plan_key key) {
  tarn__plan_key *bucket = f->keys + bucket_of(f, key);
  for (int i = 0; i < BUCKET; i++) {
    if (tarn__plan_key_same(bucket[i], key)) return;
    if (!is_empty(bucket[i])) continue;
    bucket[i] = key;
    f->count++;
    return;
  }
  bucket[key.high % BUCKET] = key;
}

// Keys of a bucket stay in it, or go to the one as far behind the old end.
// Without memory the table stays as it is.
static void grow_table(failed_table *f) {
  size_t before = f->room;
  tarn__plan_key *larger =
      tarn__plan_resize(f->memory, f->keys, 2 * before, sizeof *larger);
  if (larger == NULL) {
    f->most = before;
    return;
  }
  f->keys = larger;
  f->room = 2 * before;
  f->count = 0;
  for (size_t i = 0; i < before; i++) {
    tarn__plan_key key = f->keys[i];
    f->keys[i] = (tarn__plan_key){0};
    if (!is_empty(key)) put_key(f, key);
  }
}

static void store(failed_table *failed, tarn__plan_key key) {
  if (failed->room < failed->most && failed->count > failed->room / 2) {
    grow_table(failed);
  }
  key = salted(failed, key);
  // The sign of an empty place; not to store one state is no mistake.
  if (!is_empty(key)) put_key(failed, key);
}

// --- frames ------------------------------------------------------------------

static frame *top(tree *t) {
  return &t->frames[t->depth - 1];
}

static void open_frame(tree *t, tarn__plan_part part) {
  assert(t->frames != NULL);
  const frame *below = t->depth > 0 ? top(t) : NULL;
  bool is_narrow = below != NULL && (below->is_narrow || below->narrows);
  t->frames[t->depth++] = (frame){.part = part,
                                  .key = part.key,
                                  .start = t->state.count,
                                  .first_key = t->key_count,
                                  .chosen = TARN__PLAN_NO_ITEM,
                                  .is_narrow = is_narrow};
}

// With all that is above it.
static void take_up(tree *t, const frame *f) {
  if (f->chosen == TARN__PLAN_NO_ITEM) return;
  tarn__plan_state_take_up(&t->state, f->chosen);
  tarn__plan_state_undo(&t->state, f->mark);
}

static void close_frame(tree *t, bool fails) {
  const frame *f = top(t);
  bool stores = fails && !f->is_narrow;
  tarn__plan_state_undo(&t->state, f->start);
  for (size_t i = f->first_key; stores && i < t->key_count; i++) {
    store(&t->failed, t->keys[i]);
  }
  t->key_count = f->first_key;
  t->depth--;
}

static bool pass_identical(tree *t, uint32_t item, tarn__plan_key *key) {
  const tarn__plan_state *s = &t->state;
  for (uint32_t i = t->identical[item]; i != item; i = t->identical[i]) {
    bool is_like = s->least[i] != TARN__PLAN_DOWN && s->at[i] == s->at[item] &&
                   s->lifter[i] == TARN__PLAN_PLACED;
    if (is_like && !tarn__plan_state_pass(&t->state, i, key)) return false;
  }
  return true;
}

// The item that the last frame placed cannot lie there. False: nor elsewhere.
static bool pass_over(tree *t) {
  frame *f = top(t);
  uint32_t item = f->chosen;
  if (item == TARN__PLAN_NO_ITEM) return false;
  take_up(t, f);
  f->chosen = TARN__PLAN_NO_ITEM;
  return tarn__plan_state_pass(&t->state, item, &f->key) &&
         (f->is_narrow || pass_identical(t, item, &f->key));
}

// --- from state to state -----------------------------------------------------

// These return true when there is a state to look at, that of the last frame,
// and false when all is over.

static bool end(tree *t, tarn__plan_outcome outcome) {
  t->outcome = outcome;
  return false;
}

static bool retry(tree *t) {
  while (!pass_over(t)) {
    close_frame(t, true);
    if (t->depth == 0) return end(t, TARN__PLAN_NONE);
  }
  return true;
}

static bool fail(tree *t) {
  close_frame(t, true);
  return t->depth == 0 ? end(t, TARN__PLAN_NONE) : retry(t);
}

// Nothing could lift an item that is alone.
static bool is_solved(tree *t, tarn__plan_part part) {
  uint32_t item = t->state.left[part.begin];
  t->found[item] = t->state.at[item];
  return t->state.lifter[item] == TARN__PLAN_PLACED;
}

static bool go_on(tree *t) {
  for (;;) {
    frame *f = top(t);
    if (t->state.count.parts > f->start.parts) {
      tarn__plan_part part = tarn__plan_state_pop(&t->state, t->run);
      if (part.end - part.begin == 1) {
        if (is_solved(t, part)) continue;
        return retry(t);
      }
      open_frame(t, part);
      return true;
    }
    take_up(t, f);
    close_frame(t, false);
    if (t->depth == 0) return end(t, TARN__PLAN_FOUND);
  }
}

// --- a state -----------------------------------------------------------------

static void push_key(tree *t, tarn__plan_key key) {
  t->keys = tarn__plan_grow(t->memory, t->keys, &t->key_room, t->key_count + 1,
                            sizeof *t->keys);
  if (t->key_count < t->key_room) t->keys[t->key_count++] = key;
}

static bool is_before(const tree *t, uint32_t a, uint32_t b) {
  if (b == TARN__PLAN_NO_ITEM) return true;
  uint64_t at_a = t->state.at[a];
  uint64_t at_b = t->state.at[b];
  return at_a < at_b || (at_a == at_b && t->state.ranks[a] < t->state.ranks[b]);
}

// Moves the lowest item that was not passed over to the end of the part, and
// lifts the others as high as they must be. False: there is none, or one cannot
// be lifted.
static bool choose(tree *t, frame *f) {
  uint32_t *items = t->state.left;
  uint32_t best = TARN__PLAN_NO_ITEM;
  uint32_t best_at = 0;
  for (uint32_t i = f->part.begin; i < f->part.end; i++) {
    uint32_t item = items[i];
    if (t->state.lifter[item] == TARN__PLAN_PLACED) {
      if (!is_before(t, item, best)) continue;
      best = item;
      best_at = i;
    } else if (tarn__plan_state_is_stale(&t->state, item)) {
      if (!tarn__plan_state_lift(&t->state, item)) return false;
    }
  }
  if (best == TARN__PLAN_NO_ITEM) return false;
  items[best_at] = items[f->part.end - 1];
  items[f->part.end - 1] = best;
  f->chosen = best;
  return true;
}

// How many could be the lowest of |section|; no more than |enough| are counted.
static uint32_t rivals_in(tree *t, uint32_t section, uint32_t enough) {
  if (t->count_of[section] != t->looks) {
    t->count_of[section] = t->looks;
    t->rivals[section] = tarn__plan_state_rivals(&t->state, section, enough);
  }
  return t->rivals[section];
}

static uint32_t fewest_rivals(tree *t, uint32_t item, uint32_t enough) {
  const tarn__plan_instance *in = t->state.in;
  uint32_t fewest = enough;
  TARN__PLAN_EACH_SECTION (in, item, piece, s) {
    uint32_t rivals = rivals_in(t, s, fewest);
    if (rivals < fewest) fewest = rivals;
  }
  return fewest;
}

// Chooses, of the items as low as |chosen|, one with a section in which the
// fewest could be lowest: one of them must be, and a wrong choice fails sooner.
static void choose_scarce(tree *t, frame *f) {
  uint32_t *items = t->state.left;
  uint32_t last = f->part.end - 1;
  uint64_t at = t->state.at[f->chosen];
  t->looks++;
  uint32_t fewest = fewest_rivals(t, f->chosen, UINT32_MAX - 1);
  for (uint32_t i = f->part.begin; i < last; i++) {
    uint32_t item = items[i];
    if (t->state.lifter[item] != TARN__PLAN_PLACED || t->state.at[item] != at) {
      continue;
    }
    uint32_t rivals = fewest_rivals(t, item, fewest + 1);
    if (rivals > fewest ||
        (rivals == fewest && !is_before(t, item, f->chosen))) {
      continue;
    }
    fewest = rivals;
    items[i] = f->chosen;
    items[last] = f->chosen = item;
  }
}

static bool look(tree *t, frame *f) {
  if (has_failed(&t->failed, f->key)) return false;
  push_key(t, f->key);
  if (!choose(t, f)) return false;
  if (t->run->scarce_first) choose_scarce(t, f);
  return true;
}

static bool put_down(tree *t, frame *f) {
  tarn__plan_effect effect;
  tarn__plan_part rest = {f->key, f->part.begin, f->part.end - 1, false};
  f->mark = t->state.count;
  t->found[f->chosen] = t->state.at[f->chosen];
  if (!tarn__plan_state_put_down(&t->state, f->chosen, &rest.key, &effect)) {
    return false;
  }
  f->narrows = effect.narrows;
  if (effect.cuts) {
    tarn__plan_state_cut(&t->state, rest.begin, rest.end, false);
  } else {
    t->state.parts[t->state.count.parts++] = rest;
  }
  return true;
}

static bool visit(tree *t) {
  frame *f = top(t);
  t->nodes++;
  if (!look(t, f)) return fail(t);
  return put_down(t, f) ? go_on(t) : retry(t);
}

// --- a run -------------------------------------------------------------------

static bool may_go_on(const tree *t) {
  const tarn__plan_run *run = t->run;
  if (t->memory->failed) return false;
  if (run->node_limit != 0 && t->nodes >= run->node_limit) return false;
  return t->nodes % STOP_EACH != 0 || !tarn__plan_stop_now(run->stop, t->nodes);
}

static void walk(tree *t) {
  memcpy(t->found, t->state.at, t->state.in->item_count * sizeof *t->found);
  t->depth = 0;
  t->key_count = 0;
  // The outermost frame, which has placed nothing.
  open_frame(t, (tarn__plan_part){0});
  top(t)->start = (tarn__plan_mark){0};
  t->outcome = TARN__PLAN_STOPPED;
  bool more = go_on(t);
  while (more && may_go_on(t))
    more = visit(t);
}

tarn_status tarn__plan_search_run(tarn__plan_search *search,
                                  const tarn__plan_run *run,
                                  uint64_t *out_offsets,
                                  tarn__plan_outcome *out,
                                  uint64_t *out_nodes) {
  tree *t = search;
  *out = TARN__PLAN_STOPPED;
  *out_nodes = 0;
  t->run = run;
  t->nodes = 0;
  t->memory->failed = false;
  if (run->capacity > t->last_capacity) clear_table(&t->failed);
  t->last_capacity = run->capacity;
  t->outcome = TARN__PLAN_NONE;
  if (tarn__plan_state_begin(&t->state, run->capacity)) walk(t);
  if (t->memory->failed) return TARN_E_NOMEM;
  if (t->outcome == TARN__PLAN_FOUND) {
    memcpy(out_offsets, t->found, t->state.in->item_count * sizeof *t->found);
  }
  *out = t->outcome;
  *out_nodes = t->nodes;
  return TARN_OK;
}

// --- the whole ---------------------------------------------------------------

tarn_status tarn__plan_search_create(const tarn__plan_neighbours *near,
                                     size_t table_size,
                                     tarn__plan_memory *memory,
                                     tarn__plan_search **out_search) {
  size_t items = near->in->item_count + 1;
  size_t sections = near->in->section_count + 1;
  *out_search = NULL;
  tree *t = tarn__plan_array(memory, 1, sizeof *t);
  if (t == NULL) return TARN_E_NOMEM;
  t->memory = memory;
  t->identical = tarn__plan_array(memory, items, sizeof *t->identical);
  t->frames = tarn__plan_array(memory, items, sizeof *t->frames);
  t->rivals = tarn__plan_array(memory, sections, sizeof *t->rivals);
  t->count_of = tarn__plan_array(memory, sections, sizeof *t->count_of);
  t->found = tarn__plan_array(memory, items, sizeof *t->found);
  if (memory->failed) return TARN_E_NOMEM;
  TARN__TRY(tarn__plan_state_make(near, memory, &t->state));
  TARN__TRY(tarn__plan_identical(near->in, t->identical));
  TARN__TRY(make_table(table_size, memory, &t->failed));
  *out_search = t;
  return TARN_OK;
}
