// Events in the order in which they began. Their two ends are numbered by one
// clock.
#include "disk_log.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "base/os.h"
#include "support/mix.h"
#include "support/run.h"

enum { EVENTS_MOST = 1000, SECTOR = 512, PART = 96 << 10 };

typedef enum kind { WRITE, RESIZE, SYNC, RENAME, FOLDER } kind;

typedef struct event {
  kind kind;
  size_t rank;
  int fd;
  uint64_t offset;  // of a write; the size that a file gets
  size_t size;      // of a write
  unsigned char *bytes;
  const void *request;  // of a queue
  size_t began, ended;  // moments; |ended| 0: it has not
} event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  // guards all below
static struct {
  bool records;
  event events[EVENTS_MOST];
  size_t count;
  size_t now;
  size_t syncs;
  disk_lie lie;
} seen;
static _Thread_local size_t own_rank;
static _Thread_local size_t own_syncs;

// --- recording ---------------------------------------------------------------

static event *begin_event(event what) {
  if (!seen.records) return NULL;
  require(seen.count < EVENTS_MOST);
  event *e = &seen.events[seen.count++];
  *e = what;
  e->rank = own_rank;
  e->began = ++seen.now;
  if (what.kind == WRITE) {
    e->bytes = malloc(what.size);
    require(e->bytes != NULL);
    memcpy(e->bytes, what.bytes, what.size);
  }
  if (what.kind == SYNC) {
    seen.syncs++;
    bool lies = ++own_syncs == seen.lie.number && own_rank == seen.lie.rank;
    if (lies) e->fd = -1;
  }
  return e;
}

static event *begin(event what) {
  pthread_mutex_lock(&lock);
  event *e = begin_event(what);
  pthread_mutex_unlock(&lock);
  return e;
}

// |size|: the bytes that were written.
static void end(event *e, bool did, size_t size) {
  pthread_mutex_lock(&lock);
  if (e != NULL && did) e->ended = ++seen.now;
  if (e != NULL && e->kind == WRITE) e->size = size;
  pthread_mutex_unlock(&lock);
}

void disk_log_be(size_t rank) {
  own_rank = rank;
  own_syncs = 0;
}

void disk_log_begin(disk_lie lie) {
  for (size_t i = 0; i < seen.count; i++)
    free(seen.events[i].bytes);
  memset(&seen, 0, sizeof seen);
  seen.lie = lie;
  seen.records = true;
}

void disk_log_end(void) {
  seen.records = false;
}

// --- queues ------------------------------------------------------------------

// Parts are short, so that there are many.
static int before(void *context, tarn__io_request *request) {
  (void)context;
  if (request->action == TARN__IO_READ) return 0;
  bool is_write = request->action == TARN__IO_WRITE;
  if (is_write && request->part > PART) request->part = PART;
  unsigned char *data = request->data;
  (void)begin((event){.kind = is_write ? WRITE : SYNC,
                      .fd = request->fd,
                      .offset = request->offset + request->from,
                      .size = request->part,
                      .bytes = is_write ? data + request->from : NULL,
                      .request = request});
  return 0;
}

static event *find(const tarn__io_request *request) {
  for (size_t i = seen.count; i-- > 0;)
    if (seen.events[i].request == request) return &seen.events[i];
  return NULL;
}

static int64_t after(void *context, const tarn__io_request *request,
                     int64_t result) {
  (void)context;
  if (request->action == TARN__IO_READ) return result;
  pthread_mutex_lock(&lock);
  event *e = find(request);
  pthread_mutex_unlock(&lock);
  end(e, result >= 0, result > 0 ? (size_t)result : 0);
  return result;
}

// NOLINTBEGIN(bugprone-reserved-identifier): --wrap makes these names.
tarn_status __real_tarn__io_open(const tarn__io_options *options,
                                 tarn__io **out_io);
tarn_status __wrap_tarn__io_open(const tarn__io_options *options,
                                 tarn__io **out_io);
bool __real_tarn__os_write_at(int fd, uint64_t offset, const void *bytes,
                              size_t size);
bool __wrap_tarn__os_write_at(int fd, uint64_t offset, const void *bytes,
                              size_t size);
bool __real_tarn__os_resize(int fd, uint64_t size);
bool __wrap_tarn__os_resize(int fd, uint64_t size);
bool __real_tarn__os_sync(int fd);
bool __wrap_tarn__os_sync(int fd);
tarn_status __real_tarn__os_file_commit(tarn__os_new_file *file);
tarn_status __wrap_tarn__os_file_commit(tarn__os_new_file *file);
bool __real_tarn__os_sync_folder(const char *path);
bool __wrap_tarn__os_sync_folder(const char *path);
// NOLINTEND(bugprone-reserved-identifier)

tarn_status __wrap_tarn__io_open(const tarn__io_options *options,
                                 tarn__io **out_io) {
  static const tarn__io_watch watch = {NULL, before, after};
  tarn__io_options watched = *options;
  watched.watch = &watch;
  return __real_tarn__io_open(&watched, out_io);
}

// --- other calls -------------------------------------------------------------

bool __wrap_tarn__os_write_at(int fd, uint64_t offset, const void *bytes,
                              size_t size) {
  event *e = begin((event){.kind = WRITE,
                           .fd = fd,
                           .offset = offset,
                           .size = size,
                           .bytes = (unsigned char *)(uintptr_t)bytes});
  bool did = __real_tarn__os_write_at(fd, offset, bytes, size);
  end(e, did, size);
  return did;
}

bool __wrap_tarn__os_resize(int fd, uint64_t size) {
  event *e = begin((event){.kind = RESIZE, .fd = fd, .offset = size});
  bool did = __real_tarn__os_resize(fd, size);
  end(e, did, 0);
  return did;
}

bool __wrap_tarn__os_sync(int fd) {
  event *e = begin((event){.kind = SYNC, .fd = fd});
  bool did = __real_tarn__os_sync(fd);
  end(e, did, 0);
  return did;
}

tarn_status __wrap_tarn__os_file_commit(tarn__os_new_file *file) {
  event *e = begin((event){.kind = RENAME});
  tarn_status status = __real_tarn__os_file_commit(file);
  end(e, status == TARN_OK, 0);
  return status;
}

bool __wrap_tarn__os_sync_folder(const char *path) {
  event *e = begin((event){.kind = FOLDER});
  bool did = __real_tarn__os_sync_folder(path);
  end(e, did, 0);
  return did;
}

// --- moments -----------------------------------------------------------------

size_t disk_log_moments(void) {
  return seen.now + 1;
}

size_t disk_log_syncs(void) {
  return seen.syncs;
}

size_t disk_log_writes(void) {
  size_t count = 0;
  for (size_t i = 0; i < seen.count; i++)
    count += seen.events[i].kind == WRITE;
  return count;
}

static bool has_ended(const event *e, size_t moment) {
  return e->ended != 0 && e->ended <= moment;
}

// An event of kind |by| has begun after this one had ended, and has ended.
static bool is_followed(const event *e, kind by, size_t moment) {
  for (size_t i = 0; i < seen.count; i++) {
    const event *s = &seen.events[i];
    if (s->kind == by && s->rank == e->rank && s->fd == e->fd &&
        e->ended != 0 && s->began > e->ended && has_ended(s, moment)) {
      return true;
    }
  }
  return false;
}

static bool is_of(const event *e, int file) {
  return file == DISK_SHARED || e->rank == (size_t)file;
}

disk_name disk_log_name(int file, size_t moment) {
  for (size_t i = 0; i < seen.count; i++) {
    const event *e = &seen.events[i];
    if (e->kind != RENAME || !is_of(e, file) || e->began > moment) continue;
    return is_followed(e, FOLDER, moment) ? DISK_NEW : DISK_EITHER;
  }
  return DISK_OLD;
}

// --- images ------------------------------------------------------------------

typedef struct image {
  unsigned char *bytes;
  size_t size;
  size_t room;
} image;

static void lengthen(image *to, uint64_t size) {
  if (size > to->size) to->size = size;
  require(to->size <= to->room);
}

static void apply(image *to, const event *e, size_t from, size_t until) {
  if (e->kind == RESIZE) {
    lengthen(to, e->offset);
  } else {
    lengthen(to, e->offset + until);
    memcpy(to->bytes + e->offset + from, e->bytes + from, until - from);
  }
}

// Sectors lie where the file has them.
static void apply_torn(image *to, const event *e, uint64_t seed) {
  size_t until = 0;
  if (e->kind == RESIZE) apply(to, e, 0, 0);
  for (size_t from = 0; from < e->size; from = until) {
    until = from + SECTOR - (e->offset + from) % SECTOR;
    if (until > e->size) until = e->size;
    if (mix(seed, from) % 2 == 0) apply(to, e, from, until);
  }
}

// What the disk may have or not.
static void apply_unsure(image *to, const event *e, bool is_first,
                         uint64_t seed) {
  uint64_t draw = mix(seed, e->began);
  switch (seed % DISK_WAYS) {
    case 0:
      return;
    case 1:
      apply(to, e, 0, e->size);
      return;
    case 2:
      if (!is_first && e->kind == WRITE) apply(to, e, 0, e->size);
      return;
    case 3:
      if (draw % 2 == 0) apply(to, e, 0, e->size);
      return;
    default:
      if (draw % 4 != 0) apply_torn(to, e, draw);
  }
}

static bool changes(const event *e, size_t moment) {
  return (e->kind == WRITE || e->kind == RESIZE) && e->began <= moment;
}

static size_t find_room(void) {
  uint64_t room = 1;
  for (size_t i = 0; i < seen.count; i++) {
    const event *e = &seen.events[i];
    if (e->kind == WRITE || e->kind == RESIZE)
      room = e->offset + e->size > room ? e->offset + e->size : room;
  }
  return room;
}

static const event *find_write(const event *const *events, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (events[i]->kind == WRITE) return events[i];
  return NULL;
}

unsigned char *disk_log_image(int file, size_t moment, uint64_t seed,
                              size_t *out_size) {
  const event *unsure[EVENTS_MOST];
  size_t count = 0;
  image to = {.room = find_room()};
  to.bytes = calloc(to.room, 1);
  require(to.bytes != NULL);
  for (size_t i = 0; i < seen.count; i++) {
    const event *e = &seen.events[i];
    if (!is_of(e, file) || !changes(e, moment)) continue;
    if (is_followed(e, SYNC, moment)) {
      apply(&to, e, 0, e->size);
    } else {
      unsure[count++] = e;
    }
  }
  const event *first = find_write(unsure, count);
  for (; count > 0; count--) {
    size_t next = (size_t)(mix(seed, count) % count);
    apply_unsure(&to, unsure[next], unsure[next] == first, seed);
    unsure[next] = unsure[count - 1];
  }
  *out_size = to.size;
  return to.bytes;
}
