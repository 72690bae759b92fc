// os.h - the operating system: the only room that maps and asks the kernel.
//
// Addresses and sizes of the mapping calls are multiples of tarn__os_page();
// nothing here takes a lock, keeps state but the fork generation and what the
// kernel can do, or needs any other part of Tarn.
#ifndef TARN_BASE_OS_H_
#define TARN_BASE_OS_H_

#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "tarn/base.h"

// Bytes of a page of this machine.
size_t tarn__os_page(void);

// |size| bytes of private, zero, anonymous memory, not yet resident; NULL if
// the kernel refuses. tarn__os_unmap takes the same size, and keeps errno.
void *tarn__os_map(size_t size);
void tarn__os_unmap(void *ptr, size_t size);

// |size| bytes of addresses that nothing else will get and that fault when they
// are touched; NULL if there are not as many. tarn__os_unmap gives them back.
void *tarn__os_reserve(size_t size);

// Both at a multiple of |align|, a power of two.
void *tarn__os_map_aligned(size_t size, size_t align);
void *tarn__os_reserve_aligned(size_t size, size_t align);

// As tarn__os_map, for a range of which little will be in use at a time: the
// kernel promises no memory for it, however large it is.
void *tarn__os_map_sparse(size_t size);

// Gives the memory of mapped pages back; they stay mapped, and are zero.
void tarn__os_discard(void *ptr, size_t size);

// Whether anything is mapped at |ptr|, readable or not.
bool tarn__os_is_mapped(const void *ptr);

// The calls below answer false, or NULL, or -1, with errno set, where the
// kernel refuses, and then nothing has changed.

typedef enum tarn__os_access {
  TARN__OS_NONE,
  TARN__OS_READ,
  TARN__OS_READ_WRITE,
} tarn__os_access;

// The access to mapped or reserved pages. Reserved ones become memory
// by it: zero, private, and without a mapping of their own beside a neighbour
// with the same access.
TARN_MUST_CHECK bool tarn__os_protect(void *ptr, size_t size,
                                      tarn__os_access access);

// Drops what is mapped in the range; its addresses stay reserved.
TARN_MUST_CHECK bool tarn__os_vacate(void *ptr, size_t size);

// Whether tarn__os_relocate works here: Linux 5.7. The kernel is asked once.
bool tarn__os_can_relocate(void);

// Takes the bytes of the private pages at |from|, with their access, to the
// reserved addresses at |to|. What is left at |from| is empty, and as
// accessible as before: tarn__os_vacate ends it. Pages that the program has
// given properties of their own, as by madvise, are moved as well.
TARN_MUST_CHECK bool tarn__os_relocate(void *from, void *to, size_t size);

// Gives the memory of private pages back; they stay mapped, with their access,
// and are zero. Unlike tarn__os_vacate it needs no mapping more.
TARN_MUST_CHECK bool tarn__os_empty(void *ptr, size_t size);

// How many bytes of addresses this process may have, reserved ones included;
// SIZE_MAX: no limit is set.
size_t tarn__os_most_addresses(void);

// How many mappings a process may have; 65530 if the kernel does not say.
size_t tarn__os_most_mappings(void);

// Whether this process may have a file with |size| bytes; false with errno
// EFBIG: to try would be a signal, for files in memory as for others.
TARN_MUST_CHECK bool tarn__os_allows_file(size_t size);

// The same descriptor, or if it is one of the first three, which a launcher
// gives a meaning of their own, another one instead, closed on exec; then |fd|
// is closed, whatever comes of it. -1 stays -1.
TARN_MUST_CHECK int tarn__os_above_standard(int fd);

// A file of |size| zero bytes in memory, which keeps that size for ever and is
// gone with its last descriptor and mapping. Close it with tarn__os_close.
TARN_MUST_CHECK int tarn__os_memory_file(const char *name, size_t size);

// Whether |fd| is such a file, of that name and size, to be read and written.
bool tarn__os_is_memory_file(int fd, const char *name, size_t size);

// The size of such a file; 0: |fd| is no such file of that name.
size_t tarn__os_memory_file_size(int fd, const char *name);

// Another descriptor of the same file. Neither is ever one of the first three.
TARN_MUST_CHECK int tarn__os_duplicate(int fd);
void tarn__os_close(int fd);

// Maps the first |size| bytes of the file at reserved addresses, shared with
// other mappings of it. They cannot be accessed before tarn__os_protect. Also
// refused if this would use up the process's mappings, since unmapping may need
// a spare one.
TARN_MUST_CHECK bool tarn__os_map_file(void *ptr, size_t size, int fd);

// Replace mapped pages, which stay readable and writable: by the first |size|
// bytes of the file, shared with other mappings of it, or by private zero
// memory like that of tarn__os_map_sparse. Accesses meanwhile see the old or
// the new bytes.
TARN_MUST_CHECK bool tarn__os_put_file(void *ptr, size_t size, int fd);
TARN_MUST_CHECK bool tarn__os_put_sparse(void *ptr, size_t size);

// Bytes of memory that this process can get: the machine's, or less where its
// control group or an ancestor of that has a limit (version 2: memory.max and
// memory.high; version 1: memory.limit_in_bytes). Available: what is free now
// without swapping, the least of the machine's MemAvailable and each group's
// limit less its use, where file pages that are not active do not count as use.
// Both 0 if the kernel does not say. Files of /proc and of the groups are read
// at each call: some 50 microseconds.
void tarn__os_memory(size_t *out_total, size_t *out_available);

// The same of the files below the folder |root|, which tests make up.
void tarn__os_memory_of(const char *root, size_t *out_total,
                        size_t *out_available);

// A file of the kernel, line by line; lines beyond the buffer are left out. The
// descriptor is closed by the caller.
typedef struct tarn__os_lines {
  int fd;
  size_t begin, end;
  char bytes[8192];
} tarn__os_lines;

TARN_MUST_CHECK bool tarn__os_lines_open(tarn__os_lines *lines,
                                         const char *name);

// The next line, without its newline, until the next call; NULL at the end.
char *tarn__os_lines_next(tarn__os_lines *lines);

// Nanoseconds of a clock that only goes forward.
uint64_t tarn__os_now_ns(void);

// Nanoseconds for which this thread has had a processor.
uint64_t tarn__os_busy_ns(void);

// Returns when the first clock has reached |deadline_ns|, seldom more than a
// few microseconds later: most of the time is slept, the end of it watched.
void tarn__os_wait_until(uint64_t deadline_ns);

// Lets other threads run, if any want to.
void tarn__os_yield(void);

// Whether the next function can do what it says; the kernel is asked once.
bool tarn__os_can_fence_threads(void);

// Returns when each thread of this process has passed a full memory barrier
// since the call, or was not running. It costs some microseconds, and those
// threads no instruction of their own.
void tarn__os_fence_threads(void);

// Sleeps until tarn__os_unpark of the same word, unless the word has another
// value than |value| by then. May return for no reason.
void tarn__os_park(_Atomic uint32_t *word, uint32_t value);

// Wakes up to |count| threads that sleep on |word|.
void tarn__os_unpark(_Atomic uint32_t *word, int count);

// Tells the processor that the thread spins.
static inline void tarn__os_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Between two looks at what another thread is about to do; |tries|: how many
// there were. Most take less than a microsecond. A thread that has lost its
// processor gets it by yielding, and finally by sleeping, which also yields to
// lower priorities.
void tarn__os_back_off(unsigned tries);

// Counted by the handler of forks; read through tarn__os_generation.
extern atomic_uint tarn__os_forks;

// How many forks lie between this process and the one that first asked. An
// object remembers the number at its making; where it differs, the object
// belongs to a parent (see docs/contracts.md). One relaxed load.
static inline uint32_t tarn__os_generation(void) {
  return atomic_load_explicit(&tarn__os_forks, memory_order_relaxed);
}

// From now on forks are not counted: what there is lives on in a child, which
// has a copy of it. For a copy of the library that nobody else uses, without
// threads and streams, whose locks are all held across forks
// (pool/hold.h).
void tarn__os_live_on(void);

// A lock that is held across forks is registered at load, in this order,
// because the handlers that lock run in reverse: a lock under which others are
// taken is locked first at a fork, and leaves are locked last. FRONT is the
// lock of a pool.
#define TARN__WATCH_FORKS_LAST __attribute__((constructor(201)))
#define TARN__WATCH_FORKS_FRONT __attribute__((constructor(202)))
#define TARN__WATCH_FORKS_BETWEEN __attribute__((constructor(203)))
#define TARN__WATCH_FORKS_FIRST __attribute__((constructor(204)))

// Defines lock_NAME and unlock_NAME of |mutex|, which is held across forks, so
// that no child finds it locked by a thread that the child lacks. |order|:
// LAST, BETWEEN or FIRST. |in_child| unlocks it in the child: unlock_NAME, or a
// function that first resets what the child must not inherit.
#define TARN__LOCK_AROUND_FORKS(order, name, mutex, in_child) \
  static void lock_##name(void) {                             \
    pthread_mutex_lock(mutex);                                \
  }                                                           \
  static void unlock_##name(void) {                           \
    pthread_mutex_unlock(mutex);                              \
  }                                                           \
  TARN__WATCH_FORKS_##order static void watch_forks(void) {   \
    pthread_atfork(lock_##name, unlock_##name, in_child);     \
  }

// Reads the whole regular file at |path| into memory from tarn__host_alloc, if
// it has at most |most| bytes; SIZE_MAX: whatever it has.
//
// TARN_E_IO           cannot be opened, is not a regular file, or a read fails.
// TARN_E_NOMEM        no memory for it.
// TARN_E_UNSUPPORTED  more than |most| bytes; none was read or allocated.
// The text names the path in each case. A file that grows while it is read is
// read up to the size that it had at the start; one that shrinks gives what
// was there.
TARN_MUST_CHECK tarn_status tarn__os_read_file(const char *path, size_t most,
                                               unsigned char **out_bytes,
                                               size_t *out_size);

// The same for a file of any size, or for the standard input, to its end, if
// |path| is "-".
TARN_MUST_CHECK tarn_status tarn__os_read_input(const char *path,
                                                unsigned char **out_bytes,
                                                size_t *out_size);

// Puts the whole regular file at |path| into memory, to be read only, without
// reading it yet; an empty one is NULL and 0. Writes to the file change the
// bytes; if it is truncated, access to the missing bytes raises SIGBUS.
//
// TARN_E_IO  cannot be opened, is not a regular file, or cannot be mapped; the
//            text names the path.
TARN_MUST_CHECK tarn_status tarn__os_view_file(const char *path,
                                               const unsigned char **out_bytes,
                                               size_t *out_size);

// Takes it out again. NULL is allowed.
void tarn__os_unview_file(const unsigned char *bytes, size_t size);

// Appends |size| bytes to the file at |path|, which is made if need be, in one
// write. False if the system refuses.
TARN_MUST_CHECK bool tarn__os_append_file(const char *path, const void *bytes,
                                          size_t size);

// A file that is written beside another and replaces it at once when it is
// whole. Other than regular files, such as pipes, are written directly. A link
// stays, and its target is replaced.
typedef struct tarn__os_new_file {
  int fd;
  char *path;       // where it is to stand
  char *temporary;  // where it stands until then; NULL: there already
} tarn__os_new_file;

// TARN_E_IO       it cannot be made; the text names the path and says why.
// TARN_E_NOMEM.   In both cases there is nothing to end.
TARN_MUST_CHECK tarn_status tarn__os_file_begin(const char *path,
                                                tarn__os_new_file *out_file);

// The same, but "-" is the standard output, which stays open.
TARN_MUST_CHECK tarn_status tarn__os_output_begin(const char *path,
                                                  tarn__os_new_file *out_file);

// TARN_E_IO  not all could be written; go on with tarn__os_file_cancel.
TARN_MUST_CHECK tarn_status tarn__os_file_write(const tarn__os_new_file *file,
                                                const void *bytes, size_t size);

// Puts it in its place; on failure nothing is left of it.
TARN_MUST_CHECK tarn_status tarn__os_file_commit(tarn__os_new_file *file);
void tarn__os_file_cancel(tarn__os_new_file *file);

// --- files by offset -------------------------------------------------------
// Each is false, or -1, with errno, where the system refuses.

typedef enum tarn__os_opening {
  TARN__OS_TO_READ,
  TARN__OS_TO_READ_DIRECTLY,  // past the page cache: offsets, sizes and
                              // addresses are multiples of 4096
  TARN__OS_TO_WRITE,          // and to read
  TARN__OS_TO_WRITE_DIRECTLY,
} tarn__os_opening;

// Opens the file at |path|, which is there; not of use to a child that execs.
TARN_MUST_CHECK int tarn__os_open(const char *path, tarn__os_opening how);

// Claims the file for this descriptor, and those that a fork makes of it, until
// all are closed. False with EWOULDBLOCK: another one has it.
TARN_MUST_CHECK bool tarn__os_claim(int fd);

// False with EINVAL: it is no regular file.
TARN_MUST_CHECK bool tarn__os_file_size(int fd, uint64_t *out_size);

// Reads |size| bytes at |offset|, or less if the file ends.
TARN_MUST_CHECK bool tarn__os_read_at(int fd, uint64_t offset, void *out,
                                      size_t size, size_t *out_got);
TARN_MUST_CHECK bool tarn__os_write_at(int fd, uint64_t offset,
                                       const void *bytes, size_t size);

// Makes the file |size| bytes long, with room on the disk for them where the
// file system can say so.
TARN_MUST_CHECK bool tarn__os_resize(int fd, uint64_t size);

// Whether most of the |size| bytes of the file at |offset|, a multiple of 4096,
// are in the page cache. They are not brought there. Linux 6.5 is asked; of an
// older one the file must be one that this user may write, else true.
bool tarn__os_is_cached(int fd, uint64_t offset, size_t size);

// Whether the file is on FUSE. Where that is told to read past the page cache,
// and gives fewer bytes than were asked for, io_uring goes on by itself, but
// the kernel (seen with 6.18) reads the first bytes again and puts them behind
// themselves.
bool tarn__os_is_on_fuse(int fd);

// Returns when the file's bytes, or the names in the folder of |path|, are on
// the disk.
TARN_MUST_CHECK bool tarn__os_sync(int fd);
TARN_MUST_CHECK bool tarn__os_sync_folder(const char *path);

// --- time ------------------------------------------------------------------

static inline struct timespec tarn__os_timespec(uint64_t ns) {
  return (struct timespec){(time_t)(ns / 1000000000u),
                           (long)(ns % 1000000000u)};
}

#endif  // TARN_BASE_OS_H_
