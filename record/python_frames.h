// python_frames.h - the frames of Python of the thread that allocates.
//
// A stack of the machine shows Python's interpreter and not its program. What
// that runs is read from the interpreter's own frames (python_read.h), and put
// into the stack (python_stack.h).
//
// Rules:
// - Python's lock is never taken. PyTorch allocates without it (98% of the
//   large allocations of a training), and so frames are read without it: those
//   of the calling thread alone, which nobody else changes.
// - No object is made or released within malloc. Frames are read by a layout
//   (python_layout.h).
// - The layout is checked once, before anything is read by it without guard: by
//   a pending call, which Python makes with its lock, outside of malloc, on its
//   main thread. It is asked for at the first allocation of any size after
//   Python has begun. If the layout differs, or none is known, stacks have no
//   frames of Python, and a line on stderr says so.
// - A thread's state is its own as PyGILState_GetThisThreadState says, which
//   holds with and without the lock. Up to 3.11 that knows one state a thread:
//   in a subinterpreter that a thread of the main one has entered it is the
//   main one's, and its frames are those that wait for the subinterpreter.
// - Once Python ends, nothing is read: it ends the states of other threads,
//   which may run on. Such a thread would have to be kept from running between
//   that question and its last read for as long as it takes Python to get
//   there.
// - Names are copied into the file when a frame is first seen. Code can end and
//   other code get its address, so all that a frame says is compared each time
//   (python_read_key).
//
// Threads: any. Cost: some 45 ns a frame (python_read_key: all that it says).
#ifndef TARN_RECORD_PYTHON_FRAMES_H_
#define TARN_RECORD_PYTHON_FRAMES_H_

#include <stdbool.h>
#include <stdint.h>

#include "record/python_read.h"

// Before main: finds Python. False: there is none to wait for.
bool python_frames_begin(void);

// Asks Python for the check, once it has begun. False: there is nothing left to
// wait for.
bool python_frames_prepare(void);

// Whether stacks may have frames of Python.
bool python_frames_are_read(void);

// The frames of the calling thread, innermost first, at most |most|; adds to
// |*hash| what tells them from others. 0: there are none, or it is not known.
int python_frames_read(python_frame *out_frames, int most, uint64_t *hash);

#endif  // TARN_RECORD_PYTHON_FRAMES_H_
