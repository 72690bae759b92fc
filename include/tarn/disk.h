// disk.h - tables that are larger than memory: rows in files of the ranks, with
// the states of their optimizer, and those in use in memory.
//
//   tarn_embedding_options adam;
//   tarn_embedding_defaults(TARN_OPTIMIZER_ADAM, &adam);
//   tarn_disk_options options = {.struct_size = sizeof options,
//                                .path = "/ssd/users",
//                                .flags = TARN_DISK_CREATE,
//                                .dtype = TARN_DTYPE_F32,
//                                .rows = rows, .width = 64,
//                                .optimizer = &adam,
//                                .memory = (size_t)1 << 30};
//   tarn_disk *disk;
//   tarn_disk_open(comm, &options, &disk);                   // all ranks
//   tarn_whole_tensor table = tarn_disk_table(disk);
//   tarn_whole_gather(&table, &batch, NULL);                 // all ranks
//   ...                                                      // gradients
//   tarn_embedding_apply(tarn_disk_embedding(disk), &gradients, NULL);
//   ...
//   tarn_disk_flush(disk);                                   // all ranks
//   tarn_disk_close(disk);                                   // all ranks
//
// The table is a whole-memory tensor (whole.h) of the type DISTRIBUTED whose
// rows have no addresses. Collectives reach them, from any place: gather, also
// one that was begun (tarn_whole_gather_begin), scatter and scatter_add;
// tarn_embedding_apply; loads and stores of files (table.h); and a cache
// (cache.h) near a device. Functions that tell an address are
// TARN_E_UNSUPPORTED.
//
// A row and its states are one record, so that an update reads and writes one
// block. Each rank keeps its records in a file of its own, PATH_part_I_of_N for
// rank I of N, in blocks of 4096 bytes (larger, if a record is), past the page
// cache where the file system can. Ranks need not see the files of others. In
// memory is a cache of single records: those that were asked for again stay
// (SIEVE). Records that a call lacks are read many at a time, and those of one
// block with one read; changed records that give way are written with all that
// has changed in their block.
//
// Flush. Changes are durable when tarn_disk_flush has returned at all ranks, as
// one epoch: rows, states, counts of steps, and the maps of the files. After a
// kill or a loss of power at any moment the table opens as it was at a flush,
// whole and at all ranks the same one: the newest whose flush returned, or one
// whose flush did not. For that each file keeps two epochs, and an open takes
// the newest one that every rank has. Blocks that were flushed are never
// written over while they are kept. So a disk may tear and reorder what is not
// synced; what it says is synced must be there (fdatasync).
//
// Size of a file: what was ever written, and what has changed since the last
//          flush but one; three times the table at most. It never shrinks.
// Checks:  each block has a CRC-32C, compared when it is read.
// Threads: collective functions as in whole.h; the others by one thread at a
//          time for a table.
// Fork:    in the child, a table of the parent returns TARN_E_STATE. It can be
//          closed there, which frees its memory and nothing else.
// Errors:  besides those of each function: those of collectives (whole.h),
//          TARN_E_INVALID for a required argument that is NULL, TARN_E_NOMEM.
//          Gathers, scatters and applies of the table also return TARN_E_IO,
//          and TARN_E_CORRUPT for a block that is damaged; the text has the
//          path and the byte. Nothing that was changed is lost by them.
#ifndef TARN_DISK_H_
#define TARN_DISK_H_

#include "tarn/base.h"
#include "tarn/comm.h"
#include "tarn/embedding.h"
#include "tarn/whole.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_disk tarn_disk;

// Makes the files, in place of those that there are. All rows are zero. After a
// kill meanwhile, ranks may have no file, an old one or a new one: an open says
// so (TARN_E_IO, TARN_E_CORRUPT), and the next create makes them all.
#define TARN_DISK_CREATE (1u << 0)

// Reads and writes through the page cache, whose memory is not counted.
#define TARN_DISK_CACHED (1u << 1)

// Reads and writes by threads, also where the system has io_uring.
#define TARN_DISK_THREADS (1u << 2)

// Without TARN_DISK_CREATE, what the files say is not needed, and compared if
// it is given: |dtype|, |rows|, |width|, |partition|, and of |optimizer| which
// one it is, its flags and |initial|.
typedef struct tarn_disk_options {
  size_t struct_size;
  const char *path;  // what the files' names begin with
  uint64_t flags;    // TARN_DISK_... bits
  tarn_dtype dtype;
  size_t rows;
  size_t width;             // elements of a row
  const size_t *partition;  // rows of each rank; NULL: as tarn_whole_partition
  const tarn_embedding_options *optimizer;  // NULL: the table does not learn;
                                            // opened again: as it was created
  size_t memory;  // bytes of this rank for all that belongs to the table, but
                  // for what exchanges of whole.h and embedding.h take
  size_t depth;   // most blocks read or written at a time. 0: 128; fewer where
                  // their buffers would take more than an eighth of |memory|
  const char *name;  // for texts, as in tarn_whole_options
} tarn_disk_options;

// Opens the table, or makes it. Collective. Other options than |memory|,
// |depth| and what the path is on are the same at all ranks; so is the number
// of ranks each time.
//
// An opened table is as it was at the newest flush that all ranks have. What
// ranks have flushed after it, without the others, is gone.
//
// Cost:   reads the map of this rank's file: 8 bytes for each block.
// Memory: the least is some 11 bytes for each block, 9 for each record that is
//         in memory, and a few hundred KiB; the text of an error has it.
// TARN_E_INVALID      an option; |memory| is too small; the options differ
//                     between ranks, or from what the files say. The text has
//                     the values.
// TARN_E_UNSUPPORTED  a rank would own 2^32 - 1 rows or more; or a file is of a
//                     later version.
// TARN_E_IO           a file cannot be made, opened or read: the text names it
//                     and says why. With another number of ranks than created
//                     them, the files have other names, and are not found.
// TARN_E_CORRUPT      a file is damaged, or no table; or files are of different
//                     tables, or have no flush in common. The text has the
//                     path, and the byte where there is one.
// TARN_E_STATE        a file is open already, here or in another process.
TARN_API TARN_MUST_CHECK tarn_status tarn_disk_open(
    tarn_comm *comm, const tarn_disk_options *options, tarn_disk **out_disk);

// Closes the table. What was not flushed is lost. Its tensors and its embedding
// end. Collective. NULL is allowed, at all ranks or none.
//
// TARN_E_STATE  a gather that was begun has not ended. Nothing has changed.
// Other errors as of tarn_whole_destroy: the table is closed all the same.
TARN_API tarn_status tarn_disk_close(tarn_disk *disk);

// Gives |disk|, a tarn_disk or NULL, up at this rank, as tarn_whole_give_up
// does whole memory (whole.h): when each rank has given it up, it is closed by
// the next collective that makes or ends whole memory of its communicator.
//
// Threads: any, also while another is in a collective.
TARN_API void tarn_disk_give_up(void *disk);

// The rows.
//
// Lifetime: until tarn_disk_close. The whole memory cannot be destroyed
//           (TARN_E_STATE).
TARN_API tarn_whole_tensor tarn_disk_table(const tarn_disk *disk);

// The table as an embedding (embedding.h); NULL: it has no optimizer. Its
// states, tarn_embedding_tensors, are tensors as the table is.
//
// Lifetime: until tarn_disk_close. It cannot be destroyed (TARN_E_STATE).
TARN_API tarn_embedding *tarn_disk_embedding(const tarn_disk *disk);

// Makes all changes durable at all ranks, as one epoch. Collective: changes of
// calls before it are part of the epoch. Rows stay in memory.
//
// Cost:          each rank writes the blocks in which its records have changed,
//                and the pages of the map that say where those are; two syncs.
//                Ranks meet once a second while they write, so that one with
//                much to write is not taken for a lost one; one whose disk
//                needs longer for a single sync than the timeout of the
//                communicator is.
// TARN_E_IO, TARN_E_CORRUPT  a rank could not write. Its changes are still in
//                memory, and the next flush tries again; unless the text says
//                that the table must be opened again: then it is not known what
//                the disk has.
// TARN_E_STATE   the table must be opened again, since a flush before has
//                failed.
TARN_API TARN_MUST_CHECK tarn_status tarn_disk_flush(tarn_disk *disk);

// Of this rank; counts since it was opened.
typedef struct tarn_disk_info {
  size_t struct_size;
  uint64_t epoch;          // of the last flush; 1: the table is new
  uint64_t asked;          // records that calls wanted
  uint64_t hits;           // of them in memory
  uint64_t blocks_read;    // for those that were not
  uint64_t blocks_merged;  // for writing others that gave way
  uint64_t blocks_written;
  uint64_t records_written;  // those that had changed
  uint64_t bytes_read;
  uint64_t bytes_written;  // without maps
  size_t most_under_way;   // blocks read and written at a time
  size_t record;           // bytes of one: a row and its states
  size_t block;            // bytes
  size_t lines;            // records that fit into memory
  size_t used;             // that are there
  size_t dirty;            // that have changed since the last flush
  size_t memory;           // bytes that this comes to when all lines are used
  bool direct;             // past the page cache
  const char *method;      // "io_uring" or "threads"
} tarn_disk_info;

TARN_API TARN_MUST_CHECK tarn_status tarn_disk_query(tarn_disk *disk,
                                                     tarn_disk_info *out_info);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_DISK_H_
