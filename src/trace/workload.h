// workload.h - traces of known nets: a tape of ops, layers, and nets.
#ifndef TARN_TRACE_WORKLOAD_H_
#define TARN_TRACE_WORKLOAD_H_

#include "trace/history.h"

// --- Tape -----------------------------------------------------------------
// A net is recorded op by op. Then the tape runs forward, and backward for
// training, and frees each tensor after its last use. Nothing is computed: only
// births and deaths go into the history.
//
//   forward   allocates workspace, output, saved tensors; frees workspace, and
//             inputs that no later op or backward needs
//   backward  in reverse: allocates workspace, gradients of inputs and
//             parameters; frees workspace, saved tensors, the output's gradient
//   update    allocates a temporary per parameter; frees all gradients
//
// Calls after a failure do nothing: the first failure stays in |status|.

enum { TARN__OP_INPUTS = 3, TARN__OP_EXTRAS = 2, TARN__TAPE_NAME = 64 };

// The purpose of a block: the outer frame of its stack. The inner is its layer.
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

// A tensor of |count| elements; id 0: no tensor.
typedef struct tarn__trace_tape_tensor {
  uint32_t id;
  size_t count;
} tarn__trace_tape_tensor;

// The allocations of an op beside its output, in bytes; 0: none.
typedef struct tarn__trace_tape_op {
  tarn__trace_tape_tensor inputs[TARN__OP_INPUTS];
  size_t kept[TARN__OP_EXTRAS];    // from forward to backward
  size_t params[TARN__OP_EXTRAS];  // gradients of parameters
  size_t workspace;                // during the op, in either direction
  bool saves_inputs;               // backward needs them
  bool saves_output;
  bool passes_gradient;  // its inputs' gradients are its output's
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
} tarn__trace_tape;

void tarn__tape_init(tarn__trace_tape *tape, tarn__trace_history *history,
                     const char *workload, bool training);
void tarn__tape_deinit(tarn__trace_tape *tape);

// Names of ops recorded from now on start with |scope| and a dot.
__attribute__((format(printf, 2, 3))) void tarn__tape_scope(
    tarn__trace_tape *tape, const char *scope, ...);

// The product of four lengths; 0 on overflow, which ops refuse as a size.
size_t tarn__elements(size_t a, size_t b, size_t c, size_t d);

// An input of |count| elements of |element| bytes. It lives from before the
// first op to after the last.
tarn__trace_tape_tensor tarn__tape_input(tarn__trace_tape *tape,
                                         const char *name, size_t count,
                                         size_t element);

// Records an op whose output has |count| elements of f32.
tarn__trace_tape_tensor tarn__tape_op(tarn__trace_tape *tape, const char *name,
                                      size_t count,
                                      const tarn__trace_tape_op *op);

// Runs the recorded ops and frees all tensors. |result| is the net's output.
TARN_MUST_CHECK tarn_status tarn__tape_run(tarn__trace_tape *tape,
                                           tarn__trace_tape_tensor result);

// --- Layers ---------------------------------------------------------------
// The ops of nets, and their allocations. All tensors are f32. Ops save for
// backward what PyTorch's do: a product its inputs, a ReLU or softmax its
// output, a norm its input and two statistics, a dropout a mask of a byte per
// element.

// An image batch as it goes through a convolutional net.
typedef struct tarn__trace_image {
  tarn__trace_tape_tensor tensor;
  size_t batch;
  size_t channels;
  size_t side;
} tarn__trace_image;

// The kinds of ops that have no parameters.
typedef enum tarn__trace_layer {
  TARN__LAYER_MAP,  // saves nothing: a scaling, a mean, a copy of parts
  TARN__LAYER_ADD,
  TARN__LAYER_GELU,
  TARN__LAYER_RELU,
  TARN__LAYER_SOFTMAX,
  TARN__LAYER_PRODUCT,  // of batches of matrices
} tarn__trace_layer;

// An op with the shape of |x|.
tarn__trace_tape_tensor tarn__layer_unary(tarn__trace_tape *tape,
                                          tarn__trace_layer kind,
                                          const char *name,
                                          tarn__trace_tape_tensor x);
// An op of |a| and |b|, either of which may be no tensor, with |count|
// elements.
tarn__trace_tape_tensor tarn__layer_binary(
    tarn__trace_tape *tape, tarn__trace_layer kind, const char *name,
    tarn__trace_tape_tensor a, tarn__trace_tape_tensor b, size_t count);
// x times weight [to, from], plus bias.
tarn__trace_tape_tensor tarn__layer_linear(tarn__trace_tape *tape,
                                           const char *name,
                                           tarn__trace_tape_tensor x,
                                           size_t from, size_t to);
tarn__trace_tape_tensor tarn__layer_dropout(tarn__trace_tape *tape,
                                            const char *name,
                                            tarn__trace_tape_tensor x);
// Of |groups| of elements, each with its statistics; |width| scales and shifts.
tarn__trace_tape_tensor tarn__layer_norm(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor x,
                                         size_t groups, size_t width);
// The mean negative log likelihood of |labels| under |logits|: one number.
tarn__trace_tape_tensor tarn__layer_loss(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor logits,
                                         tarn__trace_tape_tensor labels);

// --- on images ------------------------------------------------------------

// Squares of |kernel|, padded so that only the stride shrinks the image; no
// bias. Its workspace is the column matrix of one image, none for 1 x 1.
tarn__trace_image tarn__layer_conv(tarn__trace_tape *tape, const char *name,
                                   tarn__trace_image x, size_t channels,
                                   size_t kernel, size_t stride);
tarn__trace_image tarn__layer_max_pool(tarn__trace_tape *tape, const char *name,
                                       tarn__trace_image x, size_t stride);

// --- Nets -----------------------------------------------------------------

// Each records its ops on |tape| and returns the net's output.
tarn__trace_tape_tensor tarn__net_bert_layer(tarn__trace_tape *tape,
                                             size_t batch);
// The same with |layers| layers, on |batch| sequences of |length|.
tarn__trace_tape_tensor tarn__net_bert(tarn__trace_tape *tape, size_t batch,
                                       size_t length, size_t layers);
tarn__trace_tape_tensor tarn__net_resnet50(tarn__trace_tape *tape,
                                           size_t batch);
tarn__trace_tape_tensor tarn__net_decode(tarn__trace_tape *tape, size_t batch);

// --- Programs that do not repeat ------------------------------------------

// Random sizes and lifetimes.
TARN_MUST_CHECK tarn_status tarn__random_history(tarn__trace_history *history,
                                                 const char *workload,
                                                 uint64_t seed);

// The distributions are stated in the file of each.
TARN_MUST_CHECK tarn_status tarn__serving_history(tarn__trace_history *history,
                                                  const char *workload,
                                                  uint64_t seed);
TARN_MUST_CHECK tarn_status tarn__varlen_history(tarn__trace_history *history,
                                                 const char *workload,
                                                 uint64_t seed);
TARN_MUST_CHECK tarn_status tarn__dataloader_history(
    tarn__trace_history *history, const char *workload, uint64_t seed);

#endif  // TARN_TRACE_WORKLOAD_H_
