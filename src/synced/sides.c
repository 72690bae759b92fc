// The places of a buffer, and its memory there.
//
// The tables of sides and counts move when they grow: a thread that has left
// the lock looks a side up again, or works on a copy of its end.
#include "synced/sides.h"

#include <string.h>

#include "base/budget.h"
#include "base/hostmem.h"
#include "base/status.h"
#include "synced/protect.h"
#include "synced/work.h"
#include "tarn/alloc.h"

enum { FIRST_ROOM = 4 };

// --- the table --------------------------------------------------------------

static tarn_status grow(tarn__synced_core *core) {
  size_t room = core->side_room;
  size_t wider = room == 0 ? FIRST_ROOM : 2 * room;
  if (core->count_room < wider) {
    size_t pairs = (size_t)core->count_room * core->count_room;
    void *counts = tarn__host_resize(core->counts, pairs, wider * wider,
                                     sizeof *core->counts);
    if (counts == NULL) return TARN_E_NOMEM;
    core->counts = counts;
    core->count_room = (uint32_t)wider;
  }
  void *sides =
      tarn__host_resize(core->sides, room, wider, sizeof *core->sides);
  if (sides == NULL) return TARN_E_NOMEM;
  core->sides = sides;
  core->side_room = (uint32_t)wider;
  return TARN_OK;
}

// A side of a closed device keeps its counts until the side is needed.
static tarn_status reuse_side(tarn__synced_core *core, uint32_t *out_side) {
  *out_side = tarn__side_at(core, tarn__nowhere);
  if (*out_side == TARN__NO_SIDE) {
    char text[TARN__CORE_TEXT];
    return tarn__fail(TARN_E_UNSUPPORTED, "%s has %d places already",
                      tarn__core_text(core, text), TARN__MOST_SIDES);
  }
  static const tarn__synced_counts none;
  for (uint32_t other = 0; other < core->side_count; other++) {
    *tarn__core_counts(core, *out_side, other) = none;
    *tarn__core_counts(core, other, *out_side) = none;
  }
  return TARN_OK;
}

static tarn_status find_room(tarn__synced_core *core, uint32_t *out_side) {
  if (core->side_count == TARN__MOST_SIDES) return reuse_side(core, out_side);
  if (core->side_count == core->side_room) TARN__TRY(grow(core));
  *out_side = core->side_count++;
  return TARN_OK;
}

static tarn_status add_side(tarn__synced_core *core, tarn_place place,
                            uint32_t *out_side) {
  TARN__TRY(find_room(core, out_side));
  core->sides[*out_side] = (tarn__synced_side){.end = {.place = place}};
  return TARN_OK;
}

tarn_status tarn__sides_init(tarn__synced_core *core) {
  uint32_t host = TARN__NO_SIDE;
  return add_side(core, TARN_HOST, &host);
}

void tarn__sides_deinit(tarn__synced_core *core) {
  for (uint32_t i = 0; i < core->side_count; i++)
    tarn__protect_end(core, &core->sides[i]);
  tarn__host_free_array(core->sides, core->side_room, sizeof *core->sides);
  tarn__host_free_array(core->counts,
                        (size_t)core->count_room * core->count_room,
                        sizeof *core->counts);
}

// --- the side of a place ----------------------------------------------------

uint32_t tarn__side_at(const tarn__synced_core *core, tarn_place place) {
  for (uint32_t i = 0; i < core->side_count; i++) {
    if (tarn__route_is_same(core->sides[i].end.place, place)) return i;
  }
  return TARN__NO_SIDE;
}

uint32_t tarn__side_find(const tarn__synced_core *core, tarn_place place) {
  return tarn__side_at(core, tarn__route_place(place));
}

// The pool tells whether the place can have memory. The copy streams are made
// so that buffers are asked when the device closes. Without the lock, since
// both are created at first use.
static tarn_status ask_place(tarn__synced_core *core, tarn_place place) {
  tarn_pool *pool = NULL;
  tarn__synced_copy_streams *copy_streams = NULL;
  tarn__core_leave(core);
  tarn_status status = tarn_pool_of(place, &pool);
  if (status == TARN_OK && place.device != NULL) {
    status = tarn__copy_streams_of(place.device, &copy_streams);
  }
  tarn__core_enter(core);
  return status;
}

tarn_status tarn__side_of(tarn__synced_core *core, tarn_place place,
                          uint32_t *out_side) {
  *out_side = TARN__NO_SIDE;
  TARN__TRY(tarn__place_check(place));
  tarn_place own = tarn__route_place(place);
  uint32_t side = tarn__side_at(core, own);
  if (side == TARN__NO_SIDE) {
    TARN__TRY(ask_place(core, own));
    side = tarn__side_at(core, own);  // another may have been quicker
  }
  if (side == TARN__NO_SIDE) {
    TARN__TRY(add_side(core, own, &side));
  }
  core->last_place = place;
  core->last_side = side;
  *out_side = side;
  return TARN_OK;
}

// --- memory -----------------------------------------------------------------

// A size beyond any address space is the same as a full pool.
static tarn_status allocate(const tarn__synced_core *core, tarn_place place,
                            tarn_pool *pool, tarn_block *out_block) {
  size_t rounded = 0;
  size_t size = core->size;
  size_t align = core->align;
  if (core->size > PTRDIFF_MAX / 2 ||
      !tarn__protect_round(core, place, &size, &align) ||
      !tarn_size_align_up(size, align > 0 ? align : 1, &rounded)) {
    char text[TARN__CORE_TEXT];
    return tarn__fail(TARN_FULL, "%s: %zu bytes exceed any place",
                      tarn__core_text(core, text), core->size);
  }
  tarn_alloc_options options = {.struct_size = sizeof options,
                                .size = size,
                                .align = align,
                                .tag = core->tag};
  return tarn_pool_alloc_with(pool, &options, out_block);
}

static tarn_status allocate_at(tarn__synced_core *core, tarn_place place,
                               tarn_place where,
                               tarn__synced_side *out_memory) {
  tarn_pool *pool = NULL;
  tarn_block block = {.pool = NULL};
  void *pointer = NULL;
  tarn_status status = tarn_pool_of(where, &pool);
  if (status == TARN_OK) status = allocate(core, place, pool, &block);
  if (status != TARN_OK) return status;
  if (place.kind != TARN_PLACE_DEVICE) {
    status = tarn_device_host_view(where, block.address, block.size, &pointer);
  }
  if (status == TARN_OK) status = tarn__protect_begin(core, out_memory);
  if (status != TARN_OK) {
    (void)tarn_pool_free(&block, NULL);
    return status;
  }
  out_memory->end.address = block.address;
  out_memory->end.pointer = pointer;
  out_memory->block = block;
  return TARN_OK;
}

// Allocates from the pool of |place| with |core|'s options. |*out_memory| is a
// side with only that memory. Without the lock.
//
// The program keeps the device of |place| open. Another thread may close the
// device of the options, which pins host memory, during the call.
static tarn_status allocate_side(tarn__synced_core *core, tarn_place place,
                                 tarn__synced_side *out_memory) {
  bool at_host = place.kind == TARN_PLACE_HOST;
  tarn_device *device = at_host ? tarn__core_hold_device(core) : NULL;
  *out_memory = (tarn__synced_side){.end = {.place = place}};
  tarn_place pinned = {device, TARN_PLACE_HOST};
  tarn_status status =
      allocate_at(core, place, device != NULL ? pinned : place, out_memory);
  if (device != NULL) tarn__core_release_device(core);
  return status;
}

void tarn__side_attach(tarn__synced_core *core, uint32_t side,
                       const tarn__synced_side *memory) {
  tarn__synced_side *at = &core->sides[side];
  at->end.address = memory->end.address;
  at->end.pointer = memory->end.pointer;
  at->block = memory->block;
  at->deleter = memory->deleter;
  at->context = memory->context;
  at->wrap = memory->wrap;
  at->outside = memory->outside;
  at->pages = memory->pages;
}

tarn_status tarn__side_take(tarn__synced_core *core, uint32_t side) {
  tarn__synced_side memory;
  tarn_place place = core->sides[side].end.place;
  core->sides[side].busy = true;
  tarn__core_leave(core);
  tarn_status status = allocate_side(core, place, &memory);
  if (status == TARN_OK)
    tarn__synced_tell_all(core, TARN_SYNCED_ALLOCATED, place);
  tarn__core_enter(core);
  core->sides[side].busy = false;
  if (status == TARN_OK) tarn__side_attach(core, side, &memory);
  tarn__core_wake(core);
  return status;
}

static bool is_of_side(const tarn__synced_use *use, void *context) {
  const uint32_t *side = context;
  return use->side == *side;
}

tarn__synced_side tarn__side_detach(tarn__synced_core *core, uint32_t side) {
  uint64_t bit = tarn__side_bit(side);
  tarn__protect_tighten(core);
  tarn__spans_each (span, &core->spans, 0, core->size) {
    if ((span->valid & bit) != 0) {
      tarn__span_set(core, span, span->valid & ~bit, span->written);
    }
    if (span->uses != NULL) {
      tarn__span_forget(&core->spans, span, is_of_side, &side);
    }
  }
  tarn__synced_side taken = core->sides[side];
  tarn__synced_side none = {.end = {.place = taken.end.place},
                            .busy = taken.busy};
  core->sides[side] = none;
  tarn__spans_join(&core->spans, 0, core->size);
  return taken;
}

// As tarn__side_release, for memory that was never attached: there is no trace
// event.
static tarn_status discard(const tarn__synced_core *core,
                           const tarn__synced_side *memory) {
  if (!tarn__side_has_memory(memory)) return TARN_OK;
  tarn__protect_end(core, memory);
  if (core->generation != tarn__os_generation()) return TARN_OK;
  tarn_status status = TARN_OK;
  if (memory->deleter != NULL) {
    memory->deleter(memory->context, memory->end.place, memory->end.address,
                    core->size);
  } else if (!memory->outside) {
    status = tarn_pool_free(&memory->block, NULL);
  }
  return status;
}

tarn_status tarn__side_release(const tarn__synced_core *core,
                               const tarn__synced_side *memory) {
  if (!tarn__side_has_memory(memory)) return TARN_OK;
  tarn_status status = discard(core, memory);
  if (core->generation == tarn__os_generation()) {
    tarn__synced_tell_all(core, TARN_SYNCED_RELEASED, memory->end.place);
  }
  return status;
}

void tarn__side_let_go(const tarn__synced_core *core,
                       const tarn__synced_side *memory) {
  if (!tarn__side_has_memory(memory)) return;
  if (tarn__side_release(core, memory) == TARN_OK) return;
  char text[TARN__CORE_TEXT];
  tarn__log(TARN_LOG_WARN, "%s: memory that was let go: %s",
            tarn__core_text(core, text), tarn_last_error());
}

// --- moving to own memory ----------------------------------------------------
//
//   borrowed   ▓▓▓▓▓▓░░░░▓▓▓▓▒▒▒▒     ▓ valid here alone: copied over
//                ▼        ▼           ▒ valid elsewhere too: not here any more
//   own        ▓▓▓▓▓▓    ▓▓▓▓         ░ not valid here
//
// While the bytes are copied the side is busy: no access begins there, so no
// byte becomes valid there, and copied bytes stay valid. But bytes that are
// valid elsewhere may become stale there meanwhile. So the runs are listed
// again after the copies, and if there are new ones all is repeated.

typedef struct moving {
  tarn__synced_core *core;
  uint32_t side;
  const tarn__synced_end *to;
  tarn__budget budget;
  tarn__array runs;  // tarn__synced_run, in order: copied
} moving;

static bool find_run(const moving *m, tarn__synced_run *io_run) {
  return tarn__core_find_run(m->core, io_run->end, m->side,
                             tarn__span_is_only_at, io_run);
}

// With the lock.
static tarn_status list_runs(moving *m) {
  void *added = NULL;
  tarn__synced_run run = {0, 0};
  tarn__array_drop(&m->runs, m->runs.count);
  while (find_run(m, &run)) {
    TARN__TRY(tarn__array_grow(&m->budget, &m->runs, 1, &added));
    *(tarn__synced_run *)added = run;
  }
  return TARN_OK;
}

// Whether each run of only copies lies within one that was copied. With the
// lock.
static bool has_all(const moving *m) {
  const tarn__synced_run *copied = m->runs.items;
  size_t at = 0;
  tarn__synced_run run = {0, 0};
  while (find_run(m, &run)) {
    while (at < m->runs.count && copied[at].end < run.end)
      at++;
    if (at == m->runs.count || copied[at].start > run.start) return false;
  }
  return true;
}

// Without the lock.
static tarn_status copy_runs(const moving *m, const tarn__synced_end *from) {
  const tarn__synced_run *runs = m->runs.items;
  for (size_t i = 0; i < m->runs.count; i++) {
    size_t size = runs[i].end - runs[i].start;
    TARN__TRY(tarn__route_copy(from, m->to, runs[i].start, size, NULL));
    tarn__synced_tell(m->core, (tarn_synced_event){.what = TARN_SYNCED_COPIED,
                                                   .from = from->place,
                                                   .to = from->place,
                                                   .offset = runs[i].start,
                                                   .size = size});
  }
  return TARN_OK;
}

// Waits for the uses of the outside memory, and copies the bytes that only it
// has. TARN_PENDING: some were copied, and there may be new ones; TARN_OK:
// there were none. The caller holds the lock, which is released.
static tarn_status copy_over(moving *m) {
  tarn__synced_core *core = m->core;
  TARN__TRY(tarn__side_rest(core, m->side, 0, core->size));
  if (has_all(m)) return TARN_OK;
  TARN__TRY(list_runs(m));
  tarn__synced_end from = core->sides[m->side].end;
  tarn__core_leave(core);
  tarn_status status = copy_runs(m, &from);
  tarn__core_enter(core);
  TARN__TRY(status);
  const tarn__synced_run *runs = m->runs.items;
  tarn__synced_counts *counts = tarn__core_counts(core, m->side, m->side);
  counts->copies += m->runs.count;
  for (size_t i = 0; i < m->runs.count; i++)
    counts->moved += runs[i].end - runs[i].start;
  return TARN_PENDING;
}

// Cannot fail. Only copies keep their bit, so the sums stay right.
static void exchange(tarn__synced_core *core, uint32_t side,
                     tarn__synced_side *memory) {
  uint64_t bit = tarn__side_bit(side);
  tarn__spans_each (span, &core->spans, 0, core->size) {
    if (tarn__span_is_only_at(span, side)) continue;
    tarn__span_set(core, span, span->valid & ~bit, span->written);
  }
  tarn__synced_side former = core->sides[side];
  tarn__side_attach(core, side, memory);
  *memory = former;
  tarn__spans_join(&core->spans, 0, core->size);
}

// The caller holds the lock, which is released; the side is busy.
static tarn_status move(tarn__synced_core *core, uint32_t side,
                        tarn__synced_side *memory) {
  tarn_place place = core->sides[side].end.place;
  tarn__core_leave(core);
  tarn_status status = allocate_side(core, place, memory);
  tarn__core_enter(core);
  TARN__TRY(status);
  moving m = {.core = core,
              .side = side,
              .to = &memory->end,
              .budget = tarn__budget_unlimited("synced"),
              .runs = TARN__ARRAY_OF(tarn__synced_run)};
  do {
    status = copy_over(&m);
  } while (status == TARN_PENDING);
  tarn__array_free(&m.budget, &m.runs);
  if (status == TARN_OK) exchange(core, side, memory);
  return status;
}

tarn_status tarn__side_move_to_own(tarn__synced_core *core, uint32_t side) {
  tarn__synced_side memory = {.busy = false};
  if (core->sides[side].busy) {
    tarn__core_sleep(core);
    return TARN_OK;
  }
  TARN__TRY(tarn__access_check_none(core, side, 0, core->size,
                                    "borrowed memory cannot be replaced"));
  tarn_place place = core->sides[side].end.place;
  core->sides[side].busy = true;
  tarn_status status = move(core, side, &memory);
  core->sides[side].busy = false;
  tarn__core_wake(core);
  tarn__core_leave(core);
  if (status == TARN_OK) {
    tarn__synced_tell_all(core, TARN_SYNCED_ALLOCATED, place);
    tarn__side_let_go(core, &memory);
  } else {
    tarn__failure failure = tarn__failure_of(status);  // its text must stay
    (void)discard(core, &memory);
    (void)tarn__failure_tell(&failure);
  }
  tarn__core_enter(core);
  return status;
}
