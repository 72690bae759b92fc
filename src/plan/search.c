// Soundness: TO BE WRITTEN.
#include "plan/search.h"

#include <string.h>

#include "base/hostmem.h"
#include "plan/ranking.h"
#include "plan/search_state.h"

enum { STOP_EACH = 256, FIRST_STACK = 256 };
#define NOBODY UINT32_MAX

// A part: items that are not down, that share no section with others.
typedef struct part {
  tarn__plan_key key;
  uint32_t begin;  // in tree.items
  uint32_t end;
  bool is_new;  // cut off from others: its items are to be ranked
} part;

typedef struct saved_rank {
  uint32_t item;
  uint32_t rank;
} saved_rank;

// A part that is being worked on.
typedef struct frame {
  part part;
  tarn__plan_mark start;  // when work on it began
  tarn__plan_mark mark;   // before the last item was put down
  tarn__plan_key key;     // of the state then
  uint32_t chosen;        // that item; it is the last of the part's; or NOBODY
  size_t first_key;       // in tree.keys: its states so far
  size_t first_part;      // in tree.parts: what is left to do above |chosen|
  size_t first_rank;      // in tree.ranks_saved
} frame;

struct tarn__plan_search {
  tarn__plan_state state;
  tarn__plan_failed failed;
  uint64_t last_capacity;
  const tarn__plan_run *run;
  uint64_t nodes;
  bool use_table;
  bool no_memory;
  tarn__plan_outcome outcome;

  uint32_t *items;    // those of a part are beside each other
  uint32_t *moved;    // room to sort them in
  uint32_t *ranks;    // by item
  uint64_t *found;    // by item: its offset
  uint32_t *part_of;  // by section; room to cut a part up
  uint32_t *part_count;
  tarn__plan_rank_key *rank_keys;
  frame *frames;
  size_t depth;
  part *parts;
  size_t pending;
  tarn__plan_key *keys;  // of the states that led to where it is
  size_t key_count;
  size_t key_room;
  saved_rank *saved;  // of parts that were ranked again
  size_t saved_count;
  size_t saved_room;
};

typedef tarn__plan_search tree;

// --- memory ------------------------------------------------------------------

static tarn_status make_room(tree *t) {
  const tarn__plan_instance *in = t->state.in;
  size_t items = in->item_count + 1;
  size_t sections = in->section_count + 1;
  t->items = tarn__host_array(items, sizeof *t->items);
  t->moved = tarn__host_array(items, sizeof *t->moved);
  t->ranks = tarn__host_array(items, sizeof *t->ranks);
  t->found = tarn__host_array(items, sizeof *t->found);
  t->part_of = tarn__host_array(sections, sizeof *t->part_of);
  t->part_count = tarn__host_array(sections, sizeof *t->part_count);
  t->rank_keys = tarn__host_array(items, sizeof *t->rank_keys);
  t->frames = tarn__host_array(items, sizeof *t->frames);
  t->parts = tarn__host_array(2 * items, sizeof *t->parts);
  t->keys = tarn__host_array(FIRST_STACK, sizeof *t->keys);
  if (t->keys != NULL) t->key_room = FIRST_STACK;
  t->saved = tarn__host_array(items, sizeof *t->saved);
  if (t->saved != NULL) t->saved_room = items;
  bool made = t->items != NULL && t->moved != NULL && t->ranks != NULL &&
              t->found != NULL && t->part_of != NULL && t->part_count != NULL &&
              t->rank_keys != NULL && t->frames != NULL && t->parts != NULL &&
              t->keys != NULL && t->saved != NULL;
  return made ? TARN_OK : TARN_E_NOMEM;
}

static void free_room(tree *t) {
  if (t->state.in == NULL) return;
  size_t items = t->state.in->item_count + 1;
  size_t sections = t->state.in->section_count + 1;
  tarn__host_free_array(t->items, items, sizeof *t->items);
  tarn__host_free_array(t->moved, items, sizeof *t->moved);
  tarn__host_free_array(t->ranks, items, sizeof *t->ranks);
  tarn__host_free_array(t->found, items, sizeof *t->found);
  tarn__host_free_array(t->part_of, sections, sizeof *t->part_of);
  tarn__host_free_array(t->part_count, sections, sizeof *t->part_count);
  tarn__host_free_array(t->rank_keys, items, sizeof *t->rank_keys);
  tarn__host_free_array(t->frames, items, sizeof *t->frames);
  tarn__host_free_array(t->parts, 2 * items, sizeof *t->parts);
  tarn__host_free_array(t->keys, t->key_room, sizeof *t->keys);
  tarn__host_free_array(t->saved, t->saved_room, sizeof *t->saved);
}

static bool push_key(tree *t, tarn__plan_key key) {
  if (t->key_count == t->key_room) {
    tarn__plan_key *larger = tarn__host_resize(
        t->keys, t->key_room, 2 * t->key_room, sizeof *t->keys);
    if (larger == NULL) return false;
    t->keys = larger;
    t->key_room *= 2;
  }
  t->keys[t->key_count++] = key;
  return true;
}

// --- parts -------------------------------------------------------------------

static tarn__plan_key key_of(const tree *t, uint32_t begin, uint32_t end) {
  tarn__plan_key sum = {0};
  for (uint32_t i = begin; i < end; i++) {
    tarn__plan_key own = tarn__plan_state_key(&t->state, t->items[i]);
    sum.low += own.low;
    sum.high += own.high;
  }
  return sum;
}

static uint32_t number_parts(tree *t, uint32_t begin, uint32_t end) {
  const tarn__plan_item *items = t->state.in->items;
  uint32_t first = UINT32_MAX;
  uint32_t last = 0;
  for (uint32_t i = begin; i < end; i++) {
    const tarn__plan_item *item = &items[t->items[i]];
    if (first > item->first) first = item->first;
    if (last < item->last) last = item->last;
  }
  uint32_t count = 0;
  for (uint32_t s = first; s < last; s++) {
    if (s == first || t->state.crossing[s] == 0) t->part_count[count++] = 0;
    t->part_of[s] = count - 1;
  }
  for (uint32_t i = begin; i < end; i++) {
    t->part_count[t->part_of[items[t->items[i]].first]]++;
  }
  return count;
}

// Moves items of one part beside each other.
static void gather(tree *t, uint32_t begin, uint32_t end, uint32_t count) {
  const tarn__plan_item *items = t->state.in->items;
  uint32_t at = begin;
  for (uint32_t p = 0; p < count; p++) {
    uint32_t size = t->part_count[p];
    t->part_count[p] = at;
    at += size;
  }
  memcpy(t->moved + begin, t->items + begin, (end - begin) * sizeof *t->moved);
  for (uint32_t i = begin; i < end; i++) {
    uint32_t item = t->moved[i];
    t->items[t->part_count[t->part_of[items[item].first]]++] = item;
  }
}

// The smallest is the last, and so the first to be taken.
static void push_part(tree *t, size_t first, part added) {
  size_t to = t->pending++;
  while (to > first && t->parts[to - 1].end - t->parts[to - 1].begin <=
                           added.end - added.begin) {
    t->parts[to] = t->parts[to - 1];
    to--;
  }
  t->parts[to] = added;
}

static bool save_ranks(tree *t, uint32_t begin, uint32_t end) {
  size_t need = t->saved_count + (end - begin);
  if (need > t->saved_room) {
    saved_rank *larger =
        tarn__host_resize(t->saved, t->saved_room, 2 * need, sizeof *t->saved);
    if (larger == NULL) return false;
    t->saved = larger;
    t->saved_room = 2 * need;
  }
  for (uint32_t i = begin; i < end; i++) {
    uint32_t item = t->items[i];
    t->saved[t->saved_count++] = (saved_rank){item, t->ranks[item]};
  }
  return true;
}

static void restore_ranks(tree *t, size_t count) {
  while (t->saved_count > count) {
    const saved_rank *was = &t->saved[--t->saved_count];
    t->ranks[was->item] = was->rank;
  }
}

static void rank(tree *t, part p) {
  tarn__plan_rank(t->state.in, t->run, t->state.total, t->items + p.begin,
                  p.end - p.begin, t->rank_keys, t->ranks);
}

// Cuts up what is in [begin, end).
static void cut(tree *t, uint32_t begin, uint32_t end, bool always_rank) {
  uint32_t count = number_parts(t, begin, end);
  size_t first = t->pending;
  gather(t, begin, end, count);
  bool several = t->part_count[0] != end || always_rank;
  if (several && !save_ranks(t, begin, end)) t->no_memory = true;
  uint32_t at = begin;
  for (uint32_t p = 0; p < count; p++) {
    uint32_t stop = t->part_count[p];
    if (stop == at) continue;
    push_part(t, first, (part){key_of(t, at, stop), at, stop, several});
    at = stop;
  }
}

// --- frames ------------------------------------------------------------------

static frame *top(tree *t) {
  return &t->frames[t->depth - 1];
}

static void open_frame(tree *t, part p) {
  if (p.is_new) rank(t, p);
  t->frames[t->depth++] = (frame){.part = p,
                                  .key = p.key,
                                  .start = tarn__plan_state_mark(&t->state),
                                  .chosen = NOBODY,
                                  .first_key = t->key_count,
                                  .first_part = t->pending,
                                  .first_rank = t->saved_count};
}

// Everything above the frame's item, and the item itself, is taken up again.
static void take_up(tree *t, frame *f) {
  if (f->chosen == NOBODY) return;
  tarn__plan_state_take_up(&t->state, f->chosen);
  tarn__plan_state_undo(&t->state, f->mark);
  t->pending = f->first_part;
  restore_ranks(t, f->first_rank);
}

static void close_frame(tree *t, bool fails) {
  frame *f = top(t);
  tarn__plan_state_undo(&t->state, f->start);
  for (size_t i = f->first_key; fails && i < t->key_count; i++) {
    tarn__plan_failed_put(&t->failed, t->keys[i]);
  }
  t->key_count = f->first_key;
  t->depth--;
}

// The item of the last frame cannot lie where it is put down.
static bool pass_over(tree *t) {
  frame *f = top(t);
  if (f->chosen == NOBODY) return false;
  take_up(t, f);
  bool lifts = tarn__plan_state_pass(&t->state, f->chosen, &f->key);
  f->chosen = NOBODY;
  return lifts;
}

// --- the tree ----------------------------------------------------------------

// These end with a state to look at, or with false when all is over.

static bool is_over(tree *t, tarn__plan_outcome outcome) {
  if (t->depth == 0) t->outcome = outcome;
  return t->depth == 0;
}

static bool retry(tree *t) {
  while (!pass_over(t)) {
    close_frame(t, t->use_table);
    if (is_over(t, TARN__PLAN_NONE)) return false;
  }
  return true;
}

static bool take_part(tree *t) {
  part p = t->parts[--t->pending];
  if (p.end - p.begin > 1) {
    open_frame(t, p);
    return true;
  }
  uint32_t item = t->items[p.begin];
  t->found[item] = t->state.at[item];
  return t->state.lifter[item] == TARN__PLAN_PLACED;
}

static bool go_on(tree *t) {
  size_t depth = t->depth;
  while (t->depth == depth) {
    frame *f = top(t);
    if (t->pending > f->first_part) {
      if (!take_part(t)) return retry(t);
      continue;
    }
    take_up(t, f);
    close_frame(t, false);
    if (is_over(t, TARN__PLAN_FOUND)) return false;
    depth = t->depth;
  }
  return true;
}

// --- a state -----------------------------------------------------------------

static bool is_before(const tree *t, uint32_t a, uint32_t b) {
  if (b == NOBODY) return true;
  uint64_t at_a = t->state.at[a];
  uint64_t at_b = t->state.at[b];
  return at_a < at_b || (at_a == at_b && t->ranks[a] < t->ranks[b]);
}

// The lowest of what was not passed over goes to the end of the frame's part;
// what was is lifted as high as it must be. False: it cannot be.
static bool choose(tree *t, frame *f) {
  uint32_t best = NOBODY;
  uint32_t best_at = 0;
  for (uint32_t i = f->part.begin; i < f->part.end; i++) {
    uint32_t item = t->items[i];
    if (t->state.lifter[item] == TARN__PLAN_PLACED) {
      if (!is_before(t, item, best)) continue;
      best = item;
      best_at = i;
    } else if (tarn__plan_state_is_stale(&t->state, item)) {
      if (!tarn__plan_state_lift(&t->state, item)) return false;
    }
  }
  if (best == NOBODY) return false;
  t->items[best_at] = t->items[f->part.end - 1];
  t->items[f->part.end - 1] = best;
  f->chosen = best;
  return true;
}

static bool look(tree *t, frame *f) {
  if (t->use_table) {
    if (tarn__plan_failed_has(&t->failed, f->key)) return false;
    if (!push_key(t, f->key)) t->no_memory = true;
  }
  return choose(t, f);
}

static bool fail(tree *t) {
  close_frame(t, t->use_table);
  return !is_over(t, TARN__PLAN_NONE) && retry(t);
}

static bool put_down(tree *t, frame *f) {
  bool cuts = false;
  tarn__plan_key key = f->key;
  f->mark = tarn__plan_state_mark(&t->state);
  t->found[f->chosen] = t->state.at[f->chosen];
  if (!tarn__plan_state_put_down(&t->state, f->chosen, &key, &cuts)) {
    return false;
  }
  if (cuts) {
    cut(t, f->part.begin, f->part.end - 1, false);
  } else {
    t->parts[t->pending++] = (part){key, f->part.begin, f->part.end - 1, false};
  }
  return true;
}

// One node. False: all is over.
static bool visit(tree *t) {
  frame *f = top(t);
  t->nodes++;
  if (!look(t, f)) return fail(t);
  return put_down(t, f) ? go_on(t) : retry(t);
}

static bool may_go_on(const tree *t) {
  const tarn__plan_run *run = t->run;
  if (t->no_memory || t->state.no_memory) return false;
  if (run->node_limit != 0 && t->nodes >= run->node_limit) return false;
  return t->nodes % STOP_EACH != 0 || !tarn__plan_stop_now(run->stop, t->nodes);
}

static void walk(tree *t) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < t->state.in->item_count; i++) {
    t->found[i] = t->state.at[i];
    if (!t->state.fixed[i]) t->items[count++] = i;
  }
  t->depth = t->pending = t->key_count = t->saved_count = 0;
  t->outcome = TARN__PLAN_STOPPED;
  open_frame(t, (part){0});
  if (count > 0) cut(t, 0, count, true);
  bool more = go_on(t);
  while (more && may_go_on(t))
    more = visit(t);
}

// --- the whole ---------------------------------------------------------------

tarn_status tarn__plan_search_create(const tarn__plan_instance *instance,
                                     size_t table_size,
                                     tarn__plan_search **out_search) {
  *out_search = NULL;
  tree *t = tarn__host_alloc(sizeof *t);
  if (t == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn__plan_state_make(instance, table_size, &t->state);
  if (status == TARN_OK) status = make_room(t);
  if (status == TARN_OK) {
    status = tarn__plan_failed_make(table_size, &t->failed);
  }
  if (status != TARN_OK) {
    tarn__plan_search_destroy(t);
    return status;
  }
  *out_search = t;
  return TARN_OK;
}

void tarn__plan_search_destroy(tarn__plan_search *search) {
  if (search == NULL) return;
  free_room(search);
  tarn__plan_failed_free(&search->failed);
  tarn__plan_state_free(&search->state);
  tarn__host_free(search, sizeof *search);
}

static void prepare_table(tree *t, const tarn__plan_run *run) {
  t->use_table = run->held == NULL;
  if (!t->use_table) return;
  if (run->capacity > t->last_capacity) tarn__plan_failed_clear(&t->failed);
  t->last_capacity = run->capacity;
}

tarn_status tarn__plan_search_run(tarn__plan_search *search,
                                  const tarn__plan_run *run,
                                  uint64_t *out_offsets,
                                  tarn__plan_outcome *out,
                                  uint64_t *out_nodes) {
  tree *t = search;
  bool fits = false;
  *out = TARN__PLAN_STOPPED;
  *out_nodes = 0;
  t->run = run;
  t->nodes = 0;
  t->no_memory = false;
  prepare_table(t, run);
  tarn_status status =
      tarn__plan_state_begin(&t->state, run->capacity, run->held, &fits);
  if (status != TARN_OK) return status;
  t->outcome = TARN__PLAN_NONE;
  if (fits) walk(t);
  if (t->no_memory || t->state.no_memory) return TARN_E_NOMEM;
  if (t->outcome == TARN__PLAN_FOUND) {
    memcpy(out_offsets, t->found, t->state.in->item_count * sizeof *t->found);
  }
  *out = t->outcome;
  *out_nodes = t->nodes;
  return TARN_OK;
}
