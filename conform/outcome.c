// What came of a check.
#include <stdarg.h>
#include <stdio.h>

#include "check.h"

__attribute__((format(printf, 4, 0))) static void set_outcome(
    conform_target *t, conform_result result, conform_level level,
    const char *format, va_list arguments) {
  t->outcome.result = result;
  t->outcome.level = level;
  vsnprintf(t->outcome.detail, sizeof t->outcome.detail, format, arguments);
}

bool conform_fail(conform_target *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_outcome(t, CONFORM_FAIL, CONFORM_FAULT, format, arguments);
  va_end(arguments);
  return false;
}

bool conform_quirk(conform_target *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_outcome(t, CONFORM_PASS, CONFORM_QUIRK, format, arguments);
  va_end(arguments);
  return false;
}

bool conform_skip(conform_target *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_outcome(t, CONFORM_SKIP, CONFORM_NONE, format, arguments);
  va_end(arguments);
  return false;
}

bool conform_note(conform_target *t, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  set_outcome(t, CONFORM_PASS, CONFORM_NOTE, format, arguments);
  va_end(arguments);
  return true;
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
