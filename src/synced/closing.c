// Buffers and a device that is about to close.
//
// A buffer with memory there keeps the device open. A buffer that had memory
// there may still have events of its streams, which would keep it open too, and
// sides of it.
//
// The lock is left without telling the trace of losses, which the next call on
// the buffer does: the trace function must not be called with the locks that
// are held here.
#include "base/status.h"
#include "synced/work.h"

// --- asking ----------------------------------------------------------------

// Pinned memory of the host belongs to the device as well.
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

// From here on no thread begins to use it, until that close is over.
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

// Holds the last point of a timeline, which stands for all points; NULL: none
// is left.
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

// With the lock, which is left for each query. Pending work keeps the device
// open by its event.
static void let_go(tarn__synced_core *core, const tarn_device *device) {
  tarn_status status = TARN_OK;
  while (status == TARN_OK || status == TARN_E_DEVICE) {
    tarn__synced_point *point = hold_last_point(core, device);
    if (point == NULL) return;
    tarn__biased_lock_leave(&core->lock);
    status = tarn__point_query(point);
    tarn__biased_lock_enter(&core->lock);
    tarn__work_settle(core, point, status);
  }
}

static tarn_status ask(tarn__synced_core *core, const tarn_device *device) {
  tarn__biased_lock_enter(&core->lock);
  const tarn__synced_side *side = side_at(core, device);
  if (side == NULL) let_go(core, device);
  bool used = side == NULL && is_used(core, device);
  tarn__biased_lock_leave(&core->lock);
  bool agrees = side == NULL && !used;
  return agrees ? TARN_OK : object(core, device, used);
}

// --- closing ---------------------------------------------------------------

// A place that no program can name.
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

tarn_status tarn__core_on_close(tarn__synced_core *core,
                                const tarn_device *device, bool commit) {
  if (!commit) return ask(core, device);
  tarn__biased_lock_enter(&core->lock);
  forget(core, device);
  tarn__biased_lock_leave(&core->lock);
  return TARN_OK;
}
