// What pages a range is on, as the kernel tells.
//
// A huge page counts where it is mapped by one entry, which the kernel notes
// when it is first touched. From 6.7 on it tells of any range; before, it only
// sums up each of its mappings, of which the range may be a part.
#include "base/os_pages.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

// What headers older than the kernel do not have.
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

typedef struct span {
  uint64_t begin;
  uint64_t end;
} span;

static uint64_t overlap(span a, span b) {
  uint64_t begin = a.begin > b.begin ? a.begin : b.begin;
  uint64_t end = a.end < b.end ? a.end : b.end;
  return begin < end ? end - begin : 0;
}

static uint64_t size_of(span s) {
  return s.end - s.begin;
}

// The pages that |s| is on.
static span pages_of(span s) {
  uint64_t page = tarn__os_page();
  return (span){s.begin & ~(page - 1), (s.end + page - 1) & ~(page - 1)};
}

// One page of each unit, so that huge pages are mapped where possible.
static bool touch(span pages) {
  for (uint64_t at = pages.begin; at < pages.end;
       at = (at / TARN__OS_HUGE + 1) * TARN__OS_HUGE) {
    void *page = (void *)(uintptr_t)at;
    while (madvise(page, tarn__os_page(), MADV_POPULATE_READ) != 0) {
      if (errno != EINTR && errno != EAGAIN) return false;
    }
  }
  return true;
}

static bool answer(span s, uint64_t huge, tarn__os_pages *out) {
  out->huge_bytes = (size_t)huge;
  out->page_size = huge == size_of(s) ? TARN__OS_HUGE : tarn__os_page();
  return true;
}

// --- Linux 6.7 -------------------------------------------------------------

// As its headers have them, which may be older here.
typedef struct scan_region {
  uint64_t begin;
  uint64_t end;
  uint64_t kinds;
} scan_region;

typedef struct scan_request {
  uint64_t size;
  uint64_t flags;
  uint64_t begin;
  uint64_t end;
  uint64_t reached;
  uint64_t regions;
  uint64_t region_count;
  uint64_t most_pages;
  uint64_t inverted;
  uint64_t all_of;
  uint64_t any_of;
  uint64_t wanted;
} scan_request;

#define SCAN_PAGES _IOWR('f', 16, scan_request)
enum { SCAN_HUGE = 1 << 6, SCAN_REGIONS = 64 };

static bool scan(int fd, span s, uint64_t *out_huge) {
  scan_region regions[SCAN_REGIONS];
  span pages = pages_of(s);
  scan_request r = {.size = sizeof r,
                    .end = pages.end,
                    .regions = (uintptr_t)regions,
                    .region_count = SCAN_REGIONS,
                    .all_of = SCAN_HUGE,
                    .wanted = SCAN_HUGE};
  for (r.begin = pages.begin; r.begin < pages.end; r.begin = r.reached) {
    int count = ioctl(fd, SCAN_PAGES, &r);
    if (count < 0 || r.reached <= r.begin) return false;
    for (int i = 0; i < count; i++) {
      *out_huge += overlap(s, (span){regions[i].begin, regions[i].end});
    }
  }
  return true;
}

bool tarn__os_look_at_pages(const void *ptr, size_t size, tarn__os_pages *out) {
  span s = {(uintptr_t)ptr, (uintptr_t)ptr + size};
  uint64_t huge = 0;
  *out = (tarn__os_pages){0};
  if (size == 0 || !touch(pages_of(s))) return false;
  int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  bool scanned = fd >= 0 && scan(fd, s, &huge);
  if (fd >= 0) close(fd);
  return scanned ? answer(s, huge, out)
                 : tarn__os_look_at_mappings(ptr, size, out);
}

// --- before ----------------------------------------------------------------

// The part read so far of the mappings that meet |range|.
typedef struct tally {
  span range;
  uint64_t seen;     // bytes of it in mappings
  uint64_t outside;  // bytes of the present mapping that are not in it
  uint64_t mapped;   // ... of huge pages in the present mapping
  uint64_t huge;     // bytes of it on huge pages, at least
  bool inside;       // the present mapping meets it
} tally;

static void end_mapping(tally *t) {
  if (t->mapped > t->outside) t->huge += t->mapped - t->outside;
  t->mapped = 0;
}

// "7f0000000000-7f0000200000 rw-s ..."
static bool is_mapping(const char *line, span *out) {
  char *end = NULL;
  out->begin = strtoull(line, &end, 16);
  if (end == line || *end != '-') return false;
  out->end = strtoull(end + 1, &end, 16);
  return *end == ' ';
}

static void begin_mapping(tally *t, span mapping) {
  uint64_t common = overlap(t->range, mapping);
  end_mapping(t);
  t->inside = common != 0;
  t->seen += common;
  t->outside = size_of(mapping) - common;
}

// "ShmemPmdMapped:     2048 kB"
static void add_huge(tally *t, const char *line) {
  static const char *const KEYS[] = {
      "AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"};
  for (size_t i = 0; i < sizeof KEYS / sizeof *KEYS; i++) {
    size_t length = strlen(KEYS[i]);
    if (strncmp(line, KEYS[i], length) != 0) continue;
    t->mapped += strtoull(line + length, NULL, 10) * 1024;
  }
}

static void tally_mappings(tarn__os_lines *in, tally *t) {
  span mapping;
  for (const char *line; (line = tarn__os_lines_next(in)) != NULL;) {
    if (is_mapping(line, &mapping)) {
      begin_mapping(t, mapping);
    } else if (t->inside) {
      add_huge(t, line);
    }
  }
  end_mapping(t);
}

bool tarn__os_look_at_mappings(const void *ptr, size_t size,
                               tarn__os_pages *out) {
  tarn__os_lines in;
  tally t = {.range = {(uintptr_t)ptr, (uintptr_t)ptr + size}};
  *out = (tarn__os_pages){0};
  if (!tarn__os_lines_open(&in, "/proc/self/smaps")) return false;
  tally_mappings(&in, &t);
  close(in.fd);
  return size != 0 && t.seen == size && answer(t.range, t.huge, out);
}

// --- nodes -----------------------------------------------------------------

int tarn__os_node_of(const void *ptr) {
  uintptr_t page = (uintptr_t)ptr & ~(uintptr_t)(tarn__os_page() - 1);
  void *address = (void *)page;
  int node = -1;
  // With nowhere to move to, it tells where they are.
  long failed = syscall(SYS_move_pages, 0, 1L, &address, NULL, &node, 0);
  return failed == 0 && node >= 0 ? node : -1;
}
