// arena.h - which bytes of a range are taken, for a range of the caller's own.
//
// Offsets only: the range may be memory of a device, a file, a ring of
// registers; nothing of it is touched, and all bookkeeping is kept apart. It is
// what arena_pool cuts its memory up with.
//
//   [ 4K | hole | 64K |        hole        | 1M | hole ... ]
//
//   tarn_arena_options options = {.struct_size = sizeof options,
//                                 .size = (size_t)1 << 30};
//   tarn_arena *arena;
//   tarn_arena_create(&options, &arena);
//   size_t offset;
//   tarn_arena_alloc(arena, 4096, 0, &offset);   // base + offset is yours
//   tarn_arena_free(arena, offset);
//   tarn_arena_destroy(arena);
//
// A block goes into the hole that fits it closest, as far as a bounded look
// tells; what is freed is one with the holes beside it at once.
//
// Threads:  one at a time for one arena; the caller sees to it.
// Fork:     a child has an arena of its own, as it was at the fork.
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
  size_t granule;  // what offsets and sizes are multiples of: a power of two;
                   // 0: 256
} tarn_arena_options;

// An arena in which all is free.
//
// Lifetime: until tarn_arena_destroy. It keeps no part of |options|.
// TARN_E_INVALID  |granule| is no power of two, |size| is less than one or
//                 more than half of all there is.
TARN_API TARN_MUST_CHECK tarn_status
tarn_arena_create(const tarn_arena_options *options, tarn_arena **out_arena);

// Forgets all blocks.
TARN_API void tarn_arena_destroy(tarn_arena *arena);

// Takes |size| bytes at a multiple of |align|: a power of two, 0 for the
// granule. The offset counts from where the range begins, which should be as
// aligned.
//
// Cost:           a look into a few bins; the worst case walks all holes.
// TARN_FULL       no hole is large enough: the text names the largest.
// TARN_E_INVALID  size 0, or |align| is no power of two.
TARN_API TARN_MUST_CHECK tarn_status tarn_arena_alloc(tarn_arena *arena,
                                                      size_t size, size_t align,
                                                      size_t *out_offset);

// Gives the block that begins at |offset| back.
//
// Cost:           O(1).
// TARN_E_INVALID  no block begins there; nothing has changed.
TARN_API tarn_status tarn_arena_free(tarn_arena *arena, size_t offset);

// Makes the block that begins at |offset| smaller, or larger by the hole behind
// it. It stays where it is.
//
// TARN_FULL       the hole is too small, or there is none: nothing has changed.
// TARN_E_INVALID  no block begins there, or size 0.
TARN_API TARN_MUST_CHECK tarn_status tarn_arena_resize(tarn_arena *arena,
                                                       size_t offset,
                                                       size_t size);

// The range has become |size| bytes longer.
//
// TARN_E_INVALID  |size| is no multiple of the granule, or too much.
TARN_API TARN_MUST_CHECK tarn_status tarn_arena_extend(tarn_arena *arena,
                                                       size_t size);

typedef struct tarn_arena_stats {
  size_t struct_size;
  size_t size;         // of the range
  size_t taken_bytes;  // by blocks, rounded to the granule
  size_t peak_bytes;   // the most of that at once
  size_t peak_end;     // the highest end of a block so far: a range of this
                       // size would have done
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
