// The ring of a pool's last events.
#include "pool/events.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"

uint64_t tarn__events_oldest(const tarn__pool_events *events) {
  uint64_t room = events->room;
  uint64_t within = events->next > room ? events->next - room : 0;
  return within > events->first ? within : events->first;
}

static tarn_pool_event *slot_of(const tarn__pool_events *events,
                                uint64_t number) {
  return &events->ring[number & (events->room - 1)];
}

// --- room ------------------------------------------------------------------

void tarn__events_deinit(tarn__pool_events *events) {
  tarn__host_free_array(events->ring, events->room, sizeof *events->ring);
  events->ring = NULL;
  events->room = 0;
  events->first = events->next;
}

tarn_status tarn__events_make_room(tarn__pool_events *events, size_t count) {
  tarn__pool_events grown = *events;
  if (count == 0) {
    tarn__events_deinit(events);
    return TARN_OK;
  }
  grown.room = 1;
  while (grown.room < count && grown.room <= SIZE_MAX / 2)
    grown.room *= 2;
  if (grown.room < count) {
    return tarn__fail(TARN_E_INVALID, "pool events: %zu are too many", count);
  }
  grown.ring = tarn__host_array(grown.room, sizeof *grown.ring);
  if (grown.ring == NULL) return TARN_E_NOMEM;
  grown.first = tarn__events_oldest(events);
  for (uint64_t n = tarn__events_oldest(&grown); n < grown.next; n++)
    *slot_of(&grown, n) = *slot_of(events, n);
  grown.first = tarn__events_oldest(&grown);
  tarn__events_deinit(events);
  *events = grown;
  return TARN_OK;
}

// --- writing and reading ---------------------------------------------------

static atomic_uint threads;  // that have a number
static _Thread_local uint32_t own_number
    __attribute__((tls_model("initial-exec")));

uint32_t tarn__events_thread(void) {
  if (own_number == 0) {
    own_number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
    own_number++;
  }
  return own_number;
}

tarn_pool_event *tarn__events_add(tarn__pool_events *events,
                                  tarn_pool_event_kind kind, bool timed) {
  assert(events->room != 0);
  tarn_pool_event *event = slot_of(events, events->next);
  *event = (tarn_pool_event){.number = events->next++, .kind = kind};
  event->time_ns = timed ? tarn__os_now_ns() : 0;
  event->thread = tarn__events_thread();
  return event;
}

// In two parts at most: up to the end of the ring, and from its beginning.
size_t tarn__events_read(const tarn__pool_events *events, uint64_t from,
                         tarn_pool_event *out, size_t room,
                         uint64_t *out_next) {
  uint64_t begin = tarn__events_oldest(events);
  if (from > begin) begin = from < events->next ? from : events->next;
  uint64_t there = events->next - begin;
  size_t count = there < room ? (size_t)there : room;
  for (size_t done = 0; done < count;) {
    size_t at = (size_t)(begin + done) & (events->room - 1);
    size_t part = events->room - at;
    if (part > count - done) part = count - done;
    memcpy(&out[done], &events->ring[at], part * sizeof *out);
    done += part;
  }
  *out_next = begin + count;
  return count;
}
