// memory.h - blocks of the host's pool, accounted by what they are for.
#ifndef TARN_EXAMPLES_TRAIN_MEMORY_H_
#define TARN_EXAMPLES_TRAIN_MEMORY_H_

#include <tarn/tarn.h>

// A block of |size| bytes, filled with zeros, under the tag |kind|.
TARN_MUST_CHECK tarn_status memory_take(const char *kind, size_t size,
                                        tarn_block *out_block);

// Gives it back; nothing for a block that is zero, which it becomes.
tarn_status memory_give(tarn_block *block);

#endif  // TARN_EXAMPLES_TRAIN_MEMORY_H_
