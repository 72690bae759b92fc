// Callbacks of streams.
//
//   added ──> waiting ──the driver calls, or a wait fails──> running ──> gone
//
// They are cuStreamAddCallback's, which the driver also makes on a stream that
// has failed. But then a wait for the stream returns at once, and where a
// context was destroyed a driver may call late, or never. Who waits for a
// stream may let go of what its callbacks use when the wait is over: so a
// thread whose wait fails makes the calls that have not come, and a late call
// of the driver's finds nothing. For that the driver is given a number, not an
// address.
#include "base/hostmem.h"
#include "gpu.h"

typedef tarn__cuda_device cuda;

typedef struct call {
  tarn_list node;
  uint64_t number;
  bool is_running;
  const cuda *device;
  C_Stream stream;
  C_Callback function;
  void *user_data;
  tarn__cuda_mark mark;  // what is before it
} call;

static struct {
  pthread_mutex_t lock;     // guards all below
  pthread_cond_t returned;  // a call is gone
  tarn_list list;           // in the order in which they were added
  uint64_t last;            // number
} calls = {.lock = PTHREAD_MUTEX_INITIALIZER,
           .returned = PTHREAD_COND_INITIALIZER,
           .list = {&calls.list, &calls.list}};

// --- the list --------------------------------------------------------------

static uint64_t enlist(call *c) {
  pthread_mutex_lock(&calls.lock);
  uint64_t number = c->number = ++calls.last;
  tarn_list_add_tail(&calls.list, &c->node);
  pthread_mutex_unlock(&calls.lock);
  return number;
}

// Whose calls are looked for: the one with |number|, or where that is 0 those
// of |stream|, or where that is NULL too of any of |device|.
typedef struct wanted {
  uint64_t number;
  const cuda *device;
  C_Stream stream;
} wanted;

static bool is_wanted(const call *c, const wanted *w) {
  if (w->number != 0) return c->number == w->number;
  return c->device == w->device &&
         (w->stream == NULL || c->stream == w->stream);
}

// The first that is running, or is not; NULL: none.
static call *find_locked(const wanted *w, bool is_running) {
  tarn_list *node = NULL;
  tarn_list_for_each (node, &calls.list) {
    call *c = tarn_list_entry(node, call, node);
    if (c->is_running == is_running && is_wanted(c, w)) return c;
  }
  return NULL;
}

// Makes the first that waits the caller's to run. NULL: none does.
static call *claim(const wanted *w) {
  pthread_mutex_lock(&calls.lock);
  call *c = find_locked(w, false);
  if (c != NULL) c->is_running = true;
  pthread_mutex_unlock(&calls.lock);
  return c;
}

static void free_call(call *c) {
  tarn__cuda_mark_drop(c->mark);
  tarn__host_free(c, sizeof *c);
}

// Ends a claimed one, which has returned or is not to be called.
static void end(call *c) {
  pthread_mutex_lock(&calls.lock);
  tarn_list_del(&c->node);
  pthread_cond_broadcast(&calls.returned);
  pthread_mutex_unlock(&calls.lock);
  free_call(c);
}

static void await_running(const wanted *w) {
  pthread_mutex_lock(&calls.lock);
  while (find_locked(w, true) != NULL)
    pthread_cond_wait(&calls.returned, &calls.lock);
  pthread_mutex_unlock(&calls.lock);
}

// --- calling ---------------------------------------------------------------

// The thread's text is the reason of a failure.
static void run(call *c, C_Status outcome) {
  struct C_Device_st device = {c->device->id};
  c->function(&device, c->stream, c->user_data, &outcome);
  end(c);
}

// Called by the driver, which takes no calls from here.
static void arrive(CUstream stream, tarn__cuda_result error, void *number) {
  (void)stream;
  const wanted w = {.number = (uintptr_t)number};
  call *c = claim(&w);
  if (c == NULL) return;
  run(c, error == TARN__CU_SUCCESS
             ? tarn__cuda_mark_settle(tarn__cuda_mark_again(c->mark), false)
             : tarn__cuda_say(error, "what is before a callback"));
}

C_Status tarn__cuda_calls_fail(const cuda *d, C_Stream stream,
                               C_Status failure) {
  char why[TARN__COMMON_LINE];
  const wanted w = {.device = d, .stream = stream};
  call *c = NULL;
  tarn__text_copy(tarn__text_line(), why, sizeof why);
  while ((c = claim(&w)) != NULL) {
    tarn__text_set(why);
    run(c, failure);
  }
  await_running(&w);
  tarn__text_set(why);
  return failure;
}

void tarn__cuda_calls_close(const cuda *d) {
  const wanted w = {.device = d};
  call *c = NULL;
  if (tarn__cuda_is_entered(d)) (void)tarn__cuda_drain_context();
  while ((c = claim(&w)) != NULL)
    end(c);
  await_running(&w);
}

// --- adding ----------------------------------------------------------------

// Queues |c|, which it takes.
static C_Status add(cuda *d, C_Stream stream, call *c) {
  tarn__cuda_work work;
  C_Status status = tarn__cuda_begin(d, stream, &work);
  if (status != C_SUCCESS) {
    free_call(c);
    return status;
  }
  c->mark = tarn__cuda_mark_of(d, stream);
  const wanted w = {.number = enlist(c)};
  tarn__cuda_result error = tarn__cuda_driver_get()->StreamAddCallback(
      work.stream, arrive, (void *)(uintptr_t)w.number, 0);
  call *refused = error != TARN__CU_SUCCESS ? claim(&w) : NULL;
  if (refused != NULL) end(refused);
  return tarn__cuda_end(&work, "cuStreamAddCallback", error);
}

C_Status tarn__cuda_stream_add_callback(const C_Device device, C_Stream stream,
                                        C_Callback callback, void *user_data) {
  cuda *d = tarn__cuda_device_of(device);
  if (d == NULL) return C_ERROR;
  if (stream == NULL || callback == NULL) return tarn__wordless(C_ERROR);
  call *c = tarn__host_alloc(sizeof *c);
  if (c == NULL) return tarn__wordless(C_FAILED);
  c->device = d;
  c->stream = stream;
  c->function = callback;
  c->user_data = user_data;
  return add(d, stream, c);
}
