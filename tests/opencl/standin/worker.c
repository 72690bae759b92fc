// The thread of a queue: each queue is in order and has one, from its first
// command until it is released and empty.
//
//   standin_queue_add -> [ command | command | ... ] -> the thread
//
// A failure stays, unless a setting ends it with a clFinish: whatever is queued
// behind it ends with a failure too, and nothing of it runs.
#include "worker.h"

#include <pthread.h>
#include <stdlib.h>

#include "events.h"
#include "faults.h"
#include "report.h"
#include "settings.h"

// Guarded by the lock of objects.
static bool held;
static bool has_last;   // a thread has ended, and was not joined
static pthread_t last;  // it; it joins the one that ended before
static bool has_exit;

// --- may it begin ----------------------------------------------------------

static bool is_waiting(const standin_command *command) {
  for (cl_uint i = 0; i < command->wait_count; i++) {
    if (command->waits[i]->status > CL_COMPLETE) return true;
  }
  return false;
}

static bool can_begin(const struct _cl_command_queue *queue) {
  const standin_command *first = queue->first;
  if (first == NULL || held || is_waiting(first)) return false;
  return first->number <= queue->flushed || standin_number(STANDIN_LAZY) == 0;
}

// --- running one -----------------------------------------------------------

static cl_int status_before(const standin_command *command) {
  cl_int follow = (cl_int)standin_number(STANDIN_FOLLOW_STATUS);
  if (command->queue->failure != 0) return follow;
  for (cl_uint i = 0; i < command->wait_count; i++) {
    if (command->waits[i]->status < 0) return follow;
  }
  return command->doomed;
}

// Where the host has bytes mapped, the device may at most read what it reads.
static void check_maps(const standin_touch *touch) {
  for (const standin_map *map = touch->region->maps; map != NULL;
       map = map->next) {
    if (!map->is_active || touch->offset >= map->offset + map->size ||
        map->offset >= touch->offset + touch->size) {
      continue;
    }
    if (!touch->writes && map->flags == CL_MAP_READ) continue;
    standin_wrong(CL_INVALID_OPERATION,
                  "%s: bytes %zu to %zu are mapped by the host",
                  standin_sort_name(touch->region->sort), touch->offset,
                  touch->offset + touch->size);
  }
}

static void check_touches(const standin_command *command) {
  for (size_t i = 0; i < command->touch_count; i++) {
    const standin_touch *touch = &command->touches[i];
    if (touch->region->sort != STANDIN_FINE) check_maps(touch);
    if (touch->region->freed && touch->region->address != 0 &&
        touch->region->sort != STANDIN_ADDRESS) {
      standin_wrong(CL_INVALID_VALUE, "%s was freed before the command ran",
                    standin_sort_name(touch->region->sort));
    }
  }
}

// The callbacks of a state come before the next.
static void advance(cl_event event, cl_int status) {
  standin_callback *due = NULL;
  standin_event_advance(event, status, &due);
  if (due == NULL) return;
  standin_unlock();
  standin_callbacks_run(due);
  standin_lock();
}

static cl_int run_body(standin_command *command) {
  check_touches(command);
  if (command->before != NULL) command->before(command);
  if (command->run == NULL) return CL_SUCCESS;
  standin_unlock();
  cl_int status = command->run(command);
  standin_lock();
  return status;
}

static void release_memory(standin_command *command) {
  while (command->touch_count > 0) {
    standin_region_unuse(command->touches[--command->touch_count].region);
  }
}

// Everything but the event is given back before the event says that the
// command has ended: who waits for it finds nothing left.
static void run_one(cl_command_queue queue) {
  standin_command *command = queue->first;
  queue->running = true;
  standin_set_call(command->call);
  advance(command->event, CL_SUBMITTED);
  cl_int status = status_before(command);
  if (status == CL_SUCCESS) {
    advance(command->event, CL_RUNNING);
    status = run_body(command);
  }
  if (command->after != NULL) command->after(command, status);
  release_memory(command);
  queue->first = command->next;
  if (queue->first == NULL) queue->last = NULL;
  if (status < 0 && queue->failure == 0) queue->failure = status;
  advance(command->event, status);
  queue->finished = command->number;
  queue->running = false;
  standin_command_free(command);
  standin_tell_all();
}

// --- the threads -----------------------------------------------------------
// Each is joined: the address sanitizer fails where one is just ending when it
// looks for leaks.

static bool take_last(pthread_t *out) {
  bool had = has_last;
  *out = last;
  has_last = false;
  return had;
}

static void join_ended(void) {
  pthread_t ended;
  if (!take_last(&ended)) return;
  standin_unlock();
  pthread_join(ended, NULL);
  standin_lock();
}

// Before the sanitizer's own, which was added before.
static void join_at_exit(void) {
  if (standin_in_child()) return;
  standin_lock();
  standin_queues_settle();
  standin_unlock();
}

// The thread holds the queue.
static void *work(void *argument) {
  cl_command_queue queue = argument;
  standin_lock();
  while (queue->first != NULL || queue->object.refs > 0) {
    if (can_begin(queue)) {
      run_one(queue);
    } else {
      standin_wait_any();
    }
  }
  queue->threaded = false;
  standin_unuse(queue);
  pthread_t before;
  bool had = take_last(&before);
  last = pthread_self();
  has_last = true;
  standin_tell_all();
  standin_unlock();
  if (had) pthread_join(before, NULL);
  return NULL;
}

cl_int standin_queue_thread(cl_command_queue queue) {
  if (queue->threaded) return CL_SUCCESS;
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, queue) != 0) {
    return CL_OUT_OF_RESOURCES;
  }
  if (!has_exit) has_exit = atexit(join_at_exit) == 0;
  queue->threaded = true;
  standin_use(queue);
  return CL_SUCCESS;
}

void standin_queue_add(standin_command *command) {
  cl_command_queue queue = command->queue;
  command->number = ++queue->queued;
  if (queue->last != NULL) {
    queue->last->next = command;
  } else {
    queue->first = command;
  }
  queue->last = command;
  standin_tell_all();
}

// --- for tests -------------------------------------------------------------

void standin_queue_hold(bool on) {
  held = on;
  standin_tell_all();
}

static void see_unsettled(void *object, void *context) {
  const struct _cl_command_queue *queue = object;
  bool *unsettled = context;
  bool ends =
      queue->threaded && queue->first == NULL && queue->object.refs == 0;
  if (queue->running || ends || can_begin(queue)) *unsettled = true;
}

void standin_queues_settle(void) {
  for (;;) {
    bool unsettled = false;
    standin_each(STANDIN_QUEUE, see_unsettled, &unsettled);
    if (standin_in_callback()) return;
    if (!unsettled) break;
    standin_wait_any();
  }
  join_ended();
}

static void count_queued(void *object, void *context) {
  const struct _cl_command_queue *queue = object;
  size_t *count = context;
  *count += queue->queued - queue->finished;
}

size_t standin_queued_commands(void) {
  size_t count = 0;
  standin_each(STANDIN_QUEUE, count_queued, &count);
  return count;
}
