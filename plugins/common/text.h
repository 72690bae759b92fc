// text.h - why a call failed, for a plug-in's error_text.
#ifndef TARN_PLUGINS_COMMON_TEXT_H_
#define TARN_PLUGINS_COMMON_TEXT_H_

#include "tarn/base.h"

// One line. A plug-in has one for each thread:
//
//   _Thread_local tarn__text tarn__cpu_text;
//
// which is not the library's last error, for that is of other rooms as well.
typedef struct tarn__text {
  char line[192];
} tarn__text;

// Writes |text| and returns |status|; what does not fit is cut.
__attribute__((format(printf, 3, 4), cold)) tarn_status tarn__text_fail(
    tarn__text *text, tarn_status status, const char *format, ...);

// Copies a line to |out|, cut to |out_size| bytes with the NUL.
void tarn__text_copy(const char *line, char *out, size_t out_size);

#endif  // TARN_PLUGINS_COMMON_TEXT_H_
