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
  // Of an addition and a take: the parts of the space, of what is left of the
  // block on both sides, and of what is taken.
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

// Out of its list and of the hash; the node is the caller's.
static void unhang(tarn__pool_buddies *buddies, tarn__pool_buddy *b) {
  tarn__pool_buddy **link = bucket_of(buddies, b->address);
  while (*link != b)
    link = &(*link)->chain;
  *link = b->chain;
  tarn_list_del(&b->node);
  if (tarn_list_empty(&b->lists->blocks[b->order])) {
    b->lists->orders &= ~(UINT64_C(1) << b->order);
  }
}

static void drop(tarn__pool_buddies *buddies, tarn__pool_buddy *b) {
  tarn_list_add(&buddies->unused, &b->node);
  buddies->spare++;
}

tarn__pool_buddy *tarn__buddies_at(const tarn__pool_buddies *buddies,
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

// A lists without blocks may become another stream's.
static tarn__pool_stream_lists *find_empty_lists(
    const tarn__pool_buddies *buddies) {
  tarn__pool_stream_lists *lists = buddies->streams->next;
  while (lists != NULL && lists->orders != 0)
    lists = lists->next;
  return lists;
}

bool tarn__buddies_know(tarn__pool_buddies *buddies, uint64_t serial) {
  if (find_lists(buddies, serial) != NULL) return true;
  tarn__pool_stream_lists *lists = find_empty_lists(buddies);
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

// Makes a block free, joined with its buddy, and that with its own, as far as
// they are free.
static void release(tarn__pool_buddies *buddies, tarn__pool_stream_lists *lists,
                    tarn__pool_space *space, size_t offset, unsigned order) {
  for (;;) {
    size_t other = offset ^ bytes_of(order);
    tarn__pool_buddy *b =
        tarn__buddies_at(buddies, space, space->address + other);
    if (b == NULL || b->order != order || !may_join(b->lists, lists)) break;
    if (lists->serial == 0) lists = b->lists;
    unhang(buddies, b);
    drop(buddies, b);
    if (other < offset) offset = other;
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

// In the smallest blocks that have one at the head of their list that fits.
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
    drop(buddies, b);
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

// The first lists has what was just found to be no stream's.
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

// What is left on both sides has its buddies within |b|, and they are taken.
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
  drop(buddies, found);
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
    const tarn__pool_buddy *b =
        tarn__buddies_at(buddies, space, space->address + at);
    assert(b != NULL);
    if (b->lists->serial != 0) return false;
    at += bytes_of(b->order);
  }
  return true;
}

tarn__pool_buddy *tarn__buddies_remove(tarn__pool_buddies *buddies,
                                       tarn__pool_space *space) {
  tarn__pool_buddy *removed = NULL;
  assert(space->taken == 0);
  for (size_t at = 0; at < space->size;) {
    tarn__pool_buddy *b = tarn__buddies_at(buddies, space, space->address + at);
    assert(b != NULL);
    unhang(buddies, b);
    b->serial = b->lists->serial;
    b->chain = removed;
    removed = b;
    at += bytes_of(b->order);
  }
  return removed;
}

void tarn__buddies_forget(tarn__pool_buddies *buddies,
                          tarn__pool_buddy *removed) {
  while (removed != NULL) {
    tarn__pool_buddy *next = removed->chain;
    drop(buddies, removed);
    removed = next;
  }
}
