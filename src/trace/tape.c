// The tape.
//
// A storage is one block with a count of its users. It starts with all the
// users that the recorded ops make of it, so that the count only falls.
// Gradients are storages too: an op that passes its gradient on shares it.
//
// Invariant: after tarn__tape_run no storage has users left, so every birth has
// its death.
#include "trace/workload.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NO_STORAGE UINT32_MAX

typedef struct op_record {
  tarn__trace_tape_op op;
  uint32_t output;  // tensor
  uint32_t frame;
  uint32_t kept[TARN__OP_EXTRAS];       // storages
  uint32_t gradients[TARN__OP_EXTRAS];  // of parameters: storages
} op_record;

typedef struct tensor_record {
  size_t size;
  uint32_t users;
  uint32_t frame;
  uint32_t storage;
  uint32_t gradient;  // storage
  bool is_input;      // of the net, without a gradient
} tensor_record;

typedef struct storage_record {
  uint32_t block;
  uint32_t users;
} storage_record;

static const char *const role_names[TARN__ROLES] = {
    [TARN__ROLE_INPUT] = "input",
    [TARN__ROLE_OUTPUT] = "output",
    [TARN__ROLE_KEPT] = "kept for backward",
    [TARN__ROLE_WORKSPACE] = "workspace",
    [TARN__ROLE_GRADIENT] = "gradient",
    [TARN__ROLE_PARAMETER] = "gradient of parameters",
    [TARN__ROLE_UPDATE] = "optimizer step",
};

static op_record *op_at(const tarn__trace_tape *tape, size_t index) {
  return (op_record *)tape->ops.items + index;
}

static tensor_record *tensor_at(const tarn__trace_tape *tape, uint32_t id) {
  return (tensor_record *)tape->tensors.items + id;
}

static storage_record *storage_at(const tarn__trace_tape *tape,
                                  uint32_t index) {
  return (storage_record *)tape->storages.items + index;
}

// Appends one item to |array|; NULL once anything has failed.
static void *append(tarn__trace_tape *tape, tarn__array *array) {
  void *item = NULL;
  if (tape->status != TARN_OK) return NULL;
  tape->status = tarn__array_grow(tape->history->budget, array, 1, &item);
  return item;
}

// --- names -----------------------------------------------------------------

static uint32_t frame_of(tarn__trace_tape *tape, const char *function) {
  uint32_t number = 0;
  if (tape->status != TARN_OK) return 0;
  tape->status = tarn__stacks_frame_of(&tape->history->stacks, tape->workload,
                                       function, 0, &number);
  return number;
}

static uint32_t scoped_frame(tarn__trace_tape *tape, const char *name) {
  char text[2 * TARN__TAPE_NAME];
  snprintf(text, sizeof text, "%s%s%s", tape->scope,
           tape->scope[0] == '\0' ? "" : ".", name);
  return frame_of(tape, text);
}

void tarn__tape_scope(tarn__trace_tape *tape, const char *scope, ...) {
  va_list args;
  va_start(args, scope);
  vsnprintf(tape->scope, sizeof tape->scope, scope, args);
  va_end(args);
}

// --- recording -------------------------------------------------------------

void tarn__tape_init(tarn__trace_tape *tape, tarn__trace_history *history,
                     const char *workload, bool training) {
  *tape = (tarn__trace_tape){.history = history,
                             .workload = workload,
                             .training = training,
                             .ops = TARN__ARRAY_OF(op_record),
                             .tensors = TARN__ARRAY_OF(tensor_record),
                             .storages = TARN__ARRAY_OF(storage_record)};
  for (size_t i = 0; i < TARN__ROLES; i++) {
    tape->role_frames[i] = frame_of(tape, role_names[i]);
  }
  (void)append(tape, &tape->tensors);  // id 0: none
}

void tarn__tape_deinit(tarn__trace_tape *tape) {
  tarn__budget *budget = tape->history->budget;
  tarn__array_free(budget, &tape->storages);
  tarn__array_free(budget, &tape->tensors);
  tarn__array_free(budget, &tape->ops);
}

static tarn__trace_tape_tensor add_tensor(tarn__trace_tape *tape, size_t count,
                                          const tensor_record *made) {
  tarn__trace_tape_tensor tensor = {.id = (uint32_t)tape->tensors.count,
                                    .count = count};
  tensor_record *fresh = append(tape, &tape->tensors);
  if (fresh == NULL) return (tarn__trace_tape_tensor){0};
  *fresh = *made;
  fresh->storage = NO_STORAGE;
  fresh->gradient = NO_STORAGE;
  return tensor;
}

size_t tarn__elements(size_t a, size_t b, size_t c, size_t d) {
  size_t product = 0;
  bool fits = tarn_size_mul(a, b, &product) &&
              tarn_size_mul(product, c, &product) &&
              tarn_size_mul(product, d, &product);
  return fits ? product : 0;
}

tarn__trace_tape_tensor tarn__tape_input(tarn__trace_tape *tape,
                                         const char *name, size_t count,
                                         size_t element) {
  tensor_record made = {.size = tarn__elements(count, element, 1, 1),
                        .users = 1,  // the program
                        .is_input = true,
                        .frame = scoped_frame(tape, name)};
  return add_tensor(tape, count, &made);
}

tarn__trace_tape_tensor tarn__tape_op(tarn__trace_tape *tape, const char *name,
                                      size_t count,
                                      const tarn__trace_tape_op *op) {
  uint32_t frame = scoped_frame(tape, name);
  tensor_record made = {.size = tarn__elements(count, sizeof(float), 1, 1),
                        .frame = frame};
  op_record *record = append(tape, &tape->ops);
  if (record == NULL) return (tarn__trace_tape_tensor){0};
  record->op = *op;
  record->frame = frame;
  if (!tape->training) record->op.saves_inputs = false;
  if (!tape->training) record->op.saves_output = false;
  for (size_t i = 0; i < TARN__OP_INPUTS; i++) {
    if (op->inputs[i].id != 0) tensor_at(tape, op->inputs[i].id)->users++;
  }
  made.users = record->op.saves_output ? 1 : 0;
  tarn__trace_tape_tensor output = add_tensor(tape, count, &made);
  record->output = output.id;
  return output;
}

// --- storages --------------------------------------------------------------

// A new block with |users|; NO_STORAGE for size 0, or after a failure.
static uint32_t allocate(tarn__trace_tape *tape, size_t size, uint32_t frame,
                         tarn__trace_tape_role role, uint32_t users) {
  uint32_t frames[] = {frame, tape->role_frames[role]};
  uint32_t index = (uint32_t)tape->storages.count;
  uint32_t stack = 0;
  if (size == 0) return NO_STORAGE;
  storage_record *made = append(tape, &tape->storages);
  if (made == NULL) return NO_STORAGE;
  made->users = users;
  tape->status = tarn__stacks_stack(&tape->history->stacks, frames, 2, &stack);
  if (tape->status != TARN_OK) return NO_STORAGE;
  tape->status = tarn__history_birth(tape->history, size, stack, &made->block);
  return tape->status == TARN_OK ? index : NO_STORAGE;
}

// Drops one user of the storage at |index|.
static void release(tarn__trace_tape *tape, uint32_t index) {
  if (tape->status != TARN_OK || index == NO_STORAGE) return;
  storage_record *storage = storage_at(tape, index);
  if (--storage->users != 0) return;
  tape->status = tarn__history_death(tape->history, storage->block);
}

static void release_inputs(tarn__trace_tape *tape,
                           const tarn__trace_tape_op *op) {
  for (size_t i = 0; i < TARN__OP_INPUTS; i++) {
    if (op->inputs[i].id == 0) continue;
    release(tape, tensor_at(tape, op->inputs[i].id)->storage);
  }
}

// --- forward ---------------------------------------------------------------

// Gives a tensor its block. Without later users it lives until its op is done.
static void materialize(tarn__trace_tape *tape, uint32_t id,
                        tarn__trace_tape_role role) {
  tensor_record *tensor = tensor_at(tape, id);
  tensor->storage =
      allocate(tape, tensor->size, tensor->frame, role, tensor->users + 1);
}

static void keep(tarn__trace_tape *tape, op_record *record) {
  for (size_t i = 0; i < TARN__OP_EXTRAS; i++) {
    record->kept[i] = record->gradients[i] = NO_STORAGE;
    if (!tape->training) continue;
    record->kept[i] =
        allocate(tape, record->op.kept[i], record->frame, TARN__ROLE_KEPT, 1);
  }
}

static void forward(tarn__trace_tape *tape, op_record *record) {
  uint32_t workspace = allocate(tape, record->op.workspace, record->frame,
                                TARN__ROLE_WORKSPACE, 1);
  materialize(tape, record->output, TARN__ROLE_OUTPUT);
  keep(tape, record);
  release(tape, workspace);
  if (!record->op.saves_inputs) release_inputs(tape, &record->op);
  release(tape, tensor_at(tape, record->output)->storage);
}

// --- backward --------------------------------------------------------------

// Makes or shares the gradient of one input. Where there is one already, the
// new one is added to it and goes.
static void send_gradient(tarn__trace_tape *tape, const op_record *record,
                          uint32_t id) {
  tensor_record *input = tensor_at(tape, id);
  uint32_t gradient = tensor_at(tape, record->output)->gradient;
  if (id == 0 || input->is_input) return;
  if (record->op.passes_gradient) {
    storage_at(tape, gradient)->users++;
  } else {
    gradient =
        allocate(tape, input->size, record->frame, TARN__ROLE_GRADIENT, 1);
  }
  if (input->gradient != NO_STORAGE) {
    release(tape, gradient);
  } else {
    input->gradient = gradient;
  }
}

static void release_saved(tarn__trace_tape *tape, const op_record *record) {
  if (record->op.saves_inputs) release_inputs(tape, &record->op);
  if (record->op.saves_output) {
    release(tape, tensor_at(tape, record->output)->storage);
  }
  for (size_t i = 0; i < TARN__OP_EXTRAS; i++)
    release(tape, record->kept[i]);
}

static void backward(tarn__trace_tape *tape, op_record *record) {
  if (tensor_at(tape, record->output)->gradient == NO_STORAGE) {
    release_saved(tape, record);  // the result does not depend on it
    return;
  }
  uint32_t workspace = allocate(tape, record->op.workspace, record->frame,
                                TARN__ROLE_WORKSPACE, 1);
  for (size_t i = 0; i < TARN__OP_INPUTS && tape->status == TARN_OK; i++) {
    send_gradient(tape, record, record->op.inputs[i].id);
  }
  for (size_t i = 0; i < TARN__OP_EXTRAS; i++) {
    record->gradients[i] = allocate(tape, record->op.params[i], record->frame,
                                    TARN__ROLE_PARAMETER, 1);
  }
  release(tape, workspace);
  release_saved(tape, record);
  release(tape, tensor_at(tape, record->output)->gradient);
}

// --- the whole -------------------------------------------------------------

static void begin_inputs(tarn__trace_tape *tape) {
  for (uint32_t id = 1; id < tape->tensors.count; id++) {
    if (!tensor_at(tape, id)->is_input) continue;
    materialize(tape, id, TARN__ROLE_INPUT);
    release(tape, tensor_at(tape, id)->storage);  // materialize's own
  }
}

static void end_inputs(tarn__trace_tape *tape) {
  for (uint32_t id = 1; id < tape->tensors.count; id++) {
    if (!tensor_at(tape, id)->is_input) continue;
    release(tape, tensor_at(tape, id)->storage);
  }
}

static void run_backward(tarn__trace_tape *tape, uint32_t result) {
  tensor_record *last = tensor_at(tape, result);
  last->gradient =
      allocate(tape, last->size, last->frame, TARN__ROLE_GRADIENT, 1);
  for (size_t i = tape->ops.count; i-- > 0 && tape->status == TARN_OK;) {
    backward(tape, op_at(tape, i));
  }
}

// The optimizer's step: for each parameter a gradient with its decay added.
// Parameters come in the reverse of the order in which backward met them.
static void update_parameters(tarn__trace_tape *tape) {
  for (size_t i = 0; i < tape->ops.count; i++) {
    const op_record *record = op_at(tape, i);
    for (size_t k = TARN__OP_EXTRAS; k-- > 0;) {
      if (record->gradients[k] == NO_STORAGE) continue;
      release(tape, allocate(tape, record->op.params[k], record->frame,
                             TARN__ROLE_UPDATE, 1));
    }
  }
}

static void drop_parameter_gradients(tarn__trace_tape *tape) {
  for (size_t i = 0; i < tape->ops.count; i++) {
    for (size_t k = TARN__OP_EXTRAS; k-- > 0;)
      release(tape, op_at(tape, i)->gradients[k]);
  }
}

tarn_status tarn__tape_run(tarn__trace_tape *tape,
                           tarn__trace_tape_tensor result) {
  if (tape->status != TARN_OK) return tape->status;
  tensor_at(tape, result.id)->users++;
  begin_inputs(tape);
  for (size_t i = 0; i < tape->ops.count && tape->status == TARN_OK; i++) {
    forward(tape, op_at(tape, i));
  }
  if (tape->training) run_backward(tape, result.id);
  release(tape, tensor_at(tape, result.id)->storage);
  update_parameters(tape);
  drop_parameter_gradients(tape);
  end_inputs(tape);
  return tape->status;
}
