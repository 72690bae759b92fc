// Counts of copies of one buffer, or of all, and the list of buffers.
//
// Both are first copied into a report, with the lock of one buffer at a time,
// so that the visiting function may call the library.
#include "synced/core.h"

#include <string.h>

#include "base/budget.h"
#include "base/hostmem.h"
#include "base/status.h"

typedef struct report {
  tarn__budget budget;
  tarn__array items;
} report;

static report report_of(tarn__array empty) {
  return (report){tarn__budget_unlimited("synced"), empty};
}

// --- counts ------------------------------------------------------------------

// The entry of a pair of places, which is added if it is new.
static tarn_status entry_of(report *r, tarn_place from, tarn_place to,
                            tarn_traffic **out_entry) {
  tarn_traffic *entries = r->items.items;
  for (size_t i = 0; i < r->items.count; i++) {
    *out_entry = &entries[i];
    if (tarn_place_equal(entries[i].from, from) &&
        tarn_place_equal(entries[i].to, to))
      return TARN_OK;
  }
  void *added = NULL;
  TARN__TRY(tarn__array_grow(&r->budget, &r->items, 1, &added));
  *out_entry = added;
  **out_entry =
      (tarn_traffic){.struct_size = sizeof **out_entry, .from = from, .to = to};
  return TARN_OK;
}

static bool is_zero(const tarn__synced_counts *c) {
  return (c->copies | c->moved | c->valid | c->discarded | c->outside |
          c->stalls | c->stalled_ns) == 0;
}

static tarn_status gather_pair(report *r, tarn__synced_core *core,
                               uint32_t from, uint32_t to) {
  const tarn__synced_counts *counts = tarn__core_counts(core, from, to);
  tarn_traffic *entry = NULL;
  if (is_zero(counts)) return TARN_OK;
  TARN__TRY(entry_of(r, core->sides[from].end.place, core->sides[to].end.place,
                     &entry));
  entry->copies += counts->copies;
  entry->bytes_moved += counts->moved;
  entry->bytes_valid += counts->valid;
  entry->bytes_discarded += counts->discarded;
  entry->bytes_outside += counts->outside;
  entry->stalls += counts->stalls;
  entry->stalled_ns += counts->stalled_ns;
  return TARN_OK;
}

static tarn_status gather(void *context, tarn__synced_core *core) {
  tarn_status status = TARN_OK;
  tarn__core_enter(core);
  for (uint32_t from = 0; from < core->side_count; from++) {
    for (uint32_t to = 0; to < core->side_count && status == TARN_OK; to++)
      status = gather_pair(context, core, from, to);
  }
  tarn__biased_lock_leave(&core->lock);
  return status;
}

static tarn_status reset(void *context, tarn__synced_core *core) {
  (void)context;
  tarn__core_enter(core);
  size_t pairs = (size_t)core->count_room * core->count_room;
  memset(core->counts, 0, pairs * sizeof *core->counts);
  tarn__biased_lock_leave(&core->lock);
  return TARN_OK;
}

// For that buffer, or with NULL for all.
static tarn_status each(tarn_synced *buffer, tarn__synced_registry_visit *visit,
                        void *context) {
  if (buffer == NULL) return tarn__registry_each(visit, context);
  return visit(context, buffer->core);
}

static tarn_status check(const tarn_synced *buffer) {
  return buffer != NULL ? tarn__synced_check(buffer) : tarn__not_in_callback();
}

tarn_status tarn_synced_traffic(tarn_synced *buffer, tarn_traffic_visit *visit,
                                void *context) {
  report r = report_of(TARN__ARRAY_OF(tarn_traffic));
  TARN__TRY(check(buffer));
  if (visit == NULL) {
    return tarn__fail(TARN_E_INVALID, "synced traffic: no function");
  }
  tarn_status status = each(buffer, gather, &r);
  const tarn_traffic *entries = r.items.items;
  for (size_t i = 0; i < r.items.count && status == TARN_OK; i++)
    status = visit(context, &entries[i]);
  tarn__array_free(&r.budget, &r.items);
  return status;
}

tarn_status tarn_synced_traffic_reset(tarn_synced *buffer) {
  TARN__TRY(check(buffer));
  return each(buffer, reset, NULL);
}

// --- the list of buffers -----------------------------------------------------

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
  tarn__core_enter(core);
  out->handles = core->handles;
  add_memory(core, out);
  add_accesses(core, out);
  tarn__biased_lock_leave(&core->lock);
}

typedef struct listed {
  tarn_synced_open open;
  char *name;  // a copy
} listed;

static tarn_status add(void *context, tarn__synced_core *core) {
  report *r = context;
  void *added = NULL;
  TARN__TRY(tarn__array_grow(&r->budget, &r->items, 1, &added));
  listed *at = added;
  at->name = tarn__host_text(core->name != NULL ? core->name : "");
  if (at->name == NULL) return TARN_E_NOMEM;
  describe(core, &at->open);
  at->open.name = at->name;
  return TARN_OK;
}

tarn_status tarn_synced_each_open(tarn_synced_open_visit *visit,
                                  void *context) {
  report r = report_of(TARN__ARRAY_OF(listed));
  TARN__TRY(tarn__not_in_callback());
  if (visit == NULL) {
    return tarn__fail(TARN_E_INVALID, "synced each open: no function");
  }
  tarn_status status = tarn__registry_each(add, &r);
  const listed *all = r.items.items;
  for (size_t i = 0; i < r.items.count && status == TARN_OK; i++)
    status = visit(context, &all[i].open);
  for (size_t i = 0; i < r.items.count; i++)
    tarn__host_free_text(all[i].name);
  tarn__array_free(&r.budget, &r.items);
  return status;
}
