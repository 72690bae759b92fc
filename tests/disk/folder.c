#include "folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/run.h"

enum { SLOTS = 4 };

static char folder[64];
static char paths[SLOTS][128];

static void remove_folder(void *context) {
  char command[128];
  (void)context;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  require(system(command) == 0);
}

void folder_make(int on_disk) {
  bool memory = !on_disk && access("/dev/shm", W_OK) == 0;
  snprintf(folder, sizeof folder, "%s/tarn-disk-XXXXXX",
           memory ? "/dev/shm" : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  after_test(remove_folder, folder);
}

const char *folder_path(size_t slot, const char *name) {
  require(slot < SLOTS);
  snprintf(paths[slot], sizeof paths[slot], "%s/%s", folder, name);
  return paths[slot];
}

void folder_flip(const char *path, uint64_t offset, unsigned char bits) {
  unsigned char byte = 0;
  int fd = open(path, O_RDWR | O_CLOEXEC);
  require(fd >= 0);
  require(pread(fd, &byte, 1, (off_t)offset) == 1);
  byte ^= bits;
  require(pwrite(fd, &byte, 1, (off_t)offset) == 1);
  close(fd);
}

void folder_resize(const char *path, uint64_t size) {
  require(truncate(path, (off_t)size) == 0);
}

void folder_copy(const char *from, const char *to) {
  char bytes[4096];
  int source = open(from, O_RDONLY | O_CLOEXEC);
  int target = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(source >= 0 && target >= 0);
  for (;;) {
    ssize_t got = read(source, bytes, sizeof bytes);
    require(got >= 0);
    if (got == 0) break;
    require(write(target, bytes, (size_t)got) == got);
  }
  close(source);
  close(target);
}

uint64_t folder_size(const char *path) {
  struct stat found;
  require(stat(path, &found) == 0);
  return (uint64_t)found.st_size;
}
