#include "synced_play.h"

#include <string.h>

#include "support/run.h"
#include "synced_fault.h"
#include "synced_scene.h"

static uint64_t order;

static sm_open *some_open(sm_root *r);
static void play_end(sm_root *r);

// ---------------------------------------------------------------------------
// Buffers and views
// ---------------------------------------------------------------------------

static void play_create(void) {
  sm_root *r = &sp_roots[sg_below(SP_ROOTS)];
  if (r->alive) return;
  memset(r, 0, sizeof *r);
  r->size = sg_below(16) == 0 ? sg_below(3) : 1 + sg_below(SM_SIZE);
  r->device = sg_below(4) == 0 ? 0 : 1 + (unsigned)sg_below(sg_devices);
  snprintf(r->name, sizeof r->name, "n%lu", sm_now_at.operation);
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .name = r->name};
  if (r->device != 0) options.device = sm_places[r->device].device;
  if (sg_below(8) == 0) options.flags = TARN_SYNCED_PROTECT;
  if (sg_below(4) == 0) options.align = (size_t)1 << sg_below(13);
  SP_NOW("create of %zu bytes", r->size);
  sm_handle *h = &r->handles[0];
  sm_status(tarn_synced_create(r->size, &options, &h->real), TARN_OK);
  h->size = r->size;
  sm_require(tarn_synced_size(h->real) == r->size);
  r->alive = true;
  sm_heard(r);
  sp_note(SP_CREATE, TARN_OK);
}

static void play_view(sm_root *r) {
  sm_handle *of = sp_some_handle(r);
  sm_handle *h = &r->handles[sg_below(SM_HANDLES)];
  if (h->real != NULL) return;
  sp_range g = sp_some_range(of);
  SP_NOW("view of %zu bytes at %zu", g.size, g.at);
  sm_status(tarn_synced_view(of->real, g.offset, g.asked, &h->real), TARN_OK);
  *h = (sm_handle){h->real, g.at, g.size, 0};
  sm_require(tarn_synced_size(h->real) == g.size);
  sp_note(SP_VIEW, TARN_OK);
}

void sp_quiet(sm_root *r) {
  while (some_open(r) != NULL)
    play_end(r);
}

static void play_destroy(sm_root *r) {
  if (sg_below(12) == 0) sp_quiet(r);
  sm_handle *h = sp_some_handle(r);
  tarn_status expected = h->opens > 0 ? TARN_E_STATE : TARN_OK;
  bool last = expected == TARN_OK && sp_count_handles(r) == 1;
  SP_NOW("destroy of %s with %zu accesses", last ? "the last" : "one",
         h->opens);
  sm_need_nothing(r);
  for (unsigned i = 0; i < sm_place_count && last; i++) {
    const sm_outside *x = r->sides[i].outside;
    if (x != NULL && (x->flags & TARN_WRAP_SYNC_BACK) != 0) sm_need_back(r, i);
  }
  sm_status(tarn_synced_destroy(h->real), expected);
  sm_heard(r);
  sp_note(SP_DESTROY, expected);
  if (expected != TARN_OK) return;
  h->real = NULL;
  if (!last) return;
  r->alive = false;
  for (unsigned i = 0; i < sm_place_count; i++) {
    sm_require(!r->sides[i].own && r->sides[i].outside == NULL);
  }
  so_settle();
}

// ---------------------------------------------------------------------------
// Accesses
// ---------------------------------------------------------------------------

// The text of a conflict names this place and one of the others.
static void require_names(tarn_place place, uint32_t others) {
  char text[64];
  tarn_place_text(place, text, sizeof text);
  unsigned index = sm_place_index(place);
  char canonical[64];
  tarn_place_text(sm_places[index], canonical, sizeof canonical);
  const char *error = tarn_last_error();
  if (strstr(error, text) == NULL && strstr(error, canonical) == NULL) {
    sm_fail("the text does not name %s", canonical);
  }
  for (unsigned i = 0; i < sm_place_count; i++) {
    if ((others >> i & 1) == 0) continue;
    tarn_place_text(sm_places[i], text, sizeof text);
    if (strstr(error, text) != NULL) return;
  }
  sm_fail("the text names none of the places in the way");
}

static sm_open *free_open(sm_root *r) {
  for (size_t i = 0; i < SM_OPENS; i++) {
    if (!r->opens[i].open) return &r->opens[i];
  }
  return NULL;
}

static void require_nothing_in(const tarn_access *a) {
  sm_require(a->buffer == NULL && a->address == 0 && a->pointer == NULL &&
             a->size == 0);
}

static void require_good(const sm_root *r, const sm_open *o) {
  sm_require(o->access.size == o->size && o->access.buffer != NULL);
  if (o->size == 0) {
    sm_require(o->access.address == 0 && o->access.pointer == NULL);
    return;
  }
  const sm_side *side = &r->sides[o->place];
  sm_require(side->own || side->outside != NULL);
  sm_require(o->access.address != 0);
  bool host = sm_places[o->place].kind != TARN_PLACE_DEVICE;
  sm_require((o->access.pointer != NULL) == host);
  if (side->outside != NULL) {
    sm_require(o->access.address == side->outside->address + o->offset);
  }
}

static void begin(sm_root *r, sm_open *o, sm_handle *h, sp_range g,
                  unsigned place, uint32_t mode, int stream) {
  tarn_place name = sg_name_of(place);
  SP_NOW("begin of %zu bytes at %zu, place %u, mode %u, stream %d", g.size,
         g.at, place, mode, stream);
  uint32_t others = sm_conflicts(r, g.at, g.size, mode != TARN_READ);
  // A view that is not the whole cannot tell what became of the rest.
  if (sp_is_whole(r, sp_whole_handle(r))) sp_arm(r, place, stream);
  tarn_status expected = sm_plan_access(r, place, g.at, g.size, mode);
  // Never for an access of its own, also not one that keeps borrowed memory.
  bool goes = others == 0 && expected == TARN_OK;
  uint32_t waits = goes && sg_below(3) == 0 ? TARN_ACCESS_WAIT : 0;
  if (expected == TARN_OK) sp_count_kept(r, place, g, mode);
  memset(&o->access, 0xee, sizeof o->access);
  tarn_status got =
      tarn_synced_begin(h->real, g.offset, g.asked, name, mode | waits,
                        sp_stream_at(stream), &o->access);
  if (sp_has_failed(r, got)) {
    require_nothing_in(&o->access);
    return;
  }
  sm_status(got, expected);
  sm_heard(r);
  sp_note(SP_BEGIN, expected);
  if (expected != TARN_OK) {
    require_nothing_in(&o->access);
    bool lost = mode != TARN_WRITE_DISCARD && sm_any_lost(r, g.at, g.size);
    if (others != 0 && !lost) require_names(name, others);
    return;
  }
  sm_access_begun(r, place, g.at, g.size, mode);
  tarn_access access = o->access;
  *o = (sm_open){true, h, place, mode, stream, g.at, g.size, ++order, access};
  h->opens++;
  require_good(r, o);
  if (mode != TARN_WRITE_DISCARD) {
    sg_check(&o->access, place, stream, r->value + g.at);
  }
}

static void play_begin(sm_root *r) {
  static const uint32_t modes[] = {TARN_READ, TARN_READ, TARN_READ,
                                   TARN_WRITE_DISCARD, TARN_READ_WRITE};
  sm_open *o = free_open(r);
  if (o == NULL) return;
  sm_handle *h = sp_some_handle(r);
  sp_range g = sp_some_range(h);
  unsigned place = sp_some_place();
  uint32_t mode = modes[sg_below(5)];
  begin(r, o, h, g, place, mode, sp_some_stream(place));
}

void sp_fill(sm_root *r, sm_handle *h, unsigned place) {
  sp_quiet(r);
  sp_range all = {.size = h->size, .asked = TARN_ALL, .at = h->offset};
  begin(r, &r->opens[0], h, all, place, TARN_WRITE_DISCARD, -1);
  sp_quiet(r);
}

static sm_open *some_open(sm_root *r) {
  size_t first = sg_below(SM_OPENS);
  for (size_t i = 0; i < SM_OPENS; i++) {
    sm_open *o = &r->opens[(first + i) % SM_OPENS];
    if (o->open) return o;
  }
  return NULL;
}

static void close_open(sm_open *o) {
  sm_require(o->access.buffer == NULL);
  o->handle->opens--;
  o->open = false;
}

// What the caller does before it ends: all bytes of a WRITE_DISCARD, some of
// a READ_WRITE, none of a READ, which looks again.
static void use_open(sm_root *r, sm_open *o, unsigned char *bytes) {
  if (o->mode == TARN_READ) {
    if (sg_below(2) == 0) {
      sg_check(&o->access, o->place, o->stream, r->value + o->offset);
    }
    return;
  }
  sp_some_bytes(bytes, o->size);
  if (o->mode == TARN_READ_WRITE && sg_below(2) == 0) {
    memcpy(bytes, r->value + o->offset, o->size / 2);
  }
  sg_store(&o->access, o->place, o->stream, bytes);
}

static void play_end(sm_root *r) {
  sm_open *o = some_open(r);
  if (o == NULL) return;
  SP_NOW("end of %zu bytes at %zu, place %u, mode %u, stream %d", o->size,
         o->offset, o->place, o->mode, o->stream);
  unsigned char bytes[SM_SIZE];
  use_open(r, o, bytes);
  sm_need_nothing(r);
  sm_status(tarn_synced_end(&o->access), TARN_OK);
  sm_heard(r);
  sm_require(r->told_lost == 0);
  if (o->mode != TARN_READ) {
    sm_stored(r, o->place, o->offset, o->size, bytes);
  }
  close_open(o);
  sp_note(SP_END, TARN_OK);
}

static size_t cancel_in_model(sm_root *r, const sm_open *o) {
  size_t lost = 0;
  for (size_t i = o->offset; i < o->offset + o->size; i++) {
    bool had = r->written[i] && r->valid[i] != 0;
    r->valid[i] &= ~(1u << o->place);
    lost += had && r->valid[i] == 0;
  }
  sm_spoiled(r, o->place, o->offset, o->size);
  return lost;
}

static void play_cancel(sm_root *r) {
  sm_open *o = some_open(r);
  if (o == NULL) return;
  SP_NOW("cancel of %zu bytes at %zu, place %u, mode %u, stream %d", o->size,
         o->offset, o->place, o->mode, o->stream);
  unsigned char bytes[SM_SIZE];
  if (sg_below(2) == 0) use_open(r, o, bytes);
  size_t expected = o->mode == TARN_READ ? 0 : cancel_in_model(r, o);
  size_t lost = 12345;
  sm_need_nothing(r);
  sm_status(tarn_synced_cancel(&o->access, &lost), TARN_OK);
  sm_heard(r);
  if (lost != expected || r->told_lost != expected) {
    sm_fail("%zu bytes lost, %zu told, not %zu", lost, r->told_lost, expected);
  }
  close_open(o);
  sp_note(SP_CANCEL, TARN_OK);
}

// ---------------------------------------------------------------------------
// The play
// ---------------------------------------------------------------------------

// How often each comes, of 1,000.
static const struct {
  const char *name;
  unsigned weight;
} kinds[SP_KINDS] = {
    [SP_CREATE] = {"create", 20},     [SP_VIEW] = {"view", 25},
    [SP_DESTROY] = {"destroy", 28},   [SP_BEGIN] = {"begin", 330},
    [SP_END] = {"end", 260},          [SP_CANCEL] = {"cancel", 25},
    [SP_PREFETCH] = {"prefetch", 60}, [SP_PUSH_PULL] = {"push, pull", 40},
    [SP_EVICT] = {"evict", 25},       [SP_INVALIDATE] = {"invalidate", 8},
    [SP_WRAP] = {"wrap", 25},         [SP_SET] = {"set data", 6},
    [SP_DATA] = {"data", 40},         [SP_ASYNC_PUSH] = {"async push", 8},
    [SP_SUSPEND] = {"suspend", 5},    [SP_QUERY] = {"query", 50},
    [SP_HEAD] = {"head", 10},         [SP_TRAFFIC] = {"traffic", 10},
    [SP_REPORT] = {"report", 10},     [SP_STREAM] = {"new stream", 5},
    [SP_WAIT] = {"wait", 10},         [SP_MISUSE] = {"misuse", 5},
};

const char *sp_kind_name(sp_kind kind) {
  return kinds[kind].name;
}

static void play(sp_kind kind) {
  static void (*const of_root[SP_KINDS])(sm_root *) = {
      [SP_VIEW] = play_view,
      [SP_DESTROY] = play_destroy,
      [SP_BEGIN] = play_begin,
      [SP_END] = play_end,
      [SP_CANCEL] = play_cancel,
      [SP_PREFETCH] = sp_play_prefetch,
      [SP_PUSH_PULL] = sp_play_push_pull,
      [SP_EVICT] = sp_play_evict,
      [SP_INVALIDATE] = sp_play_invalidate,
      [SP_WRAP] = sp_play_wrap,
      [SP_SET] = sp_play_set,
      [SP_DATA] = sp_play_data,
      [SP_ASYNC_PUSH] = sp_play_async_push,
      [SP_SUSPEND] = sp_play_suspend,
      [SP_QUERY] = sp_play_query,
      [SP_HEAD] = sp_play_head,
      [SP_TRAFFIC] = sp_play_traffic,
      [SP_MISUSE] = sp_play_misuse,
  };
  static void (*const of_none[SP_KINDS])(void) = {
      [SP_CREATE] = play_create,
      [SP_REPORT] = sp_play_report,
      [SP_STREAM] = sp_play_stream,
      [SP_WAIT] = sp_play_wait,
  };
  if (of_none[kind] != NULL) {
    of_none[kind]();
    return;
  }
  sm_root *r = sp_some_root();
  if (r != NULL) of_root[kind](r);
}

void sp_step(void) {
  static unsigned total;
  if (total == 0) {
    for (int i = 0; i < SP_KINDS; i++)
      total += kinds[i].weight;
  }
  size_t choice = sg_below(total);
  int kind = 0;
  while (choice >= kinds[kind].weight)
    choice -= kinds[kind++].weight;
  sm_now_at.operation++;
  play((sp_kind)kind);
  so_settle();
}

void sp_finish(void) {
  for (size_t k = 0; k < SP_ROOTS; k++) {
    while (sp_roots[k].alive) {
      sm_now_at.operation++;
      if (some_open(&sp_roots[k]) != NULL && sg_below(3) != 0) {
        play_end(&sp_roots[k]);
      } else {
        play_destroy(&sp_roots[k]);
      }
    }
  }
  sg_wait_all();
}
