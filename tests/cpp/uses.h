// uses.h - uses of tarn.hpp, in both of its ways, for tests in C: each returns
// NULL, or what did not hold.
#ifndef TARN_TESTS_CPP_USES_H_
#define TARN_TESTS_CPP_USES_H_

#ifdef __cplusplus
extern "C" {
#endif

typedef const char *cpp_use(void);

// With exceptions.
cpp_use cpp_handles_end_what_they_hold;
cpp_use cpp_failures_throw;
cpp_use cpp_blocks;
cpp_use cpp_accesses;
cpp_use cpp_containers;
cpp_use cpp_tables;

// With results.
cpp_use cpp_results;
cpp_use cpp_accesses_with_results;

#ifdef __cplusplus
}
#endif

#endif  // TARN_TESTS_CPP_USES_H_
