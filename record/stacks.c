// Stacks: walked by libunwind where it is installed, else by the C library.
//
// libunwind remembers how to leave each function that it has seen, and so takes
// about a tenth of the time: measured with 21 frames, 0.3 us to 5.4. It is
// opened with its names kept to itself: it has functions called as the
// compiler's own unwinder has, which the program's exceptions must not find.
//
// A stack is known by the hash of its addresses, and of its frames of Python.
#include "record/stacks.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "record/modules.h"
#include "record/numbers.h"
#include "record/python_frames.h"
#include "record/python_stack.h"
#include "record/real.h"
#include "record/settings.h"
#include "record/span.h"

enum {
  ENTRIES = 1 << 21,  // 16 MiB of addresses
  OWN_MOST = 8,       // frames of the recorder itself
  FRAMES_MOST = TARN__LOG_MOST_FRAMES,
};

typedef int walk_stack(void **out_addresses, int count);

__thread unsigned stacks_in_callback;

static walk_stack *walk;
static numbers stacks;
static _Atomic uint64_t salt;

static span self;
static span walker;

bool stacks_is_walker(const void *address) {
  return span_has(&walker, address);
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
  self = span_of(&self);
  (void)numbers_begin(&stacks, ENTRIES);
  (void)backtrace(some, 2);
  walk = find_unwind();
  if (walk == NULL) {
    walk = backtrace;
  } else {
    walker = span_of(__extension__(void *) walk);
  }
  (void)walk(some, 2);
}

// ---------------------------------------------------------------------------
// Definitions
// ---------------------------------------------------------------------------

static uint64_t hash_of(void *const *addresses, int count) {
  uint64_t hash = atomic_load_explicit(&salt, memory_order_relaxed);
  for (int i = 0; i < count; i++)
    hash = numbers_mix(hash, (uintptr_t)addresses[i]);
  return hash;
}

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

// Without the recorder's own.
static int walk_calls(void **addresses, void **out_first[]) {
  walk_stack *way = stacks_in_callback == 0 ? walk : backtrace;
  int count = way(addresses, record_settings.frames + OWN_MOST);
  int first = 0;
  while (first < count && span_has(&self, addresses[first]))
    first++;
  *out_first = addresses + first;
  count -= first;
  return count < record_settings.frames ? count : record_settings.frames;
}

static uint64_t number_of(slot *mine, uint64_t hash, const python_stack *both) {
  bool is_new = false;
  uint64_t number = numbers_find(&stacks, hash, &is_new);
  if (!is_new) return number;
  modules_look(mine, both->addresses, both->address_count);
  if (both->frame_count == 0) {
    define(mine, number, both->addresses, both->address_count);
  } else {
    python_stack_define(mine, number, both);
  }
  return number;
}

// What takes room on the stack is apart, since a thread may have 16 KiB of it,
// and mostly needs less.

__attribute__((noinline)) static uint64_t number_with_python(
    slot *mine, uint64_t hash, void *const *addresses, int count) {
  python_frame frames[FRAMES_MOST];
  int of_python = python_frames_read(frames, record_settings.frames, &hash);
  const python_stack both = {addresses, count, frames, of_python};
  return number_of(mine, hash, &both);
}

// |addresses| has room for the frames that are wanted and for the own ones.
static uint64_t number_in(slot *mine, void **addresses) {
  void **first = NULL;
  int count = walk_calls(addresses, &first);
  if (count <= 0) return 0;
  uint64_t hash = hash_of(first, count);
  if (python_frames_are_read())
    return number_with_python(mine, hash, first, count);
  const python_stack alone = {first, count, NULL, 0};
  return number_of(mine, hash, &alone);
}

__attribute__((noinline)) static uint64_t number_deep(slot *mine) {
  void *addresses[FRAMES_MOST + OWN_MOST];
  return number_in(mine, addresses);
}

__attribute__((noinline)) static uint64_t number_shallow(slot *mine) {
  void *addresses[SETTINGS_FRAMES + OWN_MOST];
  return number_in(mine, addresses);
}

uint64_t stacks_number(slot *mine) {
  if (stacks.table == NULL) return 0;
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
  if (stacks.table == NULL) return;
  numbers_forget(&stacks);
  walk = backtrace;
}
