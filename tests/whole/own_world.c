#include "own_world.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/run.h"

static const char *const FOLDERS[] = {"/tmp", "/dev/shm"};
static const char *const LISTS[] = {"/proc/sysvipc/shm", "/proc/sysvipc/sem",
                                    "/proc/sysvipc/msg"};
enum { FOLDER_COUNT = 2, LIST_COUNT = 3 };

// --- entering --------------------------------------------------------------

static bool write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool written = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  close(fd);
  return written;
}

// Who may not do it as the user that they are may where they are root.
static bool become_root_there(unsigned user, unsigned group) {
  char users[64];
  char groups[64];
  snprintf(users, sizeof users, "0 %u 1", user);
  snprintf(groups, sizeof groups, "0 %u 1", group);
  return write_text("/proc/self/setgroups", "deny") &&
         write_text("/proc/self/uid_map", users) &&
         write_text("/proc/self/gid_map", groups);
}

static bool leave_others(void) {
  unsigned user = getuid();
  unsigned group = getgid();
  if (unshare(CLONE_NEWNS | CLONE_NEWIPC) == 0) return true;
  return unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWIPC) == 0 &&
         become_root_there(user, group);
}

static bool put_empty(const char *folder, size_t bytes) {
  char options[64];
  snprintf(options, sizeof options, "size=%zu,mode=1777", bytes);
  return mount("tarn-test", folder, "tmpfs", MS_NOSUID | MS_NODEV, options) ==
         0;
}

bool own_world_enter(size_t bytes) {
  if (!leave_others()) return false;
  if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return false;
  for (int i = 0; i < FOLDER_COUNT; i++) {
    if (!put_empty(FOLDERS[i], bytes)) return false;
  }
  return true;
}

// --- looking ---------------------------------------------------------------

static size_t count_entries(const char *path) {
  size_t count = 0;
  DIR *folder = opendir(path);
  require(folder != NULL);
  while (readdir(folder) != NULL)
    count++;
  closedir(folder);
  return count - 2;  // "." and ".."
}

// Lines behind the first. A kernel may have none of these.
static size_t count_objects(const char *path) {
  size_t lines = 0;
  FILE *list = fopen(path, "re");
  if (list == NULL) return 0;
  for (int c = getc(list); c != EOF; c = getc(list))
    if (c == '\n') lines++;
  fclose(list);
  return lines - 1;
}

size_t own_world_names(void) {
  size_t count = 0;
  for (int i = 0; i < FOLDER_COUNT; i++)
    count += count_entries(FOLDERS[i]);
  for (int i = 0; i < LIST_COUNT; i++)
    count += count_objects(LISTS[i]);
  return count;
}

// --- filling ---------------------------------------------------------------

static void fill(const char *folder) {
  static const char bytes[4096];
  char path[64];
  snprintf(path, sizeof path, "%s/full", folder);
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  require(fd >= 0);
  while (write(fd, bytes, sizeof bytes) > 0)
    continue;
  require(errno == ENOSPC);
  close(fd);
}

void own_world_fill(void) {
  for (int i = 0; i < FOLDER_COUNT; i++)
    fill(FOLDERS[i]);
}
