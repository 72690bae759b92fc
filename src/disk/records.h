// records.h - records of one size, as rows of a table with the states of its
// optimizer, in a file that is larger than memory.
//
//   tarn__records_create("users.disk", &(tarn__disk_records_shape){256, rows},
//   NULL); tarn__records_open("users.disk", 0,
//   &(tarn__disk_records_options){.budget = gib},
//                      &records);
//   tarn__records_pin(records, numbers, count, pointers);
//   ... pointers[i] is the record numbers[i] ...
//   tarn__records_unpin(records, pointers, count, true);   // they have changed
//   tarn__records_flush(records, note);                    // and are durable
//   tarn__records_close(records);
//
// The records in use are in memory, in a cache of single records that keeps
// those that are asked for often (SIEVE, cache/sieve.h). A pin reads what it
// lacks: each block of the file once, many at a time, past the page cache.
// Changed records that give way are gathered with others that have changed in
// their block, and written with it; the rest of the block is read for that,
// unless all of it has changed.
//
// On the disk: a file of blocks (blocks.h), whose promise this is: after a kill
//   or a loss of power at any moment the file opens as it was at a flush,
//   whole: the newest that had returned, or one that had not. Two epochs are
//   kept.
// Layout: records of up to 4096 bytes share blocks of 4096, as many as fit
//   whole: 16 of 256 bytes, one of 2400. A larger one has a block of its own,
//   rounded up to 4096 bytes. Less than half of the file is lost by that.
// Memory: no more than the budget, with all that belongs to it: records, 9
//   bytes for each to find it, 11 for each block of the file, buffers, and
//   notes on what is under way, a hundredth.
// Threads: one at a time, also for the bytes of pinned records: they are not
//   changed while another call runs.
// Fork: the store is the parent's: a child only closes it.
#ifndef TARN_DISK_RECORDS_H_
#define TARN_DISK_RECORDS_H_

#include "base/io.h"
#include "disk/root.h"

enum {
  TARN__RECORDS_NOTE = 448,  // bytes of a note
};

typedef struct tarn__disk_records tarn__disk_records;

typedef struct tarn__disk_records_shape {
  size_t size;     // bytes of a record, up to 64 MiB
  uint64_t count;  // records
} tarn__disk_records_shape;

typedef struct tarn__disk_records_options {
  size_t budget;  // bytes of memory; needed
  size_t depth;   // most blocks read and written at a time; 0: 128. Fewer where
                  // their buffers would take more than an eighth of |budget|
  bool threads;   // no io_uring
  bool cached;    // through the page cache, whose memory is not counted
  const void *blank;  // what a record is that was never written, the caller's
                      // until the store is closed; NULL: zeros
  const tarn__io_watch *watch;  // of the queue; NULL: none
} tarn__disk_records_options;

// What a file says of itself.
typedef struct tarn__disk_records_info {
  tarn__disk_records_shape shape;
  uint64_t newest;  // epochs
  uint64_t before;  // the other one that is kept; 0: none
  unsigned char note[TARN__RECORDS_NOTE];  // of the newest
} tarn__disk_records_info;

// Since the store was opened.
typedef struct tarn__disk_records_tally {
  uint64_t asked;          // records that were to be pinned
  uint64_t hits;           // of them in memory
  uint64_t blocks_read;    // for those that were not
  uint64_t blocks_merged;  // for others that gave way
  uint64_t blocks_written;
  uint64_t records_written;  // those that had changed
  uint64_t bytes_read;
  uint64_t bytes_written;  // without the map
  size_t most_under_way;   // blocks that were read and written at a time
  // What there is.
  size_t lines;        // records that fit into memory
  size_t used;         // that are there
  size_t dirty;        // that have changed
  size_t block;        // bytes of one
  size_t memory;       // bytes that the store comes to when all lines are used
  bool direct;         // past the page cache
  const char *method;  // "io_uring" or "threads"
} tarn__disk_records_tally;

// Makes the file at |path|, or replaces it: records of zeros, at epoch 1, with
// |note|, TARN__RECORDS_NOTE bytes, or zeros for NULL. It is durable; a crash
// leaves the old file, or none.
//
// Cost:           none for the records: they have no place in the file until
//                 they are written.
// TARN_E_INVALID  |shape|: a size of 0 or above 64 MiB, no record, or too many.
// TARN_E_IO       the text names the path and says why.
// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__records_create(
    const char *path, const tarn__disk_records_shape *shape, const void *note);

// What records of |shape| come to in a file if all were written once, in bytes;
// up to three times of it if all change between flushes. 0: no such shape.
uint64_t tarn__records_file_size(const tarn__disk_records_shape *shape);

// Which records and epochs a file has.
//
// TARN_E_IO           no such file, or the system refused.
// TARN_E_CORRUPT      damaged, or no file of records; the text has the path,
//                     the byte and what was expected.
// TARN_E_UNSUPPORTED  of a later version.
TARN_MUST_CHECK tarn_status
tarn__records_ask(const char *path, tarn__disk_records_info *out_info);

// Opens the file as of |epoch|; 0: the newest. An epoch that is newer than
// |epoch| is gone for good when this returns TARN_OK: ranks that flushed
// together open the newest epoch that all of them have, or none opens.
//
// Cost:           reads the map, 8 bytes for each block.
// TARN_E_INVALID  there is no such epoch; or |budget| is too small: the text
//                 says how much is needed.
// TARN_E_STATE    it is open already, here or in another process.
// TARN_E_IO, TARN_E_CORRUPT, TARN_E_UNSUPPORTED  as above. TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__records_open(
    const char *path, uint64_t epoch, const tarn__disk_records_options *options,
    tarn__disk_records **out_records);

// Waits for what is under way. Pins end, and what was not flushed is lost. NULL
// is allowed.
void tarn__records_close(tarn__disk_records *records);

tarn__disk_records_info tarn__records_tell(const tarn__disk_records *records);

// Brings |count| records into memory, where they stay until they are unpinned:
// |out_records[i]| is record |numbers[i]|. A number may be there several times,
// and a record be pinned several times; each has its unpin. The addresses are
// multiples of the largest power of two, up to 4096, that divides the size.
//
// Cost:           two accesses of memory for a record that is there; else its
//                 block's read.
// TARN_FULL       too many are pinned, by this call or others: up to a quarter
//                 of |lines| always find room but in one of a million cases,
//                 16 always. Unpin, or ask for fewer.
// TARN_E_INVALID  a number is none of a record; the text has its position.
// TARN_E_IO, TARN_E_CORRUPT  reading, or writing what gives way, failed; the
//                 text has the path and the byte. Nothing that was changed is
//                 lost: another try may succeed.
// In every case but TARN_OK nothing is pinned by this call.
TARN_MUST_CHECK tarn_status tarn__records_pin(tarn__disk_records *records,
                                              const uint64_t *numbers,
                                              size_t count, void **out_records);

// Begins to bring records that the next pin is to be of, with the same
// |numbers| and |count|, so that the disk works while the caller does. A hint:
// too many of them, or more than find room beside what is pinned, are left to
// that pin, and so are failures. |numbers| stay the caller's until that pin, or
// stop. Pins may be ended meanwhile; no other function but has_begun is called.
void tarn__records_begin(tarn__disk_records *records, const uint64_t *numbers,
                         size_t count);
bool tarn__records_has_begun(const tarn__disk_records *records);

// Waits for what was begun, for which no pin will be.
void tarn__records_stop(tarn__disk_records *records);

// Ends the pins that a call, or several, have returned. |dirty|: these records
// have changed. What is changed without saying so may be kept or lost.
void tarn__records_unpin(tarn__disk_records *records, void *const *pinned,
                         size_t count, bool dirty);

// A flush is in steps, so that ranks can take each before any takes the next:
// records are written, some at a time; the epoch is prepared; it is committed.
// Nothing is pinned from the first to the last. Records stay in memory.

// Writes some of the records that have changed, from |*io_from| on, which is 0
// at first; |*out_done|: there are no more.
//
// TARN_E_STATE  records are pinned.
// TARN_E_IO, TARN_E_CORRUPT  another try may succeed.
TARN_MUST_CHECK tarn_status tarn__records_write(tarn__disk_records *records,
                                                uint64_t *io_from,
                                                bool *out_done);

// Brings them to the disk, with what says where they are. Errors as of
// tarn__blocks_prepare.
TARN_MUST_CHECK tarn_status tarn__records_prepare(tarn__disk_records *records);

// Makes them a new epoch, with |note|, TARN__RECORDS_NOTE bytes. Errors as of
// tarn__blocks_commit.
TARN_MUST_CHECK tarn_status tarn__records_commit(tarn__disk_records *records,
                                                 const void *note);

// All steps.
//
// Cost:  writes the blocks in which records have changed, and the pages of the
//        map that say where those are; two syncs.
TARN_MUST_CHECK tarn_status tarn__records_flush(tarn__disk_records *records,
                                                const void *note);

void tarn__records_count(const tarn__disk_records *records,
                         tarn__disk_records_tally *out_tally);

#endif  // TARN_DISK_RECORDS_H_
