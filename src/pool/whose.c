// The registry of pools, and the search for the block at an address.
//
// The registry's lock is taken before the locks of pools, which are taken one
// at a time.
#include "pool/front.h"

#include <pthread.h>
#include <stdio.h>

#include "base/os.h"
#include "base/status.h"

static struct {
  pthread_mutex_t lock;  // guards all below; taken around a fork
  tarn_list pools;       // by rising number
  uint64_t count;        // of those that ever were
} registry = {PTHREAD_MUTEX_INITIALIZER, {&registry.pools, &registry.pools}, 0};

static void lock_registry(void) {
  pthread_mutex_lock(&registry.lock);
}

static void unlock_registry(void) {
  pthread_mutex_unlock(&registry.lock);
}

TARN__WATCH_FORKS_BETWEEN static void watch_forks(void) {
  pthread_atfork(lock_registry, unlock_registry, unlock_registry);
}

void tarn__whose_enter(tarn_pool *pool) {
  lock_registry();
  pool->known_number = ++registry.count;
  tarn_list_add_tail(&registry.pools, &pool->known);
  unlock_registry();
}

void tarn__whose_forget(tarn_pool *pool) {
  lock_registry();
  tarn_list_del(&pool->known);
  unlock_registry();
}

// A parent's pools may be locked by threads that are not here.
static bool is_ours(const tarn_pool *pool) {
  return pool->generation == tarn__os_generation();
}

bool tarn__whose_next(uint64_t *number, tarn__pool_visit_fn *visit,
                      void *context, tarn_status *status) {
  bool found = false;
  const tarn_list *node = NULL;
  lock_registry();
  tarn_list_for_each (node, &registry.pools) {
    tarn_pool *pool = tarn_list_entry(node, tarn_pool, known);
    if (pool->known_number <= *number || !is_ours(pool)) continue;
    *number = pool->known_number;
    *status = visit(context, pool);
    found = true;
    break;
  }
  unlock_registry();
  return found;
}

// --- searching -------------------------------------------------------------

// Where an address was found.
typedef struct finding {
  bool live;
  tarn_addr start;
  tarn_tag tag;
  char place[64];
} finding;

static bool lies_in(const tarn__pool_piece *piece, tarn_addr address) {
  return piece->address != 0 && address >= piece->address &&
         address - piece->address < piece->size;
}

// The live block goes before memory that is idle.
static const tarn__pool_piece *piece_around(const tarn_pool *pool,
                                            tarn_addr address) {
  const tarn__pool_piece *idle = NULL;
  for (size_t id = 0; id < tarn__pieces_count(&pool->pieces); id++) {
    const tarn__pool_piece *piece =
        tarn__pieces_at(&pool->pieces, (uint32_t)id);
    if (!lies_in(piece, address)) continue;
    if (piece->live) return piece;
    idle = piece;
  }
  return idle;
}

static bool search(tarn_pool *pool, tarn_addr address, finding *out) {
  tarn__front_enter(pool);
  const tarn__pool_piece *piece = piece_around(pool, address);
  if (piece != NULL) {
    out->live = piece->live;
    out->start = piece->address;
    out->tag = piece->tag;
    tarn_place_text(pool->place, out->place, sizeof out->place);
  }
  tarn__front_leave(pool);
  return piece != NULL;
}

static bool search_others(const tarn_pool *pool, tarn_addr address,
                          finding *out) {
  bool found = false;
  const tarn_list *node = NULL;
  lock_registry();
  tarn_list_for_each (node, &registry.pools) {
    tarn_pool *other = tarn_list_entry(node, tarn_pool, known);
    if (other == pool || !is_ours(other)) continue;
    found = search(other, address, out);
    if (found) break;
  }
  unlock_registry();
  return found;
}

// --- saying it -------------------------------------------------------------

static tarn_status add_text(tarn_addr address, const finding *f) {
  char inside[48] = "";
  if (address != f->start) {
    snprintf(inside, sizeof inside, "%llu bytes into ",
             (unsigned long long)(address - f->start));
  }
  return tarn__fail(TARN_E_INVALID, "%s; that is %s%s of the pool of %s: %s",
                    tarn_last_error(), inside,
                    f->live ? "a block" : "idle memory", f->place,
                    tarn_pool_tag_name(f->tag));
}

tarn_status tarn__whose_explain(tarn_pool *pool, tarn_addr address) {
  finding f = {.live = false};
  tarn__front_enter(pool);
  bool is_said = tarn__front_at(pool, address) != NULL;
  tarn__front_leave(pool);
  if (is_said) return TARN_E_INVALID;
  bool found = search(pool, address, &f) || search_others(pool, address, &f);
  return found ? add_text(address, &f) : TARN_E_INVALID;
}
