// Linux behind os.h.
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/status.h"

size_t tarn__os_page(void) {
  return (size_t)sysconf(_SC_PAGESIZE);
}

// --- mapping ---------------------------------------------------------------

static void *map(size_t size, int protection, int flags) {
  void *ptr =
      mmap(NULL, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  return ptr == MAP_FAILED ? NULL : ptr;
}

void *tarn__os_map(size_t size) {
  return map(size, PROT_READ | PROT_WRITE, 0);
}

void *tarn__os_reserve(size_t size) {
  return map(size, PROT_NONE, MAP_NORESERVE);
}

void *tarn__os_map_sparse(size_t size) {
  return map(size, PROT_READ | PROT_WRITE, MAP_NORESERVE);
}

// More than is wanted, less what stands before and behind the aligned part.
static void *trim(char *ptr, size_t whole, size_t size, size_t align) {
  if (ptr == NULL) return NULL;
  size_t lead = (size_t)(-(uintptr_t)ptr & (align - 1));
  size_t rest = whole - lead - size;
  if (lead != 0) tarn__os_unmap(ptr, lead);
  if (rest != 0) tarn__os_unmap(ptr + lead + size, rest);
  return ptr + lead;
}

static void *map_aligned(size_t size, size_t align,
                         void *(*map_some)(size_t size)) {
  size_t page = tarn__os_page();
  size_t whole = 0;
  if (align <= page) return map_some(size);
  if (!tarn_size_add(size, align - page, &whole)) return NULL;
  return trim(map_some(whole), whole, size, align);
}

void *tarn__os_map_aligned(size_t size, size_t align) {
  return map_aligned(size, align, tarn__os_map);
}

void *tarn__os_reserve_aligned(size_t size, size_t align) {
  return map_aligned(size, align, tarn__os_reserve);
}

void tarn__os_discard(void *ptr, size_t size) {
  if (!tarn__os_empty(ptr, size)) {
    tarn__log(TARN_LOG_ERROR, "os: madvise of %zu bytes at %p: %s", size, ptr,
              strerror(errno));
  }
}

void tarn__os_unmap(void *ptr, size_t size) {
  int reason = errno;
  if (munmap(ptr, size) != 0) {
    tarn__log(TARN_LOG_ERROR, "os: munmap of %zu bytes at %p: %s", size, ptr,
              strerror(errno));
  }
  errno = reason;
}

bool tarn__os_is_mapped(const void *ptr) {
  size_t page = tarn__os_page();
  unsigned char resident = 0;
  uintptr_t begin = (uintptr_t)ptr & ~(uintptr_t)(page - 1);
  return mincore((void *)begin, page, &resident) == 0 || errno != ENOMEM;
}

// --- addresses and memory apart --------------------------------------------

bool tarn__os_protect(void *ptr, size_t size, tarn__os_access access) {
  static const int protections[] = {
      [TARN__OS_NONE] = PROT_NONE,
      [TARN__OS_READ] = PROT_READ,
      [TARN__OS_READ_WRITE] = PROT_READ | PROT_WRITE,
  };
  return mprotect(ptr, size, protections[access]) == 0;
}

static bool reserve_at(void *ptr, size_t size, int flags) {
  flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  return mmap(ptr, size, PROT_NONE, flags, -1, 0) != MAP_FAILED;
}

bool tarn__os_vacate(void *ptr, size_t size) {
  return reserve_at(ptr, size, MAP_FIXED);
}

// What is left at |from| is in no mapping of another thread's meanwhile. A
// kernel that fails late has emptied |to| by then: it is reserved again, unless
// another thread's mapping was faster or it never was emptied.
static bool relocate_mapping(char *from, char *to, size_t size) {
  int how = MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP;
  if (mremap(from, size, size, how, to) != MAP_FAILED) return true;
  int reason = errno;
  (void)reserve_at(to, size, MAP_FIXED_NOREPLACE);
  errno = reason;
  return false;
}

// The kernel may move no more than one of its mappings in a call: EFAULT. Where
// that ends is found by halves.
static size_t relocate_some(char *from, char *to, size_t size) {
  size_t done = 0;
  size_t step = size;
  while (done < size) {
    if (relocate_mapping(from + done, to + done, step)) {
      done += step;
      step = size - done;
    } else if (errno == EFAULT && step > tarn__os_page()) {
      step = step / 2 & ~(tarn__os_page() - 1);
    } else {
      break;
    }
  }
  return done;
}

// What went before goes back. A kernel from 6.17 on moves several mappings in a
// call, and may fail between two of them: then those before are lost, but no
// addresses.
bool tarn__os_relocate(void *from, void *to, size_t size) {
  size_t done = relocate_some(from, to, size);
  if (done == size) return true;
  int reason = errno;
  size_t back = done > 0 ? relocate_some(to, from, done) : 0;
  bool vacated = tarn__os_vacate(to, size);
  if (back < done || !vacated) {
    tarn__log(TARN_LOG_ERROR, "os: %zu bytes at %p were lost in a move: %s",
              done - back, from, strerror(errno));
  }
  errno = reason;
  return false;
}

static bool try_relocate(void) {
  size_t page = tarn__os_page();
  char *both = tarn__os_reserve(2 * page);
  if (both == NULL) return false;
  bool moved = tarn__os_protect(both, page, TARN__OS_READ_WRITE) &&
               relocate_mapping(both, both + page, page);
  tarn__os_unmap(both, 2 * page);
  return moved;
}

bool tarn__os_can_relocate(void) {
  enum { UNKNOWN, YES, NO };
  static atomic_int answer;
  int known = atomic_load_explicit(&answer, memory_order_relaxed);
  if (known == UNKNOWN) {
    known = try_relocate() ? YES : NO;
    atomic_store_explicit(&answer, known, memory_order_relaxed);
  }
  return known == YES;
}

bool tarn__os_empty(void *ptr, size_t size) {
  return madvise(ptr, size, MADV_DONTNEED) == 0;
}

bool tarn__os_map_file(void *ptr, size_t size, int fd) {
  size_t page = tarn__os_page();
  void *spare = mmap(NULL, page, PROT_READ, MAP_SHARED, fd, 0);
  if (spare == MAP_FAILED) return false;
  bool mapped =
      mmap(ptr, size, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) != MAP_FAILED;
  tarn__os_unmap(spare, page);
  return mapped;
}

size_t tarn__os_most_addresses(void) {
  struct rlimit limit;
  bool limited =
      getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return limited ? (size_t)limit.rlim_cur : SIZE_MAX;
}

// --- files in memory -------------------------------------------------------

// Neither size nor seals can change: no process can cut off pages that others
// map. (The kernel may add a seal of its own, against executing.)
static const int SEALS = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
static const int FOREIGN_SEALS = F_SEAL_WRITE | F_SEAL_FUTURE_WRITE;

enum { FIRST_FREE = STDERR_FILENO + 1 };  // of the numbers of descriptors

void tarn__os_close(int fd) {
  int reason = errno;
  close(fd);
  errno = reason;
}

bool tarn__os_allows_file(size_t size) {
  struct rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || size <= limit.rlim_cur) {
    return true;
  }
  errno = EFBIG;
  return false;
}

int tarn__os_above_standard(int fd) {
  if (fd < 0 || fd >= FIRST_FREE) return fd;
  int moved = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
  tarn__os_close(fd);
  return moved;
}

int tarn__os_memory_file(const char *name, size_t size) {
  if (!tarn__os_allows_file(size)) return -1;
  int fd = tarn__os_above_standard(
      memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (fd < 0) return -1;
  if (size <= INT64_MAX && ftruncate(fd, (off_t)size) == 0 &&
      fcntl(fd, F_ADD_SEALS, SEALS) == 0) {
    return fd;
  }
  if (size > INT64_MAX) errno = ENOMEM;
  tarn__os_close(fd);
  return -1;
}

// The kernel shows the name only here; without /proc, seals and size decide.
static bool has_name(int fd, const char *name) {
  char link[64];
  char shown[128];
  char expected[128];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, shown, sizeof shown - 1);
  if (size < 0) return true;
  shown[size] = '\0';
  snprintf(expected, sizeof expected, "/memfd:%s (deleted)", name);
  return strcmp(shown, expected) == 0;
}

static bool is_writable(int fd) {
  int flags = fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == O_RDWR;
}

size_t tarn__os_memory_file_size(int fd, const char *name) {
  struct stat info;
  int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & (SEALS | FOREIGN_SEALS)) != SEALS) return 0;
  bool is_ours = fstat(fd, &info) == 0 && is_writable(fd) && has_name(fd, name);
  return is_ours ? (size_t)info.st_size : 0;
}

bool tarn__os_is_memory_file(int fd, const char *name, size_t size) {
  return size != 0 && tarn__os_memory_file_size(fd, name) == size;
}

int tarn__os_duplicate(int fd) {
  return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE);
}

static bool put(void *ptr, size_t size, int flags, int fd) {
  void *there =
      mmap(ptr, size, PROT_READ | PROT_WRITE, MAP_FIXED | flags, fd, 0);
  return there == ptr;
}

bool tarn__os_put_file(void *ptr, size_t size, int fd) {
  return put(ptr, size, MAP_SHARED, fd);
}

bool tarn__os_put_sparse(void *ptr, size_t size) {
  return put(ptr, size, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

// --- other threads ---------------------------------------------------------

void tarn__os_yield(void) {
  sched_yield();
}

static bool membarrier(int command) {
  return syscall(SYS_membarrier, command, 0, 0) == 0;
}

static bool allow_fences(void) {
  return membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
}

bool tarn__os_can_fence_threads(void) {
  enum { UNKNOWN, YES, NO };
  static atomic_int answer;
  int known = atomic_load_explicit(&answer, memory_order_relaxed);
  if (known == UNKNOWN) {
    known = allow_fences() ? YES : NO;
    atomic_store_explicit(&answer, known, memory_order_relaxed);
  }
  return known == YES;
}

static void sleep_until(uint64_t ns) {
  struct timespec end = tarn__os_timespec(ns);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
    continue;
}

// A sandbox may forbid later what worked before. Then time has to suffice: a
// store never takes that long to leave a processor.
void tarn__os_fence_threads(void) {
  if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  if (allow_fences() && membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED)) return;
  sleep_until(tarn__os_now_ns() + 10000000);
}

// The word is this process's alone.
static void futex(_Atomic uint32_t *word, int operation, uint32_t value) {
  (void)syscall(SYS_futex, word, operation | FUTEX_PRIVATE_FLAG, value, NULL,
                NULL, 0);
}

void tarn__os_park(_Atomic uint32_t *word, uint32_t value) {
  futex(word, FUTEX_WAIT, value);
}

void tarn__os_unpark(_Atomic uint32_t *word, int count) {
  futex(word, FUTEX_WAKE, (uint32_t)count);
}

// --- time and forks --------------------------------------------------------

static uint64_t read_clock(clockid_t clock) {
  struct timespec now = {0};
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t tarn__os_now_ns(void) {
  return read_clock(CLOCK_MONOTONIC);
}

uint64_t tarn__os_busy_ns(void) {
  return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

// A sleep ends this much too late, as a rule less.
static const uint64_t SLEEP_SLACK_NS = 100000;

void tarn__os_wait_until(uint64_t deadline_ns) {
  uint64_t now = tarn__os_now_ns();
  if (now < deadline_ns && deadline_ns - now > SLEEP_SLACK_NS) {
    sleep_until(deadline_ns - SLEEP_SLACK_NS);
  }
  while (tarn__os_now_ns() < deadline_ns)
    continue;
}

static const uint64_t NAP_NS = 200000;

void tarn__os_back_off(unsigned tries) {
  enum { SPINS = 100, YIELDS = 100 };
  if (tries < SPINS) {
    tarn__os_pause();
  } else if (tries < SPINS + YIELDS) {
    tarn__os_yield();
  } else {
    tarn__os_wait_until(tarn__os_now_ns() + NAP_NS);
  }
}

atomic_uint tarn__os_forks;

static bool lives_on;

static void count_fork(void) {
  if (lives_on) return;
  atomic_fetch_add_explicit(&tarn__os_forks, 1, memory_order_relaxed);
}

void tarn__os_live_on(void) {
  lives_on = true;
}

// At load, so that no fork can come before it.
__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(NULL, NULL, count_fork);
}
