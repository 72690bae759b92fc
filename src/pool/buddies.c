// Free blocks in powers of two: a list for each size and stream, and a hash of
// their addresses, by which a block finds its buddy.
//
// Invariants (tarn__buddies_check walks them):
//   * a free block stands in the list of its order and lane, and in the hash
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

typedef struct tarn__buddy_slab {
  struct tarn__buddy_slab *next;
  tarn__buddy nodes[SLAB_NODES];
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

static tarn__buddy *node_at(const tarn_list *node) {
  return tarn_list_entry(node, tarn__buddy, node);
}

static tarn__buddy **bucket_of(const tarn__buddies *buddies,
                               tarn_addr address) {
  uint64_t product = (address >> 4) * 0x9e3779b97f4a7c15u;
  return &buddies->buckets[(product >> 32) & (buddies->bucket_count - 1)];
}

static void put(tarn__buddies *buddies, tarn__buddy *b) {
  tarn__buddy **bucket = bucket_of(buddies, b->address);
  b->chain = *bucket;
  *bucket = b;
}

static bool grow_buckets(tarn__buddies *buddies, size_t count) {
  tarn__buddies old = *buddies;
  tarn__buddy **buckets = tarn__host_array(count, sizeof(tarn__buddy *));
  if (buckets == NULL) return false;
  buddies->buckets = buckets;
  buddies->bucket_count = count;
  for (size_t i = 0; i < old.bucket_count; i++) {
    while (old.buckets[i] != NULL) {
      tarn__buddy *b = old.buckets[i];
      old.buckets[i] = b->chain;
      put(buddies, b);
    }
  }
  tarn__host_free_array(old.buckets, old.bucket_count, sizeof(tarn__buddy *));
  return true;
}

static bool add_slab(tarn__buddies *buddies) {
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
static void hang(tarn__buddies *buddies, tarn__lane *lane, tarn__space *space,
                 tarn_addr address, unsigned order) {
  assert(buddies->spare > 0);
  tarn__buddy *b = node_at(buddies->unused.next);
  tarn_list_del(&b->node);
  buddies->spare--;
  b->lane = lane;
  b->space = space;
  b->address = address;
  b->order = order;
  tarn_list_add(&lane->blocks[order], &b->node);
  lane->orders |= UINT64_C(1) << order;
  put(buddies, b);
}

// Out of its list and of the hash; the node is the caller's.
static void unhang(tarn__buddies *buddies, tarn__buddy *b) {
  tarn__buddy **link = bucket_of(buddies, b->address);
  while (*link != b)
    link = &(*link)->chain;
  *link = b->chain;
  tarn_list_del(&b->node);
  if (tarn_list_empty(&b->lane->blocks[b->order])) {
    b->lane->orders &= ~(UINT64_C(1) << b->order);
  }
}

static void drop(tarn__buddies *buddies, tarn__buddy *b) {
  tarn_list_add(&buddies->unused, &b->node);
  buddies->spare++;
}

tarn__buddy *tarn__buddies_at(const tarn__buddies *buddies,
                              const tarn__space *space, tarn_addr address) {
  tarn__buddy *b = *bucket_of(buddies, address);
  while (b != NULL && (b->address != address || b->space != space))
    b = b->chain;
  return b;
}

// --- lanes -----------------------------------------------------------------

static tarn__lane *add_lane(tarn__buddies *buddies) {
  tarn__lane *lane = tarn__host_alloc(sizeof *lane);
  if (lane == NULL) return NULL;
  for (size_t i = 0; i < TARN__BUDDY_ORDERS; i++)
    tarn_list_init(&lane->blocks[i]);
  tarn__lane **last = &buddies->lanes;
  while (*last != NULL)
    last = &(*last)->next;
  *last = lane;
  return lane;
}

static tarn__lane *find_lane(const tarn__buddies *buddies, uint64_t serial) {
  tarn__lane *lane = buddies->lanes;
  while (lane != NULL && lane->serial != serial)
    lane = lane->next;
  return lane;
}

// A lane without blocks may become another stream's.
static tarn__lane *find_empty_lane(const tarn__buddies *buddies) {
  tarn__lane *lane = buddies->lanes->next;
  while (lane != NULL && lane->orders != 0)
    lane = lane->next;
  return lane;
}

bool tarn__buddies_know(tarn__buddies *buddies, uint64_t serial) {
  if (find_lane(buddies, serial) != NULL) return true;
  tarn__lane *lane = find_empty_lane(buddies);
  if (lane == NULL) lane = add_lane(buddies);
  if (lane != NULL) lane->serial = serial;
  return lane != NULL;
}

// --- beginning and end -----------------------------------------------------

tarn_status tarn__buddies_init(tarn__buddies *buddies, size_t unit) {
  *buddies = (tarn__buddies){.unit = unit};
  tarn_list_init(&buddies->unused);
  return add_lane(buddies) != NULL ? TARN_OK : TARN_E_NOMEM;
}

void tarn__buddies_deinit(tarn__buddies *buddies) {
  while (buddies->lanes != NULL) {
    tarn__lane *lane = buddies->lanes;
    buddies->lanes = lane->next;
    tarn__host_free(lane, sizeof *lane);
  }
  while (buddies->slabs != NULL) {
    slab *s = buddies->slabs;
    buddies->slabs = s->next;
    tarn__host_free(s, sizeof *s);
  }
  tarn__host_free_array(buddies->buckets, buddies->bucket_count,
                        sizeof(tarn__buddy *));
  buddies->buckets = NULL;
}

bool tarn__buddies_reserve(tarn__buddies *buddies, uint64_t serial) {
  while (buddies->spare < buddies->promised + ROOM) {
    if (!add_slab(buddies)) return false;
  }
  return tarn__buddies_know(buddies, serial);
}

// --- giving ----------------------------------------------------------------

static bool may_join(const tarn__lane *a, const tarn__lane *b) {
  return a == b || a->serial == 0 || b->serial == 0;
}

// Makes a block free, joined with its buddy, and that with its own, as far as
// they are free.
static void release(tarn__buddies *buddies, tarn__lane *lane,
                    tarn__space *space, size_t offset, unsigned order) {
  for (;;) {
    size_t other = offset ^ bytes_of(order);
    tarn__buddy *b = tarn__buddies_at(buddies, space, space->address + other);
    if (b == NULL || b->order != order || !may_join(b->lane, lane)) break;
    if (lane->serial == 0) lane = b->lane;
    unhang(buddies, b);
    drop(buddies, b);
    if (other < offset) offset = other;
    order++;
  }
  hang(buddies, lane, space, space->address + offset, order);
}

static void release_parts(tarn__buddies *buddies, tarn__lane *lane,
                          tarn__space *space, size_t from, size_t to) {
  while (from < to) {
    unsigned order = first_part(from, to);
    release(buddies, lane, space, from, order);
    from += bytes_of(order);
  }
}

void tarn__buddies_add(tarn__buddies *buddies, tarn__space *space) {
  space->taken = 0;
  release_parts(buddies, buddies->lanes, space, 0, space->size);
}

void tarn__buddies_give(tarn__buddies *buddies, tarn__space *space,
                        tarn_addr address, size_t size, uint64_t serial) {
  size_t from = (size_t)(address - space->address);
  tarn__lane *lane = find_lane(buddies, serial);
  assert(lane != NULL && size <= space->taken);
  buddies->promised -= count_parts(from, from + size);
  space->taken -= size;
  release_parts(buddies, lane, space, from, from + size);
}

// --- taking ----------------------------------------------------------------

static bool fits(const tarn__buddy *b, size_t size, size_t align) {
  size_t skipped = (size_t)(-b->address & (align - 1));
  return skipped <= bytes_of(b->order) - size;
}

// In the smallest blocks that have one at the head of their list that fits.
static tarn__buddy *find_in(const tarn__lane *lane, size_t size, size_t align) {
  uint64_t orders = lane->orders >> order_above(size) << order_above(size);
  for (; orders != 0; orders &= orders - 1) {
    unsigned order = (unsigned)__builtin_ctzll(orders);
    tarn__buddy *b = node_at(lane->blocks[order].next);
    if (fits(b, size, align)) return b;
  }
  return NULL;
}

// What |lane| has no stream uses any more.
static void empty_lane(tarn__buddies *buddies, const tarn__lane *lane) {
  while (lane->orders != 0) {
    unsigned order = (unsigned)__builtin_ctzll(lane->orders);
    tarn__buddy *b = node_at(lane->blocks[order].next);
    unhang(buddies, b);
    drop(buddies, b);
    release(buddies, buddies->lanes, b->space,
            (size_t)(b->address - b->space->address), order);
  }
}

static void adopt_orphans(tarn__buddies *buddies) {
  for (tarn__lane *lane = buddies->lanes->next; lane != NULL;
       lane = lane->next) {
    bool gone = lane->orders != 0 && tarn__stream_is_gone(lane->serial);
    if (gone) empty_lane(buddies, lane);
  }
}

void tarn__buddies_settle(tarn__buddies *buddies, uint64_t serial) {
  const tarn__lane *lane = serial != 0 ? find_lane(buddies, serial) : NULL;
  if (lane != NULL) empty_lane(buddies, lane);
}

// The first lane has what was just found to be no stream's.
static tarn__buddy *find_elsewhere(tarn__buddies *buddies, size_t size,
                                   size_t align, bool own_only) {
  if (buddies->lanes->next == NULL) return NULL;
  adopt_orphans(buddies);
  tarn__buddy *b = find_in(buddies->lanes, size, align);
  for (const tarn__lane *lane = buddies->lanes->next;
       lane != NULL && b == NULL && !own_only; lane = lane->next) {
    b = find_in(lane, size, align);
  }
  return b;
}

static tarn__buddy *find(tarn__buddies *buddies, size_t size, size_t align,
                         uint64_t serial, bool own_only) {
  const tarn__lane *own = find_lane(buddies, serial);
  tarn__buddy *b = own != NULL ? find_in(own, size, align) : NULL;
  if (b == NULL && serial != 0) b = find_in(buddies->lanes, size, align);
  return b != NULL ? b : find_elsewhere(buddies, size, align, own_only);
}

// What is left on both sides has its buddies within |b|, and they are taken.
static void hang_parts(tarn__buddies *buddies, tarn__buddy b, size_t from,
                       size_t to) {
  while (from < to) {
    unsigned order = first_part(from, to);
    hang(buddies, b.lane, b.space, b.space->address + from, order);
    from += bytes_of(order);
  }
}

tarn_addr tarn__buddies_take(tarn__buddies *buddies, size_t size, size_t align,
                             uint64_t serial, bool own_only,
                             tarn__space **out_space, uint64_t *out_serial) {
  tarn__buddy *found = find(buddies, size, align, serial, own_only);
  *out_space = NULL;
  *out_serial = 0;
  if (found == NULL) return 0;
  tarn__buddy b = *found;
  unhang(buddies, found);
  drop(buddies, found);
  size_t begin = (size_t)(b.address - b.space->address);
  size_t from = begin + (size_t)(-b.address & (align - 1));
  hang_parts(buddies, b, begin, from);
  hang_parts(buddies, b, from + size, begin + bytes_of(b.order));
  buddies->promised += count_parts(from, from + size);
  b.space->taken += size;
  *out_space = b.space;
  *out_serial = b.lane->serial;
  return b.space->address + from;
}

// --- taking a space out ----------------------------------------------------

bool tarn__buddies_is_unused(const tarn__buddies *buddies,
                             const tarn__space *space) {
  assert(space->taken == 0);
  for (size_t at = 0; at < space->size;) {
    const tarn__buddy *b =
        tarn__buddies_at(buddies, space, space->address + at);
    assert(b != NULL);
    if (b->lane->serial != 0) return false;
    at += bytes_of(b->order);
  }
  return true;
}

tarn__buddy *tarn__buddies_remove(tarn__buddies *buddies, tarn__space *space) {
  tarn__buddy *removed = NULL;
  assert(space->taken == 0);
  for (size_t at = 0; at < space->size;) {
    tarn__buddy *b = tarn__buddies_at(buddies, space, space->address + at);
    assert(b != NULL);
    unhang(buddies, b);
    b->serial = b->lane->serial;
    b->chain = removed;
    removed = b;
    at += bytes_of(b->order);
  }
  return removed;
}

void tarn__buddies_forget(tarn__buddies *buddies, tarn__buddy *removed) {
  while (removed != NULL) {
    tarn__buddy *next = removed->chain;
    drop(buddies, removed);
    removed = next;
  }
}
