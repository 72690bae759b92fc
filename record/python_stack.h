// python_stack.h - stacks of the machine with frames of Python in them.
//
//   at::native::empty_cpu              at::native::empty_cpu
//   at::native::addmm                  at::native::addmm
//   _PyEval_EvalFrameDefault     ──►   linear.py:114 forward
//   method_vectorcall                  module.py:1194 _call_impl
//   _PyEval_EvalFrameDefault           train.py:12 forward
//   main                               train.py:40 <module>
//
// A call of the interpreter's function becomes the frames that it runs. Other
// functions of the interpreter's file are left out from the first of these on;
// those of other files, through which Python has called itself, stay. Frames
// whose call is beyond the stack's end stand at its end.
#ifndef TARN_RECORD_PYTHON_STACK_H_
#define TARN_RECORD_PYTHON_STACK_H_

#include <stdbool.h>
#include <stdint.h>

#include "record/python_read.h"
#include "record/slots.h"

typedef struct python_stack {
  void *const *addresses;  // returns to, innermost first
  int address_count;
  const python_frame *frames;  // innermost first
  int frame_count;
} python_stack;

// Before main. |eval| is the function that runs frames. False: no memory.
bool python_stack_begin(const python_reader *reader, const void *eval);

// Defines stack |number| in the page of |mine|, and the frames that are new.
void python_stack_define(slot *mine, uint64_t number,
                         const python_stack *stack);

// In the child of a fork: no frame is defined.
void python_stack_forget(void);

#endif  // TARN_RECORD_PYTHON_STACK_H_
