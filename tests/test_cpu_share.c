// Memory of the cpu device in other processes: exported, inherited by a fork;
// and what the end of the device does to it.
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "test_cpu_range_kit.h"

static const tarn_device_ext *ext;

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
START_TEST(children_find_no_lock_taken) {
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
END_TEST

// --- the end ----------------------------------------------------------------

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

int main(void) {
  faults_install();
  ext = TarnDeviceExt();
  Suite *suite = suite_create("cpu: shared memory");
  ADD_CASE(suite, "processes", what_cannot_be_shared, strangers_are_refused,
           imported_memory_is_the_same, another_process_gets_at_it);
  ADD_CASE(suite, "forks", a_child_has_all_that_its_parent_had,
           children_find_no_lock_taken);
  ADD_CASE(suite, "end", the_end_frees_what_was_forgotten);
  return run_suite(suite);
}
