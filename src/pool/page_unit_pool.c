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
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"
#include "pool/stock.h"

enum {
  DEFAULT_PAGE = 4096,
  FIRST_CLASSES = 64,
};

typedef struct shelf {
  uint64_t serial;     // of the stream of their last use; 0: none
  tarn__piece *first;  // NULL: the shelf may be given to another stream
} shelf;

// Stays where it is for as long as the strategy: pieces point to it.
typedef struct size_class {
  size_t size;  // that the device is asked for: the padding included, rounded
  size_t align;
  shelf *shelves;
  size_t shelf_count;
  size_t pieces;  // that are its own, idle or out or being taken
} size_class;

typedef struct page_unit {
  tarn__strategy base;
  size_t page;
  size_class **classes;  // open addressing; NULL: an empty slot
  size_t class_slots;    // a power of two, or 0
  size_t class_count;
  tarn__stock stock;
} page_unit;

static page_unit *self_of(tarn__strategy *strategy) {
  return (page_unit *)(void *)strategy;  // the base is the first member
}

// --- classes ---------------------------------------------------------------

// Where the class stands in the table, or would stand.
static size_class **slot_of(const page_unit *self, size_t size, size_t align) {
  uint64_t product = (size ^ (align << 7)) * 0x9e3779b97f4a7c15u;
  size_t mask = self->class_slots - 1;
  for (size_t at = (size_t)(product >> 32) & mask;; at = (at + 1) & mask) {
    size_class **slot = &self->classes[at];
    if (*slot == NULL) return slot;
    if ((*slot)->size == size && (*slot)->align == align) return slot;
  }
}

static tarn_status grow_classes(page_unit *self) {
  page_unit grown = *self;
  grown.class_slots = self->class_slots ? self->class_slots * 2 : FIRST_CLASSES;
  grown.classes = tarn__host_array(grown.class_slots, sizeof(size_class *));
  if (grown.classes == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < self->class_slots; i++) {
    size_class *c = self->classes[i];
    if (c != NULL) *slot_of(&grown, c->size, c->align) = c;
  }
  tarn__host_free_array(self->classes, self->class_slots, sizeof(size_class *));
  self->classes = grown.classes;
  self->class_slots = grown.class_slots;
  return TARN_OK;
}

static void free_class(size_class *c) {
  if (c == NULL) return;
  tarn__host_free_array(c->shelves, c->shelf_count, sizeof(shelf));
  tarn__host_free(c, sizeof *c);
}

// With a first shelf, for what is freed into it by one stream alone.
static size_class *make_class(size_t size, size_t align) {
  size_class *c = tarn__host_alloc(sizeof *c);
  if (c == NULL) return NULL;
  *c = (size_class){.size = size, .align = align, .shelf_count = 1};
  c->shelves = tarn__host_array(1, sizeof(shelf));
  if (c->shelves != NULL) return c;
  free_class(c);
  return NULL;
}

static tarn_status add_class(page_unit *self, size_t size, size_t align,
                             size_class **out) {
  if (self->class_count * 2 >= self->class_slots) {
    tarn_status status = grow_classes(self);
    if (status != TARN_OK) return status;
  }
  *out = make_class(size, align);
  if (*out == NULL) return TARN_E_NOMEM;
  *slot_of(self, size, align) = *out;
  self->class_count++;
  return TARN_OK;
}

static tarn_status class_of(page_unit *self, size_t size, size_t align,
                            size_class **out) {
  *out = self->class_slots != 0 ? *slot_of(self, size, align) : NULL;
  return *out != NULL ? TARN_OK : add_class(self, size, align, out);
}

// Sizes that come no more leave nothing behind. Without host memory for a
// smaller table the present one stays.
static void drop_unused_classes(page_unit *self) {
  size_t used = 0;
  for (size_t i = 0; i < self->class_slots; i++) {
    if (self->classes[i] != NULL && self->classes[i]->pieces > 0) used++;
  }
  if (used == self->class_count) return;
  page_unit shrunk = *self;
  shrunk.class_slots = FIRST_CLASSES;
  while (shrunk.class_slots < used * 4)
    shrunk.class_slots *= 2;
  shrunk.classes = tarn__host_array(shrunk.class_slots, sizeof(size_class *));
  if (shrunk.classes == NULL) return;
  for (size_t i = 0; i < self->class_slots; i++) {
    size_class *c = self->classes[i];
    if (c == NULL) continue;
    if (c->pieces > 0) {
      *slot_of(&shrunk, c->size, c->align) = c;
    } else {
      free_class(c);
    }
  }
  tarn__host_free_array(self->classes, self->class_slots, sizeof(size_class *));
  self->classes = shrunk.classes;
  self->class_slots = shrunk.class_slots;
  self->class_count = used;
}

// --- shelves ---------------------------------------------------------------

// The mark of a piece that is on a shelf, and then of one that is to leave it
// for the stock; in its |zone|.
enum { OUT, ON_SHELF, LEAVING };

static void push(shelf *s, tarn__piece *piece) {
  piece->next = s->first;
  piece->zone = ON_SHELF;
  s->first = piece;
}

static tarn__piece *pop(shelf *s) {
  tarn__piece *piece = s->first;
  s->first = piece->next;
  piece->next = NULL;
  piece->zone = OUT;
  return piece;
}

static tarn__piece *find_idle(const size_class *c, uint64_t serial,
                              bool own_only) {
  shelf *of_host = NULL;
  shelf *of_other = NULL;
  for (size_t i = 0; i < c->shelf_count; i++) {
    shelf *s = &c->shelves[i];
    if (s->first == NULL) continue;
    if (s->serial == serial) return pop(s);
    if (s->serial == 0) of_host = s;
    of_other = s;
  }
  if (of_host != NULL) return pop(of_host);
  return of_other != NULL && !own_only ? pop(of_other) : NULL;
}

static shelf *shelf_of(size_class *c, uint64_t serial) {
  shelf *empty = NULL;
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
static void move_to_host(size_class *c, shelf *from) {
  shelf *host = from;
  for (size_t i = 0; i < c->shelf_count; i++) {
    bool of_host = c->shelves[i].serial == 0 && c->shelves[i].first != NULL;
    if (of_host) host = &c->shelves[i];
  }
  tarn__piece *rest = from->first;
  from->first = NULL;
  host->serial = 0;
  while (rest != NULL) {
    tarn__piece *piece = rest;
    rest = piece->next;
    piece->freed_on = 0;
    push(host, piece);
  }
}

static void clear_shelves_of_the_gone(size_class *c) {
  for (size_t i = 0; i < c->shelf_count; i++) {
    shelf *s = &c->shelves[i];
    bool gone =
        s->serial != 0 && s->first != NULL && tarn__stream_is_gone(s->serial);
    if (gone) move_to_host(c, s);
  }
}

static bool add_shelves(size_class *c) {
  shelf *grown = tarn__host_resize(c->shelves, c->shelf_count,
                                   c->shelf_count * 2, sizeof *grown);
  if (grown == NULL) return false;
  c->shelves = grown;
  c->shelf_count *= 2;
  return true;
}

// A shelf for |serial|, be it by clearing or adding some; NULL if there is no
// host memory.
static shelf *make_shelf(size_class *c, uint64_t serial) {
  clear_shelves_of_the_gone(c);
  shelf *s = shelf_of(c, serial);
  if (s != NULL || !add_shelves(c)) return s;
  return shelf_of(c, serial);
}

// --- the stock -------------------------------------------------------------

// Gives the bytes of |piece|, which is on no shelf, back to the stock.
static tarn__extent *join_stock(page_unit *self, tarn__extent *e,
                                tarn__piece *piece) {
  uint64_t serial = piece->freed_on;
  tarn__source_join(&self->base, piece);
  return tarn__stock_give(&self->stock, e, serial);
}

static tarn__piece *piece_at(const page_unit *self, const tarn__extent *e) {
  return e->kind == TARN__EXTENT_TAKEN
             ? tarn__pieces_find(&self->base.pool->pieces, e->offset)
             : NULL;
}

// Marks the pieces of the segment that begins with |e| if none of it is out.
// Returns its bytes, or 0.
static size_t mark_segment(const page_unit *self, const tarn__extent *e) {
  const tarn__extent *first = e;
  size_t size = 0;
  for (; e->kind != TARN__EXTENT_OUTSIDE && (e == first || !e->wall);
       e = e->after) {
    const tarn__piece *piece = piece_at(self, e);
    bool idle = e->kind == TARN__EXTENT_OPEN ||
                (piece != NULL && piece->zone == ON_SHELF);
    if (!idle) return 0;
    size += e->size;
  }
  for (const tarn__extent *end = e; first != end; first = first->after) {
    tarn__piece *piece = piece_at(self, first);
    if (piece != NULL) piece->zone = LEAVING;
  }
  return size;
}

static void clear_shelf(size_class *c, shelf *s) {
  tarn__piece *rest = s->first;
  s->first = NULL;
  while (rest != NULL) {
    tarn__piece *piece = rest;
    rest = piece->next;
    if (piece->zone == LEAVING) {
      c->pieces--;
      piece->next = NULL;
    } else {
      push(s, piece);
    }
  }
}

static void clear_shelves(page_unit *self) {
  for (size_t i = 0; i < self->class_slots; i++) {
    size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++)
      clear_shelf(c, &c->shelves[j]);
  }
}

// Segments of which no piece is out lose their pieces, until |enough| bytes can
// be given back. A strategy that was replaced keeps no piece at all.
static void vacate(page_unit *self, size_t enough) {
  bool keeps = self->base.pool->current == &self->base;
  size_t found = 0;
  for (tarn__extent *e = self->stock.zone.first; e != NULL; e = e->after) {
    tarn__piece *piece = piece_at(self, e);
    if (keeps) {
      if (e->wall && found < enough) found += mark_segment(self, e);
    } else if (piece != NULL && piece->zone == ON_SHELF) {
      piece->zone = LEAVING;
    }
  }
  clear_shelves(self);
  for (tarn__extent *e = self->stock.zone.first; e != NULL; e = e->after) {
    tarn__piece *piece = piece_at(self, e);
    if (piece != NULL && piece->zone == LEAVING) e = join_stock(self, e, piece);
  }
}

static tarn_status trim_stock(page_unit *self, size_t target) {
  size_t held = self->base.pool->stats.reserved_bytes;
  if (held <= target) return TARN_OK;
  vacate(self, held - target);
  drop_unused_classes(self);
  return tarn__stock_trim(&self->stock, &self->base, target);
}

// For what is kept no more: it goes back to the device, or to the stock, whose
// segment goes when nothing of it is out.
static tarn_status let_go(tarn__strategy *strategy, tarn__piece *piece) {
  page_unit *self = self_of(strategy);
  if (piece->base_size != 0) return tarn__source_shrink(strategy, piece);
  tarn__extent *e = self->stock.zone.first;
  while (e->offset != piece->address)
    e = e->after;
  (void)join_stock(self, e, piece);
  return trim_stock(self, 0);
}

// --- the strategy ----------------------------------------------------------

static tarn_status init(tarn__strategy *strategy, tarn__options *options) {
  page_unit *self = self_of(strategy);
  tarn_status status =
      tarn__options_size(options, "page", DEFAULT_PAGE, &self->page);
  if (status != TARN_OK) return status;
  if (!tarn_is_power_of_two(self->page)) {
    return tarn__fail(TARN_E_INVALID,
                      "page_unit_pool: page=%zu is no power of two",
                      self->page);
  }
  return tarn__stock_init(&self->stock, strategy->pool);
}

static void deinit(tarn__strategy *strategy) {
  page_unit *self = self_of(strategy);
  for (size_t i = 0; i < self->class_slots; i++)
    free_class(self->classes[i]);
  tarn__host_free_array(self->classes, self->class_slots, sizeof(size_class *));
  tarn__stock_deinit(&self->stock);
}

// A piece of |size| bytes, the padding included.
static tarn_status make_piece(page_unit *self, tarn__request *request,
                              size_t size, tarn__piece **out_piece) {
  size_t usable = size - self->base.pool->padding;
  if (!self->stock.serves) {
    return tarn__source_grow(&self->base, request, usable, out_piece);
  }
  tarn__extent *e = NULL;
  uint64_t last = 0;
  tarn_status status =
      tarn__stock_take(&self->stock, &self->base, request, size, &e, &last);
  if (status != TARN_OK) return status;
  *out_piece = tarn__source_carve(&self->base, e->offset, usable);
  if (*out_piece == NULL) {
    (void)tarn__stock_give(&self->stock, e, last);
    return TARN_E_NOMEM;
  }
  (*out_piece)->freed_on = last;
  return TARN_OK;
}

static tarn_status take(tarn__strategy *strategy, tarn__request *request,
                        tarn__piece **out_piece) {
  page_unit *self = self_of(strategy);
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
  size_class *c = NULL;
  tarn_status status = class_of(self, rounded, request->align, &c);
  if (status != TARN_OK) return status;
  *out_piece = find_idle(c, request->serial, request->own_only);
  if (*out_piece != NULL) return TARN_OK;
  c->pieces++;  // now, since a trim meanwhile must not take the class away
  status = make_piece(self, request, rounded, out_piece);
  if (status == TARN_OK) {
    (*out_piece)->home = c;
  } else {
    c->pieces--;
  }
  return status;
}

static shelf *reach_shelf(size_class *c, uint64_t serial) {
  shelf *s = shelf_of(c, serial);
  return s != NULL ? s : make_shelf(c, serial);
}

static bool expect(tarn__strategy *strategy, tarn__piece *piece,
                   uint64_t serial) {
  (void)strategy;
  return reach_shelf(piece->home, serial) != NULL;
}

// Only a shelf for a stream that is new to the class can fail; then the memory
// goes back to the device.
static tarn_status give(tarn__strategy *strategy, tarn__piece *piece) {
  size_class *c = piece->home;  // NULL: asked of the device by itself
  if (c == NULL) return tarn__source_shrink(strategy, piece);
  shelf *s = reach_shelf(c, piece->freed_on);
  if (s != NULL) {
    push(s, piece);
    return TARN_OK;
  }
  c->pieces--;
  return let_go(strategy, piece);
}

// Idle pieces that are to be given back.
typedef struct collection {
  tarn__piece *all;
  size_t size;
  size_t enough;  // of that
} collection;

static void collect_class(size_class *c, collection *out) {
  for (size_t j = 0; j < c->shelf_count; j++) {
    while (c->shelves[j].first != NULL && out->size < out->enough) {
      tarn__piece *piece = pop(&c->shelves[j]);
      c->pieces--;
      out->size += piece->base_size;
      piece->next = out->all;
      out->all = piece;
    }
  }
}

// Out of every shelf, from the largest power of two down: so little is given
// back beyond what is asked for, with few calls.
static void collect(page_unit *self, collection *out) {
  size_t most = SIZE_MAX;
  while (most > 0 && out->size < out->enough) {
    size_t least = most / 2 + 1;
    for (size_t i = 0; i < self->class_slots; i++) {
      size_class *c = self->classes[i];
      if (c == NULL || c->size < least || c->size > most) continue;
      collect_class(c, out);
    }
    most /= 2;
  }
}

static tarn_status trim(tarn__strategy *strategy, size_t target) {
  page_unit *self = self_of(strategy);
  if (self->stock.serves) return trim_stock(self, target);
  size_t held = strategy->pool->stats.reserved_bytes;
  collection idle = {.enough = held > target ? held - target : 0};
  collect(self, &idle);
  drop_unused_classes(self);
  return tarn__source_shrink(strategy, idle.all);
}

// Whose a piece is makes no difference: any stream's is taken.
static void survey(tarn__strategy *strategy, tarn__survey *out) {
  const page_unit *self = self_of(strategy);
  for (const tarn__bins *b = self->stock.zone.bins; b != NULL; b = b->next) {
    size_t largest = tarn__bins_largest(b);
    out->idle += b->bytes;
    if (largest > out->largest) out->largest = largest;
  }
  for (size_t i = 0; i < self->class_slots; i++) {
    const size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++) {
      const tarn__piece *p = c->shelves[j].first;
      if (p != NULL && c->size > out->largest) out->largest = c->size;
      for (; p != NULL; p = p->next)
        out->idle += p->base_size != 0 ? p->base_size : c->size;
    }
  }
}

static tarn_status check_idle(const page_unit *self, const size_class *c,
                              const shelf *s, const tarn__piece *piece) {
  bool right = !piece->live && piece->zone == ON_SHELF &&
               piece->owner == &self->base && piece->home == c &&
               c->size % self->page == 0 &&
               piece->size == c->size - self->base.pool->padding &&
               piece->freed_on == s->serial;
  if (right) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "page_unit_pool: piece %u on a shelf that is not its own",
                    piece->id);
}

static tarn_status check(tarn__strategy *strategy, size_t *out_idle) {
  const page_unit *self = self_of(strategy);
  size_t held = 0;
  *out_idle = 0;
  tarn_status stocked = tarn__stock_check(&self->stock, &held);
  if (stocked != TARN_OK) return stocked;
  if (held != strategy->held) {
    return tarn__fail(TARN_E_CORRUPT,
                      "page_unit_pool: holds %zu bytes, says %zu", held,
                      strategy->held);
  }
  for (size_t i = 0; i < self->class_slots; i++) {
    const size_class *c = self->classes[i];
    for (size_t j = 0; c != NULL && j < c->shelf_count; j++) {
      const shelf *s = &c->shelves[j];
      for (const tarn__piece *p = s->first; p != NULL; p = p->next) {
        tarn_status status = check_idle(self, c, s, p);
        if (status != TARN_OK) return status;
        ++*out_idle;
      }
    }
  }
  return TARN_OK;
}

static void visit_memory(const tarn__strategy *strategy, tarn__memory_fn *visit,
                         void *context) {
  const page_unit *self = (const page_unit *)(const void *)strategy;
  tarn__stock_visit(&self->stock, visit, context);
}

const tarn__strategy_type tarn__page_unit_pool = {
    .name = "page_unit_pool",
    .size = sizeof(page_unit),
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = give,
    .let_go = let_go,
    .expect = expect,
    .trim = trim,
    .survey = survey,
    .visit_memory = visit_memory,
    .check = check,
};
