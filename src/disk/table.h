// table.h - a table on disks: a store of records at each rank, and the whole
// memory whose blocks they are.
//
//   table.c        from open to close, flush
//   table_open.c   which epoch all ranks have
//   table_note.c   what a file says of its table
//   table_pager.c  records in memory, for exchanges
#ifndef TARN_DISK_TABLE_H_
#define TARN_DISK_TABLE_H_

#include <limits.h>
#include <pthread.h>

#include "disk/records.h"
#include "tarn/disk.h"
#include "whole/pager.h"

// What each file says of the table, in the note of each epoch.
typedef struct tarn__disk_table_note {
  char magic[8];
  uint64_t id[2];  // the same in all files of a table
  uint64_t ranks;
  uint64_t rank;
  uint64_t rows;  // of the table
  uint64_t first;
  uint64_t count;  // of this rank
  uint64_t width;
  uint64_t record;  // bytes
  uint32_t dtype;
  uint32_t optimizer;  // 0: none
  uint32_t flags;
  float numbers[8];  // of the optimizer, in the order of its options
  uint64_t seed;
  uint64_t applies;
} tarn__disk_table_note;

_Static_assert(sizeof(tarn__disk_table_note) <= TARN__RECORDS_NOTE,
               "it is a note of records");

struct tarn_disk {
  tarn__whole_user user;      // of the whole memory of |table|
  tarn_disk_options options;  // of this version; pointers are for the open only
  tarn_comm *comm;
  char path[PATH_MAX];               // of this rank's file
  tarn__disk_table_note note;        // of the last flush
  tarn_embedding_options optimizer;  // as opened, if |note| has one
  void *blank;  // a record that was never written; NULL: zeros
  tarn__disk_records *records;
  tarn__whole_pager pager;
  pthread_mutex_t lock;  // of |records|, from a pin to its unpin; recursive
  tarn_whole_tensor table;
  tarn_embedding *embedding;
  const tarn__io_watch *watch;  // of the queue; NULL: none
  uint64_t from;                // of a flush: how far this rank has written
  bool broken;                  // some ranks may have an epoch that others lack
};

// tarn_disk_open, for a rank whose queue is watched.
TARN_MUST_CHECK tarn_status tarn__disk_open(tarn_comm *comm,
                                            const tarn_disk_options *options,
                                            const tarn__io_watch *watch,
                                            tarn_disk **out_disk);

// --- table_note.c ----------------------------------------------------------

// Fills a note from options that create a table, all but id and parts.
void tarn__table_note_fill(const tarn_disk_options *options,
                           const tarn_embedding_options *optimizer,
                           tarn__disk_table_note *out);

// The optimizer of |note|, which has one.
tarn_embedding_options tarn__table_note_optimizer(
    const tarn__disk_table_note *note);

// Notes the optimizer as it is now.
void tarn__table_note_take(tarn__disk_table_note *note,
                           const tarn_embedding_options *optimizer);

// Reads what |info| of the file at |path| has.
//
// TARN_E_CORRUPT  it is none of a table.
TARN_MUST_CHECK tarn_status
tarn__table_note_read(const char *path, const tarn__disk_records_info *info,
                      tarn__disk_table_note *out);

// Compares |note| of the file at |path| with what the program gives.
//
// TARN_E_INVALID  the text has both values.
TARN_MUST_CHECK tarn_status tarn__table_note_compare(
    const char *path, const tarn__disk_table_note *note,
    const tarn_disk_options *options, const tarn_embedding_options *optimizer);

// --- table_open.c ----------------------------------------------------------

// What a rank has, for all others.
typedef struct tarn__disk_table_offer {
  tarn__disk_table_note note;
  uint64_t newest;  // epochs
  uint64_t before;  // 0: none
} tarn__disk_table_offer;

// The epoch that all have, of |offers|, one of each rank; all ranks find the
// same. |out_partition|: the rows of each.
//
// TARN_E_CORRUPT  they are of different tables, or there is no such epoch.
TARN_MUST_CHECK tarn_status tarn__table_choose_epoch(
    const tarn_disk *disk, const tarn__disk_table_offer *offers, size_t ranks,
    uint64_t *out_epoch, size_t *out_partition);

// --- table_pager.c ---------------------------------------------------------

// A pager over the records of |disk|.
tarn__whole_pager tarn__table_pager(tarn_disk *disk);

#endif  // TARN_DISK_TABLE_H_
