// What the library has of this process at a moment: its own memory, by an
// allocator that counts; files in memory, by the kernel's list of mappings;
// messages, by a library that is preloaded.
#include <dirent.h>
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alltoallv.h"
#include "footprint_bench.h"

// ---------------------------------------------------------------------------
// Memory of its own
// ---------------------------------------------------------------------------

// Threads of the library allocate too.
static struct {
  atomic_bool watches;
  atomic_size_t now;
  atomic_size_t most;
} memory;

static void *allocate(void *context, size_t size, size_t align) {
  void *bytes = NULL;
  (void)context;
  if (posix_memalign(&bytes, align, size) != 0) return NULL;
  size_t now = atomic_fetch_add(&memory.now, size) + size;
  size_t most = atomic_load(&memory.most);
  while (now > most &&
         !atomic_compare_exchange_weak(&memory.most, &most, now)) {
  }
  return bytes;
}

static void deallocate(void *context, void *bytes, size_t size, size_t align) {
  (void)context, (void)align;
  atomic_fetch_sub(&memory.now, size);
  free(bytes);
}

void footprint_watch(void) {
  const tarn_host_allocator counting = {.struct_size = sizeof counting,
                                        .allocate = allocate,
                                        .deallocate = deallocate};
  atomic_store(&memory.watches, tarn_host_allocator_set(&counting) == TARN_OK);
}

static size_t take_peak(void) {
  if (!atomic_load(&memory.watches)) return 0;
  return atomic_exchange(&memory.most, atomic_load(&memory.now));
}

// ---------------------------------------------------------------------------
// Memory that is shared
// ---------------------------------------------------------------------------

// Bytes of a line of /proc/self/maps, if it is of one of the library's files.
static size_t bytes_of(const char *line) {
  char *dash = NULL;
  if (strstr(line, "/memfd:tarn") == NULL) return 0;
  unsigned long long begin = strtoull(line, &dash, 16);
  if (*dash != '-') return 0;
  return (size_t)(strtoull(dash + 1, NULL, 16) - begin);
}

static size_t count_mapped(void) {
  char line[512];
  size_t bytes = 0;
  FILE *in = fopen("/proc/self/maps", "re");
  while (in != NULL && fgets(line, sizeof line, in) != NULL)
    bytes += bytes_of(line);
  if (in != NULL) (void)fclose(in);
  return bytes;
}

// Its own of the folder included.
static size_t count_descriptors(void) {
  size_t count = 0;
  DIR *folder = opendir("/proc/self/fd");
  while (folder != NULL && readdir(folder) != NULL)
    count++;
  if (folder != NULL) (void)closedir(folder);
  return count;
}

// ---------------------------------------------------------------------------
// All
// ---------------------------------------------------------------------------

static const uint64_t *find_sends(void) {
  return dlsym(RTLD_DEFAULT, ALLTOALLV_SENDS);
}

bool footprint_counts_messages(void) {
  return find_sends() != NULL;
}

footprint_view footprint_look(void) {
  const uint64_t *sends = find_sends();
  return (footprint_view){.messages = sends != NULL ? *sends : 0,
                          .host_bytes = tarn_host_memory(),
                          .peak_bytes = take_peak(),
                          .mapped_bytes = count_mapped(),
                          .descriptors = count_descriptors()};
}
