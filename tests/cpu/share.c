// Memory of the cpu device in other processes: exported, inherited by a fork;
// and what the end of the device does to it.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/os_pages.h"
#include "range_kit.h"

static const tarn_device_ext *ext;

// --- other processes -------------------------------------------------------

TEST(what_cannot_be_shared) {
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
                   "is memory of 65536 bytes, not of 131072");
  ck_assert_uint_eq(memory, 0);
  assert_ext_wrong(ext->memory_import(0, fd, 5, &memory), "not a multiple");
  assert_ext_wrong(ext->memory_import(2, fd, GRANULE, &memory), "no device 2");
  assert_ext_wrong(ext->memory_import(0, -1, GRANULE, &memory), "not memory");
  close(fd);
  destroy(plain);
  destroy(shared);
}

// A file of the right size and name, but one that can be cut off.
TEST(strangers_are_refused) {
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

TEST(imported_memory_is_the_same) {
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

// A child that is sent memory, and says in a number what it has found.
typedef struct importer {
  pid_t child;
  int pair[2];
} importer;

static importer begin_importer(int (*use)(int socket)) {
  importer other;
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, other.pair), 0);
  other.child = fork();
  if (other.child == 0) {
    alarm(60);
    _exit(use(other.pair[1]));
  }
  ck_assert_int_gt(other.child, 0);
  return other;
}

static int end_importer(const importer *other, uint64_t memory) {
  int result = 0;
  int fd = -1;
  assert_ext_ok(ext->memory_export(0, memory, &fd));
  send_fd(other->pair[0], fd);
  ck_assert_int_eq(waitpid(other->child, &result, 0), other->child);
  ck_assert_msg(WIFEXITED(result), "the child: %#x", (unsigned)result);
  close(fd);
  close(other->pair[0]);
  close(other->pair[1]);
  return WEXITSTATUS(result);
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
TEST(another_process_gets_at_it) {
  importer other = begin_importer(use_imported);
  uint64_t addr = reserve(GRANULE);
  uint64_t memory = create(GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  map(addr, GRANULE, memory);
  bytes_at(addr)[11] = 42;
  ck_assert_int_eq(end_importer(&other, memory), 0);
  ck_assert_int_eq(bytes_at(addr)[12], 43);
  unmap(addr, GRANULE);
  destroy(memory);
  release(addr, GRANULE);
}

// --- pages -----------------------------------------------------------------

static size_t bytes_behind(uint64_t memory) {
  struct stat info;
  int fd = -1;
  assert_ext_ok(ext->memory_export(0, memory, &fd));
  ck_assert_int_eq(fstat(fd, &info), 0);
  close(fd);
  return (size_t)info.st_blocks * 512;
}

TEST(memory_is_there_before_it_is_touched) {
  static const size_t SIZES[] = {GRANULE, 2 * MIB - GRANULE, 2 * MIB,
                                 5 * MIB + GRANULE};
  for (size_t i = 0; i < sizeof SIZES / sizeof *SIZES; i++) {
    uint64_t memory = create(SIZES[i], TARN_EXT_MEMORY_SHAREABLE);
    ck_assert_uint_eq(bytes_behind(memory), SIZES[i]);
    destroy(memory);
  }
}

// What this kernel gives for 2 MiB: all of it, or nothing.
static size_t huge_of_one(void) {
  size_t huge = 0;
  int fd = tarn__os_memory_file("probe", 2 * MIB);
  ck_assert(tarn__os_commit_file(fd, 0, 2 * MIB, &huge));
  close(fd);
  if (huge == 0) note_skipped("huge pages", "the kernel gives none");
  return huge;
}

// Of pieces of a range that begin at multiples of 2 MiB all but a rest is huge.
TEST(large_memory_is_on_huge_pages) {
  size_t huge = huge_of_one();
  size_t size = 4 * MIB + GRANULE;
  tarn__os_pages pages;
  uint64_t addr = reserve(12 * MIB);
  ck_assert_uint_eq(addr % (2 * MIB), 0);
  uint64_t memory = create(size, TARN_EXT_MEMORY_SHAREABLE);
  map(addr + 2 * MIB, size, memory);
  ck_assert(tarn__os_look_at_pages(bytes_at(addr + 2 * MIB), size, &pages));
  ck_assert_uint_eq(pages.huge_bytes, 2 * huge);
  unmap(addr + 2 * MIB, size);
  map(addr + 3 * MIB, size, memory);
  ck_assert(tarn__os_look_at_pages(bytes_at(addr + 3 * MIB), size, &pages));
  ck_assert_uint_eq(pages.huge_bytes, 0);
  unmap(addr + 3 * MIB, size);
  destroy(memory);
  release(addr, 12 * MIB);
}

// The importer writes, which is what brings the pages to it.
static int import_huge(int socket) {
  uint64_t memory = 0;
  uint64_t addr = 0;
  tarn__os_pages pages;
  int fd = receive_fd(socket);
  if (ext->memory_import(0, fd, 8 * MIB, &memory) != TARN_OK) return 1;
  close(fd);
  if (ext->range_reserve(0, 8 * MIB, 0, &addr) != TARN_OK) return 2;
  if (ext->range_map(0, addr, 8 * MIB, memory) != TARN_OK) return 3;
  if (ext->range_set_access(0, addr, 8 * MIB, 0, TARN_EXT_ACCESS_READ_WRITE) !=
      TARN_OK) {
    return 4;
  }
  for (size_t i = 0; i < 8 * MIB; i += 64)
    bytes_at(addr)[i]++;
  if (!tarn__os_look_at_mappings(bytes_at(addr), 8 * MIB, &pages)) return 5;
  return (int)(10 + pages.huge_bytes / (2 * MIB));
}

TEST(importers_have_the_same_huge_pages) {
  size_t huge = huge_of_one();
  importer other = begin_importer(import_huge);
  uint64_t memory = create(8 * MIB, TARN_EXT_MEMORY_SHAREABLE);
  ck_assert_int_eq(end_importer(&other, memory), 10 + (huge != 0 ? 4 : 0));
  destroy(memory);
}

static int open_files(void) {
  int count = 0;
  for (int fd = 0; fd < 1024; fd++)
    count += fcntl(fd, F_GETFD) >= 0;
  return count;
}

static int create_within(enum __rlimit_resource what) {
  struct rlimit limit = {MIB, MIB};
  uint64_t memory = 1;
  int before = open_files();
  if (setrlimit(what, &limit) != 0) return 1;
  if (ext->memory_create(0, 64 * MIB, TARN_EXT_MEMORY_SHAREABLE, &memory) !=
      TARN_FULL) {
    return 2;
  }
  return memory == 0 && open_files() == before ? 0 : 3;
}

static void assert_full_within(enum __rlimit_resource what) {
  int result = 0;
  pid_t child = fork();
  if (child == 0) {
    alarm(60);
    _exit(create_within(what));
  }
  ck_assert_int_eq(waitpid(child, &result, 0), child);
  ck_assert_int_eq(result, 0);
}

TEST(what_cannot_be_had_is_full) {
  size_t total = 0;
  size_t available = 0;
  uint64_t memory = 1;
  int before = open_files();
  tarn__os_memory(&total, &available);
  assert_ext(ext->memory_create(0, total / GRANULE * GRANULE * 2,
                                TARN_EXT_MEMORY_SHAREABLE, &memory),
             TARN_FULL);
  ck_assert_ptr_nonnull(strstr(ext_text(NULL), "shareable memory of "));
  ck_assert_uint_eq(memory, 0);
  ck_assert_int_eq(open_files(), before);
  assert_full_within(RLIMIT_AS);
  assert_full_within(RLIMIT_FSIZE);
}

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

TEST(a_child_has_all_that_its_parent_had) {
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

static atomic_bool busy;

static void *keep_busy(void *context) {
  uint64_t addr = *(const uint64_t *)context;
  while (atomic_load(&busy)) {
    uint64_t memory = create(GRANULE, 0);
    map(addr, GRANULE, memory);
    unmap(addr, GRANULE);
    destroy(memory);
  }
  return NULL;
}

// Another thread is at the tables when the child is born.
TEST(children_find_no_lock_taken) {
  uint64_t addr = reserve(2 * GRANULE);
  pthread_t other;
  atomic_store(&busy, true);
  ck_assert_int_eq(pthread_create(&other, NULL, keep_busy, &addr), 0);
  for (int i = 0; i < 100; i++) {
    int result = 0;
    tarn_ext_pointer p;
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      _exit(ext->pointer_query(0, addr + GRANULE, &p) == TARN_E_INVALID ? 0
                                                                        : 1);
    }
    ck_assert_int_eq(waitpid(child, &result, 0), child);
    require(WIFEXITED(result) && WEXITSTATUS(result) == 0);
  }
  atomic_store(&busy, false);
  ck_assert_int_eq(pthread_join(other, NULL), 0);
  release(addr, 2 * GRANULE);
}

// --- the end ----------------------------------------------------------------

TEST(the_end_frees_what_was_forgotten) {
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

int main(void) {
  faults_install();
  ext = TarnDeviceExt();
  return run_tests();
}
