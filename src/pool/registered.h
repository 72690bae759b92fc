// registered.h - strategies that programs and shared objects have registered.
#ifndef TARN_POOL_REGISTERED_H_
#define TARN_POOL_REGISTERED_H_

#include "pool/strategy.h"

// The type that stands for a registered strategy; NULL if there is none.
const tarn__pool_strategy_type *tarn__registered_find(const char *name);

// The name of the |index|-th, in order of registration; NULL beyond the last.
const char *tarn__registered_name(size_t index);

#endif  // TARN_POOL_REGISTERED_H_
