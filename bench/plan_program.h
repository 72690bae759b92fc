// plan_program.h - a program of operations, as what its buffers are needed for.
//
// The author of a program names, for each operation, in this order, the buffers
// that it makes and those that no later one reads, and then calls program_op. A
// lack of memory is remembered: later calls have no effect, and program_failed
// reports it.
#ifndef TARN_BENCH_PLAN_PROGRAM_H_
#define TARN_BENCH_PLAN_PROGRAM_H_

#include "tarn/plan.h"

// The buffers that one micro-batch has saved for its backward pass.
typedef struct program_stack {
  size_t *items;
  size_t count;
  size_t room;
} program_stack;

typedef struct program {
  tarn_plan_buffer *buffers;
  size_t count;
  size_t room;
  uint64_t step;
  uint64_t random;
  bool failed;
} program;

// A number below |limit|, and one from |least| to |most|.
uint64_t program_below(program *p, uint64_t limit);
uint64_t program_between(program *p, uint64_t least, uint64_t most);

// A buffer that this operation makes, |bytes| rounded up.
size_t program_make(program *p, uint64_t bytes);

// This operation is the last that reads it.
void program_drop(program *p, size_t buffer);

// Ends an operation.
void program_op(program *p);

// Ends a product of matrices: one in four has a workspace.
void program_product(program *p);

// Ends what only reads |from| to make |bytes| of something else.
size_t program_turn(program *p, size_t from, uint64_t bytes);

void program_push(program *p, program_stack *stack, size_t buffer);
size_t program_pop(program *p, program_stack *stack);

#endif  // TARN_BENCH_PLAN_PROGRAM_H_
