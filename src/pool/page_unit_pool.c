// page_unit_pool: sizes rounded up to a page unit, exact sizes reused.
//
//   classes   hash of (rounded size, alignment)
//     │
//     └► class ─► shelf of stream 7 ─► piece ─► piece      last in, first out
//          ▲      shelf of the host ─► piece
//          └────── home of each of its pieces, wherever they are
//
// A request takes from the shelf of its own stream, then from the host's (no
// one need wait), then from any other (its stream waits for that one). Only if
// the class has no idle piece at all is the device asked. Idle pieces are kept
// until trimmed, so the worst case is a row of sizes that never come again:
// each then holds memory that nothing else can use.
//
// Cost: a hash and a pop; shelves of a class are as many as there are streams
// with idle pieces of that size.
#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/page_unit.h"

enum {
  DEFAULT_PAGE = 4096,
};

static tarn__pool_page_unit *self_of(tarn__pool_strategy *strategy) {
  return (
      tarn__pool_page_unit *)(void *)strategy;  // the base is the first member
}

// --- shelves ---------------------------------------------------------------

static void push(tarn__pool_shelf *s, tarn__pool_piece *piece) {
  piece->next = s->first;
  piece->zone = TARN__PAGE_UNIT_ON_SHELF;
  s->first = piece;
}

static tarn__pool_piece *pop(tarn__pool_shelf *s) {
  tarn__pool_piece *piece = s->first;
  s->first = piece->next;
  piece->next = NULL;
  piece->zone = TARN__PAGE_UNIT_OUT;
  return piece;
}

static tarn__pool_piece *find_idle(const tarn__pool_size_class *c,
                                   uint64_t serial, bool own_only) {
  tarn__pool_shelf *of_host = NULL;
  tarn__pool_shelf *of_other = NULL;
  for (size_t i = 0; i < c->shelf_count; i++) {
    tarn__pool_shelf *s = &c->shelves[i];
    if (s->first == NULL) continue;
    if (s->serial == serial) return pop(s);
    if (s->serial == 0) of_host = s;
    of_other = s;
  }
  if (of_host != NULL) return pop(of_host);
  return of_other != NULL && !own_only ? pop(of_other) : NULL;
}

static tarn__pool_shelf *shelf_of(tarn__pool_size_class *c, uint64_t serial) {
  tarn__pool_shelf *empty = NULL;
  for (size_t i = 0; i < c->shelf_count; i++) {
    if (c->shelves[i].first == NULL) {
      empty = &c->shelves[i];
    } else if (c->shelves[i].serial == serial) {
      return &c->shelves[i];
    }
  }
  if (empty != NULL) empty->serial = serial;
  return empty;
}

// The work of a stream that is gone is done: what it used last is the host's.
static void move_to_host(tarn__pool_size_class *c, tarn__pool_shelf *from) {
  tarn__pool_shelf *host = from;
  for (size_t i = 0; i < c->shelf_count; i++) {
    bool of_host = c->shelves[i].serial == 0 && c->shelves[i].first != NULL;
    if (of_host) host = &c->shelves[i];
  }
  tarn__pool_piece *rest = from->first;
  from->first = NULL;
  host->serial = 0;
  while (rest != NULL) {
    tarn__pool_piece *piece = rest;
    rest = piece->next;
    piece->freed_on = 0;
    push(host, piece);
  }
}

static void clear_shelves_of_the_gone(tarn__pool_size_class *c) {
  for (size_t i = 0; i < c->shelf_count; i++) {
    tarn__pool_shelf *s = &c->shelves[i];
    bool gone =
        s->serial != 0 && s->first != NULL && tarn__stream_is_gone(s->serial);
    if (gone) move_to_host(c, s);
  }
}

static bool add_shelves(tarn__pool_size_class *c) {
  tarn__pool_shelf *grown = tarn__host_resize(
      c->shelves, c->shelf_count, c->shelf_count * 2, sizeof *grown);
  if (grown == NULL) return false;
  c->shelves = grown;
  c->shelf_count *= 2;
  return true;
}

// A shelf for |serial|, be it by clearing or adding some; NULL if there is no
// host memory.
static tarn__pool_shelf *make_shelf(tarn__pool_size_class *c, uint64_t serial) {
  clear_shelves_of_the_gone(c);
  tarn__pool_shelf *s = shelf_of(c, serial);
  if (s != NULL || !add_shelves(c)) return s;
  return shelf_of(c, serial);
}

// --- pieces of the stock ---------------------------------------------------

// For what is kept no more: it goes back to the device, or to the stock, whose
// segment goes when nothing of it is out.
static tarn_status let_go(tarn__pool_strategy *strategy,
                          tarn__pool_piece *piece) {
  tarn__pool_page_unit *self = self_of(strategy);
  if (!tarn__page_unit_is_stocked(piece))
    return tarn__source_shrink(strategy, piece);
  tarn__pool_extent *hole = NULL;
  tarn__page_unit_class_at(piece)->pieces--;
  tarn_status given = tarn__page_unit_join(self, piece, &hole);
  tarn_status status = tarn__segments_is_free(hole)
                           ? tarn__page_unit_trim_stock(self, 0, 0)
                           : TARN_OK;
  return status != TARN_OK ? status : given;
}

// --- the strategy ----------------------------------------------------------

static tarn_status init(tarn__pool_strategy *strategy,
                        tarn__pool_strategy_options *options) {
  tarn__pool_page_unit *self = self_of(strategy);
  tarn_status status =
      tarn__options_size(options, "page", DEFAULT_PAGE, &self->page);
  if (status != TARN_OK) return status;
  if (!tarn_is_power_of_two(self->page)) {
    return tarn__fail(TARN_E_INVALID,
                      "page_unit_pool: page=%zu is not a power of two",
                      self->page);
  }
  return tarn__stock_init(&self->stock, strategy->pool);
}

static void deinit(tarn__pool_strategy *strategy) {
  tarn__pool_page_unit *self = self_of(strategy);
  for (size_t i = 0; i < self->class_slots; i++)
    tarn__page_unit_free_class(self->classes[i]);
  tarn__host_free_array(self->classes, self->class_slots,
                        sizeof(tarn__pool_size_class *));
  tarn__stock_deinit(&self->stock);
}

// What the pool is to keep serves before the device is asked; where that has no
// room and the device none, what is on the shelves is joined as above.
static tarn_status take_memory(tarn__pool_page_unit *self,
                               tarn__pool_request *request,
                               const tarn__pool_size_class *c,
                               tarn__pool_piece **out_piece,
                               tarn__pool_extent **out, uint64_t *out_serial) {
  if (self->stock.serves) {
    return tarn__page_unit_take_stock(self, request, c->size, out, out_serial);
  }
  if (self->stock.open) {
    *out = tarn__stock_find(&self->stock, request, c->size, out_serial);
    if (*out != NULL) return TARN_OK;
  }
  tarn_status status = tarn__source_grow(
      &self->base, request, c->size - self->base.pool->padding, out_piece);
  bool joins = status == TARN_FULL &&
               tarn__page_unit_take_stock(self, request, c->size, out,
                                          out_serial) == TARN_OK;
  return joins ? TARN_OK : status;
}

// A piece of |c|.
static tarn_status make_piece(tarn__pool_page_unit *self,
                              tarn__pool_request *request,
                              tarn__pool_size_class *c,
                              tarn__pool_piece **out_piece) {
  size_t usable = c->size - self->base.pool->padding;
  tarn__pool_extent *e = NULL;
  uint64_t last = 0;
  tarn_status status = take_memory(self, request, c, out_piece, &e, &last);
  if (status != TARN_OK) return status;
  if (e == NULL) {
    assert(*out_piece != NULL);
    (*out_piece)->home = c;
    return TARN_OK;
  }
  *out_piece = tarn__source_carve(&self->base, e->offset, usable);
  if (*out_piece == NULL) {
    (void)tarn__stock_give(&self->stock, e, last);
    return TARN_E_NOMEM;
  }
  e->taker = c;
  (*out_piece)->home = e;
  (*out_piece)->freed_on = last;
  return TARN_OK;
}

static tarn_status take(tarn__pool_strategy *strategy,
                        tarn__pool_request *request,
                        tarn__pool_piece **out_piece) {
  tarn__pool_page_unit *self = self_of(strategy);
  const tarn_pool *pool = strategy->pool;
  size_t rounded = 0;
  if (!tarn__source_round(pool, request->size, &rounded) ||
      !tarn_size_align_up(rounded, self->page, &rounded)) {
    return tarn__fail(TARN_E_INVALID,
                      "page_unit_pool: %zu bytes rounded up to pages of %zu "
                      "overflow",
                      request->size, self->page);
  }
  if (tarn__front_is_direct(pool, request->size)) {
    return tarn__source_grow(strategy, request, request->size, out_piece);
  }
  tarn__pool_size_class *c = NULL;
  tarn_status status =
      tarn__page_unit_class_of(self, rounded, request->align, &c);
  if (status != TARN_OK) return status;
  *out_piece = find_idle(c, request->serial, request->own_only);
  if (*out_piece != NULL) return TARN_OK;
  c->pieces++;  // now, since a trim meanwhile must not take the class away
  status = make_piece(self, request, c, out_piece);
  if (status != TARN_OK) c->pieces--;
  return status;
}

static tarn__pool_shelf *reach_shelf(tarn__pool_size_class *c,
                                     uint64_t serial) {
  tarn__pool_shelf *s = shelf_of(c, serial);
  return s != NULL ? s : make_shelf(c, serial);
}

static bool expect(tarn__pool_strategy *strategy, tarn__pool_piece *piece,
                   uint64_t serial) {
  (void)strategy;
  return reach_shelf(tarn__page_unit_class_at(piece), serial) != NULL;
}

// Only a shelf for a stream that is new to the class can fail; then the memory
// goes back to the stock, or to the device.
static tarn_status give(tarn__pool_strategy *strategy,
                        tarn__pool_piece *piece) {
  tarn__pool_size_class *c = tarn__page_unit_class_at(piece);
  if (c == NULL) return tarn__source_shrink(strategy, piece);
  tarn__pool_shelf *s = reach_shelf(c, piece->freed_on);
  if (s != NULL) {
    push(s, piece);
    return TARN_OK;
  }
  c->pieces--;
  tarn__pool_extent *hole = NULL;
  return tarn__page_unit_is_stocked(piece)
             ? tarn__page_unit_join(self_of(strategy), piece, &hole)
             : tarn__source_shrink(strategy, piece);
}

// Idle pieces that are to be given back.
typedef struct collection {
  tarn__pool_piece *all;
  size_t size;
  size_t enough;  // of that
  unsigned how;   // TARN__TRIM_... bits
} collection;

// Those of the stock are not the device's one by one.
static void collect_shelf(tarn__pool_size_class *c, tarn__pool_piece **link,
                          collection *out) {
  while (*link != NULL && out->size < out->enough) {
    tarn__pool_piece *piece = *link;
    bool stays = tarn__page_unit_is_stocked(piece) ||
                 !tarn__front_may_return(piece->owner, out->size,
                                         piece->base_size, out->how);
    if (stays) {
      link = &piece->next;
      continue;
    }
    *link = piece->next;
    piece->zone = TARN__PAGE_UNIT_OUT;
    c->pieces--;
    out->size += piece->base_size;
    piece->next = out->all;
    out->all = piece;
  }
}

static void collect_class(tarn__pool_size_class *c, collection *out) {
  for (size_t j = 0; j < c->shelf_count; j++) {
    tarn__pool_shelf *s = &c->shelves[j];
    bool unused = (out->how & TARN__TRIM_NO_WAIT) != 0;
    if (s->serial == 0 || !unused) collect_shelf(c, &s->first, out);
  }
}

// Out of every shelf, from the largest power of two down: so little is given
// back beyond what is asked for, with few calls.
static void collect(tarn__pool_page_unit *self, collection *out) {
  size_t most = SIZE_MAX;
  while (most > 0 && out->size < out->enough) {
    size_t least = most / 2 + 1;
    for (size_t i = 0; i < self->class_slots; i++) {
      tarn__pool_size_class *c = self->classes[i];
      if (c == NULL || c->size < least || c->size > most) continue;
      collect_class(c, out);
    }
    most /= 2;
  }
}

static tarn_status trim(tarn__pool_strategy *strategy, size_t target,
                        unsigned how) {
  tarn__pool_page_unit *self = self_of(strategy);
  const size_t *held = &strategy->pool->stats.reserved_bytes;
  tarn_status first = self->stock.open
                          ? tarn__page_unit_trim_stock(self, target, how)
                          : TARN_OK;
  collection idle = {.enough = *held > target ? *held - target : 0, .how = how};
  collect(self, &idle);
  tarn__page_unit_drop_unused(self);
  tarn_status status = tarn__source_shrink(strategy, idle.all);
  return first != TARN_OK ? first : status;
}

static tarn_status reserve(tarn__pool_strategy *strategy, size_t size) {
  return tarn__stock_reserve(&self_of(strategy)->stock, strategy, size);
}

// Holes of the stock that are of several streams do not join, and of what is on
// the shelves requests that must not wait take none that is another stream's.
static void survey(tarn__pool_strategy *strategy, tarn__pool_survey *out) {
  const tarn__pool_page_unit *self = self_of(strategy);
  for (const tarn__pool_bins *b = self->stock.zone.bins; b != NULL;
       b = b->next) {
    size_t largest = tarn__bins_largest(b);
    out->idle += b->bytes;
    if (largest > out->largest) out->largest = largest;
    if (b->bytes != 0) tarn__waits_add(&out->streams, b->serial);
  }
  for (size_t i = 0; i < self->class_slots; i++) {
    const tarn__pool_size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++) {
      const tarn__pool_piece *p = c->shelves[j].first;
      if (p != NULL && c->size > out->largest) out->largest = c->size;
      if (p != NULL) tarn__waits_add(&out->streams, c->shelves[j].serial);
      for (; p != NULL; p = p->next)
        out->idle += p->base_size != 0 ? p->base_size : c->size;
    }
  }
}

static void settle(tarn__pool_strategy *strategy, uint64_t serial) {
  tarn__pool_page_unit *self = self_of(strategy);
  if (self->stock.open) tarn__extents_move(&self->stock.zone, serial, 0);
  for (size_t i = 0; serial != 0 && i < self->class_slots; i++) {
    tarn__pool_size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++)
      if (c->shelves[j].serial == serial) move_to_host(c, &c->shelves[j]);
  }
}

static tarn_status check_idle(const tarn__pool_page_unit *self,
                              const tarn__pool_size_class *c,
                              const tarn__pool_shelf *s,
                              const tarn__pool_piece *piece) {
  bool right = !piece->live && piece->zone == TARN__PAGE_UNIT_ON_SHELF &&
               piece->owner == &self->base &&
               tarn__page_unit_class_at(piece) == c &&
               c->size % self->page == 0 &&
               piece->size == c->size - self->base.pool->padding &&
               piece->freed_on == s->serial;
  if (right) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "page_unit_pool: piece %u is on the wrong shelf",
                    piece->id);
}

static tarn_status check(tarn__pool_strategy *strategy, size_t *out_idle) {
  const tarn__pool_page_unit *self = self_of(strategy);
  size_t held = 0;
  *out_idle = 0;
  tarn_status status = tarn__stock_check(&self->stock, &held);
  if (status == TARN_OK) status = tarn__strategy_check_held(strategy, held);
  if (status != TARN_OK) return status;
  for (size_t i = 0; i < self->class_slots; i++) {
    const tarn__pool_size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++) {
      const tarn__pool_shelf *s = &c->shelves[j];
      for (const tarn__pool_piece *p = s->first; p != NULL; p = p->next) {
        status = check_idle(self, c, s, p);
        if (status != TARN_OK) return status;
        ++*out_idle;
      }
    }
  }
  return TARN_OK;
}

static void visit_memory(const tarn__pool_strategy *strategy,
                         tarn__pool_memory_fn *visit, void *context) {
  const tarn__pool_page_unit *self =
      (const tarn__pool_page_unit *)(const void *)strategy;
  tarn__stock_visit(&self->stock, visit, context);
}

const tarn__pool_strategy_type tarn__page_unit_pool = {
    .table = {.name = "page_unit_pool", .size = sizeof(tarn__pool_page_unit)},
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = give,
    .let_go = let_go,
    .expect = expect,
    .trim = trim,
    .reserve = reserve,
    .survey = survey,
    .visit_memory = visit_memory,
    .settle = settle,
    .check = check,
};
