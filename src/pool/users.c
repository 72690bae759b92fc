// The callers' pointers: a table by id, as long as the highest id that has had
// one wants it.
#include "pool/users.h"

#include <assert.h>

#include "base/hostmem.h"

enum { FIRST_ROOM = 64 };

struct tarn__pool_user {
  void *pointer;
  uint32_t generation;  // of the block; 0: there was none
};

void tarn__users_deinit(tarn__pool_users *users) {
  tarn__host_free_array(users->by_id, users->room, sizeof *users->by_id);
  *users = (tarn__pool_users){.room = 0};
}

bool tarn__users_reserve(tarn__pool_users *users, uint32_t id) {
  if (id < users->room) return true;
  size_t room = users->room != 0 ? users->room : FIRST_ROOM;
  while (room <= id)
    room *= 2;
  struct tarn__pool_user *grown =
      tarn__host_resize(users->by_id, users->room, room, sizeof *users->by_id);
  if (grown == NULL) return false;
  users->by_id = grown;
  users->room = room;
  return true;
}

void tarn__users_set(tarn__pool_users *users, uint32_t id, uint32_t generation,
                     void *pointer) {
  assert(id < users->room);
  users->by_id[id] =
      (struct tarn__pool_user){.pointer = pointer, .generation = generation};
}

void *tarn__users_get(const tarn__pool_users *users, uint32_t id,
                      uint32_t generation) {
  bool its_own = id < users->room && users->by_id[id].generation == generation;
  return its_own ? users->by_id[id].pointer : NULL;
}
