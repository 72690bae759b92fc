// plugin.h - the parts of a plug-in that are the same in each: error texts, and
// filling the host's table.
#ifndef TARN_PLUGINS_COMMON_PLUGIN_H_
#define TARN_PLUGINS_COMMON_PLUGIN_H_

#include <pthread.h>

#include "base/os.h"
#include "tarn/base.h"
#include "tarn/device_abi.h"

enum { TARN__COMMON_LINE = 192 };  // bytes of a text, with the NUL

// Each thread has one text, apart from the library's last error: the reason of
// its last failed call. Plug-ins that are built into one library share it, for
// a host asks the one that has just failed.

// Notes a failure without a text. Returns |status|.
__attribute__((cold)) C_Status tarn__wordless(C_Status status);

// Writes the text, one line, which may be cut, and returns |status|.
__attribute__((format(printf, 2, 3), cold)) tarn_status tarn__text_fail(
    tarn_status status, const char *format, ...);

// The same, of a line that is not the text itself.
void tarn__text_set(const char *line);

// The text; "" if the last failure wrote none.
const char *tarn__text_line(void);

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
