// Memory of simulated devices in several processes. The others are children
// that were forked before this process had a simulated device: drivers do not
// work in a child that comes later.
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ext_kit.h"

// --- a line to the child ---------------------------------------------------

// One byte, and a descriptor with it unless |fd| is -1.
static bool send_fd(int line, int fd) {
  char byte = 'x';
  struct iovec part = {&byte, 1};
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    memset(&control, 0, sizeof control);
    message.msg_control = &control;
    message.msg_controllen = sizeof control;
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
  }
  return sendmsg(line, &message, 0) == 1;
}

// The descriptor that came; -1 if none did, -2 if the line is gone.
static int receive_fd(int line) {
  char byte = 0;
  struct iovec part = {&byte, 1};
  union {
    struct cmsghdr head;
    char room[CMSG_SPACE(sizeof(int))];
  } control;
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof control};
  int fd = -1;
  if (recvmsg(line, &message, MSG_CMSG_CLOEXEC) != 1) return -2;
  struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  if (head != NULL) memcpy(&fd, CMSG_DATA(head), sizeof fd);
  return fd;
}

static int line;  // to the other process

static pid_t start_child(void (*work)(void)) {
  int ends[2];
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  fflush(NULL);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  line = child == 0 ? ends[1] : ends[0];
  close(child == 0 ? ends[0] : ends[1]);
  if (child == 0) {
    work();
    _exit(0);
  }
  return child;
}

static void end_child(pid_t child) {
  int status = 0;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}

// In the child a failure is an exit status: Check's reports are the parent's.
#define want(condition)                            \
  do {                                             \
    if (!(condition)) _exit(__LINE__ % 100 + 100); \
  } while (0)

// --- two processes ---------------------------------------------------------

// --- handles ---------------------------------------------------------------

typedef struct handle {
  unsigned char bytes[TARN_EXT_HANDLE_SIZE];
} handle;

enum { BLOCK = 100000 };  // no multiple of a page

static bool send_handle(const handle *h) {
  return write(line, h, sizeof *h) == sizeof *h;
}

static bool receive_handle(handle *h) {
  return read(line, h, sizeof *h) == sizeof *h;
}

static void open_and_answer(void) {
  char text[6] = "";
  uint64_t there = 0;
  handle h;
  ext_init(0);
  want(receive_handle(&h));
  want(ext->allocation_import(1, h.bytes, BLOCK + 1, &there) == TARN_E_INVALID);
  want(ext->allocation_import(1, h.bytes, BLOCK, &there) == TARN_OK);
  want(ext_free_memory(1) == CAPACITY);  // it is the maker's
  ext_read(1, text, there + BLOCK - 6, 6);
  want(strcmp(text, "hello") == 0);
  ext_write(1, there + 5000, "moin", 5);
  want(send_handle(&h));
  want(receive_handle(&h));  // the maker has given it back
  ext_read(1, text, there + BLOCK - 6, 6);
  want(strcmp(text, "hello") == 0);
  struct C_Device_st one = {1};
  want(table.device_memory_deallocate(&one, (void *)(uintptr_t)there, BLOCK) ==
       C_ERROR);
  want(ext->allocation_close(1, there + 1, BLOCK) == TARN_E_INVALID);
  want(ext->allocation_close(1, there, BLOCK) == TARN_OK);
  want(ext->allocation_close(1, there, BLOCK) == TARN_E_INVALID);
  want(ext->allocation_import(1, h.bytes, BLOCK, &there) == TARN_E_INVALID);
  want(table.finalize() == C_SUCCESS);
}

TEST(two_processes_share_a_block) {
  char text[5] = "";
  uint64_t block = 0;
  handle h;
  handle again;
  pid_t child = start_child(open_and_answer);
  ext_init(0);
  ck_assert_int_eq(ext->allocate_aligned(0, BLOCK, 1, &block), TARN_OK);
  ext_write(0, block + BLOCK - 6, "hello", 6);
  ck_assert_int_eq(ext->allocation_export(0, block, BLOCK, h.bytes), TARN_OK);
  ck_assert_int_eq(ext->allocation_export(0, block, BLOCK, again.bytes),
                   TARN_OK);
  ck_assert_int_eq(memcmp(&h, &again, sizeof h), 0);
  size_t free_now = ext_free_memory(0);
  ck_assert(send_handle(&h));
  ck_assert(receive_handle(&h));
  ext_read(0, text, block + 5000, 5);
  ck_assert_str_eq(text, "moin");
  struct C_Device_st zero = {0};
  assert_done(
      table.device_memory_deallocate(&zero, (void *)(uintptr_t)block, BLOCK));
  ck_assert_uint_gt(ext_free_memory(0), free_now);
  ck_assert(send_handle(&h));
  end_child(child);
}

TEST(what_is_no_block_has_no_handle) {
  uint64_t block = 0;
  uint64_t small = 0;
  uint64_t there = 1;
  handle h = {{0}};
  ext_init(0);
  ck_assert_int_eq(ext->allocate_aligned(0, BLOCK, 1, &block), TARN_OK);
  ck_assert_int_eq(ext->allocate_aligned(0, 65535, 1, &small), TARN_OK);
  ck_assert_int_eq(ext->allocation_export(0, block + 1, BLOCK, h.bytes),
                   TARN_E_INVALID);
  ck_assert_int_eq(ext->allocation_export(0, block, BLOCK - 1, h.bytes),
                   TARN_E_INVALID);
  ck_assert_int_eq(ext->allocation_export(0, small, 65535, h.bytes),
                   TARN_E_UNSUPPORTED);
  ck_assert_int_eq(ext->allocation_import(0, h.bytes, BLOCK, &there),
                   TARN_E_INVALID);
  ck_assert_uint_eq(there, 0);
  // One's own may be opened, too.
  ck_assert_int_eq(ext->allocation_export(0, block, BLOCK, h.bytes), TARN_OK);
  ck_assert_int_eq(ext->allocation_import(1, h.bytes, BLOCK, &there), TARN_OK);
  ck_assert_int_eq(ext->allocation_close(1, there, BLOCK), TARN_OK);
  assert_done(table.finalize());
}

static uint64_t import_and_map(int fd, size_t size, uint64_t *out_memory) {
  uint64_t range = 0;
  want(ext->memory_import(1, fd, size, out_memory) == TARN_OK);
  want(ext->range_reserve(1, size, 0, &range) == TARN_OK);
  want(ext->range_map(1, range, size, *out_memory) == TARN_OK);
  want(ext->range_set_access(1, range, size, 1, TARN_EXT_ACCESS_READ_WRITE) ==
       TARN_OK);
  return range;
}

static void read_and_answer(void) {
  char text[6] = "";
  uint64_t memory = 0;
  ext_init(0);
  int fd = receive_fd(line);
  want(fd >= 0);
  uint64_t range = import_and_map(fd, 2 * GRANULE, &memory);
  close(fd);
  want(ext_free_memory(1) == CAPACITY);  // it is the maker's
  ext_read(1, text, range + GRANULE - 3, 6);
  want(strcmp(text, "hello") == 0);
  ext_write(1, range + 2 * GRANULE - 5, "moin", 5);
  want(send_fd(line, -1));
  want(receive_fd(line) == -1);  // the maker has let go of it
  ext_read(1, text, range + GRANULE - 3, 6);
  want(strcmp(text, "hello") == 0);
  want(ext->range_unmap(1, range, 2 * GRANULE) == TARN_OK);
  want(ext->memory_destroy(1, memory) == TARN_OK);
  want(table.finalize() == C_SUCCESS);
}

TEST(two_processes_share_memory) {
  char text[5] = "";
  int fd = -1;
  pid_t child = start_child(read_and_answer);
  ext_init(0);
  uint64_t memory = ext_create(0, 2 * GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  uint64_t range = ext_reserve(0, 2 * GRANULE);
  ext_map(0, range, 2 * GRANULE, memory);
  ext_write(0, range + GRANULE - 3, "hello", 6);
  assert_ok(ext->memory_export(0, memory, &fd));
  ck_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  ck_assert(send_fd(line, fd));
  close(fd);
  ck_assert_int_eq(receive_fd(line), -1);
  ext_read(0, text, range + 2 * GRANULE - 5, 5);
  ck_assert_str_eq(text, "moin");
  assert_ok(ext->range_unmap(0, range, 2 * GRANULE));
  assert_ok(ext->memory_destroy(0, memory));
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  ck_assert(send_fd(line, -1));
  end_child(child);
  ext_finalize(0);
}

// The maker dies without a word; the memory lives on here.
static void make_and_die(void) {
  int fd = -1;
  uint64_t memory = 0;
  uint64_t range = 0;
  ext_init(0);
  want(ext->memory_create(0, GRANULE, 1, &memory) == TARN_OK);
  want(ext->range_reserve(0, GRANULE, 0, &range) == TARN_OK);
  want(ext->range_map(0, range, GRANULE, memory) == TARN_OK);
  want(ext->range_set_access(0, range, GRANULE, 0,
                             TARN_EXT_ACCESS_READ_WRITE) == TARN_OK);
  ext_write(0, range + 77, "!", 1);
  want(ext->memory_export(0, memory, &fd) == TARN_OK);
  want(send_fd(line, fd));
}

TEST(memory_outlives_its_maker) {
  uint64_t memory = 0;
  uint64_t again = 0;
  pid_t child = start_child(make_and_die);
  ext_init(0);
  int fd = receive_fd(line);
  ck_assert_int_ge(fd, 0);
  end_child(child);
  assert_ok(ext->memory_import(0, fd, GRANULE, &memory));
  assert_ok(ext->memory_import(1, fd, GRANULE, &again));
  close(fd);
  ck_assert_uint_ne(memory, again);
  uint64_t here = ext_reserve(0, GRANULE);
  uint64_t there = ext_reserve(1, GRANULE);
  ext_map(0, here, GRANULE, memory);
  ext_map(1, there, GRANULE, again);
  ck_assert_uint_eq(ext_byte(0, here + 77), '!');
  ext_write(0, here + 78, "?", 1);
  ck_assert_uint_eq(ext_byte(1, there + 78), '?');
  // What was imported can be handed on.
  assert_ok(ext->memory_export(1, again, &fd));
  close(fd);
  ext_finalize(0);
}

// --- one process -----------------------------------------------------------

TEST(an_import_is_the_same_memory) {
  int fd = -1;
  uint64_t twin = 0;
  ext_init(0);
  uint64_t memory = ext_create(0, CAPACITY, TARN_EXT_MEMORY_SHAREABLE);
  assert_ok(ext->memory_export(1, memory, &fd));
  assert_ok(ext->memory_import(0, fd, CAPACITY, &twin));
  close(fd);
  ck_assert_uint_ne(memory, twin);
  uint64_t range = ext_reserve(0, 2 * CAPACITY);
  ext_map(0, range, CAPACITY, memory);
  ext_map(0, range + CAPACITY, CAPACITY, twin);
  ext_write(0, range + 4321, "t", 1);
  ck_assert_uint_eq(ext_byte(0, range + CAPACITY + 4321), 't');
  // It lives as long as one of the two does.
  assert_ok(ext->memory_destroy(0, memory));
  assert_ok(ext->range_unmap(0, range, CAPACITY));
  ck_assert_uint_eq(ext_free_memory(0), CAPACITY);
  ck_assert_uint_eq(ext_byte(0, range + CAPACITY + 4321), 't');
  ext_finalize(0);
}

TEST(wrong_files_are_refused) {
  int fd = -1;
  uint64_t memory = 1;
  ext_init(0);
  uint64_t own = ext_create(0, GRANULE, 0);
  assert_refused(ext->memory_export(0, own, &fd), "not shareable");
  ck_assert_int_eq(fd, 0);
  assert_refused(ext->memory_export(0, own + 5, &fd), "no such memory");
  assert_refused(ext->memory_import(0, -1, GRANULE, &memory),
                 "file descriptor -1 is not memory of a simulated device");
  ck_assert_uint_eq(memory, 0);
  assert_refused(ext->memory_import(0, 0, GRANULE, &memory), "is not memory");
  int stranger = memfd_create("stranger", MFD_ALLOW_SEALING);
  ck_assert_int_ge(stranger, 0);
  ck_assert_int_eq(ftruncate(stranger, (off_t)GRANULE), 0);
  assert_refused(ext->memory_import(0, stranger, GRANULE, &memory),
                 "is not memory");
  close(stranger);
  uint64_t shared = ext_create(0, GRANULE, TARN_EXT_MEMORY_SHAREABLE);
  assert_ok(ext->memory_export(0, shared, &fd));
  assert_refused(ext->memory_import(0, fd, 2 * GRANULE, &memory),
                 "is memory of 65536 bytes");
  assert_refused(ext->memory_import(0, fd, GRANULE + 1, &memory),
                 "not a multiple of 64 KiB");
  // No process can make it shorter than its mappings.
  ck_assert_int_ne(ftruncate(fd, 0), 0);
  close(fd);
  ext_finalize(7);
}

// An import takes room for the bytes, though it does not count.
TEST(imports_can_be_too_many) {
  int fd = -1;
  size_t count = 0;
  uint64_t memory = 0;
  ext_init(0);
  uint64_t shared = ext_create(0, CAPACITY, TARN_EXT_MEMORY_SHAREABLE);
  assert_ok(ext->memory_export(0, shared, &fd));
  tarn_status status = TARN_OK;
  for (; status == TARN_OK && count < 10; count++)
    status = ext->memory_import(1, fd, CAPACITY, &memory);
  ck_assert_int_eq(status, TARN_FULL);
  ck_assert_uint_eq(memory, 0);
  ck_assert_uint_eq(count, 5);  // four times the capacity went in
  close(fd);
  ext_finalize(0);
}
