// caught.h - what of libtarn_torch only C++ can call, for tests in C.
#ifndef TARN_TESTS_TORCH_CAUGHT_H_
#define TARN_TESTS_TORCH_CAUGHT_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { CAUGHT_TEXT = 512 };

// tarn_torch_alloc. |text| becomes what it throws, "" if it does not.
void *alloc_caught(size_t size, int device, void *stream,
                   char text[CAUGHT_TEXT]);

// tarn_torch_begin_pool of pool |id| for requests on |stream|; likewise.
void begin_caught(int device, unsigned long long id, void *stream,
                  char text[CAUGHT_TEXT]);

// The same with a filter that throws when it is asked.
void begin_with_thrower(int device, unsigned long long id);

void end_graph(int device, unsigned long long id);
void release_graph(int device, unsigned long long id);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_TESTS_TORCH_CAUGHT_H_
