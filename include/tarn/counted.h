// counted.h - an object that ends with the last of those who use it.
//
// For bindings, whose objects end in any order and on any thread, and for
// memory that is handed to other libraries: each view of it is a user, and the
// memory stays until the last view is gone.
//
//   tarn_counted *counted;
//   tarn_counted_create(whole, 0, tarn_whole_give_up, &counted);  // a user
//   tarn_counted_hold(counted);                                   // another
//   source.release = tarn_counted_release;  // of a tensor (dlpack.h)
//   source.owner = counted;
//   ...
//   tarn_counted_release(counted);          // gives the whole memory up
//
// Threads: any. Every function may be called while others are.
// Fork:    a child has a count of its own.
#ifndef TARN_COUNTED_H_
#define TARN_COUNTED_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_counted tarn_counted;

// Ends an object, on the thread of the last user.
typedef void tarn_counted_end(void *object);

// Creates a count of one user. |end| gets |object|, or if |size| is not 0, a
// copy of the |size| bytes at |object|, at most TARN_COUNTED_MOST. |end| may be
// NULL.
//
// Lifetime: until the last user calls tarn_counted_release, or the only one
//           tarn_counted_close.
// TARN_E_INVALID  |out_counted| or |object| is NULL, or |size| is too large.
// TARN_E_NOMEM    no host memory.
#define TARN_COUNTED_MOST 64
TARN_API TARN_MUST_CHECK tarn_status
tarn_counted_create(void *object, size_t size, tarn_counted_end *end,
                    tarn_counted **out_counted);

// Adds a user. |counted| has one at least.
TARN_API void tarn_counted_hold(tarn_counted *counted);

// Ends a user: the last one ends the object. |counted| is a tarn_counted or
// NULL; the type is that of release functions, such as DLPack's (dlpack.h).
TARN_API void tarn_counted_release(void *counted);

// How many users there are.
TARN_API size_t tarn_counted_users(const tarn_counted *counted);

// Frees the count for its only user, who ends the object itself.
//
// TARN_E_INVALID  NULL.
// TARN_E_STATE    there are other users; the text says how many. Nothing has
//                 changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_counted_close(tarn_counted *counted);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_COUNTED_H_
