// Frames of Python: found before main, checked once, then read.
//
//   ABSENT                there is no Python, or its frames are not known
//   WAITING ──► ASKED     Python has begun, and was asked to make the check
//      ▲          │
//      └──────────┤       it was made where there was nothing to compare
//                 ├──► READ
//                 └──► ABSENT
#include "record/python_frames.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "record/numbers.h"
#include "record/python_api.h"
#include "record/python_check.h"
#include "record/python_stack.h"
#include "record/settings.h"

enum { ABSENT, WAITING, ASKED, READ };

static python_api api;
static python_reader reader;
static _Atomic int state;

// ---------------------------------------------------------------------------
// Finding
// ---------------------------------------------------------------------------

static void say_absent(const char *why) {
  char line[256];
  const char *version = api.version();
  int length = snprintf(line, sizeof line,
                        "tarn record: stacks have no lines of Python %.*s: "
                        "%s\n",
                        (int)strcspn(version, " "), version, why);
  if (length > 0 && (size_t)length < sizeof line)
    (void)!write(STDERR_FILENO, line, (size_t)length);
}

// What python_api_find does not promise.
static bool has_functions(void) {
  return api.is_initialized != NULL && api.is_finalizing != NULL &&
         api.add_pending_call != NULL && api.own_thread != NULL &&
         api.current_thread != NULL && api.thread_frame != NULL &&
         api.frame_back != NULL && api.frame_code != NULL &&
         api.frame_line != NULL && api.attribute != NULL && api.utf8 != NULL &&
         api.bytes != NULL && api.release != NULL && api.clear_error != NULL &&
         api.code_type != NULL;
}

bool python_frames_begin(void) {
  const char *why = "it lacks functions that have to be there";
  if (!python_api_find(&api)) return false;
  const python_layout *layout =
      python_layout_find(api.version(), api.runtime, &why);
  if (layout == NULL || !has_functions()) {
    say_absent(why);
    return false;
  }
  reader = (python_reader){.layout = layout, .code_type = api.code_type};
  if (!python_stack_begin(&reader, api.eval)) return false;
  atomic_store(&state, WAITING);
  return true;
}

// ---------------------------------------------------------------------------
// Checking
// ---------------------------------------------------------------------------

// In a subinterpreter of 3.11 or before, the thread's own state is another.
static python_verdict ask_python(void) {
  python_reader guarded = reader;
  void *thread = api.own_thread();
  if (thread == NULL || thread != api.current_thread())
    return PYTHON_RUNS_NOTHING;
  guarded.guarded = true;
  return python_check(&api, &guarded, thread);
}

// A pending call: Python makes it, with its lock, between two instructions.
static int check(void *context) {
  (void)context;
  if (!python_read_is_guarded()) {
    atomic_store(&state, ABSENT);
    say_absent("process_vm_readv, which checks its frames, is forbidden here");
    return 0;
  }
  switch (ask_python()) {
    case PYTHON_AGREES:
      atomic_store(&state, READ);
      break;
    case PYTHON_DIFFERS:
      atomic_store(&state, ABSENT);
      say_absent("its frames are not where this version keeps them");
      break;
    case PYTHON_RUNS_NOTHING:
      atomic_store(&state, WAITING);
      settings_watch_all();
      break;
  }
  return 0;
}

bool python_frames_prepare(void) {
  int waits = WAITING;
  if (atomic_load(&state) == WAITING && api.is_initialized() != 0 &&
      atomic_compare_exchange_strong(&state, &waits, ASKED) &&
      api.add_pending_call(check, NULL) != 0) {
    atomic_store(&state, WAITING);  // there are too many: later
  }
  return atomic_load(&state) == WAITING;
}

// ---------------------------------------------------------------------------
// Reading
// ---------------------------------------------------------------------------

bool python_frames_are_read(void) {
  return atomic_load_explicit(&state, memory_order_relaxed) == READ &&
         api.is_finalizing() == 0;
}

int python_frames_read(python_frame *out_frames, int most, uint64_t *hash) {
  if (!python_frames_are_read()) return 0;
  const void *thread = api.own_thread();
  if (thread == NULL) return 0;
  int count = python_read_frames(&reader, thread, out_frames, most);
  for (int i = 0; i < count; i++)
    *hash = numbers_mix(*hash, python_read_key(&reader, &out_frames[i]));
  return count;
}
