// The stage: setting it up, finding in it, striking it.
#include "pool/stage.h"

#include <stdlib.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/front.h"
#include "pool/layout.h"

static const uint32_t NOBODY = UINT32_MAX;
static const size_t MOST_ALIGN = (size_t)1 << 21;

// --- the draft: what of the step can be laid out ---------------------------

typedef struct draft {
  const tarn__recorder *recorder;
  size_t period;
  uint64_t serial;    // of the stream that has most of the requests
  uint32_t *span_of;  // by event, of a request and of its free
  tarn__stay *spans;
  size_t room;      // of them
  size_t count;     // of them
  size_t requests;  // of the step, those included that are not laid out
  size_t size;      // of all, laid out
  size_t align;
} draft;

static bool is_request(const tarn__note *note) {
  return note->back == 0;
}

// Whoever outvotes all others together comes out; else anybody.
static uint64_t vote(const draft *d) {
  uint64_t serial = 0;
  size_t votes = 0;
  for (size_t i = 0; i < d->period; i++) {
    const tarn__note *note = tarn__recorder_note(d->recorder, i);
    if (!is_request(note)) continue;
    if (votes == 0) serial = note->serial;
    votes = note->serial == serial ? votes + 1 : votes - 1;
  }
  return serial;
}

static bool fits(const draft *d, const tarn__note *note) {
  return is_request(note) && note->serial == d->serial &&
         note->align <= MOST_ALIGN && d->count < d->room;
}

static tarn_status add_requests(draft *d, const tarn_pool *pool,
                                size_t granule) {
  for (size_t i = 0; i < d->period; i++) {
    const tarn__note *note = tarn__recorder_note(d->recorder, i);
    d->span_of[i] = NOBODY;
    d->requests += is_request(note) ? 1 : 0;
    if (!fits(d, note) || tarn__front_is_direct(pool, note->size)) continue;
    tarn__stay *span = &d->spans[d->count];
    *span = (tarn__stay){.from = (uint32_t)i, .to = NOBODY};
    span->align = note->align > granule ? note->align : granule;
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
static uint32_t span_of_free(const draft *d, size_t i, const tarn__note *note) {
  if (note->back >= d->period) return NOBODY;
  size_t from = i >= note->back ? i - note->back : i + d->period - note->back;
  return d->span_of[from];
}

static void add_frees(draft *d) {
  for (size_t i = 0; i < d->period; i++) {
    const tarn__note *note = tarn__recorder_note(d->recorder, i);
    if (is_request(note)) continue;
    uint32_t span = span_of_free(d, i, note);
    bool own = note->serial == d->serial || note->serial == 0;
    if (span == NOBODY || !own) continue;
    d->spans[span].to = (uint32_t)i;
    d->span_of[i] = span;
  }
}

// What is not freed within a step stays the strategy's.
static void drop_open_spans(draft *d) {
  size_t count = 0;
  for (size_t i = 0; i < d->count; i++) {
    tarn__stay span = d->spans[i];
    d->span_of[span.from] = NOBODY;
    if (span.to == NOBODY) continue;
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
  tarn_status status = add_requests(d, pool, granule);
  if (status != TARN_OK) return status;
  add_frees(d);
  drop_open_spans(d);
  // Those that are not would count as misses in each step.
  size_t others = d->requests - d->count;
  bool worth_it = d->count > 0 && d->count <= pool->current->steps &&
                  others <= d->count / 2;
  return worth_it ? tarn__layout(d->spans, d->count, &d->size) : TARN_FULL;
}

static void discard_draft(const draft *d) {
  tarn__host_free_array(d->span_of, d->period, sizeof *d->span_of);
  tarn__host_free_array(d->spans, d->room, sizeof *d->spans);
}

// --- the stage itself ------------------------------------------------------

void tarn__stage_forget(tarn__stage *stage) {
  if (stage == NULL) return;
  tarn__host_free_array(stage->pieces, stage->count, sizeof(tarn__piece *));
  tarn__host_free_array(stage->events, stage->event_count + 1,
                        sizeof *stage->events);
  tarn__host_free(stage, sizeof *stage);
}

static tarn__stage *make_stage(const draft *d, tarn__strategy *owner) {
  tarn__stage *stage = tarn__host_alloc(sizeof *stage);
  if (stage == NULL) return NULL;
  *stage = (tarn__stage){.owner = owner, .serial = d->serial, .size = d->size};
  stage->count = d->count;
  stage->event_count = d->count * 2;
  stage->pieces = tarn__host_array(stage->count, sizeof(tarn__piece *));
  stage->events =
      tarn__host_array(stage->event_count + 1, sizeof *stage->events);
  if (stage->pieces != NULL && stage->events != NULL) return stage;
  tarn__stage_forget(stage);
  return NULL;
}

static void leave_pieces(tarn_pool *pool, const tarn__stage *stage,
                         size_t count) {
  while (count-- > 0)
    tarn__pieces_leave(&pool->pieces, stage->pieces[count]);
}

// In the order of the draft's spans.
static bool take_pieces(tarn_pool *pool, tarn__stage *stage) {
  for (size_t i = 0; i < stage->count; i++) {
    stage->pieces[i] = tarn__pieces_take(&pool->pieces);
    if (stage->pieces[i] != NULL) continue;
    leave_pieces(pool, stage, i);
    return false;
  }
  return true;
}

static void place_piece(const tarn_pool *pool, tarn__stage *stage,
                        const tarn__stay *span, const tarn__note *note,
                        tarn__piece *piece) {
  piece->address = piece->base = stage->address + span->offset;
  piece->size = span->size - pool->padding;
  piece->requested = note->size;
  piece->tag = note->tag;
  piece->owner = stage->owner;
  piece->home = stage;
  piece->waits_on = stage->serial;
}

static void write_events(const draft *d, tarn__stage *stage) {
  tarn__stage_event *event = stage->events;
  for (size_t i = 0; i < d->period; i++) {
    if (d->span_of[i] == NOBODY) continue;
    const tarn__note *note = tarn__recorder_note(d->recorder, i);
    bool request = is_request(note);
    *event++ = (tarn__stage_event){
        .size = note->size,
        .serial = note->serial | (request ? 0 : TARN__STAGE_FREE),
        .align = (uint32_t)note->align,
        .tag = (uint16_t)note->tag,
        .is_plain =
            request && note->serial == 0 && note->align == 0 && note->tag == 0,
        .piece = stage->pieces[d->span_of[i]],
    };
  }
  *event = tarn__never_comes;
}

static int by_address(const void *x, const void *y) {
  const tarn__piece *a = *(tarn__piece *const *)x;
  const tarn__piece *b = *(tarn__piece *const *)y;
  return (a->address > b->address) - (a->address < b->address);
}

static void dress(tarn_pool *pool, const draft *d, tarn__stage *stage) {
  for (size_t i = 0; i < d->count; i++) {
    const tarn__stay *span = &d->spans[i];
    place_piece(pool, stage, span, tarn__recorder_note(d->recorder, span->from),
                stage->pieces[i]);
  }
  write_events(d, stage);
  qsort(stage->pieces, stage->count, sizeof(tarn__piece *), by_address);
  pool->play = (tarn__play){
      .at = stage->events, .settled = stage->events, .stage = stage};
}

// The strategy may have let go of the lock to ask the device: then others may
// have gone on, and the step does not end here any more, or have made the
// recorder forget it.
static tarn_status find_place(tarn_pool *pool, const draft *d,
                              tarn__stage *stage) {
  tarn__strategy *owner = stage->owner;
  uint64_t events = d->recorder->count;
  tarn__request request = {
      .size = d->size, .align = d->align, .serial = d->serial};
  owner->inside++;
  tarn_status status = owner->type->set_up(owner, &request, stage);
  bool same = owner == pool->current && pool->play.stage == NULL &&
              d->recorder->count == events && d->recorder->period == d->period;
  if (status == TARN_OK && !same) {
    owner->type->strike(owner, stage);
    status = TARN_FULL;
  }
  if (owner != pool->current) (void)owner->type->trim(owner, 0, 0);
  owner->inside--;
  tarn__front_retire(pool, owner);
  return status;
}

static tarn_status set_up(tarn_pool *pool, draft *d) {
  tarn__strategy *owner = pool->current;
  tarn_status status = make_draft(d, pool, owner->type->granule(owner));
  if (status != TARN_OK) return status;
  tarn__stage *stage = make_stage(d, owner);
  if (stage == NULL) return TARN_E_NOMEM;
  if (!take_pieces(pool, stage)) {
    tarn__stage_forget(stage);
    return TARN_E_NOMEM;
  }
  status = find_place(pool, d, stage);
  if (status == TARN_OK) {
    dress(pool, d, stage);
  } else {
    leave_pieces(pool, stage, stage->count);
    tarn__stage_forget(stage);
  }
  return status;
}

void tarn__stage_set_up(tarn_pool *pool) {
  tarn__recorder *recorder = &pool->recorder;
  draft d = {.recorder = recorder, .period = recorder->period, .align = 1};
  recorder->due = 0;  // for whoever comes while the lock is let go
  uint64_t evidence = recorder->evidence;
  bool stands = set_up(pool, &d) == TARN_OK;
  tarn__recorder_restart(recorder, stands ? evidence : evidence * 2);
  discard_draft(&d);
}

void tarn__stage_strike(tarn_pool *pool) {
  tarn__stage *stage = pool->play.stage;
  // Of one that is due, or is just being set up, nothing comes then.
  tarn__recorder_restart(&pool->recorder, 0);
  if (stage == NULL) return;
  tarn__play_settle(pool);
  pool->play =
      (tarn__play){.at = &tarn__never_comes, .settled = &tarn__never_comes};
  stage->owner->type->strike(stage->owner, stage);
  for (size_t i = 0; i < stage->count; i++) {
    tarn__piece *piece = stage->pieces[i];
    if (piece->live) {
      tarn__pieces_enter(&pool->pieces, piece);
    } else {
      tarn__freed_note(&pool->freed, piece);
      tarn__pieces_leave(&pool->pieces, piece);
    }
  }
  tarn__stage_forget(stage);
}

tarn__piece *tarn__stage_find(const tarn__stage *stage, tarn_addr address) {
  size_t low = 0;
  size_t high = stage->count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (stage->pieces[middle]->address < address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  tarn__piece *found = NULL;
  for (; low < stage->count && stage->pieces[low]->address == address; low++) {
    if (found == NULL || stage->pieces[low]->live) found = stage->pieces[low];
  }
  return found;
}

// Of the pieces that begin below some are out at other times of the step, so
// that they may have to be passed over.
tarn__piece *tarn__stage_around(const tarn__stage *stage, tarn_addr address) {
  size_t low = 0;
  size_t high = stage->count;
  if (address - stage->address >= stage->size) return NULL;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (stage->pieces[middle]->address <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  while (low-- > 0) {
    tarn__piece *piece = stage->pieces[low];
    if (piece->live && address - piece->address < piece->size) return piece;
  }
  return NULL;
}

// --- the invariants --------------------------------------------------------

// Whether the step has |piece| out where it stands now.
static bool is_expected(const tarn__play *play, const tarn__piece *piece) {
  const tarn__stage_event *e = play->at;
  const tarn__stage_event *begin = play->stage->events;
  for (size_t i = 0; i < play->stage->event_count; i++) {
    e = e == begin ? begin + play->stage->event_count - 1 : e - 1;
    if (e->piece == piece) return !tarn__stage_is_free(e);
  }
  return false;
}

static tarn_status check_place(const tarn__play *play, const tarn__piece *piece,
                               tarn_addr *end) {
  const tarn__stage *stage = play->stage;
  size_t from = (size_t)(piece->address - stage->address);
  const char *wrong = NULL;
  if (from > stage->size || piece->size > stage->size - from) {
    wrong = "exceeds the stage";
  } else if (piece->live && piece->address < *end) {
    wrong = "overlaps another that is out";
  } else if (piece->live && !is_expected(play, piece)) {
    wrong = "is out where the step does not have it";
  }
  if (piece->live) *end = piece->address + piece->size;
  if (wrong == NULL) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT, "stage: piece %u %s", piece->id, wrong);
}

tarn_status tarn__stage_check(const tarn__play *play, size_t *idle) {
  const tarn__stage *stage = play->stage;
  tarn_addr end = 0;
  if (stage == NULL) return TARN_OK;
  for (size_t i = 0; i < stage->count; i++) {
    tarn_status status = check_place(play, stage->pieces[i], &end);
    if (status != TARN_OK) return status;
    *idle += stage->pieces[i]->live ? 0 : 1;
  }
  return TARN_OK;
}
