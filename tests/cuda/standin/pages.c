// Pages: a file in memory, mapped twice.
//
//   address  [ no access          ]  \.
//                                      one file
//   mirror   [ read and write     ]  /
//
// The file is sealed, by which a store is told from any other descriptor, and
// its name ends with the number of the device. The descriptor is kept only
// where it may be exported: there are more blocks than a process may have
// descriptors.
#include "pages.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL,
  DIRTY_SIZE = 65536,
  DIRT = 0xcd,
};

static const char NAME[] = "tarn-stand-in-";

static unsigned char *map_at(void *address, size_t size, int access, int flags,
                             int file, size_t offset) {
  void *at =
      mmap(address, size, access, flags | MAP_NORESERVE, file, (off_t)offset);
  return at != MAP_FAILED ? at : NULL;
}

static bool map_mirror(standin_store *store) {
  store->mirror = map_at(NULL, store->size, PROT_READ | PROT_WRITE, MAP_SHARED,
                         store->file, 0);
  return store->mirror != NULL;
}

bool standin_store_make(size_t size, int device, bool keeps_file,
                        standin_store *out) {
  char name[64];
  if (size > SIZE_MAX / 2) return false;
  snprintf(name, sizeof name, "%s%d", NAME, device);
  standin_store store = {
      .file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING),
      .device = device,
      .size = (size + STANDIN_PAGE - 1) & ~(size_t)(STANDIN_PAGE - 1)};
  if (store.file < 0) return false;
  if (ftruncate(store.file, (off_t)store.size) != 0 ||
      fcntl(store.file, F_ADD_SEALS, SEALS) != 0 || !map_mirror(&store)) {
    close(store.file);
    return false;
  }
  if (!keeps_file) {
    close(store.file);
    store.file = -1;
  }
  memset(store.mirror, DIRT, size < DIRTY_SIZE ? size : DIRTY_SIZE);
  *out = store;
  return true;
}

// False: no name of a store's file.
static bool read_device(int file, int *out) {
  char link[64], name[128] = "";
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  if (readlink(link, name, sizeof name - 1) < 0) return false;
  const char *at = strstr(name, NAME);
  if (at != NULL) *out = (int)strtol(at + strlen(NAME), NULL, 10);
  return at != NULL;
}

bool standin_store_open(int file, standin_store *out) {
  struct stat facts;
  if (fcntl(file, F_GET_SEALS) != SEALS || fstat(file, &facts) != 0) {
    return false;
  }
  standin_store store = {.file = fcntl(file, F_DUPFD_CLOEXEC, 0),
                         .size = (size_t)facts.st_size};
  if (store.file < 0) return false;
  if (!read_device(file, &store.device) || !map_mirror(&store)) {
    close(store.file);
    return false;
  }
  *out = store;
  return true;
}

void standin_store_close(standin_store *store) {
  munmap(store->mirror, store->size);
  if (store->file >= 0) close(store->file);
  *store = (standin_store){.file = -1};
}

unsigned char *standin_pages_reserve(size_t size, size_t align) {
  if (size > SIZE_MAX / 4 || align > SIZE_MAX / 4) return NULL;
  unsigned char *all =
      map_at(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (all == NULL) return NULL;
  size_t before = (align - (uintptr_t)all % align) % align;
  if (before > 0) munmap(all, before);
  if (align > before) munmap(all + before + size, align - before);
  return all + before;
}

// A second mapping of the same pages, which needs no descriptor.
bool standin_pages_show(const standin_store *store, size_t offset,
                        unsigned char *address, size_t size, bool closed) {
  void *at = mremap(store->mirror + offset, 0, size,
                    MREMAP_MAYMOVE | MREMAP_FIXED, address);
  if (at == MAP_FAILED) return false;
  if (closed) mprotect(address, size, PROT_NONE);
  return true;
}

// Where this fails, the bytes stay, and what uses them is not found.
void standin_pages_hide(unsigned char *address, size_t size) {
  (void)map_at(address, size, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

void standin_pages_open(unsigned char *address, size_t size, bool writes) {
  mprotect(address, size, writes ? PROT_READ | PROT_WRITE : PROT_READ);
}

void standin_pages_shut(unsigned char *address, size_t size) {
  mprotect(address, size, PROT_NONE);
}

void standin_pages_forget(unsigned char *address, size_t size) {
  munmap(address, size);
}
