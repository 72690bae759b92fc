#include "support/synced_model.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run.h"
#include "synced/routes.h"

sm_now sm_now_at;
tarn_place sm_places[SM_PLACES];
size_t sm_place_count;

// The text of an event lives for the call only.
typedef struct told {
  tarn_synced_event event;
  char name[16];
} told;

static told heard[SM_EVENTS];
static size_t heard_count;

// ---------------------------------------------------------------------------
// Texts
// ---------------------------------------------------------------------------

void sm_fail(const char *format, ...) {
  char text[600];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  fprintf(stderr, "seed %lu, operation %lu, %s: %s; last error: %s\n",
          sm_now_at.seed, sm_now_at.operation, sm_now_at.what, text,
          tarn_last_error());
  for (size_t i = 0; i < heard_count && i < 20; i++) {
    const tarn_synced_event *e = &heard[i].event;
    fprintf(stderr, "  %s %u -> %u, %zu bytes at %zu\n",
            tarn_synced_happening_name(e->what), sm_place_index(e->from),
            sm_place_index(e->to), e->size, e->offset);
  }
  ck_abort_msg("seed %lu, operation %lu, %s: %s", sm_now_at.seed,
               sm_now_at.operation, sm_now_at.what, text);
  abort();
}

void sm_status(tarn_status got, tarn_status expected) {
  if (got != expected) {
    sm_fail("%s, not %s", tarn_status_name(got), tarn_status_name(expected));
  }
}

unsigned sm_place_index(tarn_place place) {
  tarn_place wanted = tarn__route_place(place);
  for (unsigned i = 0; i < sm_place_count; i++) {
    if (tarn_place_equal(sm_places[i], wanted)) return i;
  }
  return SM_PLACES;
}

// ---------------------------------------------------------------------------
// What is true
// ---------------------------------------------------------------------------

size_t sm_count_lost(const sm_root *r, size_t offset, size_t size) {
  size_t count = 0;
  for (size_t i = offset; i < offset + size; i++)
    count += sm_is_lost(r, i);
  return count;
}

bool sm_any_lost(const sm_root *r, size_t offset, size_t size) {
  return sm_count_lost(r, offset, size) > 0;
}

static bool meets(const sm_open *o, size_t offset, size_t size) {
  return o->open && o->size > 0 && size > 0 && o->offset < offset + size &&
         offset < o->offset + o->size;
}

uint32_t sm_conflicts(const sm_root *r, size_t offset, size_t size,
                      bool writes) {
  uint32_t places = 0;
  for (size_t i = 0; i < SM_OPENS; i++) {
    const sm_open *o = &r->opens[i];
    if (!meets(o, offset, size)) continue;
    if (writes || o->mode != TARN_READ) places |= 1u << o->place;
  }
  return places;
}

size_t sm_open_at(const sm_root *r, unsigned place) {
  size_t count = 0;
  for (size_t i = 0; i < SM_OPENS; i++) {
    const sm_open *o = &r->opens[i];
    if (!o->open || o->size == 0) continue;
    count += place == SM_PLACES || o->place == place;
  }
  return count;
}

// A place counts if it has all that was written.
tarn_synced_state sm_head(const sm_root *r, size_t offset, size_t size) {
  uint32_t where = UINT32_MAX;
  bool written = false;
  for (size_t i = offset; i < offset + size; i++) {
    if (!r->written[i]) continue;
    written = true;
    where &= r->valid[i];
  }
  if (!written) return TARN_UNINITIALIZED;
  bool host = (where & 1) != 0;
  bool device = r->device != 0 && (where >> r->device & 1) != 0;
  if (host && device) return TARN_SYNCED;
  if (host) return TARN_HEAD_AT_CPU;
  return device ? TARN_HEAD_AT_GPU : TARN_HEAD_ELSEWHERE;
}

// ---------------------------------------------------------------------------
// What has to happen
// ---------------------------------------------------------------------------

void sm_need_nothing(sm_root *r) {
  memset(r->need, 0, sizeof r->need);
  memset(r->zero, 0, sizeof r->zero);
  r->told_lost = 0;
}

static bool is_stale(const sm_root *r, unsigned place, size_t i) {
  return r->written[i] && (r->valid[i] >> place & 1) == 0;
}

// Whether copies may be made into what stands at |place|.
static bool may_be_filled(const sm_outside *x) {
  if ((x->flags & TARN_WRAP_READ_ONLY) != 0) return false;
  return x->deleter || (x->flags & (TARN_WRAP_FILL | TARN_WRAP_SYNC_BACK)) != 0;
}

// Bytes that were never written come back as zeros.
void sm_need_back(sm_root *r, unsigned place) {
  for (size_t i = 0; i < r->size; i++) {
    if (is_stale(r, place, i) && r->valid[i] != 0) r->need[i] |= 1u << place;
    if (!r->written[i] && (r->valid[i] >> place & 1) == 0) {
      r->zero[i] |= 1u << place;
    }
  }
}

// Where byte |i| is, without what is being written and may be cancelled.
static uint32_t committed(const sm_root *r, size_t i) {
  uint32_t valid = r->valid[i];
  for (size_t k = 0; k < SM_OPENS; k++) {
    const sm_open *o = &r->opens[k];
    bool writes = o->open && o->mode != TARN_READ;
    if (writes && o->offset <= i && i < o->offset + o->size) {
      valid &= ~(1u << o->place);
    }
  }
  return valid;
}

static bool is_only_at(const sm_root *r, unsigned place, size_t i) {
  return r->written[i] && committed(r, i) == 1u << place;
}

// The place takes memory of its own: what only it has is taken along, the rest
// is not valid there any more.
static void plan_move(sm_root *r, unsigned place) {
  for (size_t i = 0; i < r->size; i++) {
    if (is_only_at(r, place, i)) {
      r->need[i] |= 1u << place;
    } else {
      r->valid[i] &= ~(1u << place);
    }
  }
}

static bool is_missing(const sm_root *r, unsigned place, size_t offset,
                       size_t size) {
  for (size_t i = offset; i < offset + size; i++) {
    if ((r->valid[i] >> place & 1) == 0) return true;
  }
  return false;
}

tarn_status sm_plan_access(sm_root *r, unsigned place, size_t offset,
                           size_t size, uint32_t mode) {
  sm_need_nothing(r);
  if (size == 0) return TARN_OK;
  bool wants = (mode & TARN_READ) != 0;
  bool writes = (mode & TARN_WRITE_DISCARD) != 0;
  if (sm_conflicts(r, offset, size, writes) != 0) return TARN_E_STATE;
  if (wants && sm_any_lost(r, offset, size)) return TARN_E_STATE;
  bool missing = wants && is_missing(r, place, offset, size);
  const sm_outside *x = r->sides[place].outside;
  bool move = false;
  if (x != NULL) {
    bool read_only = (x->flags & TARN_WRAP_READ_ONLY) != 0;
    move = (missing && !may_be_filled(x)) || (writes && read_only);
  }
  if (move && sm_open_at(r, place) > 0) return TARN_E_STATE;
  if (move) plan_move(r, place);
  for (size_t i = offset; i < offset + size && wants; i++) {
    if ((r->valid[i] >> place & 1) != 0) continue;
    if (!r->written[i]) r->zero[i] |= 1u << place;
    if (r->written[i]) r->need[i] |= 1u << place;
  }
  return TARN_OK;
}

void sm_access_begun(sm_root *r, unsigned place, size_t offset, size_t size,
                     uint32_t mode) {
  if ((mode & TARN_READ) == 0) return;
  for (size_t i = offset; i < offset + size; i++) {
    if (!r->written[i]) r->value[i] = 0;
    r->valid[i] |= 1u << place;
  }
}

static size_t count_only_at(const sm_root *r, unsigned place) {
  size_t count = 0;
  for (size_t i = 0; i < r->size; i++)
    count += is_only_at(r, place, i);
  return count;
}

// Whether an open access writes bytes that would have to be copied.
static bool is_being_written(const sm_root *r) {
  for (size_t k = 0; k < SM_OPENS; k++) {
    const sm_open *o = &r->opens[k];
    if (!o->open || o->mode == TARN_READ) continue;
    for (size_t i = o->offset; i < o->offset + o->size; i++) {
      if (r->need[i] != 0 || r->zero[i] != 0) return true;
    }
  }
  return false;
}

static bool wants_back(const sm_side *side) {
  return side->outside != NULL &&
         (side->outside->flags & TARN_WRAP_SYNC_BACK) != 0;
}

static tarn_status plan_evict(sm_root *r, unsigned place) {
  const sm_side *side = &r->sides[place];
  if (!side->own && side->outside == NULL) return TARN_OK;
  if (sm_open_at(r, place) > 0) return TARN_E_STATE;
  if (count_only_at(r, place) > 0) {
    if (place == 0 && r->device == 0) return TARN_E_STATE;
    unsigned target = place == 0 ? r->device : 0;
    const sm_outside *x = r->sides[target].outside;
    if (x != NULL && !may_be_filled(x)) {
      // Two places let go of memory at once: the model leaves that out.
      if (wants_back(side)) return TARN_PENDING;
      if (sm_open_at(r, target) > 0) return TARN_E_STATE;
      plan_move(r, target);
    }
    for (size_t i = 0; i < r->size; i++) {
      if (is_only_at(r, place, i)) r->need[i] |= 1u << target;
    }
  }
  if (wants_back(side)) sm_need_back(r, place);
  return is_being_written(r) ? TARN_PENDING : TARN_OK;
}

tarn_status sm_plan_evict(sm_root *r, unsigned place) {
  uint32_t before[SM_SIZE];
  memcpy(before, r->valid, sizeof before);
  sm_need_nothing(r);
  tarn_status status = plan_evict(r, place);
  if (status != TARN_OK) memcpy(r->valid, before, sizeof before);
  return status;
}

void sm_evicted(sm_root *r, unsigned place) {
  unsigned target = place == 0 ? r->device : 0;
  for (size_t i = 0; i < r->size; i++) {
    if (r->written[i] && r->valid[i] == 1u << place) {
      r->valid[i] |= 1u << target;
    }
    r->valid[i] &= ~(1u << place);
  }
}

// ---------------------------------------------------------------------------
// What has happened
// ---------------------------------------------------------------------------

static void hear(void *context, const tarn_synced_event *event) {
  (void)context;
  if (heard_count == SM_EVENTS) sm_fail("more events than can be");
  told *t = &heard[heard_count++];
  t->event = *event;
  snprintf(t->name, sizeof t->name, "%s", event->name);
}

void sm_listen(void) {
  heard_count = 0;
  sm_status(tarn_synced_trace(hear, NULL), TARN_OK);
}

static unsigned cheapest(uint32_t valid, unsigned to) {
  unsigned best = UINT32_MAX;
  for (unsigned i = 0; i < sm_place_count; i++) {
    if ((valid >> i & 1) == 0) continue;
    unsigned price = tarn__route_price(sm_places[i], sm_places[to]);
    if (price < best) best = price;
  }
  return best;
}

static void heard_copy(sm_root *r, const tarn_synced_event *e) {
  unsigned from = sm_place_index(e->from);
  unsigned to = sm_place_index(e->to);
  sm_require(from < SM_PLACES && to < SM_PLACES && e->size > 0);
  sm_require(e->offset <= r->size && e->size <= r->size - e->offset);
  r->counts[from][to].copies++;
  r->counts[from][to].moved += e->size;
  unsigned price = tarn__route_price(sm_places[from], sm_places[to]);
  sm_outside *x = r->sides[to].own ? NULL : r->sides[to].outside;
  for (size_t i = e->offset; i < e->offset + e->size; i++) {
    if ((r->need[i] >> to & 1) == 0) sm_fail("byte %zu copied in vain", i);
    if ((r->valid[i] >> from & 1) == 0) sm_fail("stale byte %zu copied", i);
    if (from != to && price > cheapest(r->valid[i] & ~(1u << to), to)) {
      sm_fail("byte %zu was to be had cheaper", i);
    }
    r->need[i] &= ~(1u << to);
    r->valid[i] |= 1u << to;
    if (x == NULL || from == to) continue;
    x->shadow[i] = r->value[i];
    x->known[i] = true;
  }
}

static void heard_zeroed(sm_root *r, const tarn_synced_event *e) {
  sm_require(e->offset <= r->size && e->size <= r->size - e->offset);
  unsigned to = sm_place_index(e->to);
  sm_require(to < SM_PLACES);
  sm_outside *x = r->sides[to].own ? NULL : r->sides[to].outside;
  for (size_t i = e->offset; i < e->offset + e->size; i++) {
    if ((r->zero[i] >> to & 1) == 0) sm_fail("byte %zu zeroed in vain", i);
    r->zero[i] &= ~(1u << to);
    if (x == NULL) continue;
    x->shadow[i] = 0;
    x->known[i] = true;
  }
}

// What is let go was not used by the buffer any more.
static void heard_released(sm_root *r, const tarn_synced_event *e) {
  unsigned to = sm_place_index(e->to);
  sm_require(to < SM_PLACES);
  sm_side *side = &r->sides[to];
  if (side->outside != NULL) {
    side->outside->let_go = true;
    side->outside = NULL;
  } else {
    sm_require(side->own);
    side->own = false;
  }
}

static void heard_one(sm_root *r, const told *t) {
  const tarn_synced_event *e = &t->event;
  sm_require(e->id == r->id || e->what == TARN_SYNCED_CREATED);
  sm_require(strcmp(t->name, r->name) == 0);
  switch (e->what) {
    case TARN_SYNCED_CREATED:
      r->id = e->id;
      break;
    case TARN_SYNCED_ALLOCATED:
      sm_require(!r->sides[sm_place_index(e->to)].own);
      r->sides[sm_place_index(e->to)].own = true;
      break;
    case TARN_SYNCED_RELEASED:
      heard_released(r, e);
      break;
    case TARN_SYNCED_COPIED:
      heard_copy(r, e);
      break;
    case TARN_SYNCED_ZEROED:
      heard_zeroed(r, e);
      break;
    case TARN_SYNCED_LOST:
      r->told_lost += e->size;
      break;
    default:
      break;
  }
}

// Neighbours from one place to another go in one copy.
static void require_joined(const tarn_synced_event *a,
                           const tarn_synced_event *b) {
  if (a->what != TARN_SYNCED_COPIED || b->what != TARN_SYNCED_COPIED) return;
  if (!tarn_place_equal(a->from, b->from)) return;
  if (!tarn_place_equal(a->to, b->to)) return;
  if (a->offset + a->size == b->offset) {
    sm_fail("two copies at %zu where one would do", b->offset);
  }
}

// A place that has moved to memory of its own on the way makes later runs
// longer than earlier ones could know.
static bool has_moved(void) {
  for (size_t i = 0; i < heard_count; i++) {
    if (heard[i].event.what == TARN_SYNCED_ALLOCATED) return true;
  }
  return false;
}

static void hear_all(sm_root *r) {
  for (size_t i = 0; i < heard_count; i++)
    heard_one(r, &heard[i]);
  for (size_t i = 1; i < heard_count && !has_moved(); i++) {
    require_joined(&heard[i - 1].event, &heard[i].event);
  }
}

void sm_heard(sm_root *r) {
  hear_all(r);
  for (size_t i = 0; i < r->size; i++) {
    if (r->need[i] != 0) sm_fail("byte %zu was not copied", i);
    if (r->zero[i] != 0) sm_fail("byte %zu was not zeroed", i);
  }
  heard_count = 0;
}

void sm_heard_some(sm_root *r) {
  hear_all(r);
  sm_need_nothing(r);
  heard_count = 0;
}

void sm_stored(sm_root *r, unsigned place, size_t offset, size_t size,
               const unsigned char *bytes) {
  sm_outside *x = r->sides[place].outside;
  for (size_t i = 0; i < size; i++) {
    r->value[offset + i] = bytes[i];
    r->written[offset + i] = true;
    r->valid[offset + i] = 1u << place;
    if (x == NULL) continue;
    x->shadow[offset + i] = bytes[i];
    x->known[offset + i] = true;
  }
}

void sm_spoiled(sm_root *r, unsigned place, size_t offset, size_t size) {
  sm_outside *x = r->sides[place].outside;
  if (x != NULL && size > 0) memset(x->known + offset, 0, size);
}
