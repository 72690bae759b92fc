// talk_python.h - a talk with a program of Python that answers with numbers.
#ifndef TARN_BENCH_TALK_PYTHON_H_
#define TARN_BENCH_TALK_PYTHON_H_

#include "talk.h"

enum { TALK_PYTHON_ARGUMENTS = 8 };  // at most

// Starts |program|, lines of Python that print "ready" when they are; it gets
// |arguments|, which NULL ends. The Python is that which TARN_BENCH_PYTHON of
// the environment names, else the python3 of PATH, or that of the system where
// the first one cannot run the program. NULL: |why|, TALK_TEXT_SIZE bytes, says
// why not, of the first.
talk *talk_python_start(const char *program, const char *const *arguments,
                        char *why);

// Asks, with the end of the line: the answer is a number above 0. False: |why|
// as above.
bool talk_python_ask(talk *python, const char *question, double *out_answer,
                     char *why);

#endif  // TARN_BENCH_TALK_PYTHON_H_
