#include "support/faults.h"

#include <check.h>
#include <pthread.h>
#include <stdlib.h>

static struct {
  pthread_mutex_t lock;  // guards all below
  size_t until;          // calls until the fault; 0: not armed
  faults_mode mode;
  bool struck;
  size_t total;
  size_t runs;
  size_t calls;
  size_t held;
  size_t peak;
} faults = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool strike_locked(void) {
  if (faults.until == 0) return false;
  if (faults.until > 1) {
    faults.until--;
    return false;
  }
  if (faults.mode == FAULTS_ONCE) faults.until = 0;
  faults.struck = true;
  faults.total++;
  return true;
}

bool faults_strike(void) {
  pthread_mutex_lock(&faults.lock);
  bool struck = strike_locked();
  pthread_mutex_unlock(&faults.lock);
  return struck;
}

static void *allocate(void *context, size_t size, size_t align) {
  (void)context;
  pthread_mutex_lock(&faults.lock);
  faults.calls++;
  bool struck = strike_locked();
  pthread_mutex_unlock(&faults.lock);
  if (struck) return NULL;
  void *ptr = NULL;
  if (posix_memalign(&ptr, align, size) != 0) return NULL;
  pthread_mutex_lock(&faults.lock);
  faults.held += size;
  if (faults.held > faults.peak) faults.peak = faults.held;
  pthread_mutex_unlock(&faults.lock);
  return ptr;
}

static void deallocate(void *context, void *ptr, size_t size, size_t align) {
  (void)context;
  (void)align;
  pthread_mutex_lock(&faults.lock);
  faults.held -= size;
  pthread_mutex_unlock(&faults.lock);
  free(ptr);
}

void faults_install(void) {
  tarn_host_allocator allocator = {
      .struct_size = sizeof allocator,
      .allocate = allocate,
      .deallocate = deallocate,
  };
  if (tarn_host_allocator_set(&allocator) != TARN_OK) abort();
}

void faults_arm(size_t n, faults_mode mode) {
  pthread_mutex_lock(&faults.lock);
  faults.until = n;
  faults.mode = mode;
  faults.struck = false;
  pthread_mutex_unlock(&faults.lock);
}

bool faults_disarm(void) {
  pthread_mutex_lock(&faults.lock);
  faults.until = 0;
  bool struck = faults.struck;
  if (struck) faults.runs++;
  pthread_mutex_unlock(&faults.lock);
  return struck;
}

size_t faults_total(void) {
  return faults.total;
}

size_t faults_runs(void) {
  return faults.runs;
}

size_t faults_calls(void) {
  pthread_mutex_lock(&faults.lock);
  size_t calls = faults.calls;
  pthread_mutex_unlock(&faults.lock);
  return calls;
}

void faults_peak_reset(void) {
  pthread_mutex_lock(&faults.lock);
  faults.peak = faults.held;
  pthread_mutex_unlock(&faults.lock);
}

size_t faults_peak(void) {
  pthread_mutex_lock(&faults.lock);
  size_t peak = faults.peak;
  pthread_mutex_unlock(&faults.lock);
  return peak;
}

size_t faults_sweep(void (*scenario)(void *context), void *context) {
  size_t before = faults_total();
  for (int mode = FAULTS_ONCE; mode <= FAULTS_FROM_NOW; mode++) {
    for (size_t n = 1;; n++) {
      size_t held = tarn_host_memory();
      faults_arm(n, (faults_mode)mode);
      scenario(context);
      bool struck = faults_disarm();
      // Not ck_assert_msg, which takes longer than many a scenario.
      if (tarn_host_memory() != held) {
        ck_abort_msg("fault %zu (mode %d): %zu bytes leaked", n, mode,
                     tarn_host_memory() - held);
      }
      if (!struck) break;
    }
  }
  return faults_total() - before;
}
