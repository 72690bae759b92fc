// Buckets of four keys, a line of the cache each. A key is in its bucket or
// nowhere; in a full one of a table that cannot grow it takes the place of
// another, by bits of its own.
#include "plan/failed.h"

#include <string.h>

#include "base/hostmem.h"

enum { BUCKET = 4, LEAST_ROOM = 1024 };

static size_t bucket_of(const tarn__plan_failed *f, tarn__plan_key key) {
  return (size_t)key.low & (f->room - 1) & ~(size_t)(BUCKET - 1);
}

static bool is_same(tarn__plan_key a, tarn__plan_key b) {
  return a.low == b.low && a.high == b.high;
}

static bool is_empty(tarn__plan_key key) {
  return key.low == 0 && key.high == 0;
}

static tarn__plan_key salted(const tarn__plan_failed *f, tarn__plan_key key) {
  return (tarn__plan_key){key.low + f->salt.low, key.high + f->salt.high};
}

tarn_status tarn__plan_failed_make(size_t size, tarn__plan_failed *out) {
  *out = (tarn__plan_failed){.room = LEAST_ROOM, .most = LEAST_ROOM};
  while (out->most <= size / sizeof *out->keys / 2)
    out->most *= 2;
  out->keys = tarn__host_array(out->room, sizeof *out->keys);
  if (out->keys != NULL) return TARN_OK;
  *out = (tarn__plan_failed){0};
  return TARN_E_NOMEM;
}

void tarn__plan_failed_free(tarn__plan_failed *failed) {
  tarn__host_free_array(failed->keys, failed->room, sizeof *failed->keys);
  *failed = (tarn__plan_failed){0};
}

void tarn__plan_failed_clear(tarn__plan_failed *failed) {
  failed->salt.low = tarn__plan_mix(failed->salt.low + 1);
  failed->salt.high = tarn__plan_mix(failed->salt.high + 2);
}

bool tarn__plan_failed_has(const tarn__plan_failed *failed,
                           tarn__plan_key key) {
  key = salted(failed, key);
  const tarn__plan_key *bucket = failed->keys + bucket_of(failed, key);
  for (int i = 0; i < BUCKET; i++) {
    if (is_same(bucket[i], key)) return true;
  }
  return false;
}

static void put(tarn__plan_failed *f, tarn__plan_key key) {
  tarn__plan_key *bucket = f->keys + bucket_of(f, key);
  for (int i = 0; i < BUCKET; i++) {
    if (is_same(bucket[i], key)) return;
    if (!is_empty(bucket[i])) continue;
    bucket[i] = key;
    f->count++;
    return;
  }
  bucket[key.high % BUCKET] = key;
}

// Without memory the table stays as it is, and works as well as it can.
static void grow(tarn__plan_failed *f) {
  tarn__plan_failed larger = *f;
  larger.room = 2 * f->room;
  larger.count = 0;
  larger.keys = tarn__host_array(larger.room, sizeof *larger.keys);
  if (larger.keys == NULL) {
    f->most = f->room;
    return;
  }
  for (size_t i = 0; i < f->room; i++) {
    if (!is_empty(f->keys[i])) put(&larger, f->keys[i]);
  }
  tarn__host_free_array(f->keys, f->room, sizeof *f->keys);
  *f = larger;
}

void tarn__plan_failed_put(tarn__plan_failed *failed, tarn__plan_key key) {
  if (failed->room < failed->most && failed->count > failed->room / 2) {
    grow(failed);
  }
  key = salted(failed, key);
  // The sign of an empty place; not to store one state is no mistake.
  if (!is_empty(key)) put(failed, key);
}
