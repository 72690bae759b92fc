// The layout: setting it up, finding in it, striking it.
#include "pool/step_layout.h"

#include <stdlib.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/front.h"

static const uint32_t NONE = UINT32_MAX;
static const size_t MOST_ALIGN = (size_t)1 << 21;

// --- the draft: what of the step can be laid out ---------------------------

typedef struct draft {
  const tarn__pool_recorder *recorder;
  size_t period;
  uint64_t serial;    // of the stream that has most of the requests
  uint32_t *span_of;  // by event, of a request and of its free
  tarn__pool_lifetime *spans;
  size_t room;      // of them
  size_t count;     // of them
  size_t requests;  // of the step, including events that are not laid out
  size_t size;      // of all, laid out
  size_t align;
} draft;

static bool is_request(const tarn__pool_heard *note) {
  return note->back == 0;
}

// The stream with more votes than all others together; without one, any stream.
static uint64_t vote(const draft *d) {
  uint64_t serial = 0;
  size_t votes = 0;
  for (size_t i = 0; i < d->period; i++) {
    const tarn__pool_heard *note = tarn__recorder_note(d->recorder, i);
    if (!is_request(note)) continue;
    if (votes == 0) serial = note->serial;
    votes = note->serial == serial ? votes + 1 : votes - 1;
  }
  return serial;
}

static bool fits(const draft *d, const tarn__pool_heard *note) {
  return is_request(note) && note->serial == d->serial && !note->excluded &&
         tarn__recorder_align(note) <= MOST_ALIGN && d->count < d->room;
}

static tarn_status add_requests(draft *d, const tarn_pool *pool,
                                size_t granule) {
  for (size_t i = 0; i < d->period; i++) {
    const tarn__pool_heard *note = tarn__recorder_note(d->recorder, i);
    d->span_of[i] = NONE;
    d->requests += is_request(note) ? 1 : 0;
    if (!fits(d, note) || tarn__front_is_direct(pool, note->size)) continue;
    tarn__pool_lifetime *span = &d->spans[d->count];
    *span = (tarn__pool_lifetime){.from = (uint32_t)i, .to = NONE};
    size_t align = tarn__recorder_align(note);
    span->align = align > granule ? align : granule;
    if (!tarn_size_add(note->size, pool->padding, &span->size) ||
        !tarn_size_align_up(span->size, granule, &span->size)) {
      return TARN_FULL;
    }
    if (span->align > d->align) d->align = span->align;
    d->span_of[i] = (uint32_t)d->count++;
  }
  return TARN_OK;
}

// The span of the request that event |i|, a free, belongs to.
static uint32_t span_of_free(const draft *d, size_t i,
                             const tarn__pool_heard *note) {
  if (note->back >= d->period) return NONE;
  size_t from = i >= note->back ? i - note->back : i + d->period - note->back;
  return d->span_of[from];
}

static void add_frees(draft *d) {
  for (size_t i = 0; i < d->period; i++) {
    const tarn__pool_heard *note = tarn__recorder_note(d->recorder, i);
    if (is_request(note)) continue;
    uint32_t span = span_of_free(d, i, note);
    bool own = note->serial == d->serial || note->serial == 0;
    if (span == NONE || !own) continue;
    d->spans[span].to = (uint32_t)i;
    d->span_of[i] = span;
  }
}

// A block that is not freed within a step stays with the strategy.
static void drop_open_spans(draft *d) {
  size_t count = 0;
  for (size_t i = 0; i < d->count; i++) {
    tarn__pool_lifetime span = d->spans[i];
    d->span_of[span.from] = NONE;
    if (span.to == NONE) continue;
    d->span_of[span.from] = d->span_of[span.to] = (uint32_t)count;
    d->spans[count++] = span;
  }
  d->count = count;
}

static tarn_status make_draft(draft *d, const tarn_pool *pool, size_t granule) {
  d->room = d->period / 2;
  d->span_of = tarn__host_array(d->period, sizeof *d->span_of);
  d->spans = tarn__host_array(d->room, sizeof *d->spans);
  if (d->span_of == NULL || d->spans == NULL) return TARN_E_NOMEM;
  d->serial = vote(d);
  TARN__TRY(add_requests(d, pool, granule));
  add_frees(d);
  drop_open_spans(d);
  // The others would count as misses in each step.
  size_t others = d->requests - d->count;
  bool worth_it = d->count > 0 && d->count <= pool->current->steps &&
                  others <= d->count / 2;
  return worth_it ? tarn__step_offsets(d->spans, d->count, &d->size)
                  : TARN_FULL;
}

static void discard_draft(const draft *d) {
  tarn__host_free_array(d->span_of, d->period, sizeof *d->span_of);
  tarn__host_free_array(d->spans, d->room, sizeof *d->spans);
}

// --- the layout itself ------------------------------------------------------

void tarn__step_layout_forget(tarn__pool_step_layout *layout) {
  if (layout == NULL) return;
  tarn__host_free_array(layout->pieces, layout->count,
                        sizeof(tarn__pool_piece *));
  tarn__host_free_array(layout->events, layout->event_count + 1,
                        sizeof *layout->events);
  tarn__host_free(layout, sizeof *layout);
}

// Ends a layout whose pieces, some of which may be missing, were never in use.
static void discard_layout(tarn_pool *pool, tarn__pool_step_layout *layout) {
  for (size_t i = 0; i < layout->count && layout->pieces != NULL; i++) {
    if (layout->pieces[i] == NULL) break;
    tarn__pieces_leave(&pool->pieces, layout->pieces[i]);
  }
  tarn__step_layout_forget(layout);
}

// With pieces in the order of the draft's spans. NULL: no host memory.
static tarn__pool_step_layout *make_layout(const draft *d, tarn_pool *pool) {
  tarn__pool_step_layout *layout = tarn__host_alloc(sizeof *layout);
  if (layout == NULL) return NULL;
  *layout = (tarn__pool_step_layout){.owner = pool->current,
                                     .serial = d->serial,
                                     .size = d->size,
                                     .count = d->count,
                                     .event_count = d->count * 2};
  layout->pieces = tarn__host_array(layout->count, sizeof(tarn__pool_piece *));
  layout->events =
      tarn__host_array(layout->event_count + 1, sizeof *layout->events);
  bool made = layout->pieces != NULL && layout->events != NULL;
  for (size_t i = 0; made && i < layout->count; i++) {
    layout->pieces[i] = tarn__pieces_take(&pool->pieces);
    made = layout->pieces[i] != NULL;
  }
  if (made) return layout;
  discard_layout(pool, layout);
  return NULL;
}

static void place_piece(const tarn_pool *pool, tarn__pool_step_layout *layout,
                        const tarn__pool_lifetime *span,
                        const tarn__pool_heard *note, tarn__pool_piece *piece) {
  piece->address = piece->base = layout->address + span->offset;
  piece->size = span->size - pool->padding;
  piece->requested = note->size;
  piece->tag = note->tag;
  piece->owner = layout->owner;
  piece->home = layout;
  piece->waits_on = layout->serial;
}

static void write_events(const draft *d, tarn__pool_step_layout *layout) {
  tarn__pool_step_event *event = layout->events;
  for (size_t i = 0; i < d->period; i++) {
    if (d->span_of[i] == NONE) continue;
    const tarn__pool_heard *note = tarn__recorder_note(d->recorder, i);
    bool request = is_request(note);
    *event++ = (tarn__pool_step_event){
        .size = note->size,
        .serial = note->serial | (request ? 0 : TARN__STEP_FREE),
        .align = (uint32_t)tarn__recorder_align(note),
        .tag = note->tag,
        .is_plain =
            request && note->serial == 0 && note->align == 0 && note->tag == 0,
        .piece = layout->pieces[d->span_of[i]],
    };
  }
  *event = tarn__never_comes;
}

static int by_address(const void *x, const void *y) {
  const tarn__pool_piece *a = *(tarn__pool_piece *const *)x;
  const tarn__pool_piece *b = *(tarn__pool_piece *const *)y;
  return (a->address > b->address) - (a->address < b->address);
}

static void dress(tarn_pool *pool, const draft *d,
                  tarn__pool_step_layout *layout) {
  for (size_t i = 0; i < d->count; i++) {
    const tarn__pool_lifetime *span = &d->spans[i];
    place_piece(pool, layout, span,
                tarn__recorder_note(d->recorder, span->from),
                layout->pieces[i]);
  }
  write_events(d, layout);
  qsort(layout->pieces, layout->count, sizeof(tarn__pool_piece *), by_address);
  pool->cursor = (tarn__pool_step_cursor){
      .at = layout->events, .settled = layout->events, .layout = layout};
}

// The strategy may have released the lock to ask the device: then others may
// have gone on, and the step does not end here any more, or have made the
// recorder forget it.
static tarn_status find_place(tarn_pool *pool, const draft *d,
                              tarn__pool_step_layout *layout) {
  tarn__pool_strategy *owner = layout->owner;
  uint64_t events = d->recorder->count;
  tarn__pool_request request = {
      .size = d->size, .align = d->align, .serial = d->serial};
  owner->inside++;
  tarn_status status = owner->type->install_layout(owner, &request, layout);
  bool same = owner == pool->current && pool->cursor.layout == NULL &&
              d->recorder->count == events && d->recorder->period == d->period;
  if (status == TARN_OK && !same) {
    owner->type->drop_layout(owner, layout);
    status = TARN_FULL;
  }
  (void)tarn__front_end_call(pool, owner);
  return status;
}

static tarn_status install(tarn_pool *pool, draft *d) {
  tarn__pool_strategy *owner = pool->current;
  TARN__TRY(make_draft(d, pool, owner->type->granule(owner)));
  tarn__pool_step_layout *layout = make_layout(d, pool);
  if (layout == NULL) return TARN_E_NOMEM;
  tarn_status status = find_place(pool, d, layout);
  if (status == TARN_OK) {
    dress(pool, d, layout);
  } else {
    discard_layout(pool, layout);
  }
  return status;
}

void tarn__step_layout_install(tarn_pool *pool) {
  tarn__pool_recorder *recorder = &pool->recorder;
  draft d = {.recorder = recorder, .period = recorder->period, .align = 1};
  recorder->due = 0;  // for threads that enter while the lock is released
  uint64_t evidence = recorder->evidence;
  bool stands = install(pool, &d) == TARN_OK;
  tarn__recorder_restart(recorder, stands ? evidence : evidence * 2);
  discard_draft(&d);
}

void tarn__step_layout_drop(tarn_pool *pool) {
  tarn__pool_step_layout *layout = pool->cursor.layout;
  // A layout that is due, or is being installed, is not installed then.
  tarn__recorder_restart(&pool->recorder, 0);
  if (layout == NULL) return;
  tarn__step_cursor_settle(pool);
  pool->cursor = (tarn__pool_step_cursor){.at = &tarn__never_comes,
                                          .settled = &tarn__never_comes};
  layout->owner->type->drop_layout(layout->owner, layout);
  for (size_t i = 0; i < layout->count; i++) {
    tarn__pool_piece *piece = layout->pieces[i];
    if (piece->live) {
      tarn__pieces_enter(&pool->pieces, piece);
    } else {
      tarn__freed_note(&pool->freed, piece);
      tarn__pieces_leave(&pool->pieces, piece);
    }
  }
  tarn__step_layout_forget(layout);
}

// The pieces that begin below |address|.
static size_t count_below(const tarn__pool_step_layout *layout,
                          tarn_addr address) {
  size_t low = 0;
  size_t high = layout->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (layout->pieces[middle]->address < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Some of the pieces that begin below are live at other times of the step, so
// they may have to be skipped.
tarn__pool_piece *tarn__step_layout_around(const tarn__pool_step_layout *layout,
                                           tarn_addr address) {
  if (address - layout->address >= layout->size) return NULL;
  size_t low = count_below(layout, address + 1);
  while (low-- > 0) {
    tarn__pool_piece *piece = layout->pieces[low];
    if (piece->live && address - piece->address < piece->size) return piece;
  }
  return NULL;
}

// --- the invariants --------------------------------------------------------

// Whether the step has |piece| out where it stands now.
static bool is_expected(const tarn__pool_step_cursor *cursor,
                        const tarn__pool_piece *piece) {
  const tarn__pool_step_event *e = cursor->at;
  const tarn__pool_step_event *begin = cursor->layout->events;
  for (size_t i = 0; i < cursor->layout->event_count; i++) {
    e = e == begin ? begin + cursor->layout->event_count - 1 : e - 1;
    if (e->piece == piece) return !tarn__step_is_free(e);
  }
  return false;
}

static tarn_status check_place(const tarn__pool_step_cursor *cursor,
                               const tarn__pool_piece *piece, tarn_addr *end) {
  const tarn__pool_step_layout *layout = cursor->layout;
  size_t from = (size_t)(piece->address - layout->address);
  const char *wrong = NULL;
  if (from > layout->size || piece->size > layout->size - from) {
    wrong = "exceeds the layout";
  } else if (piece->live && piece->address < *end) {
    wrong = "overlaps another that is out";
  } else if (piece->live && !is_expected(cursor, piece)) {
    wrong = "is out where the step does not have it";
  }
  if (piece->live) *end = piece->address + piece->size;
  if (wrong == NULL) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT, "layout: piece %u %s", piece->id, wrong);
}

tarn_status tarn__step_layout_check(const tarn__pool_step_cursor *cursor,
                                    size_t *idle) {
  const tarn__pool_step_layout *layout = cursor->layout;
  tarn_addr end = 0;
  if (layout == NULL) return TARN_OK;
  for (size_t i = 0; i < layout->count; i++) {
    TARN__TRY(check_place(cursor, layout->pieces[i], &end));
    *idle += layout->pieces[i]->live ? 0 : 1;
  }
  return TARN_OK;
}

// --- the cursor ------------------------------------------------------------
//
// The event that is expected next, and the statistics of the events that were
// served. A request or a free that comes as expected changes nothing but its
// piece and the place in the step. What it does to the pool's sums follows from
// that place, and is worked out when the sums are read.

const tarn__pool_step_event tarn__never_comes = {
    .serial = UINT64_MAX,
};

static void run(tarn_pool *pool, const tarn__pool_step_event *from,
                const tarn__pool_step_event *to) {
  tarn_pool_stats *stats = &pool->stats;
  bool counted = tarn__front_counts(pool, TARN_COUNT_TAGS);
  for (; from < to; from++) {
    if (!tarn__step_is_free(from)) {
      from->piece->counted = counted;
      tarn__front_count_live(pool, from->piece, false);
      stats->allocs++;
      stats->hits++;
    } else {
      tarn__front_count_dead(pool, from->piece);
      from->piece->owner->live--;
      stats->frees++;
    }
  }
}

// Of whole steps only the first can raise a peak.
void tarn__step_cursor_settle(tarn_pool *pool) {
  tarn__pool_step_cursor *cursor = &pool->cursor;
  const tarn__pool_step_layout *layout = cursor->layout;
  if (layout == NULL) return;
  const tarn__pool_step_event *begin = layout->events;
  const tarn__pool_step_event *end = begin + layout->event_count;
  if (cursor->turns > 0) {
    run(pool, cursor->settled, end);
    cursor->settled = begin;
    cursor->turns--;
  }
  if (cursor->turns > 0) {
    run(pool, begin, end);
    uint64_t more = (cursor->turns - 1) * layout->count;
    pool->stats.allocs += more;
    pool->stats.hits += more;
    pool->stats.frees += more;
    cursor->turns = 0;
  }
  run(pool, cursor->settled, cursor->at);
  cursor->settled = cursor->at;
}

bool tarn__step_cursor_turn(tarn__pool_step_cursor *cursor) {
  tarn__pool_step_layout *layout = cursor->layout;
  if (layout == NULL || cursor->at != layout->events + layout->event_count) {
    return false;
  }
  cursor->at = layout->events;
  cursor->turns++;
  cursor->missed = 0;
  layout->rounds++;
  return true;
}

void tarn__step_cursor_skip(tarn__pool_step_cursor *cursor) {
  if (cursor->layout == NULL) return;
  for (;;) {
    if (tarn__step_cursor_turn(cursor)) {  // nothing is left to count
      cursor->settled = cursor->at;
      cursor->turns = 0;
    }
    bool early = tarn__step_is_free(cursor->at) && !cursor->at->piece->live;
    if (!early) return;
    cursor->settled = ++cursor->at;
  }
}

// Unexpected requests in one step, in addition to half of the expected ones.
enum { MISSES = 64 };

// Steps after which a layout has been worth it.
enum { WORTH_ROUNDS = 8 };

void tarn__step_cursor_miss(tarn_pool *pool) {
  tarn__pool_step_cursor *cursor = &pool->cursor;
  const tarn__pool_step_layout *layout = cursor->layout;
  if (layout == NULL || ++cursor->missed <= layout->count / 2 + MISSES) return;
  bool worth_it = layout->rounds >= WORTH_ROUNDS;
  uint64_t evidence = pool->recorder.evidence * 2;
  tarn__step_layout_drop(pool);
  if (!worth_it) tarn__recorder_restart(&pool->recorder, evidence);
}

tarn__pool_piece *tarn__front_at(const tarn_pool *pool, tarn_addr address) {
  const tarn__pool_step_layout *layout = pool->cursor.layout;
  tarn__pool_piece *found = tarn__pieces_find(&pool->pieces, address);
  if (found != NULL || layout == NULL) return found;
  for (size_t i = count_below(layout, address); i < layout->count; i++) {
    tarn__pool_piece *piece = layout->pieces[i];
    if (piece->address != address) break;
    if (found == NULL || piece->live) found = piece;
  }
  return found;
}
