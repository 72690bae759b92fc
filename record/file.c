// The file: made late, mapped in windows, never longer than its disk allows.
//
// |next| counts the pages handed out; those below |ready| are mapped. No file
// descriptor stays open: a program may close all that it finds.
#include "record/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record/real.h"
#include "record/settings.h"

enum {
  WINDOW_LEAST = 64,   // pages: 256 KiB
  WINDOW_MOST = 4096,  // 16 MiB
};

// Of addresses that are reserved for the file, and so its most bytes.
#define RESERVED_MOST (UINT64_C(64) << 30)
#define RESERVED_LEAST (UINT64_C(64) << 20)

// |next| from here on: no page is handed out any more.
#define OVER (UINT64_C(1) << 62)

static struct {
  unsigned char *base;  // of the reservation; NULL: no file yet
  size_t reserved;
  _Atomic uint64_t next;
  _Atomic uint64_t ready;
  _Atomic bool busy;  // somebody makes the file, or lets it grow
  _Atomic bool failed;
  dev_t device;  // of the file, to know it again
  ino_t inode;
  uint64_t begin_us;
  unsigned generation;
  char path[PATH_MAX + 32];
} file;

static uint64_t clock_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

// CLOCK_MONOTONIC takes 31 ns where it was measured, CLOCK_MONOTONIC_COARSE 6,
// but the latter knows 4 ms only: too coarse to tell what happened when.
uint64_t file_time_us(void) {
  return clock_us(CLOCK_MONOTONIC) - file.begin_us;
}

// ---------------------------------------------------------------------------
// Growing
// ---------------------------------------------------------------------------

// The file again, unless another has taken its name.
static int open_again(void) {
  struct stat now;
  int fd = open(file.path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return -1;
  if (fstat(fd, &now) == 0 && now.st_dev == file.device &&
      now.st_ino == file.inode) {
    return fd;
  }
  close(fd);
  return -1;
}

// Going over this limit would be a signal, not an error.
static bool is_within_limit(uint64_t bytes) {
  struct rlimit most;
  return getrlimit(RLIMIT_FSIZE, &most) == 0 &&
         (most.rlim_cur == RLIM_INFINITY || bytes <= most.rlim_cur);
}

// |begin| and |end| are pages.
static bool map_window(int fd, uint64_t begin, uint64_t end) {
  uint64_t at = begin * TARN__LOG_PAGE;
  size_t size = (size_t)((end - begin) * TARN__LOG_PAGE);
  if (at + size > file.reserved || !is_within_limit(at + size)) return false;
  if (posix_fallocate(fd, (off_t)at, (off_t)size) != 0) return false;
  return real()->mmap(file.base + at, size, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, fd, (off_t)at) != MAP_FAILED;
}

static uint64_t next_window(uint64_t ready) {
  if (ready < WINDOW_LEAST) return WINDOW_LEAST;
  return ready < WINDOW_MOST ? ready : WINDOW_MOST;
}

// One window more, half as large and so on where the disk is nearly full.
static bool grow_on(int fd) {
  uint64_t ready = atomic_load(&file.ready);
  for (uint64_t pages = next_window(ready); pages > 0; pages /= 2) {
    if (!map_window(fd, ready, ready + pages)) continue;
    atomic_store_explicit(&file.ready, ready + pages, memory_order_release);
    return true;
  }
  return false;
}

static bool grow(void) {
  int fd = open_again();
  if (fd < 0) return false;
  bool grown = grow_on(fd);
  close(fd);
  return grown;
}

// ---------------------------------------------------------------------------
// Making it
// ---------------------------------------------------------------------------

static bool reserve(void) {
  for (uint64_t size = RESERVED_MOST; size >= RESERVED_LEAST; size /= 4) {
    void *base =
        real()->mmap(NULL, size, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) continue;
    file.base = base;
    file.reserved = size;
    return true;
  }
  return false;
}

static int create(const char *suffix, int number) {
  if (number == 0) {
    snprintf(file.path, sizeof file.path, "%s%s", record_settings.out, suffix);
  } else {
    snprintf(file.path, sizeof file.path, "%s%s-%d", record_settings.out,
             suffix, number);
  }
  return open(file.path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
}

// OUT for the first process, OUT.PID for others; a process that has run another
// program before, or one with a number that was used before, gets OUT.PID-1.
static int create_any(void) {
  char suffix[16];
  int fd = -1;
  if (file.generation == 0 &&
      (record_settings.first == 0 || record_settings.first == getpid())) {
    fd = create("", 0);
  }
  snprintf(suffix, sizeof suffix, ".%d", (int)getpid());
  for (int i = 0; i < 100 && fd < 0 && (i == 0 || errno == EEXIST); i++)
    fd = create(suffix, i);
  return fd;
}

static void write_header(void) {
  tarn__log_header *header = (tarn__log_header *)(void *)file.base;
  header->version = TARN__LOG_VERSION;
  header->page_bytes = TARN__LOG_PAGE;
  header->start_us = clock_us(CLOCK_REALTIME) - file_time_us();
  header->process = (uint64_t)getpid();
  ssize_t length =
      readlink("/proc/self/exe", header->program, sizeof header->program - 1);
  header->program[length > 0 ? length : 0] = '\0';
  atomic_thread_fence(memory_order_release);
  memcpy(header->magic, TARN__LOG_MAGIC, sizeof header->magic);
}

static bool make_on(int fd) {
  struct stat now;
  if (fstat(fd, &now) != 0) return false;
  file.device = now.st_dev;
  file.inode = now.st_ino;
  if (!reserve() || !grow_on(fd)) return false;
  write_header();
  atomic_store(&file.next, 1);  // the header is page 0
  return true;
}

// A file that nothing can be written to is worse than none.
static bool make(void) {
  int fd = create_any();
  if (fd < 0) return false;
  bool made = make_on(fd);
  if (!made) unlink(file.path);
  close(fd);
  return made;
}

// ---------------------------------------------------------------------------
// Pages
// ---------------------------------------------------------------------------

static void lock(void) {
  bool was = false;
  while (!atomic_compare_exchange_weak(&file.busy, &was, true)) {
    was = false;
    sched_yield();
  }
}

static void unlock(void) {
  atomic_store(&file.busy, false);
}

// Until |page| is mapped. 0 is never handed out: it asks for the file itself.
static bool make_ready(uint64_t page) {
  int saved = errno;
  lock();
  while (!file.failed && page >= atomic_load(&file.ready)) {
    bool first = atomic_load(&file.ready) == 0;
    file.failed = first ? !make() : !grow();
  }
  bool ready = page < atomic_load(&file.ready);
  unlock();
  errno = saved;
  return ready;
}

tarn__log_page *file_page(void) {
  if (atomic_load_explicit(&file.failed, memory_order_relaxed)) return NULL;
  if (atomic_load_explicit(&file.ready, memory_order_acquire) == 0 &&
      !make_ready(0)) {
    return NULL;
  }
  uint64_t page = atomic_fetch_add(&file.next, 1);
  if (page >= OVER) return NULL;
  if (page >= atomic_load_explicit(&file.ready, memory_order_acquire) &&
      !make_ready(page)) {
    return NULL;
  }
  return (tarn__log_page *)(void *)(file.base + page * TARN__LOG_PAGE);
}

void file_lose(void) {
  if (atomic_load_explicit(&file.ready, memory_order_acquire) == 0) return;
  tarn__log_header *header = (tarn__log_header *)(void *)file.base;
  atomic_fetch_add_explicit(&header->lost, 1, memory_order_relaxed);
}

// ---------------------------------------------------------------------------
// From begin to end
// ---------------------------------------------------------------------------

unsigned file_generation(void) {
  return file.generation;
}

void file_begin(void) {
  file.begin_us = clock_us(CLOCK_MONOTONIC);
}

void file_forget(void) {
  if (file.base != NULL) (void)real()->munmap(file.base, file.reserved);
  unsigned generation = file.generation + 1;
  memset(&file, 0, sizeof file);
  file.generation = generation;
  file_begin();
}

// Other threads may still write, to pages that they have.
void file_finish(void) {
  if (atomic_load(&file.ready) == 0) return;
  lock();
  uint64_t pages = atomic_fetch_add(&file.next, OVER);
  int fd = file.failed || pages >= OVER ? -1 : open_again();
  uint64_t ready = atomic_load(&file.ready);
  if (fd >= 0) {
    if (pages < ready) (void)!ftruncate(fd, (off_t)(pages * TARN__LOG_PAGE));
    close(fd);
  }
  unlock();
}
