// record_late.h - a library whose destructor allocates.
#ifndef TARN_TESTS_SUPPORT_RECORD_LATE_H_
#define TARN_TESTS_SUPPORT_RECORD_LATE_H_

enum { RECORD_LATE_BYTES = 100500 };

// |count| times, at the end of the program; 0 unless told.
void record_late(int count);

#endif  // TARN_TESTS_SUPPORT_RECORD_LATE_H_
