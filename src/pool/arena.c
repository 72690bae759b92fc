// An arena for users: extents of a range, and an index by offset.
#include "tarn/arena.h"

#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/extents.h"
#include "pool/piece.h"

enum { DEFAULT_GRANULE = 256 };

// The index holds offsets as addresses, among which 0 is invalid.
static const tarn_addr BASE = UINT64_C(1) << 61;

struct tarn_arena {
  tarn__pool_extents extents;
  tarn__pool_pieces blocks;  // by address; the home of each is its extent
  size_t size;
  size_t peak_bytes;
  size_t peak_end;
};

static tarn_status check(const tarn_arena *arena) {
  if (arena != NULL) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "arena: NULL");
}

// --- making and ending -----------------------------------------------------

static tarn_status start(tarn_arena *arena, size_t size, size_t granule) {
  TARN__TRY(tarn__extents_init(&arena->extents, granule, granule));
  if (!tarn__extents_reserve(&arena->extents, 0)) return TARN_E_NOMEM;
  arena->size = size & ~(granule - 1);
  tarn__extents_add(&arena->extents, BASE, arena->size, TARN__EXTENT_OPEN);
  return TARN_OK;
}

tarn_status tarn_arena_create(const tarn_arena_options *options,
                              tarn_arena **out_arena) {
  size_t known = 0;
  *out_arena = NULL;
  if (options == NULL ||
      !tarn__struct_size(options->struct_size,
                         TARN__SIZE_UP_TO(tarn_arena_options, granule),
                         sizeof *options, &known)) {
    return tarn__fail(TARN_E_INVALID, "arena options: NULL or struct_size");
  }
  size_t granule = options->granule != 0 ? options->granule : DEFAULT_GRANULE;
  if (!tarn_is_power_of_two(granule) || options->size < granule ||
      options->size > BASE) {
    return tarn__fail(TARN_E_INVALID,
                      "arena: a range of %zu bytes with a granule of %zu",
                      options->size, granule);
  }
  tarn_arena *arena = tarn__host_alloc(sizeof *arena);
  if (arena == NULL) return TARN_E_NOMEM;
  tarn_status status = start(arena, options->size, granule);
  if (status != TARN_OK) {
    tarn_arena_destroy(arena);
    return status;
  }
  *out_arena = arena;
  return TARN_OK;
}

void tarn_arena_destroy(tarn_arena *arena) {
  if (arena == NULL) return;
  tarn__extents_deinit(&arena->extents);
  tarn__pieces_deinit(&arena->blocks);
  tarn__host_free(arena, sizeof *arena);
}

// --- blocks ----------------------------------------------------------------

static tarn_status full(const tarn_arena *arena, size_t size) {
  tarn_arena_stats stats = {.struct_size = sizeof stats};
  TARN__TRY(tarn_arena_query(arena, &stats));
  return tarn__fail(TARN_FULL,
                    "arena: %zu bytes do not fit: %zu are free in %zu holes, "
                    "the largest of %zu",
                    size, stats.size - stats.taken_bytes, stats.holes,
                    stats.largest_hole);
}

static void raise_peaks(tarn_arena *arena, const tarn__pool_extent *e) {
  size_t end = (size_t)(e->offset + e->size - BASE);
  size_t taken = arena->extents.taken_bytes;
  if (taken > arena->peak_bytes) arena->peak_bytes = taken;
  if (end > arena->peak_end) arena->peak_end = end;
}

static tarn_status take(tarn_arena *arena, size_t size, size_t align,
                        size_t *out_offset) {
  uint64_t serial = 0;
  if (!tarn__extents_reserve(&arena->extents, 0)) return TARN_E_NOMEM;
  tarn__pool_piece *block = tarn__pieces_take(&arena->blocks);
  if (block == NULL) return TARN_E_NOMEM;
  tarn__pool_extent *e =
      tarn__extents_take(&arena->extents, size, align, 0, &serial);
  if (e == NULL) {
    tarn__pieces_leave(&arena->blocks, block);
    return full(arena, size);
  }
  block->address = block->base = e->offset;
  block->home = e;
  tarn__pieces_enter(&arena->blocks, block);
  raise_peaks(arena, e);
  *out_offset = (size_t)(e->offset - BASE);
  return TARN_OK;
}

tarn_status tarn_arena_alloc(tarn_arena *arena, size_t size, size_t align,
                             size_t *out_offset) {
  *out_offset = 0;
  TARN__TRY(check(arena));
  size_t granule = arena->extents.granule;
  if (align == 0) align = granule;
  if (size == 0 || !tarn_is_power_of_two(align)) {
    return tarn__fail(TARN_E_INVALID,
                      "arena: size %zu or alignment %zu is invalid", size,
                      align);
  }
  // A size above the range is refused here, before it is rounded up.
  if (size > arena->size || align > BASE) return full(arena, size);
  return take(arena, size, align > granule ? align : granule, out_offset);
}

static tarn_status find(tarn_arena *arena, size_t offset,
                        tarn__pool_piece **out_block) {
  TARN__TRY(check(arena));
  *out_block = offset < arena->size
                   ? tarn__pieces_find(&arena->blocks, BASE + offset)
                   : NULL;
  if (*out_block != NULL) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "arena: no block begins at offset %zu",
                    offset);
}

tarn_status tarn_arena_free(tarn_arena *arena, size_t offset) {
  tarn__pool_piece *block = NULL;
  TARN__TRY(find(arena, offset, &block));
  assert(block != NULL);
  (void)tarn__extents_give(&arena->extents, block->home, 0);
  tarn__pieces_end(&arena->blocks, block);
  return TARN_OK;
}

tarn_status tarn_arena_resize(tarn_arena *arena, size_t offset, size_t size) {
  tarn__pool_piece *block = NULL;
  TARN__TRY(find(arena, offset, &block));
  assert(block != NULL);
  if (size == 0) return tarn__fail(TARN_E_INVALID, "arena: size is 0");
  if (size > arena->size) return full(arena, size);
  if (!tarn__extents_reserve(&arena->extents, 0)) return TARN_E_NOMEM;
  tarn__pool_extent *e = block->home;
  if (!tarn__extents_resize(&arena->extents, e, size, 0)) {
    return full(arena, size);
  }
  raise_peaks(arena, e);
  return TARN_OK;
}

// --- the range -------------------------------------------------------------

// The new addresses join the last hole: a new segment would stay apart.
tarn_status tarn_arena_extend(tarn_arena *arena, size_t size) {
  TARN__TRY(check(arena));
  size_t granule = arena->extents.granule;
  if (size == 0 || size % granule != 0 || size > BASE - arena->size) {
    return tarn__fail(TARN_E_INVALID,
                      "arena: an extension of %zu bytes is not a multiple of "
                      "%zu or too large",
                      size, granule);
  }
  if (!tarn__extents_reserve(&arena->extents, 0)) return TARN_E_NOMEM;
  tarn__extents_lengthen(&arena->extents, BASE + arena->size, size);
  arena->size += size;
  return TARN_OK;
}

static void count(const tarn__pool_extent *e, tarn_arena_stats *stats) {
  if (e->kind == TARN__EXTENT_TAKEN) stats->blocks++;
  if (e->kind != TARN__EXTENT_OPEN) return;
  stats->holes++;
  if (e->size > stats->largest_hole) stats->largest_hole = e->size;
}

tarn_status tarn_arena_query(const tarn_arena *arena,
                             tarn_arena_stats *out_stats) {
  size_t size = 0;
  TARN__TRY(tarn__clear_struct("arena statistics", out_stats,
                               TARN__SIZE_UP_TO(tarn_arena_stats, largest_hole),
                               sizeof *out_stats, &size));
  TARN__TRY(check(arena));
  tarn_arena_stats stats = {
      .struct_size = size,
      .size = arena->size,
      .taken_bytes = arena->extents.taken_bytes,
      .peak_bytes = arena->peak_bytes,
      .peak_end = arena->peak_end,
  };
  for (const tarn__pool_extent *e = arena->extents.first; e != NULL;
       e = e->after)
    count(e, &stats);
  memcpy(out_stats, &stats, size);
  return TARN_OK;
}
