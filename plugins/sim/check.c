// What is wrong with an address, and the words for it.
#include <stdio.h>

#include "sim.h"

enum { WORDS_SIZE = 160 };

// --- looking, with the device's lock held ----------------------------------

static bool holds(tarn__sim_run run, uint64_t address) {
  return address - run.address < run.size;
}

// The block that |address| was in most recently; its serial is 0 if it was in
// none that is remembered.
static tarn__sim_freed find_freed(const tarn__sim_device *device,
                                  uint64_t address) {
  uint64_t count = device->freed_count;
  uint64_t kept = count < TARN__SIM_FREED_KEPT ? count : TARN__SIM_FREED_KEPT;
  for (uint64_t i = 1; i <= kept; i++) {
    const tarn__sim_freed *freed =
        &device->freed[(count - i) % TARN__SIM_FREED_KEPT];
    if (holds(freed->run, address)) return *freed;
  }
  return (tarn__sim_freed){.serial = 0};
}

static tarn__sim_finding find_gone(const tarn__sim_device *device,
                                   uint64_t address) {
  tarn__sim_freed freed = find_freed(device, address);
  tarn__sim_verdict verdict =
      freed.serial != 0 ? TARN__SIM_GONE : TARN__SIM_NOWHERE;
  return (tarn__sim_finding){.verdict = verdict, .block = freed};
}

static tarn__sim_finding finding_of(tarn__sim_verdict verdict,
                                    tarn__sim_extent *extent) {
  tarn__sim_freed block = {{extent->address, extent->asked}, extent->serial};
  return (tarn__sim_finding){verdict, extent, block};
}

tarn__sim_finding tarn__sim_find_block(const tarn__sim_device *device,
                                       tarn__sim_kind kind, uint64_t address,
                                       size_t size) {
  tarn__sim_extent *extent =
      tarn__sim_extents_find(&device->blocks[kind], address);
  if (extent == NULL || extent->serial == 0) return find_gone(device, address);
  if (extent->address != address) return finding_of(TARN__SIM_INSIDE, extent);
  bool fits = extent->asked == size;
  return finding_of(fits ? TARN__SIM_FINE : TARN__SIM_MISMATCH, extent);
}

static bool in_window(const tarn__sim_device *device, uint64_t address) {
  return address - (uintptr_t)device->window < device->span;
}

// The block that |size| bytes at |address| are in; unified blocks are good,
// too. |serial|: it must be this one, if not 0.
static tarn__sim_finding find_range(const tarn__sim_device *device,
                                    uint64_t address, size_t size,
                                    uint64_t serial) {
  tarn__sim_kind kind =
      in_window(device, address) ? TARN__SIM_DEVICE : TARN__SIM_UNIFIED;
  tarn__sim_extent *extent =
      tarn__sim_extents_find(&device->blocks[kind], address);
  bool taken = extent != NULL && extent->serial != 0;
  if (!taken || (serial != 0 && extent->serial != serial)) {
    return find_gone(device, address);
  }
  size_t before = (size_t)(address - extent->address);
  bool inside = before <= extent->asked && size <= extent->asked - before;
  return finding_of(inside ? TARN__SIM_FINE : TARN__SIM_BEYOND, extent);
}

// --- words -----------------------------------------------------------------

static C_Status refuse(const tarn__sim_request *r, const char *words) {
  return tarn__sim_misuse("sim:%d: %s of %zu bytes at %p: %s",
                          r->device->home.id, tarn__sim_call_name(r->call),
                          r->size, r->address, words);
}

// "an address of sim:1", or of the host.
static const char *whose(const void *address, char *out, size_t out_size) {
  const tarn__sim_device *owner = tarn__sim_owner(address);
  if (owner == NULL) return "an address of the host";
  snprintf(out, out_size, "an address of sim:%d", owner->home.id);
  return out;
}

static void say_nowhere(const tarn__sim_request *r, bool freeing, char *out) {
  char owner[48];
  bool own = tarn__sim_owner(r->address) == r->device;
  const char *address = whose(r->address, owner, sizeof owner);
  if (freeing) {
    snprintf(out, WORDS_SIZE, "foreign pointer: %s, where no block begins",
             address);
  } else if (own) {
    snprintf(out, WORDS_SIZE, "out of bounds: no block is there");
  } else {
    snprintf(out, WORDS_SIZE, "wrong direction: %s where one of sim:%d belongs",
             address, r->device->home.id);
  }
}

// The block's part of a line, the same for all.
static void say_block(const tarn__sim_finding *f, const char *what, char *out) {
  snprintf(out, WORDS_SIZE, "%s a block of %zu bytes taken by allocation %llu",
           what, f->block.run.size, (unsigned long long)f->block.serial);
}

static void say_bytes(const tarn__sim_finding *f, size_t bytes,
                      const char *where, char *out) {
  char what[64];
  snprintf(what, sizeof what, "%zu bytes %s", bytes, where);
  say_block(f, what, out);
}

static C_Status refuse_finding(const tarn__sim_request *r,
                               const tarn__sim_finding *f, bool freeing) {
  char words[WORDS_SIZE] = "";
  size_t offset = (size_t)((uintptr_t)r->address - f->block.run.address);
  switch (f->verdict) {
    case TARN__SIM_FINE:
      break;
    case TARN__SIM_BEYOND:
      say_bytes(f, offset + r->size - f->block.run.size, "beyond the end of",
                words);
      break;
    case TARN__SIM_INSIDE:
      say_bytes(f, offset, "inside", words);
      break;
    case TARN__SIM_MISMATCH:
      say_block(f, "size mismatch:", words);
      break;
    case TARN__SIM_GONE:
      say_block(f, freeing ? "double free of" : "use after free of", words);
      break;
    case TARN__SIM_NOWHERE:
      say_nowhere(r, freeing, words);
      break;
  }
  return refuse(r, words);
}

C_Status tarn__sim_refuse_free(const tarn__sim_request *request,
                               const tarn__sim_finding *finding) {
  return refuse_finding(request, finding, true);
}

// --- the ends of copies ----------------------------------------------------

// What the host has is not known, only that it is none of a device.
static C_Status resolve_host(const tarn__sim_request *r,
                             unsigned char **out_bytes) {
  *out_bytes = (unsigned char *)(uintptr_t)r->address;
  const tarn__sim_device *owner = tarn__sim_owner(*out_bytes);
  if (owner == NULL) owner = tarn__sim_owner(*out_bytes + (r->size - 1));
  if (owner != NULL) {
    char words[WORDS_SIZE];
    snprintf(words, sizeof words,
             "wrong direction: an address of sim:%d where one of the host "
             "belongs",
             owner->home.id);
    return refuse(r, words);
  }
  return C_SUCCESS;
}

static C_Status resolve_device(const tarn__sim_request *r, tarn__sim_end *end,
                               unsigned char **out_bytes) {
  tarn__sim_device *device = end->device;
  uint64_t address = (uintptr_t)end->address;
  pthread_mutex_lock(&device->lock);
  tarn__sim_finding f = find_range(device, address, r->size, end->serial);
  pthread_mutex_unlock(&device->lock);
  if (f.verdict != TARN__SIM_FINE) return refuse_finding(r, &f, false);
  *out_bytes = in_window(device, address)
                   ? device->mirror + (address - (uintptr_t)device->window)
                   : (unsigned char *)(uintptr_t)address;
  end->serial = f.block.serial;
  return C_SUCCESS;
}

C_Status tarn__sim_resolve(const tarn__sim_device *device, tarn__sim_call call,
                           size_t size, tarn__sim_end *end,
                           unsigned char **out_bytes) {
  // The report names the device whose address it is, where it is one's.
  const tarn__sim_device *named = end->device != NULL ? end->device : device;
  tarn__sim_request r = {named, call, end->address, size};
  if (size == 0) return refuse(&r, "no bytes");
  if (end->address == NULL) return refuse(&r, "no address");
  if ((uintptr_t)end->address > UINTPTR_MAX - size) {
    return refuse(&r, "out of bounds: beyond the last address");
  }
  return end->device == NULL ? resolve_host(&r, out_bytes)
                             : resolve_device(&r, end, out_bytes);
}
