// settings.h - what the stand-in is told to be; see opencl/standin.h.
#ifndef TARN_TESTS_OPENCL_STANDIN_SETTINGS_H_
#define TARN_TESTS_OPENCL_STANDIN_SETTINGS_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { STANDIN_TEXT_SIZE = 256 };

typedef enum standin_setting {
  STANDIN_METHODS,
  STANDIN_PLATFORMS,
  STANDIN_NO_PLATFORM_IS_OK,
  STANDIN_DEVICES,
  STANDIN_DEVICE_TYPES,
  STANDIN_DEVICE_NAME,
  STANDIN_VERSION,
  STANDIN_GLOBAL_SIZE,
  STANDIN_MAX_ALLOC,
  STANDIN_MAX_ALIGN,
  STANDIN_BASE_ALIGN,
  STANDIN_COUNTS_MEMORY,
  STANDIN_PLAIN_HOST,
  STANDIN_GUARD,
  STANDIN_LAZY,
  STANDIN_BUILD_FAILS,
  STANDIN_CONTEXT_FAILS,
  STANDIN_FAILED_CALLBACKS,
  STANDIN_FINISH_TELLS,
  STANDIN_FOLLOW_STATUS,
  STANDIN_RECOVERS,
  STANDIN_FAIL_CALL,
  STANDIN_FAIL_COMMAND,
  STANDIN_KERNELS,
  STANDIN_REPORT,
  STANDIN_LOUD,
  STANDIN_SETTINGS,
} standin_setting;

// A copy of the value.
void standin_text(standin_setting setting, char out[STANDIN_TEXT_SIZE]);

// The value as a number; 0 if it is none.
int64_t standin_number(standin_setting setting);

// True if |word| is one of the value's words, which commas separate.
bool standin_has_word(standin_setting setting, const char *word);

// The |index|-th word, beginning again behind the last.
void standin_word(standin_setting setting, size_t index,
                  char out[STANDIN_TEXT_SIZE]);

// 12, 20 or 30.
int standin_version(void);

// Memory with an address that the driver has, none of which is there before
// the version of OpenCL that it needs.
bool standin_has_usm(void);
bool standin_has_coarse(void);
bool standin_has_fine(void);
bool standin_has_address(void);

// Where the settings are: |name| without the prefix. False if there is none.
bool standin_change(const char *name, const char *value);
void standin_settings_reset(void);

#endif  // TARN_TESTS_OPENCL_STANDIN_SETTINGS_H_
