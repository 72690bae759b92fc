// host.h - a host of the cpu plug-in, for its tests: the table as
// InitPlugin fills it, and ways to hold a stream up.
#ifndef TARN_TESTS_CPU_HOST_H_
#define TARN_TESTS_CPU_HOST_H_

#include <semaphore.h>
#include <string.h>

#define InitPlugin tarn__cpu_init_plugin  // as they are called inside libtarn
#define TarnDeviceExt tarn__cpu_device_ext
#include "support/run.h"
#include "tarn/device_abi.h"
#include "tarn/device_ext.h"

#define CPU (&(struct C_Device_st){.id = 0})
#define NOT_CPU (&(struct C_Device_st){.id = 1})

static inline C_DeviceInterface cpu_table(void) {
  C_DeviceInterface table = {.size = sizeof table};
  CustomRuntimeParams params = {.size = sizeof params, .interface = &table};
  InitPlugin(&params);
  return table;
}

#define assert_c(expression, expected)                                       \
  do {                                                                       \
    C_Status assert_c_got = (expression);                                    \
    ck_assert_msg(assert_c_got == (expected), "%s: %d, not %d", #expression, \
                  assert_c_got, (expected));                                 \
  } while (0)
#define assert_done(expression) assert_c(expression, C_SUCCESS)

// The extension's text of the last failure on this thread, or of a stream's.
#define EXT_TEXT_SIZE 256
static inline const char *ext_text(void *stream) {
  static _Thread_local char text[EXT_TEXT_SIZE];
  TarnDeviceExt()->error_text(0, stream, text, sizeof text);
  return text;
}

#define assert_ext(expression, expected)                        \
  do {                                                          \
    tarn_status assert_ext_got = (expression);                  \
    if (assert_ext_got != (expected)) {                         \
      ck_abort_msg("%s: %s, not %s: %s", #expression,           \
                   tarn_status_name(assert_ext_got),            \
                   tarn_status_name(expected), ext_text(NULL)); \
    }                                                           \
  } while (0)
#define assert_ext_ok(expression) assert_ext(expression, TARN_OK)

// TARN_E_INVALID, with a text that contains |says|.
#define assert_ext_wrong(expression, says)                                   \
  do {                                                                       \
    assert_ext(expression, TARN_E_INVALID);                                  \
    ck_assert_msg(strstr(ext_text(NULL), (says)) != NULL,                    \
                  "%s: '%s' does not say '%s'", #expression, ext_text(NULL), \
                  (says));                                                   \
  } while (0)

static inline C_Stream new_stream(const C_DeviceInterface *cpu) {
  C_Stream stream = NULL;
  assert_done(cpu->create_stream(CPU, &stream));
  ck_assert_ptr_nonnull(stream);
  return stream;
}

static inline C_Event new_event(const C_DeviceInterface *cpu) {
  C_Event event = NULL;
  assert_done(cpu->create_event(CPU, &event));
  ck_assert_ptr_nonnull(event);
  return event;
}

// A gate on a stream: what is queued behind it runs after gate_open.
typedef struct gate {
  sem_t entered;
  sem_t opened;
} gate;

static inline void pass_gate(C_Device device, C_Stream stream, void *user_data,
                             C_Status *status) {
  (void)device;
  (void)stream;
  (void)status;
  gate *g = user_data;
  sem_post(&g->entered);
  while (sem_wait(&g->opened) != 0)
    continue;
}

// Puts a closed gate on |stream| and returns when the stream stands at it.
static inline void gate_close(gate *g, const C_DeviceInterface *cpu,
                              C_Stream stream) {
  sem_init(&g->entered, 0, 0);
  sem_init(&g->opened, 0, 0);
  assert_done(cpu->stream_add_callback(CPU, stream, pass_gate, g));
  while (sem_wait(&g->entered) != 0)
    continue;
}

static inline void gate_open(gate *g) {
  sem_post(&g->opened);
}

#endif  // TARN_TESTS_CPU_HOST_H_
