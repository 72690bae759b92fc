// compat_awnn.h - the names of the document on model memory, over tarn/model.h.
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
// A list is a program's own, as above, or a model's:
//
//   struct list_head *params = tarn_model_list(model, TARN_PARAM);
//   net_attach_param(params, "fc1.weight", data, diff);
//   net_get_param(params, "fc1.weight")->diff
//
// The library knows the lists of all models, empty ones too. A parameter that
// is attached to a model belongs to the model, which destroys it.
//
// Not part of tarn/tarn.h, since the names are not Tarn's.
//
// Threads: a list is not locked: its owner guards it.
// Fork:    in a child the buffers of a list are the parent's: to free it is
//          TARN_E_STATE there.
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

// Adds a parameter to the end of |list|, which takes over |data| and |diff|
// (NULL: none): net_free_params destroys them. |name| is copied. An input that
// shadows an output is a view of it (tarn_synced_view): a buffer is attached
// once.
//
// To a model's list of parameters: tarn_model_add of as many TARN_DTYPE_U8 as
// |data| has bytes, with these two buffers. tarn_model_destroy destroys them,
// and a plan to train adds a diff where |diff| is NULL.
//
// Cost:           O(parameters of the list, and models); of a model O(models).
//                 While a program's own list is empty, each call with it is
//                 O(parameters of all models).
// TARN_E_INVALID  NULL or an empty name, no data, the same buffer twice, or,
//                 for a model, a diff of another size than the data.
// TARN_E_STATE    the name is there already; or |list| is a model's that is
//                 planned, its list of another kind, or that of a parameter's
//                 states: the text says what to call instead.
// TARN_E_NOMEM    no host memory. In each case both remain the caller's.
TARN_API tarn_status tarn_awnn_attach(tarn_list *list, const char *name,
                                      tarn_synced *data, tarn_synced *diff);

// The parameter of that name; NULL, and the last error, if there is none.
//
// Cost: O(models) for a list of a model, and O(parameters) more for a program's
//       own.
TARN_API tarn_tensor *tarn_awnn_get(tarn_list *list, const char *name);

// Destroys all parameters of a program's own list, which is empty then.
//
// TARN_E_STATE  an access to one is open, the list has caches, or it is a
//               model's, which tarn_model_destroy frees: nothing has changed.
TARN_API tarn_status tarn_awnn_free(tarn_list *list);

// Prints the names of the parameters or caches of |list|, a program's own or a
// model's, in one line on stdout: "fc1.weight, fc1.bias".
//
// TARN_E_INVALID  NULL.
// TARN_E_STATE    the list of all kinds of a model.
TARN_API tarn_status tarn_awnn_print(tarn_list *list);

#define net_attach_param tarn_awnn_attach
#define net_get_param tarn_awnn_get
#define net_free_params tarn_awnn_free
#define net_print_params tarn_awnn_print

// ---------------------------------------------------------------------------
// Caches
// ---------------------------------------------------------------------------

// A layer's cache: a stack of any number of tensors, which it holds and does
// not own. A zero-filled one is empty. To be read only.
typedef struct tarn_awnn_cache {
  tarn_tensor tensor;  // in a list: its link, its kind (TARN_CACHE) and its
                       // name; without data
  const char *name;    // NULL: in no list
  size_t count;        // tensors that were pushed and not popped
  tarn_synced **all_tensors;  // these, the one pushed last at the end
  size_t room;                // the library's own
} tarn_awnn_cache;
typedef tarn_awnn_cache lcache_t;

// Adds an empty cache to the end of |list|. |name| is copied.
//
// Cost:           O(caches of the list, and models).
// TARN_E_INVALID  NULL or an empty name.
// TARN_E_STATE    the name is there already, or |list| is a model's, whose
//                 caches belong to steps: use tarn_step_caches.
// TARN_E_NOMEM    no host memory.
TARN_API tarn_status tarn_awnn_attach_cache(tarn_list *list, const char *name);

// The cache of that name; NULL, and the last error, if there is none, or the
// list is a model's: use tarn_step_push and tarn_step_pop.
TARN_API tarn_awnn_cache *tarn_awnn_get_cache(tarn_list *list,
                                              const char *name);

// Pushes |tensor|, which stays its owner's.
//
// TARN_E_INVALID  NULL.
// TARN_E_NOMEM    no host memory: nothing was pushed.
TARN_API tarn_status tarn_awnn_push(tarn_awnn_cache *cache,
                                    tarn_synced *tensor);

// Takes off what was pushed last and gives it to the caller. NULL, and the last
// error, if nothing is there.
TARN_API tarn_synced *tarn_awnn_pop(tarn_awnn_cache *cache);

// Destroys all tensors that |cache| holds; it is empty then. NULL is allowed.
//
// TARN_E_STATE   an access to one is open: nothing has changed.
// TARN_E_DEVICE  they have ended, but a device refused some of its memory.
TARN_API tarn_status tarn_awnn_cache_free_all(tarn_awnn_cache *cache);

// Frees the caches of a program's own list, which is empty then. What they
// still hold is not destroyed: it is its owners'.
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
