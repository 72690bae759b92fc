#include "support/synced_play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/run.h"
#include "support/synced_outside.h"

enum { ROOTS = 4 };

sp_counts sp_seen;
static sm_root roots[ROOTS];
static uint64_t order;

#define NOW(...) snprintf(sm_now_at.what, sizeof sm_now_at.what, __VA_ARGS__)

// ---------------------------------------------------------------------------
// Choices
// ---------------------------------------------------------------------------

typedef struct range {
  size_t offset;  // in the handle
  size_t size;
  size_t asked;  // the same, or TARN_ALL
  size_t at;     // in the whole
} range;

static sm_root *some_root(void) {
  sm_root *r = &roots[sg_below(ROOTS)];
  return r->alive ? r : NULL;
}

static sm_handle *some_handle(sm_root *r) {
  size_t first = sg_below(SM_HANDLES);
  for (size_t i = 0; i < SM_HANDLES; i++) {
    sm_handle *h = &r->handles[(first + i) % SM_HANDLES];
    if (h->real != NULL) return h;
  }
  sm_fail("a buffer without a handle");
}

static bool is_whole(const sm_root *r, const sm_handle *h) {
  return h->offset == 0 && h->size == r->size;
}

static size_t some_start(size_t size) {
  size_t start = sg_below(size + 1);
  if (sg_below(2) == 0) start -= start % 64;
  return start;
}

static range some_range(const sm_handle *h) {
  range g = {.offset = 0, .size = h->size};
  switch (sg_below(8)) {
    case 0:
      break;
    case 1:
      g.offset = sg_below(h->size + 1);
      g.size = 0;
      break;
    case 2:
      if (h->size > 0) g.offset = sg_below(h->size);
      g.size = h->size > 0 ? 1 : 0;
      break;
    case 3:
      g.offset = some_start(h->size);
      g.size = h->size - g.offset;
      break;
    default:
      g.offset = some_start(h->size);
      g.size = sg_below(h->size - g.offset + 1);
      if (g.size > 64 && sg_below(2) == 0) g.size = 64;
  }
  g.asked =
      g.offset + g.size == h->size && sg_below(2) == 0 ? TARN_ALL : g.size;
  g.at = h->offset + g.offset;
  return g;
}

static unsigned some_place(void) {
  if (sg_below(3) == 0) return 0;
  size_t device = 1 + sg_below(sm_place_count - 1);
  return (unsigned)device;
}

// A stream, mostly of the place's device; -1: none.
static int some_stream(unsigned place) {
  if (sg_below(5) < 2) return -1;
  if (place == 0 || sg_below(10) == 0) return (int)sg_below(sg_streams);
  unsigned device = (place - 1) % sg_devices;
  return (int)(device + sg_devices * (unsigned)sg_below(2));
}

static tarn_stream *stream_at(int stream) {
  return stream < 0 ? NULL : sg_stream[stream];
}

static void some_bytes(unsigned char *bytes, size_t size) {
  uint64_t word = sg_random() << 32 | sg_random();
  for (size_t i = 0; i < size; i++) {
    word = word * 6364136223846793005u + 1442695040888963407u;
    bytes[i] = (unsigned char)(word >> 56);
  }
}

static void note(sp_kind kind, tarn_status expected) {
  sp_seen.done[kind]++;
  if (expected != TARN_OK) sp_seen.refused[kind]++;
}

// ---------------------------------------------------------------------------
// Buffers and views
// ---------------------------------------------------------------------------

static void play_create(void) {
  sm_root *r = &roots[sg_below(ROOTS)];
  if (r->alive) return;
  memset(r, 0, sizeof *r);
  r->size = sg_below(16) == 0 ? sg_below(3) : 1 + sg_below(SM_SIZE);
  r->device = sg_below(4) == 0 ? 0 : 1 + (unsigned)sg_below(sg_devices);
  snprintf(r->name, sizeof r->name, "n%lu", sm_now_at.operation);
  tarn_synced_options options = {.struct_size = sizeof options,
                                 .name = r->name};
  if (r->device != 0) options.device = sm_places[r->device].device;
  if (sg_below(4) == 0) options.align = (size_t)1 << sg_below(13);
  NOW("create of %zu bytes", r->size);
  sm_handle *h = &r->handles[0];
  sm_status(tarn_synced_create(r->size, &options, &h->real), TARN_OK);
  h->size = r->size;
  sm_require(tarn_synced_size(h->real) == r->size);
  r->alive = true;
  sm_heard(r);
  note(SP_CREATE, TARN_OK);
}

static void play_view(sm_root *r) {
  sm_handle *of = some_handle(r);
  sm_handle *h = &r->handles[sg_below(SM_HANDLES)];
  if (h->real != NULL) return;
  range g = some_range(of);
  NOW("view of %zu bytes at %zu", g.size, g.at);
  sm_status(tarn_synced_view(of->real, g.offset, g.asked, &h->real), TARN_OK);
  *h = (sm_handle){h->real, g.at, g.size, 0};
  sm_require(tarn_synced_size(h->real) == g.size);
  note(SP_VIEW, TARN_OK);
}

static size_t count_handles(const sm_root *r) {
  size_t count = 0;
  for (size_t i = 0; i < SM_HANDLES; i++)
    count += r->handles[i].real != NULL;
  return count;
}

static void play_destroy(sm_root *r) {
  sm_handle *h = some_handle(r);
  tarn_status expected = h->opens > 0 ? TARN_E_STATE : TARN_OK;
  bool last = expected == TARN_OK && count_handles(r) == 1;
  NOW("destroy of %s with %zu accesses", last ? "the last" : "one", h->opens);
  sm_need_nothing(r);
  for (unsigned i = 0; i < sm_place_count && last; i++) {
    const sm_outside *x = r->sides[i].outside;
    if (x != NULL && (x->flags & TARN_WRAP_SYNC_BACK) != 0) sm_need_back(r, i);
  }
  sm_status(tarn_synced_destroy(h->real), expected);
  sm_heard(r);
  note(SP_DESTROY, expected);
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
static void require_names(const sm_root *r, tarn_place place, uint32_t others) {
  (void)r;
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

static void count_kept(sm_root *r, unsigned place, range g, uint32_t mode) {
  if ((mode & TARN_READ) == 0) return;
  for (size_t i = g.at; i < g.at + g.size; i++) {
    if ((r->valid[i] >> place & 1) != 0) r->kept[place]++;
  }
}

static void play_begin(sm_root *r) {
  sm_open *o = free_open(r);
  if (o == NULL) return;
  static const uint32_t modes[] = {TARN_READ, TARN_READ, TARN_READ,
                                   TARN_WRITE_DISCARD, TARN_READ_WRITE};
  sm_handle *h = some_handle(r);
  range g = some_range(h);
  unsigned place = some_place();
  uint32_t mode = modes[sg_below(5)];
  int stream = some_stream(place);
  tarn_place name = sg_name_of(place);
  NOW("begin of %zu bytes at %zu, place %u, mode %u, stream %d", g.size, g.at,
      place, mode, stream);
  uint32_t others = sm_conflicts(r, g.at, g.size, mode != TARN_READ);
  tarn_status expected = sm_plan_access(r, place, g.at, g.size, mode);
  uint32_t waits = others == 0 && sg_below(3) == 0 ? TARN_ACCESS_WAIT : 0;
  if (expected == TARN_OK) count_kept(r, place, g, mode);
  memset(&o->access, 0xee, sizeof o->access);
  sm_status(tarn_synced_begin(h->real, g.offset, g.asked, name, mode | waits,
                              stream_at(stream), &o->access),
            expected);
  sm_heard(r);
  note(SP_BEGIN, expected);
  if (expected != TARN_OK) {
    require_nothing_in(&o->access);
    if (others != 0) require_names(r, name, others);
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
  some_bytes(bytes, o->size);
  if (o->mode == TARN_READ_WRITE && sg_below(2) == 0) {
    memcpy(bytes, r->value + o->offset, o->size / 2);
  }
  sg_store(&o->access, o->place, o->stream, bytes);
}

static void play_end(sm_root *r) {
  sm_open *o = some_open(r);
  if (o == NULL) return;
  NOW("end of %zu bytes at %zu, place %u, mode %u, stream %d", o->size,
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
  note(SP_END, TARN_OK);
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
  NOW("cancel of %zu bytes at %zu, place %u, mode %u, stream %d", o->size,
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
  note(SP_CANCEL, TARN_OK);
}

// ---------------------------------------------------------------------------
// Ahead of accesses, and after
// ---------------------------------------------------------------------------

static void fetched(sm_root *r, unsigned place, range g, tarn_status expected,
                    tarn_status got) {
  sm_status(got, expected);
  sm_heard(r);
  if (expected == TARN_OK) sm_access_begun(r, place, g.at, g.size, TARN_READ);
}

static void play_prefetch(sm_root *r) {
  sm_handle *h = some_handle(r);
  range g = some_range(h);
  unsigned place = some_place();
  int stream = some_stream(place);
  NOW("prefetch of %zu bytes at %zu, place %u, stream %d", g.size, g.at, place,
      stream);
  tarn_status expected = sm_plan_access(r, place, g.at, g.size, TARN_READ);
  if (expected == TARN_OK) count_kept(r, place, g, TARN_READ);
  tarn_event *event = NULL;
  if (stream >= 0 && sg_below(2) == 0) {
    sm_status(tarn_event_create(tarn_stream_device(sg_stream[stream]), &event),
              TARN_OK);
  }
  fetched(r, place, g, expected,
          tarn_synced_prefetch(h->real, g.offset, g.asked, sg_name_of(place),
                               stream_at(stream), event));
  if (event != NULL) {
    sm_status(tarn_event_synchronize(event), TARN_OK);
    if (expected == TARN_OK) {
      tarn_synced_info info = {.struct_size = sizeof info};
      sm_status(tarn_synced_query(h->real, g.offset, g.asked, sm_places[place],
                                  &info),
                TARN_OK);
      sm_require(info.valid == g.size);
    }
    sm_status(tarn_event_destroy(event), TARN_OK);
  }
  note(SP_PREFETCH, expected);
}

static void play_push_pull(sm_root *r) {
  sm_handle *h = some_handle(r);
  range g = some_range(h);
  bool push = sg_below(2) == 0;
  unsigned place = push ? r->device : 0;
  int stream = some_stream(place);
  NOW("%s of %zu bytes at %zu, place %u, stream %d", push ? "push" : "pull",
      g.size, g.at, place, stream);
  sm_need_nothing(r);
  tarn_status expected = TARN_E_STATE;
  if (!push || place != 0) {
    expected = sm_plan_access(r, place, g.at, g.size, TARN_READ);
  }
  if (expected == TARN_OK) count_kept(r, place, g, TARN_READ);
  tarn_status got = push ? tarn_synced_push(h->real, g.offset, g.asked,
                                            stream_at(stream), NULL)
                         : tarn_synced_pull(h->real, g.offset, g.asked,
                                            stream_at(stream), NULL);
  fetched(r, place, g, expected, got);
  note(SP_PUSH_PULL, expected);
}

static void play_evict(sm_root *r) {
  sm_handle *h = some_handle(r);
  unsigned place = some_place();
  NOW("evict of place %u, device %u", place, r->device);
  tarn_status expected = sm_plan_evict(r, place);
  if (expected == TARN_PENDING) return;
  sm_status(tarn_synced_evict(h->real, sg_name_of(place)), expected);
  sm_heard(r);
  note(SP_EVICT, expected);
  if (expected != TARN_OK) return;
  sm_evicted(r, place);
  sm_require(!r->sides[place].own && r->sides[place].outside == NULL);
  so_settle();
}

static void play_invalidate(sm_root *r) {
  sm_handle *h = some_handle(r);
  range g = some_range(h);
  NOW("invalidate of %zu bytes at %zu", g.size, g.at);
  bool open = sm_conflicts(r, g.at, g.size, true) != 0;
  tarn_status expected = open ? TARN_E_STATE : TARN_OK;
  sm_need_nothing(r);
  sm_status(tarn_synced_invalidate(h->real, g.offset, g.asked), expected);
  sm_heard(r);
  note(SP_INVALIDATE, expected);
  if (expected != TARN_OK) return;
  for (size_t i = g.at; i < g.at + g.size; i++) {
    r->written[i] = true;
    r->valid[i] = 0;
  }
}

// ---------------------------------------------------------------------------
// Outside memory and the document's calls
// ---------------------------------------------------------------------------

static bool would_lose(const sm_root *r, unsigned place) {
  for (size_t i = 0; i < r->size; i++) {
    if (r->written[i] && r->valid[i] == 1u << place) return true;
  }
  return false;
}

static void wrapped(sm_root *r, unsigned place, sm_outside *x) {
  r->sides[place].own = false;
  r->sides[place].outside = x;
  for (size_t i = 0; i < r->size; i++) {
    if ((x->flags & TARN_WRAP_EMPTY) != 0) {
      r->valid[i] &= ~(1u << place);
      continue;
    }
    r->value[i] = x->shadow[i];
    r->written[i] = true;
    r->valid[i] = 1u << place;
  }
}

// |set|: by set_cpu_data or set_gpu_data.
static void wrap(sm_root *r, unsigned place, uint32_t flags, bool set) {
  sm_handle *h = some_handle(r);
  sm_outside *x = so_take(place, r->size, flags, !set && sg_below(2) == 0);
  if (x == NULL) return;
  NOW("wrap at place %u, flags %u, deleter %d, set %d", place, flags,
      x->deleter, set);
  bool clash = (flags & TARN_WRAP_READ_ONLY) != 0 &&
               (flags & (TARN_WRAP_FILL | TARN_WRAP_SYNC_BACK)) != 0;
  tarn_status expected = TARN_OK;
  if (!is_whole(r, h) || clash) {
    expected = TARN_E_INVALID;
  } else if (sm_open_at(r, SM_PLACES) > 0) {
    expected = TARN_E_STATE;
  } else if ((flags & TARN_WRAP_EMPTY) != 0 && would_lose(r, place)) {
    expected = TARN_E_STATE;
  }
  sm_need_nothing(r);
  const sm_outside *old = r->sides[place].outside;
  if (expected == TARN_OK && old != NULL &&
      (old->flags & TARN_WRAP_SYNC_BACK) != 0) {
    sm_need_back(r, place);
  }
  tarn_status got = TARN_OK;
  if (set && place == 0) {
    got = tarn_synced_set_cpu_data(h->real, so_pointer(x));
  } else if (set) {
    got = tarn_synced_set_gpu_data(h->real, x->address);
  } else {
    tarn_wrap_options options = so_options(x);
    got = tarn_synced_wrap(h->real, sg_name_of(place), x->address, &options);
  }
  sm_status(got, expected);
  sm_heard(r);
  note(set ? SP_SET : SP_WRAP, expected);
  if (expected == TARN_OK) {
    sm_require(!r->sides[place].own && r->sides[place].outside == NULL);
    wrapped(r, place, x);
  } else {
    so_drop(x);
  }
  so_settle();
}

static void play_wrap(sm_root *r) {
  static const uint32_t flags[] = {
      0,
      0,
      TARN_WRAP_FILL,
      TARN_WRAP_READ_ONLY,
      TARN_WRAP_FILL | TARN_WRAP_SYNC_BACK,
      TARN_WRAP_FILL | TARN_WRAP_SYNC_BACK | TARN_WRAP_EMPTY,
      TARN_WRAP_FILL | TARN_WRAP_EMPTY,
      TARN_WRAP_READ_ONLY | TARN_WRAP_FILL,
  };
  wrap(r, some_place(), flags[sg_below(sizeof flags / sizeof flags[0])], false);
}

static void play_set(sm_root *r) {
  unsigned place = sg_below(2) == 0 ? 0 : r->device;
  wrap(r, place, 0, true);
}

// The pointer that a call of the document gives, and where it leads.
typedef struct data_call {
  bool gpu;
  bool writes;
} data_call;

static tarn_status call_data(sm_handle *h, data_call c, tarn_access *out) {
  const void *read = NULL;
  void *written = NULL;
  tarn_status status = TARN_OK;
  if (c.gpu) {
    status = c.writes ? tarn_synced_mutable_gpu_data(h->real, &out->address)
                      : tarn_synced_gpu_data(h->real, &out->address);
    return status;
  }
  if (c.writes) {
    status = tarn_synced_mutable_cpu_data(h->real, &written);
    out->pointer = written;
  } else {
    status = tarn_synced_cpu_data(h->real, &read);
    memcpy(&out->pointer, &read, sizeof read);
  }
  out->address = (tarn_addr)(uintptr_t)out->pointer;
  return status;
}

// What a const call of the document reads where nobody has written anything
// counts as written.
static void adopt_zeros(sm_root *r, range g) {
  for (size_t i = g.at; i < g.at + g.size; i++) {
    if (r->written[i]) return;
  }
  memset(r->written + g.at, 1, g.size);
}

static void play_data(sm_root *r) {
  sm_handle *h = some_handle(r);
  data_call c = {sg_below(2) == 0, sg_below(2) == 0};
  unsigned place = c.gpu ? r->device : 0;
  NOW("%s%s_data of %zu bytes at %zu", c.writes ? "mutable_" : "",
      c.gpu ? "gpu" : "cpu", h->size, h->offset);
  range g = {.at = h->offset, .size = h->size};
  uint32_t mode = c.writes ? TARN_READ_WRITE : TARN_READ;
  sm_need_nothing(r);
  tarn_status expected = TARN_E_STATE;
  if (!c.gpu || place != 0) {
    expected = sm_plan_access(r, place, g.at, g.size, mode);
  }
  if (expected == TARN_OK) count_kept(r, place, g, mode);
  tarn_access access = {.size = h->size};
  sm_status(call_data(h, c, &access), expected);
  sm_heard(r);
  note(SP_DATA, expected);
  if (expected != TARN_OK) {
    sm_require(access.address == 0);
    return;
  }
  sm_access_begun(r, place, g.at, g.size, mode);
  if (!c.writes) adopt_zeros(r, g);
  sm_require((access.address != 0) == (h->size > 0));
  sg_check(&access, place, -1, r->value + g.at);
  if (!c.writes) return;
  unsigned char bytes[SM_SIZE];
  some_bytes(bytes, g.size);
  sg_store(&access, place, -1, bytes);
  sm_stored(r, place, g.at, g.size, bytes);
}

static void play_async_push(sm_root *r) {
  sm_handle *h = some_handle(r);
  int stream = r->device == 0 ? 0 : some_stream(r->device);
  NOW("async_gpu_push of %zu bytes at %zu, device %u, stream %d", h->size,
      h->offset, r->device, stream);
  sg_wait_all();
  bool foreign = stream < 0 || tarn_stream_device(sg_stream[stream]) !=
                                   sm_places[r->device].device;
  sm_need_nothing(r);
  tarn_status expected = TARN_OK;
  if (r->device == 0) {
    expected = TARN_E_STATE;
  } else if (foreign) {
    expected = TARN_E_INVALID;
  } else if (sm_head(r, h->offset, h->size) != TARN_HEAD_AT_CPU) {
    expected = TARN_E_STATE;
  } else {
    expected = sm_plan_access(r, r->device, h->offset, h->size, TARN_READ);
  }
  range g = {.at = h->offset, .size = h->size};
  if (expected == TARN_OK) count_kept(r, r->device, g, TARN_READ);
  fetched(r, r->device, g, expected,
          tarn_synced_async_gpu_push(h->real, stream_at(stream)));
  note(SP_ASYNC_PUSH, expected);
}

// ---------------------------------------------------------------------------
// Questions
// ---------------------------------------------------------------------------

static void count_opens(const sm_root *r, range g, tarn_synced_info *info) {
  for (size_t i = 0; i < SM_OPENS; i++) {
    const sm_open *o = &r->opens[i];
    if (!o->open || o->size == 0 || g.size == 0) continue;
    if (o->offset >= g.at + g.size || g.at >= o->offset + o->size) continue;
    if (o->mode == TARN_READ) {
      info->readers++;
    } else {
      info->writers++;
    }
  }
}

static tarn_synced_info expected_info(const sm_root *r, unsigned place,
                                      range g) {
  tarn_synced_info info = {.struct_size = sizeof info};
  const sm_side *side = &r->sides[place];
  if (side->own || side->outside != NULL) info.memory = r->size;
  info.borrowed = side->outside != NULL && !side->outside->deleter;
  for (size_t i = g.at; i < g.at + g.size; i++) {
    info.unwritten += !r->written[i];
    info.lost += sm_is_lost(r, i);
    info.valid += r->written[i] && (r->valid[i] >> place & 1) != 0;
  }
  count_opens(r, g, &info);
  return info;
}

static void play_query(sm_root *r) {
  sm_handle *h = some_handle(r);
  range g = some_range(h);
  unsigned place = some_place();
  NOW("query of %zu bytes at %zu, place %u", g.size, g.at, place);
  bool settled = sg_below(4) == 0;
  if (settled) sg_wait_all();
  tarn_synced_info e = expected_info(r, place, g);
  tarn_synced_info i = {.struct_size = sizeof i};
  sm_status(
      tarn_synced_query(h->real, g.offset, g.asked, sg_name_of(place), &i),
      TARN_OK);
  if (i.memory != e.memory || i.borrowed != e.borrowed || i.valid != e.valid ||
      i.unwritten != e.unwritten || i.lost != e.lost ||
      i.readers != e.readers || i.writers != e.writers) {
    sm_fail(
        "memory %zu, borrowed %d, valid %zu, unwritten %zu, lost %zu, "
        "readers %zu, writers %zu, not %zu, %d, %zu, %zu, %zu, %zu, %zu",
        i.memory, i.borrowed, i.valid, i.unwritten, i.lost, i.readers,
        i.writers, e.memory, e.borrowed, e.valid, e.unwritten, e.lost,
        e.readers, e.writers);
  }
  sm_require(i.pending <= i.valid);
  sm_require(!settled || i.pending == 0);
  sm_require((i.range_count == 0) == (r->size == 0));
  sm_require(i.range_count <= r->size);
  note(SP_QUERY, TARN_OK);
}

static void play_head(sm_root *r) {
  sm_handle *h = some_handle(r);
  NOW("head of %zu bytes at %zu", h->size, h->offset);
  sg_wait_all();
  tarn_synced_state expected = sm_head(r, h->offset, h->size);
  tarn_synced_state got = tarn_synced_head(h->real);
  if (got != expected) {
    sm_fail("%s, not %s", tarn_synced_state_name(got),
            tarn_synced_state_name(expected));
  }
  note(SP_HEAD, TARN_OK);
}

typedef struct sums {
  sm_counts counts[SM_PLACES][SM_PLACES];
  uint64_t kept[SM_PLACES];
} sums;

static tarn_status add_traffic(void *context, const tarn_traffic *t) {
  sums *s = context;
  unsigned from = sm_place_index(t->from);
  unsigned to = sm_place_index(t->to);
  sm_require(from < SM_PLACES && to < SM_PLACES);
  s->counts[from][to].copies += t->copies;
  s->counts[from][to].moved += t->bytes_moved;
  if (t->bytes_valid > 0) sm_require(from == to);
  s->kept[to] += t->bytes_valid;
  return TARN_OK;
}

static void play_traffic(sm_root *r) {
  NOW("traffic");
  sums got;
  memset(&got, 0, sizeof got);
  sm_status(tarn_synced_traffic(some_handle(r)->real, add_traffic, &got),
            TARN_OK);
  sm_require(memcmp(got.counts, r->counts, sizeof got.counts) == 0);
  for (unsigned i = 0; i < sm_place_count; i++) {
    if (got.kept[i] != r->kept[i]) {
      sm_fail("%llu bytes were valid at place %u, not %llu",
              (unsigned long long)got.kept[i], i,
              (unsigned long long)r->kept[i]);
    }
  }
  note(SP_TRAFFIC, TARN_OK);
  if (sg_below(3) != 0) return;
  sm_status(tarn_synced_traffic_reset(some_handle(r)->real), TARN_OK);
  memset(r->counts, 0, sizeof r->counts);
  memset(r->kept, 0, sizeof r->kept);
}

static const sm_open *oldest_open(const sm_root *r) {
  const sm_open *oldest = NULL;
  for (size_t i = 0; i < SM_OPENS; i++) {
    const sm_open *o = &r->opens[i];
    if (o->open && (oldest == NULL || o->order < oldest->order)) oldest = o;
  }
  return oldest;
}

static tarn_status see_open(void *context, const tarn_synced_open *open) {
  size_t *seen = context;
  for (size_t k = 0; k < ROOTS; k++) {
    const sm_root *r = &roots[k];
    if (!r->alive || r->id != open->id) continue;
    *seen += 1;
    sm_require(strcmp(r->name, open->name) == 0 && r->size == open->size);
    sm_require(open->handles == count_handles(r));
    sm_require(open->accesses == sm_open_at(r, SM_PLACES));
    size_t own = 0;
    size_t borrowed = 0;
    for (unsigned i = 0; i < sm_place_count; i++) {
      own += r->sides[i].own;
      borrowed += r->sides[i].outside != NULL;
    }
    sm_require(open->memory == own * r->size);
    sm_require(open->borrowed == borrowed * r->size);
    const sm_open *o = oldest_open(r);
    if (o == NULL) return TARN_OK;
    sm_require(sm_place_index(open->place) == o->place);
    sm_require((open->mode & 3) == o->mode);
    sm_require(open->access_offset == o->offset);
    sm_require(open->access_size == o->size);
    return TARN_OK;
  }
  sm_fail("buffer %llu is none", (unsigned long long)open->id);
}

static void play_report(void) {
  NOW("report");
  size_t expected = 0;
  for (size_t k = 0; k < ROOTS; k++)
    expected += roots[k].alive;
  size_t seen = 0;
  sm_status(tarn_synced_each_open(see_open, &seen), TARN_OK);
  sm_require(seen == expected);
  note(SP_REPORT, TARN_OK);
}

// ---------------------------------------------------------------------------
// Streams, and calls that are wrong
// ---------------------------------------------------------------------------

static void play_stream(void) {
  int stream = (int)sg_below(sg_streams);
  NOW("renewal of stream %d", stream);
  for (size_t k = 0; k < ROOTS; k++) {
    for (size_t i = 0; i < SM_OPENS; i++) {
      const sm_open *o = &roots[k].opens[i];
      if (roots[k].alive && o->open && o->stream == stream) return;
    }
  }
  sg_renew((unsigned)stream);
  note(SP_STREAM, TARN_OK);
}

static void play_wait(void) {
  NOW("wait");
  if (sg_below(4) == 0) {
    sg_wait_all();
  } else {
    sg_wait((unsigned)sg_below(sg_streams));
  }
  note(SP_WAIT, TARN_OK);
}

// None of them may change anything.
static void play_misuse(sm_root *r) {
  NOW("misuse");
  sm_handle *h = some_handle(r);
  unsigned place = some_place();
  tarn_place name = sm_places[place];
  tarn_access a;
  tarn_synced *view = h->real;
  size_t more = h->size + 1;
  sm_need_nothing(r);
  tarn_status got = TARN_OK;
  switch (sg_below(8)) {
    case 0:
      got = tarn_synced_begin(h->real, more, 0, name, TARN_READ, NULL, &a);
      require_nothing_in(&a);
      break;
    case 1:
      got = tarn_synced_begin(h->real, 0, more, name, TARN_READ, NULL, &a);
      require_nothing_in(&a);
      break;
    case 2:
      got = tarn_synced_begin(h->real, 0, 0, name, 4, NULL, &a);
      require_nothing_in(&a);
      break;
    case 3:
      got = tarn_synced_begin(h->real, 1, SIZE_MAX - 1, name, 1, NULL, &a);
      require_nothing_in(&a);
      break;
    case 4:
      got = tarn_synced_view(h->real, more, TARN_ALL, &view);
      sm_require(view == NULL);
      break;
    case 5:
      got = tarn_synced_invalidate(h->real, h->size, 1);
      break;
    case 6:
      memset(&a, 0, sizeof a);
      got = tarn_synced_end(&a);
      break;
    default:
      got = tarn_synced_wrap(h->real, name, 0, NULL);
  }
  sm_status(got, TARN_E_INVALID);
  sm_heard(r);
  note(SP_MISUSE, TARN_E_INVALID);
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
    [SP_QUERY] = {"query", 50},       [SP_HEAD] = {"head", 10},
    [SP_TRAFFIC] = {"traffic", 10},   [SP_REPORT] = {"report", 10},
    [SP_STREAM] = {"new stream", 5},  [SP_WAIT] = {"wait", 10},
    [SP_MISUSE] = {"misuse", 5},
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
      [SP_PREFETCH] = play_prefetch,
      [SP_PUSH_PULL] = play_push_pull,
      [SP_EVICT] = play_evict,
      [SP_INVALIDATE] = play_invalidate,
      [SP_WRAP] = play_wrap,
      [SP_SET] = play_set,
      [SP_DATA] = play_data,
      [SP_ASYNC_PUSH] = play_async_push,
      [SP_QUERY] = play_query,
      [SP_HEAD] = play_head,
      [SP_TRAFFIC] = play_traffic,
      [SP_MISUSE] = play_misuse,
  };
  static void (*const of_none[SP_KINDS])(void) = {
      [SP_CREATE] = play_create,
      [SP_REPORT] = play_report,
      [SP_STREAM] = play_stream,
      [SP_WAIT] = play_wait,
  };
  if (of_none[kind] != NULL) {
    of_none[kind]();
    return;
  }
  sm_root *r = some_root();
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
  for (size_t k = 0; k < ROOTS; k++) {
    while (roots[k].alive) {
      sm_now_at.operation++;
      if (some_open(&roots[k]) != NULL && sg_below(3) != 0) {
        play_end(&roots[k]);
      } else {
        play_destroy(&roots[k]);
      }
    }
  }
  sg_wait_all();
}
