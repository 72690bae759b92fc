// entry.h - what each function of the driver begins and ends with.
//
//   CUcontext context = NULL;
//   BEGIN(STANDIN_IN_CONTEXT, &context);
//   return END(do_it(context, ...));
#ifndef TARN_TESTS_CUDA_STANDIN_ENTRY_H_
#define TARN_TESTS_CUDA_STANDIN_ENTRY_H_

#include "objects.h"

// What a function needs.
typedef enum standin_need {
  STANDIN_ANYWHERE,         // nothing but a good process
  STANDIN_INITIALISED,      // cuInit
  STANDIN_UNCAPTURED,       // cuInit, no capture that the calling thread breaks
  STANDIN_IN_CONTEXT,       // a current context that is good
  STANDIN_NOT_IN_CAPTURES,  // such a context, and no such capture
} standin_need;

// Counts the call of |name|, and gives what it needs; the lock is held then,
// until standin_end. |out_context| may be NULL.
tarn__cuda_result standin_begin(const char *name, standin_need need,
                                CUcontext *out_context);
tarn__cuda_result standin_end(tarn__cuda_result result);

#define BEGIN(need, out_context)                                              \
  do {                                                                        \
    tarn__cuda_result begun = standin_begin(__func__, (need), (out_context)); \
    if (begun != TARN__CU_SUCCESS) return begun;                              \
  } while (0)
#define END(result) standin_end(result)

// The thread runs a callback of the program's, or does not any more.
void standin_set_in_callback(bool on);

// --- contexts --------------------------------------------------------------
// With the lock held.

// The context of a device, which is always there.
CUcontext standin_context_of(int device);

// True if it was retained and not ended since.
bool standin_context_is_active(const struct CUctx_st *context);

// The first failure of work, which sticks.
void standin_context_fail(CUcontext context, tarn__cuda_result error);

// The calling thread's current one; NULL: none.
CUcontext standin_current(void);

// A wrong use if the thread has too many, or none to take.
tarn__cuda_result standin_push(CUcontext context);
tarn__cuda_result standin_pop(CUcontext *out);

// Instead of the top one.
tarn__cuda_result standin_set_current(CUcontext context);

#endif  // TARN_TESTS_CUDA_STANDIN_ENTRY_H_
