// io.h - a queue of reads and writes of files, of which many are under way at a
// time.
//
//   tarn__io *io;
//   tarn__io_open(&(tarn__io_options){.depth = 64}, &io);
//   tarn__io_submit(io, &request);          // the caller's storage
//   tarn__io_request *done = tarn__io_wait(io);
//   if (done->error != 0) ...
//   tarn__io_close(io);
//
// A request is done when all of its bytes have been moved, when it has failed,
// or when the file ended: short reads and writes go on by themselves. Requests
// are done in any order.
//
// What is submitted goes to the system with the next wait, poll or start, many
// requests by one call of it.
//
// Methods: io_uring by system calls (Linux 5.6), or, where the system forbids
// it, threads that call pread and its kin. Threads are made as they are needed;
// a request that is alone runs on the thread that waits for it, and so does
// each where the system has no thread.
//
// Threads: a queue belongs to one thread at a time, and goes to another one
//          only while nothing is under way.
// Fork:    a queue is the parent's: in a child only tarn__io_close is allowed.
// Signals: a write beyond the largest file that the process may have is one, as
//          elsewhere; tarn__os_allows_file says before.
#ifndef TARN_BASE_IO_H_
#define TARN_BASE_IO_H_

#include "tarn/base.h"

typedef struct tarn__io tarn__io;

typedef enum tarn__io_action {
  TARN__IO_READ,
  TARN__IO_WRITE,
  TARN__IO_DATASYNC,  // of what was written by requests that were done before
                      // it was submitted
} tarn__io_action;

// A read of what is in the page cache: it ends with EAGAIN where other bytes
// begin. The kernel may begin to read those. EOPNOTSUPP: the file system cannot
// tell.
#define TARN__IO_NO_WAIT (1u << 0)

// The caller's storage, which stays where it is, and as it is but for what the
// queue writes, from submit until wait or poll has returned it.
typedef struct tarn__io_request {
  tarn__io_action action;
  uint32_t flags;
  int fd;
  void *data;  // a write does not change it
  size_t size;
  uint64_t offset;
  void *owner;  // the caller's
  // When it is done.
  size_t done;  // bytes that were moved; fewer than |size|: the file ends, or
                // |error|
  int error;    // as errno; 0: none
  // The queue's.
  tarn_list node;
  size_t from;  // the part that is under way, within |size|
  size_t part;
  int64_t result;  // of the part: bytes, or less than 0: as errno, negated
} tarn__io_request;

// What a test puts between a queue and the system, whatever the method. The
// queue's thread calls it. A write is on the disk when the datasync of its file
// is, if |after| of the one came before |before| of the other.
typedef struct tarn__io_watch {
  void *context;
  // The part of |request| is about to go to the system. It may be made shorter.
  // Not 0: it fails with that, as errno, and goes nowhere.
  int (*before)(void *context, tarn__io_request *request);
  // What came of it; returns what the queue is to take it for.
  int64_t (*after)(void *context, const tarn__io_request *request,
                   int64_t result);
} tarn__io_watch;

typedef struct tarn__io_options {
  size_t depth;    // most requests under way; the rest wait in the queue. 0: 64
  bool threads;    // no io_uring
  size_t workers;  // most threads, where there are any; never more than
                   // |depth|. 0: half of |depth|, but 8 to 64
  const tarn__io_watch *watch;  // NULL: none
} tarn__io_options;

// NULL: as if all were 0.
//
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__io_open(const tarn__io_options *options,
                                          tarn__io **out_io);

// "io_uring" or "threads".
const char *tarn__io_method(const tarn__io *io);

void tarn__io_submit(tarn__io *io, tarn__io_request *request);

// Sends what was submitted to the system now, as far as the depth allows.
void tarn__io_start(tarn__io *io);

// Of those that were submitted and not returned.
size_t tarn__io_count(const tarn__io *io);

// The next request that is done; NULL: none was submitted.
tarn__io_request *tarn__io_wait(tarn__io *io);

// The same without waiting; NULL: none is done yet.
tarn__io_request *tarn__io_poll(tarn__io *io);

// Waits for what is under way; what has not been sent never will be. NULL is
// allowed.
void tarn__io_close(tarn__io *io);

#endif  // TARN_BASE_IO_H_
