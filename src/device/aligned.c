// Aligned allocation.
//
//   the slot allocate_aligned   the device's own memory, where there is one
//   the stand-in                a plain allocation that happens to be aligned,
//                               or one that is larger:
//
//     base            address = a multiple of align
//     |  skipped      |  size bytes             |  rest |
//     |<------------------- size + align - 1 --------->|
//
// The second kind is noted, since the driver wants |base| back and the whole
// size. Addresses of pinned and of unified memory are numbers of their own, so
// a note has its kind with it; to the host's own plug-in all kinds are one.
#include "device/device.h"

#include <assert.h>

#include "base/hostmem.h"

typedef struct note {
  tarn_list node;
  tarn_place_kind kind;
  tarn_addr addr;
  tarn_addr base;
  size_t size;  // from base
} note;

void tarn__aligned_free(tarn__device_aligned *aligned) {
  tarn_list *node = NULL;
  tarn_list *spare = NULL;
  tarn_list_for_each_safe (node, spare, &aligned->notes) {
    tarn__host_free(tarn_list_entry(node, note, node), sizeof(note));
  }
}

// --- notes -----------------------------------------------------------------

static tarn_place_kind kind_of(const tarn_device *device,
                               tarn_place_kind kind) {
  return device->plugin->is_host ? TARN_PLACE_DEVICE : kind;
}

static note *find_locked(tarn_device *device, tarn_place_kind kind,
                         tarn_addr addr) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &device->aligned.notes) {
    note *n = tarn_list_entry(node, note, node);
    if (n->addr == addr && n->kind == kind_of(device, kind)) return n;
  }
  return NULL;
}

// Relaxed: the caller got the address from the thread that wrote the note, so
// it sees a count that includes that note.
static bool has_notes(tarn_device *device) {
  return atomic_load_explicit(&device->aligned.count, memory_order_relaxed) > 0;
}

bool tarn__aligned_is_noted(tarn_device *device, tarn_addr addr) {
  if (!has_notes(device)) return false;
  pthread_mutex_lock(&device->lock);
  bool found = find_locked(device, TARN_PLACE_DEVICE, addr) != NULL;
  pthread_mutex_unlock(&device->lock);
  return found;
}

bool tarn__aligned_take_note(tarn_device *device, tarn_place_kind kind,
                             tarn_addr addr, tarn_addr *out_base,
                             size_t *out_size) {
  if (!has_notes(device)) return false;
  pthread_mutex_lock(&device->lock);
  note *n = find_locked(device, kind, addr);
  if (n != NULL) {
    tarn_list_del(&n->node);
    atomic_fetch_sub_explicit(&device->aligned.count, 1, memory_order_relaxed);
  }
  pthread_mutex_unlock(&device->lock);
  if (n == NULL) return false;
  *out_base = n->base;
  *out_size = n->size;
  tarn__host_free(n, sizeof *n);
  return true;
}

// --- taking ----------------------------------------------------------------

// More than is needed, so that somewhere in it there is an aligned address.
static tarn_status take_larger(tarn_device *device, tarn_place place,
                               size_t size, size_t align, note *n) {
  size_t addr = 0;
  if (!tarn_size_add(size, align - 1, &n->size)) {
    return tarn__fail(TARN_FULL, "%s: %zu bytes at a multiple of %zu: too many",
                      device->name, size, align);
  }
  TARN__TRY(tarn__device_take(place, n->size, &n->base));
  if (!tarn_size_align_up((size_t)n->base, align, &addr)) {
    (void)tarn__device_give(place, n->base, n->size);
    return tarn__fail(TARN_E_DEVICE,
                      "%s: gave %zu bytes at 0x%llx, which end "
                      "beyond the last address",
                      device->name, n->size, (unsigned long long)n->base);
  }
  n->addr = addr;
  n->kind = kind_of(device, place.kind);
  return TARN_OK;
}

static tarn_status take_and_note(tarn_device *device, tarn_place place,
                                 size_t size, size_t align,
                                 tarn_addr *out_addr) {
  note *n = tarn__host_alloc(sizeof *n);
  if (n == NULL) return TARN_E_NOMEM;
  tarn_status status = take_larger(device, place, size, align, n);
  if (status != TARN_OK) {
    tarn__host_free(n, sizeof *n);
    return status;
  }
  *out_addr = n->addr;
  pthread_mutex_lock(&device->lock);
  tarn_list_add(&device->aligned.notes, &n->node);
  atomic_fetch_add_explicit(&device->aligned.count, 1, memory_order_relaxed);
  pthread_mutex_unlock(&device->lock);
  return TARN_OK;
}

static tarn_status stand_in(tarn_device *device, tarn_place place, size_t size,
                            size_t align, tarn_addr *out_addr) {
  tarn_addr addr = 0;
  TARN__TRY(tarn__device_take(place, size, &addr));
  if ((addr & (align - 1)) == 0) {
    *out_addr = addr;
    return TARN_OK;
  }
  TARN__TRY(tarn__device_give(place, addr, size));
  return take_and_note(device, place, size, align, out_addr);
}

static tarn_status take_natively(tarn_device *device, size_t size, size_t align,
                                 tarn_addr *out_addr) {
  tarn_addr addr = 0;
  TARN__TRY(TARN__EXTENSION_CALL(device, allocate_aligned, size,
                                 (device->handle.id, size, align, &addr)));
  TARN__TRY(tarn__device_accept(device, "allocate_aligned", size, align, addr));
  *out_addr = addr;
  return TARN_OK;
}

tarn_status tarn__device_take_aligned(tarn_place place, size_t size,
                                      size_t align, tarn_addr *out_addr) {
  *out_addr = 0;
  tarn_device *device = NULL;
  if (size == 0 || !tarn_is_power_of_two(align)) {
    return tarn__fail(TARN_E_INVALID,
                      "allocate: %zu bytes at a multiple of %zu, which is to "
                      "be a power of two",
                      size, align);
  }
  TARN__TRY(tarn__place_device(place, &device));
  assert(device != NULL);
  TARN__TRY(tarn__device_enter(device));
  bool own = kind_of(device, place.kind) == TARN_PLACE_DEVICE;
  if (own && device->ext->allocate_aligned != NULL &&
      align > device->info.alignment) {
    tarn_status status = take_natively(device, size, align, out_addr);
    if (status != TARN_E_UNSUPPORTED) return status;
  }
  return stand_in(device, place, size, align, out_addr);
}

tarn_status tarn_device_allocate_aligned(tarn_place place, size_t size,
                                         size_t align, tarn_addr *out_addr) {
  TARN__TRY(tarn__device_take_aligned(place, size, align, out_addr));
  tarn__place_count(place, 1);
  return TARN_OK;
}
