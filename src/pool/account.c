// What a pool counts besides its sums: which of it is on, and its last events.
#include "base/status.h"
#include "pool/front.h"

enum {
  ALL_COUNTERS =
      TARN_COUNT_TAGS | TARN_COUNT_PEAKS | TARN_COUNT_EVENTS | TARN_COUNT_TIMES,
  DEFAULT_EVENTS = 4096,
};

// --- what is noted ---------------------------------------------------------

static tarn_pool_event *note(tarn_pool *pool, tarn_pool_event_kind kind) {
  return tarn__events_add(&pool->events, kind,
                          tarn__front_counts(pool, TARN_COUNT_TIMES));
}

void tarn__front_note_block(tarn_pool *pool, tarn_pool_event_kind kind,
                            const tarn__pool_piece *piece, size_t size_before,
                            uint64_t serial) {
  tarn_pool_event *event = note(pool, kind);
  event->address = piece->address;
  event->size = piece->requested;
  event->size_before = size_before;
  event->stream = serial;
  event->tag = piece->tag;
}

void tarn__front_note_failure(tarn_pool *pool,
                              const tarn__pool_request *request, tarn_tag tag,
                              tarn_status why) {
  tarn_pool_event *event = note(pool, TARN_POOL_EVENT_FAIL);
  event->size = request->size - request->guard;
  event->stream = request->serial;
  event->tag = tag;
  event->status = why;
}

void tarn__front_note_memory(tarn_pool *pool, tarn_pool_event_kind kind,
                             tarn_addr address, size_t size, uint64_t serial) {
  if (!tarn__front_counts(pool, TARN_COUNT_EVENTS) || size == 0) return;
  tarn_pool_event *event = note(pool, kind);
  event->address = address;
  event->size = size;
  event->stream = serial;
}

void tarn__front_note_switch(tarn_pool *pool) {
  if (!tarn__front_counts(pool, TARN_COUNT_EVENTS)) return;
  (void)note(pool, TARN_POOL_EVENT_SWITCH);
}

void tarn__front_note_charge(tarn_pool *pool, tarn_pool_event_kind kind,
                             size_t size, tarn_tag tag) {
  if (!tarn__front_counts(pool, TARN_COUNT_EVENTS)) return;
  tarn_pool_event *event = note(pool, kind);
  event->size = size;
  event->tag = tag;
}

// --- switches --------------------------------------------------------------

static tarn_status account_locked(tarn_pool *pool, uint32_t counters) {
  bool needs_ring =
      (counters & TARN_COUNT_EVENTS) != 0 && pool->events.room == 0;
  if (needs_ring) {
    tarn_status status = tarn__events_make_room(&pool->events, DEFAULT_EVENTS);
    if (status != TARN_OK) return status;
  }
  if (!tarn__front_counts(pool, TARN_COUNT_EVENTS)) {
    pool->events.since = pool->events.next;
  }
  pool->stats.counters = counters;
  tarn__raise_peak(pool->stats.live_bytes, &pool->stats.live_peak_bytes);
  return TARN_OK;
}

tarn_status tarn_pool_account(tarn_pool *pool, uint32_t counters) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  if ((counters & ~(uint32_t)ALL_COUNTERS) != 0) {
    return tarn__fail(TARN_E_INVALID, "pool: no counters 0x%x", counters);
  }
  tarn__front_enter(pool);
  if (pool->stats.counters != counters) tarn__step_layout_drop(pool);
  status = account_locked(pool, counters);
  tarn__front_leave(pool);
  return status;
}

// Without a ring there is nothing to be written to.
tarn_status tarn_pool_account_ring(tarn_pool *pool, size_t count) {
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  tarn__front_enter(pool);
  status = tarn__events_make_room(&pool->events, count);
  if (count == 0) pool->stats.counters &= ~(uint32_t)TARN_COUNT_EVENTS;
  tarn__front_leave(pool);
  return status;
}

tarn_status tarn_pool_events(tarn_pool *pool, uint64_t from,
                             tarn_pool_event *out, size_t room,
                             size_t *out_count, uint64_t *out_next) {
  *out_count = 0;
  *out_next = 0;
  tarn_status status = tarn__front_check_pool(pool);
  if (status != TARN_OK) return status;
  if (out == NULL && room != 0) {
    return tarn__fail(TARN_E_INVALID, "pool events: NULL");
  }
  tarn__front_enter(pool);
  *out_count = tarn__events_read(&pool->events, from, out, room, out_next);
  tarn__front_leave(pool);
  return TARN_OK;
}
