// Looks for the functions of Python, by the names that each version has.
#include "record/python_api.h"

#include <string.h>

#include "record/real.h"

typedef struct wanted {
  size_t at;  // in python_api
  const char *name;
  const char *other;  // where that is not there; NULL: none
} wanted;

#define WANTED(member, name) \
  { offsetof(python_api, member), name, NULL }

static const wanted all[] = {
    WANTED(version, "Py_GetVersion"),
    WANTED(is_initialized, "Py_IsInitialized"),
    {offsetof(python_api, is_finalizing), "_Py_IsFinalizing",
     "Py_IsFinalizing"},
    WANTED(add_pending_call, "Py_AddPendingCall"),
    WANTED(own_thread, "PyGILState_GetThisThreadState"),
    {offsetof(python_api, current_thread), "_PyThreadState_UncheckedGet",
     "PyThreadState_GetUnchecked"},
    WANTED(thread_frame, "PyThreadState_GetFrame"),
    WANTED(frame_back, "PyFrame_GetBack"),
    WANTED(frame_code, "PyFrame_GetCode"),
    WANTED(frame_line, "PyFrame_GetLineNumber"),
    WANTED(attribute, "PyObject_GetAttrString"),
    WANTED(utf8, "PyUnicode_AsUTF8"),
    WANTED(bytes, "PyBytes_AsStringAndSize"),
    WANTED(release, "Py_DecRef"),
    WANTED(clear_error, "PyErr_Clear"),
    WANTED(disable_collection, "PyGC_Disable"),
    WANTED(enable_collection, "PyGC_Enable"),
    WANTED(code_type, "PyCode_Type"),
    WANTED(eval, "_PyEval_EvalFrameDefault"),
    WANTED(runtime, "_PyRuntime"),
};

// |version| alone is certain to be there then: which of the others a version
// has is for python_frames.c to see.
bool python_api_find(python_api *out_api) {
  *out_api = (python_api){0};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    void *found = real()->dlsym(RTLD_DEFAULT, all[i].name);
    if (found == NULL && all[i].other != NULL)
      found = real()->dlsym(RTLD_DEFAULT, all[i].other);
    memcpy((char *)out_api + all[i].at, &found, sizeof found);
    if (i == 0 && found == NULL) return false;
  }
  return true;
}
