// Blocks that several streams use.
//
//   taken for A ─► use_on B ─► use_on C ─► freed on A: A waits for B and C
//                                          freed by the host: nobody waits, if
//                                          one of them is still at work; else
//                                          one of them waits for the others
//
// Nothing is asked of a driver before the block is freed, and then only of
// those streams. What a stream does after that is no business of the block's.
#include "pool/uses.h"

#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/front.h"

typedef struct tarn__pool_more_uses {
  size_t room;
  size_t count;
  uint64_t serials[];
} more_uses;

// --- the list --------------------------------------------------------------

static size_t size_of(size_t room) {
  return sizeof(more_uses) + room * sizeof(uint64_t);
}

size_t tarn__uses_count(const tarn__pool_uses *uses) {
  if (uses->first == 0) return 0;
  return 1 + (uses->more != NULL ? uses->more->count : 0);
}

uint64_t tarn__uses_at(const tarn__pool_uses *uses, size_t index) {
  return index == 0 ? uses->first : uses->more->serials[index - 1];
}

void tarn__uses_clear(tarn__pool_uses *uses) {
  if (uses->more != NULL) {
    tarn__host_free(uses->more, size_of(uses->more->room));
  }
  *uses = (tarn__pool_uses){.first = 0};
}

static bool has(const tarn__pool_uses *uses, uint64_t serial) {
  size_t count = tarn__uses_count(uses);
  for (size_t i = 0; i < count; i++) {
    if (tarn__uses_at(uses, i) == serial) return true;
  }
  return false;
}

// The work of a stream that is gone is done.
static void drop_gone(more_uses *more) {
  size_t kept = 0;
  for (size_t i = 0; i < more->count; i++) {
    if (tarn__stream_is_gone(more->serials[i])) continue;
    more->serials[kept++] = more->serials[i];
  }
  more->count = kept;
}

// Streams are few: more room than for those that live is never needed.
static bool grow(tarn__pool_uses *uses) {
  enum { FIRST_ROOM = 6 };
  size_t room = uses->more != NULL ? uses->more->room * 2 : FIRST_ROOM;
  more_uses *grown = tarn__host_alloc(size_of(room));
  if (grown == NULL) return false;
  grown->room = room;
  if (uses->more != NULL) {
    grown->count = uses->more->count;
    memcpy(grown->serials, uses->more->serials,
           grown->count * sizeof grown->serials[0]);
    tarn__host_free(uses->more, size_of(uses->more->room));
  }
  uses->more = grown;
  return true;
}

static bool is_full(const more_uses *more) {
  return more == NULL || more->count == more->room;
}

bool tarn__uses_add(tarn__pool_uses *uses, uint64_t serial) {
  assert(serial != 0);
  if (has(uses, serial)) return true;
  if (uses->first == 0 || tarn__stream_is_gone(uses->first)) {
    uses->first = serial;
    return true;
  }
  if (uses->more != NULL && is_full(uses->more)) drop_gone(uses->more);
  if (is_full(uses->more) && !grow(uses)) return false;
  uses->more->serials[uses->more->count++] = serial;
  return true;
}

// --- the order of what was used --------------------------------------------

// Where one stream cannot be made to wait, the host does.
static tarn_status put_behind(tarn_stream *stream, uint64_t serial,
                              uint64_t other) {
  if (stream == NULL) return tarn__stream_follow(serial, other);
  tarn_status status = tarn_stream_join(stream, other);
  return status == TARN_OK ? TARN_OK : tarn_stream_join(NULL, other);
}

// Streams that are idle are left alone: to ask takes less than to wait, and
// they are not held up for what comes after. The first failure is returned.
static tarn_status settle(const tarn__pool_piece *piece, tarn_stream *stream,
                          uint64_t *serial, uint64_t *out_crossings) {
  tarn_status first = TARN_OK;
  size_t count = tarn__uses_count(&piece->uses);
  uint64_t own = piece->waits_on;
  if (*serial == 0 && own != 0 && !tarn__stream_is_idle(own)) *serial = own;
  for (size_t i = 0; i < count; i++) {
    uint64_t other = tarn__uses_at(&piece->uses, i);
    if (other == *serial || tarn__stream_is_idle(other)) continue;
    if (*serial == 0) {
      *serial = other;
      continue;
    }
    ++*out_crossings;
    if (stream == NULL && tarn__stream_is_departed(*serial)) {
      uint64_t departed = *serial;  // nothing can be queued there
      *serial = other;
      other = departed;
    }
    tarn_status status = put_behind(stream, *serial, other);
    if (first == TARN_OK) first = status;
  }
  return first;
}

tarn_status tarn__uses_settle(tarn_pool *pool, tarn__pool_piece *piece,
                              tarn_stream *stream, uint64_t *serial) {
  uint64_t crossings = 0;
  assert(piece->resizing);
  tarn__front_leave(pool);
  tarn_status status = settle(piece, stream, serial, &crossings);
  tarn__front_enter(pool);
  pool->stats.stream_crossings += crossings;
  return status;
}

// --- the public function ---------------------------------------------------

static tarn_status use_locked(tarn_pool *pool, const tarn_block *block,
                              uint64_t serial) {
  tarn__pool_piece *piece = NULL;
  tarn_status status = tarn__front_find_block(pool, "use_on", block, &piece);
  if (status != TARN_OK || serial == 0) return status;
  if (tarn__step_layout_has(pool->cursor.layout, piece))
    tarn__step_layout_drop(pool);
  tarn__recorder_exclude(&pool->recorder, tarn__front_noted(pool, piece));
  return tarn__uses_add(&piece->uses, serial) ? TARN_OK : TARN_E_NOMEM;
}

tarn_status tarn_block_use_on(const tarn_block *block, tarn_stream *stream) {
  uint64_t serial = 0;
  if (block == NULL) return tarn__fail(TARN_E_INVALID, "use_on: NULL");
  tarn_pool *pool = block->pool;
  tarn_status status = tarn__front_check_call(pool, stream, &serial);
  if (status != TARN_OK) return status;
  tarn__front_enter(pool);
  status = use_locked(pool, block, serial);
  tarn__front_leave(pool);
  return status;
}
