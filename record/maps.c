// The functions that map memory, and those of the loader that the recorder has
// to know of.
//
// Anonymous mappings count; what may not be touched (PROT_NONE) is a
// reservation of addresses and holds no memory. Once one was recorded, all
// that is unmapped is, however small: it may be a part of it.
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/events.h"
#include "record/file.h"
#include "record/real.h"
#include "record/settings.h"
#include "record/stacks.h"

#define CALLER __builtin_return_address(0)
#define EXPORT __attribute__((visibility("default")))

static _Atomic bool has_maps;

static bool is_recording(const void *caller) {
  return record_settings.threshold != SIZE_MAX && events_inside == 0 &&
         !stacks_is_walker(caller);
}

static void note_map(const void *address, size_t size) {
  atomic_store_explicit(&has_maps, true, memory_order_relaxed);
  events_note(
      &(happening){.kind = TARN__LOG_MAP, .address = address, .size = size});
}

// A number for what will be unmapped; 0: nothing is recorded that it may end.
static uint64_t number_of_end(const void *caller) {
  return is_recording(caller) &&
                 atomic_load_explicit(&has_maps, memory_order_relaxed)
             ? file_number()
             : 0;
}

static void note_unmap(uint64_t number, const void *address, size_t size) {
  if (number == 0) return;
  events_note(&(happening){.kind = TARN__LOG_UNMAP,
                           .number = number,
                           .address = address,
                           .size = size});
}

// ---------------------------------------------------------------------------
// Mapping
// ---------------------------------------------------------------------------

static void *map_anyway(void *address, size_t size, int protection, int flags,
                        int fd, off_t offset) {
  if (real_are_known())
    return real_found.mmap(address, size, protection, flags, fd, offset);
  long got = syscall(SYS_mmap, address, size, protection, flags, fd, offset);
  return (void *)got;  // NOLINT(performance-no-int-to-ptr)
}

EXPORT void *mmap(void *address, size_t size, int protection, int flags, int fd,
                  off_t offset) {
  uint64_t number = (flags & MAP_FIXED) != 0 ? number_of_end(CALLER) : 0;
  bool counts = settings_wants(size) && is_recording(CALLER) &&
                (flags & MAP_ANONYMOUS) != 0 && protection != PROT_NONE;
  void *mapped = map_anyway(address, size, protection, flags, fd, offset);
  if (mapped == MAP_FAILED) {
    if (counts && errno == ENOMEM) events_oom(size);
    return mapped;
  }
  note_unmap(number, mapped, size);
  if (counts) note_map(mapped, size);
  return mapped;
}

EXPORT void *mmap64(void *address, size_t size, int protection, int flags,
                    int fd, off_t offset) {
  return mmap(address, size, protection, flags, fd, offset);
}

EXPORT int munmap(void *address, size_t size) {
  uint64_t number = number_of_end(CALLER);
  int failed = real_are_known() ? real_found.munmap(address, size)
                                : (int)syscall(SYS_munmap, address, size);
  if (failed == 0) note_unmap(number, address, size);
  return failed;
}

// Whether what grew was anonymous is not known here: it counts if it is large.
EXPORT void *mremap(void *address, size_t old_size, size_t size, int flags,
                    ...) {
  va_list more;
  va_start(more, flags);
  // NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): it is, a line above
  void *wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void *) : NULL;
  va_end(more);
  uint64_t number = number_of_end(CALLER);
  void *mapped = real()->mremap(address, old_size, size, flags, wanted);
  if (mapped == MAP_FAILED) return mapped;
  note_unmap(number, address, old_size);
  if (wanted != NULL && number != 0) note_unmap(file_number(), mapped, size);
  if (settings_wants(size) && is_recording(CALLER)) note_map(mapped, size);
  return mapped;
}

// ---------------------------------------------------------------------------
// The loader
// ---------------------------------------------------------------------------

EXPORT int dlclose(void *library) {
  int failed = real()->dlclose(library);
  if (failed == 0) stacks_code_has_gone();
  return failed;
}

EXPORT int dl_iterate_phdr(int (*see)(struct dl_phdr_info *, size_t, void *),
                           void *context) {
  stacks_in_callback++;
  int result = real()->dl_iterate_phdr(see, context);
  stacks_in_callback--;
  return result;
}
