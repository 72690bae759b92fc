// buckets.h - a hash table of structs that stay their owner's: each has a link
// in it, with the key by which it is found.
//
//   static tarn__device_buckets table = TARN__BUCKETS(table);
//   tarn__device_link *link = tarn__buckets_at(&table, key);
//   while (link != NULL && link->key != key) link = link->next;
//
// Keys spread evenly over their low bits, as numbers do that are counted up, or
// hashes. Nothing here takes a lock.
#ifndef TARN_DEVICE_BUCKETS_H_
#define TARN_DEVICE_BUCKETS_H_

#include <stddef.h>
#include <stdint.h>

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

// To begin with.
#define TARN__BUCKETS(table) \
  { .at = (table).first, .mask = TARN__BUCKETS_FIRST - 1 }

// The chain in which the links with |key| are.
static inline tarn__device_link *tarn__buckets_at(
    const tarn__device_buckets *buckets, uint64_t key) {
  return buckets->at[key & buckets->mask];
}

// In front of others with the same key. Without host memory for more buckets,
// chains become longer, and that is all.
void tarn__buckets_put(tarn__device_buckets *buckets, tarn__device_link *link);

// When the last link is taken no host memory is held.
void tarn__buckets_take(tarn__device_buckets *buckets, tarn__device_link *link);

// The longest chain. A walk, for tests.
size_t tarn__buckets_longest(const tarn__device_buckets *buckets);

#endif  // TARN_DEVICE_BUCKETS_H_
