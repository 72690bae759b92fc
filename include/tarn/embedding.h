// embedding.h - tables that learn: a table of whole memory and an optimizer.
//
//   tarn_embedding_options options;
//   tarn_embedding_defaults(TARN_OPTIMIZER_ADAM, &options);
//   options.learning_rate = 0.01f;
//   tarn_embedding *users;
//   tarn_embedding_create(&table, &options, &users);    // all ranks
//   ...
//   tarn_whole_gather(&table, &batch, NULL);            // rows of a batch
//   ...                                                 // their gradients
//   tarn_embedding_apply(users, &gradients, NULL);      // all ranks
//   ...
//   tarn_embedding_store(users, "users.safetensors", NULL, NULL);
//   tarn_embedding_destroy(users);                      // all ranks
//
// Only rows that an apply names change: the optimizers are lazy, or sparse.
// Each row's gradients are first added up, over all ranks, at the rank that
// owns the row; then the row is updated once:
//
//   sum   in f32, in the order of ranks, and of the indices of each. So the
//         same batch gives the same bits each time, and with any number of
//         ranks that have consecutive parts of it
//   row   with the states of the optimizer, which are tables divided as the
//         table is, at the same place
//
// With g for the sum, p for an element of the row, lr for the learning rate,
// each line in f32 and each operation rounded by itself:
//
//   all but decoupled    g = g + weight_decay * p, unless that is 0
//   SGD                  p = p - lr * g
//   SGD with momentum    b = momentum * b + g;  p = p - lr * b
//   ADAM                 m = beta1 * m + (1 - beta1) * g
//                        v = beta2 * v + ((1 - beta2) * g) * g
//                        p = p - (step * m) / (sqrt(v) + epsilon)
//                        step = lr * sqrt(1 - beta2^t) / (1 - beta1^t), in
//                        double, with t for how often the row was updated
//   ... decoupled        p = p * (1 - lr * weight_decay) before (AdamW)
//   RMSPROP              v = alpha * v + ((1 - alpha) * g) * g
//                        p = p - (lr * g) / (sqrt(v) + epsilon)
//   ADAGRAD              s = s + g * g
//                        p = p - (lr * g) / (sqrt(s) + epsilon)
//   ... row-wise         s = s + mean(g * g), one s for a row
//                        p = p - (lr / (sqrt(s) + epsilon)) * g
//
// A lazy optimizer is another one than the dense one of the same name: momentum
// does not move a row that has no gradient, and each row has a t of its own.
// Where rows are rare this converges otherwise, mostly faster.
//
// Threads: collective functions as in whole.h; the others by one thread at a
//          time for an embedding.
// Fork:    as whole memory.
// Errors:  besides those of each function: those of collectives (whole.h),
//          TARN_E_INVALID for an argument that is NULL, TARN_E_NOMEM.
#ifndef TARN_EMBEDDING_H_
#define TARN_EMBEDDING_H_

#include "tarn/base.h"
#include "tarn/table.h"
#include "tarn/whole.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_embedding tarn_embedding;

typedef enum tarn_optimizer {
  TARN_OPTIMIZER_SGD = 1,
  TARN_OPTIMIZER_ADAM = 2,
  TARN_OPTIMIZER_RMSPROP = 3,
  TARN_OPTIMIZER_ADAGRAD = 4,
} tarn_optimizer;

// "sgd", "adam", "rmsprop", "adagrad"; NULL for an unknown one.
TARN_API const char *tarn_optimizer_name(tarn_optimizer optimizer);

// ADAM: weight decay does not go through the moments (AdamW).
#define TARN_EMBEDDING_DECOUPLED (1u << 0)

// ADAGRAD: one state for each row.
#define TARN_EMBEDDING_ROW_WISE (1u << 1)

// F16 and BF16: an element that lies between two numbers of its dtype becomes
// one of them at random, the nearer one more often, so that the mean is right:
// small updates are not lost. The random numbers depend on |seed|, on how many
// applies there were, and on row and column, and on nothing else.
#define TARN_EMBEDDING_STOCHASTIC (1u << 2)

// All numbers are finite and not negative; an optimizer reads those of its own
// lines above.
typedef struct tarn_embedding_options {
  size_t struct_size;
  tarn_optimizer optimizer;
  uint32_t flags;       // TARN_EMBEDDING_... bits
  float learning_rate;  // lr
  float weight_decay;
  float epsilon;
  float momentum;  // below 1, as the three below; 0: no state
  float beta1;
  float beta2;
  float alpha;
  float initial;  // ADAGRAD: s at the beginning
  uint64_t seed;
} tarn_embedding_options;

// Sets |*out_options| to what PyTorch has by default: lr .01 (ADAM .001),
// epsilon 1e-8 (ADAGRAD 1e-10), momentum 0, betas .9 and .999, alpha .99; all
// else, the seed too, is 0.
//
// TARN_E_INVALID  the optimizer is unknown.
TARN_API TARN_MUST_CHECK tarn_status tarn_embedding_defaults(
    tarn_optimizer optimizer, tarn_embedding_options *out_options);

// Creates an embedding of |table|, and the states of its optimizer: tensors of
// F32 of the same width, one for SGD with momentum, RMSPROP and ADAGRAD (with
// ROW_WISE of width 1), two for ADAM, and one of I32 of width 1, which counts.
// They are columns of one table, so that what belongs to a row is together. All
// begin with 0 but for |initial|. Collective; options are the same at all
// ranks.
//
// Lifetime: until tarn_embedding_destroy. |table->whole|, which stays the
//           caller's, cannot be destroyed before (TARN_E_STATE).
// TARN_E_INVALID      an option; the dtype of the table is not F32, F16 or
//                     BF16, or it is a vector; options differ between ranks; or
//                     the table is a part of HIERARCHICAL memory in COPIES.
// TARN_E_UNSUPPORTED  a rank owns 2^32 - 1 rows or more.
// All errors of tarn_whole_table_create.
TARN_API TARN_MUST_CHECK tarn_status tarn_embedding_create(
    const tarn_whole_tensor *table, const tarn_embedding_options *options,
    tarn_embedding **out_embedding);

// Destroys the states. Collective. NULL is allowed, at all ranks or none.
// Errors as of tarn_whole_destroy.
TARN_API tarn_status tarn_embedding_destroy(tarn_embedding *embedding);

// Gives |embedding|, a tarn_embedding or NULL, up at this rank, as
// tarn_whole_give_up does whole memory (whole.h): when each rank has given it
// up, it ends with the next collective that makes or ends whole memory of its
// communicator. One of a table on disks stays until its table ends.
//
// Threads: any, also while another is in a collective.
TARN_API void tarn_embedding_give_up(void *embedding);

// Updates the rows that |gradients->indices| of all ranks name. Dense row i is
// the gradient of the row indices[i]; gradients are F32, F16 or BF16, at any
// place. An index may come up any number of times, at any ranks; with
// TARN_ROWS_SKIP_BAD, one that is out of range is left out, so that -1 can
// stand for no row. Collective.
//
// |stream|, which may be NULL, is one of the device of the gradients: the call
// waits for it first. Rows have changed when the call returns.
//
// In HIERARCHICAL memory in COPIES every copy gets the same update.
//
// Cost:  two exchanges (whole.h), the first one of indices only. A rank takes
//        host memory for them: 32 to 64 bytes for each row of its part that is
//        named, 4 to 8 for each gradient, and 4 * width for rows whose
//        gradients have not all come yet. It keeps it for the next apply. Where
//        the host cannot reach the table, rows are copied, some at a time.
// TARN_E_INVALID      as of tarn_whole_scatter_add; no row has changed. Or
//                     gradients are of another dtype.
// TARN_E_UNSUPPORTED  more than 250 ranks without messages and shared memory.
// TARN_E_NOMEM and other errors of tarn_whole_scatter_add: an unspecified part
//                     of the rows was updated.
TARN_API TARN_MUST_CHECK tarn_status
tarn_embedding_apply(tarn_embedding *embedding,
                     const tarn_whole_rows *gradients, tarn_stream *stream);

// Sets lr for the next applies; the same at all ranks, which is not checked.
//
// TARN_E_INVALID  it is negative or not finite.
TARN_API TARN_MUST_CHECK tarn_status tarn_embedding_set_learning_rate(
    tarn_embedding *embedding, float learning_rate);

// ---------------------------------------------------------------------------
// States and files
// ---------------------------------------------------------------------------

#define TARN_EMBEDDING_TENSORS 4

// The table, "table", and the states, by the names that PyTorch gives them:
// "momentum_buffer"; "exp_avg", "exp_avg_sq" and "step"; "square_avg"; "sum".
// |out_tensors| has room for TARN_EMBEDDING_TENSORS.
//
// Lifetime: names and states: until tarn_embedding_destroy.
TARN_API TARN_MUST_CHECK tarn_status
tarn_embedding_tensors(const tarn_embedding *embedding,
                       tarn_whole_named *out_tensors, size_t *out_count);

// tarn_whole_store_named and tarn_whole_load_named (table.h) of these tensors:
// any number of ranks loads what any number has stored, and goes on where those
// were. Collective.
TARN_API TARN_MUST_CHECK tarn_status tarn_embedding_store(
    const tarn_embedding *embedding, const char *path,
    const tarn_file_options *options, tarn_file_report *out_report);
TARN_API TARN_MUST_CHECK tarn_status tarn_embedding_load(
    tarn_embedding *embedding, const char *path,
    const tarn_file_options *options, tarn_file_report *out_report);

#ifdef __cplusplus
}
#endif

#endif  // TARN_EMBEDDING_H_
