// wrapped_comm.h - a communicator made of another one, for tests that put
// something of their own in between: a copy of these operations, with those
// replaced.
#ifndef TARN_TESTS_WHOLE_WRAPPED_COMM_H_
#define TARN_TESTS_WHOLE_WRAPPED_COMM_H_

#include "tarn/comm.h"

// |self| is the other communicator, which stays the caller's. Nothing is
// shared, split or checked.
extern const tarn_comm_ops wrapped_comm_ops;

#endif  // TARN_TESTS_WHOLE_WRAPPED_COMM_H_
