// Pools whose blocks other processes can have, and the only strategy there is
// for them: each block is a memory object of its own.
//
//   piece ─► object  ──┬── memory     a handle, shareable; a descriptor stands
//                      │              for it in other processes
//                      └── addresses  a range with nothing in it but the memory
//
// Nothing is kept when a block is freed: the object goes, and with it, as far
// as this process is concerned, the memory. Only a range that the driver failed
// to unmap stays with the strategy, which tries again when it is trimmed.
#include "tarn/share.h"

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"
#include "pool/take.h"

typedef struct object {
  tarn_list node;
  tarn_memory memory;
  tarn_addr address;
  size_t size;
  size_t exports;  // that are under way
} object;

typedef struct sharer {
  tarn__pool_strategy base;
  tarn_list objects;  // of live blocks
  tarn_list lost;     // with addresses only, which may be mapped still
} sharer;

// A request for memory that is there already.
typedef struct importing {
  tarn__pool_request request;  // the first member; |imports| is set
  int fd;
} importing;

static sharer *self_of(tarn__pool_strategy *strategy) {
  return (sharer *)(void *)strategy;  // the base is the first member
}

static tarn_device *device_of(const sharer *self) {
  return self->base.pool->supply.device;
}

static object *object_at(const tarn_list *node) {
  return tarn_list_entry(node, object, node);
}

// --- beginning and end -----------------------------------------------------

static tarn_status init(tarn__pool_strategy *strategy,
                        tarn__pool_strategy_options *options) {
  sharer *self = self_of(strategy);
  (void)options;
  tarn_list_init(&self->objects);
  tarn_list_init(&self->lost);
  return TARN_OK;
}

static void free_all(tarn_list *objects) {
  while (!tarn_list_empty(objects)) {
    object *o = object_at(objects->next);
    tarn_list_del(&o->node);
    tarn__host_free(o, sizeof *o);
  }
}

static void deinit(tarn__pool_strategy *strategy) {
  sharer *self = self_of(strategy);
  free_all(&self->objects);  // in a child of fork
  free_all(&self->lost);
}

// --- the device ------------------------------------------------------------
// All without the lock.

static tarn_status put_in_place(tarn_device *device, const object *o) {
  TARN__TRY(tarn_range_map(device, o->address, o->size, o->memory));
  tarn_status status = tarn_range_set_access(device, o->address, o->size,
                                             device, TARN_RIGHTS_READ_WRITE);
  if (status != TARN_OK) (void)tarn_range_unmap(device, o->address, o->size);
  return status;
}

static tarn_status map(tarn_device *device, size_t align, object *o) {
  TARN__TRY(tarn__range_reserve(device, o->size, align, &o->address));
  tarn_status status = put_in_place(device, o);
  if (status != TARN_OK) {
    (void)tarn__range_release(device, o->address, o->size);
  }
  return status;
}

static tarn_status get_memory(tarn_device *device,
                              const tarn__pool_request *request, object *o) {
  if (!request->imports) {
    return tarn__memory_create(device, o->size, TARN_MEMORY_SHAREABLE,
                               &o->memory);
  }
  int fd = ((const importing *)(const void *)request)->fd;
  tarn_status status = tarn__memory_import(device, fd, o->size, &o->memory);
  if (status == TARN_OK) return status;
  return tarn__fail(status, "import of descriptor %d as %zu bytes: %s", fd,
                    o->size, tarn_last_error());
}

static tarn_status make(tarn_device *device, const tarn__pool_request *request,
                        object *o) {
  TARN__TRY(get_memory(device, request, o));
  tarn_status status = map(device, request->align, o);
  if (status != TARN_OK) (void)tarn__memory_destroy(device, o->memory);
  return status;
}

// Gives the addresses back. A driver that failed to unmap may have unmapped or
// not: the next call either succeeds or reports that nothing is mapped there.
// False: the addresses may still be mapped, and stay reserved.
static bool clear(tarn_device *device, const object *o, tarn_status *out) {
  *out = tarn_range_unmap(device, o->address, o->size);
  if (*out != TARN_OK && *out != TARN_E_INVALID) return false;
  *out = tarn__range_release(device, o->address, o->size);
  return *out == TARN_OK || *out == TARN_E_DEVICE;
}

// An object whose addresses are |gone| ends; else they are lost.
static void end(sharer *self, object *o, bool gone) {
  if (gone) {
    tarn__host_free(o, sizeof *o);
  } else {
    tarn_list_add_tail(&self->lost, &o->node);
  }
}

// --- blocks ----------------------------------------------------------------

// |last|: serial of the stream that used it last. Even if that cannot be waited
// for: not to try is a sure leak.
static tarn_status drop(sharer *self, object *o, uint64_t last) {
  tarn_device *device = device_of(self);
  size_t size = o->size;
  tarn_list_del(&o->node);
  tarn__front_note_memory(self->base.pool, TARN_POOL_EVENT_SHRINK, o->address,
                          size, last);
  tarn__source_begin_return(&self->base, size, 1);
  tarn_status waited = last != 0 ? tarn_stream_join(NULL, last) : TARN_OK;
  tarn_status destroyed = tarn__memory_destroy(device, o->memory);
  tarn_status cleared = TARN_OK;
  bool gone = clear(device, o, &cleared);
  tarn__source_end_return(&self->base, size);
  end(self, o, gone);
  if (destroyed != TARN_OK) return destroyed;
  return cleared != TARN_OK ? cleared : waited;
}

static tarn_status enter(sharer *self, object *o,
                         tarn__pool_piece **out_piece) {
  tarn_pool *pool = self->base.pool;
  tarn__source_charge(&self->base, o->size);
  tarn_list_add_tail(&self->objects, &o->node);
  tarn__front_note_memory(pool, TARN_POOL_EVENT_GROW, o->address, o->size, 0);
  *out_piece =
      tarn__source_carve(&self->base, o->address, o->size - pool->padding);
  if (*out_piece == NULL) {
    (void)drop(self, o, 0);
    return TARN_E_NOMEM;
  }
  (*out_piece)->home = o;
  return TARN_OK;
}

static tarn_status take(tarn__pool_strategy *strategy,
                        tarn__pool_request *request,
                        tarn__pool_piece **out_piece) {
  sharer *self = self_of(strategy);
  size_t size = 0;
  if (request->no_grow) return tarn__source_refuse_growth(request);
  if (!tarn__source_round(strategy->pool, request->size, &size)) {
    return tarn__fail(TARN_E_INVALID, "shareable: %zu bytes overflow",
                      request->size);
  }
  TARN__TRY(tarn__source_check_limit(strategy->pool, size));
  object *o = tarn__host_alloc(sizeof *o);
  if (o == NULL) return TARN_E_NOMEM;
  o->size = size;
  request->asked = true;
  tarn__source_begin_ask(strategy, size, 1);
  tarn_status status = make(device_of(self), request, o);
  tarn__source_end_ask(strategy, size);
  if (status == TARN_OK) return enter(self, o, out_piece);
  tarn__host_free(o, sizeof *o);
  return status;
}

static tarn_status give(tarn__pool_strategy *strategy,
                        tarn__pool_piece *piece) {
  object *o = piece->home;
  uint64_t last = piece->freed_on;
  tarn__source_join(strategy, piece);
  return drop(self_of(strategy), o, last);
}

// Each lost one is tried once. It is taken out of the list for that, since
// another thread may do the same.
static tarn_status trim(tarn__pool_strategy *strategy, size_t target,
                        unsigned how) {
  sharer *self = self_of(strategy);
  tarn_status first = TARN_OK;
  size_t count = 0;
  const tarn_list *node = NULL;
  (void)target;
  (void)how;
  tarn_list_for_each (node, &self->lost)
    count++;
  for (; count > 0 && !tarn_list_empty(&self->lost); count--) {
    object *o = object_at(self->lost.next);
    tarn_list_del(&o->node);
    tarn__source_begin_ask(strategy, 0, 0);
    tarn_status status = TARN_OK;
    bool gone = clear(device_of(self), o, &status);
    tarn__source_end_ask(strategy, 0);
    tarn__keep_first(&first, status);
    end(self, o, gone);
  }
  return first;
}

// Nothing ever is.
static void survey(tarn__pool_strategy *strategy, tarn__pool_survey *out) {
  (void)strategy;
  (void)out;
}

static void visit_memory(const tarn__pool_strategy *strategy,
                         tarn__pool_memory_fn *visit, void *context) {
  const sharer *self = (const sharer *)(const void *)strategy;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, &self->objects)
    visit(context, object_at(node)->address, object_at(node)->size);
}

static tarn_status check(tarn__pool_strategy *strategy, size_t *out_idle) {
  (void)strategy;
  *out_idle = 0;
  return TARN_OK;
}

const tarn__pool_strategy_type tarn__share_pool = {
    .table = {.name = "shareable", .size = sizeof(sharer)},
    .init = init,
    .deinit = deinit,
    .take = take,
    .give = give,
    .let_go = give,
    .trim = trim,
    .survey = survey,
    .visit_memory = visit_memory,
    .check = check,
};

// --- other processes -------------------------------------------------------

static tarn_status check_pool(const tarn_pool *pool, const char *what) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK || (pool->flags & TARN_POOL_SHAREABLE) != 0) {
    return status;
  }
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "pool: %s needs a pool made with TARN_POOL_SHAREABLE",
                    what);
}

static object *object_of(const tarn__pool_piece *piece) {
  return piece != NULL && piece->live ? piece->home : NULL;
}

// The block cannot be freed while it is marked as |resizing|. Only exports may
// have marked it.
static tarn_status begin_export(tarn_pool *pool, const tarn_block *block,
                                tarn__pool_piece **out_piece) {
  tarn__pool_piece *piece = tarn__pieces_at(&pool->pieces, block->id);
  const object *known = object_of(piece);
  bool exporting = known != NULL && known->exports != 0;
  if (exporting) piece->resizing = false;
  tarn_status status = tarn__front_find_block(pool, "export", block, out_piece);
  if (exporting) piece->resizing = true;
  if (status != TARN_OK) return status;
  (*out_piece)->resizing = true;
  object_of(*out_piece)->exports++;
  return TARN_OK;
}

static void end_export(tarn__pool_piece *piece) {
  piece->resizing = --object_of(piece)->exports != 0;
}

tarn_status tarn_pool_export(const tarn_block *block, int *out_fd) {
  tarn__pool_piece *piece = NULL;
  *out_fd = 0;
  if (block == NULL) return tarn__fail(TARN_E_INVALID, "export: NULL");
  tarn_pool *pool = block->pool;
  TARN__TRY(check_pool(pool, "tarn_pool_export"));
  tarn__front_enter(pool);
  tarn_status status = begin_export(pool, block, &piece);
  if (status == TARN_OK) {
    tarn_memory memory = object_of(piece)->memory;
    tarn__front_leave(pool);
    status = tarn_memory_export(pool->supply.device, memory, out_fd);
    tarn__front_enter(pool);
    end_export(piece);
  }
  tarn__front_leave(pool);
  return status;
}

tarn_status tarn_pool_import(tarn_pool *pool, int fd, size_t size,
                             tarn_block *out_block) {
  *out_block = (tarn_block){0};
  TARN__TRY(check_pool(pool, "tarn_pool_import"));
  if (fd < 0 || size == 0) {
    return tarn__fail(TARN_E_INVALID,
                      "pool: import of descriptor %d as %zu "
                      "bytes",
                      fd, size);
  }
  importing wanted = {
      .request = {.size = size, .align = pool->natural_align, .imports = true},
      .fd = fd};
  tarn__pool_note what = {.size = size};
  tarn__front_enter(pool);
  return tarn__take_found(pool, &wanted.request, &what, NULL, out_block);
}
