// python_api.h - the functions of the interpreter that the recorder calls.
//
// They are looked for in the program and what it is linked with: Python is
// there before main, in python3.x itself or in libpython3.x.so, or not at all.
// The recorder is neither compiled nor linked with any of it.
#ifndef TARN_RECORD_PYTHON_API_H_
#define TARN_RECORD_PYTHON_API_H_

#include <stdbool.h>
#include <stddef.h>

// Of Python; nothing is known of it here.
typedef struct python_object python_object;

typedef struct python_api {
  // Any thread may call these, without Python's lock.
  const char *(*version)(void);
  int (*is_initialized)(void);
  int (*is_finalizing)(void);
  int (*add_pending_call)(int (*call)(void *), void *context);
  void *(*own_thread)(void);      // the calling thread's state, or NULL
  void *(*current_thread)(void);  // that of the thread with the lock; unchecked

  // With the lock only, and not within malloc: they make objects.
  python_object *(*thread_frame)(void *thread);
  python_object *(*frame_back)(python_object *frame);
  python_object *(*frame_code)(python_object *frame);
  int (*frame_line)(python_object *frame);
  python_object *(*attribute)(python_object *object, const char *name);
  const char *(*utf8)(python_object *text);
  int (*bytes)(python_object *object, char **out, ptrdiff_t *out_size);
  void (*release)(python_object *object);
  void (*clear_error)(void);
  int (*disable_collection)(void);  // NULL before 3.10
  int (*enable_collection)(void);

  const void *code_type;
  const void *eval;  // the function that runs frames
  const void *runtime;
} python_api;

// Before main. False: the program has no Python.
bool python_api_find(python_api *out_api);

#endif  // TARN_RECORD_PYTHON_API_H_
