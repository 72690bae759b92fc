// The head of a program, as far as the dynamic linker is concerned.
#include "preload.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

// The first file in the folders of PATH that can be run under that name.
static bool search(const char *program, char out[PATH_MAX]) {
  const char *at = getenv("PATH");
  while (at != NULL && *at != '\0') {
    int length = (int)strcspn(at, ":");
    snprintf(out, PATH_MAX, "%.*s%s%s", length, at, length > 0 ? "/" : "",
             program);
    if (access(out, X_OK) == 0) return true;
    at += length;
    if (*at == ':') at++;
  }
  return false;
}

static bool find(const char *program, char out[PATH_MAX]) {
  if (strchr(program, '/') == NULL) return search(program, out);
  return snprintf(out, PATH_MAX, "%s", program) < PATH_MAX;
}

static bool has_rights_of_its_own(int fd) {
  struct stat found;
  if (fstat(fd, &found) != 0) return false;
  if ((found.st_mode & S_ISUID) != 0 && found.st_uid != geteuid()) return true;
  if ((found.st_mode & S_ISGID) != 0 && found.st_gid != getegid()) return true;
  return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

// Whether the program asks for a dynamic linker; true where that cannot be
// read.
static bool has_interpreter(int fd, const Elf64_Ehdr *head) {
  for (unsigned i = 0; i < head->e_phnum; i++) {
    Elf64_Phdr part;
    off_t at = (off_t)(head->e_phoff + i * sizeof part);
    if (pread(fd, &part, sizeof part, at) != (ssize_t)sizeof part) return true;
    if (part.p_type == PT_INTERP) return true;
  }
  return false;
}

static const char *refused(int fd) {
  Elf64_Ehdr head;
  if (pread(fd, &head, sizeof head, 0) != (ssize_t)sizeof head ||
      memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) {
    return NULL;  // a script, say
  }
  if (head.e_ident[EI_CLASS] != ELFCLASS64) return "is no 64-bit program";
  if (!has_interpreter(fd, &head)) return "is linked statically";
  if (has_rights_of_its_own(fd)) return "runs with rights of its own (setuid)";
  return NULL;
}

const char *preload_refused(const char *program) {
  char path[PATH_MAX];
  if (!find(program, path)) return NULL;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return NULL;
  const char *reason = refused(fd);
  close(fd);
  return reason;
}
