// Buffers whose memory is another's for a while.
#include "synced/access.h"

static const tarn_access *any_access(const tarn__synced_core *core) {
  return tarn__access_in(core, TARN__NO_SIDE, 0, core->size);
}

// A thread that is bringing bytes just now, without an access.
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
