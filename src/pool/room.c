// Room: the bytes that the limit and the device leave for a pool.
//
// A query of the device is a call of the driver or of the system, so a pool
// that grows by little asks rarely: each answer grants a small part of the free
// memory as credit, within which the pool grows without a query. A request
// above the credit is always compared with the memory that is free now.
#include "pool/reclaim.h"

#include <stdio.h>

#include "base/bytes.h"
#include "base/status.h"

enum {
  CREDIT_PARTS = 64,  // one part of the free memory is credit
  ASKED_AGAIN = 4,    // what changes under every answer is taken as unknown
};

static size_t difference(size_t a, size_t b) {
  return a > b ? a - b : 0;
}

static size_t sum(size_t a, size_t b) {
  size_t result = 0;
  return tarn_size_add(a, b, &result) ? result : SIZE_MAX;
}

// --- what the device has ---------------------------------------------------

typedef struct memory {
  size_t total;  // 0: unknown
  size_t free;
} memory;

// A dry pool has its limit and no more, which is checked elsewhere. Memory that
// another process has exported exists already, however little is free. For
// other blocks of such a pool the device reports its memory when it is asked.
static bool is_unbounded(const tarn_pool *pool) {
  bool dry = (pool->flags & TARN_POOL_DRY) != 0;
  return (dry && pool->stats.limit_bytes != 0) ||
         (pool->flags & TARN_POOL_SHAREABLE) != 0;
}

// Counts up with all that goes to the device or comes of it.
static uint64_t calls_so_far(const tarn_pool *pool) {
  return pool->stats.device_frees + pool->stats.device_allocs;
}

static tarn_status ask_once(tarn_pool *pool, memory *out) {
  const tarn__pool_supply *supply = &pool->supply;
  tarn__front_leave(pool);
  tarn_status status = tarn__supply_memory(supply, &out->total, &out->free);
  tarn__front_reenter(pool);
  return status;
}

// The free memory now. Memory that the pool gave back after the answer would be
// neither in the answer nor with the pool: then the device is asked again.
static memory ask_device(tarn_pool *pool) {
  memory m = {.total = 0};
  if (is_unbounded(pool)) return m;
  for (int i = 0; i < ASKED_AGAIN; i++) {
    uint64_t calls = calls_so_far(pool);
    size_t pending = pool->pending;
    if (ask_once(pool, &m) != TARN_OK) break;
    if (calls_so_far(pool) == calls && pool->pending == pending) return m;
  }
  return (memory){.total = 0};
}

// Such pools are not queried: the limit, or the caller's memory, is all there
// is.
static bool is_final(const tarn_pool *pool) {
  return (pool->flags & TARN_POOL_DRY) != 0 || tarn__front_has_own(pool);
}

// Whether |m.free| bounds allocations. A driver that frees in the order of
// streams may keep memory and count it as used, and one that never reports any
// free memory does not know.
static bool is_exact(const tarn_pool *pool, memory m) {
  return is_final(pool) || (!pool->current->ordered && m.free != 0);
}

// What there can be for a request now; SIZE_MAX: unknown.
static size_t room_now(const tarn_pool *pool, memory m) {
  if (m.total == 0) return SIZE_MAX;
  return is_exact(pool, m) ? sum(m.free, tarn__room_idle(pool))
                           : difference(m.total, tarn__room_awake(pool));
}

// The same if all blocks were freed.
static size_t room_when_freed(const tarn_pool *pool, memory m) {
  if (m.total == 0) return SIZE_MAX;
  return is_exact(pool, m) ? sum(m.free, tarn__room_held(pool)) : m.total;
}

// --- checking --------------------------------------------------------------

static tarn_status refuse(const tarn_pool *pool, memory m) {
  char text[TARN__BYTES_TEXT];
  bool exact = is_exact(pool, m);
  if (tarn__front_has_own(pool)) return tarn__source_refuse_own();
  return tarn__fail(TARN_FULL, "there are only %s%s",
                    tarn__bytes_text(exact ? m.free : m.total, text),
                    exact ? " free" : "");
}

tarn_status tarn__room_check_growth(tarn_pool *pool, size_t size) {
  if (size > SIZE_MAX / 4) return TARN_OK;
  if (size > tarn__front_limit(pool)) {
    return tarn__source_check_limit(pool, size);
  }
  size_t growth = difference(size, tarn__room_idle(pool));
  if (growth <= pool->credit) {
    pool->credit -= growth;
    return TARN_OK;
  }
  memory m = ask_device(pool);
  size_t room = room_now(pool, m);
  if (size > room) return refuse(pool, m);
  pool->credit = room != SIZE_MAX ? (room - size) / CREDIT_PARTS : 0;
  return TARN_OK;
}

bool tarn__room_can_fit(tarn_pool *pool, const tarn__pool_request *request) {
  if (request->size > tarn__front_limit(pool)) return false;
  if (request->no_grow) return request->size <= tarn__room_held(pool);
  return request->charge ||
         request->size <= room_when_freed(pool, ask_device(pool));
}

tarn_status tarn__room_lacks(const tarn_pool *pool, const char *do_what,
                             size_t size) {
  char reason[TARN__ERROR_TEXT];
  char place[64];
  char text[TARN__BYTES_TEXT];
  snprintf(reason, sizeof reason, "%s", tarn_last_error());
  return tarn__fail(TARN_FULL, "pool of %s: no room to %s %s: %s",
                    tarn_place_text(pool->place, place, sizeof place), do_what,
                    tarn__bytes_text(size, text), reason);
}
