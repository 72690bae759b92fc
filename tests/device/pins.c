// Waits and pins: an old wait's failure against a newer record of the same
// event, and streams that cannot be destroyed because others are about to wait
// for them, also in a child of fork.
//
// The fake plug-in's synchronize_event has a gate here: the first thread that
// waits for an event stays there until the test opens it.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"

enum { CHILD_SECONDS = 20 };

// Threads cannot fail a test: they note that something was not as it must be.
static atomic_size_t wrongs;

static bool good(bool condition) {
  if (!condition) atomic_fetch_add(&wrongs, 1);
  return condition;
}

static bool fine(tarn_status status) {
  return good(status == TARN_OK);
}

// --- an old wait's failure and a newer record ------------------------------

// The fake plug-in's synchronize_event, which stops on the way: so that the
// event is recorded anew before it says that it has failed.
static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool waiting;
  bool may_fail;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

static C_Status fail_at_the_gate(const C_Device device, C_Event event) {
  (void)device;
  (void)event;
  pthread_mutex_lock(&gate.lock);
  bool first = !gate.waiting;
  gate.waiting = true;
  pthread_cond_broadcast(&gate.changed);
  while (first && !gate.may_fail)
    pthread_cond_wait(&gate.changed, &gate.lock);
  pthread_mutex_unlock(&gate.lock);
  return first ? C_INTERNAL_ERROR : C_SUCCESS;
}

static void init_with_gate(CustomRuntimeParams *params) {
  fake_init(params);
  params->interface->synchronize_event = fail_at_the_gate;
}

static void *wait_in_vain(void *context) {
  (void)good(tarn_event_synchronize(context) == TARN_E_DEVICE);
  return NULL;
}

TEST(an_old_waits_failure_is_not_the_new_records) {
  pthread_t waiter;
  assert_ok(tarn_plugin_register(init_with_gate, NULL, "a test double"));
  tarn_device *device = open_device("fake:0");
  tarn_stream *stream = stream_on(device);
  tarn_event *event = event_on(device);
  assert_ok(tarn_event_record(event, stream));
  ck_assert_int_eq(pthread_create(&waiter, NULL, wait_in_vain, event), 0);
  pthread_mutex_lock(&gate.lock);
  while (!gate.waiting)
    pthread_cond_wait(&gate.changed, &gate.lock);
  pthread_mutex_unlock(&gate.lock);

  assert_ok(tarn_event_record(event, stream));
  pthread_mutex_lock(&gate.lock);
  gate.may_fail = true;
  pthread_cond_broadcast(&gate.changed);
  pthread_mutex_unlock(&gate.lock);
  ck_assert_int_eq(pthread_join(waiter, NULL), 0);
  ck_assert_uint_eq(wrongs, 0);
  assert_ok(tarn_event_query(event));
  assert_ok(tarn_event_synchronize(event));
}

// The same without a newer record: the failure stays with the event.
TEST(a_waits_failure_stays_with_its_record) {
  gate.may_fail = true;
  assert_ok(tarn_plugin_register(init_with_gate, NULL, "a test double"));
  tarn_device *device = open_device("fake:0");
  tarn_stream *stream = stream_on(device);
  tarn_event *event = event_on(device);
  assert_ok(tarn_event_record(event, stream));
  assert_status(tarn_event_synchronize(event), TARN_E_DEVICE);
  assert_status(tarn_event_query(event), TARN_E_DEVICE);
  assert_status(tarn_stream_wait_event(stream, event), TARN_E_DEVICE);
  assert_ok(tarn_event_record(event, stream));
  assert_ok(tarn_event_query(event));
}

// --- forks while streams are pinned ----------------------------------------

typedef struct joiner {
  tarn_device *device;
  _Atomic(uint64_t) serial;
  atomic_bool stop;
} joiner;

static void *join_for_ever(void *context) {
  joiner *j = context;
  while (!atomic_load(&j->stop))
    (void)fine(tarn_stream_join(NULL, atomic_load(&j->serial)));
  return NULL;
}

static void wait_for_callback(void *context, tarn_status status) {
  (void)status;
  atomic_bool *open = context;
  while (!atomic_load(open))
    usleep(100);
}

// The child has no pins and no waits for pins: it destroys the parent's stream,
// and joins and destroys streams of its own.
static int live_in_child(tarn_stream *parents) {
  tarn_device *cpu = NULL;
  tarn_stream *stream = NULL;
  alarm(CHILD_SECONDS);
  if (tarn_stream_destroy(parents) != TARN_OK) return 1;  // NULL: none
  if (tarn_device_open("cpu:0", &cpu) != TARN_OK) return 2;
  if (tarn_stream_create(cpu, &stream) != TARN_OK) return 3;
  for (int i = 0; i < 3; i++) {
    if (tarn_stream_join(NULL, tarn_stream_serial(stream)) != TARN_OK) return 4;
  }
  if (tarn_stream_destroy(stream) != TARN_OK) return 5;
  return tarn_device_close(cpu) == TARN_OK ? 0 : 6;
}

TEST(a_child_does_not_wait_for_pins_of_its_parent) {
  atomic_bool open = false;
  tarn_stream *stream = NULL;
  joiner j = {.device = open_device("cpu:0")};
  pthread_t thread;
  assert_ok(tarn_stream_create(j.device, &stream));
  atomic_store(&j.serial, tarn_stream_serial(stream));
  // The thread that joins it stays there and keeps its pin.
  assert_ok(tarn_stream_add_callback(stream, wait_for_callback, &open));
  ck_assert_int_eq(pthread_create(&thread, NULL, join_for_ever, &j), 0);
  for (int i = 0; i < 20; i++) {
    usleep(1000);
    pid_t child = fork();
    if (child == 0) _exit(live_in_child(stream));
    int status = 1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(status == 0, "fork %d: the child ended with 0x%x", i,
                  (unsigned)status);
  }
  atomic_store(&open, true);
  atomic_store(&j.stop, true);
  ck_assert_int_eq(pthread_join(thread, NULL), 0);
  ck_assert_uint_eq(wrongs, 0);
  assert_ok(tarn_stream_destroy(stream));
}

static void *join_once(void *context) {
  (void)fine(tarn_stream_join(NULL, *(uint64_t *)context));
  return NULL;
}

static void *destroy(void *context) {
  (void)fine(tarn_stream_destroy(context));
  return NULL;
}

static void open_gate(bool open) {
  pthread_mutex_lock(&gate.lock);
  gate.waiting = gate.waiting && open;
  gate.may_fail = open;
  pthread_cond_broadcast(&gate.changed);
  pthread_mutex_unlock(&gate.lock);
}

// One thread pins a stream and stays at the gate, another waits for the pin to
// go. |meanwhile| is called between.
static void destroy_what_is_pinned(tarn_device *device,
                                   void (*meanwhile)(void)) {
  tarn_stream *stream = NULL;
  pthread_t joins;
  pthread_t destroys;
  open_gate(false);
  assert_ok(tarn_stream_create(device, &stream));
  uint64_t serial = tarn_stream_serial(stream);
  ck_assert_int_eq(pthread_create(&joins, NULL, join_once, &serial), 0);
  pthread_mutex_lock(&gate.lock);
  while (!gate.waiting)
    pthread_cond_wait(&gate.changed, &gate.lock);
  pthread_mutex_unlock(&gate.lock);
  ck_assert_int_eq(pthread_create(&destroys, NULL, destroy, stream), 0);
  usleep(5000);  // it waits by now, most probably
  if (meanwhile != NULL) meanwhile();
  open_gate(true);
  ck_assert_int_eq(pthread_join(joins, NULL), 0);
  ck_assert_int_eq(pthread_join(destroys, NULL), 0);
  ck_assert_uint_eq(wrongs, 0);
}

static tarn_device *open_with_gate(const char *type, const char *name) {
  fake.type = type;
  assert_ok(tarn_plugin_register(init_with_gate, NULL, "a test double"));
  return open_device(name);
}

// The same in the child, with a plug-in that the parent never opened. The
// thread sanitizer allows no threads there.
static int pin_in_child(void) {
  gate.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
  gate.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
#if !defined(__SANITIZE_THREAD__)
  tarn_device *device = open_with_gate("late", "late:0");
  for (int i = 0; i < 3; i++)
    destroy_what_is_pinned(device, NULL);
  if (tarn_device_close(device) != TARN_OK) return 7;
#endif
  return live_in_child(NULL);
}

static void fork_and_pin(void) {
  pid_t child = fork();
  if (child == 0) {
    alarm(CHILD_SECONDS);
    _exit(pin_in_child());
  }
  int status = 1;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(status == 0, "the child ended with 0x%x", (unsigned)status);
}

// A thread of the parent waits for a pin on the condition that the child has
// too.
TEST(a_child_does_not_wait_for_those_who_wait_for_pins) {
  tarn_device *device = open_with_gate("fake", "fake:0");
  for (int i = 0; i < 3; i++)
    destroy_what_is_pinned(device, fork_and_pin);
}
