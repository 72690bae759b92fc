// The limit: a bare free list.
//
// Each size has a stack of free addresses above a NULL that marks its bottom.
// New addresses come from one mapping, from front to back; memory is never
// split, joined or given back. Several threads share it by a lock.
//
//   entries   NULL a a a - - NULL b - - -        as many as are ever out
//   tops           0:  ^   1:     ^
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "course.h"

enum { ALIGN = 64 };

typedef struct free_list {
  void **slots;
  void ***tops;  // by rank of size
  void **entries;
  char *memory;
  size_t memory_size;
  size_t used;
  pthread_mutex_t lock;
} free_list;

static size_t round_up(size_t size) {
  return (size + ALIGN - 1) & ~(size_t)(ALIGN - 1);
}

// ---------------------------------------------------------------------------
// Requests
// ---------------------------------------------------------------------------

static void *grow(free_list *self, size_t size) {
  void *address = self->memory + self->used;
  self->used += round_up(size);
  return address;
}

COURSE_INLINE bool take(void *state, const request *r) {
  free_list *self = state;
  void **top = self->tops[r->size_rank];
  void *address = *top;
  if (__builtin_expect(address == NULL, 0)) {
    address = grow(self, r->size);
  } else {
    self->tops[r->size_rank] = top - 1;
  }
  self->slots[r->slot] = address;
  return true;
}

COURSE_INLINE bool give(void *state, const request *r) {
  free_list *self = state;
  *++self->tops[r->size_rank] = self->slots[r->slot];
  return true;
}

COURSE_INLINE bool take_locked(void *state, const request *r) {
  free_list *self = state;
  pthread_mutex_lock(&self->lock);
  bool taken = take(state, r);
  pthread_mutex_unlock(&self->lock);
  return taken;
}

COURSE_INLINE bool give_locked(void *state, const request *r) {
  free_list *self = state;
  pthread_mutex_lock(&self->lock);
  bool given = give(state, r);
  pthread_mutex_unlock(&self->lock);
  return given;
}

static bool touch(void *state, const request *r) {
  return course_touch(((free_list *)state)->slots[r->slot], r->size);
}

static bool run_all(void *self, const peer_run *run) {
  return run->side == NULL
             ? course_run(self, run, take, give, touch)
             : course_run(self, run, take_locked, give_locked, touch);
}

// ---------------------------------------------------------------------------
// From the first to the last
// ---------------------------------------------------------------------------

// The most blocks of each size that are out at once; |out_bytes| is what all
// of them take. Several threads can have all of a pass out.
static size_t *count_most(const peer_order *order, size_t *out_bytes) {
  const request_list *requests = order->requests;
  size_t *now = tool_array(requests->rank_count, sizeof *now);
  size_t *most = tool_array(requests->rank_count, sizeof *most);
  *out_bytes = 0;
  for (size_t i = 0; i < requests->count; i++) {
    const request *r = &requests->items[i];
    if (r->size > 0) {
      now[r->size_rank]++;
    } else if (order->threads == 1) {
      now[r->size_rank]--;
    }
    if (now[r->size_rank] <= most[r->size_rank]) continue;
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
  self->entries = tool_array_ready(total, sizeof *self->entries);
  self->tops = tool_array_ready(requests->rank_count, sizeof *self->tops);
  void **bottom = self->entries;
  for (size_t i = 0; i < requests->rank_count; i++) {
    self->tops[i] = bottom;
    bottom += most[i] + 1;
  }
}

static void destroy(void *state) {
  free_list *self = state;
  if (self->memory != MAP_FAILED) munmap(self->memory, self->memory_size);
  pthread_mutex_destroy(&self->lock);
  free(self->slots);
  free(self->tops);
  free(self->entries);
  free(self);
}

static void *create(const peer_order *order, char *why) {
  const request_list *requests = order->requests;
  free_list *self = tool_array(1, sizeof *self);
  size_t *most = count_most(order, &self->memory_size);
  pthread_mutex_init(&self->lock, NULL);
  self->slots = tool_array_ready(requests->slot_count, sizeof *self->slots);
  place_stacks(self, requests, most);
  free(most);
  if (self->memory_size == 0) self->memory_size = ALIGN;
  self->memory = mmap(NULL, self->memory_size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (self->memory != MAP_FAILED) return self;
  snprintf(why, PEER_TEXT_SIZE, "the kernel refused to map %zu bytes",
           self->memory_size);
  destroy(self);
  return NULL;
}

static size_t held(void *state) {
  return ((free_list *)state)->used;
}

static const char *no_memory(void) {
  return "no memory";
}

const peer_type peer_free_list = {
    .create = create,
    .destroy = destroy,
    .alloc = take,
    .free = give,
    .pass = run_all,
    .held = held,
    .refusal = no_memory,
};
