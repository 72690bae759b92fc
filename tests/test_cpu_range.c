// Addresses and memory apart, on the cpu device.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/os.h"
#include "support/faults.h"
#include "test_cpu_host.h"

#define MIB ((size_t)1 << 20)
#define GRANULE (2 * MIB)

static const tarn_device_ext *ext;

static unsigned char *bytes_at(uint64_t addr) {
  return (unsigned char *)(uintptr_t)addr;
}

// The kernel's copy faults as the program would, but without a signal.
static bool can_read(uint64_t addr) {
  int ends[2];
  ck_assert_int_eq(pipe(ends), 0);
  bool can = write(ends[1], bytes_at(addr), 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return can;
}

static uint64_t reserve(size_t size) {
  uint64_t addr = 0;
  assert_ext_ok(ext->range_reserve(0, size, 0, &addr));
  return addr;
}

static uint64_t create(size_t size, uint32_t flags) {
  uint64_t memory = 0;
  assert_ext_ok(ext->memory_create(0, size, flags, &memory));
  ck_assert_uint_ne(memory, 0);
  return memory;
}

static void map(uint64_t addr, size_t size, uint64_t memory) {
  assert_ext_ok(ext->range_map(0, addr, size, memory));
  assert_ext_ok(
      ext->range_set_access(0, addr, size, 0, TARN_EXT_ACCESS_READ_WRITE));
}

static void unmap(uint64_t addr, size_t size) {
  assert_ext_ok(ext->range_unmap(0, addr, size));
}

static void release(uint64_t addr, size_t size) {
  assert_ext_ok(ext->range_release(0, addr, size));
}

static void destroy(uint64_t memory) {
  assert_ext_ok(ext->memory_destroy(0, memory));
}

// Mappings of the kernel that begin in so many bytes.
static size_t kernel_mappings_in(uint64_t addr, size_t size) {
  FILE *file = fopen("/proc/self/maps", "r");
  char line[512];
  size_t count = 0;
  ck_assert_ptr_nonnull(file);
  while (fgets(line, sizeof line, file) != NULL) {
    count += strtoull(line, NULL, 16) - addr < size;
  }
  fclose(file);
  return count;
}

// All that this process has. A sanitizer maps a few more now and then.
enum { NOISE = 64 };

static size_t kernel_mappings(void) {
  return kernel_mappings_in(0, SIZE_MAX);
}

// --- ranges ----------------------------------------------------------------

START_TEST(ranges_are_reserved) {
  size_t granule = 0;
  assert_ext_ok(ext->range_granularity(0, &granule));
  ck_assert_uint_eq(granule, GRANULE);
  for (size_t align = 1; align <= (size_t)1 << 32; align *= 4) {
    uint64_t addr = 0;
    assert_ext_ok(ext->range_reserve(0, 3 * GRANULE, align, &addr));
    ck_assert_uint_eq(addr % GRANULE, 0);
    ck_assert_uint_eq(addr % align, 0);
    ck_assert(!can_read(addr) && !can_read(addr + 3 * GRANULE - 1));
    release(addr, 3 * GRANULE);
    ck_assert(!tarn__os_is_mapped(bytes_at(addr)));
  }
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
END_TEST

START_TEST(ranges_that_cannot_be) {
  uint64_t addr = 1;
  size_t granule = 1;
  assert_ext_wrong(ext->range_granularity(1, &granule), "no device 1");
  ck_assert_uint_eq(granule, 0);
  assert_ext_wrong(ext->range_reserve(1, GRANULE, 0, &addr), "no device 1");
  ck_assert_uint_eq(addr, 0);
  assert_ext_wrong(ext->range_reserve(0, 0, 0, &addr), "not multiples");
  assert_ext_wrong(ext->range_reserve(0, GRANULE + 1, 0, &addr), "multiples");
  assert_ext_wrong(ext->range_reserve(0, GRANULE, 3, &addr), "alignment of 3");
  addr = 1;
  assert_ext(ext->range_reserve(0, (size_t)1 << 60, 0, &addr), TARN_FULL);
  assert_ext(ext->range_reserve(0, GRANULE, (size_t)1 << 63, &addr), TARN_FULL);
  ck_assert_uint_eq(addr, 0);
  addr = reserve(4 * GRANULE);
  assert_ext_wrong(ext->range_release(1, addr, 4 * GRANULE), "no device 1");
  assert_ext_wrong(ext->range_release(0, addr, 3 * GRANULE), "only part");
  assert_ext_wrong(ext->range_release(0, addr, 5 * GRANULE), "not in one");
  assert_ext_wrong(ext->range_release(0, addr + GRANULE, GRANULE), "only part");
  assert_ext_wrong(ext->range_release(0, addr + 4096, GRANULE), "multiples");
  release(addr, 4 * GRANULE);
  assert_ext_wrong(ext->range_release(0, addr, 4 * GRANULE), "not in one");
}
END_TEST

// --- memory ----------------------------------------------------------------

START_TEST(memory_that_cannot_be) {
  uint64_t memory = 1;
  assert_ext_wrong(ext->memory_create(1, GRANULE, 0, &memory), "no device 1");
  ck_assert_uint_eq(memory, 0);
  assert_ext_wrong(ext->memory_create(0, 0, 0, &memory), "not a multiple");
  assert_ext_wrong(ext->memory_create(0, 4096, 0, &memory), "not a multiple");
  assert_ext_wrong(ext->memory_create(0, GRANULE, 6, &memory), "flags 0x6");
  assert_ext(ext->memory_create(0, (size_t)1 << 63, TARN_EXT_MEMORY_SHAREABLE,
                                &memory),
             TARN_FULL);
  ck_assert_uint_eq(memory, 0);
  assert_ext_wrong(ext->memory_destroy(0, 0), "is no memory");
  assert_ext_wrong(ext->memory_destroy(0, 1), "is no memory");
  assert_ext_wrong(ext->memory_destroy(0, UINT64_MAX), "is no memory");
  memory = create(GRANULE, 0);
  assert_ext_wrong(ext->memory_destroy(1, memory), "no device 1");
  destroy(memory);
  assert_ext_wrong(ext->memory_destroy(0, memory), "is no memory");
  uint64_t next = create(GRANULE, 0);
  ck_assert_uint_ne(next, memory);
  destroy(next);
}
END_TEST

START_TEST(handles_are_not_used_again) {
  uint64_t first[100];
  for (size_t i = 0; i < 100; i++)
    first[i] = create(GRANULE, 0);
  for (size_t i = 0; i < 100; i += 2)
    destroy(first[i]);
  for (size_t i = 0; i < 100; i += 2) {
    uint64_t again = create(GRANULE, 0);
    assert_ext_wrong(ext->memory_destroy(0, first[i]), "is no memory");
    destroy(again);
    destroy(first[i + 1]);
  }
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
END_TEST

// --- mappings --------------------------------------------------------------

static const uint32_t BOTH[] = {0, TARN_EXT_MEMORY_SHAREABLE};

START_TEST(mapped_memory_keeps_its_bytes) {
  uint64_t addr = reserve(8 * GRANULE);
  uint64_t memory = create(2 * GRANULE, BOTH[_i]);
  map(addr, 2 * GRANULE, memory);
  ck_assert_int_eq(bytes_at(addr)[0], 0);
  memset(bytes_at(addr), 7, 2 * GRANULE);
  unmap(addr, 2 * GRANULE);
  ck_assert(!can_read(addr));
  map(addr + 5 * GRANULE, 2 * GRANULE, memory);
  ck_assert_int_eq(bytes_at(addr)[5 * GRANULE], 7);
  ck_assert_int_eq(bytes_at(addr)[7 * GRANULE - 1], 7);
  unmap(addr + 5 * GRANULE, 2 * GRANULE);
  uint64_t other = create(GRANULE, 0);
  map(addr + 5 * GRANULE, GRANULE, other);
  ck_assert_int_eq(bytes_at(addr)[5 * GRANULE], 0);
  unmap(addr + 5 * GRANULE, GRANULE);
  destroy(other);
  destroy(memory);
  release(addr, 8 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
END_TEST

START_TEST(memory_lives_until_its_last_mapping) {
  uint64_t addr = reserve(2 * GRANULE);
  uint64_t memory = create(GRANULE, BOTH[_i]);
  map(addr, GRANULE, memory);
  bytes_at(addr)[77] = 7;
  destroy(memory);
  ck_assert_int_eq(bytes_at(addr)[77], 7);
  assert_ext_wrong(ext->range_map(0, addr + GRANULE, GRANULE, memory),
                   "is no memory");
  unmap(addr, GRANULE);
  release(addr, 2 * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
END_TEST

START_TEST(shareable_memory_at_two_addresses) {
  uint64_t addr = reserve(2 * GRANULE);
  uint64_t memory = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  map(addr, GRANULE, memory);
  map(addr + GRANULE, GRANULE, memory);
  bytes_at(addr)[5] = 7;
  ck_assert_int_eq(bytes_at(addr)[GRANULE + 5], 7);
  unmap(addr, GRANULE);
  ck_assert_int_eq(bytes_at(addr)[GRANULE + 5], 7);
  unmap(addr + GRANULE, GRANULE);
  destroy(memory);
  release(addr, 2 * GRANULE);
}
END_TEST

START_TEST(mappings_that_cannot_be) {
  uint64_t addr = reserve(4 * GRANULE);
  uint64_t memory = create(2 * GRANULE, 0);
  uint64_t other = create(GRANULE, 0);
  assert_ext_wrong(ext->range_map(1, addr, 2 * GRANULE, memory), "no device 1");
  assert_ext_wrong(ext->range_map(0, addr, 2 * GRANULE, 5), "is no memory");
  assert_ext_wrong(ext->range_map(0, addr, GRANULE, memory), "that has");
  assert_ext_wrong(ext->range_map(0, addr + 4096, 2 * GRANULE, memory),
                   "not multiples");
  assert_ext_wrong(ext->range_map(0, addr + 3 * GRANULE, 2 * GRANULE, memory),
                   "not in one range");
  assert_ext_wrong(ext->range_map(0, addr - GRANULE, 2 * GRANULE, memory),
                   "not in one range");
  map(addr + GRANULE, 2 * GRANULE, memory);
  assert_ext_wrong(ext->range_map(0, addr, 2 * GRANULE, memory),
                   "not shareable");
  assert_ext_wrong(ext->range_map(0, addr + 2 * GRANULE, GRANULE, other),
                   "already");
  assert_ext_wrong(ext->range_release(0, addr, 4 * GRANULE), "are mapped");
  assert_ext_wrong(ext->range_unmap(0, addr, GRANULE), "nothing is mapped");
  assert_ext_wrong(ext->range_unmap(0, addr, 4 * GRANULE), "nothing is mapped");
  assert_ext_wrong(ext->range_unmap(0, addr + GRANULE, GRANULE), "only part");
  assert_ext_wrong(ext->range_unmap(0, addr + 2 * GRANULE, GRANULE),
                   "only part");
  assert_ext_wrong(ext->range_unmap(0, addr, 0), "not multiples");
  assert_ext_wrong(ext->range_unmap(1, addr, GRANULE), "no device 1");
  unmap(addr + GRANULE, 2 * GRANULE);
  assert_ext_wrong(ext->range_unmap(0, addr + GRANULE, 2 * GRANULE), "nothing");
  destroy(memory);
  destroy(other);
  release(addr, 4 * GRANULE);
}
END_TEST

START_TEST(several_mappings_go_at_once) {
  uint64_t addr = reserve(6 * GRANULE);
  uint64_t memory[3];
  for (size_t i = 0; i < 3; i++) {
    memory[i] = create(2 * GRANULE, BOTH[i % 2]);
    map(addr + i * 2 * GRANULE, 2 * GRANULE, memory[i]);
    bytes_at(addr)[i * 2 * GRANULE] = (unsigned char)(i + 1);
  }
  unmap(addr, 6 * GRANULE);
  map(addr, 2 * GRANULE, memory[2]);
  ck_assert_int_eq(bytes_at(addr)[0], 3);
  unmap(addr, 2 * GRANULE);
  for (size_t i = 0; i < 3; i++)
    destroy(memory[i]);
  release(addr, 6 * GRANULE);
}
END_TEST

// --- access ----------------------------------------------------------------

// Does the write end a child by a signal?
static bool write_faults(uint64_t addr) {
  int result = 0;
  pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    *(volatile unsigned char *)bytes_at(addr) = 1;
    _exit(0);
  }
  ck_assert_int_eq(waitpid(child, &result, 0), child);
  return WIFSIGNALED(result) && WTERMSIG(result) == SIGSEGV;
}

START_TEST(nobody_touches_before_access) {
  uint64_t addr = reserve(2 * GRANULE);
  uint64_t memory = create(GRANULE, BOTH[_i]);
  ck_assert(write_faults(addr));
  assert_ext_ok(ext->range_map(0, addr, GRANULE, memory));
  ck_assert(write_faults(addr));
  static const tarn_ext_access rights[] = {
      TARN_EXT_ACCESS_READ_WRITE, TARN_EXT_ACCESS_READ, TARN_EXT_ACCESS_NONE,
      TARN_EXT_ACCESS_READ};
  for (size_t i = 0; i < sizeof rights / sizeof rights[0]; i++) {
    assert_ext_ok(ext->range_set_access(0, addr, GRANULE, 0, rights[i]));
    ck_assert(write_faults(addr) == (rights[i] != TARN_EXT_ACCESS_READ_WRITE));
    ck_assert(can_read(addr) == (rights[i] != TARN_EXT_ACCESS_NONE));
    if (i == 0) bytes_at(addr)[9] = 9;
  }
  ck_assert_int_eq(bytes_at(addr)[9], 9);
  unmap(addr, GRANULE);
  ck_assert(write_faults(addr));
  assert_ext_ok(ext->range_map(0, addr, GRANULE, memory));
  ck_assert(write_faults(addr));
  unmap(addr, GRANULE);
  destroy(memory);
  release(addr, 2 * GRANULE);
}
END_TEST

START_TEST(access_that_cannot_be) {
  uint64_t addr = reserve(4 * GRANULE);
  uint64_t memory = create(2 * GRANULE, 0);
  assert_ext_ok(ext->range_map(0, addr, 2 * GRANULE, memory));
  const tarn_ext_access read = TARN_EXT_ACCESS_READ;
  assert_ext_wrong(ext->range_set_access(1, addr, 2 * GRANULE, 0, read),
                   "no device 1");
  assert_ext_wrong(ext->range_set_access(0, addr, 2 * GRANULE, 1, read),
                   "no device 1");
  assert_ext_wrong(ext->range_set_access(0, addr, 2 * GRANULE, 0, 2),
                   "2 is no access");
  assert_ext_wrong(ext->range_set_access(0, addr, GRANULE, 0, read),
                   "only part");
  assert_ext_wrong(ext->range_set_access(0, addr, 4 * GRANULE, 0, read),
                   "nothing is mapped");
  ck_assert(!can_read(addr));
  unmap(addr, 2 * GRANULE);
  destroy(memory);
  release(addr, 4 * GRANULE);
}
END_TEST

// --- addresses -------------------------------------------------------------

START_TEST(addresses_in_ranges_are_known) {
  uint64_t addr = reserve(4 * GRANULE);
  uint64_t memory = create(2 * GRANULE, 0);
  tarn_ext_pointer p = {.size = 1};
  assert_ext_wrong(ext->pointer_query(0, addr, &p), "nothing is mapped");
  ck_assert_uint_eq(p.size, 0);
  map(addr + GRANULE, 2 * GRANULE, memory);
  assert_ext_ok(ext->pointer_query(0, addr + 3 * GRANULE - 1, &p));
  ck_assert_int_eq(p.kind, TARN_EXT_KIND_DEVICE);
  ck_assert_uint_eq(p.base, addr + GRANULE);
  ck_assert_uint_eq(p.size, 2 * GRANULE);
  assert_ext_wrong(ext->pointer_query(0, addr + 3 * GRANULE, &p), "nothing");
  unmap(addr + GRANULE, 2 * GRANULE);
  destroy(memory);
  release(addr, 4 * GRANULE);
  assert_ext_wrong(ext->pointer_query(0, addr, &p), "no memory");
}
END_TEST

// --- other processes -------------------------------------------------------

START_TEST(what_cannot_be_shared) {
  uint64_t plain = create(GRANULE, 0);
  uint64_t shared = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  uint64_t memory = 1;
  int fd = 7;
  assert_ext_wrong(ext->memory_export(0, plain, &fd), "not shareable");
  ck_assert_int_eq(fd, 0);
  assert_ext_wrong(ext->memory_export(0, 0, &fd), "is no memory");
  assert_ext_wrong(ext->memory_export(1, shared, &fd), "no device 1");
  assert_ext_ok(ext->memory_export(0, shared, &fd));
  ck_assert_int_ne(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  assert_ext_wrong(ext->memory_import(0, fd, 2 * GRANULE, &memory),
                   "is not memory of this device");
  ck_assert_uint_eq(memory, 0);
  assert_ext_wrong(ext->memory_import(0, fd, 5, &memory), "not a multiple");
  assert_ext_wrong(ext->memory_import(2, fd, GRANULE, &memory), "no device 2");
  assert_ext_wrong(ext->memory_import(0, -1, GRANULE, &memory), "not memory");
  close(fd);
  destroy(plain);
  destroy(shared);
}
END_TEST

// A file of the right size and name, but one that can be cut off.
START_TEST(strangers_are_refused) {
  uint64_t memory = 1;
  int bare = memfd_create("tarn-cpu", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ck_assert_int_eq(ftruncate(bare, (off_t)GRANULE), 0);
  assert_ext_wrong(ext->memory_import(0, bare, GRANULE, &memory), "not memory");
  int other = tarn__os_memory_file("tarn-other", GRANULE);
  assert_ext_wrong(ext->memory_import(0, other, GRANULE, &memory),
                   "not memory");
  ck_assert_uint_eq(memory, 0);
  close(bare);
  close(other);
}
END_TEST

START_TEST(imported_memory_is_the_same) {
  uint64_t addr = reserve(2 * GRANULE);
  uint64_t memory = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  uint64_t again = 0;
  int fd = -1;
  assert_ext_ok(ext->memory_export(0, memory, &fd));
  assert_ext_ok(ext->memory_import(0, fd, GRANULE, &again));
  close(fd);
  ck_assert_uint_ne(again, memory);
  map(addr, GRANULE, memory);
  bytes_at(addr)[3] = 7;
  destroy(memory);
  unmap(addr, GRANULE);
  map(addr + GRANULE, GRANULE, again);
  ck_assert_int_eq(bytes_at(addr)[GRANULE + 3], 7);
  assert_ext_ok(ext->memory_export(0, again, &fd));
  close(fd);
  unmap(addr + GRANULE, GRANULE);
  destroy(again);
  release(addr, 2 * GRANULE);
}
END_TEST

static void send_fd(int to, int fd) {
  char room[CMSG_SPACE(sizeof fd)] = {0};
  char byte = 1;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = room,
                           .msg_controllen = sizeof room};
  struct cmsghdr *control = CMSG_FIRSTHDR(&message);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(control), &fd, sizeof fd);
  ck_assert_int_eq(sendmsg(to, &message, 0), 1);
}

static int receive_fd(int from) {
  char room[CMSG_SPACE(sizeof(int))] = {0};
  char byte = 0;
  int fd = -1;
  struct iovec part = {&byte, 1};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = room,
                           .msg_controllen = sizeof room};
  if (recvmsg(from, &message, 0) != 1) return -1;
  struct cmsghdr *control = CMSG_FIRSTHDR(&message);
  if (control != NULL) memcpy(&fd, CMSG_DATA(control), sizeof fd);
  return fd;
}

// The child's side: 0, or the number of what is not so.
static int use_imported(int socket) {
  uint64_t memory = 0;
  uint64_t addr = 0;
  int fd = receive_fd(socket);
  if (ext->memory_import(0, fd, GRANULE, &memory) != TARN_OK) return 1;
  close(fd);
  if (ext->range_reserve(0, GRANULE, 0, &addr) != TARN_OK) return 2;
  if (ext->range_map(0, addr, GRANULE, memory) != TARN_OK) return 3;
  if (ext->range_set_access(0, addr, GRANULE, 0, TARN_EXT_ACCESS_READ_WRITE) !=
      TARN_OK) {
    return 4;
  }
  if (bytes_at(addr)[11] != 42) return 5;
  bytes_at(addr)[12] = 43;
  return 0;
}

// The child is born before the memory, so that it can have it in no other way.
START_TEST(another_process_gets_at_it) {
  int pair[2];
  int result = 0;
  int fd = -1;
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(use_imported(pair[1]));
  }
  uint64_t addr = reserve(GRANULE);
  uint64_t memory = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  map(addr, GRANULE, memory);
  bytes_at(addr)[11] = 42;
  assert_ext_ok(ext->memory_export(0, memory, &fd));
  send_fd(pair[0], fd);
  ck_assert_int_eq(waitpid(child, &result, 0), child);
  ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 0, "the child: %#x",
                (unsigned)result);
  ck_assert_int_eq(bytes_at(addr)[12], 43);
  close(fd);
  close(pair[0]);
  close(pair[1]);
  unmap(addr, GRANULE);
  destroy(memory);
  release(addr, GRANULE);
}
END_TEST

// --- forks -----------------------------------------------------------------

typedef struct inherited {
  uint64_t addr;    // four granules
  uint64_t mapped;  // private, at the first
  uint64_t parked;  // private, has been at the second
  uint64_t shared;  // at the third
} inherited;

// A child has all of it: private bytes of its own, shared ones shared.
static int live_with(const inherited *in) {
  unsigned char *bytes = bytes_at(in->addr);
  if (bytes[0] != 1 || bytes[2 * GRANULE] != 3) return 1;
  bytes[0] = bytes[2 * GRANULE] = 9;
  if (ext->range_map(0, in->addr + 3 * GRANULE, GRANULE, in->parked) !=
      TARN_OK) {
    return 2;
  }
  if (ext->range_set_access(0, in->addr + 3 * GRANULE, GRANULE, 0,
                            TARN_EXT_ACCESS_READ) != TARN_OK) {
    return 3;
  }
  if (bytes[3 * GRANULE] != 2) return 4;
  if (ext->range_unmap(0, in->addr, GRANULE) != TARN_OK) return 5;
  if (ext->range_unmap(0, in->addr + 2 * GRANULE, 2 * GRANULE) != TARN_OK) {
    return 6;
  }
  if (ext->memory_destroy(0, in->mapped) != TARN_OK) return 7;
  if (ext->memory_destroy(0, in->parked) != TARN_OK) return 8;
  if (ext->memory_destroy(0, in->shared) != TARN_OK) return 9;
  return ext->range_release(0, in->addr, 4 * GRANULE) == TARN_OK ? 0 : 10;
}

static inherited make_inheritance(void) {
  inherited in = {.addr = reserve(4 * GRANULE)};
  in.mapped = create(GRANULE, 0);
  in.parked = create(GRANULE, 0);
  in.shared = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  map(in.addr, GRANULE, in.mapped);
  map(in.addr + GRANULE, GRANULE, in.parked);
  map(in.addr + 2 * GRANULE, GRANULE, in.shared);
  for (size_t i = 0; i < 3; i++)
    bytes_at(in.addr)[i * GRANULE] = (unsigned char)(i + 1);
  unmap(in.addr + GRANULE, GRANULE);
  return in;
}

START_TEST(a_child_has_all_that_its_parent_had) {
  inherited in = make_inheritance();
  int result = 0;
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(live_with(&in));
  }
  ck_assert_int_eq(waitpid(child, &result, 0), child);
  ck_assert_msg(WIFEXITED(result) && WEXITSTATUS(result) == 0, "the child: %#x",
                (unsigned)result);
  ck_assert_int_eq(bytes_at(in.addr)[0], 1);
  ck_assert_int_eq(bytes_at(in.addr)[2 * GRANULE], 9);
  unmap(in.addr, GRANULE);
  unmap(in.addr + 2 * GRANULE, GRANULE);
  destroy(in.mapped);
  destroy(in.parked);
  destroy(in.shared);
  release(in.addr, 4 * GRANULE);
}
END_TEST

// --- how many --------------------------------------------------------------

// More than the kernel has mappings for, with handles kept and without.
START_TEST(neighbours_are_few_mappings) {
  enum { COUNT = 70000 };
  static uint64_t memory[COUNT];
  uint64_t addr = reserve(COUNT * GRANULE);
  for (size_t i = 0; i < COUNT; i++) {
    uint64_t at = addr + i * GRANULE;
    require(ext->memory_create(0, GRANULE, 0, &memory[i]) == TARN_OK);
    require(ext->range_map(0, at, GRANULE, memory[i]) == TARN_OK);
    require(ext->range_set_access(0, at, GRANULE, 0,
                                  TARN_EXT_ACCESS_READ_WRITE) == TARN_OK);
    if (i % 100 == 0) bytes_at(at)[0] = 1;
    if (i % 2 != 0) continue;
    require(ext->memory_destroy(0, memory[i]) == TARN_OK);
  }
  ck_assert_uint_le(kernel_mappings_in(addr, COUNT * GRANULE), 3);
  for (size_t i = 0; i < COUNT; i += 100)
    require(bytes_at(addr + i * GRANULE)[0] == 1);
  for (size_t i = COUNT; i-- > 0;) {
    uint64_t at = addr + i * GRANULE;
    if (i % 2 != 0) require(ext->memory_destroy(0, memory[i]) == TARN_OK);
    require(ext->range_unmap(0, at, GRANULE) == TARN_OK);
  }
  ck_assert_uint_le(kernel_mappings_in(addr, COUNT * GRANULE), 1);
  release(addr, COUNT * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
END_TEST

// Where the kernel has no mapping left, that is said, and nothing is lost.
START_TEST(the_kernels_limit_is_full) {
  enum { MOST = 70000 };
  uint64_t addr = reserve(MOST * GRANULE);
  uint64_t memory = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  tarn_status status = TARN_OK;
  size_t count = 0;
  for (; status == TARN_OK && count < MOST; count++) {
    uint64_t at = addr + count * GRANULE;
    status = ext->range_map(0, at, GRANULE, memory);
  }
  if (status == TARN_OK) {
    note_skipped("the kernel's limit", "it has more than 70000 mappings");
  } else {
    count--;
    assert_ext(status, TARN_FULL);
    ck_assert_ptr_nonnull(strstr(ext_text(NULL), "a mapping of 2097152 bytes"));
  }
  unmap(addr, count * GRANULE);
  map(addr, GRANULE, memory);
  unmap(addr, GRANULE);
  destroy(memory);
  release(addr, MOST * GRANULE);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
END_TEST

// --- the end, faults -------------------------------------------------------

START_TEST(the_end_frees_what_was_forgotten) {
  C_DeviceInterface cpu = cpu_table();
  size_t before = kernel_mappings();
  static char bytes[8];
  for (int round = 0; round < 100; round++) {
    inherited in = make_inheritance();
    destroy(in.mapped);
    assert_ext_ok(ext->host_register(0, bytes, sizeof bytes));
    assert_done(round % 2 ? cpu.finalize() : cpu.deinit_device(CPU));
    ck_assert_uint_eq(tarn_host_memory(), 0);
    ck_assert(!tarn__os_is_mapped(bytes_at(in.addr)));
    assert_ext_wrong(ext->range_release(0, in.addr, 4 * GRANULE), "not in");
    assert_ext_wrong(ext->memory_destroy(0, in.parked), "is no memory");
  }
  ck_assert_uint_le(kernel_mappings(), before + NOISE);
}
END_TEST

static bool has_failed(tarn_status status) {
  require(status == TARN_OK || status == TARN_E_NOMEM);
  return status != TARN_OK;
}

static void use_a_range(void *context) {
  uint64_t addr = 0;
  uint64_t memory = 0;
  uint32_t flags = *(const uint32_t *)context;
  if (has_failed(ext->range_reserve(0, 4 * GRANULE, 0, &addr))) {
    require(addr == 0);
    return;
  }
  if (!has_failed(ext->memory_create(0, GRANULE, flags, &memory))) {
    if (!has_failed(ext->range_map(0, addr, GRANULE, memory))) {
      require(ext->range_unmap(0, addr, GRANULE) == TARN_OK);
    }
    require(ext->memory_destroy(0, memory) == TARN_OK);
  }
  require(ext->range_release(0, addr, 4 * GRANULE) == TARN_OK);
}

START_TEST(ranges_survive_every_fault) {
  uint32_t flags = BOTH[_i];
  size_t before = kernel_mappings();
  for (int i = 0; i < 20; i++)
    ck_assert_uint_ge(faults_sweep(use_a_range, &flags), 12);
  ck_assert_uint_le(kernel_mappings(), before + NOISE);
}
END_TEST

// --- threads ---------------------------------------------------------------

static void *map_and_unmap(void *context) {
  uint64_t addr = reserve(4 * GRANULE);
  unsigned char mark = *(const unsigned char *)context;
  for (int i = 0; i < 200; i++) {
    uint64_t memory = create(GRANULE, BOTH[i % 2]);
    map(addr + (size_t)(i % 4) * GRANULE, GRANULE, memory);
    bytes_at(addr)[(size_t)(i % 4) * GRANULE] = mark;
    unmap(addr + (size_t)(i % 4) * GRANULE, GRANULE);
    map(addr, GRANULE, memory);
    require(bytes_at(addr)[0] == mark);
    destroy(memory);
    unmap(addr, GRANULE);
  }
  release(addr, 4 * GRANULE);
  return NULL;
}

START_TEST(threads_do_not_meet) {
  static unsigned char marks[] = {1, 2, 3};
  pthread_t threads[3];
  for (size_t i = 0; i < 3; i++) {
    ck_assert_int_eq(
        pthread_create(&threads[i], NULL, map_and_unmap, &marks[i]), 0);
  }
  for (size_t i = 0; i < 3; i++)
    ck_assert_int_eq(pthread_join(threads[i], NULL), 0);
  ck_assert_uint_eq(tarn_host_memory(), 0);
}
END_TEST

// --- random calls against a model ------------------------------------------

enum { PLACES = 48, MEMORIES = 24, PIECE_MAX = 4 };

// What each piece of memory is, and where: one byte of each granule is the
// memory's number and the granule's.
typedef struct piece {
  uint64_t handle;  // 0: no handle
  size_t granules;
  size_t mappings;
  bool shareable;
  unsigned char stamp;  // 0: zeros
} piece;

static struct {
  uint64_t addr;
  piece pieces[MEMORIES];
  int at[PLACES];       // which piece, -1: none
  size_t part[PLACES];  // which granule of it
} model;

static uint32_t seed = 7;

static size_t draw(size_t below) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % below;
}

static uint64_t place(size_t i) {
  return model.addr + i * GRANULE;
}

static void check_place(size_t i) {
  if (model.at[i] < 0) return;
  const piece *p = &model.pieces[model.at[i]];
  const unsigned char *bytes = bytes_at(place(i));
  unsigned char expected =
      p->stamp == 0 ? 0 : (unsigned char)(p->stamp + model.part[i]);
  require(bytes[0] == expected && bytes[GRANULE - 1] == expected);
}

static void stamp_piece(size_t first) {
  piece *p = &model.pieces[model.at[first]];
  p->stamp = (unsigned char)(1 + draw(200));
  for (size_t k = 0; k < p->granules; k++) {
    unsigned char *bytes = bytes_at(place(first + k));
    bytes[0] = bytes[GRANULE - 1] = (unsigned char)(p->stamp + k);
  }
}

static void try_create(void) {
  size_t i = draw(MEMORIES);
  piece *p = &model.pieces[i];
  if (p->handle != 0 || p->mappings != 0) return;
  *p = (piece){.granules = 1 + draw(PIECE_MAX), .shareable = draw(2) != 0};
  require(ext->memory_create(0, p->granules * GRANULE, BOTH[p->shareable],
                             &p->handle) == TARN_OK);
}

static void try_destroy(void) {
  piece *p = &model.pieces[draw(MEMORIES)];
  tarn_status status = ext->memory_destroy(0, p->handle);
  require(status == (p->handle != 0 ? TARN_OK : TARN_E_INVALID));
  p->handle = 0;
}

static bool is_free(size_t first, size_t count) {
  for (size_t i = first; i < first + count; i++) {
    if (i >= PLACES || model.at[i] >= 0) return false;
  }
  return true;
}

static void try_map(void) {
  int i = (int)draw(MEMORIES);
  piece *p = &model.pieces[i];
  size_t first = draw(PLACES);
  bool good = p->handle != 0 && is_free(first, p->granules) &&
              (p->shareable || p->mappings == 0);
  size_t size = (p->granules != 0 ? p->granules : 1) * GRANULE;
  require(ext->range_map(0, place(first), size, p->handle) ==
          (good ? TARN_OK : TARN_E_INVALID));
  if (!good) return;
  require(ext->range_set_access(0, place(first), size, 0,
                                TARN_EXT_ACCESS_READ_WRITE) == TARN_OK);
  p->mappings++;
  for (size_t k = 0; k < p->granules; k++) {
    model.at[first + k] = i;
    model.part[first + k] = k;
    check_place(first + k);
  }
  if (draw(2)) stamp_piece(first);
}

static bool are_whole(size_t first, size_t count) {
  for (size_t i = first; i < first + count;) {
    if (model.at[i] < 0 || model.part[i] != 0) return false;
    i += model.pieces[model.at[i]].granules;
    if (i > first + count) return false;
  }
  return true;
}

static void try_unmap(void) {
  size_t first = draw(PLACES);
  size_t count = 1 + draw(PIECE_MAX + 2);
  if (count > PLACES - first) count = PLACES - first;
  bool good = are_whole(first, count);
  require(ext->range_unmap(0, place(first), count * GRANULE) ==
          (good ? TARN_OK : TARN_E_INVALID));
  for (size_t i = first; good && i < first + count; i++) {
    if (model.part[i] == 0) model.pieces[model.at[i]].mappings--;
    model.at[i] = -1;
  }
}

static void end_model(void) {
  for (size_t i = 0; i < PLACES;) {
    if (model.at[i] < 0) {
      i++;
      continue;
    }
    size_t granules = model.pieces[model.at[i]].granules;
    unmap(place(i), granules * GRANULE);
    i += granules;
  }
  for (size_t i = 0; i < MEMORIES; i++) {
    if (model.pieces[i].handle != 0) destroy(model.pieces[i].handle);
  }
  release(model.addr, PLACES * GRANULE);
}

START_TEST(random_calls_are_as_the_model) {
  static void (*const calls[])(void) = {try_create, try_map,    try_map,
                                        try_map,    try_unmap,  try_unmap,
                                        try_unmap,  try_destroy};
  size_t before = kernel_mappings();
  model.addr = reserve(PLACES * GRANULE);
  for (size_t i = 0; i < PLACES; i++)
    model.at[i] = -1;
  for (int i = 0; i < 20000; i++) {
    calls[draw(sizeof calls / sizeof calls[0])]();
    check_place(draw(PLACES));
  }
  for (size_t i = 0; i < PLACES; i++)
    check_place(i);
  end_model();
  ck_assert_uint_eq(tarn_host_memory(), 0);
  ck_assert_uint_le(kernel_mappings(), before + NOISE);
}
END_TEST

static void add_loop(Suite *suite, const char *name, const TTest *test) {
  TCase *both = tcase_create(name);
  tcase_set_timeout(both, 120);
  tcase_add_loop_test(both, test, 0, 2);
  suite_add_tcase(suite, both);
}

int main(void) {
  faults_install();
  ext = TarnDeviceExt();
  Suite *suite = suite_create("cpu: ranges");
  ADD_CASE(suite, "ranges and memory", ranges_are_reserved,
           ranges_that_cannot_be, memory_that_cannot_be,
           handles_are_not_used_again, addresses_in_ranges_are_known);
  add_loop(suite, "bytes", mapped_memory_keeps_its_bytes);
  add_loop(suite, "life", memory_lives_until_its_last_mapping);
  add_loop(suite, "access", nobody_touches_before_access);
  add_loop(suite, "faults", ranges_survive_every_fault);
  ADD_CASE(suite, "mappings", shareable_memory_at_two_addresses,
           mappings_that_cannot_be, several_mappings_go_at_once,
           access_that_cannot_be);
  ADD_CASE(suite, "processes", what_cannot_be_shared, strangers_are_refused,
           imported_memory_is_the_same, another_process_gets_at_it,
           a_child_has_all_that_its_parent_had);
  ADD_CASE(suite, "many", neighbours_are_few_mappings,
           the_kernels_limit_is_full, threads_do_not_meet,
           random_calls_are_as_the_model, the_end_frees_what_was_forgotten);
  return run_suite(suite);
}
