// Memory behind files in memory.
//
// Memory is committed unit by unit (os_pages.h), in these steps:
//
//   populate one page   a shortage is an error here, and a signal otherwise;
//                       a unit without any page cannot be collapsed
//   collapse            the unit becomes one huge page, cleared at once
//   allocate            whatever has none yet, which is little or all of it
//
// It needs the file mapped, which a window that moves along it is enough for:
// so a limit on addresses is not met sooner than by the mapping to come.
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/os_pages.h"
#include "base/status.h"

// What headers older than the kernel do not have.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum {
  WINDOW_UNITS = 16,
  COLLAPSE_TRIES = 4,   // of one unit that another process accesses
  FAILURES_ENOUGH = 8,  // one after the other: there are no huge pages
};

typedef struct filler {
  int fd;
  size_t end;  // of the part
  size_t file_end;
  unsigned char *window;  // addresses, at a multiple of a unit
  size_t window_size;
  size_t huge;        // bytes of the part, so far
  unsigned failures;  // of collapses, one after the other
} filler;

// A kernel without memory would kill a process, which may be any: so it is
// asked before. Other processes that take memory at the same time are noticed
// as the window moves.
static bool is_available(size_t size) {
  size_t total = 0;
  size_t available = 0;
  tarn__os_memory(&total, &available);
  if (total == 0 || size <= available) return true;
  errno = ENOMEM;
  return false;
}

// In pieces, for a signal undoes what a call has done so far; and in smaller
// ones each time, for the next may come before this one is done again.
bool tarn__os_allocate_file(int fd, size_t offset, size_t size) {
  size_t most = TARN__OS_HUGE;
  for (size_t done = 0; done < size;) {
    size_t piece = tarn__lesser(size - done, most);
    int reason = posix_fallocate(fd, (off_t)(offset + done), (off_t)piece);
    if (reason == EINTR) {
      if (most > tarn__os_page()) most /= 2;
      continue;
    }
    if (reason != 0) {
      errno = reason;
      return false;
    }
    done += piece;
  }
  return true;
}

// What would be a SIGBUS is EFAULT. A kernel that does not know the advice
// leaves the page to allocate.
static bool populate(unsigned char *at) {
  while (madvise(at, tarn__os_page(), MADV_POPULATE_WRITE) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) return true;
    if (errno == EFAULT) errno = ENOMEM;
    return false;
  }
  return true;
}

static bool collapse(filler *f, unsigned char *at) {
  if (f->failures == FAILURES_ENOUGH) return false;
  for (int i = 0; i < COLLAPSE_TRIES; i++) {
    if (madvise(at, TARN__OS_HUGE, MADV_COLLAPSE) == 0) {
      f->failures = 0;
      return true;
    }
    if (errno != EAGAIN && errno != EBUSY && errno != EINTR) break;
  }
  f->failures++;
  return false;
}

static bool fill_unit(filler *f, size_t offset, unsigned char *at) {
  if (!populate(at)) return false;
  bool huge = collapse(f, at);
  if (!tarn__os_allocate_file(f->fd, offset, TARN__OS_HUGE)) return false;
  if (huge) f->huge += tarn__lesser(f->end - offset, TARN__OS_HUGE);
  return true;
}

static bool move_window(const filler *f, size_t offset, size_t size) {
  return mmap(f->window, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
              f->fd, (off_t)offset) != MAP_FAILED;
}

// |size| bytes from |offset| on, whole units.
static bool fill_window(filler *f, size_t offset, size_t size) {
  if (!is_available(f->end - offset) || !move_window(f, offset, size)) {
    return false;
  }
  for (size_t done = 0; done < size; done += TARN__OS_HUGE) {
    if (!fill_unit(f, offset + done, f->window + done)) return false;
  }
  return true;
}

static bool fill_windows(filler *f, size_t begin, size_t end) {
  for (size_t at = begin; at < end;) {
    size_t size = tarn__lesser(end - at, f->window_size);
    if (!fill_window(f, at, size)) return false;
    at += size;
  }
  return true;
}

// Commits the units from |begin| to |end|, through a temporary window.
static bool fill_units(filler *f, size_t begin, size_t end) {
  if (begin >= end) return true;
  f->window_size = tarn__lesser(end - begin, WINDOW_UNITS * TARN__OS_HUGE);
  f->window = tarn__os_reserve_aligned(f->window_size, TARN__OS_HUGE);
  if (f->window == NULL) return false;
  bool filled = fill_windows(f, begin, end);
  tarn__os_unmap(f->window, f->window_size);
  return filled;
}

static size_t round_down(size_t offset) {
  return offset & ~(TARN__OS_HUGE - 1);
}

// The first unit that begins at |offset| or behind; in a file that is never
// beyond what can be counted.
static size_t round_up(size_t offset) {
  return round_down(offset + TARN__OS_HUGE - 1);
}

static bool fill(filler *f, size_t begin) {
  size_t head_end = tarn__lesser(round_up(begin), f->end);
  size_t body_end = tarn__lesser(round_up(f->end), round_down(f->file_end));
  if (!is_available(f->end - begin)) return false;
  if (!tarn__os_allows_file(tarn__lesser(round_up(f->end), f->file_end))) {
    return false;
  }
  if (!tarn__os_allocate_file(f->fd, begin, head_end - begin)) return false;
  if (!fill_units(f, head_end, body_end)) return false;
  size_t tail = body_end > head_end ? body_end : head_end;
  return tail >= f->end || tarn__os_allocate_file(f->fd, tail, f->end - tail);
}

bool tarn__os_commit_file(int fd, size_t offset, size_t size,
                          size_t *out_huge) {
  struct stat info;
  *out_huge = 0;
  if (fstat(fd, &info) != 0) return false;
  size_t file_end = (size_t)info.st_size;
  if (offset > file_end || size > file_end - offset) {
    errno = EINVAL;
    return false;
  }
  filler f = {.fd = fd, .end = offset + size, .file_end = file_end};
  if (size != 0 && !fill(&f, offset)) return false;
  *out_huge = f.huge;
  return true;
}

void tarn__os_collapse(void *ptr, size_t size) {
  uintptr_t skipped = -(uintptr_t)ptr & (TARN__OS_HUGE - 1);
  unsigned char *bytes = ptr;
  filler f = {.fd = -1};
  for (size_t at = skipped; at < size; at += TARN__OS_HUGE) {
    bool fits = size - at >= TARN__OS_HUGE;
    if (!fits || !populate(bytes + at) || !collapse(&f, bytes + at)) return;
  }
}

// Only whole pages take advice.
void tarn__os_ask_huge(void *ptr, size_t size) {
  uintptr_t page = tarn__os_page();
  uintptr_t begin = ((uintptr_t)ptr + page - 1) & ~(page - 1);
  uintptr_t end = ((uintptr_t)ptr + size) & ~(page - 1);
  if (begin < end) (void)madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

void *tarn__os_map_shared(int fd, size_t size) {
  size_t align = size >= TARN__OS_HUGE ? TARN__OS_HUGE : tarn__os_page();
  void *ptr = tarn__os_reserve_aligned(size, align);
  if (ptr == NULL || tarn__os_put_file(ptr, size, fd)) return ptr;
  tarn__os_unmap(ptr, size);
  return NULL;
}
