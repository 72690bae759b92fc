// python_layout.h - where Python keeps its frames, version by version.
//
// Offsets are in bytes. From a thread's state to a line:
//
//   thread ──► (holder ──►) frame ──► frame it was called by ──► ...
//                             │
//                             ├─ position in its code
//                             └─► code ──► file, name: texts
//                                   ├────► table of lines: bytes
//                                   └─ first line
//
// What a number means is in the headers of that version (cpython/pystate.h,
// internal/pycore_frame.h, cpython/code.h, cpython/unicodeobject.h); 3.13 has
// the numbers in itself (_Py_DebugOffsets).
#ifndef TARN_RECORD_PYTHON_LAYOUT_H_
#define TARN_RECORD_PYTHON_LAYOUT_H_

#include <stdint.h>

#include "record/python_lines.h"

// An offset of what this version does not have.
#define PYTHON_NOWHERE UINT16_MAX

// How a frame tells where in its code it is.
typedef enum python_position {
  PYTHON_BYTES,    // an int: bytes
  PYTHON_UNITS,    // an int: instructions of 2 bytes
  PYTHON_POINTER,  // the address
} python_position;

typedef struct python_layout {
  python_lines lines;
  python_position position;

  uint16_t thread_frame;  // its frame, or the holder
  uint16_t holder_frame;  // NOWHERE: there is no holder
  uint16_t frame_back;    // the frame that called it
  uint16_t frame_code;
  uint16_t frame_position;
  // Whether the interpreter's function was called for this frame: others share
  // a call. Both NOWHERE: each frame has its own.
  uint16_t frame_is_entry;  // a byte
  uint16_t frame_owner;     // a byte; the C stack's are no frames of Python

  uint16_t code_file;
  uint16_t code_name;
  uint16_t code_first_line;
  uint16_t code_lines;
  uint16_t code_begin;  // of the instructions; NOWHERE: positions are ints

  uint16_t text_length;  // its hash, or -1, is behind it
  uint16_t text_state;
  uint16_t text_ascii;  // where the bytes begin if all are ASCII
  uint16_t text_wide;   // else
  uint16_t bytes_length;
  uint16_t bytes_begin;
} python_layout;

// Of the version that Py_GetVersion tells, with the address of _PyRuntime; NULL
// and why not: nothing is known of it.
const python_layout *python_layout_find(const char *version,
                                        const void *runtime,
                                        const char **out_why);

#endif  // TARN_RECORD_PYTHON_LAYOUT_H_
