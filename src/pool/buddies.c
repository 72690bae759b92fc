// Free blocks in powers of two: a list for each size and stream, and a hash of
// their addresses, by which a block finds its buddy.
//
// Invariants (tarn__buddies_check walks them):
//   * a free block stands in the list of its order and lists, and in the hash
//   * no two buddies are free that could be one
//   * there are nodes for all that is out to come back
#include "pool/buddies.h"

#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"

enum {
  SLAB_NODES = 512,
  // Nodes for an addition and a take: for the parts of the space, for the rest
  // of the block on both sides, and for the taken part.
  ROOM = 5 * TARN__BUDDY_ORDERS,
};

typedef struct tarn__pool_buddy_slab {
  struct tarn__pool_buddy_slab *next;
  tarn__pool_buddy nodes[SLAB_NODES];
} slab;

static size_t bytes_of(unsigned order) {
  return (size_t)1 << order;
}

static unsigned order_below(size_t size) {
  return 63u - (unsigned)__builtin_clzll(size);
}

static unsigned order_above(size_t size) {
  return size <= 1 ? 0 : order_below(size - 1) + 1;
}

// --- parts -----------------------------------------------------------------

// The order of the first part of the bytes from |from| to |to| of a space: the
// largest power of two that may stand there.
static unsigned first_part(size_t from, size_t to) {
  unsigned room = order_below(to - from);
  unsigned aligned = from == 0 ? room : (unsigned)__builtin_ctzll(from);
  return aligned < room ? aligned : room;
}

static size_t count_parts(size_t from, size_t to) {
  size_t count = 0;
  for (; from < to; count++)
    from += bytes_of(first_part(from, to));
  return count;
}

// --- nodes -----------------------------------------------------------------

static tarn__pool_buddy *node_at(const tarn_list *node) {
  return tarn_list_entry(node, tarn__pool_buddy, node);
}

static tarn__pool_buddy **bucket_of(const tarn__pool_buddies *buddies,
                                    tarn_addr address) {
  uint64_t product = (address >> 4) * 0x9e3779b97f4a7c15u;
  return &buddies->buckets[(product >> 32) & (buddies->bucket_count - 1)];
}

static void put(tarn__pool_buddies *buddies, tarn__pool_buddy *b) {
  tarn__pool_buddy **bucket = bucket_of(buddies, b->address);
  b->chain = *bucket;
  *bucket = b;
}

static bool grow_buckets(tarn__pool_buddies *buddies, size_t count) {
  tarn__pool_buddies old = *buddies;
  tarn__pool_buddy **buckets =
      tarn__host_array(count, sizeof(tarn__pool_buddy *));
  if (buckets == NULL) return false;
  buddies->buckets = buckets;
  buddies->bucket_count = count;
  for (size_t i = 0; i < old.bucket_count; i++) {
    while (old.buckets[i] != NULL) {
      tarn__pool_buddy *b = old.buckets[i];
      old.buckets[i] = b->chain;
      put(buddies, b);
    }
  }
  tarn__host_free_array(old.buckets, old.bucket_count,
                        sizeof(tarn__pool_buddy *));
  return true;
}

static bool add_slab(tarn__pool_buddies *buddies) {
  size_t count = SLAB_NODES;
  for (const slab *s = buddies->slabs; s != NULL; s = s->next)
    count += SLAB_NODES;
  if (count > buddies->bucket_count && !grow_buckets(buddies, count * 2)) {
    return false;
  }
  slab *s = tarn__host_alloc(sizeof *s);
  if (s == NULL) return false;
  s->next = buddies->slabs;
  buddies->slabs = s;
  for (size_t i = 0; i < SLAB_NODES; i++)
    tarn_list_add(&buddies->unused, &s->nodes[i].node);
  buddies->spare += SLAB_NODES;
  return true;
}

// Makes |address| a free block, which is not looked at for its buddy.
static void hang(tarn__pool_buddies *buddies, tarn__pool_stream_lists *lists,
                 tarn__pool_space *space, tarn_addr address, unsigned order) {
  assert(buddies->spare > 0);
  tarn__pool_buddy *b = node_at(buddies->unused.next);
  tarn_list_del(&b->node);
  buddies->spare--;
  b->lists = lists;
  b->space = space;
  b->address = address;
  b->order = order;
  tarn_list_add(&lists->blocks[order], &b->node);
  lists->orders |= UINT64_C(1) << order;
  put(buddies, b);
}

// Takes it out of its list and of the hash. Its node is unused then, and keeps
// its fields until it is used again.
static void unhang(tarn__pool_buddies *buddies, tarn__pool_buddy *b) {
  tarn__pool_buddy **link = bucket_of(buddies, b->address);
  while (*link != b)
    link = &(*link)->chain;
  *link = b->chain;
  tarn__pool_stream_lists *lists = b->lists;
  tarn_list_del(&b->node);
  tarn_list_add(&buddies->unused, &b->node);
  buddies->spare++;
  if (tarn_list_empty(&lists->blocks[b->order])) {
    lists->orders &= ~(UINT64_C(1) << b->order);
  }
}

// The free block that starts at |address| in |space|, or NULL.
static inline tarn__pool_buddy *block_at(const tarn__pool_buddies *buddies,
                                         const tarn__pool_space *space,
                                         tarn_addr address) {
  tarn__pool_buddy *b = *bucket_of(buddies, address);
  while (b != NULL && (b->address != address || b->space != space))
    b = b->chain;
  return b;
}

// --- streams -----------------------------------------------------------------

static tarn__pool_stream_lists *add_lists(tarn__pool_buddies *buddies) {
  tarn__pool_stream_lists *lists = tarn__host_alloc(sizeof *lists);
  if (lists == NULL) return NULL;
  for (size_t i = 0; i < TARN__BUDDY_ORDERS; i++)
    tarn_list_init(&lists->blocks[i]);
  tarn__pool_stream_lists **last = &buddies->streams;
  while (*last != NULL)
    last = &(*last)->next;
  *last = lists;
  return lists;
}

static tarn__pool_stream_lists *find_lists(const tarn__pool_buddies *buddies,
                                           uint64_t serial) {
  tarn__pool_stream_lists *lists = buddies->streams;
  while (lists != NULL && lists->serial != serial)
    lists = lists->next;
  return lists;
}

bool tarn__buddies_know(tarn__pool_buddies *buddies, uint64_t serial) {
  if (find_lists(buddies, serial) != NULL) return true;
  // A lists without blocks may become another stream's.
  tarn__pool_stream_lists *lists = buddies->streams->next;
  while (lists != NULL && lists->orders != 0)
    lists = lists->next;
  if (lists == NULL) lists = add_lists(buddies);
  if (lists != NULL) lists->serial = serial;
  return lists != NULL;
}

// --- beginning and end -----------------------------------------------------

tarn_status tarn__buddies_init(tarn__pool_buddies *buddies, size_t unit) {
  *buddies = (tarn__pool_buddies){.unit = unit};
  tarn_list_init(&buddies->unused);
  return add_lists(buddies) != NULL ? TARN_OK : TARN_E_NOMEM;
}

void tarn__buddies_deinit(tarn__pool_buddies *buddies) {
  while (buddies->streams != NULL) {
    tarn__pool_stream_lists *lists = buddies->streams;
    buddies->streams = lists->next;
    tarn__host_free(lists, sizeof *lists);
  }
  while (buddies->slabs != NULL) {
    slab *s = buddies->slabs;
    buddies->slabs = s->next;
    tarn__host_free(s, sizeof *s);
  }
  tarn__host_free_array(buddies->buckets, buddies->bucket_count,
                        sizeof(tarn__pool_buddy *));
  buddies->buckets = NULL;
}

bool tarn__buddies_reserve(tarn__pool_buddies *buddies, uint64_t serial) {
  while (buddies->spare < buddies->promised + ROOM) {
    if (!add_slab(buddies)) return false;
  }
  return tarn__buddies_know(buddies, serial);
}

// --- giving ----------------------------------------------------------------

static bool may_join(const tarn__pool_stream_lists *a,
                     const tarn__pool_stream_lists *b) {
  return a == b || a->serial == 0 || b->serial == 0;
}

// The buddy of the block of |order| at |offset|, if it is free as a whole; else
// NULL.
static inline tarn__pool_buddy *buddy_of(const tarn__pool_buddies *buddies,
                                         const tarn__pool_space *space,
                                         size_t offset, unsigned order) {
  size_t other = offset ^ bytes_of(order);
  tarn__pool_buddy *b = block_at(buddies, space, space->address + other);
  return b != NULL && b->order == order ? b : NULL;
}

// Makes a block free, joined with its buddy, and that with its own, as far as
// they are free.
static void release(tarn__pool_buddies *buddies, tarn__pool_stream_lists *lists,
                    tarn__pool_space *space, size_t offset, unsigned order) {
  for (;;) {
    tarn__pool_buddy *b = buddy_of(buddies, space, offset, order);
    if (b == NULL || !may_join(b->lists, lists)) break;
    if (lists->serial == 0) lists = b->lists;
    unhang(buddies, b);
    offset &= ~bytes_of(order);
    order++;
  }
  hang(buddies, lists, space, space->address + offset, order);
}

static void release_parts(tarn__pool_buddies *buddies,
                          tarn__pool_stream_lists *lists,
                          tarn__pool_space *space, size_t from, size_t to) {
  while (from < to) {
    unsigned order = first_part(from, to);
    release(buddies, lists, space, from, order);
    from += bytes_of(order);
  }
}

void tarn__buddies_add(tarn__pool_buddies *buddies, tarn__pool_space *space) {
  space->taken = 0;
  release_parts(buddies, buddies->streams, space, 0, space->size);
}

void tarn__buddies_give(tarn__pool_buddies *buddies, tarn__pool_space *space,
                        tarn_addr address, size_t size, uint64_t serial) {
  size_t from = (size_t)(address - space->address);
  tarn__pool_stream_lists *lists = find_lists(buddies, serial);
  assert(lists != NULL && size <= space->taken);
  buddies->promised -= count_parts(from, from + size);
  space->taken -= size;
  release_parts(buddies, lists, space, from, from + size);
}

// --- taking ----------------------------------------------------------------

static bool fits(const tarn__pool_buddy *b, size_t size, size_t align) {
  size_t skipped = (size_t)(-b->address & (align - 1));
  return skipped <= bytes_of(b->order) - size;
}

// Looks at the head of each list, smallest blocks first.
static tarn__pool_buddy *find_in(const tarn__pool_stream_lists *lists,
                                 size_t size, size_t align) {
  uint64_t orders = lists->orders >> order_above(size) << order_above(size);
  for (; orders != 0; orders &= orders - 1) {
    unsigned order = (unsigned)__builtin_ctzll(orders);
    tarn__pool_buddy *b = node_at(lists->blocks[order].next);
    if (fits(b, size, align)) return b;
  }
  return NULL;
}

// What |lists| has no stream uses any more.
static void empty_lists(tarn__pool_buddies *buddies,
                        const tarn__pool_stream_lists *lists) {
  while (lists->orders != 0) {
    unsigned order = (unsigned)__builtin_ctzll(lists->orders);
    tarn__pool_buddy *b = node_at(lists->blocks[order].next);
    unhang(buddies, b);
    release(buddies, buddies->streams, b->space,
            (size_t)(b->address - b->space->address), order);
  }
}

static void adopt_orphans(tarn__pool_buddies *buddies) {
  for (tarn__pool_stream_lists *lists = buddies->streams->next; lists != NULL;
       lists = lists->next) {
    bool gone = lists->orders != 0 && tarn__stream_is_gone(lists->serial);
    if (gone) empty_lists(buddies, lists);
  }
}

void tarn__buddies_settle(tarn__pool_buddies *buddies, uint64_t serial) {
  const tarn__pool_stream_lists *lists =
      serial != 0 ? find_lists(buddies, serial) : NULL;
  if (lists != NULL) empty_lists(buddies, lists);
}

// The first lists have the blocks that were just found unused.
static tarn__pool_buddy *find_elsewhere(tarn__pool_buddies *buddies,
                                        size_t size, size_t align,
                                        bool own_only) {
  if (buddies->streams->next == NULL) return NULL;
  adopt_orphans(buddies);
  tarn__pool_buddy *b = find_in(buddies->streams, size, align);
  for (const tarn__pool_stream_lists *lists = buddies->streams->next;
       lists != NULL && b == NULL && !own_only; lists = lists->next) {
    b = find_in(lists, size, align);
  }
  return b;
}

static tarn__pool_buddy *find(tarn__pool_buddies *buddies, size_t size,
                              size_t align, uint64_t serial, bool own_only) {
  const tarn__pool_stream_lists *own = find_lists(buddies, serial);
  tarn__pool_buddy *b = own != NULL ? find_in(own, size, align) : NULL;
  if (b == NULL && serial != 0) b = find_in(buddies->streams, size, align);
  return b != NULL ? b : find_elsewhere(buddies, size, align, own_only);
}

// The rest on both sides has its buddies within |b|, and those are taken.
static void hang_parts(tarn__pool_buddies *buddies, tarn__pool_buddy b,
                       size_t from, size_t to) {
  while (from < to) {
    unsigned order = first_part(from, to);
    hang(buddies, b.lists, b.space, b.space->address + from, order);
    from += bytes_of(order);
  }
}

tarn_addr tarn__buddies_take(tarn__pool_buddies *buddies, size_t size,
                             size_t align, uint64_t serial, bool own_only,
                             tarn__pool_space **out_space,
                             uint64_t *out_serial) {
  tarn__pool_buddy *found = find(buddies, size, align, serial, own_only);
  *out_space = NULL;
  *out_serial = 0;
  if (found == NULL) return 0;
  tarn__pool_buddy b = *found;
  unhang(buddies, found);
  size_t begin = (size_t)(b.address - b.space->address);
  size_t from = begin + (size_t)(-b.address & (align - 1));
  hang_parts(buddies, b, begin, from);
  hang_parts(buddies, b, from + size, begin + bytes_of(b.order));
  buddies->promised += count_parts(from, from + size);
  b.space->taken += size;
  *out_space = b.space;
  *out_serial = b.lists->serial;
  return b.space->address + from;
}

// --- taking a space out ----------------------------------------------------

bool tarn__buddies_is_unused(const tarn__pool_buddies *buddies,
                             const tarn__pool_space *space) {
  assert(space->taken == 0);
  for (size_t at = 0; at < space->size;) {
    const tarn__pool_buddy *b = block_at(buddies, space, space->address + at);
    assert(b != NULL);
    if (b->lists->serial != 0) return false;
    at += bytes_of(b->order);
  }
  return true;
}

void tarn__buddies_remove(tarn__pool_buddies *buddies,
                          const tarn__pool_space *space,
                          tarn__pool_waits *waits) {
  assert(space->taken == 0);
  for (size_t at = 0; at < space->size;) {
    tarn__pool_buddy *b = block_at(buddies, space, space->address + at);
    assert(b != NULL);
    tarn__waits_add(waits, b->lists->serial);
    at += bytes_of(b->order);
    unhang(buddies, b);
  }
}

// --- the invariants --------------------------------------------------------

static tarn_status broken(const tarn__pool_buddy *b, const char *what) {
  return tarn__fail(TARN_E_CORRUPT, "buddies: the block of 2^%u at 0x%llx: %s",
                    b->order, (unsigned long long)b->address, what);
}

static tarn_status check_block(const tarn__pool_buddies *buddies,
                               const tarn__pool_stream_lists *lists,
                               unsigned order, const tarn__pool_buddy *b) {
  size_t bytes = bytes_of(order);
  size_t offset = (size_t)(b->address - b->space->address);
  const tarn__pool_buddy *other = buddy_of(buddies, b->space, offset, order);
  if (b->lists != lists || b->order != order) {
    return broken(b, "it hangs in a list that is not its own");
  }
  if (bytes < buddies->unit || (offset & (bytes - 1)) != 0 ||
      offset + bytes > b->space->size) {
    return broken(b, "it stands where no such block can");
  }
  if (block_at(buddies, b->space, b->address) != b) {
    return broken(b, "it is not in the hash, or not alone there");
  }
  if (other != NULL && may_join(other->lists, lists))
    return broken(b, "its buddy is free too");
  return TARN_OK;
}

// Adds its bytes to the sums.
static tarn_status check_lists(const tarn__pool_buddies *buddies,
                               const tarn__pool_stream_lists *lists,
                               size_t *bytes, size_t *blocks) {
  for (unsigned order = 0; order < TARN__BUDDY_ORDERS; order++) {
    const tarn_list *head = &lists->blocks[order];
    bool marked = (lists->orders >> order & 1) != 0;
    if (marked == tarn_list_empty(head)) {
      return tarn__fail(TARN_E_CORRUPT, "buddies: the bit of order %u", order);
    }
    const tarn_list *node = NULL;
    tarn_list_for_each (node, head) {
      TARN__TRY(check_block(buddies, lists, order, node_at(node)));
      *bytes += bytes_of(order);
      ++*blocks;
    }
  }
  return TARN_OK;
}

tarn_status tarn__buddies_check(const tarn__pool_buddies *buddies,
                                size_t *out_free) {
  size_t blocks = 0;
  size_t hashed = 0;
  *out_free = 0;
  for (const tarn__pool_stream_lists *l = buddies->streams; l != NULL;
       l = l->next) {
    TARN__TRY(check_lists(buddies, l, out_free, &blocks));
  }
  for (size_t i = 0; i < buddies->bucket_count; i++) {
    const tarn__pool_buddy *b = buddies->buckets[i];
    for (; b != NULL; b = b->chain)
      hashed++;
  }
  if (hashed != blocks) {
    return tarn__fail(TARN_E_CORRUPT, "buddies: %zu are free, %zu in the hash",
                      blocks, hashed);
  }
  if (buddies->spare >= buddies->promised) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT, "buddies: %zu nodes for the %zu promised",
                    buddies->spare, buddies->promised);
}
