// What is broken or bad: machines without a device, drivers that fail while
// they are asked, bad options, a device that falls off, a context that was
// destroyed. Over the stand-in: each text has the words that a driver gives.
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/gpu.h"
#include "cuda/standin/api.h"
#include "over.h"
#include "tarn/range.h"

static void open_fails(const char *part) {
  tarn_device *device = NULL;
  assert_fails(tarn_device_open("cuda:0", &device), TARN_E_DEVICE, part);
  ck_assert_ptr_null(device);
  over_assert_clean("a device that does not open", 0);
}

static void begin(void) {
  over_set("");
  over_register();
}

// --- no device -------------------------------------------------------------

static const struct {
  const char *settings;
  const char *text;
} machines[] = {
    {"DEVICES=0", "cuInit: CUDA_ERROR_NO_DEVICE (100): "},
    {"INIT_FAILS=999", "cuInit: CUDA_ERROR_UNKNOWN (999): "},
};

TEST_LOOP(a_machine_without_a_device, sizeof machines / sizeof *machines) {
  over_set(machines[_i].settings);
  over_register();
  open_fails(machines[_i].text);
  over_set("");
  (void)open_device("cuda:0");  // which another try finds
}

// Each call that a first open makes fails, in a process of its own: what is
// listed stays.
enum { CALLS_OF_AN_OPEN = 60 };

TEST_LOOP(a_driver_that_fails_while_it_is_asked, CALLS_OF_AN_OPEN) {
  tarn_device *device = NULL;
  size_t total = 0;
  size_t available = 0;
  begin();
  tarn_standin_fail_call(NULL, (uint64_t)_i + 1, TARN__CU_ERROR_UNKNOWN, false);
  tarn_status status = tarn_device_open("cuda:0", &device);
  tarn_standin_fail_call(NULL, 0, 0, false);
  if (status != TARN_OK) {
    assert_fails(status, TARN_E_DEVICE, "CUDA_ERROR_UNKNOWN (999): ");
    assert_ok(tarn_device_open("cuda:0", &device));
  }
  assert_ok(tarn_device_memory(device, &total, &available));
  ck_assert_uint_eq(total, 1 << 30);
  assert_ok(tarn_device_close(device));
  over_assert_clean("an open", (size_t)_i + 1);
}

// --- options ---------------------------------------------------------------

static const struct {
  const char *name;
  const char *value;
  const char *text;
} wrong[] = {
    {"TARN_CUDA_WITHOUT", "ranges,legs",
     "TARN_CUDA_WITHOUT=ranges,legs: not some of ranges,"},
    {"TARN_CUDA_RELEASE_THRESHOLD", "much",
     "TARN_CUDA_RELEASE_THRESHOLD=much: not a size"},
};

TEST_LOOP(an_option_that_is_bad, sizeof wrong / sizeof *wrong) {
  begin();
  ck_assert_int_eq(setenv(wrong[_i].name, wrong[_i].value, 1), 0);
  open_fails(wrong[_i].text);
}

// Bytes that the pool keeps when a block of it was freed.
static uint64_t kept(const char *threshold) {
  enum { SIZE = 4 << 20 };
  struct C_Device_st device = {0};
  C_Stream stream = NULL;
  uint64_t block = 0;
  begin();
  ck_assert_int_eq(setenv("TARN_CUDA_RELEASE_THRESHOLD", threshold, 1), 0);
  ck_assert_int_eq(tarn__cuda_init_device(&device), C_SUCCESS);
  ck_assert_int_eq(tarn__cuda_create_stream(&device, &stream), C_SUCCESS);
  assert_ok(tarn__cuda_allocate_async(0, stream, SIZE, &block));
  assert_ok(tarn__cuda_deallocate_async(0, stream, block, SIZE));
  ck_assert_int_eq(tarn__cuda_synchronize_stream(&device, stream), C_SUCCESS);
  uint64_t bytes = tarn_standin_bytes();
  ck_assert_int_eq(tarn__cuda_deinit_device(&device), C_SUCCESS);
  over_assert_clean("a pool", 0);
  return bytes;
}

TEST(a_pool_that_keeps_nothing) {
  ck_assert_uint_eq(kept("0"), 0);
}

TEST(a_pool_that_keeps_all) {
  ck_assert_uint_ge(kept(""), 4 << 20);
}

// --- what a device lacks ---------------------------------------------------

typedef tarn_status slot(void);

static tarn_status reserve(void) {
  uint64_t address = 0;
  return tarn__cuda_range_reserve(0, 2 << 20, 0, &address);
}

static tarn_status create_to_share(void) {
  uint64_t memory = 0;
  return tarn__cuda_memory_create(0, 2 << 20, TARN_EXT_MEMORY_SHAREABLE,
                                  &memory);
}

static tarn_status take_pooled(void) {
  uint64_t block = 0;
  return tarn__cuda_allocate_async(0, NULL, 64, &block);
}

static tarn_status register_memory(void) {
  static char bytes[64];
  return tarn__cuda_host_register(0, bytes, sizeof bytes);
}

static const struct {
  const char *ability;
  slot *call;
} lacking[] = {
    {"ranges", reserve},
    {"sharing", create_to_share},
    {"pools", take_pooled},
    {"register", register_memory},
};

TEST_LOOP(a_slot_tells_what_the_device_lacks,
          sizeof lacking / sizeof *lacking) {
  char text[64];
  const char *ability = lacking[_i].ability;
  begin();
  ck_assert_int_eq(setenv("TARN_CUDA_WITHOUT", ability, 1), 0);
  (void)open_device("cuda:0");
  ck_assert_int_eq(lacking[_i].call(), TARN_E_UNSUPPORTED);
  snprintf(text, sizeof text, "cuda:0 is without %s: the environment asks",
           ability);
  ck_assert_msg(strncmp(tarn__text_line(), text, strlen(text)) == 0, "%s",
                tarn__text_line());
}

TEST(a_device_without_unified_memory) {
  tarn_addr block = 0;
  over_set("WITHOUT=managed");
  over_register();
  tarn_place unified = {open_device("cuda:0"), TARN_PLACE_UNIFIED};
  assert_fails(tarn_device_allocate(unified, 64, &block), TARN_E_UNSUPPORTED,
               "without managed: the device has no managed memory");
}

// --- a device that is lost -------------------------------------------------

static void lose_all(tarn_device *device, tarn_stream *stream,
                     tarn_addr block) {
  char bytes[64];
  size_t size = 0;
  tarn_addr other = 0;
  const char *words = "CUDA_ERROR_UNKNOWN (999)";
  tarn_place memory = tarn_place_on(device);
  assert_fails(tarn_device_allocate(memory, 64, &other), TARN_E_DEVICE, words);
  assert_fails(tarn_copy_d2h(device, bytes, block, 64, NULL), TARN_E_DEVICE,
               words);
  assert_fails(tarn_copy_h2d(device, block, bytes, 64, stream), TARN_E_DEVICE,
               words);
  assert_fails(tarn_device_memory(device, &size, &size), TARN_E_DEVICE, words);
  assert_fails(tarn_range_reserve(device, 2 << 20, 0, &other), TARN_E_DEVICE,
               words);
  assert_fails(tarn_stream_synchronize(stream), TARN_E_DEVICE, words);
  assert_fails(tarn_device_synchronize(device), TARN_E_DEVICE, words);
  assert_fails(tarn_device_deallocate(memory, block, 64), TARN_E_DEVICE, words);
}

TEST(a_device_that_falls_off) {
  tarn_device *device = NULL;
  tarn_stream *stream = NULL;
  tarn_addr block = 0;
  begin();
  assert_ok(tarn_device_open("cuda:0", &device));
  assert_ok(tarn_stream_create(device, &stream));
  assert_ok(tarn_device_allocate(tarn_place_on(device), 64, &block));
  tarn_standin_lose(1, TARN__CU_ERROR_UNKNOWN);
  lose_all(device, stream, block);
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
  assert_ok(tarn_device_close(device));
  ck_assert_uint_eq(tarn_standin_misuses(), 0);
}

// --- a context that was destroyed ------------------------------------------

TEST(a_context_that_was_destroyed_from_outside) {
  tarn_device *device = NULL;
  tarn_stream *stream = NULL;
  tarn_addr block = 0;
  tarn_addr other = 0;
  begin();
  assert_ok(tarn_device_open("cuda:0", &device));
  assert_ok(tarn_stream_create(device, &stream));
  tarn_place memory = tarn_place_on(device);
  assert_ok(tarn_device_allocate(memory, 64, &block));
  ck_assert_uint_eq(cuDevicePrimaryCtxReset_v2(0), TARN__CU_SUCCESS);
  assert_fails(tarn_device_allocate(memory, 64, &other), TARN_E_DEVICE,
               "CUDA_ERROR_CONTEXT_IS_DESTROYED (709)");
  assert_status(tarn_stream_synchronize(stream), TARN_E_DEVICE);
  assert_status(tarn_device_deallocate(memory, block, 64), TARN_E_DEVICE);
  assert_status(tarn_stream_destroy(stream), TARN_E_DEVICE);
  assert_ok(tarn_device_close(device));
}

// --- forks -----------------------------------------------------------------

// In the child: 0: each call of the plug-in says why it fails.
static int try_in_child(void) {
  struct C_Device_st device = {0};
  size_t count = 0;
  void *block = NULL;
  if (tarn__cuda_device_memory_allocate(&device, &block, 64) != C_ERROR ||
      strstr(tarn__text_line(), "initialised before a fork") == NULL) {
    return 1;
  }
  return tarn__cuda_init_device(&device) == C_ERROR &&
                 tarn__cuda_device_memory_stats(&device, &count, &count) ==
                     C_ERROR
             ? 0
             : 2;
}

TEST(a_child_cannot_use_the_driver) {
  int status = -1;
  begin();
  (void)open_device("cuda:0");
  uint64_t calls = tarn_standin_calls(NULL);
  pid_t child = fork();
  if (child == 0) {
    int result = try_in_child();
    _exit(tarn_standin_calls(NULL) == calls ? result : 3);
  }
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_int_eq(status, 0);
}
