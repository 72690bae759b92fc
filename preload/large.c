// Taking blocks from the pool, giving them back, and clearing them.
#include "preload/large.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tarn/pool.h>

#include "preload/making.h"
#include "preload/pages.h"
#include "preload/report.h"
#include "preload/settings.h"

// Memory that held something is cleared by writing, as long as that is cheaper
// than having the kernel take it back and give zeros when it is touched. A
// block of which little may ever be touched must not become resident as a
// whole.
static const size_t DISCARD_FROM = (size_t)32 << 20;

static bool round_up(size_t size, size_t *out) {
  return tarn_size_align_up(size, PAGES_SIZE, out);
}

// --- taking ----------------------------------------------------------------

// Pages that are locked into memory stay what they are.
static void clear(void *run, size_t size) {
  int error = errno;
  bool gone = size >= DISCARD_FROM && madvise(run, size, MADV_DONTNEED) == 0;
  errno = error;
  if (!gone) memset(run, 0, size);
}

static void hand_out(void *address, size_t size, bool zero) {
  bool all = zero && making_fills();
  pages_use(address, size, zero && !all ? clear : NULL);
  if (all) memset(address, 0, size);
}

static void *take(tarn_pool *pool, size_t size, size_t align) {
  tarn_block block;
  if (tarn_pool_alloc(pool, size, align, NULL, &block) != TARN_OK) return NULL;
  if (pages_begin(block.pointer, size)) return block.pointer;
  (void)tarn_pool_free(&block, NULL);
  return NULL;
}

void *large_take(size_t size, size_t align, bool zero) {
  tarn_pool *pool = NULL;
  void *address = NULL;
  if (align < PAGES_SIZE) align = PAGES_SIZE;
  if (!round_up(size, &size) || size > PTRDIFF_MAX) return NULL;
  if (!making_enter(&pool)) return NULL;
  if (pool != NULL) address = take(pool, size, align);
  making_leave();
  if (address == NULL) {
    report_left();
  } else {
    hand_out(address, size, zero);
  }
  return address;
}

// --- giving back -----------------------------------------------------------

// Only a pool that debugs finds anything here.
static void tell(tarn_status status) {
  if (status == TARN_E_CORRUPT) settings_say("free(): %s", tarn_last_error());
}

bool large_give(void *address) {
  tarn_pool *pool = NULL;
  if (!pages_end(address)) return false;
  if (!making_enter(&pool)) {
    making_defer(address);
    return true;
  }
  tell(tarn_pool_free_address(pool, tarn_addr_of(address), NULL));
  making_leave();
  return true;
}

bool large_is_lost(const void *address) {
  return pages_is_held(address);
}

void large_refuse(const char *call, void *address) {
  tarn_pool *pool = NULL;
  const char *why = "no block of the pool begins there";
  if (making_enter(&pool) && pool != NULL &&
      tarn_pool_free_address(pool, tarn_addr_of(address), NULL) != TARN_OK) {
    why = tarn_last_error();
  }
  settings_say("%s: invalid pointer %p: %s", call, address, why);
  abort();
}

// --- resizing --------------------------------------------------------------

static bool resize(tarn_pool *pool, void *address, size_t size) {
  tarn_block block;
  return tarn_pool_block_of(pool, tarn_addr_of(address), &block, NULL) ==
             TARN_OK &&
         tarn_pool_resize(&block, size, NULL) == TARN_OK;
}

// A block that becomes a little smaller stays as it is: what is cut off would
// be of little use, and it costs a learned step.
static bool is_near(size_t old, size_t size) {
  return size <= old && old - size <= old / 8;
}

bool large_resize(void *address, size_t old, size_t size) {
  tarn_pool *pool = NULL;
  if (!round_up(size, &size)) return false;
  if (is_near(old, size)) return true;
  if (!making_enter(&pool)) return false;
  bool done = resize(pool, address, size) && pages_begin(address, size);
  making_leave();
  if (done && size > old) pages_use((char *)address + old, size - old, NULL);
  return done;
}

// --- when there is nothing left --------------------------------------------

static size_t held_by(tarn_pool *pool) {
  tarn_pool_stats stats = {.struct_size = sizeof stats};
  return tarn_pool_query(pool, &stats) == TARN_OK ? stats.reserved_bytes : 0;
}

// Addresses, too: that is what a limit on them counts.
static bool trim(tarn_pool *pool) {
  size_t before = held_by(pool);
  (void)tarn_pool_trim(pool, 0);
  return held_by(pool) < before;
}

bool large_trim(void) {
  tarn_pool *pool = NULL;
  if (!making_is_made() || !making_enter(&pool)) return false;
  bool trimmed = pool != NULL && trim(pool);
  making_leave();
  return trimmed;
}
