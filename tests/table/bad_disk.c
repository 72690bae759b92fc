// The requests of the kernel that a program makes which reads files, and writes
// new ones in their place. Files are read and written past the page cache: what
// is short stays short.
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

enum { ROOT = FUSE_ROOT_ID, ROOM = 1 << 20, BLOCK = 4096, MOST_FILES = 256 };

// What the kernel knows by a number, for as long as it is mounted.
typedef struct file {
  char name[128];  // "": it has none any more
  int fd;
} file;

typedef struct server {
  int fuse;
  int folder;  // the one below
  bad_disk *disk;
  file files[MOST_FILES];
  size_t count;
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

// That it was done, or why not.
static void answer_done(const server *s, const struct fuse_in_header *to,
                        bool did) {
  answer(s, to, did ? 0 : errno, NULL, 0);
}

static bool fails(const server *s, bad_call call) {
  if (s->disk->fails != call) return false;
  s->disk->failed++;
  errno = EIO;
  return true;
}

// The |at|-th call.
static bool fails_in_turn(const server *s, bad_call call) {
  if (s->disk->fails != call || s->disk->at == 0) return false;
  return --s->disk->at == 0 && fails(s, call);
}

static bool fails_at(const server *s, bad_call call, uint64_t offset,
                     size_t size) {
  uint64_t at = s->disk->at;
  return at >= offset && at < offset + size && fails(s, call);
}

// Half of the blocks, and a part of one that is no block.
static size_t shorten(const server *s, size_t size) {
  if (!s->disk->shortens || size <= BLOCK) return size;
  s->disk->shortened++;
  return size / BLOCK / 2 * BLOCK + 512;
}

// --- names and numbers -------------------------------------------------------

static int fd_of(const server *s, uint64_t node) {
  require(node > ROOT && node <= ROOT + s->count);
  return s->files[node - ROOT - 1].fd;
}

static struct fuse_attr look_at(const server *s, uint64_t node) {
  struct stat found = {0};
  bool is_root = node == ROOT;
  require(fstat(is_root ? s->folder : fd_of(s, node), &found) == 0);
  return (struct fuse_attr){.ino = node,
                            .size = is_root ? 0 : (uint64_t)found.st_size,
                            .mode = is_root ? S_IFDIR | 0755 : S_IFREG | 0644,
                            .nlink = 1,
                            .blksize = BLOCK};
}

static file *known(server *s, const char *name) {
  for (size_t i = 0; i < s->count; i++)
    if (strcmp(s->files[i].name, name) == 0) return &s->files[i];
  return NULL;
}

static void forget_name(server *s, const char *name) {
  file *f = known(s, name);
  if (f != NULL) f->name[0] = '\0';
}

static void set_name(file *f, const char *name) {
  int length = snprintf(f->name, sizeof f->name, "%s", name);
  require(length > 0 && (size_t)length < sizeof f->name);
}

// The number of the file; 0: there is none.
static uint64_t open_name(server *s, const char *name, int flags) {
  file *f = known(s, name);
  if (f == NULL) {
    int fd = openat(s->folder, name, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0) return 0;
    require(s->count < MOST_FILES);
    f = &s->files[s->count++];
    f->fd = fd;
    set_name(f, name);
  }
  return ROOT + 1 + (uint64_t)(f - s->files);
}

static const struct fuse_open_out opened = {.open_flags = FOPEN_DIRECT_IO};

static void find(server *s, const struct fuse_in_header *head,
                 const char *name) {
  uint64_t node = open_name(s, name, 0);
  if (node == 0) {
    answer(s, head, ENOENT, NULL, 0);
    return;
  }
  const struct fuse_entry_out out = {.nodeid = node, .attr = look_at(s, node)};
  answer(s, head, 0, &out, sizeof out);
}

static void create(server *s, const struct fuse_in_header *head,
                   const struct fuse_create_in *in) {
  const char *name = (const char *)(in + 1);
  struct {
    struct fuse_entry_out entry;
    struct fuse_open_out open;
  } out = {.open = opened};
  out.entry.nodeid = open_name(s, name, O_CREAT | O_EXCL);
  require(out.entry.nodeid != 0);
  out.entry.attr = look_at(s, out.entry.nodeid);
  answer(s, head, 0, &out, sizeof out);
}

static void rename_file(server *s, const struct fuse_in_header *head,
                        const struct fuse_rename_in *in) {
  const char *from = (const char *)(in + 1);
  const char *to = from + strlen(from) + 1;
  file *f = known(s, from);
  require(f != NULL);
  bool did = !fails_in_turn(s, BAD_RENAME) &&
             renameat(s->folder, from, s->folder, to) == 0;
  if (did) {
    forget_name(s, to);
    set_name(f, to);
  }
  answer_done(s, head, did);
}

static void remove_file(server *s, const struct fuse_in_header *head,
                        const char *name) {
  forget_name(s, name);
  answer_done(s, head, unlinkat(s->folder, name, 0) == 0);
}

// --- files -------------------------------------------------------------------

static void tell(const server *s, const struct fuse_in_header *head) {
  const struct fuse_attr_out out = {.attr = look_at(s, head->nodeid)};
  answer(s, head, 0, &out, sizeof out);
}

static void set(const server *s, const struct fuse_in_header *head,
                const struct fuse_setattr_in *in) {
  if ((in->valid & FATTR_SIZE) != 0)
    require(ftruncate(fd_of(s, head->nodeid), (off_t)in->size) == 0);
  tell(s, head);
}

static void read_file(server *s, const struct fuse_in_header *head,
                      const struct fuse_read_in *in) {
  if (fails_at(s, BAD_READ, in->offset, in->size)) {
    answer_done(s, head, false);
    return;
  }
  ssize_t got = pread(fd_of(s, head->nodeid), s->bytes, shorten(s, in->size),
                      (off_t)in->offset);
  require(got >= 0);
  answer(s, head, 0, s->bytes, (size_t)got);
}

static void write_file(const server *s, const struct fuse_in_header *head,
                       const struct fuse_write_in *in) {
  struct fuse_write_out out = {0};
  if (fails_at(s, BAD_WRITE, in->offset, in->size)) {
    answer_done(s, head, false);
    return;
  }
  if (!fails_at(s, BAD_FULL, in->offset, in->size)) {
    out.size = (uint32_t)shorten(s, in->size);
    require(pwrite(fd_of(s, head->nodeid), in + 1, out.size,
                   (off_t)in->offset) == (ssize_t)out.size);
  }
  answer(s, head, 0, &out, sizeof out);
}

// --- requests ----------------------------------------------------------------

static void begin(const server *s, const struct fuse_in_header *head,
                  const struct fuse_init_in *in) {
  const struct fuse_init_out out = {.major = FUSE_KERNEL_VERSION,
                                    .minor = FUSE_KERNEL_MINOR_VERSION,
                                    .max_readahead = in->max_readahead,
                                    .flags = FUSE_BIG_WRITES,
                                    .max_write = BAD_DISK_PART};
  answer(s, head, 0, &out, sizeof out);
}

static void tell_size(const server *s, const struct fuse_in_header *head) {
  const struct fuse_statfs_out out = {.st = {.bsize = BLOCK, .namelen = 255}};
  answer(s, head, 0, &out, sizeof out);
}

static void serve(server *s, const struct fuse_in_header *head) {
  const void *in = head + 1;
  switch (head->opcode) {
    case FUSE_INIT:
      begin(s, head, in);
      return;
    case FUSE_LOOKUP:
      find(s, head, in);
      return;
    case FUSE_CREATE:
      create(s, head, in);
      return;
    case FUSE_RENAME:
      rename_file(s, head, in);
      return;
    case FUSE_UNLINK:
      remove_file(s, head, in);
      return;
    case FUSE_GETATTR:
      tell(s, head);
      return;
    case FUSE_SETATTR:
      set(s, head, in);
      return;
    case FUSE_STATFS:
      tell_size(s, head);
      return;
    case FUSE_OPEN:
    case FUSE_OPENDIR:
      answer(s, head, 0, &opened, sizeof opened);
      return;
    case FUSE_READ:
      read_file(s, head, in);
      return;
    case FUSE_WRITE:
      write_file(s, head, in);
      return;
    case FUSE_FSYNC:
      answer_done(s, head, !fails_in_turn(s, BAD_SYNC));
      return;
    case FUSE_FSYNCDIR:
      answer_done(s, head, !fails(s, BAD_FOLDER));
      return;
    case FUSE_RELEASE:
    case FUSE_RELEASEDIR:
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

static _Noreturn void serve_all(int fuse, int folder, bad_disk *disk) {
  static server s;
  s.fuse = fuse;
  s.folder = folder;
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

bad_disk *bad_disk_mount(const char *folder, const char **out_why) {
  int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
  int below = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  require(below >= 0);
  *out_why = "there is no /dev/fuse";
  if (fuse < 0) return NULL;
  *out_why = "mounts are not permitted here";
  if (!mount_it(folder, fuse)) return NULL;
  bad_disk *disk = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  require(disk != MAP_FAILED);
  pid_t child = fork();
  require(child >= 0);
  if (child == 0) serve_all(fuse, below, disk);
  close(fuse);
  close(below);
  return disk;
}

void bad_disk_unmount(const char *folder, bad_disk *disk) {
  require(umount(folder) == 0);
  require(wait(NULL) > 0);
  munmap(disk, sizeof *disk);
}
