// root.h - the root of an epoch, as 4096 bytes of a file of blocks (blocks.h).
//
//    0  "TARNDISK"
//    8  4 bytes: the version, 1
//   12  4 bytes: CRC-32C of all that follows
//   16  8 bytes: the epoch, from 1 on
//   24  8 bytes: bytes of a block
//   32  8 bytes: how many blocks there are
//   40  8 bytes: blocks of the file that were in use or free, the file's end
//   48  16 zero bytes
//   64  512 bytes: the note
//  576  entries of the map's top level, 8 bytes each; zeros behind them
//
// Numbers are little-endian. A file has two roots, at bytes 0 and 4096; an
// epoch's is the first if its number is even.
#ifndef TARN_DISK_ROOT_H_
#define TARN_DISK_ROOT_H_

#include "tarn/base.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "as it is written");

enum {
  TARN__ROOT_SIZE = 4096,
  TARN__ROOT_NOTE = 512,     // bytes that belong to whoever flushes
  TARN__ROOT_ENTRIES = 440,  // most entries of a top level
  TARN__ROOTS = 2,           // of a file
  TARN__ROOTS_END = TARN__ROOTS * TARN__ROOT_SIZE,
  TARN__ROOT_LEVELS = 4,  // most levels of a map, the root's among them
};

// Where a block, or a page of the map, is in the file, and what it has to be.
// A page is as large as a block.
typedef struct tarn__disk_entry {
  uint32_t place;  // 1: the block behind the roots; 0: nowhere, all zeros
  uint32_t sum;    // CRC-32C of it; 0 if it is nowhere
} tarn__disk_entry;

typedef struct tarn__disk_root {
  char magic[8];
  uint32_t version;
  uint32_t sum;
  uint64_t epoch;
  uint64_t block;  // bytes
  uint64_t count;
  uint64_t places;
  uint64_t zeros[2];
  unsigned char note[TARN__ROOT_NOTE];
  tarn__disk_entry entries[TARN__ROOT_ENTRIES];
} tarn__disk_root;

_Static_assert(sizeof(tarn__disk_root) == TARN__ROOT_SIZE, "as it is written");

// What a table of |count| blocks needs: |levels[0]| are the entries of its
// blocks, |levels[1]| those of the pages that hold these, and so on.
typedef struct tarn__disk_shape {
  uint64_t block;
  uint64_t count;
  size_t level_count;
  uint64_t levels[TARN__ROOT_LEVELS];
  uint64_t most_places;  // three epochs in which nothing is alike, and writes
                         // that are under way
} tarn__disk_shape;

// False: |block| is no multiple of 4096 or above 64 MiB, |count| is 0, or
// there are more places than 32 bits can tell.
TARN_MUST_CHECK bool tarn__disk_shape_of(uint64_t block, uint64_t count,
                                         tarn__disk_shape *out_shape);

// Gives |root|, whose other fields are set, its magic, version and sum.
void tarn__root_seal(tarn__disk_root *root);

// Whether |root|, read from slot |slot| of the file at |path|, is whole.
//
// TARN_E_CORRUPT      the text names the path, the byte and what was expected.
// TARN_E_UNSUPPORTED  it is of a later version of the library.
TARN_MUST_CHECK tarn_status tarn__root_check(const char *path, size_t slot,
                                             const tarn__disk_root *root,
                                             tarn__disk_shape *out_shape);

#endif  // TARN_DISK_ROOT_H_
