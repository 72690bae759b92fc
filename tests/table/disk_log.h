// disk_log.h - what a store does to its file, or to a file for each rank,
// recorded, and what may be on the disk after a loss of power at any moment of
// it.
//
// It stands between the library and the system: the watch of each queue (io.h),
// by either method, and the functions of os.h that write files, bring them to
// the disk and rename them, which the linker replaces (--wrap). All of them
// still do what they are for.
//
//   began   a write ──────► ended        a moment is between two of these
//               began   a sync ──► ended
//
// What is sure to be on the disk: writes that had ended before a sync of the
// same descriptor, of the same rank, began that has ended. Of the others any
// may be there, in any order, in whole sectors of 512 bytes. So it is with
// machines that do not see one another's writes; one machine promises more.
#ifndef TARN_TESTS_TABLE_DISK_LOG_H_
#define TARN_TESTS_TABLE_DISK_LOG_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A sync of a file that the disk only says it has done: the |number|-th of a
// rank, 1 is the first; 0: none.
typedef struct disk_lie {
  size_t rank;
  size_t number;
} disk_lie;

// Forgets what was recorded, and records one store, by any number of ranks,
// each a thread.
void disk_log_begin(disk_lie lie);
void disk_log_end(void);

// This thread's rank, from here on.
void disk_log_be(size_t rank);

// Which file: that of all ranks, or the one that is a rank's own.
enum { DISK_SHARED = -1 };

size_t disk_log_moments(void);  // from 0 on
size_t disk_log_syncs(void);    // of files
size_t disk_log_writes(void);

// Which file has the name at a moment.
typedef enum disk_name {
  DISK_OLD,
  DISK_EITHER,
  DISK_NEW,
} disk_name;

disk_name disk_log_name(int file, size_t moment);

// One of the contents that the new file may have at a moment; |seed| says
// which, and how: with what is sure alone, with all of the others, with all but
// the first write and what lengthens the file, with some, with sectors of some.
// malloc'ed.
enum { DISK_WAYS = 5 };
unsigned char *disk_log_image(int file, size_t moment, uint64_t seed,
                              size_t *out_size);

#endif  // TARN_TESTS_TABLE_DISK_LOG_H_
