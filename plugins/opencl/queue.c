// Records of queues: one for each stream, found by the handle of its
// cl_command_queue, and some for calls without a stream.
//
//   begin ──> lock, enqueue..., end ──> keep the event, flush, unlock
//                                  └──> without a stream: wait, then idle again
//
// Invariants:
//   * |commands| has the events of all commands of the plug-in that are not
//     known to be over, in their order, which is the one in which they end.
//   * A record in the map has the map's hold. That of an adopted queue leaves
//     the map as soon as no work is under way, so that the record never
//     outlives the handle; while it is there it holds the cl_command_queue.
//   * A failure sticks to a stream. Queues for calls without a stream begin
//     each call without one.
#include <string.h>

#include "base/hostmem.h"
#include "opencl.h"

typedef tarn__opencl_device opencl;
typedef tarn__opencl_queue queue;
typedef tarn__opencl_work work;

static struct {
  pthread_mutex_t lock;  // guards the map; taken inside a record's
  tarn__range_map map;   // of streams, by handle
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER};

// Commands that a call keeps, and the fetch of a wait: there is room for them
// before anything is queued. To wait for room with the lock held could be to
// wait for a callback that waits for the lock.
enum { KEPT_MOST = 8 };

static uint64_t key_of(const void *handle) {
  return (uint64_t)(uintptr_t)handle;
}

static queue *record_of(tarn__range_map_node *node) {
  return (queue *)(void *)node;
}

// --- one record ------------------------------------------------------------

static bool grow(queue *q) {
  enum { FIRST = 16 };
  size_t room = q->room != 0 ? q->room * 2 : (size_t)FIRST;
  tarn__opencl_command *all = tarn__host_array(room, sizeof *all);
  if (all == NULL) return false;
  for (size_t i = 0; i < q->count; i++)
    all[i] = q->commands[(q->first + i) & (q->room - 1)];
  tarn__host_free_array(q->commands, q->room, sizeof *q->commands);
  q->commands = all;
  q->room = room;
  q->first = 0;
  return true;
}

static queue *new_record(opencl *d, cl_command_queue handle) {
  queue *q = tarn__host_alloc(sizeof *q);
  if (q == NULL) {
    (void)tarn__wordless(C_FAILED);
    return NULL;
  }
  q->device = d;
  q->handle = handle;
  atomic_init(&q->holds, 1);
  atomic_init(&q->failure, C_SUCCESS);
  pthread_mutex_init(&q->lock, NULL);
  pthread_cond_init(&q->called, NULL);
  tarn_list_init(&q->calls);
  if (grow(q)) return q;
  pthread_cond_destroy(&q->called);
  pthread_mutex_destroy(&q->lock);
  tarn__host_free(q, sizeof *q);
  (void)tarn__wordless(C_FAILED);
  return NULL;
}

static void drop_faults(queue *q) {
  if (q->faults != NULL)
    (void)tarn__opencl_driver_get()->ReleaseMemObject(q->faults);
  q->faults = NULL;
  q->rows = q->fetched = 0;
  memset(&q->seen, 0, sizeof q->seen);
}

cl_int tarn__opencl_drain(cl_command_queue handle) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  cl_int error = cl->Finish(handle);
  if (error != CL_SUCCESS) (void)cl->Finish(handle);
  return error;
}

// A wait fails for a command's failure too, and where the driver lacks
// something: then work may be under way.
static void wait_for_newest(const queue *q) {
  if (q->count == 0) return;
  size_t newest = (q->first + q->count - 1) & (q->room - 1);
  if (tarn__opencl_driver_get()->WaitForEvents(1, &q->commands[newest].event) !=
      CL_SUCCESS) {
    (void)tarn__opencl_drain(q->handle);
  }
}

// A fetch that is under way writes into the record.
static void free_record(queue *q) {
  wait_for_newest(q);
  (void)tarn__opencl_settle(q);
  drop_faults(q);
  if (q->handle != NULL)
    (void)tarn__opencl_driver_get()->ReleaseCommandQueue(q->handle);
  tarn__host_free_array(q->commands, q->room, sizeof *q->commands);
  pthread_cond_destroy(&q->called);
  pthread_mutex_destroy(&q->lock);
  tarn__host_free(q, sizeof *q);
}

void tarn__opencl_queue_hold(queue *q) {
  atomic_fetch_add_explicit(&q->holds, 1, memory_order_relaxed);
}

void tarn__opencl_queue_drop(queue *q) {
  if (q == NULL) return;
  if (atomic_fetch_sub_explicit(&q->holds, 1, memory_order_acq_rel) == 1) {
    free_record(q);
  }
}

static cl_command_queue make_handle(opencl *d) {
  cl_int error = CL_SUCCESS;
  cl_command_queue handle = tarn__opencl_driver_get()->CreateCommandQueue(
      d->context, d->handle, 0, &error);
  if (handle == NULL) (void)tarn__opencl_say(error, "clCreateCommandQueue");
  return handle;
}

// A record with a queue of its own.
static queue *make_queue(opencl *d) {
  cl_command_queue handle = make_handle(d);
  if (handle == NULL) return NULL;
  queue *q = new_record(d, handle);
  if (q == NULL) (void)tarn__opencl_driver_get()->ReleaseCommandQueue(handle);
  return q;
}

// --- outcomes, all with the record's lock held -----------------------------

cl_int tarn__opencl_status_of(cl_event event) {
  cl_int status = CL_COMPLETE;
  cl_int error = tarn__opencl_driver_get()->GetEventInfo(
      event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof status, &status, NULL);
  return error == CL_SUCCESS ? status : error;
}

void tarn__opencl_fail(queue *q, C_Status failure, const char *why) {
  if (atomic_load_explicit(&q->failure, memory_order_relaxed) != C_SUCCESS) {
    return;
  }
  tarn__text_copy(why, q->why, sizeof q->why);
  atomic_store_explicit(&q->failure, failure, memory_order_release);
}

C_Status tarn__opencl_rows_outcome(queue *q, uint64_t fetched) {
  const tarn__opencl_fault *seen = &q->seen;
  if (seen->serial == 0 || seen->serial > fetched) return C_SUCCESS;
  char why[TARN__COMMON_LINE];
  const tarn_rows rows = {.table_count = seen->count};
  tarn__rows_say_bad(&rows, seen->index, seen->at, why, sizeof why);
  tarn__opencl_fail(q, C_ERROR, why);
  return C_ERROR;
}

// Lets the first command go, which is over.
static void let_go(queue *q, cl_int status) {
  tarn__opencl_command first = q->commands[q->first];
  q->first = (q->first + 1) & (q->room - 1);
  q->count--;
  if (status < CL_COMPLETE) {
    C_Status failure = tarn__opencl_say_failed(status, first.call);
    tarn__opencl_fail(q, failure, tarn__text_line());
  }
  (void)tarn__opencl_driver_get()->ReleaseEvent(first.event);
}

static void prune(queue *q) {
  while (q->count != 0) {
    cl_int status = tarn__opencl_status_of(q->commands[q->first].event);
    if (status > CL_COMPLETE) return;
    let_go(q, status);
  }
}

C_Status tarn__opencl_settle(queue *q) {
  prune(q);
  if (q->count != 0) return C_WARNING;
  (void)tarn__opencl_rows_outcome(q, q->fetched);
  return atomic_load_explicit(&q->failure, memory_order_acquire);
}

static bool has_room(queue *q, size_t commands) {
  prune(q);
  while (q->room - q->count < commands)
    if (!grow(q)) return false;
  return true;
}

void tarn__opencl_keep(queue *q, const char *call, cl_event event) {
  if (event == NULL) return;
  size_t at = (q->first + q->count++) & (q->room - 1);
  q->commands[at] = (tarn__opencl_command){event, call};
}

cl_event tarn__opencl_newest(const queue *q) {
  if (q->count == 0) return NULL;
  cl_event event = q->commands[(q->first + q->count - 1) & (q->room - 1)].event;
  cl_int error = tarn__opencl_driver_get()->RetainEvent(event);
  return error == CL_SUCCESS ? event : NULL;
}

// --- streams ---------------------------------------------------------------

static void enlist_locked(queue *q) {
  q->node.start = key_of(q->handle);
  tarn__range_map_insert(&streams.map, &q->node);
}

C_Status tarn__opencl_queue_open(opencl *d, C_Stream *out) {
  queue *q = make_queue(d);
  if (q == NULL) return C_FAILED;
  pthread_mutex_lock(&streams.lock);
  enlist_locked(q);
  pthread_mutex_unlock(&streams.lock);
  *out = (C_Stream)(void *)q->handle;
  return C_SUCCESS;
}

// Takes |q|, whose lock is held, out of the map. The caller drops its hold.
static void detach(queue *q) {
  pthread_mutex_lock(&streams.lock);
  tarn__range_map_remove(&streams.map, &q->node);
  pthread_mutex_unlock(&streams.lock);
  q->is_detached = true;
}

void tarn__opencl_queue_close(queue *q) {
  pthread_mutex_lock(&q->lock);
  bool was_there = !q->is_detached;
  if (was_there) detach(q);
  pthread_mutex_unlock(&q->lock);
  if (was_there) tarn__opencl_queue_drop(q);
}

static queue *find_locked(C_Stream stream) {
  uint64_t key = key_of(stream);
  tarn__range_map_node *node = tarn__range_map_at(&streams.map, key);
  return node != NULL && node->start == key ? record_of(node) : NULL;
}

queue *tarn__opencl_queue_known(C_Stream stream) {
  pthread_mutex_lock(&streams.lock);
  queue *q = stream != NULL ? find_locked(stream) : NULL;
  if (q != NULL) tarn__opencl_queue_hold(q);
  pthread_mutex_unlock(&streams.lock);
  return q;
}

queue *tarn__opencl_queue_behind(const opencl *d, uint64_t handle) {
  pthread_mutex_lock(&streams.lock);
  tarn__range_map_node *node = tarn__range_map_at(&streams.map, handle);
  do {
    node = tarn__range_map_behind(&streams.map, node);
  } while (node != NULL && record_of(node)->device != d);
  queue *q = node != NULL ? record_of(node) : NULL;
  if (q != NULL) tarn__opencl_queue_hold(q);
  pthread_mutex_unlock(&streams.lock);
  return q;
}

// Why an unknown queue cannot be a stream of |d|; NULL: it can, unless the
// driver tells an |*error|.
static const char *judge(const opencl *d, cl_command_queue handle,
                         cl_int *error) {
  const tarn__opencl_driver *cl = tarn__opencl_driver_get();
  cl_context context = NULL;
  cl_device_id device = NULL;
  cl_command_queue_properties properties = 0;
  *error = cl->GetCommandQueueInfo(handle, CL_QUEUE_CONTEXT, sizeof(cl_context),
                                   &context, NULL);
  if (*error == CL_SUCCESS)
    *error = cl->GetCommandQueueInfo(handle, CL_QUEUE_DEVICE,
                                     sizeof(cl_device_id), &device, NULL);
  if (*error == CL_SUCCESS)
    *error = cl->GetCommandQueueInfo(handle, CL_QUEUE_PROPERTIES,
                                     sizeof properties, &properties, NULL);
  if (*error == CL_INVALID_COMMAND_QUEUE) return "it is no cl_command_queue";
  if (*error != CL_SUCCESS) return NULL;
  if (context != d->context) {
    return "it is in another context than that of the device's streams";
  }
  if (device != d->handle) return "it is of another device";
  bool in_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) == 0;
  return in_order ? NULL : "it is out of order";
}

static queue *adopt_locked(opencl *d, C_Stream stream) {
  cl_command_queue handle = (cl_command_queue)(void *)stream;
  cl_int error = CL_SUCCESS;
  const char *fault = judge(d, handle, &error);
  if (fault != NULL) {
    (void)tarn__text_fail(TARN_E_INVALID, "opencl:%d: no stream: %s", d->id,
                          fault);
    return NULL;
  }
  if (error == CL_SUCCESS)
    error = tarn__opencl_driver_get()->RetainCommandQueue(handle);
  if (error != CL_SUCCESS) {
    (void)tarn__opencl_say(error, "a queue that is adopted");
    return NULL;
  }
  queue *q = new_record(d, handle);
  if (q == NULL) {
    (void)tarn__opencl_driver_get()->ReleaseCommandQueue(handle);
    return NULL;
  }
  q->is_adopted = q->is_shared = true;
  enlist_locked(q);
  return q;
}

queue *tarn__opencl_queue_of(opencl *d, C_Stream stream) {
  pthread_mutex_lock(&streams.lock);
  queue *q = find_locked(stream);
  if (q == NULL) q = adopt_locked(d, stream);
  if (q != NULL) tarn__opencl_queue_hold(q);
  pthread_mutex_unlock(&streams.lock);
  if (q == NULL || q->device == d) return q;
  tarn__opencl_queue_drop(q);
  (void)tarn__text_fail(TARN_E_INVALID, "opencl:%d: a stream of another device",
                        d->id);
  return NULL;
}

// --- work ------------------------------------------------------------------

work tarn__opencl_begin_on(queue *q) {
  pthread_mutex_lock(&q->lock);
  return (work){.device = q->device, .record = q, .queue = q->handle};
}

// Another thread may have found all work of an adopted queue done meanwhile.
static C_Status begin_on_stream(opencl *d, C_Stream stream, work *out) {
  for (;;) {
    queue *q = tarn__opencl_queue_of(d, stream);
    if (q == NULL) return C_ERROR;
    *out = tarn__opencl_begin_on(q);
    if (!q->is_detached) break;
    pthread_mutex_unlock(&q->lock);
    tarn__opencl_queue_drop(q);
  }
  if (has_room(out->record, KEPT_MOST)) return C_SUCCESS;
  tarn__opencl_queue_leave(out->record);
  return tarn__wordless(C_FAILED);
}

bool tarn__opencl_reserve(work *w, size_t commands) {
  size_t more = 0;
  return tarn_size_add(commands, KEPT_MOST, &more) && has_room(w->record, more);
}

static queue *take_idle(opencl *d) {
  pthread_mutex_lock(&d->lock);
  queue *q = d->idle;
  if (q != NULL) d->idle = q->next;
  pthread_mutex_unlock(&d->lock);
  return q != NULL ? q : make_queue(d);
}

// A queue on which something has failed need not work any more, and says so
// only when it is used.
static void keep_idle(queue *q, bool works) {
  opencl *d = q->device;
  if (!works) {
    (void)tarn__opencl_drain(q->handle);
    tarn__opencl_queue_drop(q);
    return;
  }
  pthread_mutex_lock(&d->lock);
  q->next = d->idle;
  d->idle = q;
  pthread_mutex_unlock(&d->lock);
}

C_Status tarn__opencl_begin(opencl *d, C_Stream stream, work *out) {
  if (stream != NULL) return begin_on_stream(d, stream, out);
  queue *q = take_idle(d);
  if (q == NULL) return C_FAILED;
  *out = tarn__opencl_begin_on(q);
  out->waits = true;
  return C_SUCCESS;
}

// Waits, and makes the queue as good as new. The outcome of all its work.
static C_Status await(work *w, bool *out_works) {
  queue *q = w->record;
  cl_int error = tarn__opencl_fetch(w);
  wait_for_newest(q);
  C_Status outcome = tarn__opencl_settle(q);
  *out_works =
      error == CL_SUCCESS && (outcome == C_SUCCESS || outcome == C_ERROR);
  if (outcome != C_SUCCESS) {
    tarn__text_set(q->why);
    atomic_store_explicit(&q->failure, C_SUCCESS, memory_order_relaxed);
    drop_faults(q);
  }
  return error == CL_SUCCESS ? outcome : tarn__opencl_say(error, "rows");
}

// A record of an adopted queue on which nothing is under way is let go, unless
// it has failed: its text may be asked for.
static bool is_over(const queue *q) {
  return q->is_adopted && !q->is_detached && q->count == 0 &&
         q->rows == q->fetched && tarn_list_empty(&q->calls) &&
         atomic_load_explicit(&q->failure, memory_order_relaxed) == C_SUCCESS;
}

void tarn__opencl_queue_leave(queue *q) {
  bool over = is_over(q);
  if (over) detach(q);
  pthread_mutex_unlock(&q->lock);
  if (over) tarn__opencl_queue_drop(q);
  tarn__opencl_queue_drop(q);
}

C_Status tarn__opencl_end(work *w, const char *call, cl_int error,
                          cl_event event) {
  queue *q = w->record;
  C_Status outcome = C_SUCCESS;
  tarn__opencl_keep(q, call, event);
  if (w->waits) {
    bool works = false;
    outcome = await(w, &works);
    pthread_mutex_unlock(&q->lock);
    keep_idle(q, works && error == CL_SUCCESS);
  } else {
    (void)tarn__opencl_driver_get()->Flush(w->queue);
    tarn__opencl_queue_leave(q);
  }
  return error == CL_SUCCESS ? outcome : tarn__opencl_say(error, call);
}

// --- rows ------------------------------------------------------------------

static C_Status make_faults(queue *q) {
  tarn__opencl_fault none = {.position = UINT32_MAX};
  cl_int error = CL_SUCCESS;
  q->faults = tarn__opencl_driver_get()->CreateBuffer(
      q->device->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof none,
      &none, &error);
  return q->faults != NULL ? C_SUCCESS
                           : tarn__opencl_say(error, "clCreateBuffer");
}

C_Status tarn__opencl_faults(work *w, cl_mem *out_buffer,
                             uint64_t *out_serial) {
  queue *q = w->record;
  *out_buffer = NULL;
  *out_serial = 0;
  C_Status status = q->faults == NULL ? make_faults(q) : C_SUCCESS;
  if (status != C_SUCCESS) return status;
  *out_buffer = q->faults;
  *out_serial = ++q->rows;
  return C_SUCCESS;
}

cl_int tarn__opencl_fetch(work *w) {
  queue *q = w->record;
  cl_event event = NULL;
  if (q->rows == q->fetched) return CL_SUCCESS;
  cl_int error = tarn__opencl_driver_get()->EnqueueReadBuffer(
      w->queue, q->faults, CL_FALSE, 0, sizeof q->seen, &q->seen, 0, NULL,
      &event);
  tarn__opencl_keep(q, "rows", event);
  if (error == CL_SUCCESS) q->fetched = q->rows;
  return error;
}

// --- the end ---------------------------------------------------------------

void tarn__opencl_queues_close(opencl *d) {
  queue *q = NULL;
  while ((q = tarn__opencl_queue_behind(d, 0)) != NULL) {
    (void)tarn__opencl_drain(q->handle);
    tarn__opencl_queue_close(q);
    tarn__opencl_queue_drop(q);
  }
  while ((q = d->idle) != NULL) {
    d->idle = q->next;
    tarn__opencl_queue_drop(q);
  }
}
