// The victim: threads, and what they leave.
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "victim.h"

// --- blocks that go from thread to thread ----------------------------------

enum { THREADS = 8, ROUNDS = 1000, PLACES = 64 };

// A block and what is painted there; taken and put by exchange.
static _Atomic(void *) places[PLACES];

// Its size, and the seed: in front of what is painted.
typedef struct head {
  size_t size;
  uint64_t seed;
} head;

static void *make_block(uint64_t *random) {
  uint64_t n = victim_random(random);
  head h = {.size = 65536 + n % (512 * KIB), .seed = n};
  unsigned char *block =
      opaque(n & 1 << 20 ? malloc(h.size) : calloc(1, h.size));
  must(block != NULL);
  memcpy(block, &h, sizeof h);
  paint(block + sizeof h, h.size - sizeof h, h.seed);
  return block;
}

static void end_block(unsigned char *block) {
  head h;
  if (block == NULL) return;
  memcpy(&h, block, sizeof h);
  must(is_painted(block + sizeof h, h.size - sizeof h, h.seed));
  free(block);
}

static void *pass_on(void *argument) {
  uint64_t random = (uintptr_t)argument;
  for (int i = 0; i < ROUNDS; i++) {
    size_t place = victim_random(&random) % PLACES;
    end_block(atomic_exchange(&places[place], make_block(&random)));
  }
  return NULL;
}

static void run_threads(int count, void *(*run)(void *)) {
  pthread_t *threads = calloc((size_t)count, sizeof *threads);
  pthread_attr_t small;
  must(threads != NULL && pthread_attr_init(&small) == 0);
  must(pthread_attr_setstacksize(&small, 128 * KIB) == 0);
  for (int i = 0; i < count; i++) {
    must(pthread_create(&threads[i], &small, run, (void *)(uintptr_t)(i + 1)) ==
         0);
  }
  for (int i = 0; i < count; i++)
    must(pthread_join(threads[i], NULL) == 0);
  pthread_attr_destroy(&small);
  free(threads);
}

void mode_threads(void) {
  run_threads(THREADS, pass_on);
  for (int i = 0; i < PLACES; i++)
    end_block(atomic_load(&places[i]));
}

// --- a thousand at once ----------------------------------------------------

static pthread_barrier_t all_here;

static void *come_and_go(void *argument) {
  uint64_t random = (uintptr_t)argument;
  size_t place = (uintptr_t)argument % PLACES;
  pthread_barrier_wait(&all_here);
  for (int i = 0; i < 5; i++)
    end_block(atomic_exchange(&places[place], make_block(&random)));
  pthread_barrier_wait(&all_here);
  return NULL;
}

void mode_thousand(void) {
  enum { MANY = 1000 };
  must(pthread_barrier_init(&all_here, NULL, MANY) == 0);
  run_threads(MANY, come_and_go);
  for (int i = 0; i < PLACES; i++)
    end_block(atomic_load(&places[i]));
}

// --- at the end of a thread, and of the program ----------------------------

static pthread_key_t key;
static atomic_int ended;

// Destructors come up to four times.
static void at_end_of_thread(void *block) {
  uint64_t random = 5;
  int round = atomic_fetch_add(&ended, 1);
  end_block(block);
  end_block(make_block(&random));
  if (round % 3 != 2) must(pthread_setspecific(key, make_block(&random)) == 0);
}

static void *leave_block(void *argument) {
  uint64_t random = (uintptr_t)argument;
  must(pthread_setspecific(key, make_block(&random)) == 0);
  return NULL;
}

static void *kept;

static void at_end_of_program(void) {
  uint64_t random = 9;
  end_block(kept);
  end_block(make_block(&random));
}

void mode_last(void) {
  uint64_t random = 1;
  must(pthread_key_create(&key, at_end_of_thread) == 0);
  for (int i = 0; i < 300; i++)
    run_threads(1, leave_block);
  must(atomic_load(&ended) >= 300);
  kept = make_block(&random);
  must(atexit(at_end_of_program) == 0);
}
