// Pages: a file in memory, mapped twice where the program's address is closed.
//
//   shown    [ no access          ]  \.
//                                      one file
//   mirror   [ read and write     ]  /
//
// The file has no descriptor any more: mappings keep it.
#include "pages.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

static bool is_mapped(const void *address) {
  return address != MAP_FAILED;
}

static unsigned char *map_file(int file, size_t size, int access) {
  void *at = mmap(NULL, size, access, MAP_SHARED | MAP_NORESERVE, file, 0);
  return is_mapped(at) ? at : NULL;
}

static bool map_twice(int file, standin_pages *pages) {
  pages->mirror = map_file(file, pages->size, PROT_READ | PROT_WRITE);
  if (pages->mirror == NULL) return false;
  pages->shown = map_file(file, pages->size, PROT_NONE);
  if (pages->shown != NULL) return true;
  munmap(pages->mirror, pages->size);
  return false;
}

static bool take_closed(standin_pages *pages) {
  int file = memfd_create("tarn-standin", MFD_CLOEXEC);
  if (file < 0) return false;
  bool ok = ftruncate(file, (off_t)pages->size) == 0 && map_twice(file, pages);
  close(file);
  return ok;
}

static bool take_plain(standin_pages *pages) {
  void *at = mmap(NULL, pages->size, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (!is_mapped(at)) return false;
  pages->shown = pages->mirror = at;
  return true;
}

bool standin_pages_take(size_t size, bool closed, standin_pages *out) {
  if (size > SIZE_MAX / 2) return false;
  standin_pages pages = {.size = (size + STANDIN_PAGE - 1) &
                                 ~(size_t)(STANDIN_PAGE - 1)};
  if (!(closed ? take_closed(&pages) : take_plain(&pages))) return false;
  *out = pages;
  return true;
}

static void protect(const standin_pages *pages, size_t offset, size_t size,
                    int access) {
  size_t first = offset & ~(size_t)(STANDIN_PAGE - 1);
  mprotect(pages->shown + first, offset + size - first, access);
}

void standin_pages_open(const standin_pages *pages, size_t offset,
                        size_t size) {
  protect(pages, offset, size, PROT_READ | PROT_WRITE);
}

void standin_pages_close(const standin_pages *pages, size_t offset,
                         size_t size) {
  protect(pages, offset, size, PROT_NONE);
}

// Where this fails, the bytes stay, and what uses them is not found.
void standin_pages_drop(standin_pages *pages) {
  (void)mmap(pages->shown, pages->size, PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (pages->mirror != pages->shown) munmap(pages->mirror, pages->size);
  pages->mirror = NULL;
}

void standin_pages_forget(standin_pages *pages) {
  munmap(pages->shown, pages->size);
  pages->shown = NULL;
}
