// A program, as far as the dynamic linker is concerned.
#include "preload.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static int open_program(const char *program) {
  char path[PATH_MAX];
  if (!find(program, path)) return -1;
  return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

const char *preload_refused(const char *program) {
  int fd = open_program(program);
  if (fd < 0) return NULL;
  const char *reason = refused(fd);
  close(fd);
  return reason;
}

// --- its functions ---------------------------------------------------------

// The file as a whole, mapped; what is read of it is checked against |size|.
typedef struct image {
  const unsigned char *bytes;
  size_t size;
} image;

static bool holds(const image *file, uint64_t at, uint64_t size) {
  return at <= file->size && size <= file->size - at;
}

static bool is_malloc(const image *file, const Elf64_Sym *symbol,
                      const Elf64_Shdr *names) {
  static const char wanted[] = "malloc";
  if (symbol->st_shndx == SHN_UNDEF ||
      ELF64_ST_TYPE(symbol->st_info) != STT_FUNC ||
      symbol->st_name >= names->sh_size) {
    return false;
  }
  uint64_t at = names->sh_offset + symbol->st_name;
  return holds(file, at, sizeof wanted) &&
         memcmp(file->bytes + at, wanted, sizeof wanted) == 0;
}

static bool read_section(const image *file, const Elf64_Ehdr *head, size_t i,
                         Elf64_Shdr *out) {
  uint64_t at = head->e_shoff + i * sizeof *out;
  if (i >= head->e_shnum || head->e_shentsize != sizeof *out ||
      !holds(file, at, sizeof *out)) {
    return false;
  }
  memcpy(out, file->bytes + at, sizeof *out);
  return true;
}

static bool table_has_malloc(const image *file, const Elf64_Ehdr *head,
                             const Elf64_Shdr *table) {
  Elf64_Shdr names;
  Elf64_Sym symbol;
  if (!read_section(file, head, table->sh_link, &names) ||
      !holds(file, table->sh_offset, table->sh_size)) {
    return false;
  }
  for (uint64_t at = 0; at + sizeof symbol <= table->sh_size;
       at += sizeof symbol) {
    memcpy(&symbol, file->bytes + table->sh_offset + at, sizeof symbol);
    if (is_malloc(file, &symbol, &names)) return true;
  }
  return false;
}

static bool image_has_malloc(const image *file) {
  Elf64_Ehdr head;
  Elf64_Shdr section;
  if (file->size < sizeof head) return false;
  memcpy(&head, file->bytes, sizeof head);
  if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
      head.e_ident[EI_CLASS] != ELFCLASS64) {
    return false;
  }
  for (size_t i = 0; read_section(file, &head, i, &section); i++) {
    bool is_table =
        section.sh_type == SHT_SYMTAB || section.sh_type == SHT_DYNSYM;
    if (is_table && table_has_malloc(file, &head, &section)) return true;
  }
  return false;
}

bool preload_has_malloc(const char *program) {
  struct stat info;
  int fd = open_program(program);
  if (fd < 0) return false;
  bool has = false;
  if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0) {
    image file = {.size = (size_t)info.st_size};
    void *bytes = mmap(NULL, file.size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (bytes != MAP_FAILED) {
      file.bytes = bytes;
      has = image_has_malloc(&file);
      munmap(bytes, file.size);
    }
  }
  close(fd);
  return has;
}
