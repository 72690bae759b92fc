// Sets the affinity of threads, and keeps those that are only there to be busy.
#include "placement.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "stopwatch.h"
#include "tool.h"

enum { BUSY_NS = 100000, REST_NS = 400000 };

struct placement {
  cpu_set_t allowed;
  size_t count;
};

// ---------------------------------------------------------------------------
// Processors
// ---------------------------------------------------------------------------

// Where there are more processors than the set has room for, none is known.
placement *placement_create(void) {
  placement *p = tool_array(1, sizeof *p);
  if (sched_getaffinity(0, sizeof p->allowed, &p->allowed) == 0) {
    p->count = (size_t)CPU_COUNT(&p->allowed);
  }
  return p;
}

void placement_destroy(placement *p) {
  free(p);
}

static size_t processor_at(const placement *p, size_t number) {
  size_t left = number % p->count;
  size_t processor = 0;
  while (!CPU_ISSET(processor, &p->allowed) || left-- > 0)
    processor++;
  return processor;
}

// If that fails, a thread stays where the scheduler puts it.
void placement_pin(const placement *p, size_t number) {
  cpu_set_t one;
  if (p->count == 0) return;
  CPU_ZERO(&one);
  CPU_SET(processor_at(p, number), &one);
  (void)sched_setaffinity(0, sizeof one, &one);
}

void placement_unpin(const placement *p) {
  if (p->count == 0) return;
  (void)sched_setaffinity(0, sizeof p->allowed, &p->allowed);
}

// ---------------------------------------------------------------------------
// Hogs
// ---------------------------------------------------------------------------

typedef struct hog {
  hogs *all;
  size_t number;
  pthread_t thread;
} hog;

struct hogs {
  placement *where;
  atomic_bool end;
  size_t started;
  hog each[PLACEMENT_HOGS_MOST];
};

static void be_busy(long ns) {
  uint64_t begin = stopwatch_clock_ns();
  while (stopwatch_clock_ns() - begin < (uint64_t)ns)
    continue;
}

static void *disturb(void *context) {
  const hog *h = context;
  const struct timespec rest = {.tv_nsec = REST_NS};
  placement_pin(h->all->where, h->number);
  while (!atomic_load_explicit(&h->all->end, memory_order_relaxed)) {
    be_busy(BUSY_NS);
    nanosleep(&rest, NULL);
  }
  return NULL;
}

hogs *hogs_start(size_t count) {
  hogs *h = tool_array(1, sizeof *h);
  h->where = placement_create();
  for (; h->started < count; h->started++) {
    hog *next = &h->each[h->started];
    *next = (hog){.all = h, .number = h->started};
    if (pthread_create(&next->thread, NULL, disturb, next) != 0) {
      hogs_stop(h);
      return NULL;
    }
  }
  return h;
}

void hogs_stop(hogs *h) {
  if (h == NULL) return;
  atomic_store(&h->end, true);
  for (size_t i = 0; i < h->started; i++)
    pthread_join(h->each[i].thread, NULL);
  placement_destroy(h->where);
  free(h);
}
