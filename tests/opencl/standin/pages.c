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

static unsigned char *map(size_t size, int access, int flags, int file) {
  void *at = mmap(NULL, size, access, flags | MAP_NORESERVE, file, 0);
  return at != MAP_FAILED ? at : NULL;
}

static size_t whole(const standin_pages *pages) {
  return pages->size + pages->skew;
}

static bool map_twice(int file, standin_pages *pages) {
  size_t size = whole(pages);
  pages->mirror = map(size, PROT_READ | PROT_WRITE, MAP_SHARED, file);
  if (pages->mirror == NULL) return false;
  pages->shown = map(size, PROT_NONE, MAP_SHARED, file);
  if (pages->shown != NULL) return true;
  munmap(pages->mirror, size);
  return false;
}

static bool take_closed(standin_pages *pages) {
  int file = memfd_create("tarn-standin", MFD_CLOEXEC);
  if (file < 0) return false;
  bool ok = ftruncate(file, (off_t)whole(pages)) == 0 && map_twice(file, pages);
  close(file);
  return ok;
}

static bool take_open(standin_pages *pages) {
  pages->mirror = map(whole(pages), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1);
  pages->shown = pages->mirror;
  return pages->mirror != NULL;
}

bool standin_pages_take(size_t size, size_t skew, bool closed,
                        standin_pages *out) {
  if (size > SIZE_MAX / 2) return false;
  size_t all = (size + skew + STANDIN_PAGE - 1) & ~(size_t)(STANDIN_PAGE - 1);
  standin_pages pages = {.skew = skew, .size = all - skew};
  if (!(closed ? take_closed(&pages) : take_open(&pages))) return false;
  pages.shown += skew;
  pages.mirror += skew;
  *out = pages;
  return true;
}

void standin_pages_open(const standin_pages *pages, size_t offset,
                        size_t size) {
  size_t end = pages->skew + offset + size;
  size_t first = (pages->skew + offset) & ~(size_t)(STANDIN_PAGE - 1);
  mprotect(pages->shown - pages->skew + first, end - first,
           PROT_READ | PROT_WRITE);
}

void standin_pages_close(const standin_pages *pages, size_t first,
                         size_t size) {
  mprotect(pages->shown - pages->skew + first, size, PROT_NONE);
}

// Where this fails, the bytes stay, and what uses them is not found.
void standin_pages_drop(standin_pages *pages) {
  (void)mmap(pages->shown - pages->skew, whole(pages), PROT_NONE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (pages->mirror != pages->shown) {
    munmap(pages->mirror - pages->skew, whole(pages));
  }
  pages->mirror = NULL;
}

void standin_pages_forget(standin_pages *pages) {
  munmap(pages->shown - pages->skew, whole(pages));
  pages->shown = NULL;
}
