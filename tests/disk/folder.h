// folder.h - a folder for the files of a test.
#ifndef TARN_TESTS_DISK_FOLDER_H_
#define TARN_TESTS_DISK_FOLDER_H_

#include <stddef.h>
#include <stdint.h>

// Makes one in memory (/dev/shm), where a file costs little; on the disk where
// the machine has no such place, or |on_disk|. It is gone after the test.
void folder_make(int on_disk);

// The path of |name| in it; |slot|, below 4, of which each has a text of its
// own.
const char *folder_path(size_t slot, const char *name);

// XORs the byte of |path| at |offset| with |bits|.
void folder_flip(const char *path, uint64_t offset, unsigned char bits);

// Cuts the file, or lengthens it.
void folder_resize(const char *path, uint64_t size);

// Copies a file.
void folder_copy(const char *from, const char *to);

uint64_t folder_size(const char *path);

#endif  // TARN_TESTS_DISK_FOLDER_H_
