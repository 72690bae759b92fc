#include "io_ground.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/mix.h"

// --- queues, files and memory ----------------------------------------------

static void close_queue(void *io) {
  tarn__io_close(io);
}

tarn__io *io_open_by(int method, tarn__io_options options) {
  tarn__io *io = NULL;
  options.threads = method == IO_THREADS;
  assert_ok(tarn__io_open(&options, &io));
  if (method == IO_RING && strcmp(tarn__io_method(io), "io_uring") != 0) {
    tarn__io_close(io);
    note_skipped("io_uring", "the system has none, or forbids it");
    return NULL;
  }
  after_test(close_queue, io);
  return io;
}

unsigned char io_byte(uint64_t offset) {
  return (unsigned char)mix(offset / 8, 1);
}

bool io_bytes_are(const unsigned char *bytes, size_t size, uint64_t offset) {
  for (size_t i = 0; i < size; i++)
    if (bytes[i] != io_byte(offset + i)) return false;
  return true;
}

static void write_bytes(int fd, size_t size) {
  unsigned char bytes[4096];
  for (size_t done = 0; done < size;) {
    size_t part = size - done < sizeof bytes ? size - done : sizeof bytes;
    for (size_t i = 0; i < part; i++)
      bytes[i] = io_byte(done + i);
    require(pwrite(fd, bytes, part, (off_t)done) == (ssize_t)part);
    done += part;
  }
  require(fdatasync(fd) == 0);
}

static void close_file(void *fd) {
  close((int)(intptr_t)fd);
}

int io_file(size_t size, int flags) {
  char path[] = "/tmp/tarn-io-XXXXXX";
  int made = mkstemp(path);
  ck_assert_int_ge(made, 0);
  int fd = open(path, O_RDWR | O_CLOEXEC | flags);
  unlink(path);
  if (fd >= 0) write_bytes(made, size);
  close(made);
  if (fd < 0) ck_assert_int_eq(errno, EINVAL);
  if (fd >= 0) after_test(close_file, (void *)(intptr_t)fd);
  return fd;
}

unsigned char *io_memory(size_t size) {
  void *bytes = NULL;
  ck_assert_int_eq(posix_memalign(&bytes, 4096, size), 0);
  memset(bytes, 0, size);
  after_test(free, bytes);
  return bytes;
}

tarn__io_request io_do(tarn__io *io, tarn__io_action action, int fd, void *data,
                       size_t size, uint64_t offset) {
  tarn__io_request request = {.action = action,
                              .fd = fd,
                              .data = data,
                              .size = size,
                              .offset = offset,
                              .owner = data};
  tarn__io_submit(io, &request);
  ck_assert_uint_eq(tarn__io_count(io), 1);
  ck_assert_ptr_eq(tarn__io_wait(io), &request);
  ck_assert_uint_eq(tarn__io_count(io), 0);
  ck_assert_ptr_eq(request.owner, data);
  return request;
}

// --- a file and its model --------------------------------------------------

enum { SLOTS = 48, SLOT = 8192 };

// The file is cut into slots, each of which one request uses at a time.
typedef struct slot {
  tarn__io_request request;
  unsigned char *bytes;
  bool busy;
} slot;

typedef struct trial {
  tarn__io *io;
  int fd;
  size_t align;
  uint64_t seed;
  uint64_t drawn;
  slot slots[SLOTS];
  unsigned char model[IO_TRIAL_SIZE];
} trial;

static size_t draw(trial *t, size_t below) {
  return (size_t)(mix(t->seed, t->drawn++) % below);
}

static void submit(trial *t, size_t i) {
  slot *s = &t->slots[i];
  size_t units = SLOT / t->align;
  size_t begin = draw(t, units);
  size_t count = 1 + draw(t, units - begin);
  size_t offset = i * SLOT + begin * t->align;
  s->request = (tarn__io_request){
      .action = draw(t, 2) == 0 ? TARN__IO_READ : TARN__IO_WRITE,
      .fd = t->fd,
      .data = s->bytes + begin * t->align,
      .size = count * t->align,
      .offset = offset,
      .owner = s};
  memset(s->bytes, (int)draw(t, 256), SLOT);
  if (s->request.action == TARN__IO_WRITE)
    memcpy(t->model + offset, s->request.data, s->request.size);
  s->busy = true;
  tarn__io_submit(t->io, &s->request);
}

static void look_at(trial *t, tarn__io_request *request) {
  require(request != NULL);
  if (request->error != 0) ck_abort_msg("%s", strerror(request->error));
  require(request->done == request->size);
  slot *s = request->owner;
  require(s->busy && &s->request == request);
  require(memcmp(request->data, t->model + request->offset, request->size) ==
          0);
  s->busy = false;
}

static void look_at_next(trial *t) {
  tarn__io_request *request =
      draw(t, 2) == 0 ? tarn__io_poll(t->io) : tarn__io_wait(t->io);
  if (request == NULL) request = tarn__io_wait(t->io);
  look_at(t, request);
}

static void step(trial *t) {
  size_t i = draw(t, SLOTS);
  while (t->slots[i].busy)
    look_at_next(t);
  submit(t, i);
  if (draw(t, 20) == 0) tarn__io_start(t->io);
  for (size_t n = draw(t, 3); n > 0 && tarn__io_count(t->io) > 0; n--)
    look_at_next(t);
}

// The file itself, beside the queue.
static void read_file(const trial *t, unsigned char *bytes) {
  for (size_t done = 0; done < IO_TRIAL_SIZE; done += SLOT)
    require(pread(t->fd, bytes + done, SLOT, (off_t)done) == SLOT);
}

void io_try(tarn__io *io, int fd, size_t times, size_t align, uint64_t seed) {
  static trial t;
  unsigned char *bytes = io_memory(IO_TRIAL_SIZE);
  t = (trial){.io = io, .fd = fd, .align = align, .seed = seed};
  read_file(&t, bytes);
  memcpy(t.model, bytes, IO_TRIAL_SIZE);
  for (size_t i = 0; i < SLOTS; i++)
    t.slots[i].bytes = bytes + i * SLOT;
  for (size_t i = 0; i < times; i++)
    step(&t);
  while (tarn__io_count(io) > 0)
    look_at(&t, tarn__io_wait(io));
  require(tarn__io_wait(io) == NULL && tarn__io_poll(io) == NULL);
  read_file(&t, bytes);
  require(memcmp(bytes, t.model, IO_TRIAL_SIZE) == 0);
  forget(bytes);
  free(bytes);
}
