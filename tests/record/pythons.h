// pythons.h - the Pythons of the machine, for tests of a recorder that knows
// several versions.
#ifndef TARN_TESTS_RECORD_PYTHONS_H_
#define TARN_TESTS_RECORD_PYTHONS_H_

// 3.9 to 3.13, and then the system's own, whichever that is.
enum { PYTHONS_FIRST = 9, PYTHONS_SYSTEM = 14, PYTHONS_END };

// The program of Python 3.|minor|, or of the system's: of PATH, or of pyenv.
// NULL, after a line that says so: it is not here. Until the next call.
const char *pythons_find(int minor);

#endif  // TARN_TESTS_RECORD_PYTHONS_H_
