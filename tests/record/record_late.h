// record_late.h - a library whose destructor allocates, and that can be slow.
#ifndef TARN_TESTS_RECORD_RECORD_LATE_H_
#define TARN_TESTS_RECORD_RECORD_LATE_H_

enum { RECORD_LATE_BYTES = 100500 };

#pragma GCC visibility push(default)

// |count| times, at the end of the program; 0 unless told.
void record_late(int count);

// Microseconds that readlink takes from now on.
void record_slow(unsigned us);

#pragma GCC visibility pop

#endif  // TARN_TESTS_RECORD_RECORD_LATE_H_
