// text.h - why a call failed, for a plug-in's error_text.
#ifndef TARN_PLUGINS_COMMON_TEXT_H_
#define TARN_PLUGINS_COMMON_TEXT_H_

#include "tarn/base.h"
#include "tarn/device_abi.h"

// One line. A plug-in has one for each thread:
//
//   _Thread_local tarn__common_text tarn__cpu_text;
//
// which is not the library's last error, for that is of other rooms as well.
typedef struct tarn__common_text {
  char line[192];
  unsigned wordless;  // as it was when the line was written
} tarn__common_text;

// How many calls of this thread have failed without a line: then an older line
// is not theirs.
extern _Thread_local unsigned tarn__text_wordless;

// For a call that fails without one. Returns |status|.
__attribute__((cold)) C_Status tarn__wordless(C_Status status);

// Writes |text| and returns |status|; what does not fit is cut.
__attribute__((format(printf, 3, 4), cold)) tarn_status tarn__text_fail(
    tarn__common_text *text, tarn_status status, const char *format, ...);

// Keeps |line|.
void tarn__text_set(tarn__common_text *text, const char *line);

// Why the last call failed that did; "" if nobody said.
const char *tarn__text_line(const tarn__common_text *text);

// Copies a line to |out|, cut to |out_size| bytes with the NUL.
void tarn__text_copy(const char *line, char *out, size_t out_size);

#endif  // TARN_PLUGINS_COMMON_TEXT_H_
