// plugin.h - the parts of a plug-in that are the same in each: error texts, and
// filling the host's table.
#ifndef TARN_PLUGINS_COMMON_PLUGIN_H_
#define TARN_PLUGINS_COMMON_PLUGIN_H_

#include "tarn/base.h"
#include "tarn/device_abi.h"

// One line. A plug-in has one for each thread, apart from the library's last
// error:
//
//   _Thread_local tarn__common_text tarn__cpu_text;
typedef struct tarn__common_text {
  char line[192];
  unsigned wordless;  // tarn__text_wordless when the line was written
} tarn__common_text;

// How many calls of this thread have failed without writing a line. A line that
// is older than the newest of them is not reported.
extern _Thread_local unsigned tarn__text_wordless;

// Notes a failure without a line. Returns |status|.
__attribute__((cold)) C_Status tarn__wordless(C_Status status);

// Writes a line, cut to the size of |text|, and returns |status|.
__attribute__((format(printf, 3, 4), cold)) tarn_status tarn__text_fail(
    tarn__common_text *text, tarn_status status, const char *format, ...);

// Copies |line| to |text|.
void tarn__text_set(tarn__common_text *text, const char *line);

// The line of the last failure; "" if it wrote none.
const char *tarn__text_line(const tarn__common_text *text);

// Copies a line to |out|, cut to |out_size| bytes with the NUL.
void tarn__text_copy(const char *line, char *out, size_t out_size);

// --- InitPlugin ------------------------------------------------------------

// Fills |params| and the host's table from |table|, as version 0.1.1 of the
// ABI. If the host's sizes are unusable, device_type stays NULL, which every
// host must refuse. |type| and |sub_type| live as long as the plug-in.
void tarn__common_offer(CustomRuntimeParams *params,
                        const C_DeviceInterface *table, char *type,
                        char *sub_type);

#endif  // TARN_PLUGINS_COMMON_PLUGIN_H_
