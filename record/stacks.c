// Stacks: walked by libunwind where it is installed, else by the C library.
//
// libunwind remembers how to leave each function that it has seen, and so takes
// about a tenth of the time: measured with 21 frames, 0.3 us to 5.4. It is
// opened with its names kept to itself: it has functions called as the
// compiler's own unwinder has, which the program's exceptions must not find.
//
// A stack is known by the hash of its addresses. The table is open-addressed
// and only ever filled: an entry is 40 bits of the hash and 24 of the number.
#include "record/stacks.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>

#include "record/modules.h"
#include "record/real.h"
#include "record/settings.h"

enum {
  ENTRIES = 1 << 21,   // 16 MiB of addresses; memory as they are used
  FULL = ENTRIES / 2,  // numbers from here on are not given
  NUMBER_BITS = 24,
  OWN_MOST = 8,  // frames of the recorder itself
  FRAMES_MOST = TARN__LOG_MOST_FRAMES,
};

typedef int walk_stack(void **out_addresses, int count);

__thread unsigned stacks_in_callback;

static walk_stack *walk;
static _Atomic uint64_t *table;
static _Atomic uint64_t numbers;
static _Atomic uint64_t salt;

// A file in memory, from its first byte to its last.
typedef struct span {
  const unsigned char *begin;
  size_t bytes;
} span;

static span self;
static span walker;

static bool is_in(const span *s, const void *address) {
  return (uintptr_t)address - (uintptr_t)s->begin < s->bytes;
}

bool stacks_is_walker(const void *address) {
  return is_in(&walker, address);
}

// Of the file that |address| is in; its first bytes say where it ends.
static span measure(const void *address) {
  Dl_info info;
  if (dladdr(address, &info) == 0) return (span){0};
  const unsigned char *begin = info.dli_fbase;
  const ElfW(Ehdr) *head = info.dli_fbase;
  const ElfW(Phdr) *parts = (const void *)(begin + head->e_phoff);
  size_t bytes = 0;
  for (size_t i = 0; i < head->e_phnum; i++) {
    if (parts[i].p_type == PT_LOAD) bytes = parts[i].p_vaddr + parts[i].p_memsz;
  }
  return (span){begin, bytes};
}

// ---------------------------------------------------------------------------
// Ways to walk
// ---------------------------------------------------------------------------

#if defined(__x86_64__)
#define ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#define ARCHITECTURE "unknown"
#endif

typedef void flush_cache(void *space, uintptr_t low, uintptr_t high);

static struct {
  flush_cache *flush;
  void **space;
} unwind;

static walk_stack *find_unwind(void) {
  void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) return NULL;
  unwind.flush = __extension__(flush_cache *) real()->dlsym(
      library, "_U" ARCHITECTURE "_flush_cache");
  unwind.space = real()->dlsym(library, "_UL" ARCHITECTURE "_local_addr_space");
  return __extension__(walk_stack *) real()->dlsym(library, "unw_backtrace");
}

// The first walk loads what it needs, which takes memory of the heap.
void stacks_begin(void) {
  void *some[2];
  if (!record_settings.stacks) return;
  self = measure(&self);
  table = real()->mmap(NULL, ENTRIES * sizeof *table, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (table == MAP_FAILED) table = NULL;
  (void)backtrace(some, 2);
  walk = find_unwind();
  if (walk == NULL) {
    walk = backtrace;
  } else {
    walker = measure(__extension__(void *) walk);
  }
  (void)walk(some, 2);
}

// ---------------------------------------------------------------------------
// The table
// ---------------------------------------------------------------------------

static uint64_t hash_of(void *const *addresses, int count) {
  uint64_t hash = atomic_load_explicit(&salt, memory_order_relaxed);
  for (int i = 0; i < count; i++) {
    hash = (hash ^ (uintptr_t)addresses[i]) * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= hash >> 29;
  }
  return hash;
}

static const uint64_t number_mask = (UINT64_C(1) << NUMBER_BITS) - 1;

// Sets |*out_new| if the number is not defined yet. 0: the table is full.
static uint64_t intern(uint64_t hash, bool *out_new) {
  uint64_t key = hash & ~number_mask;
  uint64_t number = 0;
  for (size_t i = hash % ENTRIES, left = ENTRIES; left > 0; left--) {
    uint64_t entry = atomic_load_explicit(&table[i], memory_order_relaxed);
    if (entry == 0) {
      if (number == 0) number = 1 + atomic_fetch_add(&numbers, 1);
      if (number >= FULL) return 0;
      *out_new =
          atomic_compare_exchange_strong(&table[i], &entry, key | number);
      if (*out_new) return number;
    }
    if ((entry & ~number_mask) == key) return entry & number_mask;
    i = (i + 1) % ENTRIES;
  }
  return 0;
}

// ---------------------------------------------------------------------------
// Definitions
// ---------------------------------------------------------------------------

static void define(slot *mine, uint64_t number, void *const *addresses,
                   int count) {
  uint64_t before = 0;
  size_t most = (size_t)(count + 3) * TARN__LOG_MOST_NUMBER;
  if (!slots_have_room(mine, most, NULL)) return;
  unsigned char *at =
      tarn__log_put_definition(&mine->writer, TARN__LOG_RAW_STACK, number);
  at = tarn__log_put_number(at, (uint64_t)count);
  for (int i = 0; i < count; i++) {
    at = tarn__log_put_number(
        at, tarn__log_zigzag((uintptr_t)addresses[i], before));
    before = (uintptr_t)addresses[i];
  }
  tarn__log_publish(&mine->writer, at);
}

// |addresses| has room for the frames that are wanted and for the own ones.
static uint64_t number_in(slot *mine, void **addresses) {
  bool is_new = false;
  walk_stack *way = stacks_in_callback == 0 ? walk : backtrace;
  int count = way(addresses, record_settings.frames + OWN_MOST);
  int first = 0;
  while (first < count && is_in(&self, addresses[first]))
    first++;
  count -= first;
  if (count > record_settings.frames) count = record_settings.frames;
  if (count <= 0) return 0;
  uint64_t number = intern(hash_of(addresses + first, count), &is_new);
  if (is_new) {
    modules_look(mine, addresses + first, count);
    define(mine, number, addresses + first, count);
  }
  return number;
}

// Apart, since a thread may have a stack of 16 KiB, and mostly needs less.
__attribute__((noinline)) static uint64_t number_deep(slot *mine) {
  void *addresses[FRAMES_MOST + OWN_MOST];
  return number_in(mine, addresses);
}

__attribute__((noinline)) static uint64_t number_shallow(slot *mine) {
  void *addresses[SETTINGS_FRAMES + OWN_MOST];
  return number_in(mine, addresses);
}

uint64_t stacks_number(slot *mine) {
  if (table == NULL) return 0;
  return record_settings.frames <= SETTINGS_FRAMES ? number_shallow(mine)
                                                   : number_deep(mine);
}

void stacks_code_has_gone(void) {
  if (walk == NULL) return;
  atomic_fetch_add(&salt, 1);
  if (unwind.flush != NULL && unwind.space != NULL)
    unwind.flush(*unwind.space, 0, 0);
}

void stacks_forget(void) {
  if (table == NULL) return;
  (void)madvise(table, ENTRIES * sizeof *table, MADV_DONTNEED);
  atomic_store(&numbers, 0);
  walk = backtrace;
}
