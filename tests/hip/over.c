// The plug-in is registered, not loaded: it is part of the program.
#include "over.h"

#include <dlfcn.h>
#include <stdio.h>

#include "cuda/standin/api.h"

void tarn__hip_init_plugin(struct CustomRuntimeParams *params);
const struct tarn_device_ext *tarn__hip_device_ext(void);

const over_kind over_kinds[OVER_KINDS] = {
    {"HIP 6", TARN_STANDIN_HIP_6, ""},
    {"HIP 5", TARN_STANDIN_HIP_5, ""},
    {"HIP 7 without pools", TARN_STANDIN_HIP_7, "WITHOUT=pools"},
    {"HIP 7 without unified memory", TARN_STANDIN_HIP_7, "WITHOUT=managed"},
};

static void set(char *pair) {
  char *equals = strchr(pair, '=');
  ck_assert_ptr_nonnull(equals);
  *equals = '\0';
  ck_assert_msg(tarn_standin_set(pair, equals + 1), "%s", pair);
}

static void set_all(const char *settings) {
  char text[256];
  char *rest = NULL;
  tarn_standin_reset();
  ck_assert(tarn_standin_set("DEVICES", "2"));
  snprintf(text, sizeof text, "%s", settings);
  for (char *pair = strtok_r(text, " ", &rest); pair != NULL;
       pair = strtok_r(NULL, " ", &rest))
    set(pair);
}

// The plug-in finds the release that the program has loaded.
void over_begin(int i) {
  void *library = dlopen(over_kinds[i].library, RTLD_NOW | RTLD_LOCAL);
  ck_assert_msg(library != NULL, "%s", dlerror());
  set_all(over_kinds[i].settings);
  tarn_status status = tarn_plugin_register(tarn__hip_init_plugin,
                                            tarn__hip_device_ext, "a test");
  ck_assert(status == TARN_OK || status == TARN_E_STATE);
}

// The library holds the contexts, and does not know of an end.
void over_end_all(void) {
  for (CUdevice d = 0; d < 2; d++) {
    CUcontext context = NULL;
    ck_assert_uint_eq(cuDevicePrimaryCtxReset_v2(d), TARN__CU_SUCCESS);
    ck_assert_uint_eq(cuDevicePrimaryCtxRetain(&context, d), TARN__CU_SUCCESS);
  }
}

static void assert_empty(const char *what, size_t number) {
  size_t live = tarn_standin_live(NULL) - tarn_standin_live("context");
  uint64_t bytes = tarn_standin_bytes();
  if (live == 0 && bytes == 0) return;
  ck_abort_msg("%s, %zu: %zu objects and %llu bytes are left", what, number,
               live, (unsigned long long)bytes);
}

void over_assert_clean(const char *what, size_t number) {
  char report[4096];
  assert_empty(what, number);
  if (tarn_standin_misuses() == 0) return;
  tarn_standin_report(report, sizeof report);
  ck_abort_msg("%s, %zu: wrong uses:\n%s", what, number, report);
}
