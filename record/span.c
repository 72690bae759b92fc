// Spans: the first bytes of a file in memory say where it ends.
#include "record/span.h"

#include <dlfcn.h>
#include <link.h>

span span_of(const void *address) {
  Dl_info info;
  if (dladdr(address, &info) == 0) return (span){0};
  const unsigned char *begin = info.dli_fbase;
  const ElfW(Ehdr) *head = info.dli_fbase;
  const ElfW(Phdr) *parts = (const void *)(begin + head->e_phoff);
  uintptr_t base = head->e_type == ET_EXEC ? (uintptr_t)begin : 0;
  size_t bytes = 0;
  for (size_t i = 0; i < head->e_phnum; i++) {
    if (parts[i].p_type == PT_LOAD)
      bytes = parts[i].p_vaddr + parts[i].p_memsz - base;
  }
  return (span){begin, bytes};
}
