// Pages of host memory that permit open accesses only.
//
//   spans   ├─ valid ─┼──── stale ────┼ open for writing ┼─ stale ──┤
//   pages   │  read   │ read │ none │   write   │  write  │   none   │
//
// Invariant: the access of each page is the tarn__os_access in |pages|. If the
// system refuses a change, the memory is not protected any more.
#include "synced/protect.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"

// --- whether ---------------------------------------------------------------

#ifdef NDEBUG
static const bool built_for_debugging = false;
#else
static const bool built_for_debugging = true;
#endif

bool tarn__protect_default(uint32_t flags) {
  if ((flags & TARN_SYNCED_PROTECT) != 0) return true;
  if ((flags & TARN_SYNCED_NO_PROTECT) != 0) return false;
  const char *chosen = secure_getenv("TARN_SYNCED_PROTECT");
  if (chosen == NULL || *chosen == '\0') return built_for_debugging;
  return strcmp(chosen, "0") != 0;
}

static bool is_protected(const tarn__synced_core *core, tarn_place place) {
  return core->protect && place.kind == TARN_PLACE_HOST;
}

// --- memory ----------------------------------------------------------------

bool tarn__protect_round(const tarn__synced_core *core, tarn_place place,
                         size_t *io_size, size_t *io_align) {
  size_t page = tarn__os_page();
  if (!is_protected(core, place)) return true;
  if (*io_align < page) *io_align = page;
  return tarn_size_align_up(*io_size, page, io_size);
}

static size_t pages_of(const tarn__synced_core *core) {
  size_t page = tarn__os_page();
  return core->size / page + (core->size % page != 0 ? 1 : 0);
}

tarn_status tarn__protect_begin(const tarn__synced_core *core,
                                tarn__synced_side *io_memory) {
  if (!is_protected(core, io_memory->end.place)) return TARN_OK;
  size_t count = pages_of(core);
  io_memory->pages = tarn__host_alloc(count);
  if (io_memory->pages == NULL) return TARN_E_NOMEM;
  memset(io_memory->pages, TARN__OS_READ_WRITE, count);
  return TARN_OK;
}

static bool set_all(const tarn__synced_core *core,
                    const tarn__synced_side *memory) {
  return tarn__os_protect(memory->end.pointer, pages_of(core) * tarn__os_page(),
                          TARN__OS_READ_WRITE);
}

static void tell_once(void) {
  static atomic_flag told = ATOMIC_FLAG_INIT;
  if (atomic_flag_test_and_set(&told)) return;
  tarn__log(TARN_LOG_WARN,
            "synced: the system does not protect more pages; stale pointers "
            "are not noticed any more");
}

void tarn__protect_end(const tarn__synced_core *core,
                       const tarn__synced_side *memory) {
  if (memory->pages == NULL) return;
  bool own = core->generation == tarn__os_generation();
  if (own && !set_all(core, memory)) tell_once();
  tarn__host_free(memory->pages, pages_of(core));
}

// --- the due access of pages -----------------------------------------------

static tarn__os_access most(tarn__os_access a, tarn__os_access b) {
  return a > b ? a : b;
}

static tarn__os_access due_to_uses(const tarn__synced_span *span) {
  tarn__os_access due = TARN__OS_NONE;
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    bool over = use->timeline != NULL &&
                tarn__timeline_is_over(use->timeline, use->number);
    if (use->side != TARN__HOST_SIDE || over) continue;
    due = most(due, use->writes ? TARN__OS_READ_WRITE : TARN__OS_READ);
  }
  return due;
}

static tarn__os_access due_in(const tarn__synced_core *core,
                              const tarn__synced_span *span) {
  bool is_open = span->writer != NULL && span->writer->side == TARN__HOST_SIDE;
  bool is_loose =
      span->node.start < core->loose_end && core->loose_start < span->end;
  if (is_open || is_loose) return TARN__OS_READ_WRITE;
  bool is_valid = (span->valid & 1) != 0;
  return most(is_valid ? TARN__OS_READ : TARN__OS_NONE, due_to_uses(span));
}

// The end of a run of pages from |start| with the same due access: the pages
// within one span, or one page with several spans.
static size_t next_run(const tarn__synced_core *core,
                       const tarn__synced_span **io_span, size_t start,
                       tarn__os_access *out_due) {
  size_t page = tarn__os_page();
  size_t end = start + page;
  const tarn__synced_span *span = *io_span;
  while (span->end <= start)
    span = span->next;
  *out_due = due_in(core, span);
  if (span->next == NULL) {
    end = pages_of(core) * page;
  } else if (span->end >= end) {
    end = span->end - span->end % page;
  }
  while (span->end < end && span->next != NULL) {
    span = span->next;
    *out_due = most(*out_due, due_in(core, span));
  }
  *io_span = span;
  return end;
}

// --- applying --------------------------------------------------------------

// If protection fails, all accesses are permitted.
static void give_up(const tarn__synced_core *core, tarn__synced_side *side) {
  tell_once();
  if (set_all(core, side)) {
    tarn__host_free(side->pages, pages_of(core));
    side->pages = NULL;
  }
}

static bool set(tarn__synced_side *side, size_t first, size_t last,
                tarn__os_access access) {
  size_t page = tarn__os_page();
  void *at = (char *)side->end.pointer + first * page;
  if (!tarn__os_protect(at, (last - first) * page, access)) return false;
  memset(&side->pages[first], (int)access, last - first);
  return true;
}

// Changes the pages whose access differs.
static bool set_changed(tarn__synced_side *side, size_t first, size_t last,
                        tarn__os_access access) {
  while (first < last) {
    size_t end = first;
    while (end < last && side->pages[end] != access)
      end++;
    if (end > first && !set(side, first, end, access)) return false;
    first = end;
    while (first < last && side->pages[first] == access)
      first++;
  }
  return true;
}

void tarn__protect_apply(tarn__synced_core *core) {
  size_t page = tarn__os_page();
  size_t count = pages_of(core);
  tarn__synced_side *side = &core->sides[TARN__HOST_SIDE];
  const tarn__synced_span *span = core->spans.first;
  for (size_t first = 0; first < count;) {
    tarn__os_access due = TARN__OS_NONE;
    size_t last = next_run(core, &span, first * page, &due) / page;
    if (!set_changed(side, first, last, due)) {
      give_up(core, side);
      return;
    }
    first = last;
  }
}

void tarn__protect_loosen(tarn__synced_core *core, size_t start, size_t end) {
  core->loose_start = start;
  core->loose_end = end;
}
