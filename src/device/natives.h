// natives.h - streams and events, found by their handles in the driver.
//
// Tarn has one object for each handle of a driver, however often the handle is
// adopted. The object counts its creation and adoptions as uses.
#ifndef TARN_DEVICE_NATIVES_H_
#define TARN_DEVICE_NATIVES_H_

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "tarn/device.h"

// --- a hash table ----------------------------------------------------------
// Links are members of their owners' structs and hold the key.
//
//   static tarn__device_buckets table = TARN__BUCKETS(table);
//   tarn__device_link *link = tarn__buckets_at(&table, key);
//   while (link != NULL && link->key != key) link = link->next;
//
// Keys must spread evenly over their low bits, like serial numbers or hashes.
// Nothing here takes a lock.

enum { TARN__BUCKETS_FIRST = 64 };  // a power of two

typedef struct tarn__device_link {
  struct tarn__device_link *next;
  uint64_t key;
} tarn__device_link;

typedef struct tarn__device_buckets {
  tarn__device_link **at;
  size_t mask;   // buckets less one
  size_t count;  // links
  tarn__device_link *first[TARN__BUCKETS_FIRST];
} tarn__device_buckets;

// The initial value of |table|.
#define TARN__BUCKETS(table) \
  { .at = (table).first, .mask = TARN__BUCKETS_FIRST - 1 }

// The chain in which the links with |key| are.
static inline tarn__device_link *tarn__buckets_at(
    const tarn__device_buckets *buckets, uint64_t key) {
  return buckets->at[key & buckets->mask];
}

// Puts |link| before others with the same key. Without host memory for more
// buckets the chains become longer.
void tarn__buckets_put(tarn__device_buckets *buckets, tarn__device_link *link);

// Removes |link|. An empty table holds no host memory.
void tarn__buckets_take(tarn__device_buckets *buckets, tarn__device_link *link);

// The longest chain. A walk, for tests.
size_t tarn__buckets_longest(const tarn__device_buckets *buckets);

// Part of a stream or event.
typedef struct tarn__device_native {
  tarn__device_link link;
  const tarn_device *device;
  void *handle;         // NULL: none, and nothing finds it
  uint32_t generation;  // of the process; a parent's are not found
  size_t uses;          // guarded by the table's lock
} tarn__device_native;

typedef struct tarn__device_natives {
  pthread_mutex_t lock;  // guards all below
  tarn__device_buckets buckets;
} tarn__device_natives;

#define TARN__NATIVES(table)                  \
  {                                           \
    .lock = PTHREAD_MUTEX_INITIALIZER,        \
    .buckets = TARN__BUCKETS((table).buckets) \
  }

extern tarn__device_natives tarn__native_streams;
extern tarn__device_natives tarn__native_events;

// The object of |handle| of |device|, with one more use; NULL if there is none.
tarn__device_native *tarn__natives_use(tarn__device_natives *natives,
                                       const tarn_device *device, void *handle);

// Enters |native|, whose device and handle are set, with one use. If the handle
// has an object already, that gets one more use and is returned. A |fresh|
// handle, which the driver has just made, has none.
tarn__device_native *tarn__natives_enter(tarn__device_natives *natives,
                                         tarn__device_native *native,
                                         bool fresh);

// Removes one use. True for the last: the object is no longer found.
bool tarn__natives_leave(tarn__device_natives *natives,
                         tarn__device_native *native);

// Both tables, around a fork.
void tarn__natives_lock(void);
void tarn__natives_unlock(void);

#endif  // TARN_DEVICE_NATIVES_H_
