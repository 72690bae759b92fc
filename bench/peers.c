// The allocators: the limit, malloc's kind, Tarn's pools.
#include "peers.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tool/tool.h"

// ---------------------------------------------------------------------------
// The loop
// ---------------------------------------------------------------------------

#define INLINE static inline __attribute__((always_inline))

INLINE bool serve(void *self, const request *r, peer_request *alloc,
                  peer_request *give) {
  return r->size > 0 ? alloc(self, r) : give(self, r);
}

INLINE bool serve_timed(void *self, const request *r, const stopwatch *watch,
                        peer_request *alloc, peer_request *give,
                        uint64_t *out_ticks) {
  uint64_t begin = stopwatch_now(watch);
  bool served = serve(self, r, alloc, give);
  *out_ticks = stopwatch_now(watch) - begin;
  return served;
}

// |alloc| and |give| are constants where this is used, and become part of it.
INLINE bool pass(void *self, const request_list *requests,
                 const stopwatch *watch, uint64_t *ticks, peer_request *alloc,
                 peer_request *give) {
  if (ticks == NULL) {
    for (size_t i = 0; i < requests->count; i++) {
      if (!serve(self, &requests->items[i], alloc, give)) return false;
    }
    return true;
  }
  for (size_t i = 0; i < requests->count; i++) {
    if (!serve_timed(self, &requests->items[i], watch, alloc, give,
                     &ticks[i])) {
      return false;
    }
  }
  return true;
}

INLINE bool do_nothing(void *state, const request *r) {
  (void)state;
  (void)r;
  return true;
}

bool peer_empty_pass(void *self, const request_list *requests,
                     const stopwatch *watch, uint64_t *ticks) {
  return pass(self, requests, watch, ticks, do_nothing, do_nothing);
}

// Cleared memory that will not be touched for the first time while it is
// measured.
static void *ready_array(size_t count, size_t size) {
  void *array = tool_array(count, size);
  volatile char *bytes = array;
  for (size_t i = 0; i < count * size; i += 64)
    bytes[i] = 0;
  return array;
}

// ---------------------------------------------------------------------------
// free_list
// ---------------------------------------------------------------------------
// Each size has a stack of addresses that are free, above a NULL that marks
// its bottom. What no stack has comes from one mapping, from front to back;
// nothing is ever split, joined or given back.
//
//   entries   NULL a a a - - NULL b - - -        as many as are ever out
//   tops           0:  ^   1:     ^

enum { FREE_LIST_ALIGN = 64 };

typedef struct free_list {
  void **slots;
  void ***tops;  // by rank of size
  void **entries;
  char *memory;
  size_t memory_size;
  size_t used;
} free_list;

static size_t round_up(size_t size) {
  return (size + FREE_LIST_ALIGN - 1) & ~(size_t)(FREE_LIST_ALIGN - 1);
}

static void *free_list_grow(free_list *self, size_t size) {
  void *address = self->memory + self->used;
  self->used += round_up(size);
  return address;
}

INLINE bool free_list_alloc(void *state, const request *r) {
  free_list *self = state;
  void **top = self->tops[r->size_rank];
  void *address = *top;
  if (__builtin_expect(address == NULL, 0)) {
    address = free_list_grow(self, r->size);
  } else {
    self->tops[r->size_rank] = top - 1;
  }
  self->slots[r->slot] = address;
  return true;
}

INLINE bool free_list_free(void *state, const request *r) {
  free_list *self = state;
  *++self->tops[r->size_rank] = self->slots[r->slot];
  return true;
}

static bool free_list_pass(void *self, const request_list *requests,
                           const stopwatch *watch, uint64_t *ticks) {
  return pass(self, requests, watch, ticks, free_list_alloc, free_list_free);
}

// The most blocks of each size that are out at once; |out_bytes| is what all
// of them take.
static size_t *count_most(const request_list *requests, size_t *out_bytes) {
  size_t *now = tool_array(requests->rank_count, sizeof *now);
  size_t *most = tool_array(requests->rank_count, sizeof *most);
  *out_bytes = 0;
  for (size_t i = 0; i < requests->count; i++) {
    const request *r = &requests->items[i];
    now[r->size_rank] += r->size > 0 ? 1 : (size_t)-1;
    if (r->size == 0 || now[r->size_rank] <= most[r->size_rank]) continue;
    most[r->size_rank]++;
    *out_bytes += round_up(r->size);
  }
  free(now);
  return most;
}

static void place_stacks(free_list *self, const request_list *requests,
                         const size_t *most) {
  size_t total = 0;
  for (size_t i = 0; i < requests->rank_count; i++)
    total += most[i] + 1;
  self->entries = ready_array(total, sizeof *self->entries);
  self->tops = ready_array(requests->rank_count, sizeof *self->tops);
  void **bottom = self->entries;
  for (size_t i = 0; i < requests->rank_count; i++) {
    self->tops[i] = bottom;
    bottom += most[i] + 1;
  }
}

static void free_list_destroy(void *state) {
  free_list *self = state;
  if (self->memory != MAP_FAILED) munmap(self->memory, self->memory_size);
  free(self->slots);
  free(self->tops);
  free(self->entries);
  free(self);
}

static void *free_list_create(const char *name, const request_list *requests,
                              char *why) {
  (void)name;
  free_list *self = tool_array(1, sizeof *self);
  size_t *most = count_most(requests, &self->memory_size);
  self->slots = ready_array(requests->slot_count, sizeof *self->slots);
  place_stacks(self, requests, most);
  free(most);
  if (self->memory_size == 0) self->memory_size = FREE_LIST_ALIGN;
  self->memory = mmap(NULL, self->memory_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (self->memory != MAP_FAILED) return self;
  snprintf(why, PEER_TEXT_SIZE, "the kernel refused to map %zu bytes",
           self->memory_size);
  free_list_destroy(self);
  return NULL;
}

static size_t free_list_held(void *state) {
  return ((free_list *)state)->used;
}

static const char *no_memory(void) {
  return "no memory";
}

static const peer_type free_list_type = {
    .create = free_list_create,
    .destroy = free_list_destroy,
    .alloc = free_list_alloc,
    .free = free_list_free,
    .pass = free_list_pass,
    .held = free_list_held,
    .refusal = no_memory,
};

// ---------------------------------------------------------------------------
// malloc and its kind
// ---------------------------------------------------------------------------
// Called through pointers, as any library's are that a program links to.

typedef struct heap {
  void **slots;
  void *(*allocate)(size_t size);
  void (*release)(void *block);
  size_t others;  // bytes that were out before the first request
} heap;

INLINE bool heap_alloc(void *state, const request *r) {
  heap *self = state;
  void *block = self->allocate(r->size);
  self->slots[r->slot] = block;
  return block != NULL;
}

INLINE bool heap_free(void *state, const request *r) {
  heap *self = state;
  self->release(self->slots[r->slot]);
  return true;
}

static bool heap_pass(void *self, const request_list *requests,
                      const stopwatch *watch, uint64_t *ticks) {
  return pass(self, requests, watch, ticks, heap_alloc, heap_free);
}

#if defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 33)
#define HAS_MALLINFO2
#endif
#endif

#ifdef HAS_MALLINFO2
static size_t glibc_used(void) {
  struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

// What is free of the parent's heap counts as held: it is.
static size_t glibc_held(void *state) {
  struct mallinfo2 info = mallinfo2();
  return info.arena + info.hblkhd - ((heap *)state)->others;
}
#else
static size_t glibc_used(void) {
  return 0;
}

static size_t glibc_held(void *state) {
  (void)state;
  return 0;
}
#endif

static void *glibc_create(const char *name, const request_list *requests,
                          char *why) {
  (void)name;
  (void)why;
  heap *self = tool_array(1, sizeof *self);
  self->slots = ready_array(requests->slot_count, sizeof *self->slots);
  self->allocate = malloc;
  self->release = free;
  self->others = glibc_used();
  return self;
}

static void heap_destroy(void *state) {
  heap *self = state;
  free(self->slots);
  free(self);
}

static const peer_type glibc_type = {
    .create = glibc_create,
    .destroy = heap_destroy,
    .alloc = heap_alloc,
    .free = heap_free,
    .pass = heap_pass,
    .held = glibc_held,
    .refusal = no_memory,
};

// ---------------------------------------------------------------------------
// Tarn's pools
// ---------------------------------------------------------------------------

typedef struct tarn_peer {
  tarn_device *device;
  tarn_pool *pool;
  tarn_block *blocks;    // by slot: callers that keep the block ...
  tarn_addr *addresses;  // ... and callers that keep only its address
} tarn_peer;

INLINE bool tarn_peer_alloc(void *state, const request *r) {
  tarn_peer *self = state;
  return tarn_pool_alloc(self->pool, r->size, 0, NULL,
                         &self->blocks[r->slot]) == TARN_OK;
}

INLINE bool tarn_peer_free(void *state, const request *r) {
  tarn_peer *self = state;
  return tarn_pool_free(&self->blocks[r->slot], NULL) == TARN_OK;
}

INLINE bool tarn_peer_alloc_address(void *state, const request *r) {
  tarn_peer *self = state;
  tarn_block block;
  if (tarn_pool_alloc(self->pool, r->size, 0, NULL, &block) != TARN_OK) {
    return false;
  }
  self->addresses[r->slot] = block.address;
  return true;
}

INLINE bool tarn_peer_free_address(void *state, const request *r) {
  tarn_peer *self = state;
  return tarn_pool_free_address(self->pool, self->addresses[r->slot], NULL) ==
         TARN_OK;
}

static bool tarn_peer_pass(void *self, const request_list *requests,
                           const stopwatch *watch, uint64_t *ticks) {
  return pass(self, requests, watch, ticks, tarn_peer_alloc, tarn_peer_free);
}

static bool tarn_peer_pass_by_address(void *self, const request_list *requests,
                                      const stopwatch *watch, uint64_t *ticks) {
  return pass(self, requests, watch, ticks, tarn_peer_alloc_address,
              tarn_peer_free_address);
}

static void tarn_peer_destroy(void *state) {
  tarn_peer *self = state;
  if (self->device != NULL) (void)tarn_device_close(self->device);
  free(self->blocks);
  free(self->addresses);
  free(self);
}

static void *tarn_peer_create(const char *name, const request_list *requests,
                              char *why) {
  tarn_peer *self = tool_array(1, sizeof *self);
  if (tarn_device_open("cpu:0", &self->device) != TARN_OK ||
      tarn_pool_use(tarn_place_on(self->device), name) != TARN_OK ||
      tarn_pool_of(tarn_place_on(self->device), &self->pool) != TARN_OK) {
    snprintf(why, PEER_TEXT_SIZE, "%.*s", PEER_TEXT_SIZE - 1,
             tarn_last_error());
    tarn_peer_destroy(self);
    return NULL;
  }
  self->blocks = ready_array(requests->slot_count, sizeof *self->blocks);
  self->addresses = ready_array(requests->slot_count, sizeof *self->addresses);
  return self;
}

static size_t tarn_peer_held(void *state) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  tarn_status status = tarn_pool_query(((tarn_peer *)state)->pool, &stats);
  return status == TARN_OK ? stats.reserved_bytes : 0;
}

static const peer_type tarn_type = {
    .create = tarn_peer_create,
    .destroy = tarn_peer_destroy,
    .alloc = tarn_peer_alloc,
    .free = tarn_peer_free,
    .pass = tarn_peer_pass,
    .pass_by_address = tarn_peer_pass_by_address,
    .held = tarn_peer_held,
    .refusal = tarn_last_error,
};

// ---------------------------------------------------------------------------
// By name
// ---------------------------------------------------------------------------

// Those besides Tarn's strategies, whose names the library knows.
static const struct peer {
  const char *name;
  const peer_type *type;
} others[] = {
    {"free_list", &free_list_type},
    {"glibc", &glibc_type},
};
enum { OTHERS = sizeof others / sizeof *others };

const char *peer_name(size_t index) {
  return index < OTHERS ? others[index].name
                        : tarn_pool_strategy_name(index - OTHERS);
}

const peer_type *peer_find(const char *name) {
  for (size_t i = 0; i < OTHERS; i++) {
    if (strcmp(name, others[i].name) == 0) return others[i].type;
  }
  size_t length = strcspn(name, ":");
  for (size_t i = 0; tarn_pool_strategy_name(i) != NULL; i++) {
    const char *known = tarn_pool_strategy_name(i);
    if (strncmp(name, known, length) == 0 && known[length] == '\0') {
      return &tarn_type;
    }
  }
  return NULL;
}
