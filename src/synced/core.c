// The state that a buffer shares with its views: checks, the lock, sums over
// the validity, open accesses.
//
// Invariants (tarn__core_verify walks them):
//   * live is the sum of the bytes of spans that are written and not lost
//   * a side's |fresh| is the sum of those that are written and valid there
//   * bits of |valid| are of sides that have memory
#include "synced/core.h"

#include <stdio.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "synced/protect.h"
#include "synced/sides.h"

// --- before anything else ---------------------------------------------------

tarn_status tarn__synced_check(const tarn_synced *buffer) {
  if (buffer == NULL) return tarn__fail(TARN_E_INVALID, "synced: NULL");
  if (buffer->core->generation != tarn__os_generation()) {
    return tarn__fail(TARN_E_STATE,
                      "synced: the buffer was created before a fork");
  }
  return tarn__not_in_callback();
}

tarn_status tarn__synced_range(const tarn_synced *buffer, size_t offset,
                               size_t size, size_t *out_start,
                               size_t *out_end) {
  TARN__TRY(tarn__synced_check(buffer));
  bool fits = offset <= buffer->size;
  size_t most = fits ? buffer->size - offset : 0;
  if (size == TARN_ALL) size = most;
  if (!fits || size > most) {
    char text[TARN__CORE_TEXT];
    return tarn__fail(
        TARN_E_INVALID, "%s: %zu bytes at offset %zu exceed its %zu bytes",
        tarn__core_text(buffer->core, text), size, offset, buffer->size);
  }
  *out_start = buffer->offset + offset;
  *out_end = *out_start + size;
  return TARN_OK;
}

tarn_status tarn__core_admit(tarn__synced_core *core) {
  tarn__protect_tighten(core);
  if (core->suspended == NULL) return TARN_OK;
  char text[TARN__CORE_TEXT];
  return tarn__fail(TARN_E_STATE, "%s is suspended: %s",
                    tarn__core_text(core, text), core->suspended);
}

tarn_status tarn__synced_device(const tarn_synced *buffer,
                                tarn_place *out_place) {
  char text[TARN__CORE_TEXT];
  TARN__TRY(tarn__synced_check(buffer));
  tarn_device *device = buffer->core->device;
  *out_place = tarn_place_on(device);
  if (device != NULL) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "%s has no device: its options named none",
                    tarn__core_text(buffer->core, text));
}

char *tarn__core_text(const tarn__synced_core *core, char *out) {
  unsigned long long id = core->id;
  if (core->name != NULL) {
    snprintf(out, TARN__CORE_TEXT, "buffer %llu ('%.60s')", id, core->name);
  } else {
    snprintf(out, TARN__CORE_TEXT, "buffer %llu", id);
  }
  return out;
}

char *tarn__side_text(const tarn__synced_core *core, uint32_t side, char *out) {
  return tarn_place_text(core->sides[side].end.place, out, TARN__SIDE_TEXT);
}

// --- losses ------------------------------------------------------------------

static tarn__synced_loss *loss_at(const tarn__synced_core *core,
                                  uint64_t number) {
  return &core->losses[number % TARN__MOST_LOSSES];
}

static bool continues(const tarn__synced_core *core,
                      tarn__synced_loss_cause cause, uint32_t side,
                      size_t start) {
  if (core->loss_count == core->losses_told) return false;
  const tarn__synced_loss *last = loss_at(core, core->loss_count - 1);
  return last->cause == cause && last->side == side && last->end == start;
}

// Without memory, or with too many losses at once, the trace does not get the
// loss, and texts do not give the reason.
void tarn__core_note_loss(tarn__synced_core *core,
                          tarn__synced_loss_cause cause, uint32_t side,
                          size_t start, size_t end) {
  if (core->losses == NULL) {
    core->losses = tarn__host_array(TARN__MOST_LOSSES, sizeof *core->losses);
  }
  if (core->losses == NULL) return;
  if (continues(core, cause, side, start)) {
    loss_at(core, core->loss_count - 1)->end = end;
    return;
  }
  *loss_at(core, core->loss_count) = (tarn__synced_loss){
      .start = start, .end = end, .side = side, .cause = cause};
  core->loss_count++;
  if (core->loss_count - core->losses_told > TARN__MOST_LOSSES) {
    core->losses_told++;
  }
}

static const tarn__synced_loss *find_loss(const tarn__synced_core *core,
                                          size_t offset) {
  for (uint64_t i = 0; i < core->loss_count && i < TARN__MOST_LOSSES; i++) {
    const tarn__synced_loss *loss = loss_at(core, core->loss_count - 1 - i);
    if (loss->start <= offset && offset < loss->end) return loss;
  }
  return NULL;
}

tarn_status tarn__core_tell_loss(const tarn__synced_core *core,
                                 const tarn__synced_span *span) {
  static const char *const whys[] = {
      [TARN__LOSS_UNKNOWN] = "went",
      [TARN__LOSS_CANCELLED] = "went when a write was cancelled",
      [TARN__LOSS_FAILED] = "went when a stream failed",
  };
  char text[TARN__CORE_TEXT];
  char place[TARN__SIDE_TEXT];
  tarn__core_text(core, text);
  const tarn__synced_loss *loss = find_loss(core, span->node.start);
  if (loss == NULL) {
    return tarn__fail(TARN_E_STATE,
                      "%s: bytes %zu to %zu are lost, or were invalidated",
                      text, span->node.start, span->end);
  }
  if (loss->cause == TARN__LOSS_INVALIDATED) {
    return tarn__fail(TARN_E_STATE, "%s: bytes %zu to %zu were invalidated",
                      text, span->node.start, span->end);
  }
  return tarn__fail(
      TARN_E_STATE, "%s: bytes %zu to %zu are lost: their only copy, at %s, %s",
      text, span->node.start, span->end,
      tarn__side_text(core, loss->side, place), whys[loss->cause]);
}

// --- the lock ----------------------------------------------------------------

// Takes the losses that the trace has not got yet. With the lock.
static size_t take_losses(tarn__synced_core *core, tarn_synced_event *events) {
  size_t count = 0;
  for (; core->losses_told < core->loss_count; core->losses_told++) {
    const tarn__synced_loss *loss = loss_at(core, core->losses_told);
    if (loss->cause == TARN__LOSS_INVALIDATED) continue;
    events[count++] =
        (tarn_synced_event){.what = TARN_SYNCED_LOST,
                            .from = core->sides[loss->side].end.place,
                            .to = TARN_HOST,
                            .offset = loss->start,
                            .size = loss->end - loss->start};
  }
  return count;
}

static void leave_and_tell(tarn__synced_core *core) {
  tarn_synced_event events[TARN__MOST_LOSSES];
  size_t count = take_losses(core, events);
  tarn__biased_lock_leave(&core->lock);
  for (size_t i = 0; i < count; i++)
    tarn__synced_tell(core, events[i]);
}

void tarn__core_leave(tarn__synced_core *core) {
  tarn__protect_settle(core);
  if (core->losses_told == core->loss_count) {
    tarn__biased_lock_leave(&core->lock);
  } else {
    leave_and_tell(core);
  }
}

void tarn__core_sleep(tarn__synced_core *core) {
  tarn__protect_settle(core);
  core->sleepers++;
  tarn__biased_lock_wait(&core->lock, &core->changed);
  core->sleepers--;
}

// --- what is valid where -----------------------------------------------------

static uint64_t newest(uint64_t valid, bool written) {
  return written ? valid : 0;
}

void tarn__span_set(tarn__synced_core *core, tarn__synced_span *span,
                    uint64_t valid, bool written) {
  size_t size = span->end - span->node.start;
  uint64_t was = newest(span->valid, span->written);
  uint64_t is = newest(valid, written);
  if (was != 0) core->live -= size;
  if (is != 0) core->live += size;
  for (uint64_t left = was ^ is; left != 0; left &= left - 1) {
    uint32_t side = (uint32_t)__builtin_ctzll(left);
    tarn__synced_side *changed = &core->sides[side];
    changed->fresh += (is & tarn__side_bit(side)) != 0 ? size : 0 - size;
  }
  span->valid = valid;
  span->written = written;
}

void tarn__core_drop(tarn__synced_core *core, size_t start, size_t end) {
  tarn__spans_cut(&core->spans, start, end);
  tarn__spans_each (span, &core->spans, start, end)
    tarn__span_set(core, span, 0, true);
  tarn__core_note_loss(core, TARN__LOSS_INVALIDATED, TARN__HOST_SIDE, start,
                       end);
  tarn__spans_join(&core->spans, start, end);
}

// --- open accesses -----------------------------------------------------------

// Whether there are readers or writers, with an access or without.
static bool is_entered(const tarn__synced_core *core, size_t start,
                       size_t end) {
  tarn__spans_each (span, &core->spans, start, end) {
    if (span->writer != NULL || span->readers > 0) return true;
  }
  return false;
}

// The list has all open accesses of the buffer, so the spans are asked first.
const tarn_access *tarn__access_in(const tarn__synced_core *core, uint32_t side,
                                   size_t start, size_t end) {
  const tarn_list *node = NULL;
  if (!is_entered(core, start, end)) return NULL;
  tarn_list_for_each (node, &core->accesses) {
    const tarn_access *access = tarn_list_entry(node, tarn_access, node);
    bool there = side == TARN__NO_SIDE || access->side == side;
    if (there && tarn__access_meets(access, start, end)) return access;
  }
  return NULL;
}

tarn_status tarn__access_is_in_the_way(const tarn__synced_core *core,
                                       const tarn_access *access,
                                       const char *what) {
  char text[TARN__CORE_TEXT];
  char place[TARN__SIDE_TEXT] = "no place";
  if (access->side != TARN__NO_SIDE) {
    tarn__side_text(core, access->side, place);
  }
  return tarn__fail(TARN_E_STATE,
                    "%s is open for %s at %s (bytes %zu to %zu): %s",
                    tarn__core_text(core, text),
                    access->mode == TARN_READ ? "reading" : "writing", place,
                    access->offset, access->offset + access->size, what);
}

tarn_status tarn__access_check_none(const tarn__synced_core *core,
                                    uint32_t side, size_t start, size_t end,
                                    const char *what) {
  const tarn_access *open = tarn__access_in(core, side, start, end);
  return open == NULL ? TARN_OK : tarn__access_is_in_the_way(core, open, what);
}

// --- the device, while others close it ---------------------------------------

// A close holds the lock of the device room's registry, and so does an open. An
// open of cpu:0, which is always open, calls no driver.
static bool pass_a_close(void) {
  tarn_device *host = NULL;
  return tarn_device_open("cpu:0", &host) == TARN_OK &&
         tarn_device_close(host) == TARN_OK;
}

tarn_device *tarn__core_hold_device(tarn__synced_core *core) {
  bool over = true;
  tarn__core_enter(core);
  while (core->device != NULL && core->device_closing && over) {
    uint64_t asks = core->device_asks;
    tarn__core_leave(core);
    over = pass_a_close();
    tarn__core_enter(core);
    // That close is over. If the device is still there, it was refused.
    if (over && core->device_asks == asks) core->device_closing = false;
  }
  tarn_device *device = over ? core->device : NULL;
  if (device != NULL) core->device_users++;
  tarn__core_leave(core);
  return device;
}

void tarn__core_release_device(tarn__synced_core *core) {
  tarn__core_enter(core);
  core->device_users--;
  tarn__core_leave(core);
}

// --- for tests --------------------------------------------------------------

static const char *verify_side(const tarn__synced_core *core, uint32_t side) {
  size_t fresh = 0;
  bool used = false;
  uint64_t bit = tarn__side_bit(side);
  tarn__spans_each (span, &core->spans, 0, core->size) {
    if ((span->valid & bit) == 0) continue;
    used = true;
    if (span->written) fresh += span->end - span->node.start;
  }
  if (fresh != core->sides[side].fresh) return "the fresh bytes of a side";
  bool has = tarn__side_has_memory(&core->sides[side]);
  return used && !has ? "bytes are valid where there is no memory" : NULL;
}

const char *tarn__core_verify(const tarn__synced_core *core) {
  size_t live = 0;
  const char *wrong = tarn__spans_check(&core->spans);
  tarn__spans_each (span, &core->spans, 0, core->size) {
    if (newest(span->valid, span->written) != 0)
      live += span->end - span->node.start;
    if (core->side_count < TARN__MOST_SIDES &&
        span->valid >> core->side_count != 0) {
      wrong = "bytes are valid at a side that there is not";
    }
  }
  if (wrong == NULL && live != core->live) wrong = "the live bytes";
  for (uint32_t i = 0; i < core->side_count && wrong == NULL; i++)
    wrong = verify_side(core, i);
  return wrong;
}
