// Counts of copies of one buffer, or of all.
//
// The counts are first copied into a table of pairs of places, with the lock of
// one buffer at a time, so that the visiting function may call the library.
//
//   places   host   sim:0  sim:1             room 4
//   counts   [h,h]  [h,0]  [h,1]  -          row: from, column: to
//            [0,h]  [0,0]  [0,1]  -
//            ...
#include "synced/core.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

// --- the table -------------------------------------------------------------

typedef struct table {
  tarn_place *places;           // |room| of them
  tarn__synced_counts *counts;  // room x room
  size_t count;                 // of places
  size_t room;
} table;

enum { FIRST_ROOM = 4 };

// NULL is allowed.
static void table_deinit(table *t) {
  tarn__host_free_array(t->places, t->room, sizeof *t->places);
  tarn__host_free_array(t->counts, t->room * t->room, sizeof *t->counts);
}

static tarn__synced_counts *at(const table *t, size_t from, size_t to) {
  return &t->counts[from * t->room + to];
}

// The same places and counts, with more room.
static tarn_status copy_table(const table *t, size_t room, table *out) {
  size_t pairs = 0;
  *out = (table){.count = t->count, .room = room};
  if (!tarn_size_mul(room, room, &pairs)) pairs = SIZE_MAX;  // is refused
  out->places = tarn__host_array(room, sizeof *out->places);
  out->counts = tarn__host_array(pairs, sizeof *out->counts);
  if (out->places == NULL || out->counts == NULL) {
    table_deinit(out);
    return TARN_E_NOMEM;
  }
  for (size_t i = 0; i < t->count; i++) {
    out->places[i] = t->places[i];
    for (size_t j = 0; j < t->count; j++)
      *at(out, i, j) = *at(t, i, j);
  }
  return TARN_OK;
}

static tarn_status table_grow(table *t) {
  table grown;
  size_t room = t->room == 0 ? FIRST_ROOM : 2 * t->room;
  tarn_status status = copy_table(t, room, &grown);
  if (status != TARN_OK) return status;
  table_deinit(t);
  *t = grown;
  return TARN_OK;
}

// The index of |place|, which is added if it is new.
static tarn_status index_of(table *t, tarn_place place, size_t *out_index) {
  size_t i = 0;
  while (i < t->count && !tarn_place_equal(t->places[i], place))
    i++;
  *out_index = i;
  if (i < t->count) return TARN_OK;
  tarn_status status = t->count < t->room ? TARN_OK : table_grow(t);
  if (status != TARN_OK) return status;
  t->places[t->count++] = place;
  return TARN_OK;
}

// --- gathering -------------------------------------------------------------

static void add(tarn__synced_counts *sum, const tarn__synced_counts *more) {
  sum->copies += more->copies;
  sum->moved += more->moved;
  sum->valid += more->valid;
  sum->discarded += more->discarded;
  sum->outside += more->outside;
  sum->stalls += more->stalls;
  sum->stalled_ns += more->stalled_ns;
}

// The indices of the sides of |core| in the table.
static tarn_status index_sides(table *t, const tarn__synced_core *core,
                               size_t *out) {
  for (uint32_t side = 0; side < core->side_count; side++) {
    tarn_status status = index_of(t, core->sides[side].end.place, &out[side]);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

static tarn_status gather_locked(table *t, tarn__synced_core *core) {
  size_t where[TARN__MOST_SIDES];
  tarn_status status = index_sides(t, core, where);
  if (status != TARN_OK) return status;
  for (uint32_t from = 0; from < core->side_count; from++) {
    for (uint32_t to = 0; to < core->side_count; to++)
      add(at(t, where[from], where[to]), tarn__core_counts(core, from, to));
  }
  return TARN_OK;
}

static tarn_status gather(void *context, tarn__synced_core *core) {
  tarn__biased_lock_enter(&core->lock);
  tarn_status status = gather_locked(context, core);
  tarn__biased_lock_leave(&core->lock);
  return status;
}

static tarn_status reset(void *context, tarn__synced_core *core) {
  (void)context;
  tarn__biased_lock_enter(&core->lock);
  size_t pairs = (size_t)core->side_room * core->side_room;
  memset(core->counts, 0, pairs * sizeof *core->counts);
  tarn__biased_lock_leave(&core->lock);
  return TARN_OK;
}

// --- showing ---------------------------------------------------------------

static bool is_zero(const tarn__synced_counts *c) {
  return (c->copies | c->moved | c->valid | c->discarded | c->outside |
          c->stalls | c->stalled_ns) == 0;
}

static tarn_traffic describe(const table *t, size_t from, size_t to) {
  const tarn__synced_counts *counts = at(t, from, to);
  return (tarn_traffic){
      .struct_size = sizeof(tarn_traffic),
      .from = t->places[from],
      .to = t->places[to],
      .copies = counts->copies,
      .bytes_moved = counts->moved,
      .bytes_valid = counts->valid,
      .bytes_discarded = counts->discarded,
      .bytes_outside = counts->outside,
      .stalls = counts->stalls,
      .stalled_ns = counts->stalled_ns,
  };
}

static tarn_status show(const table *t, tarn_traffic_visit *visit,
                        void *context) {
  for (size_t from = 0; from < t->count; from++) {
    for (size_t to = 0; to < t->count; to++) {
      if (is_zero(at(t, from, to))) continue;
      tarn_traffic traffic = describe(t, from, to);
      tarn_status status = visit(context, &traffic);
      if (status != TARN_OK) return status;
    }
  }
  return TARN_OK;
}

// --- the calls -------------------------------------------------------------

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
  table t = {.count = 0};
  tarn_status status = check(buffer);
  if (status != TARN_OK) return status;
  if (visit == NULL) {
    return tarn__fail(TARN_E_INVALID, "synced traffic: no function");
  }
  status = each(buffer, gather, &t);
  if (status == TARN_OK) status = show(&t, visit, context);
  table_deinit(&t);
  return status;
}

tarn_status tarn_synced_traffic_reset(tarn_synced *buffer) {
  tarn_status status = check(buffer);
  return status != TARN_OK ? status : each(buffer, reset, NULL);
}
