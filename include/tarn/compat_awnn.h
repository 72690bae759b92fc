// compat_awnn.h - AWNN's names for model memory, over tarn/model.h.
//
//   struct list_head list_all_params[1];
//   init_list_head(list_all_params);
//   net_attach_param(list_all_params, "fc1.weight", data, diff);
//   tensor_t w = net_get_param(list_all_params, "fc1.weight")->data;
//   net_free_params(list_all_params);
//
//   struct list_head list_layer_cache[1];
//   init_list_head(list_layer_cache);
//   net_attach_cache(list_layer_cache, "fc1.cache");
//   lcache_t *cache = net_get_cache(list_layer_cache, "fc1.cache");
//   lcache_push(cache, x);                      // forward
//   x = lcache_pop(cache);                      // backward
//   net_free_cache(list_layer_cache);
//
// A list belongs to the program, as above, or to a model:
//
//   struct list_head *params = tarn_model_list(model, TARN_PARAM);
//   net_attach_param(params, "fc1.weight", data, diff);
//   net_get_param(params, "fc1.weight")->diff
//
// The library recognises the lists of all models, also when they are empty. A
// parameter that is attached to a model belongs to the model, which destroys
// it.
//
// Not part of tarn/tarn.h, since the names are not Tarn's.
//
// Threads: lists have no lock; their owner guards them.
// Fork:    in a child, freeing a list is TARN_E_STATE: its buffers are the
//          parent's.
#ifndef TARN_COMPAT_AWNN_H_
#define TARN_COMPAT_AWNN_H_

#include "tarn/model.h"

#ifdef __cplusplus
extern "C" {
#endif

#define list_head tarn_list
#define init_list_head tarn_list_init
#define list_add(node, head) tarn_list_add((head), (node))
#define list_add_tail(node, head) tarn_list_add_tail((head), (node))
#define list_del tarn_list_del
#define list_for_each tarn_list_for_each
#define list_for_each_safe tarn_list_for_each_safe
#define list_entry tarn_list_entry

// A tensor's bytes, and a parameter: name, data, diff.
typedef tarn_synced *tensor_t;
typedef tarn_tensor param_t;

// Adds a parameter to the end of |list|, which then owns |data| and |diff|
// (NULL: none): net_free_params destroys them. |name| is copied. A buffer is
// attached once: an input that shadows an output is a view of it
// (tarn_synced_view).
//
// For a model's list of parameters this is tarn_model_add of as many
// TARN_DTYPE_U8 as |data| has bytes, with these two buffers. tarn_model_destroy
// destroys them, and a plan for training adds a diff if |diff| is NULL.
//
// Cost:           O(parameters of the list + models); for a model's list
//                 O(models); for a program's own empty list O(parameters of all
//                 models).
// TARN_E_INVALID  NULL or an empty name, no data, the same buffer twice, or,
//                 for a model, a diff of another size than the data.
// TARN_E_STATE    the name is taken; or |list| belongs to a planned model, is a
//                 model's list of another kind, or the list of a parameter's
//                 states: the text says what to call instead.
// TARN_E_NOMEM    no host memory. On failure both buffers remain the caller's.
TARN_API tarn_status tarn_awnn_attach(tarn_list *list, const char *name,
                                      tarn_synced *data, tarn_synced *diff);

// The parameter called |name|; NULL, with the last error, if there is none.
//
// Cost: O(models) for a model's list; O(parameters + models) for a program's.
TARN_API tarn_tensor *tarn_awnn_get(tarn_list *list, const char *name);

// Destroys all parameters of a program's own list, and leaves it empty.
//
// TARN_E_STATE  an access to a parameter is open, the list has caches, or it is
//               a model's, which tarn_model_destroy frees: nothing has changed.
TARN_API tarn_status tarn_awnn_free(tarn_list *list);

// Prints the names of the parameters or caches of |list|, a program's or a
// model's, in one line on stdout: "fc1.weight, fc1.bias".
//
// TARN_E_INVALID  NULL.
// TARN_E_STATE    |list| is a model's list of all kinds.
TARN_API tarn_status tarn_awnn_print(tarn_list *list);

#define net_attach_param tarn_awnn_attach
#define net_get_param tarn_awnn_get
#define net_free_params tarn_awnn_free
#define net_print_params tarn_awnn_print

// ---------------------------------------------------------------------------
// Caches
// ---------------------------------------------------------------------------

// A layer's cache: a stack of any number of tensors, which it does not own. A
// zero-filled cache is empty. Programs only read the struct.
typedef struct tarn_awnn_cache {
  tarn_tensor tensor;  // in a list: its link, its kind (TARN_CACHE) and its
                       // name; without data
  const char *name;    // NULL: in no list
  size_t count;        // tensors pushed and not popped
  tarn_synced **all_tensors;  // |count| of them, the last pushed at the end
  size_t room;                // for the library
} tarn_awnn_cache;
typedef tarn_awnn_cache lcache_t;

// Adds an empty cache to the end of |list|. |name| is copied.
//
// Cost:           O(caches of the list + models).
// TARN_E_INVALID  NULL or an empty name.
// TARN_E_STATE    the name is taken, or |list| is a model's, whose caches
//                 belong to steps: use tarn_step_caches.
// TARN_E_NOMEM    no host memory.
TARN_API tarn_status tarn_awnn_attach_cache(tarn_list *list, const char *name);

// The cache called |name|; NULL, with the last error, if there is none, or if
// |list| is a model's: use tarn_step_push and tarn_step_pop.
TARN_API tarn_awnn_cache *tarn_awnn_get_cache(tarn_list *list,
                                              const char *name);

// Pushes |tensor|, which still belongs to its owner.
//
// TARN_E_INVALID  NULL.
// TARN_E_NOMEM    no host memory: nothing was pushed.
TARN_API tarn_status tarn_awnn_push(tarn_awnn_cache *cache,
                                    tarn_synced *tensor);

// Pops the tensor that was pushed last. NULL, with the last error, if the cache
// is empty.
TARN_API tarn_synced *tarn_awnn_pop(tarn_awnn_cache *cache);

// Destroys all tensors in |cache|, and leaves it empty. NULL is allowed.
//
// TARN_E_STATE   an access to a tensor is open: nothing has changed.
// TARN_E_DEVICE  done, but a device could not free some of its memory.
TARN_API tarn_status tarn_awnn_cache_free_all(tarn_awnn_cache *cache);

// Frees the caches of a program's own list, and leaves it empty. Tensors still
// in a cache are not destroyed: they belong to their owners.
//
// TARN_E_INVALID  NULL.
// TARN_E_STATE    the list is a model's, or has parameters: nothing has
//                 changed.
TARN_API tarn_status tarn_awnn_free_caches(tarn_list *list);

#define net_attach_cache tarn_awnn_attach_cache
#define net_get_cache tarn_awnn_get_cache
#define net_free_cache tarn_awnn_free_caches
#define lcache_push tarn_awnn_push
#define lcache_pop tarn_awnn_pop
#define lcache_free_all tarn_awnn_cache_free_all

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_COMPAT_AWNN_H_
