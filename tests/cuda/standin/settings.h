// settings.h - what the stand-in is told to be; see cuda/standin.h.
#ifndef TARN_TESTS_CUDA_STANDIN_SETTINGS_H_
#define TARN_TESTS_CUDA_STANDIN_SETTINGS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STANDIN_TEXT_SIZE = 256 };

typedef enum standin_setting {
  STANDIN_DEVICES,
  STANDIN_DEVICE_NAME,
  STANDIN_DRIVER_VERSION,
  STANDIN_CAPABILITY,
  STANDIN_CAPACITY,
  STANDIN_ALIGN,
  STANDIN_GRANULARITY,
  STANDIN_WITHOUT,
  STANDIN_GUARD,
  STANDIN_LATE,
  STANDIN_PAGEABLE,
  STANDIN_IMAGES,
  STANDIN_INIT_FAILS,
  STANDIN_RESERVE_MAX,
  STANDIN_ADDRESSES,
  STANDIN_FAIL_CALL,
  STANDIN_FAIL_COMMAND,
  STANDIN_LOSE,
  STANDIN_KERNELS,
  STANDIN_REPORT,
  STANDIN_LOUD,
  STANDIN_SETTINGS,
} standin_setting;

// A copy of the value.
void standin_text(standin_setting setting, char out[STANDIN_TEXT_SIZE]);

// The value as a number; 0 if it is none.
uint64_t standin_number(standin_setting setting);

// True if |word| is the value.
bool standin_is_set_to(standin_setting setting, const char *word);

// True if |word| is one of the value's words, which commas separate.
bool standin_has_word(standin_setting setting, const char *word);

// Where the settings are: |name| without the prefix. False if there is none.
bool standin_change(const char *name, const char *value);
void standin_settings_reset(void);

#endif  // TARN_TESTS_CUDA_STANDIN_SETTINGS_H_
