// Checks of addresses, and their error texts. Code that a copy of a sound block
// does not need is noinline, to keep it out of the copy's path: it is most of
// this file, and copies are counted in nanoseconds.
#include <stdio.h>

#include "extension.h"

enum { WORDS_SIZE = 160 };

// --- looking, with the device's lock held ----------------------------------

static bool holds(tarn__common_run run, uint64_t address) {
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
                                    tarn__common_extent *extent) {
  tarn__sim_freed block = {{extent->node.start, extent->asked}, extent->serial};
  return (tarn__sim_finding){verdict, extent, block, 0};
}

static const tarn__common_extents *blocks_of(const tarn__sim_device *device,
                                             tarn__sim_kind kind) {
  return kind == TARN__SIM_DEVICE ? &device->blocks.extents
                                  : &device->mapped[kind];
}

tarn__sim_finding tarn__sim_find_block(const tarn__sim_device *device,
                                       tarn__sim_kind kind, uint64_t address,
                                       size_t size) {
  tarn__common_extent *extent =
      tarn__common_extents_find(blocks_of(device, kind), address);
  if (extent == NULL || extent->asked == 0) return find_gone(device, address);
  if (kind == TARN__SIM_DEVICE && tarn__sim_is_import(device, address)) {
    return (tarn__sim_finding){.verdict = TARN__SIM_NOWHERE};
  }
  if (extent->record != NULL) return finding_of(TARN__SIM_GONE, extent);
  if (extent->node.start != address)
    return finding_of(TARN__SIM_INSIDE, extent);
  bool fits = extent->asked == size;
  return finding_of(fits ? TARN__SIM_FINE : TARN__SIM_MISMATCH, extent);
}

// The extent that |address| is in: of the device's own blocks or, for one of
// the host's, of unified ones.
static tarn__common_extent *extent_at(const tarn__sim_device *device,
                                      uint64_t address) {
  bool own = tarn__common_window_has(&device->blocks, address);
  return tarn__common_extents_find(
      blocks_of(device, own ? TARN__SIM_DEVICE : TARN__SIM_UNIFIED), address);
}

// Whether |extent| is a block that |r| may use, number |serial| if that is not
// 0. One that waits to be given back on its stream is gone for all that comes
// anew, and there for what was queued before.
static bool is_usable(const tarn__common_extent *extent,
                      const tarn__sim_request *r, uint64_t serial) {
  if (extent == NULL || extent->asked == 0) return false;
  if (serial != 0) return extent->serial == serial;
  return extent->record == NULL || (r->how & TARN__SIM_LATE) != 0;
}

static bool is_inside(const tarn__common_extent *extent, uint64_t address,
                      size_t size) {
  size_t before = (size_t)(address - extent->node.start);
  return before <= extent->asked && size <= extent->asked - before;
}

// For bytes that are not both.
__attribute__((noinline)) static tarn__sim_finding find_wrong(
    const tarn__sim_device *device, tarn__common_extent *extent,
    const tarn__sim_request *r, uint64_t serial) {
  if (is_usable(extent, r, serial)) {
    return finding_of(TARN__SIM_BEYOND, extent);
  }
  bool waits = extent != NULL && extent->record != NULL && serial == 0;
  if (waits) return finding_of(TARN__SIM_GONE, extent);
  return find_gone(device, (uintptr_t)r->address);
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

// Checks mapped bytes: all of them, or those from some byte on.
static void say_mapped(const tarn__sim_request *r, const tarn__sim_finding *f,
                       char *out) {
  char from[48] = "";
  char what[64] = "out of bounds: nothing is mapped there";
  if (f->before != 0) {
    snprintf(from, sizeof from, " from byte %zu on", f->before);
  }
  if (f->verdict == TARN__SIM_FORBIDDEN) {
    snprintf(what, sizeof what, "no access: sim:%d may not %s there",
             r->device->home.id,
             (r->how & TARN__SIM_TO_WRITE) != 0 ? "write" : "read");
  }
  snprintf(out, WORDS_SIZE, "%s%s", what, from);
}

__attribute__((noinline)) static C_Status refuse_finding(
    const tarn__sim_request *r, const tarn__sim_finding *f, bool freeing) {
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
    case TARN__SIM_UNMAPPED:
    case TARN__SIM_FORBIDDEN:
      say_mapped(r, f, words);
      break;
    case TARN__SIM_CHANGED:
      return refuse(r, "use after unmap: what is mapped there has changed");
  }
  return refuse(r, words);
}

C_Status tarn__sim_refuse_free(const tarn__sim_request *request,
                               const tarn__sim_finding *finding) {
  return refuse_finding(request, finding, true);
}

// --- the ends of copies ----------------------------------------------------

// Host memory is unknown here; it is only known to be outside of all devices.
static C_Status resolve_host(const tarn__sim_request *r, tarn__sim_piece *out) {
  const unsigned char *bytes = r->address;
  *out = (tarn__sim_piece){(unsigned char *)(uintptr_t)bytes, r->size};
  const tarn__sim_device *owner = tarn__sim_owner(bytes);
  if (owner == NULL) owner = tarn__sim_owner(bytes + (r->size - 1));
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

static C_Status resolve_block(const tarn__sim_request *r, tarn__sim_end *end,
                              tarn__sim_piece *out) {
  tarn__sim_device *device = end->device;
  uint64_t address = (uintptr_t)r->address;
  tarn__sim_finding wrong;
  pthread_mutex_lock(&device->lock);
  tarn__common_extent *extent = extent_at(device, address);
  bool fine =
      is_usable(extent, r, end->serial) && is_inside(extent, address, r->size);
  if (fine) {
    end->serial = extent->serial;
  } else {
    wrong = find_wrong(device, extent, r, end->serial);
  }
  pthread_mutex_unlock(&device->lock);
  if (!fine) return refuse_finding(r, &wrong, false);
  out->bytes = tarn__common_window_has(&device->blocks, address)
                   ? tarn__sim_mirror(device, address)
                   : (unsigned char *)(uintptr_t)address;
  out->size = r->size;
  return C_SUCCESS;
}

__attribute__((noinline)) static C_Status resolve_mapped(
    const tarn__sim_request *r, const tarn__sim_device *owner,
    tarn__sim_end *end, tarn__sim_piece *out) {
  tarn__sim_lock_ranges();
  tarn__sim_finding f =
      tarn__sim_find_mapped(owner, end->device, r, &end->serial, out);
  tarn__sim_unlock_ranges();
  return f.verdict == TARN__SIM_FINE ? C_SUCCESS : refuse_finding(r, &f, false);
}

// A range of another device counts like the device's own where it may be used.
static C_Status resolve_device(const tarn__sim_request *r, tarn__sim_end *end,
                               tarn__sim_piece *out) {
  uint64_t address = (uintptr_t)r->address;
  if (!tarn__common_window_has(&end->device->blocks, address)) {
    const tarn__sim_device *owner = tarn__sim_owner(r->address);
    if (owner != NULL && !tarn__common_window_has(&owner->blocks, address)) {
      return resolve_mapped(r, owner, end, out);
    }
  }
  return resolve_block(r, end, out);
}

C_Status tarn__sim_resolve(const tarn__sim_device *device, tarn__sim_call call,
                           unsigned how, size_t size, tarn__sim_end *end,
                           tarn__sim_piece *out) {
  // The report names the device whose address it is, where it is one's.
  const tarn__sim_device *named = end->device != NULL ? end->device : device;
  tarn__sim_request r = {named, call, end->address, size, how};
  if (r.size == 0) return refuse(&r, "no bytes");
  if (r.address == NULL) return refuse(&r, "no address");
  if ((uintptr_t)r.address > UINTPTR_MAX - r.size) {
    return refuse(&r, "out of bounds: beyond the last address");
  }
  return end->device == NULL ? resolve_host(&r, out)
                             : resolve_device(&r, end, out);
}
