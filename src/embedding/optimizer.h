// optimizer.h - the update of one row, by the lines of tarn/embedding.h.
#ifndef TARN_EMBEDDING_OPTIMIZER_H_
#define TARN_EMBEDDING_OPTIMIZER_H_

#include "tarn/embedding.h"

enum { TARN__STEPS_KNOWN = 1024 };

// The step of ADAM for rows that were updated |t| times.
typedef struct tarn__embedding_optimizer_step {
  uint32_t t;  // 0: none
  float size;
} tarn__embedding_optimizer_step;

typedef struct tarn__embedding_optimizer {
  tarn_embedding_options options;
  tarn__embedding_optimizer_step steps[TARN__STEPS_KNOWN];
} tarn__embedding_optimizer;

// Some or all elements of a row.
typedef struct tarn__embedding_row {
  float *values;
  const float *gradient;
  float *states[2];  // as many elements; ROW_WISE: one
  int32_t *count;    // of updates; NULL: the optimizer does not count
  size_t width;
  size_t whole_width;  // elements of the row
  bool begins;         // with its first element; then ROW_WISE takes |square|
  bool ends;           // with its last; then it is counted
  float square;        // ROW_WISE: of all elements, as below
} tarn__embedding_row;

// Checks all but struct_size.
//
// TARN_E_INVALID  the text has the value.
TARN_MUST_CHECK tarn_status
tarn__optimizer_check(const tarn_embedding_options *options);

// Tables of F32 that it needs, by name, NULL after the last; and whether it
// counts.
typedef struct tarn__embedding_optimizer_states {
  const char *names[3];
  bool counts;
} tarn__embedding_optimizer_states;

tarn__embedding_optimizer_states tarn__optimizer_states_of(
    const tarn_embedding_options *options);

static inline bool tarn__optimizer_is_row_wise(
    const tarn__embedding_optimizer *o) {
  return (o->options.flags & TARN_EMBEDDING_ROW_WISE) != 0;
}

// The sum of the squares of g, with its decay: of eight sums of every eighth
// element, in order.
float tarn__optimizer_square(const tarn__embedding_optimizer *o,
                             const tarn__embedding_row *row);

void tarn__optimizer_update(tarn__embedding_optimizer *o,
                            const tarn__embedding_row *row);

#endif  // TARN_EMBEDDING_OPTIMIZER_H_
