// The outcome of a check.
#include <stdarg.h>
#include <stdio.h>

#include "check.h"

bool conform_say(conform_target *t, conform_result result, conform_level level,
                 const char *format, ...) {
  va_list arguments;
  t->outcome.result = result;
  t->outcome.level = level;
  va_start(arguments, format);
  vsnprintf(t->outcome.detail, sizeof t->outcome.detail, format, arguments);
  va_end(arguments);
  return level == CONFORM_NOTE;
}

bool conform_went_well(conform_target *t, const char *function, C_Status got) {
  if (got == C_SUCCESS || got == C_WARNING) return true;
  return conform_fail(t, "%s answered %s, not C_SUCCESS", function,
                      conform_status(got));
}

bool conform_can(conform_target *t, const char *slot, tarn_status got) {
  if (got != TARN_E_UNSUPPORTED) return true;
  return conform_skip(t, "%s answered TARN_E_UNSUPPORTED: this device cannot",
                      slot);
}

bool conform_was_refused(conform_target *t, const char *what, tarn_status got) {
  EXPECT(t, got == TARN_E_INVALID, "%s is answered %s, not TARN_E_INVALID",
         what, tarn_status_name(got));
  return true;
}

bool conform_was_ok(conform_target *t, const char *slot, tarn_status got) {
  char text[256] = "";
  if (got == TARN_OK) return true;
  if (!conform_can(t, slot, got)) return false;
  if (t->ext->error_text != NULL) {
    t->ext->error_text(t->device.id, NULL, text, sizeof text);
  }
  return conform_fail(t, "%s answered %s, not TARN_OK%s%s", slot,
                      tarn_status_name(got), *text != '\0' ? ": " : "", text);
}
