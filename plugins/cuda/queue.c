// Records of streams, found by handle, and streams for calls without one.
//
//   begin ──> rows_note? ──> the driver's calls ──> end
//                                                    └──> without a stream:
//                                                         wait, then idle again
//
// A bad index is found by a kernel, which writes it to the fault of its
// stream's record. A fault is read behind a wait or a query. What that covers
// is told by a mark, taken before the driver is asked: the number of calls of
// rows until then.
//
// Invariants:
//   * A fault holds the first bad row of a stream, of the lowest serial. So one
//     with a serial above a mark's says that nothing before the mark was bad.
//   * An adopted stream's record leaves the map when a mark behind all of its
//     rows is reached: no kernel writes to its fault any more. One with a fault
//     stays until the stream itself has told of it. Marks that hold the record
//     still find there what was found.
//   * A record is freed without a call of the driver, so that a callback may
//     drop the last hold. Its pinned memory goes back to the device's.
//   * Memory that a captured graph writes to stays until the device is closed.
//   * Streams for calls without one begin each call without a fault.
#include <string.h>

#include "base/hostmem.h"
#include "gpu.h"

typedef tarn__cuda_device cuda;
typedef tarn__cuda_queue queue;
typedef tarn__cuda_work work;
typedef tarn__cuda_mark mark;

static struct {
  pthread_mutex_t lock;  // guards the map; taken inside a record's
  tarn__range_map map;   // of streams, by key
} streams = {.lock = PTHREAD_MUTEX_INITIALIZER};

// --- keys ------------------------------------------------------------------

// Each device has a stream with the handle CU_STREAM_LEGACY, and each thread
// has one with CU_STREAM_PER_THREAD on each device. The addresses of these are
// keys that no handle has.
static _Thread_local char of_thread[TARN__CUDA_DEVICES_MAX];

static uint64_t key_of(const cuda *d, CUstream handle) {
  if (handle == TARN__CU_STREAM_LEGACY) return (uintptr_t)d;
  if (handle == TARN__CU_STREAM_PER_THREAD) return (uintptr_t)&of_thread[d->id];
  return (uintptr_t)handle;
}

static queue *record_of(tarn__range_map_node *node) {
  return (queue *)(void *)node;
}

// --- one record ------------------------------------------------------------

static queue *new_record(cuda *d, CUstream handle) {
  queue *q = tarn__host_alloc(sizeof *q);
  if (q == NULL) {
    (void)tarn__wordless(C_FAILED);
    return NULL;
  }
  q->node.start = key_of(d, handle);
  q->device = d;
  q->handle = handle;
  atomic_init(&q->holds, 1);
  atomic_init(&q->failure, C_SUCCESS);
  pthread_mutex_init(&q->lock, NULL);
  return q;
}

static void free_record(queue *q) {
  if (q->fault != NULL && !q->is_fault_kept)
    tarn__cuda_fault_put(q->device, q->fault);
  pthread_mutex_destroy(&q->lock);
  tarn__host_free(q, sizeof *q);
}

static queue *hold(queue *q) {
  atomic_fetch_add_explicit(&q->holds, 1, memory_order_relaxed);
  return q;
}

void tarn__cuda_queue_drop(queue *q) {
  if (q == NULL) return;
  if (atomic_fetch_sub_explicit(&q->holds, 1, memory_order_acq_rel) == 1)
    free_record(q);
}

// --- the map ---------------------------------------------------------------

static queue *find_locked(uint64_t key) {
  tarn__range_map_node *node = tarn__range_map_at(&streams.map, key);
  return node != NULL && node->start == key ? hold(record_of(node)) : NULL;
}

static queue *find(uint64_t key) {
  pthread_mutex_lock(&streams.lock);
  queue *q = find_locked(key);
  pthread_mutex_unlock(&streams.lock);
  return q;
}

// The first record of |d| whose key is above |key|, held.
static queue *behind(const cuda *d, uint64_t key) {
  pthread_mutex_lock(&streams.lock);
  tarn__range_map_node *node = tarn__range_map_at(&streams.map, key);
  do {
    node = tarn__range_map_behind(&streams.map, node);
  } while (node != NULL && record_of(node)->device != d);
  queue *q = node != NULL ? hold(record_of(node)) : NULL;
  pthread_mutex_unlock(&streams.lock);
  return q;
}

// Takes |q|, whose lock is held, out of the map. False: it was in none. Else
// the caller drops the map's hold.
static bool detach(queue *q) {
  if (q->is_detached) return false;
  pthread_mutex_lock(&streams.lock);
  tarn__range_map_remove(&streams.map, &q->node);
  pthread_mutex_unlock(&streams.lock);
  q->is_detached = true;
  return true;
}

void tarn__cuda_queue_forget(queue *q) {
  pthread_mutex_lock(&q->lock);
  bool was_there = detach(q);
  pthread_mutex_unlock(&q->lock);
  if (was_there) tarn__cuda_queue_drop(q);
}

// Removes the record of an adopted stream that its owner has destroyed: the
// driver has given its handle to another. Kernels of it may be under way.
static void expel(uint64_t key) {
  queue *q = find(key);
  if (q == NULL) return;
  pthread_mutex_lock(&q->lock);
  q->is_fault_kept = true;
  pthread_mutex_unlock(&q->lock);
  tarn__cuda_queue_forget(q);
  tarn__cuda_queue_drop(q);
}

// A record for an adopted stream, or the one that another thread has made.
static queue *adopt(cuda *d, CUstream handle) {
  queue *fresh = new_record(d, handle);
  if (fresh == NULL) return NULL;
  fresh->is_adopted = true;
  pthread_mutex_lock(&streams.lock);
  queue *q = find_locked(fresh->node.start);
  if (q == NULL) {
    tarn__range_map_insert(&streams.map, &fresh->node);
    q = hold(fresh);
  }
  pthread_mutex_unlock(&streams.lock);
  if (q != fresh) tarn__cuda_queue_drop(fresh);
  return q;
}

queue *tarn__cuda_queue_known(C_Stream stream) {
  queue *q = find((uintptr_t)stream);
  if (q == NULL || !q->is_adopted) return q;
  tarn__cuda_queue_drop(q);
  return NULL;
}

// --- streams ---------------------------------------------------------------

tarn__cuda_result tarn__cuda_drain(CUstream stream) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  tarn__cuda_result error = cu->StreamSynchronize(stream);
  if (error != TARN__CU_SUCCESS) (void)cu->StreamSynchronize(stream);
  return error;
}

tarn__cuda_result tarn__cuda_drain_context(void) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  tarn__cuda_result error = cu->CtxSynchronize();
  if (error != TARN__CU_SUCCESS) (void)cu->CtxSynchronize();
  return error;
}

// A record, in no map, with a stream of its own.
static C_Status make_stream(cuda *d, queue **out) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  CUstream handle = NULL;
  tarn__cuda_result error =
      cu->StreamCreate(&handle, TARN__CU_STREAM_NON_BLOCKING);
  if (error != TARN__CU_SUCCESS) return tarn__cuda_say(error, "cuStreamCreate");
  *out = new_record(d, handle);
  if (*out == NULL) {
    (void)cu->StreamDestroy(handle);
    return C_FAILED;
  }
  (*out)->is_detached = true;
  return C_SUCCESS;
}

C_Status tarn__cuda_queue_open(cuda *d, C_Stream *out) {
  queue *q = NULL;
  C_Status status = make_stream(d, &q);
  if (q == NULL) return status;
  q->is_detached = false;
  expel(q->node.start);
  pthread_mutex_lock(&streams.lock);
  tarn__range_map_insert(&streams.map, &q->node);
  pthread_mutex_unlock(&streams.lock);
  *out = (C_Stream)(void *)q->handle;
  return C_SUCCESS;
}

// The record goes first: the driver may give the handle to another stream.
tarn__cuda_result tarn__cuda_queue_close(queue *q) {
  tarn__cuda_queue_forget(q);
  return tarn__cuda_driver_get()->StreamDestroy(q->handle);
}

static void close_stream(queue *q, bool entered) {
  if (q->is_adopted || !entered) {
    tarn__cuda_queue_forget(q);
  } else {
    (void)tarn__cuda_queue_close(q);
  }
  tarn__cuda_queue_drop(q);
}

void tarn__cuda_queues_close(cuda *d) {
  bool entered = tarn__cuda_is_entered(d);
  queue *q = NULL;
  while ((q = behind(d, 0)) != NULL)
    close_stream(q, entered);
  while ((q = d->idle) != NULL) {
    d->idle = q->next;
    close_stream(q, entered);
  }
  tarn__cuda_faults_close(d);
}

// --- outcomes of rows ------------------------------------------------------

static uint64_t serial_of(queue *q) {
  if (q->fault == NULL) return 0;
  return __atomic_load_n(&q->fault->serial, __ATOMIC_ACQUIRE);
}

static void forget_fault(queue *q) {
  if (q->fault != NULL) memset(q->fault, 0, sizeof *q->fault);
}

// The outcome of the calls of rows up to |rows|, with the lock held.
static C_Status outcome_of(queue *q, uint64_t rows) {
  uint64_t serial = serial_of(q);
  if (serial == 0 || serial > rows) return C_SUCCESS;
  char why[TARN__COMMON_LINE];
  const tarn_rows table = {.table_count = q->fault->count};
  tarn__rows_say_bad(&table, q->fault->index, q->fault->position, why,
                     sizeof why);
  bool sticks = !q->is_adopted && !q->is_detached;
  if (sticks &&
      atomic_load_explicit(&q->failure, memory_order_relaxed) == C_SUCCESS) {
    tarn__text_copy(why, q->why, sizeof q->why);
    atomic_store_explicit(&q->failure, C_ERROR, memory_order_release);
  }
  tarn__text_set(why);
  return C_ERROR;
}

mark tarn__cuda_mark_of(cuda *d, C_Stream stream) {
  mark m = {NULL, 0, false};
  queue *q = find(key_of(d, (CUstream)(void *)stream));
  if (q == NULL) return m;
  pthread_mutex_lock(&q->lock);
  if (q->rows != 0) m = (mark){hold(q), q->rows, q->queuing == 0};
  pthread_mutex_unlock(&q->lock);
  tarn__cuda_queue_drop(q);
  return m;
}

mark tarn__cuda_mark_again(mark m) {
  if (m.queue != NULL) (void)hold(m.queue);
  return m;
}

void tarn__cuda_mark_drop(mark m) {
  tarn__cuda_queue_drop(m.queue);
}

// Lets go of an adopted stream whose rows are over. A graph may write another
// fault there: then only this one, which has been told, is let go.
static bool let_go(queue *q) {
  if (!q->is_fault_kept) return detach(q);
  forget_fault(q);
  return false;
}

C_Status tarn__cuda_mark_settle(mark m, bool is_told) {
  queue *q = m.queue;
  if (q == NULL) return C_SUCCESS;
  pthread_mutex_lock(&q->lock);
  C_Status outcome = outcome_of(q, m.rows);
  bool is_over = q->is_adopted && m.is_behind_all && m.rows == q->rows;
  bool goes = is_over && (outcome == C_SUCCESS || is_told);
  bool was_there = goes && let_go(q);
  pthread_mutex_unlock(&q->lock);
  if (was_there) tarn__cuda_queue_drop(q);
  tarn__cuda_queue_drop(q);
  return outcome;
}

// Records of adopted streams stay: calls of rows that came after the wait was
// begun are not told apart here.
C_Status tarn__cuda_queues_outcome(const cuda *d) {
  char why[TARN__COMMON_LINE] = "";
  C_Status first = C_SUCCESS;
  queue *q = behind(d, 0);
  while (q != NULL) {
    uint64_t key = q->node.start;
    pthread_mutex_lock(&q->lock);
    C_Status outcome = outcome_of(q, q->rows);
    pthread_mutex_unlock(&q->lock);
    if (first == C_SUCCESS && outcome != C_SUCCESS) {
      tarn__text_copy(tarn__text_line(), why, sizeof why);
      first = outcome;
    }
    tarn__cuda_queue_drop(q);
    q = behind(d, key);
  }
  if (first != C_SUCCESS) tarn__text_set(why);
  return first;
}

// --- work ------------------------------------------------------------------

static C_Status take_idle(cuda *d, queue **out) {
  pthread_mutex_lock(&d->lock);
  *out = d->idle;
  if (*out != NULL) d->idle = (*out)->next;
  pthread_mutex_unlock(&d->lock);
  return *out != NULL ? C_SUCCESS : make_stream(d, out);
}

// A stream on which something has failed need not work any more.
static void put_idle(queue *q, bool works) {
  cuda *d = q->device;
  if (!works) {
    (void)tarn__cuda_driver_get()->StreamDestroy(q->handle);
    tarn__cuda_queue_drop(q);
    return;
  }
  pthread_mutex_lock(&d->lock);
  q->next = d->idle;
  d->idle = q;
  pthread_mutex_unlock(&d->lock);
}

C_Status tarn__cuda_begin(cuda *d, C_Stream stream, work *out) {
  *out = (work){.device = d, .stream = (CUstream)(void *)stream};
  C_Status status = tarn__cuda_enter(d, stream == NULL, &out->scope);
  if (status != C_SUCCESS || stream != NULL) return status;
  status = take_idle(d, &out->own);
  if (out->own == NULL) {
    tarn__cuda_leave(&out->scope);
    return status;
  }
  out->stream = out->own->handle;
  return C_SUCCESS;
}

static void end_rows(work *w) {
  queue *q = w->rows;
  if (q == NULL) return;
  pthread_mutex_lock(&q->lock);
  q->queuing--;
  pthread_mutex_unlock(&q->lock);
  tarn__cuda_queue_drop(q);
}

// Waits, and makes the stream as good as new.
static C_Status await(work *w, tarn__cuda_result error) {
  queue *q = w->own;
  C_Status outcome = C_SUCCESS;
  tarn__cuda_result finished = tarn__cuda_drain(w->stream);
  if (finished != TARN__CU_SUCCESS) {
    outcome = tarn__cuda_say(finished, "cuStreamSynchronize");
  } else {
    pthread_mutex_lock(&q->lock);
    outcome = outcome_of(q, q->rows);
    forget_fault(q);
    pthread_mutex_unlock(&q->lock);
  }
  put_idle(q, error == TARN__CU_SUCCESS && finished == TARN__CU_SUCCESS);
  return outcome;
}

C_Status tarn__cuda_end(work *w, const char *call, tarn__cuda_result error) {
  C_Status status = C_SUCCESS;
  end_rows(w);
  if (w->own != NULL) status = await(w, error);
  if (error != TARN__CU_SUCCESS) status = tarn__cuda_say(error, call);
  tarn__cuda_leave(&w->scope);
  return status;
}

// --- rows ------------------------------------------------------------------

static C_Status need_fault(queue *q) {
  tarn__cuda_fault *fault = NULL;
  pthread_mutex_lock(&q->lock);
  bool has = q->fault != NULL;
  pthread_mutex_unlock(&q->lock);
  if (has) return C_SUCCESS;
  C_Status status = tarn__cuda_fault_take(q->device, &fault);
  if (status != C_SUCCESS) return status;
  pthread_mutex_lock(&q->lock);
  if (q->fault == NULL) {
    q->fault = fault;
    fault = NULL;
  }
  pthread_mutex_unlock(&q->lock);
  if (fault != NULL) tarn__cuda_fault_put(q->device, fault);
  return C_SUCCESS;
}

// The record of the work's stream, held and locked, with memory for a fault.
// Another thread may let go of an adopted stream's meanwhile.
static C_Status lock_record(work *w, queue **out) {
  cuda *d = w->device;
  for (;;) {
    queue *q = w->own != NULL ? hold(w->own) : find(key_of(d, w->stream));
    if (q == NULL) q = adopt(d, w->stream);
    if (q == NULL) return C_FAILED;
    C_Status status = need_fault(q);
    if (status != C_SUCCESS) {
      tarn__cuda_queue_drop(q);
      return status;
    }
    pthread_mutex_lock(&q->lock);
    *out = q;
    if (q == w->own || !q->is_detached) return C_SUCCESS;
    pthread_mutex_unlock(&q->lock);
    tarn__cuda_queue_drop(q);
  }
}

static bool is_capturing(CUstream stream) {
  const tarn__cuda_driver *cu = tarn__cuda_driver_get();
  unsigned status = TARN__CU_STREAM_CAPTURE_STATUS_NONE;
  return cu->StreamIsCapturing != NULL &&
         cu->StreamIsCapturing(stream, &status) == TARN__CU_SUCCESS &&
         status != TARN__CU_STREAM_CAPTURE_STATUS_NONE;
}

// Pinned memory has one address for the host and for devices.
C_Status tarn__cuda_rows_note(work *w, CUdeviceptr *out_fault,
                              uint64_t *out_serial) {
  queue *q = NULL;
  *out_fault = *out_serial = 0;
  bool is_kept = w->own == NULL && is_capturing(w->stream);
  C_Status status = lock_record(w, &q);
  if (status != C_SUCCESS) return status;
  if (is_kept) q->is_fault_kept = true;
  q->queuing++;
  *out_fault = (uintptr_t)q->fault;
  *out_serial = ++q->rows;
  w->rows = q;
  pthread_mutex_unlock(&q->lock);
  return C_SUCCESS;
}
