// The table of classes of page_unit_pool.
#include "base/hostmem.h"
#include "pool/page_unit.h"

enum { FIRST_CLASSES = 64 };

static tarn_status grow_classes(tarn__pool_page_unit *self) {
  tarn__pool_page_unit grown = *self;
  grown.class_slots = self->class_slots ? self->class_slots * 2 : FIRST_CLASSES;
  grown.classes =
      tarn__host_array(grown.class_slots, sizeof(tarn__pool_size_class *));
  if (grown.classes == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < self->class_slots; i++) {
    tarn__pool_size_class *c = self->classes[i];
    if (c != NULL) *tarn__page_unit_slot(&grown, c->size, c->align) = c;
  }
  tarn__host_free_array(self->classes, self->class_slots,
                        sizeof(tarn__pool_size_class *));
  self->classes = grown.classes;
  self->class_slots = grown.class_slots;
  return TARN_OK;
}

void tarn__page_unit_free_class(tarn__pool_size_class *c) {
  if (c == NULL) return;
  tarn__host_free_array(c->shelves, c->shelf_count, sizeof(tarn__pool_shelf));
  tarn__host_free(c, sizeof *c);
}

// With a first shelf, for what is freed into it by one stream alone.
static tarn__pool_size_class *make_class(size_t size, size_t align) {
  tarn__pool_size_class *c = tarn__host_alloc(sizeof *c);
  if (c == NULL) return NULL;
  *c = (tarn__pool_size_class){.size = size, .align = align, .shelf_count = 1};
  c->shelves = tarn__host_array(1, sizeof(tarn__pool_shelf));
  if (c->shelves != NULL) return c;
  tarn__page_unit_free_class(c);
  return NULL;
}

tarn_status tarn__page_unit_add_class(tarn__pool_page_unit *self, size_t size,
                                      size_t align,
                                      tarn__pool_size_class **out) {
  if (self->class_count * 2 >= self->class_slots) {
    tarn_status status = grow_classes(self);
    if (status != TARN_OK) return status;
  }
  *out = make_class(size, align);
  if (*out == NULL) return TARN_E_NOMEM;
  *tarn__page_unit_slot(self, size, align) = *out;
  self->class_count++;
  return TARN_OK;
}

void tarn__page_unit_drop_unused(tarn__pool_page_unit *self) {
  size_t used = 0;
  for (size_t i = 0; i < self->class_slots; i++) {
    if (self->classes[i] != NULL && self->classes[i]->pieces > 0) used++;
  }
  if (used == self->class_count) return;
  tarn__pool_page_unit shrunk = *self;
  shrunk.class_slots = FIRST_CLASSES;
  while (shrunk.class_slots < used * 4)
    shrunk.class_slots *= 2;
  shrunk.classes =
      tarn__host_array(shrunk.class_slots, sizeof(tarn__pool_size_class *));
  if (shrunk.classes == NULL) return;
  for (size_t i = 0; i < self->class_slots; i++) {
    tarn__pool_size_class *c = self->classes[i];
    if (c == NULL) continue;
    if (c->pieces > 0) {
      *tarn__page_unit_slot(&shrunk, c->size, c->align) = c;
    } else {
      tarn__page_unit_free_class(c);
    }
  }
  tarn__host_free_array(self->classes, self->class_slots,
                        sizeof(tarn__pool_size_class *));
  self->classes = shrunk.classes;
  self->class_slots = shrunk.class_slots;
  self->class_count = used;
}
