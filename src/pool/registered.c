// Registered strategies: the functions by which the front calls the table of a
// program or a shared object.
//
//   front ─► take, give, ... below ─► tarn_strategy of a program
//                                     │
//   source ◄── grow, shrink ◄─────────┘  chunks, each with what the device gave
//
// Answers of such a strategy are checked: memory that is misaligned, too short,
// or part of a live block is TARN_E_CORRUPT, and no block gets it.
#include "pool/strategy.h"

#include <stddef.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"
#include "pool/segments.h"

// A chunk as the strategy sees it, and the memory that it was cut from.
typedef struct held_chunk {
  tarn_chunk seen;         // the first member
  tarn__pool_chunk chunk;  // its own allocation
  tarn__pool_extent
      *extent;  // its part of the stock; NULL: it is no part of that
  tarn_list node;
} held_chunk;

typedef struct registered {
  tarn__pool_strategy base;
  tarn_list chunks;
  tarn__pool_stock stock;
  _Alignas(max_align_t) unsigned char state[];
} registered;

// One call of a strategy's function.
typedef struct call {
  tarn_source source;  // the first member: what the strategy sees
  registered *self;
  tarn__pool_request *request;  // within take; else NULL
  bool *spoke;                  // within take: it has written an error text
  bool locked;                  // the pool's lock is held: not within init
  size_t target;  // of trim: the bytes that the pool may hold afterwards
} call;

static const tarn_strategy *table_of(const registered *self) {
  return &self->base.type->table;
}

static registered *self_of(tarn__pool_strategy *strategy) {
  return (registered *)(void *)strategy;  // the base is the first member
}

static held_chunk *held_at(const tarn_list *node) {
  return tarn_list_entry(node, held_chunk, node);
}

// --- the source ------------------------------------------------------------

static const call *call_of(const tarn_source *source) {
  return (const call *)(const void *)source;
}

static tarn_status out_of_turn(const call *c, const char *what) {
  return tarn__fail(TARN_E_STATE, "%s: calls %s where it is not allowed",
                    c->self->base.type->table.name, what);
}

static void note_text(const call *c) {
  if (c->spoke != NULL) *c->spoke = true;
}

static tarn_status grow_alone(registered *self, tarn__pool_request *request,
                              held_chunk *held) {
  tarn__pool_piece *piece = NULL;
  request->whole = true;
  TARN__TRY(tarn__source_grow(&self->base, request, request->size, &piece));
  held->chunk = tarn__chunk_adopt(&self->base, piece);
  held->seen.address = held->chunk.address;
  held->seen.size = held->chunk.size;
  return TARN_OK;
}

// Memory that goes back to the stock here is unused: the call has waited for
// its stream.
static tarn_status grow_from_stock(registered *self,
                                   tarn__pool_request *request,
                                   held_chunk *held) {
  uint64_t serial = 0;
  TARN__TRY(tarn__stock_take(&self->stock, &self->base, request, request->size,
                             &held->extent, &serial));
  held->seen.address = held->extent->offset;
  held->seen.size = held->extent->size;
  return TARN_OK;
}

static tarn_status grow(const tarn_source *source, size_t size, size_t align,
                        tarn_chunk **out_chunk) {
  const call *c = call_of(source);
  *out_chunk = NULL;
  if (c->request == NULL) return out_of_turn(c, "grow");
  if (size == 0 || !tarn_is_power_of_two(align)) {
    return tarn__fail(TARN_E_INVALID, "%s: grow of %zu bytes aligned to %zu",
                      c->self->base.type->table.name, size, align);
  }
  held_chunk *held = tarn__host_alloc(sizeof *held);
  if (held == NULL) return TARN_E_NOMEM;
  size_t natural = c->self->base.pool->natural_align;
  tarn__pool_request request = {.size = size,
                                .align = align > natural ? align : natural,
                                .no_wait = c->request->no_wait,
                                .no_grow = c->request->no_grow};
  tarn_status status = c->self->stock.serves
                           ? grow_from_stock(c->self, &request, held)
                           : grow_alone(c->self, &request, held);
  c->request->asked |= request.asked;
  if (status != TARN_OK) {
    note_text(c);
    tarn__host_free(held, sizeof *held);
    return status;
  }
  tarn_list_init(&held->seen.node);
  tarn_list_add_tail(&c->self->chunks, &held->node);
  *out_chunk = &held->seen;
  return TARN_OK;
}

static tarn_status wait_for(uint64_t serial) {
  return serial != 0 ? tarn_stream_join(NULL, serial) : TARN_OK;
}

static tarn_status give_alone(registered *self, held_chunk *held) {
  tarn__waits_add(&held->chunk.waits, held->seen.stream);
  return tarn__chunks_give(&self->base, &held->chunk);
}

static tarn_status give_to_stock(const call *c, const held_chunk *held) {
  tarn__pool_stock *stock = &c->self->stock;
  tarn__source_begin_ask(&c->self->base, 0, 0);
  tarn_status waited = wait_for(held->seen.stream);
  tarn__source_end_ask(&c->self->base, 0);
  (void)tarn__extents_give(&stock->zone, held->extent, 0);
  c->self->base.pool->joins++;
  TARN__TRY(tarn__segments_trim(&stock->segments, &c->self->base, &stock->zone,
                                c->target, 0));
  return waited;
}

static tarn_status shrink(const tarn_source *source, tarn_chunk *chunk) {
  const call *c = call_of(source);
  if (!c->locked) return out_of_turn(c, "shrink");
  if (chunk == NULL) return TARN_OK;
  held_chunk *held = (held_chunk *)(void *)chunk;
  tarn_list_del(&held->node);
  tarn_status status =
      held->extent != NULL ? give_to_stock(c, held) : give_alone(c->self, held);
  tarn__host_free(held, sizeof *held);
  return status;
}

static tarn_status wait(const tarn_source *source, uint64_t stream) {
  const call *c = call_of(source);
  if (!c->locked) return out_of_turn(c, "wait");
  bool waits = c->request == NULL || !c->request->no_wait;
  tarn__source_begin_ask(&c->self->base, 0, 0);
  tarn_status status =
      waits ? wait_for(stream) : tarn__stream_join_at_once(NULL, stream);
  tarn__source_end_ask(&c->self->base, 0);
  if (status != TARN_PENDING) return status;
  note_text(c);
  return tarn__fail(TARN_FULL, "%s: stream %llu has unfinished work",
                    c->self->base.type->table.name, (unsigned long long)stream);
}

static tarn_status refuse(const tarn_source *source, tarn_status status,
                          const char *why) {
  note_text(call_of(source));
  return tarn__fail(status, "%s: %s",
                    call_of(source)->self->base.type->table.name,
                    why != NULL ? why : "");
}

static bool enough(const tarn_source *source) {
  const call *c = call_of(source);
  return c->self->base.pool->stats.reserved_bytes <= c->target;
}

static call call_for(tarn__pool_strategy *strategy, tarn__pool_request *request,
                     bool locked) {
  return (call){
      .source = {.struct_size = sizeof(tarn_source),
                 .place = strategy->pool->place,
                 .grow = grow,
                 .shrink = shrink,
                 .wait = wait,
                 .refuse = refuse,
                 .enough = enough},
      .self = self_of(strategy),
      .request = request,
      .locked = locked,
  };
}

// --- options ---------------------------------------------------------------

typedef struct reader {
  tarn_strategy_options seen;  // the first member
  tarn__pool_strategy_options *options;
} reader;

static tarn_status option_size(const tarn_strategy_options *options,
                               const char *key, size_t fallback,
                               size_t *out_value) {
  const reader *r = (const reader *)(const void *)options;
  return tarn__options_size(r->options, key, fallback, out_value);
}

// --- the strategy ----------------------------------------------------------

static tarn_status init(tarn__pool_strategy *strategy,
                        tarn__pool_strategy_options *options) {
  registered *self = self_of(strategy);
  tarn_list_init(&self->chunks);
  tarn_status status = tarn__stock_init(&self->stock, strategy->pool);
  if (status != TARN_OK || table_of(self)->init == NULL) return status;
  call c = call_for(strategy, NULL, false);
  reader r = {.seen = {.struct_size = sizeof r.seen, .size = option_size},
              .options = options};
  return table_of(self)->init(self->state, &c.source, &r.seen);
}

static void deinit(tarn__pool_strategy *strategy) {
  registered *self = self_of(strategy);
  if (table_of(self)->deinit != NULL) table_of(self)->deinit(self->state);
  while (!tarn_list_empty(&self->chunks)) {  // in a child of fork
    held_chunk *held = held_at(self->chunks.next);
    tarn_list_del(&held->node);
    tarn__host_free(held, sizeof *held);
  }
  tarn__stock_deinit(&self->stock);
}

static tarn_status hand_back(registered *self,
                             const tarn_suballocation *memory) {
  call c = call_for(&self->base, NULL, true);
  return table_of(self)->give(self->state, &c.source, memory);
}

static tarn_status check_suballocation(const registered *self,
                                       const tarn_request *request,
                                       const tarn_suballocation *s) {
  const tarn__pool_pieces *pieces = &self->base.pool->pieces;
  bool fits = s->address != 0 && (s->address & (request->align - 1)) == 0 &&
              s->size >= request->size &&
              s->size - 1 <= UINT64_MAX - s->address;
  if (fits && tarn__pieces_find(pieces, s->address) == NULL) return TARN_OK;
  return tarn__fail(
      TARN_E_CORRUPT, "%s: gave %zu bytes at 0x%llx for %zu aligned to %zu%s",
      self->base.type->table.name, s->size, (unsigned long long)s->address,
      request->size, request->align, fits ? ", where a block stands" : "");
}

// The strategy's request includes the padding, rounded up as the device wants
// it.
static tarn_status request_of(const registered *self,
                              const tarn__pool_request *request,
                              tarn_request *out) {
  *out = (tarn_request){0, request->align, request->serial};
  if (tarn__source_round(self->base.pool, request->size, &out->size)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_FULL, "%s: %zu bytes exceed the address space",
                    self->base.type->table.name, request->size);
}

static tarn_suballocation suballocation_of(const tarn__pool_piece *piece,
                                           uint64_t serial) {
  size_t size = piece->size + piece->owner->pool->padding;
  return (tarn_suballocation){piece->address, size, serial, piece->home};
}

// Whether the request may have the memory: registered strategies do not know
// |own_only|. The work of the stream that used it may be done by now.
static bool is_free_for(tarn__pool_strategy *strategy,
                        const tarn__pool_request *request,
                        tarn_suballocation *s) {
  bool others = s->stream != 0 && s->stream != request->serial;
  if (!request->own_only || !others) return true;
  tarn__source_begin_ask(strategy, 0, 0);
  bool idle = tarn__stream_is_idle(s->stream);
  tarn__source_end_ask(strategy, 0);
  if (idle) s->stream = 0;
  return idle;
}

static tarn_status take(tarn__pool_strategy *strategy,
                        tarn__pool_request *request,
                        tarn__pool_piece **out_piece) {
  registered *self = self_of(strategy);
  if (tarn__front_is_direct(strategy->pool, request->size)) {
    return tarn__source_grow(strategy, request, request->size, out_piece);
  }
  call c = call_for(strategy, request, true);
  tarn_request seen;
  TARN__TRY(request_of(self, request, &seen));
  tarn_suballocation s = {0};
  bool spoke = false;
  c.spoke = &spoke;
  tarn_status status = table_of(self)->take(self->state, &c.source, &seen, &s);
  if (status == TARN_FULL && !spoke) {
    return tarn__fail(status, "%s: has no room", strategy->type->table.name);
  }
  if (status == TARN_OK) status = check_suballocation(self, &seen, &s);
  if (status != TARN_OK) return status;
  if (!is_free_for(strategy, request, &s)) {
    (void)hand_back(self, &s);
    return tarn__fail(TARN_FULL, "%s: has memory that stream %llu used last",
                      strategy->type->table.name, (unsigned long long)s.stream);
  }
  size_t usable = s.size - strategy->pool->padding;
  tarn__pool_piece *piece = tarn__source_carve(strategy, s.address, usable);
  if (piece == NULL) {
    (void)hand_back(self, &s);
    return TARN_E_NOMEM;
  }
  piece->home = s.own;
  piece->freed_on = s.stream;
  *out_piece = piece;
  return TARN_OK;
}

static bool is_direct(const tarn__pool_piece *piece) {
  return piece->base_size != 0;
}

static tarn_status give(tarn__pool_strategy *strategy,
                        tarn__pool_piece *piece) {
  if (is_direct(piece)) return tarn__source_shrink(strategy, piece);
  tarn_suballocation s = suballocation_of(piece, piece->freed_on);
  tarn__source_join(strategy, piece);
  return hand_back(self_of(strategy), &s);
}

static bool is_resized(const tarn__pool_piece *piece,
                       const tarn_request *request,
                       const tarn_suballocation *s) {
  return s->address == piece->address && s->size >= request->size &&
         s->size - 1 <= UINT64_MAX - s->address;
}

static tarn_status resize(tarn__pool_strategy *strategy,
                          tarn__pool_request *request,
                          tarn__pool_piece *piece) {
  registered *self = self_of(strategy);
  if (table_of(self)->resize == NULL || is_direct(piece) ||
      tarn__front_is_direct(strategy->pool, request->size)) {
    return request->size <= piece->size
               ? TARN_OK
               : tarn__fail(TARN_FULL, "%s: blocks cannot grow",
                            strategy->type->table.name);
  }
  call c = call_for(strategy, NULL, true);
  tarn_request seen;
  tarn_suballocation s = suballocation_of(piece, request->serial);
  TARN__TRY(request_of(self, request, &seen));
  TARN__TRY(table_of(self)->resize(self->state, &c.source, &seen, &s));
  if (!is_resized(piece, &seen, &s)) {
    return tarn__fail(TARN_E_CORRUPT,
                      "%s: resized %zu bytes at 0x%llx to %zu at 0x%llx for "
                      "%zu",
                      strategy->type->table.name, piece->size,
                      (unsigned long long)piece->address, s.size,
                      (unsigned long long)s.address, request->size);
  }
  piece->size = s.size - strategy->pool->padding;
  piece->home = s.own;
  return TARN_OK;
}

// Returns all chunks of a replaced strategy that is no longer needed, including
// those that it has lost. |inside|: the number of the caller's own calls.
static tarn_status sweep(registered *self, size_t inside) {
  const tarn__pool_strategy *base = &self->base;
  tarn_status first = TARN_OK;
  bool ends = base != base->pool->current && base->live == 0 &&
              base->inside == inside && base->held > 0;
  if (!ends) return TARN_OK;
  tarn__log(TARN_LOG_WARN, "%s: ended with %zu bytes that it did not return",
            base->type->table.name, base->held);
  call c = call_for(&self->base, NULL, true);
  while (!tarn_list_empty(&self->chunks)) {
    tarn__keep_first(&first,
                     shrink(&c.source, &held_at(self->chunks.next)->seen));
  }
  return first;
}

static tarn_status trim_for(registered *self, size_t target, size_t inside) {
  call c = call_for(&self->base, NULL, true);
  c.target = target;
  if (enough(&c.source)) return TARN_OK;
  tarn_status trimmed = table_of(self)->trim(self->state, &c.source);
  tarn_status status = sweep(self, inside);
  return trimmed != TARN_OK ? trimmed : status;
}

// The caller may have to wait for memory that the program's function gives
// back.
static tarn_status trim(tarn__pool_strategy *strategy, size_t target,
                        unsigned how) {
  if ((how & TARN__TRIM_NO_WAIT) != 0) return TARN_OK;
  return trim_for(self_of(strategy), target, 1);  // the front counts its call
}

static tarn_status let_go(tarn__pool_strategy *strategy,
                          tarn__pool_piece *piece) {
  tarn_status given = give(strategy, piece);
  TARN__TRY(trim_for(self_of(strategy), 0, 0));
  return given;
}

static void visit_memory(const tarn__pool_strategy *strategy,
                         tarn__pool_memory_fn *visit, void *context) {
  const registered *self = (const registered *)(const void *)strategy;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &self->chunks) {
    const held_chunk *held = held_at(node);
    if (held->extent != NULL) continue;
    visit(context, held->chunk.base, held->chunk.base_size);
  }
  tarn__segments_visit(&self->stock.segments, visit, context);
}

static tarn_status check(tarn__pool_strategy *strategy, size_t *out_idle) {
  registered *self = self_of(strategy);
  *out_idle = 0;  // idle memory is chunks here
  TARN__TRY(tarn__stock_check(&self->stock));
  if (table_of(self)->check == NULL) return TARN_OK;
  call c = call_for(strategy, NULL, true);
  return table_of(self)->check(self->state, &c.source);
}

const tarn__pool_strategy_type tarn__registered_pool = {
    .table = {.size = sizeof(registered)},
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = give,
    .let_go = let_go,
    .resize = resize,
    .trim = trim,
    .visit_memory = visit_memory,
    .check = check,
};
