// The file: made late, mapped in windows, never longer than its disk allows.
//
// |next| counts the pages handed out; those below |ready| are mapped. No file
// descriptor stays open: a program may close all that it finds. No addresses
// are held but those of pages: a program may limit its own.
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
  WINDOWS = 4200,      // so a file has at most 64 GiB
};

// |next| from here on: the file is being cut, and pages have to wait.
#define OVER (UINT64_C(1) << 62)

// Of the file, as it is mapped: from page |begin| to where the next one begins.
typedef struct window {
  unsigned char *base;
  uint64_t begin;
  size_t size;
} window;

static struct {
  window windows[WINDOWS];
  _Atomic size_t count;  // of windows; 0: no file yet
  _Atomic uint64_t next;
  _Atomic uint64_t ready;
  _Atomic bool busy;  // a thread makes the file or enlarges it
  _Atomic bool failed;
  bool is_ending;  // pages are had one by one
  dev_t device;    // of the file, to know it again
  ino_t inode;
  uint64_t begin_us;
  unsigned generation;
  char path[PATH_MAX + 32];
} file = {.next = 1};  // the header is page 0

settings record_settings = {.threshold = SIZE_MAX, .watched = SIZE_MAX};

static _Atomic uint64_t numbers = 1;

uint64_t file_number(void) {
  return atomic_fetch_add_explicit(&numbers, 1, memory_order_relaxed);
}

// 0 in the child of a fork, in which the kernel empties the page that it is in.
static unsigned char always = 1;
static volatile unsigned char *is_own = &always;

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
  off_t at = (off_t)(begin * TARN__LOG_PAGE);
  size_t size = (size_t)((end - begin) * TARN__LOG_PAGE);
  size_t count = atomic_load(&file.count);
  if (count == WINDOWS || !is_within_limit((uint64_t)at + size)) return false;
  if (posix_fallocate(fd, at, (off_t)size) != 0) return false;
  void *base =
      real()->mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, at);
  if (base == MAP_FAILED) return false;
  file.windows[count] = (window){base, begin, size};
  atomic_store(&file.count, count + 1);
  return true;
}

// Where |page|, which is below |ready|, is mapped.
static unsigned char *find_page(uint64_t page) {
  size_t i = atomic_load_explicit(&file.count, memory_order_acquire) - 1;
  while (file.windows[i].begin > page)
    i--;
  return file.windows[i].base + (page - file.windows[i].begin) * TARN__LOG_PAGE;
}

static uint64_t next_window(uint64_t ready) {
  if (file.is_ending) return 1;
  if (ready < WINDOW_LEAST) return WINDOW_LEAST;
  return ready < WINDOW_MOST ? ready : WINDOW_MOST;
}

// One window more, half as large and so on where the disk is nearly full.
// Returns what |ready| is to be then, or 0.
static uint64_t grow_on(int fd) {
  uint64_t ready = atomic_load(&file.ready);
  for (uint64_t pages = next_window(ready); pages > 0; pages /= 2) {
    if (map_window(fd, ready, ready + pages)) return ready + pages;
  }
  return 0;
}

static bool grow(void) {
  int fd = open_again();
  if (fd < 0) return false;
  uint64_t ready = grow_on(fd);
  close(fd);
  if (ready != 0) atomic_store(&file.ready, ready);
  return ready != 0;
}

// ---------------------------------------------------------------------------
// Making it
// ---------------------------------------------------------------------------

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
  tarn__trace_log_header *header =
      (tarn__trace_log_header *)(void *)find_page(0);
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
  uint64_t ready = grow_on(fd);
  if (ready == 0) return false;
  write_header();
  atomic_store(&file.ready, ready);  // from here on others write
  return true;
}

// A file that nothing can be written to stays, empty: to the tool that is a
// sign that there was something to record.
static bool make(void) {
  int fd = create_any();
  if (fd < 0) return false;
  bool made = make_on(fd);
  if (!made) (void)!ftruncate(fd, 0);
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

// While the file is cut, pages are not counted as they are at other times.
static uint64_t take_page(void) {
  uint64_t page = atomic_fetch_add(&file.next, 1);
  while (page >= OVER) {
    lock();
    unlock();
    page = atomic_fetch_add(&file.next, 1);
  }
  return page;
}

tarn__trace_log_page *file_page(void) {
  if (atomic_load_explicit(&file.failed, memory_order_relaxed)) return NULL;
  if (atomic_load_explicit(&file.ready, memory_order_acquire) == 0 &&
      !make_ready(0)) {
    return NULL;
  }
  uint64_t page = take_page();
  if (page >= atomic_load_explicit(&file.ready, memory_order_acquire) &&
      !make_ready(page)) {
    return NULL;
  }
  return (tarn__trace_log_page *)(void *)find_page(page);
}

void file_lose(void) {
  if (atomic_load_explicit(&file.ready, memory_order_acquire) == 0) return;
  tarn__trace_log_header *header =
      (tarn__trace_log_header *)(void *)find_page(0);
  atomic_fetch_add_explicit(&header->lost, 1, memory_order_relaxed);
}

// ---------------------------------------------------------------------------
// From begin to end
// ---------------------------------------------------------------------------

unsigned file_generation(void) {
  return file.generation;
}

bool file_is_inherited(void) {
  return *is_own == 0;
}

static bool mark_own(void) {
  unsigned char *mark =
      real()->mmap(NULL, TARN__LOG_PAGE, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mark == MAP_FAILED) return false;
  if (madvise(mark, TARN__LOG_PAGE, MADV_WIPEONFORK) != 0) {
    (void)real()->munmap(mark, TARN__LOG_PAGE);
    return false;
  }
  *mark = 1;
  is_own = mark;
  return true;
}

bool file_begin(void) {
  file.begin_us = clock_us(CLOCK_MONOTONIC);
  return mark_own();
}

void file_forget(void) {
  size_t count = atomic_load(&file.count);
  for (size_t i = 0; i < count; i++)
    (void)real()->munmap(file.windows[i].base, file.windows[i].size);
  memset(file.windows, 0, count * sizeof *file.windows);
  atomic_store(&file.count, 0);
  atomic_store(&file.next, 1);
  atomic_store(&file.ready, 0);
  atomic_store(&file.busy, false);
  atomic_store(&file.failed, false);
  file.is_ending = false;
  file.generation++;
  file.begin_us = clock_us(CLOCK_MONOTONIC);
  *is_own = 1;
}

// Cuts off the pages that no thread has. The rest stays mapped and is never
// touched: later pages are mapped anew.
static void cut(void) {
  uint64_t ready = atomic_load(&file.ready);
  uint64_t pages = atomic_fetch_add(&file.next, OVER);
  int fd = pages < ready ? open_again() : -1;
  file.is_ending = true;
  if (fd >= 0) {
    if (ftruncate(fd, (off_t)(pages * TARN__LOG_PAGE)) == 0)
      atomic_store(&file.ready, pages);
    close(fd);
  }
  atomic_store(&file.next, pages);
}

void file_finish(void) {
  if (atomic_load(&file.ready) == 0) return;
  lock();
  if (!file.failed) cut();
  unlock();
}
