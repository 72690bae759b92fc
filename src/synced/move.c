// Moving a place from borrowed memory that must not be written to memory of its
// own.
//
//   borrowed   ▓▓▓▓▓▓░░░░▓▓▓▓▒▒▒▒     ▓ valid here alone: copied over
//                ▼        ▼           ▒ valid elsewhere too: not here any more
//   own        ▓▓▓▓▓▓    ▓▓▓▓         ░ not valid here
//
// While the bytes are copied the side is busy: no access begins there, so no
// byte becomes valid there, and copied bytes stay valid. But bytes that are
// valid elsewhere may become stale there meanwhile. So the runs are listed
// again after the copies, and if there are new ones all is repeated.

#include "base/hostmem.h"
#include "base/status.h"
#include "synced/access.h"
#include "synced/outside.h"
#include "synced/work.h"

// Runs, in order.
typedef struct list {
  tarn__synced_run *runs;
  size_t count;
} list;

static void free_list(list *of) {
  tarn__host_free_array(of->runs, of->count, sizeof *of->runs);
  *of = (list){NULL, 0};
}

static size_t count_runs(const tarn__synced_core *core, uint32_t side) {
  size_t count = 0;
  tarn__synced_run run = {0, 0};
  while (tarn__core_find_run(core, run.end, side, tarn__span_is_only_at, &run))
    count++;
  return count;
}

// With the lock.
static tarn_status list_runs(const tarn__synced_core *core, uint32_t side,
                             list *out) {
  tarn__synced_run run = {0, 0};
  *out = (list){NULL, 0};
  size_t count = count_runs(core, side);
  if (count == 0) return TARN_OK;
  out->runs = tarn__host_array(count, sizeof *out->runs);
  if (out->runs == NULL) return TARN_E_NOMEM;
  while (tarn__core_find_run(core, run.end, side, tarn__span_is_only_at, &run))
    out->runs[out->count++] = run;
  return TARN_OK;
}

// Whether each run of |wanted| lies within one of |copied|.
static bool has_all(const list *copied, const list *wanted) {
  size_t at = 0;
  for (size_t i = 0; i < wanted->count; i++) {
    const tarn__synced_run *run = &wanted->runs[i];
    while (at < copied->count && copied->runs[at].end < run->end)
      at++;
    if (at == copied->count || copied->runs[at].start > run->start) {
      return false;
    }
  }
  return true;
}

// Without the lock.
static tarn_status copy_runs(const tarn__synced_core *core, const list *of,
                             const tarn__synced_end *from,
                             const tarn__synced_end *to) {
  for (size_t i = 0; i < of->count; i++) {
    tarn__synced_run run = of->runs[i];
    tarn_status status =
        tarn__route_copy(from, to, run.start, run.end - run.start, NULL);
    if (status != TARN_OK) return status;
    tarn__synced_tell(core, (tarn_synced_event){.what = TARN_SYNCED_COPIED,
                                                .from = from->place,
                                                .to = from->place,
                                                .offset = run.start,
                                                .size = run.end - run.start});
  }
  return TARN_OK;
}

static void count_copies(tarn__synced_core *core, uint32_t side,
                         const list *of) {
  tarn__synced_counts *counts = tarn__core_counts(core, side, side);
  counts->copies += of->count;
  for (size_t i = 0; i < of->count; i++)
    counts->moved += of->runs[i].end - of->runs[i].start;
}

// Copies until the outside memory has no only copies and no uses. With the
// lock, which is left meanwhile.
static tarn_status copy_over(tarn__synced_core *core, uint32_t side,
                             const tarn__synced_end *to) {
  list copied = {NULL, 0};
  for (;;) {
    list wanted = {NULL, 0};
    tarn_status status = tarn__side_rest(core, side, 0, core->size);
    if (status == TARN_OK) status = list_runs(core, side, &wanted);
    bool done = status != TARN_OK || has_all(&copied, &wanted);
    free_list(done ? &wanted : &copied);
    if (done) {
      free_list(&copied);
      return status;
    }
    copied = wanted;
    tarn__synced_end from = core->sides[side].end;
    tarn__core_leave(core);
    status = copy_runs(core, &copied, &from, to);
    tarn__core_enter(core);
    if (status != TARN_OK) {
      free_list(&copied);
      return status;
    }
    count_copies(core, side, &copied);
  }
}

// Cannot fail. Only copies keep their bit, so the sums stay right.
static void exchange(tarn__synced_core *core, uint32_t side,
                     tarn__synced_side *memory) {
  uint64_t bit = tarn__side_bit(side);
  for (tarn__synced_span *span = core->spans.first; span != NULL;
       span = span->next) {
    if (tarn__span_is_only_at(span, side)) continue;
    tarn__span_set(core, span, span->valid & ~bit, span->written);
  }
  tarn__synced_side former = core->sides[side];
  tarn__side_attach(core, side, memory);
  *memory = former;
  tarn__spans_join(&core->spans, 0, core->size);
}

// With the lock, which is left meanwhile; the side is busy.
static tarn_status move(tarn__synced_core *core, uint32_t side,
                        tarn__synced_side *memory) {
  tarn_place place = core->sides[side].end.place;
  tarn__core_leave(core);
  tarn_status status = tarn__side_allocate(core, place, memory);
  tarn__core_enter(core);
  if (status == TARN_OK) status = copy_over(core, side, &memory->end);
  if (status == TARN_OK) exchange(core, side, memory);
  return status;
}

// Frees memory that was never attached, after a failure whose text must stay.
static void give_up(const tarn__synced_core *core,
                    const tarn__synced_side *memory, tarn_status status) {
  tarn__failure failure = tarn__failure_of(status);
  (void)tarn__side_discard(core, memory);
  (void)tarn__failure_tell(&failure);
}

tarn_status tarn__side_move_to_own(tarn__synced_core *core, uint32_t side) {
  tarn__synced_side memory = {.busy = false};
  if (core->sides[side].busy) {
    tarn__core_sleep(core);
    return TARN_OK;
  }
  tarn_status status = tarn__access_check_none(
      core, side, 0, core->size, "borrowed memory cannot be replaced");
  if (status != TARN_OK) return status;
  tarn_place place = core->sides[side].end.place;
  core->sides[side].busy = true;
  status = move(core, side, &memory);
  core->sides[side].busy = false;
  tarn__core_wake(core);
  tarn__core_leave(core);
  if (status == TARN_OK) {
    tarn__synced_tell_all(core, TARN_SYNCED_ALLOCATED, place);
    tarn__side_let_go(core, &memory);
  } else {
    give_up(core, &memory, status);
  }
  tarn__core_enter(core);
  return status;
}
