// buddy_pool: large chunks of the device, cut into blocks by halves.
//
//   chunk of |init|     [ block | block | free                     ]
//   chunk of |realloc|  [ free            | block |      free      ]
//   by itself           [ block of more than |max|                 ]
//
// The device plug-in interface describes this: a block takes its size and the
// padding, rounded up to a multiple of the smallest chunk. It is cut from large
// allocations of the device, called chunks here: the first of the device's
// initial size, later ones of its later size, or of half of that if the device
// refuses, down to the size of the block. Blocks above the largest chunk, or at
// an alignment for which no chunk has room, are allocations of their own; so
// are all blocks if there is no largest chunk.
//
// Free blocks and how they join: buddies.h. Memory is kept until it is asked
// back; then chunks of which nothing is out go.
//
// Cost: O(log n) for a hit and for a free, with n smallest chunks in a chunk.
#include "pool/buddies.h"

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"
#include "pool/segments.h"

// What separates two blocks at least, however fine the device would cut.
static const size_t LEAST_UNIT = 64;

// Without sizes of the device.
static const size_t MOST_GROWTH = (size_t)32 << 20;

// If a chunk for later blocks is refused, smaller ones are not tried.
static const size_t LEAST_RESERVED = (size_t)1 << 20;

typedef struct part {
  tarn__pool_space space;  // the first member
  tarn__pool_chunk chunk;
  tarn_list node;
} part;

typedef struct buddy {
  tarn__pool_strategy base;
  size_t max;      // larger blocks are left to the device; 0: all
  size_t first;    // bytes of the first chunk; 0: what suits
  size_t later;    // and of later ones
  size_t padding;  // of each block
  tarn__pool_buddies buddies;
  tarn_list parts;
} buddy;

static buddy *self_of(tarn__pool_strategy *strategy) {
  return (buddy *)(void *)strategy;  // the base is the first member
}

static part *part_at(const tarn_list *node) {
  return tarn_list_entry(node, part, node);
}

// --- beginning and end -----------------------------------------------------

static tarn_status read_sizes(buddy *self, tarn__pool_strategy_options *options,
                              size_t *out_unit) {
  const tarn_pool *pool = self->base.pool;
  size_t natural = pool->natural_align;
  const struct {
    const char *key;
    size_t fallback;
    size_t *out;
  } sizes[] = {
      {"min", natural > LEAST_UNIT ? natural : LEAST_UNIT, out_unit},
      {"max", pool->sizes.most, &self->max},
      {"init", pool->sizes.first, &self->first},
      {"realloc", pool->sizes.later, &self->later},
      {"padding", pool->padding, &self->padding},
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    TARN__TRY(tarn__options_size(options, sizes[i].key, sizes[i].fallback,
                                 sizes[i].out));
  }
  if (!tarn_is_power_of_two(*out_unit) || *out_unit < natural) {
    return tarn__fail(TARN_E_INVALID,
                      "buddy_pool: min=%zu is not a power of two of at least "
                      "the device's %zu",
                      *out_unit, natural);
  }
  return TARN_OK;
}

static tarn_status init(tarn__pool_strategy *strategy,
                        tarn__pool_strategy_options *options) {
  buddy *self = self_of(strategy);
  tarn_list_init(&self->parts);
  size_t unit = 0;
  TARN__TRY(read_sizes(self, options, &unit));
  // The caller's memory has no device that could allocate larger blocks.
  if (tarn__front_has_own(strategy->pool)) self->max = SIZE_MAX;
  return tarn__buddies_init(&self->buddies, unit);
}

static void deinit(tarn__pool_strategy *strategy) {
  buddy *self = self_of(strategy);
  while (!tarn_list_empty(&self->parts)) {
    part *p = part_at(self->parts.next);
    tarn_list_del(&p->node);
    tarn__host_free(p, sizeof *p);
  }
  tarn__buddies_deinit(&self->buddies);
}

// --- chunks ----------------------------------------------------------------

static tarn_status add(buddy *self, const tarn__pool_request *request,
                       tarn__pool_chunk chunk) {
  part *p = tarn__host_alloc(sizeof *p);
  if (p == NULL || !tarn__buddies_reserve(&self->buddies, request->serial)) {
    (void)tarn__chunks_give(&self->base, &chunk);
    tarn__host_free(p, sizeof *p);
    return TARN_E_NOMEM;
  }
  p->chunk = chunk;
  p->space = (tarn__pool_space){
      .address = chunk.address,
      .size = chunk.size & ~(self->buddies.unit - 1),
  };
  tarn_list_add_tail(&self->parts, &p->node);
  tarn__buddies_add(&self->buddies, &p->space);
  return TARN_OK;
}

// A part of which nothing is out and that may go back, or NULL.
static part *find_idle(const buddy *self, unsigned how) {
  bool unused = (how & TARN__TRIM_NO_WAIT) != 0;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &self->parts) {
    part *p = part_at(node);
    if (p->space.taken != 0) continue;
    if (!tarn__front_may_return(&self->base, 0, p->chunk.base_size, how)) {
      continue;
    }
    if (!unused || tarn__buddies_is_unused(&self->buddies, &p->space)) return p;
  }
  return NULL;
}

static tarn_status give_back(buddy *self, part *p) {
  tarn__buddies_remove(&self->buddies, &p->space, &p->chunk.waits);
  tarn_list_del(&p->node);
  tarn_status status = tarn__chunks_give(&self->base, &p->chunk);
  tarn__host_free(p, sizeof *p);
  return status;
}

static tarn_status trim(tarn__pool_strategy *strategy, size_t target,
                        unsigned how) {
  buddy *self = self_of(strategy);
  const tarn_pool *pool = strategy->pool;
  tarn_status first = TARN_OK;
  part *p = NULL;
  while (tarn__front_surplus(pool, target) != 0 &&
         (p = find_idle(self, how)) != NULL) {
    tarn__keep_first(&first, give_back(self, p));
  }
  return first;
}

// Chunks in which the request found no room are given back before a new one is
// added, if no stream has to be waited for.
static void make_way(buddy *self, size_t size) {
  const tarn_pool *pool = self->base.pool;
  size_t held = pool->stats.reserved_bytes;
  if (tarn__front_keeps(pool)) return;
  size_t target = tarn__front_target(pool, held > size ? held - size : 0);
  (void)trim(&self->base, target, TARN__TRIM_NO_WAIT);
}

// A chunk with a block of |least| bytes, a power of two. After TARN_OK it is
// free: no other thread has entered since.
static tarn_status grow(buddy *self, tarn__pool_request *request,
                        size_t least) {
  if (request->no_grow) return tarn__source_refuse_growth(request);
  tarn__pool_growth growth = {
      .first = self->first,
      .later = self->later,
      .own = tarn__chunk_growth(self->base.held, MOST_GROWTH),
      .least = least,
      .unit = self->buddies.unit,
      .halves = true};
  // Blocks are aligned to more than the unit where they are cut out.
  tarn__pool_request plain = {.size = request->size, .serial = request->serial};
  tarn__pool_piece *piece = NULL;
  if (self->later == 0) make_way(self, least > growth.own ? least : growth.own);
  tarn_status status = tarn__chunk_grow(&self->base, &plain, &growth, &piece);
  request->asked |= plain.asked;
  if (status != TARN_OK) return status;
  return add(self, request, tarn__chunk_adopt(&self->base, piece));
}

// The largest power of two up to |size|.
static size_t power_below(size_t size) {
  return (size_t)1 << (63 - __builtin_clzll(size));
}

// Adds chunks of the missing size, or of half of it, and so on.
static tarn_status reserve(tarn__pool_strategy *strategy, size_t size) {
  buddy *self = self_of(strategy);
  const size_t *held = &strategy->pool->stats.reserved_bytes;
  size_t most = self->max;
  if (most < self->buddies.unit) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "buddy_pool: every block goes to the device by itself");
  }
  while (*held < size) {
    size_t missing = size - *held;
    size_t chunk = power_below(tarn__lesser(missing, most));
    if (chunk < self->buddies.unit) chunk = self->buddies.unit;
    tarn__pool_request request = {.size = chunk};
    tarn_status status = grow(self, &request, chunk);
    bool halves = status == TARN_FULL && chunk > LEAST_RESERVED;
    if (status != TARN_OK && !halves) return status;
    if (halves) most = chunk / 2;
  }
  return TARN_OK;
}

// --- blocks ----------------------------------------------------------------

static tarn_status size_of(const buddy *self, const tarn__pool_request *request,
                           size_t *out_size) {
  size_t sum = 0;
  if (tarn_size_add(request->size, self->padding, &sum) &&
      tarn_size_align_up(sum, self->buddies.unit, out_size) &&
      *out_size <= SIZE_MAX / 4) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "buddy_pool: %zu bytes and %zu of padding overflow",
                    request->size, self->padding);
}

static tarn_status carve(buddy *self, tarn__pool_request *request, size_t size,
                         tarn__pool_piece **out_piece) {
  tarn__pool_space *space = NULL;
  uint64_t last = 0;
  if (!tarn__buddies_reserve(&self->buddies, request->serial)) {
    return TARN_E_NOMEM;
  }
  tarn_addr address =
      tarn__buddies_take(&self->buddies, size, request->align, request->serial,
                         request->own_only, &space, &last);
  if (address == 0) return TARN_FULL;
  tarn__pool_piece *piece =
      tarn__source_carve(&self->base, address, size - self->padding);
  if (piece == NULL) {
    tarn__buddies_give(&self->buddies, space, address, size, last);
    return TARN_E_NOMEM;
  }
  piece->home = space;
  piece->freed_on = last;
  *out_piece = piece;
  return TARN_OK;
}

// The source adds the padding itself.
static tarn_status ask_for_one(buddy *self, tarn__pool_request *request,
                               size_t size, tarn__pool_piece **out_piece) {
  size_t pads = self->base.pool->padding;
  size_t usable = size - (pads < self->padding ? pads : self->padding);
  return tarn__source_grow(&self->base, request, usable, out_piece);
}

// The largest alignment for which a block is cut from a chunk: the largest size
// of a chunk, unless larger ones are wanted. Beyond that the padding for the
// alignment would be kept.
static size_t most_align(const buddy *self) {
  size_t most = MOST_GROWTH;
  if (self->first > most) most = self->first;
  return self->later > most ? self->later : most;
}

// The least block of a chunk that holds |size| aligned bytes wherever it
// begins. False: no block is that large.
static bool find_least(const buddy *self, const tarn__pool_request *request,
                       size_t size, size_t *out_least) {
  size_t unit = self->buddies.unit;
  size_t sum = size;
  bool wide = request->align > unit;
  if (wide && !tarn_size_add(size, request->align - unit, &sum)) return false;
  *out_least = 2 * power_below(sum - 1);
  return sum <= SIZE_MAX / 2;
}

static tarn_status take(tarn__pool_strategy *strategy,
                        tarn__pool_request *request,
                        tarn__pool_piece **out_piece) {
  buddy *self = self_of(strategy);
  size_t size = 0;
  TARN__TRY(size_of(self, request, &size));
  if (size > self->max || request->align > self->max) {
    return ask_for_one(self, request, size, out_piece);
  }
  tarn_status status = carve(self, request, size, out_piece);
  if (status != TARN_FULL) return status;
  size_t least = 0;
  if (request->align > most_align(self) ||
      !find_least(self, request, size, &least)) {
    return ask_for_one(self, request, size, out_piece);
  }
  status = grow(self, request, least);
  if (status == TARN_OK) return carve(self, request, size, out_piece);
  // There may be room for the block alone.
  if (status == TARN_FULL && least > size) {
    status = ask_for_one(self, request, size, out_piece);
  }
  return status;
}

static tarn_status give(tarn__pool_strategy *strategy,
                        tarn__pool_piece *piece) {
  buddy *self = self_of(strategy);
  if (piece->home == NULL) return tarn__source_shrink(strategy, piece);
  tarn_status status = TARN_OK;
  uint64_t serial = piece->freed_on;
  // The call must wait for a stream without a lists at once.
  if (!tarn__buddies_know(&self->buddies, serial)) {
    status = tarn__source_wait(strategy, serial);
    serial = 0;
  }
  tarn_addr address = piece->address;
  size_t size = piece->size + self->padding;
  tarn__pool_space *space = piece->home;
  tarn__source_join(strategy, piece);
  tarn__buddies_give(&self->buddies, space, address, size, serial);
  return status;
}

static tarn_status let_go(tarn__pool_strategy *strategy,
                          tarn__pool_piece *piece) {
  tarn_status given = give(strategy, piece);
  TARN__TRY(trim(strategy, 0, 0));
  return given;
}

// --- idle memory -----------------------------------------------------------

static void survey(tarn__pool_strategy *strategy, tarn__pool_survey *out) {
  const buddy *self = self_of(strategy);
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &self->parts)
    out->idle += part_at(node)->space.size - part_at(node)->space.taken;
  for (const tarn__pool_stream_lists *l = self->buddies.streams; l != NULL;
       l = l->next) {
    if (l->orders == 0) continue;
    size_t block = power_below(l->orders);  // bit n: blocks of 2^n bytes
    if (block > out->largest) out->largest = block;
    tarn__waits_add(&out->streams, l->serial);
  }
}

static void visit_memory(const tarn__pool_strategy *strategy,
                         tarn__pool_memory_fn *visit, void *context) {
  const buddy *self = (const buddy *)(const void *)strategy;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &self->parts) {
    const part *p = part_at(node);
    visit(context, p->chunk.base, p->chunk.base_size);
  }
}

static void settle(tarn__pool_strategy *strategy, uint64_t serial) {
  tarn__buddies_settle(&self_of(strategy)->buddies, serial);
}

// --- the invariants --------------------------------------------------------

static tarn_status check(tarn__pool_strategy *strategy, size_t *out_idle) {
  const buddy *self = self_of(strategy);
  size_t is_free = 0;
  size_t should_be_free = 0;
  *out_idle = 0;  // idle memory is buddies here
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &self->parts)
    should_be_free += part_at(node)->space.size - part_at(node)->space.taken;
  TARN__TRY(tarn__buddies_check(&self->buddies, &is_free));
  if (is_free == should_be_free) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "buddy_pool: %zu bytes are free, should be %zu", is_free,
                    should_be_free);
}

const tarn__pool_strategy_type tarn__buddy_pool = {
    .table = {.name = "buddy_pool", .size = sizeof(buddy)},
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = give,
    .let_go = let_go,
    .trim = trim,
    .reserve = reserve,
    .survey = survey,
    .visit_memory = visit_memory,
    .settle = settle,
    .check = check,
};
