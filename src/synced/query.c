// The state of a buffer at a place.
#include <string.h>

#include "base/status.h"
#include "synced/access.h"
#include "synced/sides.h"
#include "synced/work.h"

static void add_span(tarn_synced_info *info, const tarn__synced_span *span,
                     uint64_t bit, size_t size) {
  uint64_t newest = tarn__span_newest(span);
  if (!span->written) info->unwritten += size;
  if (span->written && newest == 0) info->lost += size;
  if ((newest & bit) == 0) return;
  info->valid += size;
  if ((tarn__span_pending(span) & bit) != 0) info->pending += size;
}

static size_t smaller(size_t a, size_t b) {
  return a < b ? a : b;
}

static void add_spans(tarn_synced_info *info, const tarn__synced_core *core,
                      uint64_t bit, tarn__synced_run range) {
  if (range.start == range.end) return;
  const tarn__synced_span *span = tarn__spans_find(&core->spans, range.start);
  size_t at = range.start;
  for (; span != NULL && at < range.end; span = span->next) {
    size_t end = smaller(span->end, range.end);
    add_span(info, span, bit, end - at);
    at = end;
  }
}

static void add_accesses(tarn_synced_info *info, const tarn__synced_core *core,
                         tarn__synced_run range) {
  const tarn_list *node = NULL;
  if (tarn__access_in(core, TARN__NO_SIDE, range.start, range.end) == NULL) {
    return;
  }
  tarn_list_for_each (node, &core->accesses) {
    const tarn_access *access = tarn_list_entry(node, tarn_access, node);
    if (!tarn__access_meets(access, range.start, range.end)) continue;
    if ((access->mode & TARN_READ_WRITE) == TARN_READ) {
      info->readers++;
    } else {
      info->writers++;
    }
  }
}

static void add_memory(tarn_synced_info *info, const tarn__synced_core *core,
                       const tarn__synced_side *side) {
  if (!tarn__side_has_memory(side)) return;
  info->memory = core->size;
  info->borrowed = side->outside && side->deleter == NULL;
}

// With the lock.
static tarn_synced_info describe(const tarn__synced_core *core,
                                 tarn_place place, tarn__synced_run range) {
  tarn_synced_info info = {.range_count = core->spans.map.count};
  uint32_t side = tarn__side_find(core, place);
  uint64_t bit = side != TARN__NO_SIDE ? tarn__side_bit(side) : 0;
  if (side != TARN__NO_SIDE) add_memory(&info, core, &core->sides[side]);
  add_spans(&info, core, bit, range);
  add_accesses(&info, core, range);
  return info;
}

static tarn_status check_info(tarn_synced_info *out_info, size_t *out_size) {
  if (out_info == NULL ||
      !tarn__struct_size(out_info->struct_size,
                         TARN__SIZE_UP_TO(tarn_synced_info, own_accesses),
                         sizeof *out_info, out_size)) {
    return tarn__fail(TARN_E_INVALID,
                      "synced: information: NULL or "
                      "struct_size");
  }
  memset(out_info, 0, *out_size);
  out_info->struct_size = *out_size;
  return TARN_OK;
}

tarn_status tarn_synced_query(tarn_synced *buffer, size_t offset, size_t size,
                              tarn_place place, tarn_synced_info *out_info) {
  size_t known = 0;
  tarn__synced_run range;
  tarn_status status = check_info(out_info, &known);
  if (status == TARN_OK) {
    status = tarn__synced_range(buffer, offset, size, &range.start, &range.end);
  }
  if (status == TARN_OK) status = tarn__place_check(place);
  if (status != TARN_OK) return status;
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  tarn__core_settle(core);
  tarn_synced_info info = describe(core, place, range);
  info.own_accesses = buffer->accesses;
  tarn__core_leave(core);
  info.struct_size = known;
  memcpy(out_info, &info, known);
  return TARN_OK;
}
