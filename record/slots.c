// Slots: found by looking for one that is free, from the first on.
#include "record/slots.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "record/file.h"

enum { SLOTS = 16384 };

static slot slots[SLOTS];
static _Atomic uint32_t used;  // no slot from here on ever was
static pthread_key_t ends;
static bool has_key;

static __thread slot *mine;

// When a thread ends. Later work of it, if any, takes a new slot.
static void give_back(void *taken) {
  mine = NULL;
  atomic_store_explicit(&((slot *)taken)->taken, 0, memory_order_release);
}

static void count_used(uint32_t count) {
  uint32_t known = atomic_load(&used);
  while (known < count && !atomic_compare_exchange_weak(&used, &known, count)) {
  }
}

static slot *take(void) {
  for (uint32_t i = 0; i < SLOTS; i++) {
    uint32_t free = 0;
    if (atomic_load_explicit(&slots[i].taken, memory_order_relaxed) != 0)
      continue;
    if (!atomic_compare_exchange_strong(&slots[i].taken, &free, 1)) continue;
    slots[i].thread = i + 1;
    count_used(i + 1);
    return &slots[i];
  }
  return NULL;
}

slot *slots_mine(void) {
  if (__builtin_expect(mine == NULL, 0)) {
    mine = take();
    if (mine != NULL && has_key) (void)pthread_setspecific(ends, mine);
  }
  return mine;
}

void slots_begin(void) {
  has_key = pthread_key_create(&ends, give_back) == 0;
}

// Only the calling thread lives on.
void slots_forget(void) {
  memset(slots, 0, atomic_load(&used) * sizeof *slots);
  atomic_store(&used, 0);
  mine = NULL;
}

bool slots_have_room(slot *taken, size_t bytes,
                     const tarn__trace_log_event *first) {
  tarn__trace_log_writer *writer = &taken->writer;
  tarn__trace_log_event before = {.number = writer->number,
                                  .time_us = writer->time_us,
                                  .address = writer->address};
  if (writer->page != NULL && tarn__log_room(writer) >= bytes) return true;
  tarn__trace_log_page *page = file_page();
  if (page == NULL) return false;
  tarn__log_begin(writer, page, taken->thread, first != NULL ? first : &before);
  return true;
}
