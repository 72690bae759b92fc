// Which pools belong to which place: each device has one shared pool for each
// kind of place, and a list of the pools that programs created.
#include <pthread.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/capture.h"
#include "pool/extents.h"
#include "pool/front.h"

enum { KINDS = TARN_PLACE_UNIFIED + 1 };

static const uint32_t FLAGS =
    TARN_POOL_DEFER | TARN_POOL_DRY | TARN_POOL_SHAREABLE;

typedef struct fronts {
  pthread_mutex_t lock;  // guards the making of each, and |own|
  // Each is set once, and ends with the device: a reader needs no lock.
  _Atomic(tarn_pool *) by_kind[KINDS];
  tarn_list own;  // created pools
} fronts;

// --- the device's end ------------------------------------------------------

enum { OUT_TEXT = 384 };

// Whether something keeps the pool from ending; |out| says what.
static bool is_used(tarn_pool *pool, char out[OUT_TEXT]) {
  tarn__front_enter(pool);
  bool used = tarn__front_describe_out(pool, out, OUT_TEXT);
  tarn__front_leave(pool);
  return used;
}

static tarn_status object_if_used(tarn_device *device, tarn_pool *pool) {
  char out[OUT_TEXT];
  TARN__TRY(tarn__front_check_pool(pool));
  if (!is_used(pool, out)) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "%s: cannot close: %s",
                    tarn_device_name(device), out);
}

// Their owners destroy them: a device with such pools cannot close.
static tarn_status object_if_owned(tarn_device *device, fronts *all) {
  size_t count = 0;
  const tarn_list *node = NULL;
  pthread_mutex_lock(&all->lock);
  tarn_list_for_each (node, &all->own)
    count++;
  pthread_mutex_unlock(&all->lock);
  if (count == 0) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "%s: cannot close: %zu pool%s of tarn_pool_create %s there",
                    tarn_device_name(device), count, count == 1 ? "" : "s",
                    count == 1 ? "is" : "are");
}

// In a child of fork, created pools are in a list that no code reads any more;
// their owners destroy them.
static tarn_status on_close(tarn_device *device, void *pointer, bool commit) {
  fronts *all = pointer;
  tarn_status first = commit ? TARN_OK : object_if_owned(device, all);
  for (int kind = 0; kind < KINDS; kind++) {
    tarn_pool *pool = all->by_kind[kind];
    if (pool == NULL) continue;
    tarn__keep_first(&first, commit ? tarn__front_destroy(pool)
                                    : object_if_used(device, pool));
  }
  if (commit) {
    pthread_mutex_destroy(&all->lock);
    tarn__host_free(all, sizeof *all);
  }
  return first;
}

// --- finding and making ----------------------------------------------------

static tarn_status fronts_of(tarn_device *device, fronts **out) {
  *out = tarn_device_attached(device, TARN_SLOT_POOL);
  if (*out != NULL) return TARN_OK;
  fronts *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  pthread_mutex_init(&made->lock, NULL);
  tarn_list_init(&made->own);
  tarn_status status =
      tarn_device_attach(device, TARN_SLOT_POOL, made, on_close);
  if (status == TARN_OK) {
    *out = made;
    return TARN_OK;
  }
  pthread_mutex_destroy(&made->lock);
  tarn__host_free(made, sizeof *made);
  if (status != TARN_E_STATE) return status;
  *out = tarn_device_attached(device, TARN_SLOT_POOL);  // another was quicker
  return TARN_OK;
}

// All places of cpu:0 are one place.
static tarn_place canonical(tarn_place place) {
  return tarn_place_equal(place, TARN_HOST) ? TARN_HOST : place;
}

static tarn_pool *shared_of(const fronts *all, tarn_place_kind kind) {
  return atomic_load_explicit(&all->by_kind[kind], memory_order_acquire);
}

// Unless another thread has just made it.
static tarn_status make_shared(fronts *all, tarn_place place,
                               tarn_pool **out_pool) {
  tarn_status status = TARN_OK;
  pthread_mutex_lock(&all->lock);
  *out_pool = shared_of(all, place.kind);
  if (*out_pool == NULL) {
    tarn_pool_options plain = {.struct_size = sizeof plain};
    status = tarn__front_create(place, &plain, out_pool);
    atomic_store_explicit(&all->by_kind[place.kind], *out_pool,
                          memory_order_release);
  }
  pthread_mutex_unlock(&all->lock);
  return status;
}

tarn_status tarn_pool_of(tarn_place place, tarn_pool **out_pool) {
  *out_pool = NULL;
  tarn_device *device = NULL;
  fronts *all = NULL;
  TARN__TRY(tarn__place_device(place, &device));
  TARN__TRY(fronts_of(device, &all));
  place = canonical(place);
  *out_pool = shared_of(all, place.kind);
  return *out_pool != NULL ? TARN_OK : make_shared(all, place, out_pool);
}

// --- what has an address ---------------------------------------------------

typedef struct grounds {
  fronts *all;  // NULL: the place has no pools
  tarn_place_kind kind;
  tarn_pool *shared;  // by all; NULL: no pool yet
} grounds;

static inline tarn_status pools_at(tarn_place place, grounds *out) {
  void *attached = NULL;
  tarn_status status =
      tarn__place_attached(place, TARN_SLOT_POOL, &out->kind, &attached);
  out->all = attached;
  out->shared = attached != NULL ? shared_of(attached, out->kind) : NULL;
  return status;
}

typedef struct search {
  tarn_addr address;
  tarn_status status;
  tarn_block *block;  // that contains the address; its pool NULL: no block
  size_t *offset;
  bool remembers;          // also of freed blocks
  tarn_pool *starts;       // where a block starts there, or did
  tarn__pool_start known;  // which of the two
} search;

// True: the search is over.
typedef bool look(tarn_pool *pool, search *s);

// Addresses of a dry pool may be another's as well, and have no memory. The
// caller's memory may be a block of another pool, which is the pool that the
// place has.
static bool may_have(const tarn_pool *pool, tarn_place_kind kind) {
  return pool->place.kind == kind && pool->supply.dry == NULL &&
         !tarn__front_has_own(pool);
}

// The lock, which keeps the pools from ending, is held.
static void look_in_own_locked(const grounds *where, look *look_in, search *s) {
  const tarn_list *node = NULL;
  bool done = false;
  tarn_list_for_each (node, &where->all->own) {
    if (done) break;
    tarn_pool *pool = tarn_list_entry(node, tarn_pool, own_node);
    done = may_have(pool, where->kind) && look_in(pool, s);
  }
}

static void look_in_own(const grounds *where, look *look_in, search *s) {
  if (where->all == NULL) return;
  pthread_mutex_lock(&where->all->lock);
  look_in_own_locked(where, look_in, s);
  pthread_mutex_unlock(&where->all->lock);
}

static bool look_around(tarn_pool *pool, search *s) {
  s->status = tarn__front_around(pool, s->address, s->block, s->offset);
  return s->status != TARN_OK || s->block->pool != NULL;
}

static tarn_status none_around(tarn_place place, tarn_addr address) {
  char text[64];
  return tarn__fail(
      TARN_E_INVALID, "no block of the pools of %s has 0x%llx in it",
      tarn_place_text(place, text, sizeof text), (unsigned long long)address);
}

// The shared pool first: it needs no lock, and has most blocks.
tarn_status tarn_block_of(tarn_place place, tarn_addr address,
                          tarn_block *out_block, size_t *out_offset) {
  grounds where;
  size_t unused = 0;
  if (out_offset == NULL) out_offset = &unused;
  *out_block = (tarn_block){0};
  *out_offset = 0;
  tarn_status status = pools_at(place, &where);
  if (where.shared != NULL) {
    status = tarn__front_around(where.shared, address, out_block, out_offset);
  }
  if (status != TARN_OK || out_block->pool != NULL) return status;
  search s = {.address = address, .block = out_block, .offset = out_offset};
  look_in_own(&where, look_around, &s);
  if (s.status != TARN_OK || out_block->pool != NULL) return s.status;
  return none_around(place, address);
}

// The first pool's error text says that there is no block.
static bool look_for_start(tarn_pool *pool, search *s) {
  tarn__pool_start known = tarn__front_start_at(pool, s->address, s->remembers);
  if (s->starts == NULL || known > s->known) {
    s->starts = pool;
    s->known = known;
  }
  return known == TARN__START_OUT;
}

static tarn_status no_pools(tarn_place place, tarn_addr address) {
  char text[64];
  return tarn__fail(
      TARN_E_INVALID, "free: no block starts at 0x%llx: %s has no pools",
      (unsigned long long)address, tarn_place_text(place, text, sizeof text));
}

// The pool that knows most of the address checks the invariants. It may have no
// block out, so that the lock has to keep it from ending.
static tarn_status refuse_free(const grounds *where, tarn_place place,
                               tarn_addr address, const tarn_stream *stream) {
  search s = {.address = address, .remembers = true};
  if (where->all == NULL) return no_pools(place, address);
  pthread_mutex_lock(&where->all->lock);
  if (where->shared != NULL) (void)look_for_start(where->shared, &s);
  look_in_own_locked(where, look_for_start, &s);
  tarn_status status = s.starts != NULL
                           ? tarn__front_refuse_free(s.starts, address, stream)
                           : no_pools(place, address);
  pthread_mutex_unlock(&where->all->lock);
  return status;
}

// A pool ends only when it has no live block, so the pool of a live block may
// be used without the lock.
tarn_status tarn_free(tarn_place place, tarn_addr address,
                      tarn_stream *stream) {
  grounds where;
  search s = {.address = address};
  TARN__TRY(pools_at(place, &where));
  if (where.shared == NULL || !look_for_start(where.shared, &s)) {
    look_in_own(&where, look_for_start, &s);
  }
  return s.known == TARN__START_OUT
             ? tarn_pool_free_address(s.starts, address, stream)
             : refuse_free(&where, place, address, stream);
}

// --- the strategy ----------------------------------------------------------

tarn_status tarn_pool_set_strategy(tarn_pool *pool, const char *strategy) {
  tarn__pool_strategy *fresh = NULL;
  TARN__TRY(tarn__front_check_pool(pool));
  if ((pool->flags & (TARN_POOL_DEFER | TARN_POOL_SHAREABLE)) != 0 ||
      tarn__front_has_own(pool)) {
    return tarn__fail(
        TARN_E_UNSUPPORTED,
        "pool: the strategy of a pool made with TARN_POOL_DEFER or "
        "TARN_POOL_SHAREABLE, or over memory of the caller, cannot change");
  }
  if (strategy == NULL) strategy = tarn__strategy_default();
  TARN__TRY(tarn__strategy_create(pool, strategy, &fresh));
  return tarn__front_switch(pool, fresh);
}

// --- pools that programs create --------------------------------------------

// Memory of the caller's is all that there is, so that nothing can limit it.
static tarn_status check_memory(const tarn_pool_options *options) {
  tarn_pool_memory memory = options->memory;
  if (memory.address == 0 && memory.size == 0) return TARN_OK;
  bool is_some = memory.address != 0 && memory.size != 0 &&
                 tarn__extents_reach(memory.address, memory.size);
  bool is_all = options->limit == 0 && (options->flags & TARN_POOL_DRY) == 0;
  if (is_some && is_all) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "pool options: memory of %zu bytes at 0x%llx does not go "
                    "with a limit of %zu and flags 0x%x",
                    memory.size, (unsigned long long)memory.address,
                    options->limit, options->flags);
}

// A shareable pool takes no other flag, no strategy and no memory of the
// caller.
static tarn_status check_sharing(const tarn_pool_options *options) {
  if ((options->flags & TARN_POOL_SHAREABLE) == 0) return TARN_OK;
  if (options->flags == TARN_POOL_SHAREABLE && options->strategy == NULL &&
      options->memory.size == 0) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "pool options: TARN_POOL_SHAREABLE, and flags 0x%x, "
                    "strategy %s, memory of %zu bytes besides",
                    options->flags & ~TARN_POOL_SHAREABLE,
                    options->strategy != NULL ? options->strategy : "NULL",
                    options->memory.size);
}

// All fields that the caller's version has; the others are 0.
static tarn_status read_options(const tarn_pool_options *given,
                                tarn_pool_options *out) {
  size_t size = 0;
  *out = (tarn_pool_options){.struct_size = sizeof *out};
  if (given == NULL) return TARN_OK;
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_pool_options, flags),
                         sizeof *out, &size)) {
    return tarn__fail(TARN_E_INVALID, "pool options: struct_size");
  }
  memcpy(out, given, size);
  out->struct_size = sizeof *out;
  if ((out->flags & ~FLAGS) != 0) {
    return tarn__fail(TARN_E_INVALID, "pool options: unknown flags in 0x%x",
                      out->flags);
  }
  TARN__TRY(check_sharing(out));
  return check_memory(out);
}

tarn_status tarn_pool_create(tarn_place place, const tarn_pool_options *options,
                             tarn_pool **out_pool) {
  tarn_device *device = NULL;
  fronts *all = NULL;
  tarn_pool *pool = NULL;
  tarn_pool_options known;
  *out_pool = NULL;
  TARN__TRY(read_options(options, &known));
  TARN__TRY(tarn__place_device(place, &device));
  TARN__TRY(fronts_of(device, &all));
  TARN__TRY(tarn__front_create(canonical(place), &known, &pool));
  pool->own = true;
  pthread_mutex_lock(&all->lock);
  tarn_list_add_tail(&all->own, &pool->own_node);
  pthread_mutex_unlock(&all->lock);
  *out_pool = pool;
  return TARN_OK;
}

static tarn_status check_end(tarn_pool *pool) {
  char place[64];
  char out[OUT_TEXT];
  tarn_place_text(pool->place, place, sizeof place);
  if (!pool->own) {
    return tarn__fail(TARN_E_STATE, "the pool of %s ends with its device",
                      place);
  }
  tarn__front_enter(pool);
  (void)tarn__capture_look(pool, 0, true);
  bool captures = pool->capture == TARN__CAPTURE_RUNNING ||
                  pool->capture == TARN__CAPTURE_NOTICED;
  bool graphs = pool->deferred != NULL;
  tarn__front_leave(pool);
  if (captures || graphs) {
    return tarn__fail(TARN_E_STATE, "a pool of %s cannot end: %s", place,
                      captures ? "a capture is under way"
                               : "a graph has blocks that were freed, which "
                                 "tarn_pool_end_graphs releases");
  }
  if (!is_used(pool, out)) return TARN_OK;
  return tarn__fail(TARN_E_STATE, "a pool of %s cannot end: %s", place, out);
}

tarn_status tarn_pool_destroy(tarn_pool *pool) {
  if (pool == NULL) return TARN_OK;
  TARN__TRY(tarn__not_in_callback());
  if (pool->generation != tarn__os_generation()) {
    if (pool->own) (void)tarn__front_destroy(pool);
    return TARN_OK;
  }
  TARN__TRY(check_end(pool));
  fronts *all = tarn_device_attached(pool->supply.device, TARN_SLOT_POOL);
  pthread_mutex_lock(&all->lock);
  tarn_list_del(&pool->own_node);
  pthread_mutex_unlock(&all->lock);
  return tarn__front_destroy(pool);
}
