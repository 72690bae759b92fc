// report.h - wrong uses, counted and kept as text.
#ifndef TARN_TESTS_CUDA_STANDIN_REPORT_H_
#define TARN_TESTS_CUDA_STANDIN_REPORT_H_

#include <stddef.h>
#include <stdint.h>

// The function of the driver that this thread is in, or the call that queued
// the command that it runs: the beginning of each line of the report.
void standin_set_call(const char *name);
const char *standin_call(void);

// Counts a wrong use and keeps its text. Returns |code|.
__attribute__((format(printf, 2, 3))) unsigned standin_wrong(unsigned code,
                                                             const char *format,
                                                             ...);

// A line for the file and stderr alone, as far as they are wanted.
__attribute__((format(printf, 1, 2))) void standin_note(const char *format,
                                                        ...);

uint64_t standin_wrong_count(void);
size_t standin_wrong_texts(char *out, size_t size);
void standin_report_reset(void);

#endif  // TARN_TESTS_CUDA_STANDIN_REPORT_H_
