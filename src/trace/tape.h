// tape.h - runs a net's ops as a framework would, for what they allocate.
//
// A net is written down op by op; then the tape runs forward, and backward if
// the net is trained, and frees each tensor when its last user is done with
// it. Nothing is computed: only births and deaths go into the history.
//
//   forward   workspace, output, what backward will need; workspace goes;
//             inputs go unless a later op or a backward still needs them
//   backward  in reverse: workspace, gradients of inputs and parameters;
//             then workspace, what was saved, and the output's gradient go
//   step      a temporary per parameter; then all parameters' gradients go
//
// Calls after a failure do nothing: the first failure stays in |status|.
#ifndef TARN_TRACE_TAPE_H_
#define TARN_TRACE_TAPE_H_

#include "trace/history.h"

enum { TARN__OP_INPUTS = 3, TARN__OP_EXTRAS = 2, TARN__TAPE_NAME = 64 };

// What a block is for: the outer frame of its stack; the inner is its layer.
typedef enum tarn__trace_tape_role {
  TARN__ROLE_INPUT,
  TARN__ROLE_OUTPUT,
  TARN__ROLE_KEPT,
  TARN__ROLE_WORKSPACE,
  TARN__ROLE_GRADIENT,
  TARN__ROLE_PARAMETER,
  TARN__ROLE_UPDATE,
  TARN__ROLES,
} tarn__trace_tape_role;

// A tensor of |count| elements; id 0 is none.
typedef struct tarn__trace_tape_tensor {
  uint32_t id;
  size_t count;
} tarn__trace_tape_tensor;

// What one op allocates, in bytes; 0: nothing.
typedef struct tarn__trace_tape_op {
  tarn__trace_tape_tensor inputs[TARN__OP_INPUTS];
  size_t output;
  size_t kept[TARN__OP_EXTRAS];    // made by forward for backward alone
  size_t params[TARN__OP_EXTRAS];  // of its parameters' gradients
  size_t workspace;                // while it runs, in either direction
  bool saves_inputs;               // backward needs them
  bool saves_output;
  bool passes_gradient;  // its inputs' gradients are its output's, as it is
} tarn__trace_tape_op;

typedef struct tarn__trace_tape {
  tarn__trace_history *history;
  const char *workload;
  tarn_status status;
  bool training;
  char scope[TARN__TAPE_NAME];
  uint32_t role_frames[TARN__ROLES];
  tarn__array ops;
  tarn__array tensors;
  tarn__array storages;
  tarn__array parameters;  // in the order in which backward meets them
} tarn__trace_tape;

void tarn__tape_init(tarn__trace_tape *tape, tarn__trace_history *history,
                     const char *workload, bool training);
void tarn__tape_deinit(tarn__trace_tape *tape);

// Names of ops recorded from now on start with |scope| and a dot.
__attribute__((format(printf, 2, 3))) void tarn__tape_scope(
    tarn__trace_tape *tape, const char *scope, ...);

// A tensor of |count| elements in |size| bytes that comes from outside: held
// from before the first op to after the last.
tarn__trace_tape_tensor tarn__tape_input(tarn__trace_tape *tape,
                                         const char *name, size_t count,
                                         size_t size);

// Records an op whose output has |count| elements.
tarn__trace_tape_tensor tarn__tape_op(tarn__trace_tape *tape, const char *name,
                                      size_t count,
                                      const tarn__trace_tape_op *op);

// Runs all that was recorded, with |result| being what is asked of the net,
// and frees all of it.
TARN_MUST_CHECK tarn_status tarn__tape_run(tarn__trace_tape *tape,
                                           tarn__trace_tape_tensor result);

#endif  // TARN_TRACE_TAPE_H_
