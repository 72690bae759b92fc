// What a buffer is like at a place, and which buffers are open.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "synced/registry.h"
#include "synced/settle.h"
#include "synced/sides.h"

// --- one buffer at one place -------------------------------------------------

static void add_span(tarn_synced_info *info, const tarn__span *span,
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

static void add_spans(tarn_synced_info *info, const tarn__core *core,
                      uint64_t bit, tarn__run range) {
  if (range.start == range.end) return;
  const tarn__span *span = tarn__spans_find(&core->spans, range.start);
  size_t at = range.start;
  for (; span != NULL && at < range.end; span = span->next) {
    size_t end = smaller(span->end, range.end);
    add_span(info, span, bit, end - at);
    at = end;
  }
}

static void add_accesses(tarn_synced_info *info, const tarn__core *core,
                         tarn__run range) {
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &core->accesses) {
    const tarn_access *access = tarn_list_entry(node, tarn_access, node);
    bool meets = access->size > 0 && access->offset < range.end &&
                 range.start < access->offset + access->size;
    if (!meets) continue;
    if ((access->mode & TARN_READ_WRITE) == TARN_READ) {
      info->readers++;
    } else {
      info->writers++;
    }
  }
}

static void add_memory(tarn_synced_info *info, const tarn__core *core,
                       const tarn__side *side) {
  if (!tarn__side_has_memory(side)) return;
  info->memory = core->size;
  info->borrowed = side->outside && side->deleter == NULL;
}

// With the gate.
static tarn_synced_info describe(const tarn__core *core, tarn_place place,
                                 tarn__run range) {
  tarn_synced_info info = {.range_count = core->spans.count};
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
                         TARN__SIZE_UP_TO(tarn_synced_info, range_count),
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
  tarn__run range;
  tarn_status status = check_info(out_info, &known);
  if (status == TARN_OK) {
    status = tarn__synced_range(buffer, offset, size, &range.start, &range.end);
  }
  if (status == TARN_OK) status = tarn__place_check(place);
  if (status != TARN_OK) return status;
  tarn__core *core = buffer->core;
  tarn__core_enter(core);
  tarn__core_settle(core);
  tarn_synced_info info = describe(core, place, range);
  tarn__core_leave(core);
  info.struct_size = known;
  memcpy(out_info, &info, known);
  return TARN_OK;
}

// --- all buffers -------------------------------------------------------------

// What is told is gathered first: |visit| may call the library, so no lock can
// be held, and a buffer may end meanwhile.
typedef struct report {
  tarn_synced_open open;
  char *name;  // a copy; NULL: none
} report;

typedef struct reports {
  report *all;
  size_t count;
  size_t room;
} reports;

static tarn_status make_room(reports *of) {
  if (of->count < of->room) return TARN_OK;
  size_t room = of->room == 0 ? 16 : of->room * 2;
  report *all = of->room == 0
                    ? tarn__host_array(room, sizeof *all)
                    : tarn__host_resize(of->all, of->room, room, sizeof *all);
  if (all == NULL) return TARN_E_NOMEM;
  of->all = all;
  of->room = room;
  return TARN_OK;
}

static void free_reports(reports *of) {
  for (size_t i = 0; i < of->count; i++)
    tarn__host_free_text(of->all[i].name);
  tarn__host_free_array(of->all, of->room, sizeof *of->all);
}

static void add_oldest(tarn_synced_open *open, const tarn__core *core) {
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &core->accesses)
    open->accesses++;
  if (open->accesses == 0) return;
  const tarn_access *oldest =
      tarn_list_entry(core->accesses.next, tarn_access, node);
  open->place = core->sides[oldest->side].end.place;
  open->mode = oldest->mode & TARN_READ_WRITE;
  open->access_offset = oldest->offset;
  open->access_size = oldest->size;
}

static void add_sides(tarn_synced_open *open, const tarn__core *core) {
  for (uint32_t i = 0; i < core->side_count; i++) {
    const tarn__side *side = &core->sides[i];
    if (!tarn__side_has_memory(side)) continue;
    if (side->outside) open->borrowed += core->size;
    if (!side->outside) open->memory += core->size;
  }
}

static void gather_core(tarn_synced_open *open, tarn__core *core) {
  *open = (tarn_synced_open){.struct_size = sizeof *open,
                             .id = core->id,
                             .size = core->size,
                             .place = TARN_HOST};
  tarn__core_enter(core);
  open->handles = core->handles;
  add_sides(open, core);
  add_oldest(open, core);
  tarn__core_leave(core);
}

static tarn_status gather(void *context, tarn__core *core) {
  reports *of = context;
  tarn_status status = make_room(of);
  if (status != TARN_OK) return status;
  report *next = &of->all[of->count];
  *next = (report){.name = NULL};
  if (core->name != NULL) {
    next->name = tarn__host_text(core->name);
    if (next->name == NULL) return TARN_E_NOMEM;
  }
  gather_core(&next->open, core);
  of->count++;
  return TARN_OK;
}

static tarn_status show(const reports *of, tarn_synced_open_visit *visit,
                        void *context) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < of->count && status == TARN_OK; i++) {
    report *next = &of->all[i];
    next->open.name = next->name != NULL ? next->name : "";
    status = visit(context, &next->open);
  }
  return status;
}

tarn_status tarn_synced_each_open(tarn_synced_open_visit *visit,
                                  void *context) {
  reports found = {.all = NULL};
  if (visit == NULL) return tarn__fail(TARN_E_INVALID, "synced: NULL");
  tarn_status status = tarn__registry_each(gather, &found);
  if (status == TARN_OK) status = show(&found, visit, context);
  free_reports(&found);
  return status;
}
