// noise.h - what a plug-in calls that writes to stdout: see noise.c.
#ifndef TARN_TESTS_SUPPORT_NOISE_H_
#define TARN_TESTS_SUPPORT_NOISE_H_

void noise(const char *what);

#endif  // TARN_TESTS_SUPPORT_NOISE_H_
