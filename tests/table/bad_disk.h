// bad_disk.h - a file system of the tests (FUSE, by /dev/fuse itself), which
// has one file and does not read as asked: with an error, or fewer bytes than
// there are.
//
// It is served by a child of the process that mounts it.
#ifndef TARN_TESTS_TABLE_BAD_DISK_H_
#define TARN_TESTS_TABLE_BAD_DISK_H_

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BAD_DISK_FILE "x.npy"

// Shared with the child. Orders are given while nobody reads.
typedef struct bad_disk {
  _Atomic uint64_t fails_at;  // reads of that byte fail with EIO; 0: none
  _Atomic bool shortens;      // reads of more than a block give a part of it
  _Atomic size_t reads;
  _Atomic size_t shortened;
  _Atomic size_t failed;
} bad_disk;

// Mounts it at |folder|, for this process and its children alone, with the
// bytes of the file |backing|. NULL: |*out_why| says what is not permitted
// here.
bad_disk *bad_disk_mount(const char *folder, const char *backing,
                         const char **out_why);

void bad_disk_unmount(const char *folder, bad_disk *disk);

#endif  // TARN_TESTS_TABLE_BAD_DISK_H_
