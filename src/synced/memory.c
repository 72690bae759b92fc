// Replacing the memory of a place: wrapping and evicting; and discarding bytes,
// and suspending buffers.
//
// Before memory is detached, steps that release the lock are repeated until
// none is needed; then the lock is held until the memory is detached.
//
//   rest: streams ──► sync back ──► save only copies ──► detach
//        ▲──────── a step was needed: look again ──┘
//
// Invalidating waits for threads that copy, since they would commit afterwards.
// It does not wait for streams.
//
// Invariants:
//   * Released memory is detached and has no uses, and the lock is not held: so
//     its deleter is called once.
//   * TARN_WRAP_SYNC_BACK implies TARN_WRAP_FILL.
#include "base/status.h"
#include "synced/access.h"
#include "synced/protect.h"
#include "synced/sides.h"

// --- syncing back ------------------------------------------------------------

static bool is_to_have_back(const tarn__synced_side *side) {
  return tarn__side_has_memory(side) && side->outside &&
         (side->wrap & TARN_WRAP_SYNC_BACK) != 0;
}

// Copies as much as possible: this is the last copy.
static void sync_back(tarn__synced_core *core, uint32_t side,
                      tarn__failure *first) {
  char where[TARN__SIDE_TEXT];
  char text[TARN__CORE_TEXT];
  tarn__synced_run run = {0, 0};
  tarn_status status = TARN_OK;
  tarn_place place = core->sides[side].end.place;
  while ((status = tarn__core_fetch_runs(
              core, &run, side, tarn__span_is_missing_at, place)) != TARN_OK) {
    status = tarn__fail(
        status, "%s: bytes %zu to %zu were not synced back to %s: %s",
        tarn__core_text(core, text), run.start, run.end,
        tarn_place_text(place, where, sizeof where), tarn_last_error());
    tarn__failure_note(first, status);
  }
}

void tarn__outside_sync_back(tarn__synced_core *core, tarn__failure *first) {
  tarn__core_enter(core);
  for (uint32_t i = 0; i < core->side_count; i++) {
    if (is_to_have_back(&core->sides[i])) sync_back(core, i, first);
  }
  tarn__core_leave(core);
}

// --- memory that is to go ----------------------------------------------------
//
// TARN_PENDING: a step was made, and the lock was left: look again.

// Waits for threads that use the memory, and refuses open accesses (|at|
// TARN__NO_SIDE: at any side). |busy|: a thread is at work that ends by itself.
static tarn_status await_threads(tarn__synced_core *core, uint32_t side,
                                 bool busy, uint32_t at, const char *what) {
  if (!busy) TARN__TRY(tarn__access_check_none(core, at, 0, core->size, what));
  // Without an access there are the transfers of threads that fetch.
  if (!busy && core->sides[side].transfers == 0) return TARN_OK;
  tarn__core_sleep(core);
  return TARN_PENDING;
}

// Waits for streams; copies the newest bytes into memory that is to have them.
// All streams rest for that: void bytes of failed streams must not be copied.
static tarn_status settle_memory(tarn__synced_core *core, uint32_t side) {
  tarn__synced_run run = {0, 0};
  tarn_place place = core->sides[side].end.place;
  if (tarn__core_is_in_use(core, side)) {
    TARN__TRY(tarn__side_rest(core, side, 0, core->size));
    return TARN_PENDING;
  }
  if (!is_to_have_back(&core->sides[side]) ||
      !tarn__core_find_run(core, 0, side, tarn__span_is_missing_at, &run)) {
    return TARN_OK;
  }
  TARN__TRY(tarn__side_rest(core, TARN__NO_SIDE, 0, core->size));
  run.end = 0;
  TARN__TRY(
      tarn__core_fetch_runs(core, &run, side, tarn__span_is_missing_at, place));
  return TARN_PENDING;
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
  TARN__TRY(tarn__synced_check(buffer));
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
static tarn_status check_copies(const tarn__synced_core *core, uint32_t side) {
  tarn__synced_run run;
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

static void take_contents(tarn__synced_core *core, uint32_t side) {
  tarn__spans_each (span, &core->spans, 0, core->size)
    tarn__span_set(core, span, tarn__side_bit(side), true);
  tarn__spans_join(&core->spans, 0, core->size);
}

static tarn_status try_wrap(tarn__synced_core *core, uint32_t side,
                            const tarn__synced_side *memory,
                            tarn__synced_side *out_former) {
  bool empty = (memory->wrap & TARN_WRAP_EMPTY) != 0;
  if (!empty) TARN__TRY(tarn__core_admit(core));
  bool busy =
      core->sides[side].busy || tarn__core_is_copying(core, 0, core->size);
  TARN__TRY(
      await_threads(core, side, busy, TARN__NO_SIDE, "it cannot be wrapped"));
  if (empty) TARN__TRY(check_copies(core, side));
  TARN__TRY(settle_memory(core, side));
  *out_former = tarn__side_detach(core, side);
  tarn__side_attach(core, side, memory);
  if (!empty) take_contents(core, side);
  tarn__core_wake(core);
  return TARN_OK;
}

static tarn_status wrap(tarn__synced_core *core, tarn_place place,
                        const tarn__synced_side *memory,
                        tarn__synced_side *out_former) {
  uint32_t side = TARN__NO_SIDE;
  tarn__protect_tighten(core);
  TARN__TRY(tarn__side_of(core, place, &side));
  tarn_status status = TARN_PENDING;
  while (status == TARN_PENDING)
    status = try_wrap(core, side, memory, out_former);
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
  TARN__TRY(check_whole(buffer, address));
  TARN__TRY(tarn__place_check(place));
  TARN__TRY(read_options(options, &read));
  tarn__synced_core *core = buffer->core;
  tarn__synced_side memory = memory_of(&read);
  place = tarn__route_place(place);
  TARN__TRY(check_whose(core, place, address));
  memory.end.address = address;
  TARN__TRY(pointer_to(place, address, core->size, &memory.end.pointer));
  tarn__core_enter(core);
  tarn_status status = wrap(core, place, &memory, &former);
  tarn__core_leave(core);
  if (status != TARN_OK) return status;
  tarn__side_let_go(core, &former);
  tarn__synced_tell_all(core, TARN_SYNCED_WRAPPED, place);
  return TARN_OK;
}

// --- evict -------------------------------------------------------------------

// The place that saves only copies of |side|: the host; for the host the device
// of the options.
static tarn_status refuge(const tarn__synced_core *core, uint32_t side,
                          tarn_place *out_place) {
  *out_place = TARN_HOST;
  if (side != TARN__HOST_SIDE) return TARN_OK;
  bool none = core->device == NULL ||
              tarn_place_equal(tarn__route_place(tarn_place_on(core->device)),
                               TARN_HOST);
  if (!none) {
    *out_place = tarn_place_on(core->device);
    return TARN_OK;
  }
  char text[TARN__CORE_TEXT];
  return tarn__fail(TARN_E_STATE,
                    "%s: the host has the only copy, and the options named no "
                    "device to copy it to",
                    tarn__core_text(core, text));
}

// A suspended buffer has no valid bytes, so evicting it copies nothing.
static tarn_status try_evict(tarn__synced_core *core, uint32_t side,
                             tarn__synced_side *out_memory) {
  tarn_place place;
  tarn__synced_run run;
  TARN__TRY(await_threads(core, side, core->sides[side].busy, side,
                          "it cannot be evicted"));
  bool saves = tarn__core_find_run(core, 0, side, tarn__span_is_only_at, &run);
  if (saves) TARN__TRY(refuge(core, side, &place));
  TARN__TRY(settle_memory(core, side));
  if (saves) {
    run = (tarn__synced_run){0, 0};
    TARN__TRY(
        tarn__core_fetch_runs(core, &run, side, tarn__span_is_only_at, place));
    return TARN_PENDING;
  }
  *out_memory = tarn__side_detach(core, side);
  tarn__core_wake(core);
  return TARN_OK;
}

static tarn_status evict(tarn__synced_core *core, uint32_t side,
                         tarn__synced_side *out_memory) {
  tarn_status status = TARN_PENDING;
  while (status == TARN_PENDING &&
         (tarn__side_has_memory(&core->sides[side]) || core->sides[side].busy))
    status = try_evict(core, side, out_memory);
  return status == TARN_PENDING ? TARN_OK : status;
}

tarn_status tarn_synced_evict(tarn_synced *buffer, tarn_place place) {
  TARN__TRY(tarn__synced_check(buffer));
  TARN__TRY(tarn__place_check(place));
  tarn_status status = TARN_OK;
  tarn__synced_side memory = {.busy = false};
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  tarn__protect_tighten(core);
  uint32_t side = tarn__side_find(core, place);
  if (side != TARN__NO_SIDE) status = evict(core, side, &memory);
  tarn__core_leave(core);
  if (status == TARN_OK) tarn__side_let_go(core, &memory);
  return status;
}

// --- invalidate --------------------------------------------------------------

static tarn_status invalidate(tarn__synced_core *core, size_t start,
                              size_t end) {
  TARN__TRY(tarn__core_admit(core));
  while (tarn__core_is_copying(core, start, end)) {
    tarn__core_sleep(core);
    TARN__TRY(tarn__core_admit(core));
  }
  TARN__TRY(tarn__access_check_none(core, TARN__NO_SIDE, start, end,
                                    "its bytes cannot be invalidated"));
  TARN__TRY(tarn__spans_reserve(&core->spans, start, end, 0));
  tarn__core_drop(core, start, end);
  return TARN_OK;
}

tarn_status tarn_synced_invalidate(tarn_synced *buffer, size_t offset,
                                   size_t size) {
  size_t start = 0;
  size_t end = 0;
  tarn_status status = tarn__synced_range(buffer, offset, size, &start, &end);
  if (status != TARN_OK || start == end) return status;
  tarn__synced_core *core = buffer->core;
  tarn__core_enter(core);
  status = invalidate(core, start, end);
  tarn__core_leave(core);
  return status;
}

// --- suspend -----------------------------------------------------------------

// Whether a thread copies now, without an access.
static bool is_fetching(const tarn__synced_core *core) {
  bool found = false;
  for (uint32_t i = 0; i < core->side_count && !found; i++)
    found = core->sides[i].transfers > 0 || core->sides[i].busy;
  return found;
}

static tarn_status suspend(tarn__synced_core *core, const char *why) {
  static const char what[] = "it cannot be suspended";
  for (;;) {
    TARN__TRY(
        tarn__access_check_none(core, TARN__NO_SIDE, 0, core->size, what));
    if (!is_fetching(core)) break;
    tarn__core_sleep(core);
  }
  if (core->suspended == NULL && core->size > 0) {
    tarn__core_drop(core, 0, core->size);
  }
  core->suspended = why != NULL ? why : "";
  core->slow = true;
  return TARN_OK;
}

tarn_status tarn_synced_suspend(tarn_synced *buffer, const char *why) {
  TARN__TRY(tarn__synced_check(buffer));
  tarn__core_enter(buffer->core);
  tarn_status status = suspend(buffer->core, why);
  tarn__core_leave(buffer->core);
  return status;
}

tarn_status tarn_synced_resume(tarn_synced *buffer) {
  TARN__TRY(tarn__synced_check(buffer));
  tarn__core_enter(buffer->core);
  buffer->core->suspended = NULL;
  buffer->core->slow = buffer->core->protect;
  tarn__core_leave(buffer->core);
  return TARN_OK;
}
