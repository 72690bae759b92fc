// What buffers have to do with a device that is about to close.
//
// A buffer that has memory there keeps it open. One that had may still know of
// work on its streams, by events that would keep the device open too, and names
// it in its sides.
//
// The gate is left without telling the trace what was lost, for whoever comes
// next to tell: its function must not be called with the locks that are held
// here.
#include "synced/closing.h"

#include "base/status.h"
#include "synced/registry.h"
#include "synced/work.h"

// --- asking ----------------------------------------------------------------

// Pinned memory of the host is the device's as well.
static bool has_memory_at(const tarn__synced_side *side,
                          const tarn_device *device) {
  if (side->end.address == 0) return false;
  if (side->end.place.device == device) return true;
  return side->block.pool != NULL &&
         tarn_pool_place(side->block.pool).device == device;
}

static const tarn__synced_side *side_at(const tarn__synced_core *core,
                                        const tarn_device *device) {
  for (uint32_t i = 0; i < core->side_count; i++) {
    if (has_memory_at(&core->sides[i], device)) return &core->sides[i];
  }
  return NULL;
}

// From here on nobody begins to use it, until that close is over.
static bool is_used(tarn__synced_core *core, const tarn_device *device) {
  if (core->device != device) return false;
  if (core->device_users > 0) return true;
  core->device_closing = true;
  core->device_asks++;
  return false;
}

static tarn_status object(const tarn__synced_core *core,
                          const tarn_device *device, bool used) {
  char text[TARN__CORE_TEXT];
  if (used) {
    return tarn__fail(TARN_E_STATE, "%s: cannot close: %s is using it",
                      tarn_device_name(device), tarn__core_text(core, text));
  }
  return tarn__fail(TARN_E_STATE, "%s: cannot close: %s has %zu bytes there",
                    tarn_device_name(device), tarn__core_text(core, text),
                    core->size);
}

// The last point, which stands for all of its timeline, held; NULL: none is
// left.
static tarn__synced_point *hold_last_point(const tarn__synced_core *core,
                                           const tarn_device *device) {
  for (tarn__synced_timeline *timeline = core->timelines.first;
       timeline != NULL; timeline = timeline->next) {
    if (timeline->busy || timeline->device != device) continue;
    tarn__synced_point *point =
        tarn__timeline_hold_point(timeline, timeline->issued);
    if (point != NULL) return point;
  }
  return NULL;
}

// With the gate, which is left for each question. What is pending objects by
// itself: its event is in use.
static void let_go(tarn__synced_core *core, const tarn_device *device) {
  tarn_status status = TARN_OK;
  while (status == TARN_OK || status == TARN_E_DEVICE) {
    tarn__synced_point *point = hold_last_point(core, device);
    if (point == NULL) return;
    tarn__biased_lock_leave(&core->gate);
    status = tarn__point_query(point);
    tarn__biased_lock_enter(&core->gate);
    tarn__work_settle(core, point, status);
  }
}

static tarn_status ask(void *context, tarn__synced_core *core) {
  const tarn_device *device = context;
  tarn__biased_lock_enter(&core->gate);
  const tarn__synced_side *side = side_at(core, device);
  if (side == NULL) let_go(core, device);
  bool used = side == NULL && is_used(core, device);
  tarn__biased_lock_leave(&core->gate);
  bool agrees = side == NULL && !used;
  return agrees ? TARN_OK : object(core, device, used);
}

tarn_status tarn__closing_ask(tarn_device *device) {
  return tarn__registry_each(ask, device);
}

// --- closing ---------------------------------------------------------------

// No place that a program can name is equal to it.
static const tarn_place nowhere = {NULL, TARN_PLACE_DEVICE};

static void forget(tarn__synced_core *core, const tarn_device *device) {
  if (core->device == device) core->device = NULL;
  if (core->last_place.device == device) {
    core->last_place = TARN_HOST;
    core->last_side = TARN__HOST_SIDE;
  }
  for (uint32_t i = 0; i < core->side_count; i++) {
    tarn_place *place = &core->sides[i].end.place;
    if (place->device == device) *place = nowhere;
  }
}

static tarn_status commit(void *context, tarn__synced_core *core) {
  tarn__biased_lock_enter(&core->gate);
  forget(core, context);
  tarn__biased_lock_leave(&core->gate);
  return TARN_OK;
}

void tarn__closing_commit(tarn_device *device) {
  tarn_status status = tarn__registry_each(commit, device);
  (void)status;  // each of them answers TARN_OK
}

// --- using it meanwhile ----------------------------------------------------

// A close holds the lock of the device room's registry all the time, as an open
// does. Of cpu:0, which is always open, that calls no driver.
static bool pass_a_close(void) {
  tarn_device *host = NULL;
  return tarn_device_open("cpu:0", &host) == TARN_OK &&
         tarn_device_close(host) == TARN_OK;
}

// The close that asked as number |asks| is over. If the device is still there,
// it was refused.
static void note_refusal(tarn__synced_core *core, uint64_t asks) {
  if (core->device_asks == asks) core->device_closing = false;
}

tarn_device *tarn__closing_hold(tarn__synced_core *core) {
  bool over = true;
  tarn__core_enter(core);
  while (core->device != NULL && core->device_closing && over) {
    uint64_t asks = core->device_asks;
    tarn__core_leave(core);
    over = pass_a_close();
    tarn__core_enter(core);
    if (over) note_refusal(core, asks);
  }
  tarn_device *device = over ? core->device : NULL;
  if (device != NULL) core->device_users++;
  tarn__core_leave(core);
  return device;
}

void tarn__closing_let_go(tarn__synced_core *core) {
  tarn__core_enter(core);
  core->device_users--;
  tarn__core_leave(core);
}
