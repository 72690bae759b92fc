// One part of a request, on the thread that asks.
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/io_mover.h"

static int64_t call(const tarn__io_request *request) {
  void *data = (void *)((uintptr_t)request->data + request->from);
  off_t offset = (off_t)(request->offset + request->from);
  struct iovec vector = {.iov_base = data, .iov_len = request->part};
  bool no_wait = (request->flags & TARN__IO_NO_WAIT) != 0;
  if (request->action == TARN__IO_DATASYNC) return fdatasync(request->fd);
  if (request->action == TARN__IO_WRITE) {
    return no_wait ? pwritev2(request->fd, &vector, 1, offset, RWF_NOWAIT)
                   : pwrite(request->fd, data, request->part, offset);
  }
  return no_wait ? preadv2(request->fd, &vector, 1, offset, RWF_NOWAIT)
                 : pread(request->fd, data, request->part, offset);
}

void tarn__io_call(tarn__io_request *request) {
  int64_t result = call(request);
  request->result = result < 0 ? -errno : result;
}
