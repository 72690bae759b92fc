// users.h - a pointer of the caller's for each block that is out.
//
// Beside the pieces and not in them: a piece is two lines of the cache, and
// most pools never have such a pointer. It is a block's by its generation, so
// that neither a free nor the next request has to clear it.
//
//   by_id  [ pointer, generation ][ ... ]      by the piece's id
#ifndef TARN_POOL_USERS_H_
#define TARN_POOL_USERS_H_

#include "tarn/base.h"

// Zero-filled: there are none. Not locked: the pool's lock guards it.
typedef struct tarn__pool_users {
  struct tarn__pool_user *by_id;
  size_t room;
} tarn__pool_users;

void tarn__users_deinit(tarn__pool_users *users);

// Room for the block of the piece with |id|. False: no host memory.
TARN_MUST_CHECK bool tarn__users_reserve(tarn__pool_users *users, uint32_t id);

// Sets the pointer of that block; there is room.
void tarn__users_set(tarn__pool_users *users, uint32_t id, uint32_t generation,
                     void *pointer);

// NULL: the block has none.
void *tarn__users_get(const tarn__pool_users *users, uint32_t id,
                      uint32_t generation);

#endif  // TARN_POOL_USERS_H_
