// Buckets: chains of links, as many as there are links at most.
//
//   at  [ 0 ]-> link 128 -> link 64
//       [ 1 ]-> link 65
//       [ 2 ]
//
// They double when there are as many links, so a look-up takes a step or two.
#include "device/natives.h"

#include <string.h>

#include "base/hostmem.h"

static void put(tarn__device_buckets *buckets, tarn__device_link *link) {
  tarn__device_link **bucket = &buckets->at[link->key & buckets->mask];
  link->next = *bucket;
  *bucket = link;
}

static void release(const tarn__device_buckets *buckets, tarn__device_link **at,
                    size_t count) {
  if (at != buckets->first) tarn__host_free_array(at, count, sizeof *at);
}

static void grow(tarn__device_buckets *buckets) {
  size_t count = buckets->mask + 1;
  tarn__device_link **before = buckets->at;
  tarn__device_link **grown = tarn__host_array(count * 2, sizeof *grown);
  if (grown == NULL) return;
  buckets->at = grown;
  buckets->mask = count * 2 - 1;
  for (size_t i = 0; i < count; i++) {
    tarn__device_link *next = NULL;
    for (tarn__device_link *link = before[i]; link != NULL; link = next) {
      next = link->next;
      put(buckets, link);
    }
  }
  release(buckets, before, count);
}

static void reset(tarn__device_buckets *buckets) {
  release(buckets, buckets->at, buckets->mask + 1);
  memset(buckets->first, 0, sizeof buckets->first);
  buckets->at = buckets->first;
  buckets->mask = TARN__BUCKETS_FIRST - 1;
}

void tarn__buckets_put(tarn__device_buckets *buckets, tarn__device_link *link) {
  if (buckets->count > buckets->mask) grow(buckets);
  put(buckets, link);
  buckets->count++;
}

void tarn__buckets_take(tarn__device_buckets *buckets,
                        tarn__device_link *link) {
  tarn__device_link **at = &buckets->at[link->key & buckets->mask];
  while (*at != link)
    at = &(*at)->next;
  *at = link->next;
  if (--buckets->count == 0) reset(buckets);
}

size_t tarn__buckets_longest(const tarn__device_buckets *buckets) {
  size_t longest = 0;
  for (size_t i = 0; i <= buckets->mask; i++) {
    size_t steps = 0;
    for (const tarn__device_link *link = buckets->at[i]; link != NULL;
         link = link->next) {
      steps++;
    }
    if (steps > longest) longest = steps;
  }
  return longest;
}
