// Whose memory an address is: the device is asked before a buffer uses it.
//
//   place      good memory
//   device     of that device: its own, mapped there, or unified
//   unified    of that device, if the host can touch it as well
//   host       all but what the buffer's device calls a device's own
//
// The first and the last byte are asked about: a buffer may lie in several
// mappings, each of which the driver knows by itself. A device that cannot be
// asked is believed. One whose memory the host can touch does not know memory
// that others took, so there all memory of the host is good.
#include "synced/whose.h"

#include "base/status.h"
#include "synced/closing.h"

typedef struct question {
  const tarn__synced_core *core;
  tarn_device *device;  // who is asked
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
    return tarn__fail(TARN_E_INVALID, "%s: 0x%llx is no memory that %s knows",
                      buffer, (unsigned long long)address,
                      tarn_device_name(q->device));
  }
  return tarn__fail(TARN_E_INVALID, "%s: 0x%llx is memory of %s, not of %s",
                    buffer, (unsigned long long)address,
                    tarn_place_text(found->place, is, sizeof is),
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
  // What no driver knows is the host's.
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

// At the host the buffer's own device is asked, which nobody who wraps there
// need know of: another thread may be closing it.
static tarn_status check_at_host(tarn__synced_core *core, tarn_place place,
                                 tarn_addr address) {
  tarn_status status = TARN_OK;
  tarn_device *device = tarn__closing_hold(core);
  question q = {.core = core, .device = device, .place = place};
  if (device == NULL) return TARN_OK;
  if (can_be_asked(device, place)) status = ask_both_ends(&q, address);
  tarn__closing_let_go(core);
  return status;
}

tarn_status tarn__whose_check(tarn__synced_core *core, tarn_place place,
                              tarn_addr address) {
  if (core->size == 0) return TARN_OK;
  if (core->size - 1 > UINT64_MAX - address) {
    char text[TARN__CORE_TEXT];
    return tarn__fail(TARN_E_INVALID, "%s: no memory is %zu bytes at 0x%llx",
                      tarn__core_text(core, text), core->size,
                      (unsigned long long)address);
  }
  if (place.kind == TARN_PLACE_HOST) return check_at_host(core, place, address);
  if (!can_be_asked(place.device, place)) return TARN_OK;
  question q = {.core = core,
                .device = place.device,
                .place = place,
                .accessible = tarn_device_host_accessible(place.device)};
  return ask_both_ends(&q, address);
}
