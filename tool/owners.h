// owners.h - which frame of a stack answers for an allocation.
//
// A stack names every layer: the allocator, the called library, and the code
// that called it. A user who looks for holders of memory can change only that
// code. So a stack is owned by its innermost frame of the caller's own code,
// and each block counts once, under it.
//
// What is a library unless patterns say otherwise:
//   a trace with Python frames,  all but Python; of Python what lies below
//   and snapshots of PyTorch     site-packages, dist-packages or
//                                lib/python3.x, and what is frozen
//   any other                    what lies below those, /lib, /usr/lib,
//                                /usr/include and the like; the C library, the
//                                loader, libtarn, the interpreter and its
//                                sources (interpreter.h)
//
// A stack of libraries alone is owned by the innermost node of the automatic
// differentiation in it, "AccumulateGrad::apply", if there is one; else by its
// innermost frame that is not of an allocator.
//
// Cost: each frame is judged once and each stack searched once, when first
//       asked for.
#ifndef TARN_TOOL_OWNERS_H_
#define TARN_TOOL_OWNERS_H_

#include <tarn/tarn.h>

#include "kit/options.h"

typedef struct owners owners;

// |patterns|, as --libraries names them, are tried on the file and on the
// function, as fnmatch does it; the last that matches decides, and where none
// does the rules above do:
//
//   "*/vendor/*"           libraries too
//   "!*/site-packages/my*" own code, whatever else is said
//   "none"                 none of the rules above: all the rest is own code
//
// Borrows both until owners_destroy.
owners *owners_create(const tarn_trace *trace, const options_list *patterns);
void owners_destroy(owners *o);

bool owners_is_own(owners *o, uint32_t frame);

// The frame that owns |stack|; TARN_TRACE_NO_STACK if that has none.
uint32_t owners_of(owners *o, uint32_t stack);

#endif  // TARN_TOOL_OWNERS_H_
