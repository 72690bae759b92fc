// Error texts of a plug-in, and its InitPlugin, for tables of which the first
// 472 bytes are used. Nothing beyond the size that the host offers is written.
#include "common/plugin.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

// --- error texts -----------------------------------------------------------

static _Thread_local char text[TARN__COMMON_LINE];

C_Status tarn__wordless(C_Status status) {
  text[0] = '\0';
  return status;
}

tarn_status tarn__text_fail(tarn_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return status;
}

void tarn__text_set(const char *line) {
  tarn__text_copy(line, text, sizeof text);
}

const char *tarn__text_line(void) {
  return text;
}

void tarn__text_copy(const char *line, char *out, size_t out_size) {
  if (out == NULL || out_size == 0) return;
  snprintf(out, out_size, "%s", line);
}

// --- InitPlugin ------------------------------------------------------------

enum {
  TABLE_KNOWN = offsetof(C_DeviceInterface, beyond),
  TABLE_LIMIT = 64 << 10,  // a host that offers more never set the size
  PARAMS_KNOWN = sizeof(CustomRuntimeParamsA),
};

static bool is_usable(const C_DeviceInterface *interface) {
  return interface != NULL && interface->size >= TABLE_KNOWN &&
         interface->size <= TABLE_LIMIT;
}

// A host's table may be longer than ours or shorter: its own size counts.
static void fill(C_DeviceInterface *interface, const C_DeviceInterface *table) {
  size_t size = interface->size;
  memset(interface, 0, size);
  memcpy(interface, table, TABLE_KNOWN);
  interface->size = size;
}

void tarn__common_offer(CustomRuntimeParams *params,
                        const C_DeviceInterface *table, char *type,
                        char *sub_type) {
  if (params == NULL || params->size < PARAMS_KNOWN) return;
  params->device_type = NULL;
  params->sub_device_type = NULL;
  if (!is_usable(params->interface)) return;
  fill(params->interface, table);
  params->version = (C_RuntimeVersion){0, 1, 1};
  params->device_type = type;
  params->sub_device_type = sub_type;
}
