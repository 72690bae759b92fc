// Ranges of addresses, memory without addresses, and mappings of the one into
// the other.
//
//   addresses  |----------- range ------------|      reserve, release
//                  |== mapping ==|= mapping =|       map, unmap, set_access
//   memory           handle 7      handle 9          create, destroy, ...
//
// The driver knows the mappings, and nothing is noted here: only arguments are
// checked, and ranges and handles counted. A range cannot be released while
// memory is mapped in it, so that its count stands for the mappings too.
//
// What gives something back is tried even if the device cannot be made current:
// not to try is a sure leak.
#include "tarn/range.h"

#include "device/device.h"

// --- checks ----------------------------------------------------------------

static tarn_status check_ranges(const tarn_device *device) {
  return tarn__extension_check(device, TARN_EXTENSION_RANGES, "address ranges");
}

static tarn_status check_sharing(const tarn_device *device) {
  return tarn__extension_check(device, TARN_EXTENSION_SHARING,
                               "memory for other processes");
}

// TARN_OK: the device has ranges, and is the thread's current one.
static tarn_status enter(tarn_device *device) {
  TARN__TRY(check_ranges(device));
  return tarn__device_enter(device);
}

static tarn_status enter_to_share(tarn_device *device) {
  TARN__TRY(check_sharing(device));
  return tarn__device_enter(device);
}

static bool is_in_steps(const tarn_device *device, uint64_t value) {
  return value != 0 && (value & (device->granularity - 1)) == 0;
}

static tarn_status check_size(const tarn_device *device, const char *call,
                              size_t size) {
  if (is_in_steps(device, size)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "%s: %s of %zu bytes: not a multiple of %zu, or 0",
                    device->name, call, size, device->granularity);
}

static bool is_extent(const tarn_device *device, tarn_addr addr, size_t size) {
  return is_in_steps(device, addr) && is_in_steps(device, size) &&
         size <= UINT64_MAX - addr;
}

static tarn_status check_extent(const tarn_device *device, const char *call,
                                tarn_addr addr, size_t size) {
  if (is_extent(device, addr, size)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "%s: %s of %zu bytes at 0x%llx: not multiples of %zu, 0, "
                    "or too many",
                    device->name, call, size, (unsigned long long)addr,
                    device->granularity);
}

static tarn_status check_memory(const tarn_device *device, const char *call,
                                tarn_memory memory) {
  if (memory != 0) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "%s: %s of memory 0", device->name, call);
}

tarn_status tarn_range_granularity(tarn_device *device, size_t *out_size) {
  *out_size = 0;
  TARN__TRY(enter(device));
  *out_size = device->granularity;
  return TARN_OK;
}

// --- addresses -------------------------------------------------------------

static tarn_status accept_range(tarn_device *device, tarn_addr addr,
                                size_t size, size_t align) {
  if (addr == 0) {
    return tarn__fail(TARN_FULL, "%s: no %zu bytes of addresses are left",
                      device->name, size);
  }
  if (is_extent(device, addr, size) && (addr & (align - 1)) == 0) {
    return TARN_OK;
  }
  (void)device->ext->range_release(device->handle.id, addr, size);
  return tarn__fail(TARN_E_DEVICE,
                    "%s: range_reserve of %zu bytes gave address 0x%llx, which "
                    "is no multiple of %zu",
                    device->name, size, (unsigned long long)addr, align);
}

tarn_status tarn__range_reserve(tarn_device *device, size_t size, size_t align,
                                tarn_addr *out_addr) {
  *out_addr = 0;
  TARN__TRY(enter(device));
  TARN__TRY(check_size(device, "range_reserve", size));
  if (align != 0 && !tarn_is_power_of_two(align)) {
    return tarn__fail(TARN_E_INVALID,
                      "%s: range_reserve: %zu is no power of two", device->name,
                      align);
  }
  // Less than the granularity is what every address is a multiple of anyway.
  if (align < device->granularity) align = device->granularity;
  tarn_addr addr = 0;
  TARN__TRY(TARN__EXTENSION_CALL(device, range_reserve, size,
                                 (device->handle.id, size, align, &addr)));
  TARN__TRY(accept_range(device, addr, size, align));
  *out_addr = addr;
  return TARN_OK;
}

tarn_status tarn__range_release(tarn_device *device, tarn_addr addr,
                                size_t size) {
  TARN__TRY(check_ranges(device));
  TARN__TRY(check_extent(device, "range_release", addr, size));
  tarn_status entered = tarn__device_enter(device);
  tarn_status status = TARN__EXTENSION_CALL(device, range_release, size,
                                            (device->handle.id, addr, size));
  return status != TARN_OK ? status : entered;
}

tarn_status tarn_range_reserve(tarn_device *device, size_t size, size_t align,
                               tarn_addr *out_addr) {
  TARN__TRY(tarn__range_reserve(device, size, align, out_addr));
  tarn__device_count(device, &device->ranges, 1);
  return TARN_OK;
}

tarn_status tarn_range_release(tarn_device *device, tarn_addr addr,
                               size_t size) {
  tarn_status status = tarn__range_release(device, addr, size);
  if (tarn__is_gone(status)) tarn__device_count(device, &device->ranges, -1);
  return status;
}

// --- memory ----------------------------------------------------------------

static tarn_status check_flags(const tarn_device *device, unsigned flags) {
  if ((flags & ~TARN_MEMORY_SHAREABLE) != 0) {
    return tarn__fail(TARN_E_INVALID, "%s: memory_create: flags 0x%x",
                      device->name, flags);
  }
  return flags == 0 ? TARN_OK : check_sharing(device);
}

tarn_status tarn__memory_create(tarn_device *device, size_t size,
                                unsigned flags, tarn_memory *out_memory) {
  *out_memory = 0;
  TARN__TRY(enter(device));
  TARN__TRY(check_size(device, "memory_create", size));
  TARN__TRY(check_flags(device, flags));
  uint32_t ext_flags =
      flags & TARN_MEMORY_SHAREABLE ? TARN_EXT_MEMORY_SHAREABLE : 0;
  tarn_memory memory = 0;
  TARN__TRY(
      TARN__EXTENSION_CALL(device, memory_create, size,
                           (device->handle.id, size, ext_flags, &memory)));
  if (memory == 0) {
    return tarn__fail(TARN_FULL, "%s: out of memory: %zu bytes were refused",
                      device->name, size);
  }
  *out_memory = memory;
  return TARN_OK;
}

tarn_status tarn__memory_destroy(tarn_device *device, tarn_memory memory) {
  TARN__TRY(check_ranges(device));
  TARN__TRY(check_memory(device, "memory_destroy", memory));
  tarn_status entered = tarn__device_enter(device);
  tarn_status status = TARN__EXTENSION_CALL(device, memory_destroy, 0,
                                            (device->handle.id, memory));
  return status != TARN_OK ? status : entered;
}

tarn_status tarn_memory_create(tarn_device *device, size_t size, unsigned flags,
                               tarn_memory *out_memory) {
  TARN__TRY(tarn__memory_create(device, size, flags, out_memory));
  tarn__device_count(device, &device->memories, 1);
  return TARN_OK;
}

tarn_status tarn_memory_destroy(tarn_device *device, tarn_memory memory) {
  tarn_status status = tarn__memory_destroy(device, memory);
  if (tarn__is_gone(status)) tarn__device_count(device, &device->memories, -1);
  return status;
}

// --- mappings --------------------------------------------------------------

tarn_status tarn_range_map(tarn_device *device, tarn_addr addr, size_t size,
                           tarn_memory memory) {
  TARN__TRY(enter(device));
  TARN__TRY(check_extent(device, "range_map", addr, size));
  TARN__TRY(check_memory(device, "range_map", memory));
  return TARN__EXTENSION_CALL(device, range_map, size,
                              (device->handle.id, addr, size, memory));
}

tarn_status tarn_range_unmap(tarn_device *device, tarn_addr addr, size_t size) {
  TARN__TRY(check_ranges(device));
  TARN__TRY(check_extent(device, "range_unmap", addr, size));
  tarn_status entered = tarn__device_enter(device);
  tarn_status status = TARN__EXTENSION_CALL(device, range_unmap, size,
                                            (device->handle.id, addr, size));
  return status != TARN_OK ? status : entered;
}

// A plug-in that counts wrongly must not make the caller use bytes that are not
// there.
static tarn_status accept_move(const tarn_device *device, tarn_status status,
                               size_t size, size_t *moved) {
  bool fits = *moved <= size && (*moved == 0 || is_in_steps(device, *moved)) &&
              (status != TARN_OK || *moved == size);
  if (fits) return status;
  size_t said = *moved;
  *moved = 0;
  return tarn__fail(TARN_E_DEVICE,
                    "%s: range_move says that it moved %zu of %zu bytes",
                    device->name, said, size);
}

tarn_status tarn_range_move(tarn_device *device, tarn_addr from, tarn_addr to,
                            size_t size, size_t *out_moved) {
  static const char call[] = "range_move";
  *out_moved = 0;
  TARN__TRY(tarn__extension_check(device, TARN_EXTENSION_MOVES,
                                  "moves of mapped memory"));
  TARN__TRY(tarn__device_enter(device));
  TARN__TRY(check_extent(device, call, from, size));
  TARN__TRY(check_extent(device, call, to, size));
  size_t moved = 0;
  tarn_status status = TARN__EXTENSION_CALL(
      device, range_move, size, (device->handle.id, from, to, size, &moved));
  status = accept_move(device, status, size, &moved);
  *out_moved = moved;
  return status;
}

static bool is_right(tarn_rights right) {
  _Static_assert(
      (int)TARN_RIGHTS_READ == (int)TARN_EXT_ACCESS_READ &&
          (int)TARN_RIGHTS_READ_WRITE == (int)TARN_EXT_ACCESS_READ_WRITE,
      "rights are what slots take");
  return right == TARN_RIGHTS_NONE || right == TARN_RIGHTS_READ ||
         right == TARN_RIGHTS_READ_WRITE;
}

tarn_status tarn_range_set_access(tarn_device *device, tarn_addr addr,
                                  size_t size, tarn_device *by,
                                  tarn_rights right) {
  static const char call[] = "range_set_access";
  TARN__TRY(tarn__device_check(by));
  TARN__TRY(enter(device));
  TARN__TRY(check_extent(device, call, addr, size));
  if (by->plugin != device->plugin) {
    return tarn__fail(TARN_E_INVALID, "%s: %s: %s is of another type",
                      device->name, call, by->name);
  }
  if (!is_right(right)) {
    return tarn__fail(TARN_E_INVALID, "%s: %s: %d is no right", device->name,
                      call, (int)right);
  }
  return TARN__EXTENSION_CALL(
      device, range_set_access, size,
      (device->handle.id, addr, size, by->handle.id, (tarn_ext_access)right));
}

// --- other processes -------------------------------------------------------

tarn_status tarn_memory_export(tarn_device *device, tarn_memory memory,
                               int *out_fd) {
  *out_fd = 0;
  TARN__TRY(enter_to_share(device));
  TARN__TRY(check_memory(device, "memory_export", memory));
  int fd = -1;
  TARN__TRY(TARN__EXTENSION_CALL(device, memory_export, 0,
                                 (device->handle.id, memory, &fd)));
  if (fd < 0) {
    return tarn__fail(TARN_E_DEVICE,
                      "%s: memory_export gave file descriptor %d", device->name,
                      fd);
  }
  *out_fd = fd;
  return TARN_OK;
}

tarn_status tarn__memory_import(tarn_device *device, int fd, size_t size,
                                tarn_memory *out_memory) {
  *out_memory = 0;
  TARN__TRY(enter_to_share(device));
  TARN__TRY(check_size(device, "memory_import", size));
  if (fd < 0) {
    return tarn__fail(TARN_E_INVALID, "%s: memory_import: file descriptor %d",
                      device->name, fd);
  }
  tarn_memory memory = 0;
  TARN__TRY(TARN__EXTENSION_CALL(device, memory_import, size,
                                 (device->handle.id, fd, size, &memory)));
  if (memory == 0) {
    return tarn__fail(TARN_E_DEVICE, "%s: memory_import gave memory 0",
                      device->name);
  }
  *out_memory = memory;
  return TARN_OK;
}

tarn_status tarn_memory_import(tarn_device *device, int fd, size_t size,
                               tarn_memory *out_memory) {
  TARN__TRY(tarn__memory_import(device, fd, size, out_memory));
  tarn__device_count(device, &device->memories, 1);
  return TARN_OK;
}
