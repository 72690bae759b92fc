// page_unit_pool: sizes rounded up to a page unit, exact sizes reused.
//
//   classes   hash of (rounded size, alignment)
//     │
//     └► class ─► shelf of stream 7 ─► piece ─► piece      last in, first out
//          ▲      shelf of the host ─► piece
//          └────── home of each of its pieces, wherever they are
//
// A request takes from the shelf of its own stream, then from the host's, which
// needs no wait, then from any other, behind whose stream its own waits. Only a
// class without an idle piece calls the device. Idle pieces are kept until a
// trim, so the worst case is a series of sizes that are never requested again:
// each then holds memory that no other size can use.
//
// Cost: a hash and a pop; shelves of a class are as many as there are streams
// with idle pieces of that size.
#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/page_unit.h"

enum { DEFAULT_PAGE = 4096, FIRST_CLASSES = 64 };

// The base is the first member.
static tarn__pool_page_unit *self_of(tarn__pool_strategy *strategy) {
  return (tarn__pool_page_unit *)(void *)strategy;
}

// --- classes ---------------------------------------------------------------

// NULL: it was asked of the device by itself.
static tarn__pool_size_class *class_at(const tarn__pool_piece *piece) {
  const tarn__pool_extent *e = piece->home;
  return tarn__page_unit_is_stocked(piece) ? e->taker : piece->home;
}

// Where the class stands in the table, or would stand.
static inline tarn__pool_size_class **slot_of(const tarn__pool_page_unit *self,
                                              size_t size, size_t align) {
  uint64_t product = (size ^ (align << 7)) * 0x9e3779b97f4a7c15u;
  size_t mask = self->class_slots - 1;
  for (size_t at = (size_t)(product >> 32) & mask;; at = (at + 1) & mask) {
    tarn__pool_size_class **slot = &self->classes[at];
    if (*slot == NULL) return slot;
    if ((*slot)->size == size && (*slot)->align == align) return slot;
  }
}

static void free_class(tarn__pool_size_class *c) {
  if (c == NULL) return;
  tarn__host_free_array(c->shelves, c->shelf_count, sizeof(tarn__pool_shelf));
  tarn__host_free(c, sizeof *c);
}

// With a first shelf, for the pieces of the first stream that frees into it.
static tarn__pool_size_class *make_class(size_t size, size_t align) {
  tarn__pool_size_class *c = tarn__host_alloc(sizeof *c);
  if (c == NULL) return NULL;
  *c = (tarn__pool_size_class){.size = size, .align = align, .shelf_count = 1};
  c->shelves = tarn__host_array(1, sizeof(tarn__pool_shelf));
  if (c->shelves != NULL) return c;
  free_class(c);
  return NULL;
}

// A table of those classes of which there are pieces, with room for as many
// again. The others are gone.
static tarn_status rebuild(tarn__pool_page_unit *self, size_t used) {
  tarn__pool_page_unit rebuilt = *self;
  rebuilt.class_count = used;
  rebuilt.class_slots = FIRST_CLASSES;
  while (rebuilt.class_slots < used * 4)
    rebuilt.class_slots *= 2;
  rebuilt.classes =
      tarn__host_array(rebuilt.class_slots, sizeof(tarn__pool_size_class *));
  if (rebuilt.classes == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < self->class_slots; i++) {
    tarn__pool_size_class *c = self->classes[i];
    if (c != NULL && c->pieces > 0) {
      *slot_of(&rebuilt, c->size, c->align) = c;
    } else {
      free_class(c);
    }
  }
  tarn__host_free_array(self->classes, self->class_slots,
                        sizeof(tarn__pool_size_class *));
  // Other fields are read without the lock, in calls of the device.
  self->classes = rebuilt.classes;
  self->class_count = rebuilt.class_count;
  self->class_slots = rebuilt.class_slots;
  return TARN_OK;
}

static size_t count_used(const tarn__pool_page_unit *self) {
  size_t used = 0;
  for (size_t i = 0; i < self->class_slots; i++)
    used += self->classes[i] != NULL && self->classes[i]->pieces > 0;
  return used;
}

// After a trim a class without pieces takes no host memory. Without host memory
// for a smaller table the present one stays.
static void drop_unused(tarn__pool_page_unit *self) {
  size_t used = count_used(self);
  if (used != self->class_count) (void)rebuild(self, used);
}

static tarn_status add_class(tarn__pool_page_unit *self, size_t size,
                             size_t align, tarn__pool_size_class **out) {
  if (self->class_count * 2 >= self->class_slots) {
    TARN__TRY(rebuild(self, count_used(self)));
  }
  *out = make_class(size, align);
  if (*out == NULL) return TARN_E_NOMEM;
  *slot_of(self, size, align) = *out;
  self->class_count++;
  return TARN_OK;
}

// The class of |size| and |align|, added if it is new. TARN_E_NOMEM.
static inline tarn_status class_of(tarn__pool_page_unit *self, size_t size,
                                   size_t align, tarn__pool_size_class **out) {
  *out = self->class_slots != 0 ? *slot_of(self, size, align) : NULL;
  return *out != NULL ? TARN_OK : add_class(self, size, align, out);
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

// A stream that was destroyed has finished: its pieces move to the host's
// shelf.
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

// A shelf for |serial|, after clearing or adding shelves if needed; NULL if
// there is no host memory.
static tarn__pool_shelf *reach_shelf(tarn__pool_size_class *c,
                                     uint64_t serial) {
  tarn__pool_shelf *s = shelf_of(c, serial);
  if (s != NULL) return s;
  clear_shelves_of_the_gone(c);
  s = shelf_of(c, serial);
  return s == NULL && add_shelves(c) ? shelf_of(c, serial) : s;
}

// --- pieces of the stock ---------------------------------------------------

// For pieces that are no longer kept: they go back to the device, or to the
// stock, whose segment is given back when it is empty.
static tarn_status let_go(tarn__pool_strategy *strategy,
                          tarn__pool_piece *piece) {
  tarn__pool_page_unit *self = self_of(strategy);
  if (!tarn__page_unit_is_stocked(piece))
    return tarn__source_shrink(strategy, piece);
  tarn__pool_extent *hole = NULL;
  class_at(piece)->pieces--;
  tarn_status given = tarn__page_unit_join(self, piece, &hole);
  TARN__TRY(tarn__segments_is_free(hole)
                ? tarn__page_unit_trim_stock(self, 0, 0)
                : TARN_OK);
  return given;
}

// --- the strategy ----------------------------------------------------------

static tarn_status init(tarn__pool_strategy *strategy,
                        tarn__pool_strategy_options *options) {
  tarn__pool_page_unit *self = self_of(strategy);
  TARN__TRY(tarn__options_size(options, "page", DEFAULT_PAGE, &self->page));
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
    free_class(self->classes[i]);
  tarn__host_free_array(self->classes, self->class_slots,
                        sizeof(tarn__pool_size_class *));
  tarn__stock_deinit(&self->stock);
}

// The stock, which the pool reserves, serves before the device is called. If
// neither has room, pieces on the shelves are joined as above.
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
  TARN__TRY(take_memory(self, request, c, out_piece, &e, &last));
  if (e == NULL) {
    assert(*out_piece != NULL);
    (*out_piece)->home = c;
    return TARN_OK;
  }
  *out_piece = tarn__source_carve(&self->base, e->offset, usable);
  if (*out_piece == NULL) {
    (void)tarn__extents_give(&self->stock.zone, e, last);
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
  TARN__TRY(class_of(self, rounded, request->align, &c));
  *out_piece = find_idle(c, request->serial, request->own_only);
  if (*out_piece != NULL) return TARN_OK;
  c->pieces++;  // now, so that a trim during the call cannot remove the class
  tarn_status status = make_piece(self, request, c, out_piece);
  if (status != TARN_OK) c->pieces--;
  return status;
}

static bool expect(tarn__pool_strategy *strategy, tarn__pool_piece *piece,
                   uint64_t serial) {
  (void)strategy;
  return reach_shelf(class_at(piece), serial) != NULL;
}

// Only making a shelf for a stream that is new to the class can fail; then the
// memory goes back to the stock, or to the device.
static tarn_status give(tarn__pool_strategy *strategy,
                        tarn__pool_piece *piece) {
  tarn__pool_size_class *c = class_at(piece);
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

// Idle pieces to give back.
typedef struct collection {
  tarn__pool_piece *all;
  size_t size;
  size_t enough;  // of that
  unsigned how;   // TARN__TRIM_... bits
} collection;

// Pieces of the stock are not allocations of the device.
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

// From every shelf, from the largest power of two down: that gives back little
// beyond the wanted bytes, with few calls.
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
  drop_unused(self);
  tarn_status status = tarn__source_shrink(strategy, idle.all);
  return first != TARN_OK ? first : status;
}

static tarn_status reserve(tarn__pool_strategy *strategy, size_t size) {
  return tarn__stock_reserve(&self_of(strategy)->stock, strategy, size);
}

// Holes of the stock with different streams do not join, and requests that must
// not wait cannot take another stream's piece from a shelf.
static void survey(tarn__pool_strategy *strategy, tarn__pool_survey *out) {
  const tarn__pool_page_unit *self = self_of(strategy);
  tarn__extents_survey(&self->stock.zone, out);
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
               piece->owner == &self->base && class_at(piece) == c &&
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
  *out_idle = 0;
  TARN__TRY(tarn__stock_check(&self->stock));
  for (size_t i = 0; i < self->class_slots; i++) {
    const tarn__pool_size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++) {
      const tarn__pool_shelf *s = &c->shelves[j];
      for (const tarn__pool_piece *p = s->first; p != NULL; p = p->next) {
        TARN__TRY(check_idle(self, c, s, p));
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
  tarn__segments_visit(&self->stock.segments, visit, context);
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
