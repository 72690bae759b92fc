// status.h - errors inside the library.
//
// The function that detects an error writes the text and returns the status in
// one expression. Its callers pass the status on and write nothing:
//
//   if (size == 0) return tarn__fail(TARN_E_INVALID, "pool: size is 0");
//   ...
//   TARN__TRY(check_size(size));
#ifndef TARN_BASE_STATUS_H_
#define TARN_BASE_STATUS_H_

#include <stdarg.h>

#include "tarn/base.h"

// Writes the thread's last error, returns |status|. Text beyond 511 bytes is
// cut, and control characters become '?', so that texts from files are safe to
// print.
__attribute__((format(printf, 2, 3), cold)) tarn_status tarn__fail(
    tarn_status status, const char *format, ...);

// The same for a stored text, such as a stream's first failure.
__attribute__((cold)) tarn_status tarn__fail_text(tarn_status status,
                                                  const char *text);

enum { TARN__ERROR_TEXT = 512 };  // bytes of a last error, with the NUL

// The first failure of several steps, with its text, so that later failures,
// such as in cleaning up, do not hide it. Zero: no failure.
typedef struct tarn__failure {
  tarn_status status;
  char text[TARN__ERROR_TEXT];
} tarn__failure;

// Keeps |status|, whose text is the last error, unless it is TARN_OK or a
// failure is kept already.
void tarn__failure_note(tarn__failure *failure, tarn_status status);

// |status| alone.
tarn__failure tarn__failure_of(tarn_status status);

// Makes its text the last error again, and returns it; TARN_OK if there is
// none.
tarn_status tarn__failure_tell(const tarn__failure *failure);

// Sends a line to the log callback, if there is one that wants it.
__attribute__((format(printf, 2, 3), cold)) void tarn__log(tarn_log_level level,
                                                           const char *format,
                                                           ...);

// How much of a struct that starts with struct_size its caller knows of:
// |given|, but no more than |own|; for 0 the |first| version's size. False if
// |given| is less than that.
static inline bool tarn__struct_size(size_t given, size_t first, size_t own,
                                     size_t *out_size) {
  *out_size = given == 0 ? first : given < own ? given : own;
  return *out_size >= first;
}

// Copies |given|, a struct that starts with struct_size, into the |own| bytes
// at |out|, and sets the fields that its caller does not know to zero.
//
// TARN_E_INVALID  |given| is NULL or too small; the text begins with |what|.
TARN_MUST_CHECK tarn_status tarn__take_struct(const char *what,
                                              const void *given, size_t first,
                                              void *out, size_t own);

// Clears what the caller of a query knows of |out|, a struct that starts with
// struct_size, but for that field; |*out_size| are the bytes.
//
// TARN_E_INVALID  |out| is NULL or too small; the text begins with |what|.
TARN_MUST_CHECK tarn_status tarn__clear_struct(const char *what, void *out,
                                               size_t first, size_t own,
                                               size_t *out_size);

// Returns from the function with the status of |call|, unless it is TARN_OK.
// For functions that have nothing to undo at that point.
#define TARN__TRY(call)                   \
  do {                                    \
    tarn_status tried_ = (call);          \
    if (tried_ != TARN_OK) return tried_; \
  } while (0)

// Keeps the first failure of several calls in |*first|.
static inline void tarn__keep_first(tarn_status *first, tarn_status status) {
  if (*first == TARN_OK) *first = status;
}

static inline uint64_t tarn__lesser(uint64_t a, uint64_t b) {
  return a < b ? a : b;
}

static inline size_t tarn__divide_up(size_t a, size_t b) {
  return a / b + (a % b != 0);
}

// The size of a version of |type| that ended with |field|.
#define TARN__SIZE_UP_TO(type, field) \
  (offsetof(type, field) + sizeof(((type *)NULL)->field))

// --- callbacks of streams --------------------------------------------------

// The thread's depth in callbacks; use tarn__not_in_callback. Every call reads
// it, hence the TLS model.
extern _Thread_local int tarn__callbacks_running
    __attribute__((tls_model("initial-exec")));

// Says that a callback must not wait. TARN_E_STATE.
__attribute__((cold)) tarn_status tarn__refuse_in_callback(void);

// TARN_E_STATE on a thread that is in a stream's callback, which must not wait,
// since the stream would wait for itself.
TARN_MUST_CHECK static inline tarn_status tarn__not_in_callback(void) {
  return tarn__callbacks_running == 0 ? TARN_OK : tarn__refuse_in_callback();
}

#endif  // TARN_BASE_STATUS_H_
