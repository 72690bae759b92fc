// Files of blocks: reading and writing.
//
//   write   block ──► a place that is free ──► done: the map says so,
//                                              and the old place is dropped
//
// Invariant: the map, and so the next epoch, names only places whose writes are
// done. A write that fails has changed nothing but bytes of a free place.
#include "disk/blocks.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/os.h"
#include "base/status.h"
#include "disk/blocks_file.h"

// --- what went wrong ---------------------------------------------------------

tarn_status tarn__blocks_check_io(const tarn__disk_blocks *b,
                                  const tarn__io_request *request) {
  uint64_t at = request->offset + request->done;
  if (request->error != 0 && request->action == TARN__IO_DATASYNC) {
    return tarn__fail(TARN_E_IO, "disk: '%s': cannot bring it to the disk: %s",
                      b->path, strerror(request->error));
  }
  if (request->error != 0) {
    return tarn__fail(TARN_E_IO, "disk: '%s': byte %" PRIu64 ": cannot %s: %s",
                      b->path, at,
                      request->action == TARN__IO_READ ? "read" : "write",
                      strerror(request->error));
  }
  if (request->done == request->size) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "disk: '%s': the file ends at byte %" PRIu64
                    ", and should go on to %" PRIu64 " at least",
                    b->path, at, request->offset + request->size);
}

tarn_status tarn__blocks_check_sum(const tarn__disk_blocks *b, const char *what,
                                   uint64_t at, const void *bytes,
                                   uint32_t sum) {
  uint64_t size = b->map.shape.block;
  uint32_t found = tarn__crc32c(0, bytes, (size_t)size);
  if (found == sum) return TARN_OK;
  return tarn__fail(TARN_E_CORRUPT,
                    "disk: '%s': bytes %" PRIu64 " to %" PRIu64
                    ": %s is damaged: its checksum is %08" PRIx32
                    ", and should be %08" PRIx32,
                    b->path, at, at + size - 1, what, found, sum);
}

tarn_status tarn__blocks_check(const tarn__disk_blocks *b,
                               const tarn__disk_block_request *request) {
  const tarn__io_request *io = &request->io;
  if (io->action == TARN__IO_WRITE && b->broken) {
    return tarn__fail(TARN_E_IO,
                      "disk: '%s': cannot write: a flush has failed, and it "
                      "must be opened again",
                      b->path);
  }
  TARN__TRY(tarn__blocks_check_io(b, io));
  if (io->action == TARN__IO_WRITE || request->entry.place == 0) return TARN_OK;
  return tarn__blocks_check_sum(b, "a block", io->offset, request->data,
                                request->entry.sum);
}

// --- places ------------------------------------------------------------------

static bool grow_by(tarn__disk_blocks *b, size_t count) {
  tarn__disk_space *space = &b->space;
  count = tarn__lesser(count, space->most - space->places);
  errno = ENOSPC;
  if (count == 0) return false;
  uint64_t end = tarn__blocks_byte(b, (uint32_t)(space->places + count)) +
                 b->map.shape.block;
  if (!tarn__os_allows_file((size_t)end) || !tarn__os_resize(b->fd, end))
    return false;
  tarn__space_extend(space, count);
  return true;
}

// In advance, since each time costs the file system an entry in its journal; as
// little as possible where there is not as much.
uint32_t tarn__blocks_take(tarn__disk_blocks *b) {
  enum { FEW = 256 << 10 };  // bytes
  size_t few = FEW / (size_t)b->map.shape.block + 1;
  uint32_t place = tarn__space_take(&b->space);
  if (place != 0) return place;
  if (!grow_by(b, b->space.places / 8 + few) && !grow_by(b, 1)) return 0;
  return tarn__space_take(&b->space);
}

// --- requests ----------------------------------------------------------------

static void end_at_once(tarn__disk_blocks *b, tarn__disk_block_request *request,
                        int error) {
  request->io.error = error;
  request->io.done = error == 0 ? request->io.size : 0;
  tarn_list_add_tail(&b->ready, &request->io.node);
}

static void prepare(const tarn__disk_blocks *b,
                    tarn__disk_block_request *request, tarn__io_action action) {
  assert(request->block < b->map.shape.count);
  request->io = (tarn__io_request){.action = action,
                                   .fd = b->fd,
                                   .data = request->data,
                                   .size = (size_t)b->map.shape.block,
                                   .owner = request};
}

void tarn__blocks_read(tarn__disk_blocks *b,
                       tarn__disk_block_request *request) {
  prepare(b, request, TARN__IO_READ);
  request->entry = tarn__map_get(&b->map, 0, request->block);
  if (request->entry.place == 0) {
    memset(request->data, 0, request->io.size);
    end_at_once(b, request, 0);
    return;
  }
  request->io.offset = tarn__blocks_byte(b, request->entry.place);
  tarn__io_submit(b->io, &request->io);
}

void tarn__blocks_write(tarn__disk_blocks *b,
                        tarn__disk_block_request *request) {
  prepare(b, request, TARN__IO_WRITE);
  request->entry = (tarn__disk_entry){0};
  errno = EIO;
  if (!b->broken) request->entry.place = tarn__blocks_take(b);
  if (request->entry.place == 0) {
    end_at_once(b, request, errno);
    return;
  }
  request->entry.sum = tarn__crc32c(0, request->data, request->io.size);
  request->io.offset = tarn__blocks_byte(b, request->entry.place);
  tarn__io_submit(b->io, &request->io);
}

static void settle_write(tarn__disk_blocks *b,
                         const tarn__disk_block_request *request) {
  if (request->io.error != 0) {
    tarn__space_drop(&b->space, request->entry.place);
    return;
  }
  uint32_t old = tarn__map_get(&b->map, 0, request->block).place;
  if (old != 0) tarn__space_drop(&b->space, old);
  tarn__map_set(&b->map, 0, request->block, request->entry);
}

void tarn__blocks_start(tarn__disk_blocks *b) {
  tarn__io_start(b->io);
}

tarn__disk_block_request *tarn__blocks_wait(tarn__disk_blocks *b) {
  tarn__io_request *io = NULL;
  if (!tarn_list_empty(&b->ready)) {
    io = tarn_list_entry(b->ready.next, tarn__io_request, node);
    tarn_list_del(&io->node);
    return io->owner;
  }
  io = tarn__io_wait(b->io);
  if (io == NULL) return NULL;
  tarn__disk_block_request *request = io->owner;
  if (io->action == TARN__IO_WRITE) settle_write(b, request);
  return request;
}
