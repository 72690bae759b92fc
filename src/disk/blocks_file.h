// blocks_file.h - a file of blocks, as the files that implement it share it.
#ifndef TARN_DISK_BLOCKS_FILE_H_
#define TARN_DISK_BLOCKS_FILE_H_

#include "disk/blocks.h"
#include "disk/map.h"
#include "disk/space.h"

// A page of a map that is read or written.
typedef struct tarn__disk_page_move {
  tarn__io_request io;
  size_t level;
  size_t page;
} tarn__disk_page_move;

struct tarn__disk_blocks {
  char *path;
  int fd;
  bool direct;
  bool broken;  // what the disk has is not known
  uint64_t epoch;
  uint64_t before;  // 0: none
  tarn__io *io;
  tarn__disk_root *roots;  // what the file has in either place
  tarn__disk_map map;
  tarn__disk_space space;
  tarn_list ready;  // requests that are done without the queue
  tarn__disk_page_move *moves;
  size_t move_count;
  size_t move_used;  // those that have been under way since they were all free
};

// The byte of the file at which |place| begins.
static inline uint64_t tarn__blocks_byte(const tarn__disk_blocks *b,
                                         uint32_t place) {
  return TARN__ROOTS_END + (place - 1) * b->map.shape.block;
}

// The root of |epoch|.
static inline tarn__disk_root *tarn__blocks_root(const tarn__disk_blocks *b,
                                                 uint64_t epoch) {
  return &b->roots[epoch % TARN__ROOTS];
}

// A free place, for which the file grows if it must; 0, with errno: there is
// none.
uint32_t tarn__blocks_take(tarn__disk_blocks *b);

// One request, whole, while nothing else is under way.
//
// TARN_E_IO  the text says what could not be done.
TARN_MUST_CHECK tarn_status tarn__blocks_do(tarn__disk_blocks *b,
                                            tarn__io_request *request);

// The same, of the root in |slot|; and of bringing all to the disk.
TARN_MUST_CHECK tarn_status tarn__blocks_write_root(tarn__disk_blocks *b,
                                                    size_t slot);
TARN_MUST_CHECK tarn_status tarn__blocks_sync(tarn__disk_blocks *b);

// Submits a move of the page of |map| at |place|, when there is a move that is
// free, and finishes one otherwise; and finishes those that are left.
typedef struct tarn__disk_page_course {
  tarn__disk_blocks *blocks;
  tarn__disk_map *map;
  tarn__io_action action;
  tarn_status (*finish)(struct tarn__disk_page_course *course,
                        const tarn__disk_page_move *move);
  tarn__disk_state state;  // reading: what uses the places
  tarn_status status;      // the first failure
} tarn__disk_page_course;

void tarn__pages_start(tarn__disk_page_course *course, size_t level,
                       size_t page, uint32_t place);
void tarn__pages_finish(tarn__disk_page_course *course);

// Whether the system has moved all of the |size| bytes that |request| wanted.
//
// TARN_E_IO, TARN_E_CORRUPT  the text says at which byte not.
TARN_MUST_CHECK tarn_status tarn__blocks_check_io(
    const tarn__disk_blocks *b, const tarn__io_request *request);

// Whether |size| bytes, read from |at|, have |sum|; |what| they are.
//
// TARN_E_CORRUPT.
TARN_MUST_CHECK tarn_status tarn__blocks_check_sum(const tarn__disk_blocks *b,
                                                   const char *what,
                                                   uint64_t at,
                                                   const void *bytes,
                                                   uint32_t sum);

// Reads the map of the epoch whose root is |root| into |map|, and notes which
// places it uses.
//
// TARN_E_CORRUPT, TARN_E_IO.
TARN_MUST_CHECK tarn_status tarn__blocks_load(tarn__disk_blocks *b,
                                              const tarn__disk_root *root,
                                              tarn__disk_map *map,
                                              tarn__disk_state state);

#endif  // TARN_DISK_BLOCKS_FILE_H_
