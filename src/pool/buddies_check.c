// Walking the invariants of free blocks in powers of two.
#include "base/status.h"
#include "pool/buddies.h"

typedef struct sums {
  size_t bytes;
  size_t blocks;
} sums;

static tarn_status broken(const tarn__pool_buddy *b, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "buddies: the block of 2^%u at 0x%llx: %s",
                    b->order, (unsigned long long)b->address, what);
}

// No larger block that is free holds it.
static bool is_alone(const tarn__pool_buddies *buddies,
                     const tarn__pool_buddy *b) {
  size_t offset = (size_t)(b->address - b->space->address);
  for (unsigned order = b->order + 1; order < TARN__BUDDY_ORDERS; order++) {
    size_t bytes = (size_t)1 << order;
    if (bytes > b->space->size) break;
    const tarn__pool_buddy *larger = tarn__buddies_at(
        buddies, b->space, b->space->address + (offset & ~(bytes - 1)));
    if (larger != NULL && larger != b && larger->order >= order) return false;
  }
  return true;
}

static bool could_join(const tarn__pool_buddies *buddies,
                       const tarn__pool_buddy *b) {
  size_t offset = (size_t)(b->address - b->space->address);
  size_t other = offset ^ ((size_t)1 << b->order);
  const tarn__pool_buddy *buddy =
      tarn__buddies_at(buddies, b->space, b->space->address + other);
  if (buddy == NULL || buddy->order != b->order) return false;
  return buddy->lists == b->lists || buddy->lists->serial == 0 ||
         b->lists->serial == 0;
}

static tarn_status check_block(const tarn__pool_buddies *buddies,
                               const tarn__pool_stream_lists *lists,
                               unsigned order, const tarn__pool_buddy *b) {
  size_t bytes = (size_t)1 << order;
  size_t offset = (size_t)(b->address - b->space->address);
  if (b->lists != lists || b->order != order) {
    return broken(b, "it hangs in a list that is not its own");
  }
  if (bytes < buddies->unit || (offset & (bytes - 1)) != 0 ||
      offset + bytes > b->space->size) {
    return broken(b, "it stands where no such block can");
  }
  if (tarn__buddies_at(buddies, b->space, b->address) != b) {
    return broken(b, "it is not in the hash, or not alone there");
  }
  if (!is_alone(buddies, b)) return broken(b, "a larger one holds it");
  if (could_join(buddies, b)) return broken(b, "its buddy is free too");
  return TARN_OK;
}

static tarn_status check_lists(const tarn__pool_buddies *buddies,
                               const tarn__pool_stream_lists *lists, sums *s) {
  for (unsigned order = 0; order < TARN__BUDDY_ORDERS; order++) {
    const tarn_list *head = &lists->blocks[order];
    bool marked = (lists->orders >> order & 1) != 0;
    if (marked == tarn_list_empty(head)) {
      return tarn__fail(TARN_E_CORRUPT, "buddies: the bit of order %u", order);
    }
    const tarn_list *node = NULL;
    tarn_list_for_each (node, head) {
      const tarn__pool_buddy *b = tarn_list_entry(node, tarn__pool_buddy, node);
      tarn_status status = check_block(buddies, lists, order, b);
      if (status != TARN_OK) return status;
      s->bytes += (size_t)1 << order;
      s->blocks++;
    }
  }
  return TARN_OK;
}

static size_t count_hashed(const tarn__pool_buddies *buddies) {
  size_t count = 0;
  for (size_t i = 0; i < buddies->bucket_count; i++) {
    for (const tarn__pool_buddy *b = buddies->buckets[i]; b != NULL;
         b = b->chain)
      count++;
  }
  return count;
}

tarn_status tarn__buddies_check(const tarn__pool_buddies *buddies,
                                size_t *out_free) {
  sums s = {0};
  *out_free = 0;
  for (const tarn__pool_stream_lists *l = buddies->streams; l != NULL;
       l = l->next) {
    tarn_status status = check_lists(buddies, l, &s);
    if (status != TARN_OK) return status;
  }
  if (count_hashed(buddies) != s.blocks) {
    return tarn__fail(TARN_E_CORRUPT, "buddies: %zu are free, %zu in the hash",
                      s.blocks, count_hashed(buddies));
  }
  if (buddies->spare < buddies->promised) {
    return tarn__fail(TARN_E_CORRUPT, "buddies: %zu nodes for the %zu promised",
                      buddies->spare, buddies->promised);
  }
  *out_free = s.bytes;
  return TARN_OK;
}
