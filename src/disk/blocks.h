// blocks.h - a file of blocks that change together: what was flushed stays as
// it was, whatever happens afterwards.
//
//   tarn__blocks_create(path, 4096, count, note);
//   tarn__blocks_open(path, 0, NULL, &blocks);
//   tarn__blocks_write(blocks, &request);      // the caller's storage
//   ... = tarn__blocks_wait(blocks);           // the request, done
//   tarn__blocks_flush(blocks, note);          // an epoch: all since the last
//   tarn__blocks_close(blocks);
//
// A write goes to a place of the file that neither of two kept epochs uses; a
// map in memory says where each block is. A flush writes the pages of the map
// that have changed, brings them and the blocks to the disk, and then a root,
// which makes them the newest epoch. It is durable when the flush returns.
//
//   byte 0       root of even epochs
//   byte 4096    root of odd epochs
//   byte 8192    places, each of a block, a page of the map, or free
//
// So after a kill or a loss of power at any moment, also within a flush, the
// file opens with the newest epoch whose flush had returned, or with the one
// whose flush had not; each is whole. Sectors of 512 bytes may be torn apart;
// what a disk says that it has synced must be there.
//
// Two epochs are kept, so that of several files that are flushed together,
// each before the next flush of any, all have one epoch in common.
//
// Each block, page and root has a CRC-32C, which is compared when it is read.
//
// Size of the file: at most three times the blocks and pages, if all change
//          between any two flushes; else the blocks that were ever written,
//          and those that changed in the last two epochs. Besides them, an
//          eighth that it grew in advance. It never shrinks.
// Memory:  tarn__blocks_memory: 8 bytes a block for the map, and one byte for
//          each place of the file.
// I/O:     past the page cache where the file system can (O_DIRECT), through a
//          queue (base/io.h), many at a time.
// Threads: one at a time. A file is open once at a time, on one machine.
// Fork:    it is the parent's: a child only closes it.
#ifndef TARN_DISK_BLOCKS_H_
#define TARN_DISK_BLOCKS_H_

#include "base/io.h"
#include "disk/root.h"

enum {
  TARN__BLOCKS_UNIT = 4096,  // of which a block is a multiple, in bytes and in
                             // memory
  TARN__BLOCKS_MOST_WRITES = 1024,  // under way at a time
  TARN__BLOCKS_DEPTH_BYTES = 256,   // of memory for each request of the depth
};

typedef struct tarn__disk_blocks tarn__disk_blocks;

typedef struct tarn__disk_blocks_options {
  size_t depth;                 // most reads and writes under way; 0: 64
  bool threads;                 // no io_uring
  bool cached;                  // through the page cache
  const tarn__io_watch *watch;  // of the queue; NULL: none
} tarn__disk_blocks_options;

// What a file says of itself.
typedef struct tarn__disk_blocks_info {
  uint64_t block;  // bytes
  uint64_t count;
  uint64_t newest;  // epochs
  uint64_t before;  // the other one that is kept; 0: none
} tarn__disk_blocks_info;

// Makes the file at |path|, or replaces it: |count| blocks of |block| bytes, a
// multiple of 4096 up to 64 MiB, all zero and without a place. It is epoch 1,
// with |note|, TARN__ROOT_NOTE bytes, or zeros for NULL, and durable. A crash
// leaves the old file, or none.
//
// TARN_E_INVALID  |block|, or more than 2^32 places for three times |count|.
// TARN_E_IO       the text names the path and says why.
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__blocks_create(const char *path, size_t block,
                                                uint64_t count,
                                                const void *note);

// Which epochs there are; |out_note|, TARN__ROOT_NOTE bytes, is the newest
// one's note. Nothing of them but their roots is read.
//
// TARN_E_IO           no such file, or the system refused.
// TARN_E_CORRUPT      it has no root that is whole; the text has the path, the
//                     byte and what was expected.
// TARN_E_UNSUPPORTED  of a later version.
TARN_MUST_CHECK tarn_status tarn__blocks_ask(const char *path,
                                             tarn__disk_blocks_info *out_info,
                                             void *out_note);

// Opens the file as of |epoch|; 0: the newest. An epoch that is newer than
// |epoch| is gone for good when this returns TARN_OK: so all who have a file
// that was flushed with this one open the same epoch, or none does. |options|
// NULL: as if all were 0.
//
// Cost:           reads the map.
// TARN_E_INVALID  there is no such epoch.
// TARN_E_STATE    it is open already, here or in another process, and still is
//                 after a second: so long one that was killed may take to end.
// TARN_E_CORRUPT  the file is cut, or its map is damaged. Damage to the epoch
//                 before the opened one is no error: it is not kept then.
// TARN_E_UNSUPPORTED, TARN_E_IO  as above. TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__blocks_open(
    const char *path, uint64_t epoch, const tarn__disk_blocks_options *options,
    tarn__disk_blocks **out_blocks);

// Waits for what is under way. What was not flushed is lost. NULL is allowed.
void tarn__blocks_close(tarn__disk_blocks *blocks);

tarn__disk_blocks_info tarn__blocks_tell(const tarn__disk_blocks *blocks);

// The note of the last flush, until the next one.
const void *tarn__blocks_note(const tarn__disk_blocks *blocks);

// Whether it goes past the page cache, and "io_uring" or "threads".
bool tarn__blocks_is_direct(const tarn__disk_blocks *blocks);
const char *tarn__blocks_method(const tarn__disk_blocks *blocks);

// Bytes of memory that a file of |count| blocks of |block| bytes needs while it
// is open, besides what the depth needs; while it is opened, twice the map. 0:
// there is no such file.
size_t tarn__blocks_memory(size_t block, uint64_t count);

// --- reading and writing -----------------------------------------------------

// The caller's storage, from read or write until wait has returned it. |block|,
// |data| and |owner| are set by the caller.
typedef struct tarn__disk_block_request {
  uint64_t block;  // below the count
  void *data;      // bytes of a block, at a multiple of 4096
  void *owner;     // the caller's
  // The file's.
  tarn__io_request io;
  tarn__disk_entry entry;
} tarn__disk_block_request;

// Nothing else of the same block is under way. A write does not change |data|.
// A block that was never written is zeros, without I/O.
void tarn__blocks_read(tarn__disk_blocks *blocks,
                       tarn__disk_block_request *request);
void tarn__blocks_write(tarn__disk_blocks *blocks,
                        tarn__disk_block_request *request);

// Sends what was submitted to the system now.
void tarn__blocks_start(tarn__disk_blocks *blocks);

// The next request that is done; NULL: none is under way.
tarn__disk_block_request *tarn__blocks_wait(tarn__disk_blocks *blocks);

// How it went. After a failed write the block is as it was before.
//
// TARN_E_IO       the text has the path, the byte and the system's reason.
// TARN_E_CORRUPT  the block is damaged, or the file ends before it.
TARN_MUST_CHECK tarn_status tarn__blocks_check(
    const tarn__disk_blocks *blocks, const tarn__disk_block_request *request);

// A flush is two steps, so that files that are flushed together can all take
// the first one before any takes the second.

// Brings all that was written since the last epoch to the disk, with what says
// where it is. Nothing is under way. The newest epoch is the same as before,
// and another one may be prepared, with what is written meanwhile.
//
// TARN_E_IO  the system refused; another try may succeed. Where the text says
//            that the file must be opened again, nothing can be written before:
//            what the disk has is not known.
TARN_MUST_CHECK tarn_status tarn__blocks_prepare(tarn__disk_blocks *blocks);

// Makes what was prepared a new epoch, with |note|, TARN__ROOT_NOTE bytes.
// Nothing was written since it was prepared. Without changes it is a new epoch
// as well.
//
// TARN_E_IO  the file must be opened again, as the text says: on the disk may
//            be this epoch or the one before.
TARN_MUST_CHECK tarn_status tarn__blocks_commit(tarn__disk_blocks *blocks,
                                                const void *note);

// Both.
TARN_MUST_CHECK tarn_status tarn__blocks_flush(tarn__disk_blocks *blocks,
                                               const void *note);

#endif  // TARN_DISK_BLOCKS_H_
