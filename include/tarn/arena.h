// arena.h - suballocation of a range of the caller's.
//
// An arena works with offsets only. The range may be device memory, a file, a
// ring of registers; nothing in it is touched, and all metadata is outside of
// it. arena_pool uses the same code.
//
//   [ 4K | hole | 64K |        hole        | 1M | hole ... ]
//
//   tarn_arena_options options = {.struct_size = sizeof options,
//                                 .size = (size_t)1 << 30};
//   tarn_arena *arena;
//   tarn_arena_create(&options, &arena);
//   size_t offset;
//   tarn_arena_alloc(arena, 4096, 0, &offset);   // use base + offset
//   tarn_arena_free(arena, offset);
//   tarn_arena_destroy(arena);
//
// A block is placed in the best-fitting hole that a bounded search finds. A
// freed block merges with adjacent holes at once.
//
// Threads:  one at a time for one arena; the caller synchronizes.
// Fork:     a child has its own copy of the arena, as at the fork.
#ifndef TARN_ARENA_H_
#define TARN_ARENA_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_arena tarn_arena;

typedef struct tarn_arena_options {
  size_t struct_size;
  size_t size;     // of the range; rounded down to the granule
  size_t granule;  // unit of offsets and sizes: a power of two; 0: 256
} tarn_arena_options;

// Creates an empty arena.
//
// Lifetime: until tarn_arena_destroy. |options| is not kept.
// TARN_E_INVALID  |granule| is not a power of two, or |size| is less than one
//                 granule or more than half of the address space.
TARN_API TARN_MUST_CHECK tarn_status
tarn_arena_create(const tarn_arena_options *options, tarn_arena **out_arena);

// Destroys the arena with all blocks; NULL is allowed.
TARN_API void tarn_arena_destroy(tarn_arena *arena);

// Allocates |size| bytes at a multiple of |align|: a power of two; 0: the
// granule. Offsets count from the start of the range, which should be as
// aligned.
//
// Cost:           a search of a few bins; in the worst case a walk over all
//                 holes.
// TARN_FULL       no hole is large enough: the text names the largest.
// TARN_E_INVALID  size 0, or |align| is not a power of two.
TARN_API TARN_MUST_CHECK tarn_status tarn_arena_alloc(tarn_arena *arena,
                                                      size_t size, size_t align,
                                                      size_t *out_offset);

// Frees the block at |offset|.
//
// Cost:           O(1).
// TARN_E_INVALID  no block begins there; nothing has changed.
TARN_API tarn_status tarn_arena_free(tarn_arena *arena, size_t offset);

// Shrinks the block at |offset|, or grows it into the hole behind it. It does
// not move.
//
// TARN_FULL       the hole is too small, or there is none: nothing has changed.
// TARN_E_INVALID  no block begins there, or size 0.
TARN_API TARN_MUST_CHECK tarn_status tarn_arena_resize(tarn_arena *arena,
                                                       size_t offset,
                                                       size_t size);

// Makes the range |size| bytes longer.
//
// TARN_E_INVALID  |size| is not a multiple of the granule, or too large.
TARN_API TARN_MUST_CHECK tarn_status tarn_arena_extend(tarn_arena *arena,
                                                       size_t size);

typedef struct tarn_arena_stats {
  size_t struct_size;
  size_t size;         // of the range
  size_t taken_bytes;  // by blocks, rounded to the granule
  size_t peak_bytes;   // the peak of taken_bytes
  size_t peak_end;     // the highest end of a block so far: the smallest range
                       // that would have sufficed
  size_t blocks;
  size_t holes;
  size_t largest_hole;
} tarn_arena_stats;

// Cost: a walk over all blocks and holes.
TARN_API TARN_MUST_CHECK tarn_status
tarn_arena_query(const tarn_arena *arena, tarn_arena_stats *out_stats);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_ARENA_H_
