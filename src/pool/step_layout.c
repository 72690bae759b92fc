// The layout: planning it, putting pieces on it, finding in it.
#include "pool/step_layout.h"

#include <stdlib.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/state.h"

static const uint32_t NONE = UINT32_MAX;
static const size_t MOST_ALIGN = (size_t)1 << 21;

const tarn__pool_step_event tarn__never_comes = {
    .serial = UINT64_MAX,
};

// --- the draft: what of the step can be laid out ---------------------------

typedef struct draft {
  const tarn_pool *pool;
  const tarn__pool_recorder *recorder;
  size_t granule;
  size_t period;
  uint64_t serial;    // of the stream that has most of the requests
  uint32_t *span_of;  // by event, of a request and of its free
  tarn__pool_lifetime *spans;
  size_t room;   // of them: the requests of the step
  size_t count;  // of them
  size_t lost;   // of these: freed by other threads
  size_t size;   // of all, laid out
  size_t align;
  uint64_t digest;
} draft;

// The stream with more votes than all others together; without one, any stream.
static uint64_t vote(const draft *d) {
  uint64_t serial = 0;
  size_t votes = 0;
  for (size_t i = 0; i < d->period; i++) {
    const tarn__pool_heard *note = tarn__recorder_note(d->recorder, i);
    if (!tarn__heard_is_request(note)) continue;
    if (votes == 0) serial = note->serial;
    votes = note->serial == serial ? votes + 1 : votes - 1;
  }
  return serial;
}

static bool fits(const draft *d, const tarn__pool_heard *note) {
  return tarn__heard_is_request(note) && note->serial == d->serial &&
         (note->flags & TARN__HEARD_EXCLUDED) == 0 &&
         tarn__recorder_align(note) <= MOST_ALIGN;
}

static tarn_status add_requests(draft *d) {
  const tarn_pool *pool = d->pool;
  size_t granule = d->granule;
  for (size_t i = 0; i < d->period; i++) {
    const tarn__pool_heard *note = tarn__recorder_note(d->recorder, i);
    d->span_of[i] = NONE;
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
  if (i >= note->back) return d->span_of[i - note->back];
  bool goes_round = !d->recorder->is_single;
  return goes_round ? d->span_of[i + d->period - note->back] : NONE;
}

static void add_frees(draft *d) {
  for (size_t i = 0; i < d->period; i++) {
    const tarn__pool_heard *note = tarn__recorder_note(d->recorder, i);
    if (tarn__heard_is_request(note)) continue;
    uint32_t span = span_of_free(d, i, note);
    bool own = note->serial == d->serial || note->serial == 0;
    if (span == NONE || !own) continue;
    d->spans[span].to = (uint32_t)i;
    d->span_of[i] = span;
  }
}

// Blocks that other threads free live as long as they did at most. Where the
// threads wait for each other, such a free comes at one place all the same.
static void add_lost(draft *d) {
  for (size_t i = 0; i < d->count; i++) {
    tarn__pool_lifetime *span = &d->spans[i];
    if (span->to != NONE) continue;
    size_t life = tarn__recorder_lifetime(d->recorder, span->from);
    if (life == 0 || life >= d->period) continue;
    span->to = (uint32_t)((span->from + life) % d->period);
    span->lost = tarn__recorder_note(d->recorder, span->from)->lost;
    span->is_lost = true;
    d->lost++;
  }
}

// A block that is not freed within a step stays with the strategy.
static void drop_open_spans(draft *d) {
  size_t count = 0;
  for (size_t i = 0; i < d->count; i++) {
    tarn__pool_lifetime span = d->spans[i];
    d->span_of[span.from] = NONE;
    if (span.to == NONE) continue;
    d->span_of[span.from] = (uint32_t)count;
    if (!span.is_lost) d->span_of[span.to] = (uint32_t)count;
    d->spans[count++] = span;
  }
  d->count = count;
}

static size_t count_requests(const draft *d) {
  size_t count = 0;
  for (size_t i = 0; i < d->period; i++)
    count += tarn__heard_is_request(tarn__recorder_note(d->recorder, i));
  return count;
}

static tarn_status list_spans(draft *d) {
  d->room = count_requests(d);
  d->span_of = tarn__host_array(d->period, sizeof *d->span_of);
  d->spans = tarn__host_array(d->room, sizeof *d->spans);
  if (d->span_of == NULL || d->spans == NULL) return TARN_E_NOMEM;
  d->serial = vote(d);
  TARN__TRY(add_requests(d));
  add_frees(d);
  add_lost(d);
  drop_open_spans(d);
  // The others would count as misses in each step.
  size_t others = d->room - d->count;
  bool worth_it = d->count > 0 && d->count <= d->pool->current->steps &&
                  others <= d->count / 2;
  return worth_it ? TARN_OK : TARN_FULL;
}

static uint64_t mix(uint64_t digest, uint64_t value) {
  digest = (digest ^ value) * UINT64_C(0x9e3779b97f4a7c15);
  return digest ^ digest >> 29;
}

// Of all that decides about the layout.
static uint64_t digest_of(const draft *d) {
  uint64_t digest = mix(1, d->period);
  for (size_t i = 0; i < d->count; i++) {
    const tarn__pool_lifetime *span = &d->spans[i];
    uint64_t ends = (uint64_t)span->from << 32 | span->to;
    digest = mix(digest, tarn__recorder_note(d->recorder, span->from)->key);
    digest = mix(mix(digest, ends), span->is_lost);
  }
  return digest;
}

static void discard_draft(const draft *d) {
  tarn__host_free_array(d->span_of, d->period, sizeof *d->span_of);
  tarn__host_free_array(d->spans, d->room, sizeof *d->spans);
}

// --- the layout itself ------------------------------------------------------

void tarn__step_layout_forget(tarn__pool_step_layout *layout) {
  if (layout == NULL) return;
  tarn__host_free_array(layout->places, layout->count, sizeof *layout->places);
  tarn__host_free_array(layout->pieces, layout->count,
                        sizeof(tarn__pool_piece *));
  tarn__host_free_array(layout->events, layout->event_count + 1,
                        sizeof *layout->events);
  tarn__host_free_array(layout->place_of, layout->event_count,
                        sizeof *layout->place_of);
  tarn__host_free(layout, sizeof *layout);
}

static int by_offset(const void *x, const void *y) {
  const tarn__pool_step_place *a = x;
  const tarn__pool_step_place *b = y;
  return (a->offset > b->offset) - (a->offset < b->offset);
}

// By offset; |request| is the number of the span.
static void write_places(const draft *d, tarn__pool_step_layout *layout) {
  for (size_t i = 0; i < d->count; i++) {
    const tarn__pool_lifetime *span = &d->spans[i];
    const tarn__pool_heard *note = tarn__recorder_note(d->recorder, span->from);
    layout->places[i] = (tarn__pool_step_place){.offset = span->offset,
                                                .size = span->size,
                                                .requested = note->size,
                                                .tag = note->tag,
                                                .request = (uint32_t)i};
    layout->places[i].align = (uint32_t)tarn__recorder_align(note);
    layout->places[i].lost = span->is_lost;
    if (span->from < span->to) continue;
    layout->places[i].across = true;
    layout->across++;
    layout->across_bytes += note->size;
  }
  qsort(layout->places, layout->count, sizeof *layout->places, by_offset);
  size_t reach = 0;
  for (size_t i = 0; i < d->count; i++) {
    tarn__pool_step_place *place = &layout->places[i];
    size_t end = place->offset + place->size;
    if (end > reach) reach = end;
    place->reach = reach;
  }
}

// The places of the spans; |spans| is given away.
static void name_places(const draft *d, const tarn__pool_step_layout *layout) {
  for (size_t i = 0; i < layout->count; i++)
    d->spans[layout->places[i].request].size = i;
}

static tarn__pool_step_event event_of(const tarn__pool_heard *note) {
  size_t align = tarn__recorder_align(note);
  bool request = tarn__heard_is_request(note);
  return (tarn__pool_step_event){
      .size = note->size,
      .serial = note->serial | (request ? 0 : TARN__STEP_FREE),
      .align = (uint32_t)align,
      .tag = note->tag,
      .is_plain = request && note->serial == 0 && align == 0 && note->tag == 0,
  };
}

// Writes event |at|, of that span.
static void write_event(const draft *d, tarn__pool_step_layout *layout,
                        uint32_t at, uint32_t span,
                        const tarn__pool_step_event *event) {
  uint32_t which = (uint32_t)d->spans[span].size;
  tarn__pool_step_place *place = &layout->places[which];
  layout->events[at] = *event;
  layout->place_of[at] = which;
  if (tarn__step_is_free(event)) {
    place->release = at;
  } else {
    place->request = at;
    if (layout->first > at) layout->first = at;
  }
}

static int by_end(const void *x, const void *y) {
  const tarn__pool_lifetime *a = *(const tarn__pool_lifetime *const *)x;
  const tarn__pool_lifetime *b = *(const tarn__pool_lifetime *const *)y;
  if (a->to != b->to) return a->to > b->to ? 1 : -1;
  return (int32_t)(a->lost - b->lost) > 0 ? 1 : -1;
}

// Those that other threads free, by their end.
static void list_lost(const draft *d, const tarn__pool_lifetime **out) {
  size_t count = 0;
  for (size_t i = 0; i < d->count; i++)
    if (d->spans[i].is_lost) out[count++] = &d->spans[i];
  qsort(out, count, sizeof *out, by_end);
}

static void write_events(const draft *d, tarn__pool_step_layout *layout,
                         const tarn__pool_lifetime *const *lost) {
  const tarn__pool_lifetime *const *end = lost + d->lost;
  const tarn__pool_step_event gone = {.serial = d->serial | TARN__STEP_FREE};
  uint32_t at = 0;
  layout->first = layout->event_count;
  for (size_t i = 0; i < d->period; i++) {
    for (; lost < end && (*lost)->to == i; lost++) {
      write_event(d, layout, at++, (uint32_t)(*lost - d->spans), &gone);
    }
    if (d->span_of[i] == NONE) continue;
    tarn__pool_step_event event = event_of(tarn__recorder_note(d->recorder, i));
    write_event(d, layout, at++, d->span_of[i], &event);
  }
  layout->events[at] = tarn__never_comes;
}

static bool take_memory(tarn__pool_step_layout *layout) {
  layout->places = tarn__host_array(layout->count, sizeof *layout->places);
  layout->events =
      tarn__host_array(layout->event_count + 1, sizeof *layout->events);
  layout->place_of =
      tarn__host_array(layout->event_count, sizeof *layout->place_of);
  return layout->places != NULL && layout->events != NULL &&
         layout->place_of != NULL;
}

static tarn_status make_layout(draft *d, tarn__pool_step_layout **out) {
  TARN__TRY(tarn__step_offsets(d->spans, d->count, &d->size));
  tarn__pool_step_layout *layout = tarn__host_alloc(sizeof *layout);
  if (layout == NULL) return TARN_E_NOMEM;
  *layout = (tarn__pool_step_layout){.serial = d->serial,
                                     .size = d->size,
                                     .align = d->align,
                                     .count = d->count,
                                     .event_count = d->count * 2,
                                     .digest = d->digest};
  if (!take_memory(layout)) {
    tarn__step_layout_forget(layout);
    return TARN_E_NOMEM;
  }
  const tarn__pool_lifetime **lost =
      tarn__host_array(d->lost + 1, sizeof *lost);
  if (lost == NULL) {
    tarn__step_layout_forget(layout);
    return TARN_E_NOMEM;
  }
  write_places(d, layout);
  name_places(d, layout);
  list_lost(d, lost);
  write_events(d, layout, lost);
  tarn__host_free_array(lost, d->lost + 1, sizeof *lost);
  *out = layout;
  return TARN_OK;
}

static tarn__pool_step_layout *find_known(const draft *d,
                                          const tarn__pool_steps_known *known) {
  for (size_t i = 0; i < known->count; i++) {
    tarn__pool_step_layout *layout = known->list[i];
    if (layout->digest == d->digest && layout->count == d->count) return layout;
  }
  return NULL;
}

tarn_status tarn__step_layout_make(const tarn_pool *pool,
                                   const tarn__pool_recorder *recorder,
                                   size_t granule,
                                   const tarn__pool_steps_known *known,
                                   tarn__pool_step_layout **out_layout) {
  draft d = {.pool = pool,
             .recorder = recorder,
             .granule = granule,
             .period = recorder->period,
             .align = 1};
  *out_layout = NULL;
  tarn_status status = list_spans(&d);
  if (status == TARN_OK) {
    d.digest = digest_of(&d);
    *out_layout = find_known(&d, known);
    if (*out_layout == NULL) status = make_layout(&d, out_layout);
  }
  discard_draft(&d);
  return status;
}

// --- pieces -----------------------------------------------------------------

static void put_piece(tarn__pool_step_layout *layout, size_t i,
                      const tarn__pool_step_ground *ground) {
  const tarn__pool_step_place *place = &layout->places[i];
  tarn__pool_piece *piece = layout->pieces[i];
  piece->base = ground->address + place->offset;
  tarn__piece_set_address(piece, piece->base);
  piece->size = place->size - ground->padding;
  piece->requested = place->requested;
  piece->tag = (uint16_t)place->tag;
  piece->owner = ground->owner;
  piece->home = layout;
  piece->planned = true;
  piece->notes = 0;
  piece->waits_on = layout->serial;
}

// Ends pieces, some of which may be missing, that were never in use.
static void discard_pieces(tarn_pool *pool, tarn__pool_step_layout *layout) {
  for (size_t i = 0; layout->pieces != NULL && i < layout->count; i++) {
    if (layout->pieces[i] == NULL) break;
    tarn__pieces_leave(&pool->pieces, layout->pieces[i]);
  }
}

static bool take_pieces(tarn_pool *pool, tarn__pool_step_layout *layout) {
  layout->pieces = tarn__host_array(layout->count, sizeof(tarn__pool_piece *));
  bool made = layout->pieces != NULL;
  for (size_t i = 0; made && i < layout->count; i++) {
    layout->pieces[i] = tarn__pieces_take(&pool->pieces);
    made = layout->pieces[i] != NULL;
  }
  return made;
}

static void free_pieces(tarn__pool_step_layout *layout) {
  tarn__host_free_array(layout->pieces, layout->count,
                        sizeof(tarn__pool_piece *));
  layout->pieces = NULL;
}

bool tarn__step_layout_dress(tarn_pool *pool, tarn__pool_step_layout *layout,
                             const tarn__pool_step_ground *ground) {
  if (!take_pieces(pool, layout)) {
    discard_pieces(pool, layout);
    free_pieces(layout);
    return false;
  }
  for (size_t i = 0; i < layout->count; i++)
    put_piece(layout, i, ground);
  for (size_t i = 0; i < layout->event_count; i++)
    layout->events[i].piece = layout->pieces[layout->place_of[i]];
  return true;
}

void tarn__step_layout_undress(tarn_pool *pool,
                               tarn__pool_step_layout *layout) {
  if (layout->pieces == NULL) return;
  for (size_t i = 0; i < layout->count; i++) {
    tarn__pool_piece *piece = layout->pieces[i];
    piece->planned = piece->stranger = false;
    if (piece->live) {
      tarn__pieces_enter(&pool->pieces, piece);
    } else {
      tarn__freed_note(&pool->freed, piece);
      tarn__pieces_leave(&pool->pieces, piece);
    }
  }
  free_pieces(layout);
}

// --- finding ----------------------------------------------------------------

bool tarn__step_layout_matches(const tarn__pool_step_layout *layout,
                               const tarn__pool_step_event *at,
                               const tarn__pool_note *what) {
  if (at == tarn__step_layout_end(layout) || tarn__step_is_free(at)) {
    return false;
  }
  const tarn__pool_step_place *place = tarn__step_place_of(layout, at);
  return at->size == what->size && at->serial == what->serial &&
         place->align == what->align && place->tag == what->tag;
}

size_t tarn__step_layout_below(const tarn__pool_step_layout *layout,
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
// they may have to be skipped; not those that no place reaches beyond.
tarn__pool_piece *tarn__step_layout_around(const tarn__pool_step_layout *layout,
                                           tarn_addr address) {
  if (layout->pieces == NULL) return NULL;
  size_t low = tarn__step_layout_below(layout, address + 1);
  while (low-- > 0) {
    tarn__pool_piece *piece = layout->pieces[low];
    size_t offset = (size_t)(address - piece->address);
    if (piece->live && offset < piece->size) return piece;
    const tarn__pool_step_place *place = &layout->places[low];
    if (place->reach - place->offset <= offset) return NULL;
  }
  return NULL;
}

tarn__pool_piece *tarn__step_layout_at(const tarn__pool_step_layout *layout,
                                       tarn_addr address) {
  tarn__pool_piece *found = NULL;
  if (layout->pieces == NULL) return NULL;
  for (size_t i = tarn__step_layout_below(layout, address); i < layout->count;
       i++) {
    tarn__pool_piece *piece = layout->pieces[i];
    if (piece->address != address) break;
    if (found == NULL || piece->live) found = piece;
  }
  return found;
}

bool tarn__step_layout_expects(const tarn__pool_step_layout *layout,
                               const tarn__pool_step_event *at,
                               const tarn__pool_piece *piece) {
  const tarn__pool_step_event *e = at;
  for (size_t i = 0; i < layout->event_count; i++) {
    e = e == layout->events ? tarn__step_layout_end(layout) - 1 : e - 1;
    if (e->piece == piece) return !tarn__step_is_free(e);
  }
  return false;
}
