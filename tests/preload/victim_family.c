// The victim: every function of the heap, for itself and mixed.
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "victim.h"

// --- each function ---------------------------------------------------------

static void check_block(void *address, size_t size, size_t align) {
  must(address != NULL);
  must((uintptr_t)address % align == 0);
  must(malloc_usable_size(address) >= size);
  paint(address, malloc_usable_size(address), size);
  must(is_painted(address, malloc_usable_size(address), size));
}

static void check_aligned(size_t align) {
  void *address = opaque(memalign(align, LARGE));
  check_block(address, LARGE, align);
  free(address);
  address = opaque(aligned_alloc(align, align * 8 + LARGE));
  check_block(address, align * 8 + LARGE, align);
  free(address);
  must(posix_memalign(&address, align < sizeof address ? sizeof address : align,
                      LARGE) == 0);
  check_block(address, LARGE, align);
  free(address);
}

static void check_resizing(void) {
  unsigned char *p = opaque(malloc(LARGE));
  memset(p, 5, LARGE);
  p = opaque(realloc(p, 3 * LARGE));
  must(p[0] == 5 && p[LARGE - 1] == 5);
  memset(p, 6, 3 * LARGE);
  p = opaque(realloc(p, 2 * LARGE));
  must(p[0] == 6 && p[2 * LARGE - 1] == 6);
  p = opaque(realloc(p, 100));
  must(p[0] == 6 && p[99] == 6);
  p = opaque(reallocarray(p, LARGE, 1));
  must(p[0] == 6 && p[99] == 6);
  check_block(p, LARGE, 16);
  must(opaque(realloc(p, 0)) == NULL);
  p = opaque(realloc(NULL, LARGE));
  check_block(p, LARGE, 16);
  free(p);
}

static void check_refusals(void) {
  volatile size_t most = SIZE_MAX;
  void *p = opaque(malloc(LARGE));
  void *untouched = &p;
  errno = 0;
  must(opaque(malloc(most / 2)) == NULL && errno == ENOMEM);
  errno = 0;
  must(opaque(malloc(most)) == NULL && errno == ENOMEM);
  errno = 0;
  must(opaque(calloc(most / 2, 4)) == NULL && errno == ENOMEM);
  errno = 0;
  must(opaque(realloc(p, most / 2)) == NULL && errno == ENOMEM);
  errno = 0;
  must(opaque(reallocarray(p, most / 2, 4)) == NULL && errno == ENOMEM);
  must(posix_memalign(&untouched, 24, LARGE) == EINVAL && untouched == &p);
  must(posix_memalign(&untouched, 2, LARGE) == EINVAL && untouched == &p);
  check_block(p, LARGE, 16);
  errno = 77;
  free(p);
  free(NULL);
  must(errno == 77);
  must(malloc_usable_size(NULL) == 0);
}

void mode_family(void) {
  void *p = opaque(malloc(LARGE));
  check_block(p, LARGE, 16);
  free(p);
  p = opaque(calloc(LARGE, 3));
  must(is_zero(p, 3 * (size_t)LARGE));
  check_block(p, 3 * (size_t)LARGE, 16);
  free(p);
  for (size_t align = 1; align <= 4 * MIB; align *= 2)
    check_aligned(align);
  volatile size_t odd = 48;  // glibc takes the next power of two
  p = opaque(memalign(odd, LARGE));
  check_block(p, LARGE, 16);
  free(p);
  p = opaque(valloc(LARGE));
  check_block(p, LARGE, 4096);
  free(p);
  p = opaque(pvalloc(LARGE));
  check_block(p, LARGE, 4096);
  free(p);
  free(opaque(malloc(0)));
  check_resizing();
  check_refusals();
}

// --- mixed -----------------------------------------------------------------

// A block, and what is written in it.
typedef struct slot {
  void *address;
  size_t size;
  uint64_t seed;
} slot;

static size_t any_size(uint64_t *random) {
  uint64_t n = victim_random(random);
  size_t sizes[] = {16 + n % 4096, 60000 + n % 20000, n % (4 * MIB) + 1,
                    (1 + n % 64) * 65536};
  return sizes[(n >> 40) % 4];
}

static void check(const slot *s) {
  must(is_painted(s->address, s->size, s->seed));
}

static void drop(slot *s) {
  if (s->address == NULL) return;
  check(s);
  free(s->address);
  s->address = NULL;
}

static void fill(slot *s, uint64_t seed) {
  s->seed = seed;
  paint(s->address, s->size, seed);
}

static void take(slot *s, uint64_t *random) {
  uint64_t n = victim_random(random);
  s->size = any_size(random);
  if (n % 3 == 0) {
    s->address = opaque(calloc(1, s->size));
    must(s->address != NULL && is_zero(s->address, s->size));
  } else if (n % 3 == 1) {
    s->address = opaque(aligned_alloc((size_t)16 << n / 3 % 10, s->size));
  } else {
    s->address = opaque(malloc(s->size));
  }
  must(s->address != NULL);
  fill(s, n);
}

// What was in both sizes stays.
static void resize(slot *s, uint64_t *random) {
  size_t size = any_size(random);
  check(s);
  memset(s->address, (int)(size & 127), s->size);
  unsigned char *moved = opaque(realloc(s->address, size));
  size_t both = size < s->size ? size : s->size;
  must(moved != NULL);
  must(moved[0] == (size & 127) && memcmp(moved, moved + 1, both - 1) == 0);
  *s = (slot){.address = moved, .size = size};
  fill(s, size);
}

void mode_random(void) {
  enum { SLOTS = 40, STEPS = 1500 };
  slot slots[SLOTS] = {{.address = NULL}};
  uint64_t random = 1;
  for (int i = 0; i < STEPS; i++) {
    uint64_t n = victim_random(&random);
    slot *s = &slots[n % SLOTS];
    if (s->address != NULL && n >> 32 & 1) {
      resize(s, &random);
    } else {
      drop(s);
      take(s, &random);
    }
  }
  for (size_t i = 0; i < SLOTS; i++)
    drop(&slots[i]);
}

// --- large and hardly used -------------------------------------------------

// calloc of more than is ever touched: neither fresh memory nor memory that was
// used before becomes resident.
void mode_sparse(void) {
  const size_t size = (size_t)400 * MIB;
  size_t before = resident();
  unsigned char *p = opaque(calloc(1, size));
  must(p != NULL && p[0] == 0 && p[size / 2] == 0 && p[size - 1] == 0);
  must(resident() < before + 16 * MIB);
  memset(p, 1, size);
  must(resident() >= before + size);
  free(p);
  p = opaque(calloc(1, size));
  must(p != NULL && p[0] == 0 && p[size / 2] == 0 && p[size - 1] == 0);
  must(resident() < before + 64 * MIB);
  must(is_zero(p, size));
  free(p);
}

// Pages that are locked cannot be given back to the kernel: they are cleared.
void mode_locked(void) {
  const size_t size = (size_t)40 * MIB;
  unsigned char *p = opaque(malloc(size));
  must(p != NULL);
  memset(p, 1, size);
  bool locked = mlock(p, size) == 0;
  free(p);
  p = opaque(calloc(1, size));
  must(p != NULL && is_zero(p, size));
  free(p);
  must(puts(locked ? "locked" : "not locked") >= 0);
}

// Appending, a tenth each time. Nothing is behind the block: it stays.
void mode_growth(void) {
  size_t size = LARGE;
  int moves = 0;
  unsigned char *p = opaque(malloc(size));
  memset(p, 9, size);
  while (size < 256 * (size_t)MIB) {
    size_t more = size + size / 10;
    unsigned char *grown = opaque(realloc(p, more));
    must(grown != NULL && grown[0] == 9 && grown[size - 1] == 9);
    memset(grown + size, 9, more - size);
    moves += grown != p;
    p = grown;
    size = more;
  }
  must(memcmp(p, p + 1, size - 1) == 0);
  free(p);
  printf("%d\n", moves);
}

// --- blocks of the C library -----------------------------------------------

extern void *__libc_malloc(size_t size);

// What the C library has allocated for the program, or by itself, is freed and
// resized by the functions that stand before it.
void mode_foreign(void) {
  char *text = NULL;
  must(asprintf(&text, "%*d", 200000, 1) == 200000);
  must(text[199999] == '1');
  text = realloc(text, 400000);
  must(text != NULL && text[199999] == '1');
  free(text);
  text = opaque(__libc_malloc(200000));
  memset(text, 'x', 200000);
  must(malloc_usable_size(text) >= 200000);
  text = opaque(realloc(text, 300000));
  must(text[0] == 'x' && text[199999] == 'x');
  free(text);
  free(opaque(__libc_malloc(500000)));
  char *line = NULL;
  size_t room = 0;
  FILE *in = fopen("/proc/self/status", "r");
  must(in != NULL && getline(&line, &room, in) > 0);
  fclose(in);
  free(line);
  free(opaque(strdup("small")));
}
