// The version, the names of statuses, each thread's last error.
#include "base/status.h"

#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[TARN__ERROR_TEXT];

static bool is_control(const unsigned char *text) {
  return text[0] < 0x20 || text[0] == 0x7f ||
         (text[0] == 0xc2 && text[1] >= 0x80 && text[1] < 0xa0);  // U+0080..9F
}

// Names out of files stand in these texts, and they end on terminals.
static void keep_printable(char *text) {
  for (unsigned char *c = (unsigned char *)text; *c != '\0'; c++) {
    if (!is_control(c)) continue;
    if (*c == 0xc2) *c++ = '?';
    *c = '?';
  }
}

#define STRING_OF(x) #x
#define VERSION_TEXT(major, minor, patch) \
  STRING_OF(major) "." STRING_OF(minor) "." STRING_OF(patch)

const char *tarn_version(void) {
  return VERSION_TEXT(TARN_VERSION_MAJOR, TARN_VERSION_MINOR,
                      TARN_VERSION_PATCH);
}

#define NAMED(status) \
  { status, #status }

const char *tarn_status_name(tarn_status status) {
  static const struct {
    tarn_status status;
    const char *name;
  } names[] = {
      NAMED(TARN_OK),        NAMED(TARN_FULL),        NAMED(TARN_PENDING),
      NAMED(TARN_E_INVALID), NAMED(TARN_E_STATE),     NAMED(TARN_E_UNSUPPORTED),
      NAMED(TARN_E_DEVICE),  NAMED(TARN_E_PEER_LOST), NAMED(TARN_E_TIMEOUT),
      NAMED(TARN_E_CORRUPT), NAMED(TARN_E_NOMEM),     NAMED(TARN_E_IO),
  };
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (names[i].status == status) return names[i].name;
  }
  return "TARN_?";
}

const char *tarn_last_error(void) {
  return last_error;
}

tarn_status tarn__fail(tarn_status status, const char *format, ...) {
  // Through a second buffer: an argument may be the last error itself.
  char text[TARN__ERROR_TEXT];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail_text(status, text);
}

tarn_status tarn_fail(tarn_status status, const char *text) {
  return tarn__fail_text(status, text != NULL ? text : "");
}

tarn_status tarn__fail_text(tarn_status status, const char *text) {
  if (text != last_error) {
    snprintf(last_error, sizeof last_error, "%s", text);
  }
  keep_printable(last_error);
  return status;
}

void tarn__failure_note(tarn__failure *failure, tarn_status status) {
  if (status == TARN_OK || failure->status != TARN_OK) return;
  failure->status = status;
  memcpy(failure->text, last_error, sizeof last_error);
}

tarn__failure tarn__failure_of(tarn_status status) {
  tarn__failure failure = {.status = TARN_OK};
  tarn__failure_note(&failure, status);
  return failure;
}

tarn_status tarn__failure_tell(const tarn__failure *failure) {
  if (failure->status == TARN_OK) return TARN_OK;
  return tarn__fail_text(failure->status, failure->text);
}

// --- structs ---------------------------------------------------------------

tarn_status tarn__take_struct(const char *what, const void *given, size_t first,
                              void *out, size_t own) {
  size_t told = 0;
  size_t size = 0;
  memset(out, 0, own);
  if (given == NULL) return tarn__fail(TARN_E_INVALID, "%s: NULL", what);
  memcpy(&told, given, sizeof told);
  if (!tarn__struct_size(told, first, own, &size)) {
    return tarn__fail(TARN_E_INVALID, "%s: struct_size is %zu", what, told);
  }
  memcpy(out, given, size);
  return TARN_OK;
}

tarn_status tarn__clear_struct(const char *what, void *out, size_t first,
                               size_t own, size_t *out_size) {
  size_t told = 0;
  if (out != NULL) memcpy(&told, out, sizeof told);
  if (out == NULL || !tarn__struct_size(told, first, own, out_size)) {
    return tarn__fail(TARN_E_INVALID, "%s: NULL or struct_size", what);
  }
  memset(out, 0, *out_size);
  memcpy(out, out_size, sizeof *out_size);
  return TARN_OK;
}

// --- callbacks of streams --------------------------------------------------

_Thread_local int tarn__callbacks_running
    __attribute__((tls_model("initial-exec")));

tarn_status tarn__refuse_in_callback(void) {
  return tarn__fail(TARN_E_STATE,
                    "called from a stream's callback, which must not wait");
}
