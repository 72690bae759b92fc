// What all synced buffers share of a device.
//
//   couriers   in ── stream, users       current: for who asks next
//              out ─ stream, users
//   retired    stream, users ── ...      failed, but somebody still holds them
//   spare      flag, flag, ...           of reached or forgotten marks
//
// Invariants:
//   * a courier that is retired has users; the last of them ends it
//   * a spare flag is nobody's: whatever mark its event bears does not count
//   * without users and events that are out, asking to close leaves nothing of
//     the station's that keeps the device open
#include "synced/station.h"

#include <pthread.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "synced/closing.h"

enum { MOST_SPARE = 256 };

typedef struct courier {
  struct courier *next;  // retired too
  tarn_stream *stream;
  size_t users;
} courier;

struct tarn__synced_copy_streams {
  uint32_t generation;  // of forks

  pthread_mutex_t streams_lock;  // guards the next two
  courier *current[TARN__COURIER_COUNT];
  courier *retired;

  pthread_mutex_t flags_lock;  // guards all below
  tarn__synced_event *spare[MOST_SPARE];
  size_t spare_count;
};

// --- ending ----------------------------------------------------------------

// What its last copies came to, those know who asked for them.
static void destroy_courier(courier *ended) {
  if (ended == NULL) return;
  (void)tarn_stream_destroy(ended->stream);
  tarn__host_free(ended, sizeof *ended);
}

static void drop_couriers(tarn__synced_copy_streams *station) {
  for (int way = 0; way < TARN__COURIER_COUNT; way++) {
    destroy_courier(station->current[way]);
    station->current[way] = NULL;
  }
  while (station->retired != NULL) {
    courier *ended = station->retired;
    station->retired = ended->next;
    destroy_courier(ended);
  }
}

static void destroy_flag(tarn__synced_event *flag) {
  (void)tarn_event_destroy(flag->event);
  tarn__host_free(flag, sizeof *flag);
}

static void drop_flags(tarn__synced_copy_streams *station) {
  while (station->spare_count > 0)
    destroy_flag(station->spare[--station->spare_count]);
}

static bool is_used(const tarn__synced_copy_streams *station) {
  for (int way = 0; way < TARN__COURIER_COUNT; way++) {
    const courier *current = station->current[way];
    if (current != NULL && current->users > 0) return true;
  }
  return station->retired != NULL;
}

// Idle streams and events are no reason to stay open. If somebody else has one,
// they are made anew when they are wanted.
static tarn_status ask(tarn_device *device,
                       tarn__synced_copy_streams *station) {
  tarn_status status = tarn__closing_ask(device);
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&station->streams_lock);
  bool used = is_used(station);
  if (!used) drop_couriers(station);
  pthread_mutex_unlock(&station->streams_lock);
  if (used) {
    return tarn__fail(TARN_E_STATE,
                      "%s: cannot close: synced buffers copy there",
                      tarn_device_name(device));
  }
  pthread_mutex_lock(&station->flags_lock);
  drop_flags(station);
  pthread_mutex_unlock(&station->flags_lock);
  return TARN_OK;
}

// In a child of fork the locks may be held by threads that are not there.
static void release(tarn__synced_copy_streams *station) {
  if (station->generation == tarn__os_generation()) {
    pthread_mutex_destroy(&station->streams_lock);
    pthread_mutex_destroy(&station->flags_lock);
  }
  tarn__host_free(station, sizeof *station);
}

static tarn_status on_close(tarn_device *device, void *pointer, bool commit) {
  tarn__synced_copy_streams *station = pointer;
  if (!commit) return ask(device, station);
  bool ours = station->generation == tarn__os_generation();
  if (ours) tarn__closing_commit(device);
  drop_couriers(station);
  drop_flags(station);
  release(station);
  return TARN_OK;
}

// --- making ----------------------------------------------------------------

static tarn__synced_copy_streams *create(void) {
  tarn__synced_copy_streams *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return NULL;
  made->generation = tarn__os_generation();
  pthread_mutex_init(&made->streams_lock, NULL);
  pthread_mutex_init(&made->flags_lock, NULL);
  return made;
}

static tarn_status attach(tarn_device *device,
                          tarn__synced_copy_streams **out) {
  tarn__synced_copy_streams *made = create();
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status =
      tarn_device_attach(device, TARN_SLOT_SYNCED, made, on_close);
  if (status == TARN_OK) {
    *out = made;
    return TARN_OK;
  }
  release(made);
  *out = tarn_device_attached(device, TARN_SLOT_SYNCED);
  return *out != NULL ? TARN_OK : status;  // another was quicker
}

tarn_status tarn__station_of(tarn_device *device,
                             tarn__synced_copy_streams **out_station) {
  *out_station = tarn_device_attached(device, TARN_SLOT_SYNCED);
  return *out_station != NULL ? TARN_OK : attach(device, out_station);
}

// --- couriers --------------------------------------------------------------

static bool has_failed(tarn_stream *stream) {
  tarn_status status = tarn_stream_query(stream);
  return status != TARN_OK && status != TARN_PENDING;
}

static tarn_status create_courier(tarn_device *device, courier **out) {
  courier *made = tarn__host_alloc(sizeof *made);
  if (made == NULL) return TARN_E_NOMEM;
  tarn_status status = tarn_stream_create(device, &made->stream);
  if (status != TARN_OK) {
    tarn__host_free(made, sizeof *made);
    return status;
  }
  *out = made;
  return TARN_OK;
}

// Takes a failed one out; returns it if nobody holds it.
static courier *retire(tarn__synced_copy_streams *station, courier **current) {
  courier *failed = *current;
  if (failed == NULL || !has_failed(failed->stream)) return NULL;
  *current = NULL;
  if (failed->users == 0) return failed;
  failed->next = station->retired;
  station->retired = failed;
  return NULL;
}

tarn_status tarn__station_courier(tarn_device *device,
                                  tarn__synced_copy_stream way,
                                  tarn_stream **out_stream) {
  tarn__synced_copy_streams *station = NULL;
  *out_stream = NULL;
  tarn_status status = tarn__station_of(device, &station);
  if (status != TARN_OK) return status;
  courier **current = &station->current[way];
  pthread_mutex_lock(&station->streams_lock);
  courier *ended = retire(station, current);
  if (*current == NULL) status = create_courier(device, current);
  if (status == TARN_OK) {
    (*current)->users++;
    *out_stream = (*current)->stream;
  }
  pthread_mutex_unlock(&station->streams_lock);
  destroy_courier(ended);
  return status;
}

static bool release_current(tarn__synced_copy_streams *station,
                            const tarn_stream *stream) {
  for (int way = 0; way < TARN__COURIER_COUNT; way++) {
    courier *current = station->current[way];
    if (current == NULL || current->stream != stream) continue;
    current->users--;
    return true;
  }
  return false;
}

// Returns the one that has no users any more, taken out.
static courier *release_retired(tarn__synced_copy_streams *station,
                                const tarn_stream *stream) {
  courier **link = &station->retired;
  while (*link != NULL && (*link)->stream != stream)
    link = &(*link)->next;
  courier *found = *link;
  if (found == NULL || --found->users > 0) return NULL;
  *link = found->next;
  return found;
}

void tarn__station_release_courier(tarn_stream *stream) {
  if (stream == NULL) return;
  tarn_device *device = tarn_stream_device(stream);
  tarn__synced_copy_streams *station =
      tarn_device_attached(device, TARN_SLOT_SYNCED);
  if (station == NULL) return;  // a parent's, before a fork
  courier *ended = NULL;
  pthread_mutex_lock(&station->streams_lock);
  if (!release_current(station, stream)) {
    ended = release_retired(station, stream);
  }
  pthread_mutex_unlock(&station->streams_lock);
  destroy_courier(ended);
}

// --- flags -----------------------------------------------------------------

static tarn_status make_flag(tarn_device *device,
                             tarn__synced_event **out_flag) {
  tarn__synced_event *flag = tarn__host_alloc(sizeof *flag);
  if (flag == NULL) return TARN_E_NOMEM;
  flag->device = device;
  tarn_status status = tarn_event_create(device, &flag->event);
  if (status == TARN_OK) {
    *out_flag = flag;
  } else {
    tarn__host_free(flag, sizeof *flag);
  }
  return status;
}

tarn_status tarn__station_take_flag(tarn_device *device,
                                    tarn__synced_event **out_flag) {
  tarn__synced_copy_streams *station = NULL;
  *out_flag = NULL;
  tarn_status status = tarn__station_of(device, &station);
  if (status != TARN_OK) return status;
  pthread_mutex_lock(&station->flags_lock);
  if (station->spare_count > 0) {
    *out_flag = station->spare[--station->spare_count];
  }
  pthread_mutex_unlock(&station->flags_lock);
  return *out_flag != NULL ? TARN_OK : make_flag(device, out_flag);
}

// A parent's device may be gone by now, so it is the event that is asked. Who
// never forked need not ask.
static bool is_of_a_parent(tarn_event *event) {
  return tarn__os_generation() != 0 && tarn_event_query(event) == TARN_E_STATE;
}

static bool keep(tarn__synced_copy_streams *station, tarn__synced_event *flag) {
  pthread_mutex_lock(&station->flags_lock);
  bool kept = station->spare_count < MOST_SPARE;
  if (kept) station->spare[station->spare_count++] = flag;
  pthread_mutex_unlock(&station->flags_lock);
  return kept;
}

void tarn__station_give_flag(tarn__synced_event *flag) {
  if (flag == NULL) return;
  tarn__synced_copy_streams *station = NULL;
  if (!is_of_a_parent(flag->event)) {
    station = tarn_device_attached(flag->device, TARN_SLOT_SYNCED);
  }
  if (station != NULL && keep(station, flag)) return;
  destroy_flag(flag);
}
