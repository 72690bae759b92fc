// records_store.h - a store of records, as the files that implement it share
// it.
#ifndef TARN_DISK_RECORDS_STORE_H_
#define TARN_DISK_RECORDS_STORE_H_

#include "cache/sieve.h"
#include "disk/blocks.h"
#include "disk/records.h"

// A line that gets its record out of a block, or whose record goes there.
typedef struct tarn__disk_record_move {
  uint32_t line;
  uint32_t slot;  // the record within the block
  uint32_t next;  // of the same job and kind, from 1 on; 0: the last
} tarn__disk_record_move;

// A block that is to be read, written, or both.
typedef struct tarn__disk_block_job {
  uint64_t block;
  uint32_t fills;  // the first of its moves, from 1 on; 0: none
  uint32_t writes;
  uint32_t write_count;
} tarn__disk_block_job;

// A buffer of a block, and the job that has it.
typedef struct tarn__disk_block_room {
  tarn__disk_block_request request;
  tarn__disk_block_job *job;  // NULL: none
} tarn__disk_block_room;

// Jobs of one turn, found by their blocks.
typedef struct tarn__disk_block_jobs {
  tarn__disk_block_job *jobs;
  size_t count;
  size_t started;
  size_t most;
  uint32_t *table;    // from 1 on; 0: none
  size_t table_size;  // a power of two
  tarn__disk_record_move *moves;
  size_t move_count;
  size_t move_most;
} tarn__disk_block_jobs;

struct tarn__disk_records {
  tarn__disk_records_shape shape;
  size_t block;  // bytes
  size_t held;   // records in a block
  size_t memory;
  const void *blank;  // the caller's; NULL: zeros
  tarn__disk_blocks *blocks;
  tarn__cache_sieve *sieve;
  size_t line_count;
  unsigned char *lines;
  unsigned char *buffers;
  tarn__disk_block_room *rooms;
  size_t room_count;
  size_t rooms_used;
  tarn__disk_block_jobs jobs;
  // Of the numbers that a turn looks for.
  size_t progress;  // how many have a line, or may get one in the next turn
  const uint64_t *begun;  // tarn__records_begin; NULL: nothing was
  size_t begun_count;
  size_t window;
  uint32_t *found_lines;  // UINT32_MAX: none yet
  tarn__cache_sieve_batch *batch;
  tarn__cache_sieve_line *dirty;
  size_t dirty_most;
  uint64_t pins;
  tarn__disk_records_tally tally;
};

static inline unsigned char *tarn__records_line(const tarn__disk_records *r,
                                                uint32_t line) {
  return r->lines + line * r->shape.size;
}

// How many records block |block| has.
static inline size_t tarn__records_in(const tarn__disk_records *r,
                                      uint64_t block) {
  uint64_t left = r->shape.count - block * r->held;
  return left < r->held ? (size_t)left : r->held;
}

// The note of a flush, with |shape| in front; |note| NULL: zeros.
void tarn__records_note_write(const tarn__disk_records_shape *shape,
                              const void *note,
                              unsigned char out[TARN__ROOT_NOTE]);

// --- jobs (records_jobs.c) ---------------------------------------------------

void tarn__jobs_clear(tarn__disk_block_jobs *jobs);

// |line| gets record |number|. There is room for it.
void tarn__jobs_fill(tarn__disk_records *r, uint64_t number, uint32_t line);

// The record |number| in |line|, which is being written, goes to its block, and
// so do others of that block that have changed, as far as there is room.
void tarn__jobs_write(tarn__disk_records *r, uint64_t number, uint32_t line);

// Starts jobs, in their order, as long as there are buffers and blocks are only
// to be read. More moves may be added to them then.
void tarn__jobs_start(tarn__disk_records *r);

// Does all jobs, as many at a time as there are buffers. Lines are filled then,
// or have lost their key, and written, or dirty again.
//
// TARN_E_IO, TARN_E_CORRUPT  the first failure.
TARN_MUST_CHECK tarn_status tarn__jobs_run(tarn__disk_records *r);

#endif  // TARN_DISK_RECORDS_STORE_H_
