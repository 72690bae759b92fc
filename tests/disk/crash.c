#include "crash.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/mix.h"
#include "support/run.h"

enum { MOST = 4096 };  // writes that are not synced

typedef struct written {
  const tarn__io_request *request;
  uint64_t offset;
  size_t size;
  unsigned char *bytes;
  bool came_back;
  bool synced;  // by a datasync that has not returned yet
} written;

static struct {
  unsigned char *bytes;  // what is on the disk
  size_t size;           // of the file there
  size_t room;
  written writes[MOST];  // in the order in which they were sent
  size_t count;
  char path[128];
  size_t size_at_sync;
  void (*look)(void);
  size_t parts;
  size_t fail;
  int error;
  bool for_good;
  bool failed;
} disk;

static size_t size_now(void) {
  struct stat found;
  require(stat(disk.path, &found) == 0);
  return (size_t)found.st_size;
}

static void make_room(size_t end) {
  if (end <= disk.room) return;
  unsigned char *bytes = realloc(disk.bytes, 2 * end);
  require(bytes != NULL);
  memset(bytes + disk.room, 0, 2 * end - disk.room);
  disk.bytes = bytes;
  disk.room = 2 * end;
}

static void forget_writes(void) {
  for (size_t i = 0; i < disk.count; i++)
    free(disk.writes[i].bytes);
  disk.count = 0;
}

void crash_record(const char *path, void (*look)(void)) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  require(fd >= 0);
  forget_writes();
  snprintf(disk.path, sizeof disk.path, "%s", path);
  disk.size = size_now();
  make_room(disk.size);
  memset(disk.bytes, 0, disk.room);
  for (size_t done = 0; done < disk.size;) {
    ssize_t got = pread(fd, disk.bytes + done, disk.size - done, (off_t)done);
    require(got > 0);
    done += (size_t)got;
  }
  close(fd);
  disk.look = look;
  disk.parts = disk.fail = 0;
}

// --- recording ---------------------------------------------------------------

static void look(void) {
  if (disk.look != NULL) disk.look();
}

static void note_write(const tarn__io_request *request) {
  require(disk.count < MOST);
  written *w = &disk.writes[disk.count++];
  *w = (written){.request = request,
                 .offset = request->offset + request->from,
                 .size = request->part,
                 .bytes = malloc(request->part)};
  require(w->bytes != NULL);
  memcpy(w->bytes, (const unsigned char *)request->data + request->from,
         request->part);
}

static int before(void *context, tarn__io_request *request) {
  (void)context;
  look();
  disk.parts++;
  if (disk.fail > 0 && --disk.fail == 0) {
    disk.failed = true;
    if (disk.for_good) disk.fail = 1;
    return disk.error;
  }
  if (request->action == TARN__IO_WRITE) note_write(request);
  if (request->action != TARN__IO_DATASYNC) return 0;
  disk.size_at_sync = size_now();
  for (size_t i = 0; i < disk.count; i++)
    disk.writes[i].synced = disk.writes[i].came_back;
  return 0;
}

static void end_write(const tarn__io_request *request) {
  for (size_t i = 0; i < disk.count; i++) {
    written *w = &disk.writes[i];
    if (w->request == request && !w->came_back) {
      w->came_back = true;
      return;
    }
  }
  require(false);
}

// What was synced is on the disk, in the order in which it was sent.
static void end_sync(void) {
  size_t left = 0;
  disk.size = disk.size_at_sync;
  make_room(disk.size);
  for (size_t i = 0; i < disk.count; i++) {
    written *w = &disk.writes[i];
    if (!w->synced) {
      disk.writes[left++] = *w;
      continue;
    }
    make_room(w->offset + w->size);
    memcpy(disk.bytes + w->offset, w->bytes, w->size);
    free(w->bytes);
  }
  disk.count = left;
}

static int64_t after(void *context, const tarn__io_request *request,
                     int64_t result) {
  (void)context;
  require(result >= 0);
  if (request->action == TARN__IO_WRITE) {
    require((size_t)result == request->part);
    end_write(request);
  }
  if (request->action == TARN__IO_DATASYNC) end_sync();
  look();
  return result;
}

const tarn__io_watch crash_watch = {NULL, before, after};

// --- what is left ------------------------------------------------------------

typedef struct leaving {
  uint64_t seed;
  uint64_t drawn;
  unsigned char *bytes;
  size_t size;
} leaving;

static size_t draw(leaving *l, size_t below) {
  return (size_t)(mix(l->seed, l->drawn++) % below);
}

// All of it, or some of its sectors.
static void keep(leaving *l, const written *w, bool torn) {
  for (size_t at = 0; at < w->size; at += CRASH_SECTOR) {
    uint64_t offset = w->offset + at;
    if (offset >= l->size || (torn && draw(l, 2) == 0)) continue;
    size_t some = w->size - at < CRASH_SECTOR ? w->size - at : CRASH_SECTOR;
    if (some > l->size - offset) some = (size_t)(l->size - offset);
    memcpy(l->bytes + offset, w->bytes + at, some);
  }
}

// Kinds of loss: none of the writes, all, some whole, some torn, one torn.
static void keep_some(leaving *l) {
  enum { NONE, ALL, WHOLE, TORN, KINDS };
  size_t order[MOST] = {0};
  size_t kind = draw(l, KINDS);
  for (size_t i = 0; i < disk.count; i++)
    order[i] = i;
  for (size_t i = disk.count; i > 1 && kind != ALL; i--) {
    size_t j = draw(l, i);
    size_t other = order[j];
    order[j] = order[i - 1];
    order[i - 1] = other;
  }
  for (size_t i = 0; i < disk.count && kind != NONE; i++)
    if (kind == ALL || draw(l, 2) == 0)
      keep(l, &disk.writes[order[i]], kind == TORN);
}

void crash_leave(const char *path, uint64_t seed) {
  leaving l = {.seed = seed, .size = disk.size};
  if (draw(&l, 2) == 0) l.size = size_now();
  l.bytes = calloc(1, l.size);
  require(l.bytes != NULL);
  memcpy(l.bytes, disk.bytes, disk.room < l.size ? disk.room : l.size);
  keep_some(&l);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(fd >= 0);
  for (size_t done = 0; done < l.size;) {
    ssize_t put = write(fd, l.bytes + done, l.size - done);
    require(put > 0);
    done += (size_t)put;
  }
  close(fd);
  free(l.bytes);
}

// --- failures ----------------------------------------------------------------

void crash_fail(size_t n, int error, bool for_good) {
  disk.fail = n;
  disk.error = error;
  disk.for_good = for_good;
  disk.failed = false;
}

bool crash_failed(void) {
  return disk.failed;
}

size_t crash_parts(void) {
  return disk.parts;
}
