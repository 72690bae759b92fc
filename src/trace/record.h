// record.h - dicts with known keys, taken out of a pickle with their types.
#ifndef TARN_TRACE_RECORD_H_
#define TARN_TRACE_RECORD_H_

#include "trace/pickle.h"

// What may stand under a key: a list means a list or a tuple, an integer one
// of 0 to 2^64 - 1.
typedef struct tarn__trace_key {
  const char *name;  // the first: see tarn__pickle_find
  tarn__trace_pickle_type type;
  bool required;
  bool lenient;  // any integer will do; one beyond 64 bits or below 0 is 0
} tarn__trace_key;

typedef struct tarn__trace_field {
  tarn__trace_pickle_value value;  // absent if the key is not there
  uint64_t number;                 // of an integer, else 0
} tarn__trace_field;

// Fills |out_fields|[i] with what stands under |keys|[i] of |dict|. Other keys
// are passed over.
//
// TARN_E_CORRUPT  not a dict, a key twice, a value of another type or range,
//                 or a required key is missing.
TARN_MUST_CHECK tarn_status tarn__record_read(const tarn__trace_pickle *pickle,
                                              tarn__trace_pickle_value dict,
                                              const tarn__trace_key *keys,
                                              size_t key_count,
                                              tarn__trace_field *out_fields);

static inline bool tarn__field_is_there(const tarn__trace_field *field) {
  return field->value.type != TARN__ABSENT;
}

// Enters a container. Each has one place in a record, so that one that was
// entered before stands in two places, or within itself.
//
// TARN_E_CORRUPT  entered before, or not of |type|.
TARN_MUST_CHECK tarn_status tarn__record_enter(
    const tarn__trace_pickle *pickle, tarn__trace_pickle_value container,
    tarn__trace_pickle_type type);

#endif  // TARN_TRACE_RECORD_H_
