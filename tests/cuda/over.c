// The plug-in is registered, not loaded: it is part of the program.
#include "over.h"

#include <stdio.h>

void tarn__cuda_init_plugin(struct CustomRuntimeParams *params);
const struct tarn_device_ext *tarn__cuda_device_ext(void);

// A driver of today, an old one, one that is slow, and one that does not read
// ahead.
const over_kind over_kinds[OVER_KINDS] = {
    {"all", ""},
    {"an old driver", "WITHOUT=ranges,sharing,pools,managed,register"},
    {"a slow driver", "LATE=300 PAGEABLE=late"},
    {"a driver that waits", "LATE=0 PAGEABLE=waits"},
};

static void set(char *pair) {
  char *equals = strchr(pair, '=');
  ck_assert_ptr_nonnull(equals);
  *equals = '\0';
  ck_assert_msg(tarn_standin_set(pair, equals + 1), "%s", pair);
}

void over_set(const char *settings) {
  char text[256];
  char *rest = NULL;
  tarn_standin_reset();
  ck_assert(tarn_standin_set("KERNELS", TARN_STANDIN_ROWS));
  ck_assert(tarn_standin_set("DEVICES", "2"));
  snprintf(text, sizeof text, "%s", settings);
  for (char *pair = strtok_r(text, " ", &rest); pair != NULL;
       pair = strtok_r(NULL, " ", &rest))
    set(pair);
}

void over_register(void) {
  tarn_status status = tarn_plugin_register(tarn__cuda_init_plugin,
                                            tarn__cuda_device_ext, "a test");
  ck_assert(status == TARN_OK || status == TARN_E_STATE);
}

void over_begin(int i) {
  over_set(over_kinds[i].settings);
  over_register();
}

static void assert_empty(const char *what, size_t number) {
  size_t live = tarn_standin_live(NULL);
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
