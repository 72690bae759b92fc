// Outside memory: wrapping, syncing back, and release.
//
// Invariants:
//   * Released memory is detached and has no uses, and the lock is not held: so
//     its deleter is called once.
//   * TARN_WRAP_SYNC_BACK implies TARN_WRAP_FILL.
#include "synced/outside.h"

#include <stdio.h>

#include "base/status.h"
#include "synced/access.h"
#include "synced/protect.h"
#include "synced/work.h"

// --- syncing back ------------------------------------------------------------

static bool is_to_have_back(const tarn__synced_side *side) {
  return tarn__side_has_memory(side) && side->outside &&
         (side->wrap & TARN_WRAP_SYNC_BACK) != 0;
}

bool tarn__outside_wants_back(const tarn__synced_core *core, uint32_t side) {
  tarn__synced_run run;
  return is_to_have_back(&core->sides[side]) &&
         tarn__core_find_run(core, 0, side, tarn__span_is_missing_at, &run);
}

// The rest removes void bytes of failed streams, which must not be copied.
tarn_status tarn__outside_give_back(tarn__synced_core *core, uint32_t side) {
  tarn_place place = core->sides[side].end.place;
  tarn_status status = tarn__side_rest(core, TARN__NO_SIDE, 0, core->size);
  if (status != TARN_OK) return status;
  return tarn__core_fetch_runs(core, side, tarn__span_is_missing_at, place);
}

// Writes the text of the first failure.
static void note_failure(const tarn__synced_core *core, tarn__synced_run run,
                         tarn_place place, char *text, size_t size) {
  char where[TARN__SIDE_TEXT];
  char buffer[TARN__CORE_TEXT];
  if (text[0] != '\0') return;
  snprintf(text, size, "%s: bytes %zu to %zu were not synced back to %s: %s",
           tarn__core_text(core, buffer), run.start, run.end,
           tarn_place_text(place, where, sizeof where), tarn_last_error());
}

// Copies as much as possible: this is the last copy.
static tarn_status sync_back(tarn__synced_core *core, uint32_t side, char *text,
                             size_t size) {
  tarn__synced_run run = {0, 0};
  tarn_status first = TARN_OK;
  tarn_place place = core->sides[side].end.place;
  while (tarn__core_find_run(core, run.end, side, tarn__span_is_missing_at,
                             &run)) {
    tarn__synced_request request = {
        .start = run.start, .end = run.end, .place = place, .mode = TARN_READ};
    tarn__core_leave(core);
    tarn_status status = tarn__fetch(core, &request, NULL, NULL);
    if (status != TARN_OK) note_failure(core, run, place, text, size);
    tarn__core_enter(core);
    if (first == TARN_OK) first = status;
  }
  return first;
}

tarn_status tarn__outside_sync_back(tarn__synced_core *core) {
  char text[384] = "";
  tarn_status first = TARN_OK;
  tarn__core_enter(core);
  for (uint32_t i = 0; i < core->side_count; i++) {
    if (!is_to_have_back(&core->sides[i])) continue;
    tarn_status status = sync_back(core, i, text, sizeof text);
    if (first == TARN_OK) first = status;
  }
  tarn__core_leave(core);
  return first == TARN_OK ? TARN_OK : tarn__fail_text(first, text);
}

// --- the place of an address -------------------------------------------------
//
//   place      accepted memory
//   device     memory of the device: its own, mapped, or unified
//   unified    memory of the device that the host can access
//   host       all but memory that the buffer's device knows as a device's own
//
// The first and the last byte are checked: a buffer may span several mappings.
// A device without pointer queries accepts any address. A device whose memory
// the host can access does not know memory of others, and accepts all host
// memory.

typedef struct question {
  const tarn__synced_core *core;
  tarn_device *device;  // to ask
  tarn_place place;
  bool accessible;  // the host can touch the device's own memory
} question;

static bool is_good(const question *q, const tarn_pointer_info *found) {
  tarn_place_kind kind = found->place.kind;
  if (q->place.kind == TARN_PLACE_HOST) return kind != TARN_PLACE_DEVICE;
  if (q->accessible && kind == TARN_PLACE_HOST) return true;
  if (found->place.device != q->place.device) return false;
  return q->place.kind == TARN_PLACE_DEVICE ? kind != TARN_PLACE_HOST
                                            : kind != TARN_PLACE_DEVICE;
}

static tarn_status refuse(const question *q, tarn_addr address,
                          const tarn_pointer_info *found) {
  enum { PLACE_TEXT = 64 };
  char buffer[TARN__CORE_TEXT];
  char wanted[PLACE_TEXT];
  char is[PLACE_TEXT];
  tarn__core_text(q->core, buffer);
  if (found == NULL) {
    return tarn__fail(TARN_E_INVALID, "%s: address 0x%llx is unknown to %s",
                      buffer, (unsigned long long)address,
                      tarn_device_name(q->device));
  }
  return tarn__fail(
      TARN_E_INVALID, "%s: address 0x%llx is memory of %s, not of %s", buffer,
      (unsigned long long)address, tarn_place_text(found->place, is, sizeof is),
      tarn_place_text(q->place, wanted, sizeof wanted));
}

static tarn_status ask(const question *q, tarn_addr address,
                       tarn_pointer_info *out_found) {
  tarn_status status = tarn_device_pointer_query(q->device, address, out_found);
  if (status == TARN_E_UNSUPPORTED) return TARN_OK;
  if (status == TARN_OK) {
    return is_good(q, out_found) ? TARN_OK : refuse(q, address, out_found);
  }
  if (status != TARN_E_INVALID) return status;
  // Memory that the driver does not know belongs to the host.
  bool good = q->place.kind == TARN_PLACE_HOST || q->accessible;
  return good ? TARN_OK : refuse(q, address, NULL);
}

static bool reaches(const tarn_pointer_info *found, tarn_addr address) {
  return found->size != 0 && address >= found->base &&
         address - found->base < found->size;
}

static tarn_status ask_both_ends(const question *q, tarn_addr address) {
  tarn_pointer_info found = {.size = 0};
  tarn_addr last = address + q->core->size - 1;
  tarn_status status = ask(q, address, &found);
  if (status != TARN_OK || reaches(&found, last)) return status;
  return ask(q, last, &found);
}

static bool can_be_asked(const tarn_device *device, tarn_place place) {
  if (place.kind == TARN_PLACE_HOST && tarn_device_host_accessible(device)) {
    return false;
  }
  return (tarn_device_extensions(device) & TARN_EXTENSION_POINTERS) != 0;
}

// At the host the device of the options is asked, which another thread may be
// closing.
static tarn_status check_at_host(tarn__synced_core *core, tarn_place place,
                                 tarn_addr address) {
  tarn_status status = TARN_OK;
  tarn_device *device = tarn__core_hold_device(core);
  question q = {.core = core, .device = device, .place = place};
  if (device == NULL) return TARN_OK;
  if (can_be_asked(device, place)) status = ask_both_ends(&q, address);
  tarn__core_release_device(core);
  return status;
}

static tarn_status check_whose(tarn__synced_core *core, tarn_place place,
                               tarn_addr address) {
  if (core->size == 0) return TARN_OK;
  if (core->size - 1 > UINT64_MAX - address) {
    char text[TARN__CORE_TEXT];
    return tarn__fail(
        TARN_E_INVALID, "%s: %zu bytes at 0x%llx exceed the address space",
        tarn__core_text(core, text), core->size, (unsigned long long)address);
  }
  if (place.kind == TARN_PLACE_HOST) return check_at_host(core, place, address);
  if (!can_be_asked(place.device, place)) return TARN_OK;
  question q = {.core = core,
                .device = place.device,
                .place = place,
                .accessible = tarn_device_host_accessible(place.device)};
  return ask_both_ends(&q, address);
}

// --- wrap --------------------------------------------------------------------

enum {
  KNOWN_FLAGS = TARN_WRAP_READ_ONLY | TARN_WRAP_FILL | TARN_WRAP_SYNC_BACK |
                TARN_WRAP_EMPTY,
  WRITTEN_TO = TARN_WRAP_FILL | TARN_WRAP_SYNC_BACK | TARN_WRAP_EMPTY,
};

static tarn_status check_flags(uint32_t flags) {
  if ((flags & ~(uint32_t)KNOWN_FLAGS) != 0) {
    return tarn__fail(TARN_E_INVALID, "synced: unknown wrap flags 0x%x",
                      (unsigned)flags);
  }
  if ((flags & TARN_WRAP_READ_ONLY) != 0 && (flags & WRITTEN_TO) != 0) {
    return tarn__fail(TARN_E_INVALID,
                      "synced: read-only memory cannot be filled, synced "
                      "back or empty: wrap flags 0x%x",
                      (unsigned)flags);
  }
  return TARN_OK;
}

static tarn_status read_options(const tarn_wrap_options *given,
                                tarn_wrap_options *out) {
  size_t size = 0;
  *out = (tarn_wrap_options){.struct_size = sizeof *out};
  if (given == NULL) return TARN_OK;
  if (!tarn__struct_size(given->struct_size, sizeof *out, sizeof *out, &size)) {
    return tarn__fail(TARN_E_INVALID,
                      "synced: invalid struct_size of wrap options");
  }
  *out = *given;
  return check_flags(given->flags);
}

static tarn_status check_whole(const tarn_synced *buffer, tarn_addr address) {
  tarn_status status = tarn__synced_check(buffer);
  if (status != TARN_OK) return status;
  char text[TARN__CORE_TEXT];
  tarn__core_text(buffer->core, text);
  if (address == 0) {
    return tarn__fail(TARN_E_INVALID, "%s: cannot wrap address 0", text);
  }
  if (buffer->size != buffer->core->size) {
    return tarn__fail(TARN_E_INVALID, "%s: a view of a part cannot be wrapped",
                      text);
  }
  return TARN_OK;
}

static tarn_status pointer_to(tarn_place place, tarn_addr address, size_t size,
                              void **out_pointer) {
  *out_pointer = NULL;
  if (place.kind == TARN_PLACE_DEVICE) return TARN_OK;
  if (place.kind == TARN_PLACE_UNIFIED && size > 0) {
    return tarn_device_host_view(place, address, size, out_pointer);
  }
  *out_pointer = (void *)(uintptr_t)address;
  return TARN_OK;
}

// Memory with ignored contents must not replace an only copy.
static tarn_status check_copies(const tarn__synced_core *core, uint32_t side,
                                uint32_t flags) {
  tarn__synced_run run;
  if ((flags & TARN_WRAP_EMPTY) == 0) return TARN_OK;
  if (!tarn__core_find_run(core, 0, side, tarn__span_is_only_at, &run)) {
    return TARN_OK;
  }
  char text[TARN__CORE_TEXT];
  char place[TARN__SIDE_TEXT];
  return tarn__fail(TARN_E_STATE,
                    "%s: bytes %zu to %zu have their only copy at %s: empty "
                    "memory cannot replace it",
                    tarn__core_text(core, text), run.start, run.end,
                    tarn__side_text(core, side, place));
}

// Does one step that is needed before the memory can be replaced; |*out_ready|:
// none is needed. With the lock, which is left meanwhile.
static tarn_status prepare(tarn__synced_core *core, uint32_t side,
                           uint32_t flags, bool *out_ready) {
  *out_ready = false;
  if ((flags & TARN_WRAP_EMPTY) == 0) {
    tarn_status admitted = tarn__core_admit(core);
    if (admitted != TARN_OK) return admitted;
  }
  if (core->sides[side].busy || tarn__core_is_copying(core, 0, core->size)) {
    tarn__core_sleep(core);
    return TARN_OK;
  }
  tarn_status status = tarn__access_check_none(
      core, TARN__NO_SIDE, 0, core->size, "it cannot be wrapped");
  if (status != TARN_OK) return status;
  if (core->sides[side].accesses > 0) {  // a thread that fetches, with none
    tarn__core_sleep(core);
    return TARN_OK;
  }
  status = check_copies(core, side, flags);
  if (status != TARN_OK) return status;
  if (tarn__core_is_in_use(core, side)) {
    return tarn__side_rest(core, side, 0, core->size);
  }
  if (tarn__outside_wants_back(core, side)) {
    return tarn__outside_give_back(core, side);
  }
  *out_ready = true;
  return TARN_OK;
}

static void take_contents(tarn__synced_core *core, uint32_t side) {
  for (tarn__synced_span *span = core->spans.first; span != NULL;
       span = span->next)
    tarn__span_set(core, span, tarn__side_bit(side), true);
  tarn__spans_join(&core->spans, 0, core->size);
}

// Cannot fail.
static tarn__synced_side exchange(tarn__synced_core *core, uint32_t side,
                                  const tarn__synced_side *memory) {
  tarn__synced_side former = tarn__side_detach(core, side);
  tarn__side_attach(core, side, memory);
  if ((memory->wrap & TARN_WRAP_EMPTY) == 0) take_contents(core, side);
  tarn__core_wake(core);
  return former;
}

static tarn_status wrap(tarn__synced_core *core, tarn_place place,
                        const tarn__synced_side *memory,
                        tarn__synced_side *out_former) {
  uint32_t side = TARN__NO_SIDE;
  bool ready = false;
  tarn__protect_tighten(core);
  tarn_status status = tarn__side_of(core, place, &side);
  while (status == TARN_OK && !ready)
    status = prepare(core, side, memory->wrap, &ready);
  if (status == TARN_OK) *out_former = exchange(core, side, memory);
  return status;
}

static tarn__synced_side memory_of(const tarn_wrap_options *options) {
  bool back = (options->flags & TARN_WRAP_SYNC_BACK) != 0;
  return (tarn__synced_side){
      .deleter = options->deleter,
      .context = options->context,
      .wrap = options->flags | (back ? TARN_WRAP_FILL : 0),
      .outside = true,
  };
}

tarn_status tarn_synced_wrap(tarn_synced *buffer, tarn_place place,
                             tarn_addr address,
                             const tarn_wrap_options *options) {
  tarn_wrap_options read;
  tarn__synced_side former = {.busy = false};
  tarn_status status = check_whole(buffer, address);
  if (status == TARN_OK) status = tarn__place_check(place);
  if (status == TARN_OK) status = read_options(options, &read);
  if (status != TARN_OK) return status;
  tarn__synced_core *core = buffer->core;
  tarn__synced_side memory = memory_of(&read);
  place = tarn__route_place(place);
  status = check_whose(core, place, address);
  if (status != TARN_OK) return status;
  memory.end.address = address;
  status = pointer_to(place, address, core->size, &memory.end.pointer);
  if (status != TARN_OK) return status;
  tarn__core_enter(core);
  status = wrap(core, place, &memory, &former);
  tarn__core_leave(core);
  if (status != TARN_OK) return status;
  tarn__side_let_go(core, &former);
  tarn__synced_tell_all(core, TARN_SYNCED_WRAPPED, place);
  return TARN_OK;
}
