// Following steps: what happens where a request is not what the cursor expects,
// and learning.
#include "pool/steps.h"

#include <string.h>

#include "base/status.h"
#include "pool/statistics.h"
#include "pool/step_parts.h"

enum {
  // Unexpected requests in one step, in addition to half of the expected ones.
  MISSES = 64,
  // Unexpected requests in one step after which no other step is looked for
  // that began likewise.
  BRANCHES = 8,
  // Steps after which a layout has been worth it.
  WORTH_ROUNDS = 8,
  // Steps that are listened to after one that did not go on as it began.
  LISTENED = 2,
  // Events for which a period has held that is waited for; and for how many of
  // one thread's steps, and of these, it is.
  PROMISING = 256,
  ROWS = 4,
  // Planning takes time: where it was in vain, the next attempt waits for twice
  // the evidence, and so many steps more.
  FAILED_PERIODS = 4,
};

// --- which step it is ------------------------------------------------------

// Whether the cursor, behind frees that are over, is at this request. If its
// place is taken, the request has come, but is served beside the ground.
static bool is_here(tarn__pool_steps *steps, const tarn__pool_note *what) {
  tarn__pool_step_cursor *cursor = &steps->cursor;
  if (tarn__step_is(cursor->at, what)) return true;
  tarn__steps_put_cursor(cursor, cursor->at + 1);
  return false;
}

static const tarn__pool_step_event *next_of(
    const tarn__pool_step_layout *layout, const tarn__pool_step_event *e) {
  return e + 1 == tarn__step_layout_end(layout) ? layout->events : e + 1;
}

// Whether no more is live on the ground than where the step begins. Looking is
// not worth it after many requests that did not fit.
static bool is_quiet(const tarn__pool_steps *steps) {
  const tarn__pool_step_layout *layout = steps->cursor.layout;
  size_t live = tarn__steps_count_expected(steps);
  if (live == 0) return true;
  if (live > layout->across || steps->cursor.missed >= MISSES) return false;
  for (size_t i = 0; i < layout->count; i++) {
    const tarn__pool_piece *piece = layout->pieces[i];
    bool expected = piece->live && !piece->stranger;
    if (expected && !layout->places[i].across) return false;
  }
  return true;
}

// The request comes behind frees by other threads that are late. Their blocks
// are strangers from here on. A free of the thread's own is waited for: a
// request that comes before it is more likely one that is no part of the step.
static bool pass(tarn__pool_steps *steps, const tarn__pool_note *what) {
  tarn__pool_step_cursor *cursor = &steps->cursor;
  tarn__pool_step_layout *layout = cursor->layout;
  const tarn__pool_step_event *begin = cursor->at;
  size_t late = 0;
  if (begin == tarn__step_layout_end(layout)) return false;
  const tarn__pool_step_event *e = begin;
  for (; tarn__step_is_free(e); e = next_of(layout, e)) {
    bool over = tarn__step_is_over(e);
    if (!over && !tarn__step_place_of(layout, e)->lost) return false;
    late += over ? 0 : 1;
  }
  if (!tarn__step_layout_matches(layout, e, what)) return false;
  if (!tarn__strangers_fit(&steps->ground, late)) return false;
  for (const tarn__pool_step_event *f = begin; f != e; f = next_of(layout, f))
    if (!tarn__step_is_over(f))
      tarn__strangers_add(&steps->ground, layout, f->piece);
  if (e < begin) layout->rounds++;
  if (e < begin) cursor->missed = 0;
  tarn__steps_put_cursor(cursor, e);
  return true;
}

typedef enum beginning {
  BEGUN,
  UNKNOWN,  // no known step begins like that
  NOT_NOW,  // it cannot be followed
} beginning;

// A known step begins with the request. Where the strategy releases the lock,
// other threads may change all of it.
static beginning begin(tarn_pool *pool, tarn__pool_steps *steps,
                       const tarn__pool_note *what, bool may_ask) {
  for (size_t i = 0; i < steps->count; i++) {
    tarn__pool_step_layout *layout = steps->layouts[i];
    const tarn__pool_step_event *e = layout->events + layout->first;
    if (!tarn__step_layout_matches(layout, e, what)) continue;
    if (steps->let_pass > 0) {
      steps->let_pass--;
      return NOT_NOW;
    }
    // Ground is asked for only where it is certain that a step begins.
    bool sure = may_ask && pool->stats.live_bytes == steps->base;
    if (tarn__steps_stand(pool, steps, layout, sure) != TARN_OK) return NOT_NOW;
    return tarn__steps_follow(steps, layout, e) ? BEGUN : NOT_NOW;
  }
  return UNKNOWN;
}

// The request of |other| that follows the same requests as |at| does in
// |layout|; NULL: they are not the same.
static const tarn__pool_step_event *same_way(
    const tarn__pool_step_layout *layout, const tarn__pool_step_event *at,
    const tarn__pool_step_layout *other) {
  const tarn__pool_step_event *end = tarn__step_layout_end(other);
  const tarn__pool_step_event *f = other->events + other->first;
  for (const tarn__pool_step_event *e = layout->events; e < at; e++) {
    if (tarn__step_is_free(e)) continue;
    tarn__pool_note what = {.serial = e->serial,
                            .size = e->size,
                            .align = tarn__step_place_of(layout, e)->align,
                            .tag = e->tag};
    if (f == end || !tarn__step_layout_matches(other, f, &what)) return NULL;
    do {
      f++;
    } while (f != end && tarn__step_is_free(f));
  }
  return f != end ? f : NULL;
}

// Another known step began likewise, and goes on with the request.
static bool branch(tarn_pool *pool, tarn__pool_steps *steps,
                   const tarn__pool_note *what) {
  const tarn__pool_step_cursor *cursor = &steps->cursor;
  if (cursor->missed >= BRANCHES || !tarn__steps_have_begun(cursor))
    return false;
  for (size_t i = 0; i < steps->count; i++) {
    tarn__pool_step_layout *other = steps->layouts[i];
    if (other == cursor->layout) continue;
    const tarn__pool_step_event *e =
        same_way(cursor->layout, cursor->at, other);
    if (e == NULL || !tarn__step_layout_matches(other, e, what)) continue;
    return tarn__steps_stand(pool, steps, other, false) == TARN_OK &&
           tarn__steps_follow(steps, other, e);
  }
  return false;
}

// --- learning --------------------------------------------------------------

static bool is_live_on(const tarn__pool_step_layout *layout) {
  for (size_t i = 0; layout->pieces != NULL && i < layout->count; i++)
    if (layout->pieces[i]->live) return true;
  return false;
}

// Forgets the layout in that place, which is not followed.
static void forget(tarn_pool *pool, tarn__pool_steps *steps, size_t i) {
  tarn__pool_step_layout *layout = steps->layouts[i];
  if (is_live_on(layout)) tarn__steps_give_up(pool, steps);
  tarn__step_layout_undress(pool, layout);
  tarn__step_layout_forget(layout);
  steps->changes++;
  steps->count--;
  memmove(steps->layouts + i, steps->layouts + i + 1,
          (steps->count - i) * sizeof *steps->layouts);
  if (steps->count == 0) tarn__steps_give_up(pool, steps);
}

static size_t count_places(const tarn__pool_steps *steps) {
  size_t sum = 0;
  for (size_t i = 0; i < steps->count; i++)
    sum += steps->layouts[i]->count;
  return sum;
}

// Those that have been done since one was last turned away for them stay: a
// program that takes turns with more steps than there is room for would learn
// each of them again and again.
static bool stays(const tarn__pool_step_layout *layout) {
  return layout->rounds > layout->kept_at;
}

static void keep_all(const tarn__pool_steps *steps) {
  for (size_t i = 0; i < steps->count; i++)
    steps->layouts[i]->kept_at = steps->layouts[i]->rounds;
}

// Another stream's layouts cannot lie on the same ground. False: those that are
// known are in use.
static bool make_room(tarn_pool *pool, tarn__pool_steps *steps,
                      const tarn__pool_step_layout *layout) {
  size_t most = pool->current->steps;
  while (steps->count > 0 && (steps->count == TARN__STEP_LAYOUTS ||
                              steps->layouts[0]->serial != layout->serial ||
                              count_places(steps) + layout->count > most)) {
    if (stays(steps->layouts[steps->count - 1])) {
      keep_all(steps);
      return false;
    }
    forget(pool, steps, steps->count - 1);
  }
  return true;
}

// Ground for a new layout, which becomes the first of those that are known.
static tarn_status admit(tarn_pool *pool, tarn__pool_steps *steps,
                         tarn__pool_step_layout *layout) {
  if (!make_room(pool, steps, layout)) return TARN_FULL;
  steps->put_off = 0;
  layout->steps = steps;
  TARN__TRY(tarn__steps_stand(pool, steps, layout, true));
  steps->layouts[steps->count++] = layout;
  tarn__steps_move_to_front(steps, layout);
  steps->changes++;
  steps->broken = steps->let_pass = 0;
  return TARN_OK;
}

// Finds or plans the layout of the step that is due, and ground for it.
static tarn_status learn_layout(tarn_pool *pool, tarn__pool_steps *steps) {
  tarn__pool_strategy *owner = pool->current;
  tarn__pool_steps_known known = {steps->layouts, steps->count};
  tarn__pool_step_layout *layout = NULL;
  TARN__TRY(tarn__step_layout_make(
      pool, &steps->recorder, owner->type->granule(owner), &known, &layout));
  if (layout->steps != NULL) {
    tarn__steps_move_to_front(steps, layout);
    return tarn__steps_stand(pool, steps, layout, true);
  }
  tarn_status status = admit(pool, steps, layout);
  if (status != TARN_OK) tarn__step_layout_forget(layout);
  return status;
}

// Learns the step that is due, and begins it if the request does. Where that
// fails, more evidence is wanted.
static bool learn(tarn_pool *pool, tarn__pool_steps *steps,
                  const tarn__pool_note *what) {
  tarn__pool_recorder *recorder = &steps->recorder;
  uint64_t evidence = recorder->evidence;
  uint64_t more = evidence * 2 + recorder->period * FAILED_PERIODS;
  recorder->due = 0;  // for threads that enter while the lock is released
  tarn_status status = learn_layout(pool, steps);
  if (status == TARN_E_STATE) return false;
  tarn__recorder_restart(recorder, status == TARN_OK ? evidence : more);
  // Not now: it is known, and gets ground where it begins.
  if (status != TARN_OK && status != TARN_PENDING) return false;
  steps->base = pool->stats.live_bytes;
  steps->waited = 0;
  return begin(pool, steps, what, true) == BEGUN && is_here(steps, what);
}

// --- a request that is not expected ----------------------------------------

// Every so often the next steps are listened to as a whole.
static void note_broken(tarn__pool_steps *steps) {
  steps->broken++;
  if ((steps->broken & (steps->broken - 1)) == 0) steps->let_pass = LISTENED;
}

// Live bytes where steps begin. Before the first is known, the least of the
// last requests: as many of them as the recorder has room for.
static size_t find_base(tarn__pool_steps *steps, size_t live) {
  uint64_t count = steps->recorder.count;
  if (steps->count > 0) return steps->base;
  size_t room = steps->recorder.room;  // 0: it rests
  if (room != 0 && count - steps->window >= room) {
    steps->window = count;
    steps->base = steps->least;
    steps->least = live;
  }
  if (live < steps->least) steps->least = live;
  if (live < steps->base) steps->base = live;
  return steps->base;
}

// No step is followed.
static bool seek_begin(tarn_pool *pool, tarn__pool_steps *steps,
                       const tarn__pool_note *what, bool may_ask) {
  tarn__pool_recorder *recorder = &steps->recorder;
  if (pool->current->steps == 0) return false;
  size_t live = pool->stats.live_bytes;
  // Of several threads at once nobody knows what is live between steps.
  bool begins = !pool->threads.apart && live <= find_base(steps, live);
  if (begins) tarn__recorder_mark(recorder, live, tarn__steps_longest(steps));
  if (may_ask && tarn__recorder_is_due(recorder)) {
    return learn(pool, steps, what);
  }
  if (!begins && steps->waited >= TARN__STEPS_BETWEEN) return false;
  steps->waited++;
  return begin(pool, steps, what, may_ask) == BEGUN && is_here(steps, what);
}

// Between two steps, or within one that is not this one. Then the step is not
// followed any more, or another one is.
static bool leave(tarn_pool *pool, tarn__pool_steps *steps,
                  const tarn__pool_note *what, bool may_ask) {
  bool begun = tarn__steps_have_begun(&steps->cursor);
  if (begun && steps->cursor.missed > BRANCHES) note_broken(steps);
  beginning how = begin(pool, steps, what, may_ask);
  if (how == BEGUN || (begun && how == UNKNOWN)) return how == BEGUN;
  if (steps->cursor.layout == NULL) return false;
  steps->base = pool->stats.live_bytes;
  tarn__steps_stop(pool, steps, true);
  steps->waited = 1;
  return false;
}

static bool seek_on(tarn_pool *pool, tarn__pool_steps *steps,
                    const tarn__pool_note *what, bool may_ask) {
  const tarn__pool_step_cursor *cursor = &steps->cursor;
  if (tarn__step_is(cursor->at, what)) return true;
  if (pass(steps, what)) return is_here(steps, what);
  if (is_quiet(steps) && what->serial == cursor->layout->serial) {
    if (leave(pool, steps, what, may_ask)) return is_here(steps, what);
    if (cursor->layout == NULL) return false;
  }
  if (branch(pool, steps, what)) return is_here(steps, what);
  tarn__steps_miss(pool, steps);
  return false;
}

// This thread makes a row that repeats, and together the threads make none that
// is about to, although there was time for it.
static bool parts(const tarn_pool *pool, const tarn__pool_steps *own) {
  const tarn__pool_recorder *all = &pool->steps.recorder;
  if (own == &pool->steps || !tarn__recorder_is_due(&own->recorder)) {
    return false;
  }
  uint64_t heard = all->count - all->first;
  bool promises = all->period != 0 && all->matched >= PROMISING;
  return !promises && heard >= (own->recorder.period + PROMISING) * ROWS;
}

// Each thread is followed by itself from now on.
static void part(tarn_pool *pool) {
  tarn__steps_forget_own(pool, &pool->steps);
  tarn__recorder_deinit(&pool->steps.recorder);
  pool->threads.apart = true;
}

// No step is followed. Until threads are followed by themselves, this one's own
// recorder hears its requests as well.
static tarn__pool_steps *seek_all(tarn_pool *pool, tarn__pool_steps *steps,
                                  const tarn__pool_note *what, bool may_ask) {
  if (may_ask && !pool->threads.apart && pool->threads.count > 1) {
    tarn__pool_steps *own = tarn__steps_of_thread(pool);
    if (parts(pool, own)) {
      part(pool);
      steps = own;
    }
  }
  return seek_begin(pool, steps, what, may_ask) ? steps : NULL;
}

tarn__pool_steps *tarn__steps_seek(tarn_pool *pool, tarn__pool_steps *steps,
                                   const tarn__pool_note *what, bool may_ask) {
  tarn__steps_skip(pool, steps);
  if (steps->cursor.layout == NULL) {
    return seek_all(pool, steps, what, may_ask);
  }
  return seek_on(pool, steps, what, may_ask) ? steps : NULL;
}

void tarn__steps_miss(tarn_pool *pool, tarn__pool_steps *steps) {
  tarn__pool_step_cursor *cursor = &steps->cursor;
  tarn__pool_step_layout *layout = cursor->layout;
  if (layout == NULL || ++cursor->missed <= layout->count / 2 + MISSES) return;
  tarn__steps_settle(pool, steps);
  uint64_t evidence = steps->recorder.evidence;
  bool worth_it = layout->rounds >= WORTH_ROUNDS;
  tarn__steps_stop(pool, steps, false);
  if (worth_it) note_broken(steps);
  if (worth_it) return;
  forget(pool, steps, 0);  // that was followed last
  tarn__recorder_restart(&steps->recorder, evidence * 2);
}

// --- beginning and end -----------------------------------------------------

void tarn__steps_init(tarn__pool_steps *steps) {
  tarn__recorder_restart(&steps->recorder, 0);
  tarn__steps_listen(steps, false);
}

void tarn__steps_deinit(tarn__pool_steps *steps) {
  for (size_t i = 0; i < steps->count; i++)
    tarn__step_layout_forget(steps->layouts[i]);
  tarn__steps_free_ground(&steps->ground);
  tarn__recorder_deinit(&steps->recorder);
}

void tarn__steps_break(tarn_pool *pool, const tarn__pool_piece *piece) {
  tarn__pool_step_layout *layout = piece->home;
  tarn__pool_steps *steps = layout->steps;
  size_t i = 0;
  while (steps->layouts[i] != layout)
    i++;
  tarn__steps_give_up(pool, steps);
  forget(pool, steps, i);
  tarn__recorder_restart(&steps->recorder, 0);
}

void tarn__steps_forget_own(tarn_pool *pool, tarn__pool_steps *steps) {
  tarn__steps_give_up(pool, steps);
  while (steps->count > 0)
    forget(pool, steps, steps->count - 1);
  tarn__recorder_restart(&steps->recorder, 0);
  tarn__recorder_forget(&steps->recorder);
  steps->put_off = steps->gave_up = steps->let_pass = steps->broken = 0;
}

void tarn__steps_forget(tarn_pool *pool) {
  for (size_t i = 0; i <= pool->threads.count; i++) {
    tarn__pool_steps *steps = tarn__steps_number(pool, i);
    if (steps != NULL) tarn__steps_forget_own(pool, steps);
  }
  pool->threads.apart = false;
}
