// Making the pool, entering it, and forks.
//
// The library inside is this one's own. Its bookkeeping comes from the C
// library by the pointers of real.h, and what lives in it lives on in children
// of fork, which have a copy of all memory. At a fork:
//
//   the gate is closed, which is the lock below: nobody new comes to the pool
//   ─► locks of the library ─► the pool is at rest (pool/hold.h) ─► fork
//   ─► all is released, in the parent and in the child ─► the gate opens
//
// The gate is a matter of fairness: without it, threads that keep the pool busy
// could hold a fork up for ever.
#include "preload/making.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <tarn/account.h>
#include <tarn/snapshot.h>

#include "base/os.h"
#include "cpu/cpu.h"
#include "pool/hold.h"
#include "preload/pages.h"
#include "preload/real.h"
#include "preload/report.h"
#include "preload/settings.h"

static struct {
  pthread_mutex_t gate;  // guards the making of the pool; taken around a fork
  atomic_bool closed;
  _Atomic(tarn_pool *) pool;
  atomic_bool failed;
  bool fills;
} all = {.gate = PTHREAD_MUTEX_INITIALIZER};

static __thread unsigned inside;
static __thread int error_outside;
// Each block holds the address of the next. A signal handler may add one at any
// time.
static __thread _Atomic(void *) deferred;

// --- making it -------------------------------------------------------------

static void *allocate(void *context, size_t size, size_t align) {
  (void)context;
  void *ptr = NULL;
  if (align <= _Alignof(max_align_t)) return real.malloc(size);
  return real.posix_memalign(&ptr, align, size) == 0 ? ptr : NULL;
}

static void deallocate(void *context, void *ptr, size_t size, size_t align) {
  (void)context;
  (void)size;
  (void)align;
  real.free(ptr);
}

// Without tags, since the program has none. A pool that cannot do without them
// serves as well.
static void count_less(tarn_pool *pool) {
  if (tarn_pool_account(pool, TARN_COUNT_PEAKS) == TARN_OK) return;
  settings_say("the pool counts tags: %s", tarn_last_error());
}

static void make(void) {
  tarn_pool_options options = {.struct_size = sizeof options};
  tarn_pool *pool = NULL;
  const char *debug = secure_getenv("TARN_POOL_DEBUG");
  all.fills = debug != NULL && *debug != '\0';
  tarn_status status = tarn_pool_create(TARN_HOST, &options, &pool);
  if (status == TARN_OK) {
    count_less(pool);
    tarn__pool_hold(pool);
    atomic_store(&all.pool, pool);
    return;
  }
  settings_say("no pool, so all requests are the C library's: %s",
               tarn_last_error());
  atomic_store(&all.failed, true);
  atomic_store(&settings_from, SIZE_MAX);
}

__attribute__((cold, noinline)) static tarn_pool *need_pool(void) {
  if (atomic_load(&all.failed)) return NULL;
  pthread_mutex_lock(&all.gate);
  if (atomic_load(&all.pool) == NULL && !atomic_load(&all.failed)) make();
  pthread_mutex_unlock(&all.gate);
  return atomic_load(&all.pool);
}

// --- entering --------------------------------------------------------------

__attribute__((cold, noinline)) static void wait_at_gate(void) {
  pthread_mutex_lock(&all.gate);
  pthread_mutex_unlock(&all.gate);
}

bool making_enter(tarn_pool **out_pool) {
  if (inside != 0) return false;
  inside = 1;
  error_outside = errno;
  if (atomic_load_explicit(&all.closed, memory_order_relaxed)) wait_at_gate();
  tarn_pool *pool = atomic_load_explicit(&all.pool, memory_order_acquire);
  *out_pool = pool != NULL ? pool : need_pool();
  return true;
}

__attribute__((cold, noinline)) static void free_deferred(void) {
  tarn_pool *pool = atomic_load(&all.pool);
  void *next = NULL;
  for (void *block = atomic_exchange(&deferred, NULL); block != NULL;
       block = next) {
    memcpy(&next, block, sizeof next);
    (void)tarn_pool_free_address(pool, tarn_addr_of(block), NULL);
  }
}

// What a handler adds behind this look, the next call that is inside frees.
void making_leave(void) {
  if (__builtin_expect(
          atomic_load_explicit(&deferred, memory_order_relaxed) != NULL, 0)) {
    free_deferred();
  }
  errno = error_outside;
  inside = 0;
}

void making_defer(void *block) {
  void *first = atomic_load(&deferred);
  do {
    memcpy(block, &first, sizeof first);
  } while (!atomic_compare_exchange_weak(&deferred, &first, block));
}

bool making_is_made(void) {
  return atomic_load_explicit(&all.pool, memory_order_relaxed) != NULL;
}

bool making_fills(void) {
  return all.fills;
}

// --- forks -----------------------------------------------------------------

static void close_gate(void) {
  pthread_mutex_lock(&all.gate);
  inside++;
  error_outside = errno;
  atomic_store(&all.closed, true);
}

static void open_gate(void) {
  atomic_store(&all.closed, false);
  pthread_mutex_unlock(&all.gate);
  making_leave();
}

static void open_gate_in_child(void) {
  report_forget(atomic_load(&all.pool));
  open_gate();
}

// --- the beginning ---------------------------------------------------------

static void note_pages(uint64_t address, size_t size, tarn__cpu_pages what) {
  if (what == TARN__CPU_PAGES_GONE) {
    pages_drop(address, size);
  } else {
    pages_hold(address, size, what == TARN__CPU_PAGES_FRESH);
  }
}

static void begin_why(const settings *s) {
  if (s->why_signal == 0) return;
  tarn_status status = tarn_pool_snapshot_on_signal(
      s->why_signal, TARN_TRACE_FORMAT_TARN, s->why_file);
  if (status != TARN_OK) {
    settings_say("TARN_PRELOAD_WHY: %s", tarn_last_error());
  }
}

// Before main. Requests until then are the C library's.
__attribute__((constructor)) static void begin(void) {
  static const tarn_host_allocator allocator = {
      .struct_size = sizeof allocator,
      .allocate = allocate,
      .deallocate = deallocate,
  };
  settings_read();
  if (tarn_host_allocator_set(&allocator) != TARN_OK) return;
  tarn__os_live_on();
  tarn__cpu_watch(note_pages);
  if (pthread_atfork(close_gate, open_gate, open_gate_in_child) != 0) return;
  atomic_store(&settings_from, settings_now()->from);
  begin_why(settings_now());
}

__attribute__((destructor)) static void end(void) {
  tarn_pool *pool = atomic_load(&all.pool);
  if (inside != 0) return;
  inside = 1;
  report_write(pool);
  inside = 0;
}
