// The list of buffers. It is copied first, so that the visiting function may
// call the library.
#include "synced/core.h"

#include "base/hostmem.h"
#include "base/status.h"

typedef struct entry {
  tarn_synced_open open;
  char *name;  // a copy; NULL: none
} entry;

typedef struct report {
  entry *entries;  // |room| of them
  size_t count;
  size_t room;
} report;

enum { FIRST_ROOM = 16 };

static void report_deinit(report *r) {
  for (size_t i = 0; i < r->count; i++)
    tarn__host_free_text(r->entries[i].name);
  tarn__host_free_array(r->entries, r->room, sizeof *r->entries);
}

static tarn_status make_room(report *r) {
  if (r->count < r->room) return TARN_OK;
  size_t room = r->room == 0 ? FIRST_ROOM : 2 * r->room;
  entry *grown =
      tarn__host_resize(r->entries, r->room, room, sizeof *r->entries);
  if (grown == NULL) return TARN_E_NOMEM;
  r->entries = grown;
  r->room = room;
  return TARN_OK;
}

// --- describing ------------------------------------------------------------

static void add_memory(const tarn__synced_core *core, tarn_synced_open *out) {
  for (uint32_t i = 0; i < core->side_count; i++) {
    const tarn__synced_side *side = &core->sides[i];
    if (side->outside) out->borrowed += core->size;
    if (side->block.pool != NULL) out->memory += core->size;
  }
}

static void add_accesses(const tarn__synced_core *core, tarn_synced_open *out) {
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &core->accesses)
    out->accesses++;
  if (out->accesses == 0) return;
  const tarn_access *oldest =
      tarn_list_entry(core->accesses.next, tarn_access, node);
  bool somewhere = oldest->side != TARN__NO_SIDE;  // not of 0 bytes
  out->place = somewhere ? core->sides[oldest->side].end.place : TARN_HOST;
  out->mode = oldest->mode;
  out->access_offset = oldest->offset;
  out->access_size = oldest->size;
}

static void describe(tarn__synced_core *core, tarn_synced_open *out) {
  *out = (tarn_synced_open){
      .struct_size = sizeof *out, .id = core->id, .size = core->size};
  tarn__biased_lock_enter(&core->lock);
  out->handles = core->handles;
  add_memory(core, out);
  add_accesses(core, out);
  tarn__biased_lock_leave(&core->lock);
}

static tarn_status add(void *context, tarn__synced_core *core) {
  report *r = context;
  tarn_status status = make_room(r);
  if (status != TARN_OK) return status;
  entry *added = &r->entries[r->count];
  if (core->name != NULL) {
    added->name = tarn__host_text(core->name);
    if (added->name == NULL) return TARN_E_NOMEM;
  }
  describe(core, &added->open);
  added->open.name = added->name != NULL ? added->name : "";
  r->count++;
  return TARN_OK;
}

// --- showing ---------------------------------------------------------------

static tarn_status show(const report *r, tarn_synced_open_visit *visit,
                        void *context) {
  for (size_t i = 0; i < r->count; i++) {
    tarn_status status = visit(context, &r->entries[i].open);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

tarn_status tarn_synced_each_open(tarn_synced_open_visit *visit,
                                  void *context) {
  report r = {.count = 0};
  tarn_status status = tarn__not_in_callback();
  if (status != TARN_OK) return status;
  if (visit == NULL) {
    return tarn__fail(TARN_E_INVALID, "synced each open: no function");
  }
  status = tarn__registry_each(add, &r);
  if (status == TARN_OK) status = show(&r, visit, context);
  report_deinit(&r);
  return status;
}
