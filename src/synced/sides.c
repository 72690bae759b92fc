// The places of a buffer, and its memory there.
//
// The tables of sides and counts move when they grow: a thread that has left
// the lock looks a side up again, or works on a copy of its end.
#include "synced/sides.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "synced/protect.h"
#include "synced/work.h"
#include "tarn/alloc.h"

enum { FIRST_ROOM = 4 };

// --- the table --------------------------------------------------------------

static void move_counts(const tarn__synced_core *core, tarn__synced_counts *to,
                        uint32_t room) {
  for (uint32_t from = 0; from < core->side_count; from++) {
    for (uint32_t at = 0; at < core->side_count; at++) {
      to[(size_t)from * room + at] =
          core->counts[(size_t)from * core->side_room + at];
    }
  }
}

static void free_tables(tarn__synced_core *core) {
  size_t room = core->side_room;
  tarn__host_free_array(core->sides, room, sizeof *core->sides);
  tarn__host_free_array(core->counts, room * room, sizeof *core->counts);
}

static tarn_status grow(tarn__synced_core *core, uint32_t room) {
  tarn__synced_side *sides = tarn__host_array(room, sizeof *sides);
  tarn__synced_counts *counts =
      tarn__host_array((size_t)room * room, sizeof *counts);
  if (sides == NULL || counts == NULL) {
    tarn__host_free_array(sides, room, sizeof *sides);
    tarn__host_free_array(counts, (size_t)room * room, sizeof *counts);
    return TARN_E_NOMEM;
  }
  for (uint32_t i = 0; i < core->side_count; i++)
    sides[i] = core->sides[i];
  move_counts(core, counts, room);
  free_tables(core);
  core->sides = sides;
  core->counts = counts;
  core->side_room = room;
  return TARN_OK;
}

// A side of a closed device keeps its counts until the side is needed.
static uint32_t side_of_nowhere(const tarn__synced_core *core) {
  uint32_t side = 0;
  while (side < core->side_count &&
         !tarn__core_is_nowhere(core->sides[side].end.place)) {
    side++;
  }
  return side < core->side_count ? side : TARN__NO_SIDE;
}

static tarn_status reuse_side(tarn__synced_core *core, uint32_t *out_side) {
  *out_side = side_of_nowhere(core);
  if (*out_side == TARN__NO_SIDE) {
    char text[TARN__CORE_TEXT];
    return tarn__fail(TARN_E_UNSUPPORTED, "%s has %d places already",
                      tarn__core_text(core, text), TARN__MOST_SIDES);
  }
  for (uint32_t other = 0; other < core->side_count; other++) {
    *tarn__core_counts(core, *out_side, other) =
        (tarn__synced_counts){.copies = 0};
    *tarn__core_counts(core, other, *out_side) =
        (tarn__synced_counts){.copies = 0};
  }
  return TARN_OK;
}

static tarn_status find_room(tarn__synced_core *core, uint32_t *out_side) {
  tarn_status status = TARN_OK;
  if (core->side_count == TARN__MOST_SIDES) return reuse_side(core, out_side);
  if (core->side_count == core->side_room) {
    status =
        grow(core, core->side_room == 0 ? FIRST_ROOM : core->side_room * 2);
  }
  if (status == TARN_OK) *out_side = core->side_count++;
  return status;
}

static tarn_status add_side(tarn__synced_core *core, tarn_place place,
                            uint32_t *out_side) {
  tarn_status status = find_room(core, out_side);
  if (status == TARN_OK) {
    core->sides[*out_side] = (tarn__synced_side){.end = {.place = place}};
  }
  return status;
}

tarn_status tarn__sides_init(tarn__synced_core *core) {
  uint32_t host = TARN__NO_SIDE;
  return add_side(core, TARN_HOST, &host);
}

void tarn__sides_deinit(tarn__synced_core *core) {
  for (uint32_t i = 0; i < core->side_count; i++)
    tarn__protect_end(core, &core->sides[i]);
  free_tables(core);
  core->sides = NULL;
  core->counts = NULL;
  core->side_count = 0;
  core->side_room = 0;
}

// --- the side of a place ----------------------------------------------------

static bool is_same(tarn_place a, tarn_place b) {
  return a.device == b.device && a.kind == b.kind;
}

static uint32_t find(const tarn__synced_core *core, tarn_place place) {
  for (uint32_t i = 0; i < core->side_count; i++) {
    if (is_same(core->sides[i].end.place, place)) return i;
  }
  return TARN__NO_SIDE;
}

uint32_t tarn__side_find(const tarn__synced_core *core, tarn_place place) {
  return find(core, tarn__route_place(place));
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
  tarn_status status = tarn__place_check(place);
  if (status != TARN_OK) return status;
  tarn_place own = tarn__route_place(place);
  uint32_t side = find(core, own);
  if (side == TARN__NO_SIDE) {
    status = ask_place(core, own);
    if (status != TARN_OK) return status;
    side = find(core, own);  // another may have been quicker
  }
  if (side == TARN__NO_SIDE) {
    status = add_side(core, own, &side);
    if (status != TARN_OK) return status;
  }
  core->last_place = place;
  core->last_side = side;
  *out_side = side;
  return TARN_OK;
}

// --- memory -----------------------------------------------------------------

// The device of the options pins memory of the host.
static tarn_place pool_place(tarn_device *device, tarn_place place) {
  return device != NULL ? (tarn_place){device, TARN_PLACE_HOST} : place;
}

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

// The program keeps the device of |place| open. The device of the options,
// which pins host memory, may be closed by another thread meanwhile.
tarn_status tarn__side_allocate(tarn__synced_core *core, tarn_place place,
                                tarn__synced_side *out_memory) {
  bool at_host = place.kind == TARN_PLACE_HOST;
  tarn_device *device = at_host ? tarn__core_hold_device(core) : NULL;
  *out_memory = (tarn__synced_side){.end = {.place = place}};
  tarn_status status =
      allocate_at(core, place, pool_place(device, place), out_memory);
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
  tarn_status status = tarn__side_allocate(core, place, &memory);
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
  for (tarn__synced_span *span = core->spans.first; span != NULL;
       span = span->next) {
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

tarn_status tarn__side_discard(const tarn__synced_core *core,
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
  tarn_status status = tarn__side_discard(core, memory);
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
