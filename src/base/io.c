// Queues of reads and writes: what all methods have in common.
//
//               ┌───────── short, interrupted ─────────┐
//               ▼                                      │
//   submit ► pending ──batch──► under way, in a mover ──► done ► wait, poll
//                                no more than its depth
//
// A request is in one of the three at a time, linked by its node: a queue needs
// no memory for it. A part of it is under way: what is left, and no more than
// the system moves at once.
//
// A turn of the mover costs a system call or a lock, and a device that is idle
// costs more. So what was submitted waits until the caller has looked at all
// that is done, or until there is enough for a batch. What is done at once, as
// reads of the page cache are, must not make the queue run far ahead of the
// caller: with half of the depth done no batch is sent.
#include "base/io.h"

#include <assert.h>
#include <errno.h>

#include "base/hostmem.h"
#include "base/io_mover.h"
#include "base/os.h"
#include "base/status.h"

enum {
  DEPTH = 64,
  BATCH = 16,  // a turn then costs little of what its requests do
  FEW_WORKERS = 8,
  MOST_WORKERS = 64,
  BLOCK = 4096,         // no file system wants direct I/O aligned to more
  MOST_PART = 1 << 30,  // of a request, at once
};

struct tarn__io {
  uint32_t generation;  // of forks
  tarn__io_mover *mover;
  const tarn__io_watch *watch;
  tarn_list pending;
  tarn_list done;
  size_t count;      // of requests in the queue, in any state
  size_t under_way;  // of them
  size_t ready;      // of them: done
};

// --- opening ---------------------------------------------------------------

// With as many as requests under way each request would wake one of them; with
// less than half, they rather find the next one as they end.
static size_t choose_workers(const tarn__io_options *options, size_t depth) {
  if (options->workers != 0) return options->workers;
  size_t half = tarn__lesser(depth / 2, MOST_WORKERS);
  return half > FEW_WORKERS ? half : FEW_WORKERS;
}

// A kernel or a sandbox that forbids io_uring says so in many ways.
static tarn_status choose_mover(const tarn__io_options *options,
                                tarn__io_mover **out_mover) {
  size_t depth = options->depth != 0 ? options->depth : DEPTH;
  if (!options->threads) {
    tarn_status status = tarn__io_ring_begin(depth, out_mover);
    if (status != TARN_E_UNSUPPORTED) return status;
  }
  return tarn__io_threads_begin(depth, choose_workers(options, depth),
                                out_mover);
}

tarn_status tarn__io_open(const tarn__io_options *options, tarn__io **out_io) {
  static const tarn__io_options none;
  if (options == NULL) options = &none;
  *out_io = NULL;
  tarn__io *io = tarn__host_alloc(sizeof *io);
  if (io == NULL) return TARN_E_NOMEM;
  tarn_status status = choose_mover(options, &io->mover);
  if (status != TARN_OK) {
    tarn__host_free(io, sizeof *io);
    return status;
  }
  io->generation = tarn__os_generation();
  io->watch = options->watch;
  tarn_list_init(&io->pending);
  tarn_list_init(&io->done);
  *out_io = io;
  return TARN_OK;
}

const char *tarn__io_method(const tarn__io *io) {
  return io->mover->name;
}

size_t tarn__io_count(const tarn__io *io) {
  return io->count;
}

// --- to the mover ----------------------------------------------------------

static void finish(tarn__io *io, tarn__io_request *request, int error) {
  request->error = error;
  tarn_list_add_tail(&io->done, &request->node);
  io->ready++;
}

// The system takes other offsets for the place where a file is read, or fails
// in ways that depend on the method.
static bool is_in_range(const tarn__io_request *request) {
  return request->offset <= INT64_MAX &&
         request->size <= INT64_MAX - request->offset;
}

void tarn__io_submit(tarn__io *io, tarn__io_request *request) {
  request->done = request->from = 0;
  request->error = 0;
  io->count++;
  if (is_in_range(request)) {
    tarn_list_add_tail(&io->pending, &request->node);
  } else {
    finish(io, request, EINVAL);
  }
}

// 0: it may go.
static int announce(const tarn__io *io, tarn__io_request *request) {
  request->part = tarn__lesser(request->size - request->from, MOST_PART);
  if (io->watch == NULL) return 0;
  return io->watch->before(io->watch->context, request);
}

static void take_batch(tarn__io *io, tarn_list *batch) {
  while (io->under_way < io->mover->depth && !tarn_list_empty(&io->pending)) {
    tarn__io_request *request = tarn__io_first(&io->pending);
    int error = announce(io, request);
    if (error != 0) {
      finish(io, request, error);
    } else {
      tarn_list_add_tail(batch, &request->node);
      io->under_way++;
    }
  }
}

// --- and back --------------------------------------------------------------

// Direct I/O that ended off a block, as at the end of a file, cannot go on
// there: it goes on at the beginning of the block. False: it is there already.
static bool step_back(tarn__io_request *request) {
  uintptr_t bits =
      BLOCK | (uintptr_t)request->data | request->size | request->offset;
  size_t align = bits & -bits;
  if (request->from % align == 0) return false;
  request->from -= request->from % align;
  return true;
}

// What the result of a part makes of a request. True: it is to go on.
static bool advance(tarn__io_request *request, int64_t result) {
  if (result == -EINTR) return true;
  if (result == -EINVAL && step_back(request)) return true;
  if (result < 0) {
    request->error = (int)-result;
    return false;
  }
  size_t end = request->from + (size_t)result;
  bool further = end > request->done;
  if (further) request->done = end;
  request->from = request->done;
  if (request->done == request->size) return false;
  if (!further && request->action == TARN__IO_WRITE) request->error = EIO;
  return further;
}

static void settle(tarn__io *io, tarn__io_request *request) {
  int64_t result = request->result;
  io->under_way--;
  if (io->watch != NULL) {
    result = io->watch->after(io->watch->context, request, result);
  }
  if (advance(request, result)) {
    tarn_list_add(&io->pending, &request->node);
  } else {
    finish(io, request, request->error);
  }
}

static void turn(tarn__io *io, bool wait) {
  tarn_list batch;
  tarn_list moved;
  tarn_list_init(&batch);
  tarn_list_init(&moved);
  take_batch(io, &batch);
  io->mover->turn(io->mover, &batch, wait && io->ready == 0, &moved);
  while (!tarn_list_empty(&moved))
    settle(io, tarn__io_first(&moved));
}

// --- what the caller asks --------------------------------------------------

void tarn__io_start(tarn__io *io) {
  turn(io, false);
}

static bool has_batch(const tarn__io *io) {
  size_t pending = io->count - io->under_way - io->ready;
  return pending >= BATCH && io->under_way < io->mover->depth &&
         io->ready < tarn__divide_up(io->mover->depth, 2);
}

static tarn__io_request *take_done(tarn__io *io) {
  if (io->ready == 0) return NULL;
  io->ready--;
  io->count--;
  return tarn__io_first(&io->done);
}

tarn__io_request *tarn__io_wait(tarn__io *io) {
  if (io->count == 0) return NULL;
  if (has_batch(io)) turn(io, true);
  while (io->ready == 0)
    turn(io, true);
  return take_done(io);
}

tarn__io_request *tarn__io_poll(tarn__io *io) {
  if (io->ready == 0 || has_batch(io)) turn(io, false);
  return take_done(io);
}

// --- closing ---------------------------------------------------------------

static void await_all(tarn__io *io) {
  while (io->under_way > 0) {
    tarn_list_init(&io->pending);
    io->ready = 0;
    turn(io, true);
  }
}

void tarn__io_close(tarn__io *io) {
  if (io == NULL) return;
  bool is_child = io->generation != tarn__os_generation();
  if (!is_child) await_all(io);
  io->mover->end(io->mover, is_child);
  tarn__host_free(io, sizeof *io);
}
