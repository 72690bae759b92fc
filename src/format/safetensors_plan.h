// safetensors_plan.h - what a safetensors file begins with and where its
// tensors are, before a byte of a tensor is known: so that several write it at
// a time, each a part.
//
//   | length, 8 bytes | header, with texts of metadata | blanks | tensors ... |
//   0                         ^ values[i]                       ^ head.count
//
// A text that is known only when the tensors are written, as their checksums
// are, is added to the writer as another of the same length, without quotes,
// backslashes and control characters in either, and takes its place in |head|.
#ifndef TARN_FORMAT_SAFETENSORS_PLAN_H_
#define TARN_FORMAT_SAFETENSORS_PLAN_H_

#include "base/budget.h"
#include "tarn/safetensors.h"

// Offsets count from the beginning of the file. Tensors and metadata have the
// numbers 0, 1, 2 ... in the order in which they were added.
typedef struct tarn__format_safetensors_plan {
  tarn__budget budget;
  tarn__array head;     // char: all that stands before the tensors
  tarn__array offsets;  // size_t, by tensor: of its first byte
  tarn__array order;    // uint32_t: the tensors' numbers as the file has them
  tarn__array values;   // size_t, by metadata: of its value's first byte
  size_t size;          // of the file
} tarn__format_safetensors_plan;

// Adds a tensor of whose bytes the writer learns nothing: it can be planned,
// and tarn_safetensors_write refuses it with TARN_E_INVALID.
//
// Errors: as tarn_safetensors_add.
TARN_MUST_CHECK tarn_status
tarn__safetensors_declare(tarn_safetensors_writer *writer, const char *name,
                          tarn_dtype dtype, tarn_shape shape);

// Plans the file of all that |writer| has. The tensors begin at a multiple of
// |multiple|, a power of two of at least 8. The same tensors and texts make the
// same file, in whatever order the tensors were added.
//
// Lifetime: |out_plan| is deinitialized by tarn__safetensors_plan_deinit; it
//           needs the writer no more.
// Cost:     O(header).
// TARN_E_INVALID  the header would be longer than TARN_SAFETENSORS_MAX_HEADER,
//                 or the file than a size_t can say.
// TARN_E_NOMEM    no host memory.
TARN_MUST_CHECK tarn_status tarn__safetensors_plan_init(
    const tarn_safetensors_writer *writer, size_t multiple,
    tarn__format_safetensors_plan *out_plan);

void tarn__safetensors_plan_deinit(tarn__format_safetensors_plan *plan);

// Offsets of the tensor, and of the value, of that number.
static inline size_t tarn__safetensors_plan_offset(
    const tarn__format_safetensors_plan *plan, size_t number) {
  return ((const size_t *)plan->offsets.items)[number];
}

static inline size_t tarn__safetensors_plan_value(
    const tarn__format_safetensors_plan *plan, size_t number) {
  return ((const size_t *)plan->values.items)[number];
}

#endif  // TARN_FORMAT_SAFETENSORS_PLAN_H_
