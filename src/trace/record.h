// record.h - dicts with known keys, taken out of a pickle with their types.
#ifndef TARN_TRACE_RECORD_H_
#define TARN_TRACE_RECORD_H_

#include "trace/pickle.h"

// What may stand under a key: a list means a list or a tuple.
typedef struct tarn__key {
  const char *name;
  tarn__value_type type;
  bool required;
} tarn__key;

// Fills |out_fields|[i] with what stands under |keys|[i] of |dict|: absent if
// it is not there. Other keys are passed over.
//
// TARN_E_CORRUPT  not a dict, a key twice, a value of another type, or a
//                 required key is missing.
TARN_MUST_CHECK tarn_status tarn__record_read(const tarn__pickle *pickle,
                                              tarn__value dict,
                                              const tarn__key *keys,
                                              size_t key_count,
                                              tarn__value *out_fields);

// The number under a key: 0 if absent. |name| is the key, for errors.
//
// TARN_E_CORRUPT  negative, or beyond 64 bits.
TARN_MUST_CHECK tarn_status tarn__record_number(const tarn__pickle *pickle,
                                                tarn__value field,
                                                const char *name,
                                                uint64_t *out_number);

// Enters a container. Each has one place in a record, so that one that was
// entered before stands in two places, or within itself.
//
// TARN_E_CORRUPT  entered before, or not of |type|.
TARN_MUST_CHECK tarn_status tarn__record_enter(const tarn__pickle *pickle,
                                               tarn__value container,
                                               tarn__value_type type);

#endif  // TARN_TRACE_RECORD_H_
