// awnn_net.h - the net of AWNN's description: its four lists, and the contents
// of tensors in host memory.
#ifndef TARN_TESTS_MODEL_AWNN_NET_H_
#define TARN_TESTS_MODEL_AWNN_NET_H_

#include "support/run.h"
#include "tarn/compat_awnn.h"

typedef struct model_t {
  struct list_head list_all_params[1];   // list of all learnable params
  struct list_head list_layer_out[1];    // list of output of each layer
  struct list_head list_layer_in[1];     // list of input of each layer
  struct list_head list_layer_cache[1];  // list of layer cache.
} model_t;

static inline struct list_head *list_of(model_t *model, int index) {
  struct list_head *const lists[] = {
      model->list_all_params, model->list_layer_out, model->list_layer_in,
      model->list_layer_cache};
  return lists[index];
}

static inline float *write_to(tensor_t tensor) {
  void *data = NULL;
  assert_ok(tarn_synced_mutable_cpu_data(tensor, &data));
  return data;
}

static inline const float *read_from(tensor_t tensor) {
  const void *data = NULL;
  assert_ok(tarn_synced_cpu_data(tensor, &data));
  return data;
}

#endif  // TARN_TESTS_MODEL_AWNN_NET_H_
