// net.h - a net whose whole memory is a tarn_model.
//
// Describing it adds layer after layer. Each becomes a step of the model, which
// says what it reads and writes; the model then plans where everything lies:
//
//   net n;
//   net_begin(&n, "small", 64);
//   tarn_tensor *x = net_feed(&n, (int64_t[]){784}, 1);
//   x = net_then_relu(&n, "relu", net_then_linear(&n, "fc1", x, 100));
//   net_then_loss(&n, net_then_linear(&n, "fc2", x, 10));
//   ... n.status ...
//
// The first failure stays in |status|, and later calls do nothing, so that a
// net can be written down as one writes it on paper.
//
// Running it (below) takes no memory: every byte has its place by then.
#ifndef TARN_EXAMPLES_NETS_NET_H_
#define TARN_EXAMPLES_NETS_NET_H_

#include <tarn/tarn.h>

#include "dataset.h"
#include "hold.h"
#include "layers.h"

enum { NET_MOST_LAYERS = 64, NET_MOST_PARAMS = 64, NET_NAME_SIZE = 64 };

typedef struct net net;
typedef struct net_layer net_layer;

// What a layer does in its two passes.
typedef tarn_status net_pass(net *n, const net_layer *layer);

typedef struct net_kind {
  net_pass *forward;
  net_pass *backward;
} net_kind;

struct net_layer {
  const net_kind *kind;
  tarn_step *step;
  tarn_tensor *x;
  tarn_tensor *other;  // of an add: what is added to |x|
  tarn_tensor *y;
  tarn_tensor *w;
  tarn_tensor *b;
  // Which of the layers that take a tensor writes its gradient first, and
  // which add to it: backward the last one comes first.
  net_write into_x;
  net_write into_other;
  net_linear linear;  // |batch| of these two is filled in when they run
  net_conv conv;
};

// What is learned, and where it starts.
typedef struct net_param {
  tarn_tensor *tensor;
  tarn_tensor *speed;  // the momentum: a state beside it
  size_t fan_in;       // 0: zeros
  double gain;
  bool decays;
} net_param;

struct net {
  tarn_model *model;
  tarn_status status;  // of describing
  net_layer layers[NET_MOST_LAYERS];
  size_t layer_count;
  net_param params[NET_MOST_PARAMS];
  size_t param_count;
  tarn_tensor *fed;
  tarn_tensor *labels;
  size_t work_count;  // elements that the largest convolution works in
  tarn_block work;    // and where they are
  net_real *work_at;
  tarn_place home;        // where everything is; layers work at the host
  bool is_queued;         // copies there go on beside the layers
  tarn_stream *way_home;  // for such copies; NULL: they are done at once
  net_score score;        // of the last pass forward
};

// --- describing (describe.c) -----------------------------------------------

// |max_batch| is the largest that will be fed.
void net_begin(net *n, const char *name, int64_t max_batch);

// What is fed: the batch and |rank| more dimensions; and its labels.
tarn_tensor *net_feed(net *n, const int64_t *dims, size_t rank);

tarn_tensor *net_then_linear(net *n, const char *name, tarn_tensor *x,
                             size_t outputs);

// Of |conv| set |out|, |kernel| and |stride|; the rest is known from |x|. Its
// weights start |gain| times as large as a lone layer's.
tarn_tensor *net_then_conv(net *n, const char *name, tarn_tensor *x,
                           net_conv conv, double gain);

// Takes the place of |x|, where no other layer needs it.
tarn_tensor *net_then_relu(net *n, const char *name, tarn_tensor *x);
tarn_tensor *net_then_add(net *n, const char *name, tarn_tensor *x,
                          tarn_tensor *other);

// The mean of each channel.
tarn_tensor *net_then_mean(net *n, const char *name, tarn_tensor *x);

// The end of the net: scores against labels.
void net_then_loss(net *n, tarn_tensor *scores);

// --- running (run.c) -------------------------------------------------------

// Plans for |mode| with everything at |home|. If that is not the host, it is
// planned at the host as well, since the layers are the host's code, and
// whatever they write is brought home.
TARN_MUST_CHECK tarn_status net_plan(net *n, tarn_place home,
                                     tarn_model_mode mode);

// Takes the planned memory.
TARN_MUST_CHECK tarn_status net_place(net *n);

// Gives parameters the values that |seed| leads to.
TARN_MUST_CHECK tarn_status net_start(net *n, uint64_t seed);

// Fills the fed tensors with images from number |first| on, in their place.
TARN_MUST_CHECK tarn_status net_fill(net *n, const net_dataset *images,
                                     net_part part, uint64_t first);

// All layers, in order; |n->score| is the result.
TARN_MUST_CHECK tarn_status net_forward(net *n);

// All of them the other way round; the gradients are in the params' diffs.
TARN_MUST_CHECK tarn_status net_backward(net *n);

// A step of SGD. |*out_decay|: the part of the loss that the decay is.
TARN_MUST_CHECK tarn_status net_descend(net *n, const net_sgd *sgd,
                                        double *out_decay);

// That part alone.
TARN_MUST_CHECK tarn_status net_decay(net *n, const net_sgd *sgd,
                                      double *out_decay);

// Gives all memory back, whatever of it there is.
tarn_status net_end(net *n);

// The accesses of one pass of one of its layers.
static inline net_hold net_hold_of(const net *n) {
  return (net_hold){.home = n->home, .way_home = n->way_home};
}

// --- the layers' kinds (passes.c) ------------------------------------------

extern const net_kind net_linear_kind;
extern const net_kind net_conv_kind;
extern const net_kind net_relu_kind;
extern const net_kind net_add_kind;
extern const net_kind net_mean_kind;
extern const net_kind net_loss_kind;

#endif  // TARN_EXAMPLES_NETS_NET_H_
