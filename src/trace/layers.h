// layers.h - the ops that nets are written with, and what they allocate.
//
// Everything is in f32. What backward needs follows PyTorch's formulas: a
// product saves its inputs, a ReLU or softmax its output, a norm its input and
// two statistics, a dropout a mask of one byte per element.
#ifndef TARN_TRACE_LAYERS_H_
#define TARN_TRACE_LAYERS_H_

#include "trace/tape.h"

// An image batch as it goes through a convolutional net.
typedef struct tarn__trace_image {
  tarn__trace_tape_tensor tensor;
  size_t batch;
  size_t channels;
  size_t side;
} tarn__trace_image;

// The product of up to four lengths; 0 where it does not fit, which no op
// takes for a size.
size_t tarn__elements(size_t a, size_t b, size_t c, size_t d);

// Any x to a new tensor of the same shape, saving nothing.
tarn__trace_tape_tensor tarn__layer_map(tarn__trace_tape *tape,
                                        const char *name,
                                        tarn__trace_tape_tensor x);
// x times weight [to, from], plus bias.
tarn__trace_tape_tensor tarn__layer_linear(tarn__trace_tape *tape,
                                           const char *name,
                                           tarn__trace_tape_tensor x,
                                           size_t from, size_t to);
// A batched product of |a| and |b| with |count| elements.
tarn__trace_tape_tensor tarn__layer_product(tarn__trace_tape *tape,
                                            const char *name,
                                            tarn__trace_tape_tensor a,
                                            tarn__trace_tape_tensor b,
                                            size_t count);
tarn__trace_tape_tensor tarn__layer_add(tarn__trace_tape *tape,
                                        const char *name,
                                        tarn__trace_tape_tensor a,
                                        tarn__trace_tape_tensor b);
tarn__trace_tape_tensor tarn__layer_gelu(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor x);
tarn__trace_tape_tensor tarn__layer_softmax(tarn__trace_tape *tape,
                                            const char *name,
                                            tarn__trace_tape_tensor x);
tarn__trace_tape_tensor tarn__layer_dropout(tarn__trace_tape *tape,
                                            const char *name,
                                            tarn__trace_tape_tensor x);
// Over rows of |width| elements.
tarn__trace_tape_tensor tarn__layer_norm(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor x,
                                         size_t width);
// A new tensor out of parts of |a| and |b|, which may be none.
tarn__trace_tape_tensor tarn__layer_gather(tarn__trace_tape *tape,
                                           const char *name,
                                           tarn__trace_tape_tensor a,
                                           tarn__trace_tape_tensor b,
                                           size_t count);
// The mean negative log likelihood of |labels| under |logits|: one number.
tarn__trace_tape_tensor tarn__layer_loss(tarn__trace_tape *tape,
                                         const char *name,
                                         tarn__trace_tape_tensor logits,
                                         tarn__trace_tape_tensor labels);

// --- on images -------------------------------------------------------------

// Squares of |kernel|, padded so that only the stride shrinks the image; no
// bias. Its workspace is the column matrix of one image, none for 1 x 1.
tarn__trace_image tarn__layer_conv(tarn__trace_tape *tape, const char *name,
                                   tarn__trace_image x, size_t channels,
                                   size_t kernel, size_t stride);
tarn__trace_image tarn__layer_batch_norm(tarn__trace_tape *tape,
                                         const char *name, tarn__trace_image x);
tarn__trace_image tarn__layer_relu(tarn__trace_tape *tape, const char *name,
                                   tarn__trace_image x);
tarn__trace_image tarn__layer_max_pool(tarn__trace_tape *tape, const char *name,
                                       tarn__trace_image x, size_t stride);
// The mean of each channel: [batch, channels].
tarn__trace_tape_tensor tarn__layer_mean_pool(tarn__trace_tape *tape,
                                              const char *name,
                                              tarn__trace_image x);

#endif  // TARN_TRACE_LAYERS_H_
