// Evicting the memory of a place, discarding bytes, and suspending buffers.
//
// Evicting has three steps that leave the lock. They are repeated until none is
// needed; then the memory is detached with the lock held:
//
//   rest: streams ──► sync back ──► save only copies ──► detach
//        ▲──────── a step was needed: look again ──┘
//
// Invalidating waits for threads that copy, since they would commit afterwards.
// It does not wait for streams.
#include "base/status.h"
#include "synced/access.h"
#include "synced/outside.h"
#include "synced/protect.h"
#include "synced/work.h"

// --- evict -------------------------------------------------------------------

// The place that saves only copies of |side|: the host; for the host the device
// of the options.
static tarn_status refuge(const tarn__synced_core *core, uint32_t side,
                          tarn_place *out_place) {
  *out_place = TARN_HOST;
  if (side != TARN__HOST_SIDE) return TARN_OK;
  bool none = core->device == NULL ||
              tarn_place_equal(tarn__route_place(tarn_place_on(core->device)),
                               TARN_HOST);
  if (!none) {
    *out_place = tarn_place_on(core->device);
    return TARN_OK;
  }
  char text[TARN__CORE_TEXT];
  return tarn__fail(TARN_E_STATE,
                    "%s: the host has the only copy, and the options named no "
                    "device to copy it to",
                    tarn__core_text(core, text));
}

// Whether only copies at |side| can be saved; checked before any copy.
static tarn_status check_refuge(const tarn__synced_core *core, uint32_t side) {
  tarn__synced_run run;
  tarn_place place;
  if (!tarn__core_find_run(core, 0, side, tarn__span_is_only_at, &run)) {
    return TARN_OK;
  }
  return refuge(core, side, &place);
}

static tarn_status save(tarn__synced_core *core, uint32_t side) {
  tarn_place place;
  tarn_status status = refuge(core, side, &place);
  if (status != TARN_OK) return status;
  return tarn__core_fetch_runs(core, side, tarn__span_is_only_at, place);
}

// Does one step that is needed before the memory can be detached; |*out_ready|:
// none is needed. With the lock, which is left meanwhile.
static tarn_status prepare(tarn__synced_core *core, uint32_t side,
                           bool *out_ready) {
  tarn__synced_run run;
  *out_ready = false;
  if (core->sides[side].busy) {
    tarn__core_sleep(core);
    return TARN_OK;
  }
  tarn_status status = tarn__access_check_none(core, side, 0, core->size,
                                               "it cannot be evicted");
  if (status != TARN_OK) return status;
  if (core->sides[side].accesses > 0) {  // a thread that fetches, with none
    tarn__core_sleep(core);
    return TARN_OK;
  }
  status = check_refuge(core, side);
  if (status != TARN_OK) return status;
  if (tarn__core_is_in_use(core, side)) {
    return tarn__side_rest(core, side, 0, core->size);
  }
  if (tarn__outside_wants_back(core, side)) {
    return tarn__outside_give_back(core, side);
  }
  if (tarn__core_find_run(core, 0, side, tarn__span_is_only_at, &run)) {
    return save(core, side);
  }
  *out_ready = true;
  return TARN_OK;
}

// A suspended buffer has no valid bytes, so evicting it copies nothing.
static tarn_status evict(tarn__synced_core *core, uint32_t side,
                         tarn__synced_side *out_memory) {
  bool ready = false;
  while (tarn__side_has_memory(&core->sides[side]) || core->sides[side].busy) {
    tarn_status status = prepare(core, side, &ready);
    if (status != TARN_OK) return status;
    if (!ready) continue;
    *out_memory = tarn__side_detach(core, side);
    tarn__core_wake(core);
    break;
  }
  return TARN_OK;
}

tarn_status tarn_synced_evict(tarn_synced *buffer, tarn_place place) {
  tarn_status status = tarn__synced_check(buffer);
  if (status == TARN_OK) status = tarn__place_check(place);
  if (status != TARN_OK) return status;
  tarn__synced_side memory = {.busy = false};
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  tarn__protect_tighten(core);
  uint32_t side = tarn__side_find(core, place);
  if (side != TARN__NO_SIDE) status = evict(core, side, &memory);
  tarn__core_leave(core);
  if (status == TARN_OK) tarn__side_let_go(core, &memory);
  return status;
}

// --- invalidate --------------------------------------------------------------

static tarn_status invalidate(tarn__synced_core *core, size_t start,
                              size_t end) {
  tarn_status status = tarn__core_admit(core);
  while (status == TARN_OK && tarn__core_is_copying(core, start, end)) {
    tarn__core_sleep(core);
    status = tarn__core_admit(core);
  }
  if (status == TARN_OK) {
    status = tarn__access_check_none(core, TARN__NO_SIDE, start, end,
                                     "its bytes cannot be invalidated");
  }
  if (status != TARN_OK) return status;
  status = tarn__spans_reserve(&core->spans, start, end, 0);
  if (status == TARN_OK) tarn__core_drop(core, start, end);
  return status;
}

tarn_status tarn_synced_invalidate(tarn_synced *buffer, size_t offset,
                                   size_t size) {
  size_t start = 0;
  size_t end = 0;
  tarn_status status = tarn__synced_range(buffer, offset, size, &start, &end);
  if (status != TARN_OK || start == end) return status;
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  status = invalidate(core, start, end);
  tarn__core_leave(core);
  return status;
}

// --- suspend -----------------------------------------------------------------

static const tarn_access *any_access(const tarn__synced_core *core) {
  return tarn__access_in(core, TARN__NO_SIDE, 0, core->size);
}

// Whether a thread copies now, without an access.
static bool is_fetching(const tarn__synced_core *core) {
  bool found = false;
  for (uint32_t i = 0; i < core->side_count && !found; i++)
    found = core->sides[i].accesses > 0 || core->sides[i].busy;
  return found;
}

static tarn_status suspend(tarn__synced_core *core, const char *why) {
  const tarn_access *open = any_access(core);
  while (open == NULL && is_fetching(core)) {
    tarn__core_sleep(core);
    open = any_access(core);
  }
  if (open != NULL) {
    return tarn__access_is_in_the_way(core, open, "it cannot be suspended");
  }
  if (core->suspended == NULL && core->size > 0) {
    tarn__core_drop(core, 0, core->size);
  }
  core->suspended = why != NULL ? why : "";
  core->slow = true;
  return TARN_OK;
}

tarn_status tarn_synced_suspend(tarn_synced *buffer, const char *why) {
  tarn_status status = tarn__synced_check(buffer);
  if (status != TARN_OK) return status;
  tarn__core_enter(buffer->core);
  status = suspend(buffer->core, why);
  tarn__core_leave(buffer->core);
  return status;
}

tarn_status tarn_synced_resume(tarn_synced *buffer) {
  tarn_status status = tarn__synced_check(buffer);
  if (status != TARN_OK) return status;
  tarn__core_enter(buffer->core);
  buffer->core->suspended = NULL;
  buffer->core->slow = buffer->core->protect;
  tarn__core_leave(buffer->core);
  return TARN_OK;
}
