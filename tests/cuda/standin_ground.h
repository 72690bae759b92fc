// standin_ground.h - what the tests of the stand-in have in common.
#ifndef TARN_TESTS_CUDA_STANDIN_GROUND_H_
#define TARN_TESTS_CUDA_STANDIN_GROUND_H_

#include <string.h>

#include "cuda/standin.h"
#include "cuda/standin/api.h"
#include "support/run.h"

#define gives(expression, expected) ck_assert_uint_eq(expression, expected)
#define done(expression) gives(expression, TARN__CU_SUCCESS)

// The stand-in has counted |expected| wrong uses, and no more.
#define assert_misuses(expected)                                              \
  do {                                                                        \
    char misuses_text[4096];                                                  \
    tarn_standin_report(misuses_text, sizeof misuses_text);                   \
    ck_assert_msg(tarn_standin_misuses() == (expected), "%u wrong uses:\n%s", \
                  (unsigned)tarn_standin_misuses(), misuses_text);            \
  } while (0)

// |expression| gives |expected|, and the report says |part| of it.
#define refuses(expression, expected, part)                                    \
  do {                                                                         \
    char refuses_text[16384];                                                  \
    uint64_t refuses_before = tarn_standin_misuses();                          \
    gives(expression, expected);                                               \
    ck_assert_uint_eq(tarn_standin_misuses(), refuses_before + 1);             \
    tarn_standin_report(refuses_text, sizeof refuses_text);                    \
    ck_assert_msg(strstr(refuses_text, part) != NULL, "no '%s' in:\n%s", part, \
                  refuses_text);                                               \
  } while (0)

#define GRANULE ((size_t)2 << 20)

typedef struct ground {
  CUcontext context;
  CUstream stream;  // non-blocking
} ground;

// The context of device 0, current, with one stream. After the test nothing may
// be left of what it has made.
ground ground_open(void);

// Ends both; nothing else may live.
void ground_close(ground *on);

// A block of |size| bytes of the device.
CUdeviceptr ground_block(size_t size);

CUstream ground_stream(unsigned flags);
CUevent ground_event(void);

// Bytes that differ, and whether these, or all of them |value|, are there.
void fill_in(unsigned char *bytes, size_t size);
void assert_filled(const unsigned char *bytes, size_t size);
void assert_all(const unsigned char *bytes, size_t size, int value);

// False where a read at |address| would fault.
bool host_reaches(CUdeviceptr address);

#endif  // TARN_TESTS_CUDA_STANDIN_GROUND_H_
