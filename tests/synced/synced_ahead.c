// What is done to a buffer ahead of accesses and after them, with memory of
// the program, and by the calls of Caffe's SyncedMemory.
#include <stdlib.h>
#include <string.h>

#include "support/run.h"
#include "synced_scene.h"

// ---------------------------------------------------------------------------
// Ahead of accesses, and after
// ---------------------------------------------------------------------------

static void fetched(sm_root *r, unsigned place, sp_range g,
                    tarn_status expected, tarn_status got) {
  sm_status(got, expected);
  sm_heard(r);
  if (expected == TARN_OK) sm_access_begun(r, place, g.at, g.size, TARN_READ);
}

void sp_play_prefetch(sm_root *r) {
  sm_handle *h = sp_some_handle(r);
  sp_range g = sp_some_range(h);
  unsigned place = sp_some_place();
  int stream = sp_some_stream(place);
  SP_NOW("prefetch of %zu bytes at %zu, place %u, stream %d", g.size, g.at,
         place, stream);
  tarn_status expected = sm_plan_access(r, place, g.at, g.size, TARN_READ);
  if (expected == TARN_OK) sp_count_kept(r, place, g, TARN_READ);
  tarn_event *event = NULL;
  if (stream >= 0 && sg_below(2) == 0) {
    sm_status(tarn_event_create(tarn_stream_device(sg_stream[stream]), &event),
              TARN_OK);
  }
  fetched(r, place, g, expected,
          tarn_synced_prefetch(h->real, g.offset, g.asked, sg_name_of(place),
                               sp_stream_at(stream), event));
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
  sp_note(SP_PREFETCH, expected);
}

void sp_play_push_pull(sm_root *r) {
  sm_handle *h = sp_some_handle(r);
  sp_range g = sp_some_range(h);
  bool push = sg_below(2) == 0;
  unsigned place = push ? r->device : 0;
  int stream = sp_some_stream(place);
  SP_NOW("%s of %zu bytes at %zu, place %u, stream %d", push ? "push" : "pull",
         g.size, g.at, place, stream);
  sm_need_nothing(r);
  tarn_status expected = TARN_E_STATE;
  if (!push || place != 0) {
    expected = sm_plan_access(r, place, g.at, g.size, TARN_READ);
  }
  if (expected == TARN_OK) sp_count_kept(r, place, g, TARN_READ);
  tarn_status got = push ? tarn_synced_push(h->real, g.offset, g.asked,
                                            sp_stream_at(stream), NULL)
                         : tarn_synced_pull(h->real, g.offset, g.asked,
                                            sp_stream_at(stream), NULL);
  fetched(r, place, g, expected, got);
  sp_note(SP_PUSH_PULL, expected);
}

void sp_play_evict(sm_root *r) {
  sm_handle *h = sp_some_handle(r);
  unsigned place = sp_some_place();
  SP_NOW("evict of place %u, device %u", place, r->device);
  tarn_status expected = sm_plan_evict(r, place);
  if (expected == TARN_PENDING) return;
  sm_status(tarn_synced_evict(h->real, sg_name_of(place)), expected);
  sm_heard(r);
  sp_note(SP_EVICT, expected);
  if (expected != TARN_OK) return;
  sm_evicted(r, place);
  sm_require(!r->sides[place].own && r->sides[place].outside == NULL);
  so_settle();
}

void sp_play_invalidate(sm_root *r) {
  sm_handle *h = sp_some_handle(r);
  sp_range g = sp_some_range(h);
  SP_NOW("invalidate of %zu bytes at %zu", g.size, g.at);
  bool open = sm_conflicts(r, g.at, g.size, true) != 0;
  tarn_status expected = open ? TARN_E_STATE : TARN_OK;
  sm_need_nothing(r);
  sm_status(tarn_synced_invalidate(h->real, g.offset, g.asked), expected);
  sm_heard(r);
  sp_note(SP_INVALIDATE, expected);
  if (expected != TARN_OK) return;
  for (size_t i = g.at; i < g.at + g.size; i++) {
    r->written[i] = true;
    r->valid[i] = 0;
  }
}

// ---------------------------------------------------------------------------
// Outside memory and the calls of Caffe's SyncedMemory
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
  sm_handle *h = sg_below(5) == 0 ? sp_some_handle(r) : sp_whole_handle(r);
  sm_outside *x = so_take(place, r->size, flags, !set && sg_below(2) == 0);
  if (x == NULL) return;
  SP_NOW("wrap at place %u, flags %u, deleter %d, set %d", place, flags,
         x->deleter, set);
  bool clash = (flags & TARN_WRAP_READ_ONLY) != 0 &&
               (flags & (TARN_WRAP_FILL | TARN_WRAP_SYNC_BACK)) != 0;
  bool refused = sm_open_at(r, SM_PLACES) > 0 ||
                 ((flags & TARN_WRAP_EMPTY) != 0 && would_lose(r, place));
  tarn_status expected = refused ? TARN_E_STATE : TARN_OK;
  if (!sp_is_whole(r, h) || clash) expected = TARN_E_INVALID;
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
  sp_note(set ? SP_SET : SP_WRAP, expected);
  if (expected == TARN_OK) {
    sm_require(!r->sides[place].own && r->sides[place].outside == NULL);
    wrapped(r, place, x);
  } else {
    so_drop(x);
  }
  so_settle();
}

void sp_play_wrap(sm_root *r) {
  if (sg_below(2) == 0) sp_quiet(r);
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
  wrap(r, sp_some_place(), flags[sg_below(sizeof flags / sizeof flags[0])],
       false);
}

void sp_play_set(sm_root *r) {
  if (sg_below(2) == 0) sp_quiet(r);
  unsigned place = sg_below(2) == 0 ? 0 : r->device;
  wrap(r, place, TARN_WRAP_FILL, true);
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

// What a const call of the document reads counts as written if none of it was
// written before.
static void adopt_zeros(sm_root *r, sp_range g) {
  for (size_t i = g.at; i < g.at + g.size; i++) {
    if (r->written[i]) return;
  }
  memset(r->written + g.at, 1, g.size);
}

void sp_play_data(sm_root *r) {
  sm_handle *h = sp_some_handle(r);
  data_call c = {sg_below(2) == 0, sg_below(2) == 0};
  unsigned place = c.gpu ? r->device : 0;
  SP_NOW("%s%s_data of %zu bytes at %zu", c.writes ? "mutable_" : "",
         c.gpu ? "gpu" : "cpu", h->size, h->offset);
  sp_range g = {.at = h->offset, .size = h->size};
  uint32_t mode = c.writes ? TARN_READ_WRITE : TARN_READ;
  sm_need_nothing(r);
  tarn_status expected = TARN_E_STATE;
  if (!c.gpu || place != 0) {
    expected = sm_plan_access(r, place, g.at, g.size, mode);
  }
  if (expected == TARN_OK) sp_count_kept(r, place, g, mode);
  tarn_access access = {.size = h->size};
  sm_status(call_data(h, c, &access), expected);
  sm_heard(r);
  sp_note(SP_DATA, expected);
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
  sp_some_bytes(bytes, g.size);
  sg_store(&access, place, -1, bytes);
  sm_stored(r, place, g.at, g.size, bytes);
}

void sp_play_async_push(sm_root *r) {
  sm_handle *h = sp_some_handle(r);
  // Else the head is hardly ever at the CPU.
  if (sg_below(3) != 0) sp_fill(r, h, 0);
  int stream = r->device == 0 ? 0 : sp_some_stream(r->device);
  if (stream < 0 && sg_below(4) != 0) stream = (int)r->device - 1;
  SP_NOW("async_gpu_push of %zu bytes at %zu, device %u, stream %d", h->size,
         h->offset, r->device, stream);
  sg_wait_all();
  bool foreign = stream < 0 || tarn_stream_device(sg_stream[stream]) !=
                                   sm_places[r->device].device;
  sm_need_nothing(r);
  tarn_status expected = TARN_E_STATE;
  if (r->device != 0 && foreign) {
    expected = TARN_E_INVALID;
  } else if (r->device != 0 &&
             sm_head(r, h->offset, h->size) == TARN_HEAD_AT_CPU) {
    expected = sm_plan_access(r, r->device, h->offset, h->size, TARN_READ);
  }
  sp_range g = {.at = h->offset, .size = h->size};
  if (expected == TARN_OK) sp_count_kept(r, r->device, g, TARN_READ);
  fetched(r, r->device, g, expected,
          tarn_synced_async_gpu_push(h->real, sp_stream_at(stream)));
  sp_note(SP_ASYNC_PUSH, expected);
}

// ---------------------------------------------------------------------------
// When it is another's turn
// ---------------------------------------------------------------------------

static void require_suspended(sm_handle *h) {
  tarn_access a;
  tarn_place name = sg_name_of(sp_some_place());
  sm_status(tarn_synced_begin(h->real, 0, TARN_ALL, name,
                              TARN_WRITE_DISCARD | TARN_ACCESS_WAIT, NULL, &a),
            TARN_E_STATE);
  sm_require(strstr(tarn_last_error(), "not now") != NULL);
  sm_require(a.buffer == NULL);
  sm_status(tarn_synced_prefetch(h->real, 0, 0, name, NULL, NULL),
            TARN_E_STATE);
  tarn_synced_info info = {.struct_size = sizeof info};
  sm_status(tarn_synced_query(h->real, 0, TARN_ALL, name, &info), TARN_OK);
  sm_require(info.lost == h->size && info.valid == 0);
}

// An access of no bytes is not in the way.
static size_t count_in_the_way(const sm_root *r) {
  size_t count = 0;
  for (size_t i = 0; i < SM_OPENS; i++)
    count += r->opens[i].open && r->opens[i].size > 0;
  return count;
}

void sp_play_suspend(sm_root *r) {
  SP_NOW("suspend");
  if (sg_below(3) != 0) sp_quiet(r);
  size_t open = count_in_the_way(r);
  tarn_status expected = open > 0 ? TARN_E_STATE : TARN_OK;
  sm_need_nothing(r);
  SP_NOW("suspend with %zu accesses", open);
  sm_status(tarn_synced_suspend(sp_some_handle(r)->real, "not now"), expected);
  sp_note(SP_SUSPEND, expected);
  if (expected != TARN_OK) {
    sm_heard(r);
    return;
  }
  memset(r->valid, 0, sizeof r->valid);
  memset(r->written, 1, sizeof r->written);
  require_suspended(sp_some_handle(r));
  sm_status(tarn_synced_resume(sp_some_handle(r)->real), TARN_OK);
  sm_heard(r);
  if (sg_below(2) == 0) sp_fill(r, sp_whole_handle(r), sp_some_place());
}
