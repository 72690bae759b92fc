// bad_disk.h - a file system of the tests (FUSE, by /dev/fuse itself), which
// does not do as asked: reads, writes or syncs fail, or fewer bytes are moved
// than there are.
//
// It lies over a folder and has the files of that folder, which are there as it
// has left them when it is unmounted. It is served by a child of the process
// that mounts it.
#ifndef TARN_TESTS_TABLE_BAD_DISK_H_
#define TARN_TESTS_TABLE_BAD_DISK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum bad_call {
  BAD_NONE,
  BAD_READ,    // of the byte |at|
  BAD_WRITE,   // of the byte |at|
  BAD_FULL,    // a write of the byte |at| takes nothing, and is no failure
  BAD_SYNC,    // of a file, the |at|-th from now; 1 is the next
  BAD_RENAME,  // the |at|-th
  BAD_FOLDER,  // the sync of the folder, each
} bad_call;

// Shared with the child. Orders are given while nobody uses a file.
typedef struct bad_disk {
  _Atomic bad_call fails;  // with EIO
  _Atomic uint64_t at;
  _Atomic bool shortens;  // more than a block is moved in part
  _Atomic size_t shortened;
  _Atomic size_t failed;
} bad_disk;

// Most bytes of a read or write that the file system moves at once.
enum { BAD_DISK_PART = 128 << 10 };

// Mounts it over |folder|, for this process and its children alone. NULL:
// |*out_why| says what is not permitted here.
bad_disk *bad_disk_mount(const char *folder, const char **out_why);

void bad_disk_unmount(const char *folder, bad_disk *disk);

#endif  // TARN_TESTS_TABLE_BAD_DISK_H_
