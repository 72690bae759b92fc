// sleepers.h - the blocks of an arena_pool that sleep, in lists by zone and by
// rising address, and the pages that they lack: for the files that put them to
// sleep and wake them.
//
// Those that a call is at are marked, as their pieces are |resizing|, and of
// one tag: "on their way".
#ifndef TARN_POOL_SLEEPERS_H_
#define TARN_POOL_SLEEPERS_H_

#include "pool/arena.h"
#include "pool/extents_row.h"

// Pages of sleepers of one tag, without a gap.
typedef struct tarn__pool_sleep_run {
  uint64_t from;
  uint64_t to;
  tarn_list *last;  // of the sleepers in it
} tarn__pool_sleep_run;

static inline tarn__pool_sleeper *tarn__sleeper_of(tarn_list *node) {
  return tarn_list_entry(node, tarn__pool_sleeper, node);
}

static inline size_t tarn__sleeper_bytes(const tarn__pool_sleeper *s) {
  return (size_t)(s->to - s->from);
}

// The first page that it lacks, and what is behind the last.
static inline uint64_t tarn__sleeper_page(const tarn__pool_arena *self,
                                          const tarn__pool_sleeper *s) {
  return tarn__align_down(s->from, self->regions.page);
}

static inline uint64_t tarn__sleeper_end(const tarn__pool_arena *self,
                                         const tarn__pool_sleeper *s) {
  return tarn__align_up(s->to, self->regions.page);
}

static inline bool tarn__sleeper_moves(const tarn__pool_sleeper *s,
                                       tarn_tag tag) {
  return s->piece->resizing && s->piece->tag == tag;
}

// Frees what it has on the host; it is in no list.
void tarn__sleeper_free(tarn__pool_sleeper *s);

// Frees all that are in the list at |head|.
void tarn__sleepers_forget(tarn_list *head);

// The first run of those on their way behind |node|, which may be the head.
bool tarn__sleepers_run(const tarn__pool_arena *self, const tarn_list *head,
                        const tarn_list *node, tarn_tag tag,
                        tarn__pool_sleep_run *out);

// The first pages of |run| from |*at| on that have memory, or have none; no
// more than |most|.
bool tarn__sleepers_part(const tarn__pool_arena *self,
                         const tarn__pool_sleep_run *run, uint64_t *at,
                         bool has, size_t most, tarn__pool_sleep_run *out);

// The bytes of all runs.
size_t tarn__sleepers_size(const tarn__pool_arena *self, const tarn_list *head,
                           tarn_tag tag);

// The driver may have unmapped these pages or not.
void tarn__sleepers_mark_lost(tarn_list *head, tarn_tag tag,
                              const tarn__pool_sleep_run *part);

// Gives the memory of all pages of those on their way back, what they have. The
// lock is let go meanwhile. The first failure is returned.
tarn_status tarn__sleepers_unmap(tarn__pool_arena *self, tarn_list *head,
                                 tarn_tag tag);

#endif  // TARN_POOL_SLEEPERS_H_
