// The few requests of the kernel that a program makes which opens a file and
// reads it. Files are read past the page cache: what is short stays short.
#include "bad_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/run.h"

enum { ROOT = FUSE_ROOT_ID, FILE_ID = 2, ROOM = 1 << 20, BLOCK = 4096 };

typedef struct server {
  int fuse;
  int backing;
  bad_disk *disk;
  char request[ROOM];
  char bytes[ROOM];
} server;

// --- answers -----------------------------------------------------------------

static void answer(const server *s, const struct fuse_in_header *to, int error,
                   const void *bytes, size_t size) {
  struct fuse_out_header head = {.len = (uint32_t)(sizeof head + size),
                                 .error = -error,
                                 .unique = to->unique};
  struct iovec parts[] = {{&head, sizeof head},
                          {(void *)(uintptr_t)bytes, size}};
  // The one that asked may be gone.
  (void)!writev(s->fuse, parts, size > 0 ? 2 : 1);
}

static struct fuse_attr look_at(const server *s, uint64_t node) {
  struct stat found = {0};
  bool is_root = node == ROOT;
  require(fstat(s->backing, &found) == 0);
  return (struct fuse_attr){.ino = node,
                            .size = is_root ? 0 : (uint64_t)found.st_size,
                            .mode = is_root ? S_IFDIR | 0755 : S_IFREG | 0644,
                            .nlink = 1,
                            .blksize = BLOCK};
}

static void begin(const server *s, const struct fuse_in_header *head) {
  const struct fuse_init_in *in = (const void *)(head + 1);
  const struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                    .minor = FUSE_KERNEL_MINOR_VERSION,
                                    .max_readahead = in->max_readahead,
                                    .max_write = BLOCK};
  answer(s, head, 0, &out, sizeof out);
}

static void find(const server *s, const struct fuse_in_header *head) {
  const char *name = (const char *)(head + 1);
  const struct fuse_entry_out out = {.nodeid = FILE_ID,
                                     .attr = look_at(s, FILE_ID)};
  if (strcmp(name, BAD_DISK_FILE) == 0) {
    answer(s, head, 0, &out, sizeof out);
  } else {
    answer(s, head, ENOENT, NULL, 0);
  }
}

static void tell(const server *s, const struct fuse_in_header *head) {
  const struct fuse_attr_out out = {.attr = look_at(s, head->nodeid)};
  answer(s, head, 0, &out, sizeof out);
}

static void tell_size(const server *s, const struct fuse_in_header *head) {
  const struct fuse_statfs_out out = {.st = {.bsize = BLOCK, .namelen = 255}};
  answer(s, head, 0, &out, sizeof out);
}

static void open_file(const server *s, const struct fuse_in_header *head) {
  const struct fuse_open_out out = {.open_flags = FOPEN_DIRECT_IO};
  answer(s, head, 0, &out, sizeof out);
}

// Half of the blocks, and a part of one that is no block.
static size_t shorten(const server *s, size_t size) {
  if (!s->disk->shortens || size <= BLOCK) return size;
  s->disk->shortened++;
  return size / BLOCK / 2 * BLOCK + 512;
}

static void read_file(server *s, const struct fuse_in_header *head) {
  const struct fuse_read_in *in = (const void *)(head + 1);
  uint64_t bad = s->disk->fails_at;
  s->disk->reads++;
  if (bad != 0 && bad >= in->offset && bad < in->offset + in->size) {
    s->disk->failed++;
    answer(s, head, EIO, NULL, 0);
    return;
  }
  ssize_t got =
      pread(s->backing, s->bytes, shorten(s, in->size), (off_t)in->offset);
  require(got >= 0);
  answer(s, head, 0, s->bytes, (size_t)got);
}

// --- requests ----------------------------------------------------------------

static void serve(server *s, const struct fuse_in_header *head) {
  switch (head->opcode) {
    case FUSE_INIT:
      begin(s, head);
      return;
    case FUSE_LOOKUP:
      find(s, head);
      return;
    case FUSE_GETATTR:
      tell(s, head);
      return;
    case FUSE_STATFS:
      tell_size(s, head);
      return;
    case FUSE_OPEN:
      open_file(s, head);
      return;
    case FUSE_READ:
      read_file(s, head);
      return;
    case FUSE_RELEASE:
      answer(s, head, 0, NULL, 0);
      return;
    case FUSE_FORGET:
    case FUSE_BATCH_FORGET:
    case FUSE_INTERRUPT:
      return;  // without an answer
    default:
      answer(s, head, ENOSYS, NULL, 0);
  }
}

static _Noreturn void serve_all(int fuse, int backing, bad_disk *disk) {
  static server s;
  s.fuse = fuse;
  s.backing = backing;
  s.disk = disk;
  for (;;) {
    ssize_t got = read(fuse, s.request, sizeof s.request);
    if (got < 0 && (errno == EINTR || errno == ENOENT)) continue;
    if (got <= 0) _exit(0);  // it was unmounted
    serve(&s, (const struct fuse_in_header *)(const void *)s.request);
  }
}

// --- mounting ----------------------------------------------------------------

static bool mount_it(const char *folder, int fuse) {
  char options[128];
  snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=0,group_id=0",
           fuse);
  return unshare(CLONE_NEWNS) == 0 &&
         mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
         mount("tarn", folder, "fuse", MS_NOSUID | MS_NODEV, options) == 0;
}

bad_disk *bad_disk_mount(const char *folder, const char *backing,
                         const char **out_why) {
  int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  int fd = open(backing, O_RDONLY | O_CLOEXEC);
  require(fd >= 0);
  *out_why = "there is no /dev/fuse";
  if (fuse < 0) return NULL;
  *out_why = "mounts are not permitted here";
  if (!mount_it(folder, fuse)) return NULL;
  bad_disk *disk = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(disk != MAP_FAILED);
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) serve_all(fuse, fd, disk);
  close(fuse);
  close(fd);
  return disk;
}

void bad_disk_unmount(const char *folder, bad_disk *disk) {
  require(umount(folder) == 0);
  require(wait(NULL) > 0);
  munmap(disk, sizeof *disk);
}
