// Blocks that two processes have: what one writes the other reads, and what
// one frees, or leaves when it dies, stays the other's.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "share_kit.h"
#include "support/child.h"
#include "support/effort.h"
#include "support/hold.h"

// --- a line between two processes ------------------------------------------

typedef struct letter {
  int step;     // of the scene, to be sure that both are at the same
  size_t size;  // of the block whose descriptor comes with it
} letter;

typedef union passenger {
  struct cmsghdr head;
  char room[CMSG_SPACE(sizeof(int))];
} passenger;

static bool send_letter(int line, letter l, int fd) {
  struct iovec part = {&l, sizeof l};
  passenger with = {.room = {0}};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
  if (fd > 0) {
    message.msg_control = &with;
    message.msg_controllen = sizeof with;
    with.head.cmsg_level = SOL_SOCKET;
    with.head.cmsg_type = SCM_RIGHTS;
    with.head.cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(&with.head), &fd, sizeof fd);
  }
  return sendmsg(line, &message, MSG_NOSIGNAL) == sizeof l;
}

static bool receive_letter(int line, letter *l, int *fd) {
  struct iovec part = {l, sizeof *l};
  passenger with;
  struct msghdr message = {.msg_iov = &part,
                           .msg_iovlen = 1,
                           .msg_control = &with,
                           .msg_controllen = sizeof with};
  *fd = -1;
  if (recvmsg(line, &message, MSG_CMSG_CLOEXEC) != sizeof *l) return false;
  const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
  if (head != NULL) memcpy(fd, CMSG_DATA(head), sizeof *fd);
  return true;
}

// Tells the other process that this one has done |step|, or waits for that.
static bool tell(int line, int step) {
  return send_letter(line, (letter){.step = step}, -1);
}

static bool hear(int line, int step) {
  letter l;
  int fd = -1;
  return receive_letter(line, &l, &fd) && l.step == step && fd < 0;
}

typedef struct other {
  pid_t child;
  int line;
} other;

// A process that is born before this one has opened anything, and so has all
// that it has through the line.
static other begin_other(void (*scene)(int line, const char *device),
                         const char *device) {
  int ends[2];
  ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  pid_t child = fork();
  if (child == 0) {
    child_begin(60);
    close(ends[0]);
    scene(ends[1], device);
    _exit(0);
  }
  ck_assert_int_gt(child, 0);
  close(ends[1]);
  return (other){child, ends[0]};
}

static void end_other(other o) {
  assert_child_ended_well(o.child);
  close(o.line);
}

// --- the other process's side ----------------------------------------------

typedef struct guest {
  tarn_device *device;
  tarn_pool *pool;
} guest;

static guest enter_as_guest(const char *name) {
  guest g = {NULL, NULL};
  tarn_pool_options options = {.struct_size = sizeof options,
                               .flags = TARN_POOL_SHAREABLE};
  tarn_sim_options sim = {.struct_size = sizeof sim,
                          .capacity = ARENA_CAPACITY};
  MUST(tarn_sim_configure(&sim) == TARN_OK);
  add_device(name);
  MUST(tarn_device_open(name, &g.device) == TARN_OK);
  if (!serves(g.device, true, NEEDS_SHARING)) _exit(0);
  tarn_place place = tarn_place_on(g.device);
  MUST(tarn_pool_create(place, &options, &g.pool) == TARN_OK);
  return g;
}

static void leave_as_guest(guest *g) {
  MUST(tarn_pool_destroy(g->pool) == TARN_OK);
  MUST(tarn_device_close(g->device) == TARN_OK);
}

static tarn_block import_letter(guest *g, int line) {
  letter l;
  int fd = -1;
  tarn_block block;
  MUST(receive_letter(line, &l, &fd));
  MUST(fd > 0);
  MUST(tarn_pool_import(g->pool, fd, l.size, &block) == TARN_OK);
  MUST(close(fd) == 0);
  return block;
}

static unsigned char guest_byte(const guest *g, tarn_block block, size_t at) {
  unsigned char byte = 0;
  MUST(tarn_copy_d2h(g->device, &byte, block.address + at, 1, NULL) == TARN_OK);
  return byte;
}

static void guest_put(const guest *g, tarn_block block, size_t at,
                      unsigned char byte) {
  MUST(tarn_copy_h2d(g->device, block.address + at, &byte, 1, NULL) == TARN_OK);
}

static void send_block(int line, int step, tarn_block block, size_t size) {
  int fd = export_of(block);
  ck_assert(send_letter(line, (letter){step, size}, fd));
  close(fd);
}

// --- both read and write ---------------------------------------------------

enum { SIZE = 100000, PLACE = 70000 };

static void read_and_write(int line, const char *device) {
  guest g = enter_as_guest(device);
  tarn_block block = import_letter(&g, line);
  MUST(block.size >= SIZE);
  MUST(guest_byte(&g, block, 0) == 1);
  MUST(guest_byte(&g, block, PLACE) == 2);
  guest_put(&g, block, PLACE, 3);
  MUST(tell(line, 1));
  MUST(hear(line, 2));  // the owner has freed it, and taken and written more
  MUST(guest_byte(&g, block, 0) == 1);
  MUST(guest_byte(&g, block, PLACE) == 3);
  guest_put(&g, block, 0, 4);
  MUST(tell(line, 3));
  MUST(tarn_pool_free(&block, NULL) == TARN_OK);
  leave_as_guest(&g);
}

TEST_LOOP(both_see_what_the_other_writes,
          THREADS_ARE_WATCHED ? 0 : TEST_DEVICES) {
  other o = begin_other(read_and_write, test_devices[_i]);
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_block block = take(pool, SIZE);
  put_byte(p.device, block, 0, 1);
  put_byte(p.device, block, PLACE, 2);
  send_block(o.line, 0, block, SIZE);
  ck_assert(hear(o.line, 1));
  ck_assert_uint_eq(byte_at(p.device, block, PLACE), 3);
  give(block);
  tarn_block next[4];
  for (size_t i = 0; i < 4; i++) {
    next[i] = take(pool, SIZE);
    put_byte(p.device, next[i], 0, 99);
    put_byte(p.device, next[i], PLACE, 99);
  }
  ck_assert(tell(o.line, 2));
  ck_assert(hear(o.line, 3));
  for (size_t i = 0; i < 4; i++) {
    ck_assert_uint_eq(byte_at(p.device, next[i], 0), 99);
    give(next[i]);
  }
  end_other(o);
}

// --- a pool over an imported block -----------------------------------------

static void cut_up(int line, const char *device) {
  guest g = enter_as_guest(device);
  tarn_block block = import_letter(&g, line);
  tarn_pool_options options = {.struct_size = sizeof options,
                               .memory = {block.address, block.size}};
  tarn_pool *parts = NULL;
  tarn_block part;
  MUST(tarn_pool_create(tarn_pool_place(g.pool), &options, &parts) == TARN_OK);
  MUST(tarn_pool_alloc(parts, 1000, 0, NULL, &part) == TARN_OK);
  guest_put(&g, part, 0, 88);
  MUST(send_letter(line, (letter){1, part.address - block.address}, -1));
  MUST(tarn_pool_free(&part, NULL) == TARN_OK);
  MUST(tarn_pool_destroy(parts) == TARN_OK);
  MUST(tarn_pool_free(&block, NULL) == TARN_OK);
  leave_as_guest(&g);
}

TEST_LOOP(an_imported_block_can_be_cut_up,
          THREADS_ARE_WATCHED ? 0 : TEST_DEVICES) {
  other o = begin_other(cut_up, test_devices[_i]);
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_block block = take(pool, SIZE);
  letter l;
  int fd = -1;
  send_block(o.line, 0, block, SIZE);
  ck_assert(receive_letter(o.line, &l, &fd));
  ck_assert_uint_eq(byte_at(p.device, block, l.size), 88);
  end_other(o);
  give(block);
}

// --- deaths ----------------------------------------------------------------

static void import_and_wait(int line, const char *device) {
  guest g = enter_as_guest(device);
  tarn_block block = import_letter(&g, line);
  guest_put(&g, block, 1, 7);
  MUST(tell(line, 1));
  for (;;)
    pause();
}

TEST_LOOP(one_that_is_killed_leaves_the_block,
          THREADS_ARE_WATCHED ? 0 : TEST_DEVICES) {
  other o = begin_other(import_and_wait, test_devices[_i]);
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_block block = take(pool, SIZE);
  send_block(o.line, 0, block, SIZE);
  ck_assert(hear(o.line, 1));
  ck_assert_int_eq(kill(o.child, SIGKILL), 0);
  ck_assert_int_eq(waitpid(o.child, NULL, 0), o.child);
  close(o.line);
  ck_assert_uint_eq(byte_at(p.device, block, 1), 7);
  give(block);
}

static void export_and_die(int line, const char *device) {
  guest g = enter_as_guest(device);
  tarn_block block;
  int fd = 0;
  MUST(tarn_pool_alloc(g.pool, SIZE, 0, NULL, &block) == TARN_OK);
  guest_put(&g, block, PLACE, 21);
  MUST(tarn_pool_export(&block, &fd) == TARN_OK);
  MUST(send_letter(line, (letter){0, SIZE}, fd));
  raise(SIGKILL);
}

TEST_LOOP(what_the_dead_have_exported_stays,
          THREADS_ARE_WATCHED ? 0 : TEST_DEVICES) {
  other o = begin_other(export_and_die, test_devices[_i]);
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  letter l;
  int fd = -1;
  tarn_block block;
  ck_assert(receive_letter(o.line, &l, &fd));
  ck_assert_int_eq(waitpid(o.child, NULL, 0), o.child);
  assert_ok(tarn_pool_import(pool, fd, l.size, &block));
  close(fd);
  ck_assert_uint_eq(byte_at(p.device, block, PLACE), 21);
  give(block);
  close(o.line);
}

// --- threads ---------------------------------------------------------------

enum { THREADS = 4, ROUNDS = EFFORT(300, 60) };

static tarn_block shared_block;
static atomic_bool done;

static void *export_often(void *context) {
  (void)context;
  tarn_pool *pool = shared_block.pool;
  for (int i = 0; i < ROUNDS; i++) {
    int fd = 0;
    tarn_block import;
    require(tarn_pool_export(&shared_block, &fd) == TARN_OK);
    require(tarn_pool_import(pool, fd, STEP, &import) == TARN_OK);
    require(close(fd) == 0);
    require(*(volatile char *)import.pointer == 31);
    require(tarn_pool_free(&import, NULL) == TARN_OK);
  }
  return NULL;
}

// Others may be at the block, but nothing else.
static void *use_often(void *context) {
  tarn_stream *stream = context;
  while (!atomic_load(&done)) {
    tarn_status status = tarn_block_use_on(&shared_block, stream);
    require(status == TARN_OK || status == TARN_E_STATE);
  }
  return NULL;
}

TEST(threads_export_one_block) {
  pthread_t exporters[THREADS];
  pthread_t user;
  arena_place p = open_arena("cpu:0", "arena_pool");
  tarn_pool *pool = shareable_at(TARN_HOST, 0);
  tarn_stream *stream = stream_on(&p);
  shared_block = take(pool, STEP);
  *(char *)shared_block.pointer = 31;
  for (int i = 0; i < THREADS; i++)
    pthread_create(&exporters[i], NULL, export_often, NULL);
  pthread_create(&user, NULL, use_often, stream);
  for (int i = 0; i < THREADS; i++)
    pthread_join(exporters[i], NULL);
  atomic_store(&done, true);
  pthread_join(user, NULL);
  assert_ok(tarn__front_check(pool));
  ck_assert_uint_eq(stats_of(pool).live_blocks, 1);
  give(shared_block);
}

// --- at the same time ------------------------------------------------------

// Exports that the test holds up in the driver.
static struct {
  atomic_bool slow;
  sem_t inside;
  sem_t go;
} driver;

tarn_status __real_tarn_memory_export(tarn_device *device, tarn_memory memory,
                                      int *out_fd);
tarn_status __wrap_tarn_memory_export(tarn_device *device, tarn_memory memory,
                                      int *out_fd);

static void await(sem_t *sem) {
  while (sem_wait(sem) != 0) {
  }
}

tarn_status __wrap_tarn_memory_export(tarn_device *device, tarn_memory memory,
                                      int *out_fd) {
  if (atomic_load(&driver.slow)) {
    sem_post(&driver.inside);
    await(&driver.go);
  }
  return __real_tarn_memory_export(device, memory, out_fd);
}

static void *export_once(void *context) {
  int fd = 0;
  (void)context;
  require(tarn_pool_export(&shared_block, &fd) == TARN_OK);
  require(close(fd) == 0);
  return NULL;
}

static void refuse_all_but_exports(void) {
  assert_status(tarn_pool_free(&shared_block, NULL), TARN_E_STATE);
  assert_status(
      tarn_pool_free_address(shared_block.pool, shared_block.address, NULL),
      TARN_E_STATE);
  assert_status(tarn_pool_resize(&shared_block, 1, NULL), TARN_E_STATE);
  assert_status(tarn_pool_destroy(shared_block.pool), TARN_E_STATE);
}

// Joins the one of both that ends first; returns the other.
static pthread_t join_first(const pthread_t both[2]) {
  for (;;) {
    for (int i = 0; i < 2; i++)
      if (pthread_tryjoin_np(both[i], NULL) == 0) return both[1 - i];
    tarn__os_yield();
  }
}

TEST(who_frees_meanwhile_is_refused) {
  pthread_t exporters[2];
  tarn_pool *pool = shareable_at(TARN_HOST, 0);
  shared_block = take(pool, STEP);
  sem_init(&driver.inside, 0, 0);
  sem_init(&driver.go, 0, 0);
  atomic_store(&driver.slow, true);
  for (int i = 0; i < 2; i++) {
    pthread_create(&exporters[i], NULL, export_once, NULL);
    await(&driver.inside);
    refuse_all_but_exports();
  }
  sem_post(&driver.go);
  pthread_t last = join_first(exporters);
  refuse_all_but_exports();
  sem_post(&driver.go);
  pthread_join(last, NULL);
  give(shared_block);
}

static atomic_bool freed;

static void *let_go_later(void *context) {
  for (int i = 0; i < 100; i++)
    tarn__os_yield();
  require(!atomic_load(&freed));
  hold_end(context);
  return NULL;
}

// The memory is there until the stream has done what is queued.
TEST_LOOP(a_free_waits_for_what_is_queued, TEST_DEVICES) {
  arena_place p = open_sharing(_i);
  if (p.pool == NULL) return;
  tarn_pool *pool = shareable_at(p.place, 0);
  tarn_stream *stream = stream_on(&p);
  pthread_t helper;
  hold held;
  char out[8] = "";
  tarn_block block = take_on(pool, STEP, stream);
  atomic_store(&freed, false);
  assert_ok(tarn_copy_h2d(p.device, block.address, "queued ", 8, NULL));
  hold_begin(&held, stream);
  assert_ok(tarn_copy_d2h(p.device, out, block.address, 8, stream));
  pthread_create(&helper, NULL, let_go_later, &held);
  give_on(block, stream);
  atomic_store(&freed, true);
  ck_assert_str_eq(out, "queued ");
  pthread_join(helper, NULL);
}
