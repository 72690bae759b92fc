// interpreter.h - which files of a trace are CPython's own sources.
//
// They have no fixed place: a debugger's names for them are "Objects/call.c",
// "./Python/dynload_shlib.c" or
// "/tmp/build/Python-3.11.7/Modules/arraymodule.c", depending on how the
// interpreter was built. A file counts as the interpreter's if it lies in one
// of the folders Include, Modules, Objects, Parser, Programs and Python, the
// last such folder of its path, and this folder lies
//
//   - in a folder that is named after the interpreter: python, cpython, or
//     either with a version, as in Python-3.11.7; or
//   - where a function of the interpreter is, in another of these files: one
//     whose name begins with PyEval_, PyObject_, PyImport_ or Py_, with or
//     without an underscore in front. A program cannot define these itself.
#ifndef TARN_TOOL_INTERPRETER_H_
#define TARN_TOOL_INTERPRETER_H_

#include <stdbool.h>
#include <stddef.h>
#include <tarn/tarn.h>

enum { INTERPRETER_ROOTS = 8 };  // more are not looked for

typedef struct interpreter {
  const char *roots[INTERPRETER_ROOTS];  // paths that begin with them
  size_t lengths[INTERPRETER_ROOTS];     // of each, up to the folder
  size_t count;
} interpreter;

// Cost: one pass over the names of frames.
interpreter interpreter_find(const tarn_trace *trace);

// |file| has less than 4096 bytes.
bool interpreter_has(const interpreter *found, const char *file);

#endif  // TARN_TOOL_INTERPRETER_H_
