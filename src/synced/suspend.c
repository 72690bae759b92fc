// Buffers whose memory is another's for a while.
#include <assert.h>

#include "base/status.h"
#include "synced/access.h"

static void make_worthless(tarn__core *core) {
  for (tarn__span *span = core->spans.first; span != NULL; span = span->next) {
    tarn__span_set(core, span, 0, true);
  }
  if (core->size == 0) return;
  tarn__core_note_loss(core, TARN__LOSS_INVALIDATED, TARN__HOST_SIDE, 0,
                       core->size);
  tarn__spans_join(&core->spans, 0, core->size);
}

// One of no bytes is in nobody's way.
static const tarn_access *any_access(const tarn__core *core) {
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &core->accesses) {
    const tarn_access *access = tarn_list_entry(node, tarn_access, node);
    if (access->size > 0) return access;
  }
  return NULL;
}

// A thread that is bringing bytes just now, without an access.
static bool is_fetching(const tarn__core *core) {
  bool found = false;
  for (uint32_t i = 0; i < core->side_count && !found; i++)
    found = core->sides[i].accesses > 0 || core->sides[i].busy;
  return found;
}

static tarn_status suspend(tarn__core *core, const char *why) {
  const tarn_access *open = any_access(core);
  while (open == NULL && is_fetching(core)) {
    tarn__core_sleep(core);
    open = any_access(core);
  }
  if (open != NULL) {
    return tarn__access_is_in_the_way(core, open, "it cannot be suspended");
  }
  if (core->suspended == NULL) make_worthless(core);
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
