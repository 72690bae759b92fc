// faults.h - which calls and commands are to fail.
#ifndef TARN_TESTS_CUDA_STANDIN_FAULTS_H_
#define TARN_TESTS_CUDA_STANDIN_FAULTS_H_

#include <stdbool.h>
#include <stdint.h>

#include "api.h"

// Counts a call of |name|. An error if it is to fail: by an injected fault,
// because the device is lost, or because the process is a child of the one that
// initialised the driver.
tarn__cuda_result standin_call_may_begin(const char *name);

// True in such a child.
bool standin_in_child(void);

// cuInit: children of this process may not call any more.
void standin_bind_process(void);
bool standin_is_bound(void);

// What a queued command is to end with; 0 for most.
tarn__cuda_result standin_next_command(void);

// What all calls and commands fail with since the device is lost; 0: it is not.
tarn__cuda_result standin_lost(void);

void standin_fail_call(const char *name, uint64_t n, tarn__cuda_result error,
                       bool onwards);
void standin_fail_command(uint64_t n, tarn__cuda_result error);
void standin_lose(uint64_t n, tarn__cuda_result error);
uint64_t standin_fault_count(void);
uint64_t standin_call_count(const char *name);
void standin_faults_reset(void);

#endif  // TARN_TESTS_CUDA_STANDIN_FAULTS_H_
