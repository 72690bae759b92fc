// Two processes use the same memory: one takes a block and sends its
// descriptor over a socket, the other has it as a block of its own pool, and
// cuts it up by another pool.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <tarn/tarn.h>
#include <unistd.h>

static const size_t SIZE = (size_t)1 << 20;

static int fail(const char *what) {
  fprintf(stderr, "share: %s: %s\n", what, tarn_last_error());
  return EXIT_FAILURE;
}

// Room for one descriptor beside a message of one byte.
typedef union passenger {
  struct cmsghdr head;
  char room[CMSG_SPACE(sizeof(int))];
} passenger;

static int send_descriptor(int line, int fd) {
  char byte = 0;
  struct iovec part = {&byte, 1};
  passenger with = {.room = {0}};
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &with,
                           .msg_controllen = sizeof with};
  with.head.cmsg_level = SOL_SOCKET;
  with.head.cmsg_type = SCM_RIGHTS;
  with.head.cmsg_len = CMSG_LEN(sizeof fd);
  memcpy(CMSG_DATA(&with.head), &fd, sizeof fd);
  return sendmsg(line, &message, 0) == 1;
}

static int receive_descriptor(int line) {
  char byte;
  int fd = -1;
  struct iovec part = {&byte, 1};
  passenger with;
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &with,
                           .msg_controllen = sizeof with};
  if (recvmsg(line, &message, MSG_CMSG_CLOEXEC) != 1) return -1;
  if (CMSG_FIRSTHDR(&message) != NULL)
    memcpy(&fd, CMSG_DATA(&with.head), sizeof fd);
  return fd;
}

static tarn_status shareable(tarn_pool **out_pool) {
  tarn_pool_options options = {.struct_size = sizeof options,
                               .flags = TARN_POOL_SHAREABLE};
  return tarn_pool_create(TARN_HOST, &options, out_pool);
}

static int write_into(int line) {
  tarn_pool *pool = NULL, *parts = NULL;
  tarn_block block, part;
  int fd = receive_descriptor(line);
  if (shareable(&pool) != TARN_OK) return fail("pool");
  if (tarn_pool_import(pool, fd, SIZE, &block) != TARN_OK)
    return fail("import");
  close(fd);

  tarn_pool_options options = {.struct_size = sizeof options,
                               .memory = {block.address, block.size}};
  if (tarn_pool_create(TARN_HOST, &options, &parts) != TARN_OK ||
      tarn_pool_alloc(parts, 64, 0, NULL, &part) != TARN_OK) {
    return fail("part");
  }
  char *text = part.pointer;
  strcpy(text, "written by the other process");
  size_t offset = part.address - block.address;
  if (write(line, &offset, sizeof offset) != sizeof offset)
    return fail("write");

  if (tarn_pool_free(&part, NULL) != TARN_OK ||
      tarn_pool_destroy(parts) != TARN_OK ||
      tarn_pool_free(&block, NULL) != TARN_OK ||
      tarn_pool_destroy(pool) != TARN_OK) {
    return fail("free");
  }
  return EXIT_SUCCESS;
}

static int read_from(int line, pid_t other) {
  tarn_pool *pool = NULL;
  tarn_block block;
  int fd, end;
  size_t offset;
  if (shareable(&pool) != TARN_OK ||
      tarn_pool_alloc(pool, SIZE, 0, NULL, &block) != TARN_OK ||
      tarn_pool_export(&block, &fd) != TARN_OK) {
    return fail("export");
  }
  if (!send_descriptor(line, fd)) return fail("send");
  close(fd);  // the block has the memory, and so has the other by now
  if (read(line, &offset, sizeof offset) != sizeof offset) return fail("read");
  const char *bytes = block.pointer;
  printf("%zu bytes, at offset %zu: %s\n", block.size, offset, bytes + offset);
  if (waitpid(other, &end, 0) != other || end != 0) return fail("the other");
  if (tarn_pool_free(&block, NULL) != TARN_OK ||
      tarn_pool_destroy(pool) != TARN_OK) {
    return fail("free");
  }
  return EXIT_SUCCESS;
}

int main(void) {
  int line[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, line) != 0) return EXIT_FAILURE;
  pid_t other = fork();
  if (other == 0) return write_into(line[1]);
  close(line[1]);
  return read_from(line[0], other);
}
