// The list of streams that use a block.
#include "pool/uses.h"

#include <assert.h>
#include <string.h>

#include "base/hostmem.h"
#include "device/memory.h"

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
