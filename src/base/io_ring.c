// io_uring, by system calls.
//
//   submissions   [ head .. tail )   entries that the kernel has not taken yet
//   completions   [ head .. tail )   results that nobody has looked at yet
//
// Both rings are memory that is shared with the kernel. Each side moves one end
// of each ring: with release, after it has read or written the entries, and the
// other side reads it with acquire.
//
// Invariants:
//   held    requests in either ring, or in the kernel; no more than there are
//           entries for submissions, of which the kernel makes no more than for
//           completions: neither ring overflows
//   tail    that of the submissions, which the kernel sees with the next batch
#include <errno.h>
#include <linux/io_uring.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/hostmem.h"
#include "base/io_mover.h"
#include "base/os.h"
#include "base/status.h"

// A kernel that has the last of them has reads and writes without vectors.
static const uint32_t FEATURES =
    IORING_FEAT_SINGLE_MMAP | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS;

typedef struct ring {
  tarn__io_mover mover;
  int fd;
  char *rings;  // both
  size_t rings_size;
  struct io_uring_sqe *entries;
  size_t entries_size;
  _Atomic uint32_t *head;  // of the submissions
  _Atomic uint32_t *shared_tail;
  uint32_t mask;
  uint32_t tail;
  _Atomic uint32_t *done_head;  // of the completions
  _Atomic uint32_t *done_tail;
  const struct io_uring_cqe *results;
  uint32_t done_mask;
  size_t held;
} ring;

// --- submissions -----------------------------------------------------------

static void fill(struct io_uring_sqe *entry, const tarn__io_request *request) {
  static const uint8_t operations[] = {
      [TARN__IO_READ] = IORING_OP_READ,
      [TARN__IO_WRITE] = IORING_OP_WRITE,
      [TARN__IO_DATASYNC] = IORING_OP_FSYNC,
  };
  memset(entry, 0, sizeof *entry);
  entry->opcode = operations[request->action];
  entry->fd = request->fd;
  entry->user_data = (uintptr_t)request;
  if (request->action == TARN__IO_DATASYNC) {
    entry->fsync_flags = IORING_FSYNC_DATASYNC;
    return;
  }
  entry->off = request->offset + request->from;
  entry->addr = (uintptr_t)request->data + request->from;
  entry->len = (uint32_t)request->part;
  if (request->flags & TARN__IO_NO_WAIT) entry->rw_flags = RWF_NOWAIT;
}

static void put(ring *r, tarn_list *batch) {
  while (!tarn_list_empty(batch)) {
    fill(&r->entries[r->tail & r->mask], tarn__io_first(batch));
    r->tail++;
    r->held++;
  }
  atomic_store_explicit(r->shared_tail, r->tail, memory_order_release);
}

static uint32_t count_unsent(const ring *r) {
  return r->tail - atomic_load_explicit(r->head, memory_order_acquire);
}

// --- completions -----------------------------------------------------------

static tarn__io_request *give(ring *r, uint64_t user_data, int64_t result,
                              tarn_list *done) {
  tarn__io_request *request = (tarn__io_request *)(uintptr_t)user_data;
  request->result = result;
  tarn_list_add_tail(done, &request->node);
  r->held--;
  return request;
}

// What the kernel does not do at once it gives to threads of its own. It may
// fail to make the first one, for want of processes or for signals that come
// all the time. Then it cancels the request, which nobody else does.
static void reap(ring *r, tarn_list *done) {
  uint32_t head = atomic_load_explicit(r->done_head, memory_order_relaxed);
  uint32_t tail = atomic_load_explicit(r->done_tail, memory_order_acquire);
  for (; head != tail; head++) {
    const struct io_uring_cqe *result = &r->results[head & r->done_mask];
    tarn__io_request *request = give(r, result->user_data, result->res, done);
    if (result->res == -ECANCELED) tarn__io_call(request);
  }
  atomic_store_explicit(r->done_head, head, memory_order_release);
}

// Takes what the kernel has not taken back; it fails with |error|.
static void take_back(ring *r, int error, tarn_list *done) {
  uint32_t head = r->tail - count_unsent(r);
  for (uint32_t i = head; i != r->tail; i++)
    (void)give(r, r->entries[i & r->mask].user_data, -error, done);
  r->tail = head;
}

// --- the kernel ------------------------------------------------------------

// As errno; 0: it has taken some.
static int enter(const ring *r, uint32_t unsent, bool wait) {
  long taken = syscall(SYS_io_uring_enter, r->fd, unsent, wait ? 1 : 0,
                       IORING_ENTER_GETEVENTS, NULL, 0);
  return taken < 0 ? errno : 0;
}

static bool is_shortage(int error) {
  return error == EAGAIN || error == EBUSY || error == ENOMEM;
}

// The kernel refused with |error|: for now, and what was put stays, or for
// good, as in a sandbox that was set up since. What it has taken it finishes in
// either case.
static void cope(ring *r, int error, bool wait, unsigned tries,
                 tarn_list *done) {
  if (!is_shortage(error)) take_back(r, error, done);
  if (!wait || !tarn_list_empty(done)) return;
  bool is_inside = r->held > count_unsent(r);
  if (is_inside && enter(r, 0, true) == 0) return;
  tarn__os_back_off(tries);
}

static void turn(tarn__io_mover *mover, tarn_list *batch, bool wait,
                 tarn_list *done) {
  ring *r = (ring *)mover;
  put(r, batch);
  for (unsigned tries = 0;; tries++) {
    reap(r, done);
    bool waits = wait && tarn_list_empty(done);
    uint32_t unsent = count_unsent(r);
    if (unsent == 0 && !waits) return;
    int error = enter(r, unsent, waits);
    if (error == 0 || error == EINTR) continue;
    cope(r, error, waits, tries, done);
    if (!waits) return;
  }
}

// --- setting up ------------------------------------------------------------

static bool set_up(ring *r, size_t depth, struct io_uring_params *params) {
  uint32_t entries = (uint32_t)tarn__lesser(depth, INT32_MAX);
  *params = (struct io_uring_params){.flags = IORING_SETUP_CLAMP};
  r->fd = tarn__os_above_standard(
      (int)syscall(SYS_io_uring_setup, entries, params));
  if (r->fd < 0) return false;
  errno = ENOSYS;
  return (params->features & FEATURES) == FEATURES;
}

static void *map(const ring *r, size_t size, uint64_t what) {
  void *ptr = mmap(NULL, size, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_POPULATE, r->fd, (off_t)what);
  return ptr == MAP_FAILED ? NULL : ptr;
}

static bool map_rings(ring *r, const struct io_uring_params *params) {
  size_t array_end =
      params->sq_off.array + params->sq_entries * sizeof(uint32_t);
  size_t results_end =
      params->cq_off.cqes + params->cq_entries * sizeof(struct io_uring_cqe);
  r->rings_size = array_end > results_end ? array_end : results_end;
  r->entries_size = params->sq_entries * sizeof(struct io_uring_sqe);
  r->rings = map(r, r->rings_size, IORING_OFF_SQ_RING);
  if (r->rings == NULL) return false;
  r->entries = map(r, r->entries_size, IORING_OFF_SQES);
  return r->entries != NULL;
}

static _Atomic uint32_t *word(const ring *r, uint32_t offset) {
  return (_Atomic uint32_t *)(void *)(r->rings + offset);
}

// Entries are submitted in their order, which the array of the kernel's would
// allow to change.
static void find_words(ring *r, const struct io_uring_params *params) {
  const struct io_sqring_offsets *from = &params->sq_off;
  const struct io_cqring_offsets *to = &params->cq_off;
  uint32_t *order = (uint32_t *)(void *)(r->rings + from->array);
  r->head = word(r, from->head);
  r->shared_tail = word(r, from->tail);
  r->mask = params->sq_entries - 1;
  r->done_head = word(r, to->head);
  r->done_tail = word(r, to->tail);
  r->results = (const struct io_uring_cqe *)(void *)(r->rings + to->cqes);
  r->done_mask = params->cq_entries - 1;
  for (uint32_t i = 0; i < params->sq_entries; i++)
    order[i] = i;
}

// A sandbox may allow the one call and forbid the other.
static bool works(ring *r) {
  tarn__io_request request = {.action = TARN__IO_READ, .fd = -1};
  tarn_list batch;
  tarn_list done;
  tarn_list_init(&batch);
  tarn_list_init(&done);
  tarn_list_add(&batch, &request.node);
  turn(&r->mover, &batch, true, &done);
  errno = (int)-request.result;
  return request.result == -EBADF;
}

static bool make(ring *r, size_t depth) {
  struct io_uring_params params;
  if (!set_up(r, depth, &params) || !map_rings(r, &params)) return false;
  find_words(r, &params);
  r->mover.depth = tarn__lesser(depth, params.sq_entries);
  return works(r);
}

// --- the mover -------------------------------------------------------------

// A child has mappings and a descriptor of its own.
static void end(tarn__io_mover *mover, bool after_fork) {
  ring *r = (ring *)mover;
  (void)after_fork;
  if (r->entries != NULL) tarn__os_unmap(r->entries, r->entries_size);
  if (r->rings != NULL) tarn__os_unmap(r->rings, r->rings_size);
  if (r->fd >= 0) tarn__os_close(r->fd);
  tarn__host_free(r, sizeof *r);
}

tarn_status tarn__io_ring_begin(size_t depth, tarn__io_mover **out_mover) {
  *out_mover = NULL;
  ring *r = tarn__host_alloc(sizeof *r);
  if (r == NULL) return TARN_E_NOMEM;
  r->mover = (tarn__io_mover){.name = "io_uring", .turn = turn, .end = end};
  if (!make(r, depth)) {
    int error = errno;
    end(&r->mover, false);
    return tarn__fail(TARN_E_UNSUPPORTED, "io_uring: %s", strerror(error));
  }
  *out_mover = &r->mover;
  return TARN_OK;
}
