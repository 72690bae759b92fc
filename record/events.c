// Events: numbered, timed, and written to the thread's page.
//
// If a signal interrupts a thread in here, and its handler comes here too, the
// handler's events wait in a small queue with their numbers. The interrupted
// code writes them before or after its own. Numbers in a page never decrease.
#include "record/events.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>

#include "record/file.h"
#include "record/modules.h"
#include "record/python_stack.h"
#include "record/settings.h"
#include "record/slots.h"
#include "record/stacks.h"
#include "record/texts.h"

enum { WAITING_MOST = 64 };

// An event that waits. There are many, and they stand on each thread's stack.
typedef struct waiting_event {
  uint64_t number;
  uint64_t time_us;
  const void *address;
  size_t size;
  tarn__trace_log_kind kind;
  uint32_t device;
} waiting_event;

// |head| and |tail| only count up; handlers add at |tail|.
typedef struct thread_state {
  volatile sig_atomic_t busy;
  _Atomic unsigned head;
  _Atomic unsigned tail;
  waiting_event waiting[WAITING_MOST];
} thread_state;

static __thread thread_state me;
__thread unsigned events_inside;

static tarn__trace_log_event complete(const happening *what) {
  return (tarn__trace_log_event){
      .kind = what->kind,
      .number = what->number != 0 ? what->number : file_number(),
      .time_us = file_time_us(),
      .address = (uintptr_t)what->address,
      .size = what->size,
      .device = what->device};
}

// ---------------------------------------------------------------------------
// Writing
// ---------------------------------------------------------------------------

// Numbers do not go down in a page. Where one would, since a handler came
// between taking it and writing, a later one does.
static void put(slot *mine, tarn__trace_log_event *event) {
  if (!slots_have_room(mine, TARN__LOG_MOST_EVENT, event)) {
    file_lose();
    return;
  }
  if (event->number < mine->writer.number) event->number = file_number();
  tarn__log_put_event(&mine->writer, event);
}

static bool has_waiting(void) {
  return atomic_load_explicit(&me.head, memory_order_relaxed) !=
         atomic_load_explicit(&me.tail, memory_order_relaxed);
}

// What handlers have left, as far as it is numbered below |below|.
static void put_waiting(slot *mine, uint64_t below) {
  while (has_waiting()) {
    unsigned head = atomic_load_explicit(&me.head, memory_order_relaxed);
    const waiting_event *next = &me.waiting[head % WAITING_MOST];
    if (next->number >= below) return;
    tarn__trace_log_event event = {.kind = next->kind,
                                   .number = next->number,
                                   .time_us = next->time_us,
                                   .address = (uintptr_t)next->address,
                                   .size = next->size,
                                   .device = next->device};
    put(mine, &event);
    atomic_store_explicit(&me.head, head + 1, memory_order_relaxed);
  }
}

// In a handler: the interrupted code writes it.
static void leave_waiting(const happening *what) {
  unsigned head = atomic_load_explicit(&me.head, memory_order_relaxed);
  if (atomic_load_explicit(&me.tail, memory_order_relaxed) - head >=
      WAITING_MOST) {
    file_lose();
    return;
  }
  unsigned at = atomic_fetch_add_explicit(&me.tail, 1, memory_order_relaxed);
  tarn__trace_log_event event = complete(what);
  me.waiting[at % WAITING_MOST] = (waiting_event){.number = event.number,
                                                  .time_us = event.time_us,
                                                  .address = what->address,
                                                  .size = what->size,
                                                  .kind = what->kind,
                                                  .device = what->device};
}

static bool is_birth(tarn__trace_log_kind kind) {
  return kind == TARN__LOG_ALLOC || kind == TARN__LOG_MAP ||
         kind == TARN__LOG_OOM;
}

static void write_down(const happening *what) {
  slot *mine = slots_mine();
  if (mine == NULL) {
    file_lose();
    return;
  }
  if (what->define != NULL) what->define(mine, what->device);
  uint64_t stack = is_birth(what->kind) ? stacks_number(mine) : 0;
  tarn__trace_log_event event = complete(what);
  event.stack = stack;
  put_waiting(mine, event.number);
  put(mine, &event);
  put_waiting(mine, UINT64_MAX);
}

// Between the last look for what waits and the end of |busy|, more can come.
static void write_late(void) {
  while (has_waiting()) {
    slot *mine = slots_mine();
    if (mine == NULL) return;
    me.busy = 1;
    put_waiting(mine, UINT64_MAX);
    me.busy = 0;
  }
}

void events_forget(void) {
  file_forget();
  slots_forget();
  stacks_forget();
  python_stack_forget();
  modules_forget();
  texts_forget();
  atomic_store(&me.head, atomic_load(&me.tail));
}

void events_note(const happening *what) {
  if (me.busy) {
    leave_waiting(what);
    return;
  }
  int saved = errno;
  me.busy = 1;
  if (__builtin_expect(file_is_inherited(), 0)) events_forget();
  write_down(what);
  me.busy = 0;
  write_late();
  errno = saved;
}

void events_finish(void) {
  me.busy = 1;
  if (!file_is_inherited()) file_finish();
  me.busy = 0;
  write_late();
}
