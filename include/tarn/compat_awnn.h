// compat_awnn.h - the names of the document on model memory, over tarn/model.h.
//
//   struct list_head list_all_params[1];
//   init_list_head(list_all_params);
//   net_attach_param(list_all_params, "fc1.weight", data, diff);
//   tensor_t w = net_get_param(list_all_params, "fc1.weight")->data;
//   net_free_params(list_all_params);
//
// A list may be a program's own, as above, or one of a model's:
//
//   net_get_param(tarn_model_list(model, TARN_PARAM), "fc1.weight")->diff
//
// A model's list is known by its first tensor: one that is empty is taken for a
// program's own, so do not attach to it. The list of all kinds
// (TARN_KIND_COUNT), which is linked otherwise, must not be given here.
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
// (NULL: none): net_free_params destroys them. |name| is copied.
//
// Cost:           O(parameters of the list).
// TARN_E_INVALID  NULL or an empty name, or no data.
// TARN_E_STATE    the name is there already, or |list| is a model's: then use
//                 tarn_model_add.
// TARN_E_NOMEM    no host memory. In each case both remain the caller's.
TARN_API tarn_status tarn_awnn_attach(tarn_list *list, const char *name,
                                      tarn_synced *data, tarn_synced *diff);

// The parameter of that name; NULL, and the last error, if there is none.
//
// Cost: O(1) for a list of a model, O(parameters) for a program's own.
TARN_API tarn_tensor *tarn_awnn_get(tarn_list *list, const char *name);

// Destroys all parameters of a program's own list, which is empty then.
//
// TARN_E_STATE  an access to one is open, or the list is a model's: nothing
//               has changed.
TARN_API tarn_status tarn_awnn_free(tarn_list *list);

#define net_attach_param tarn_awnn_attach
#define net_get_param tarn_awnn_get
#define net_free_params tarn_awnn_free

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_COMPAT_AWNN_H_
