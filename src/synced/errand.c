// An errand from its plan to its end: what it enters into the spans, and what
// becomes of that.
//
// Invariants, while the gate is left:
//   * the access counts in each span of its range, which is pinned, and at its
//     side, so that nobody else writes there and the memory stays
//   * the spans of a run have two uses of the errand: of the side that is
//     written, and, unless it is zeros, of the one that is read
// The errand alone takes them out again. A use is taken out before one is put
// in its place, so that no node can be missing.
#include "synced/errand.h"

#include <assert.h>

#include "base/status.h"
#include "synced/outside.h"

// --- runs beside spans -------------------------------------------------------

// The run at |*io_at| or behind that |span| belongs to; NULL: none. Spans come
// in order, and none of them is in two runs.
static const tarn__synced_load *run_of(const tarn__synced_transfer *errand,
                                       const tarn__synced_span *span,
                                       size_t *io_at) {
  while (*io_at < errand->run_count && errand->runs[*io_at].end <= span->start)
    ++*io_at;
  if (*io_at == errand->run_count) return NULL;
  const tarn__synced_load *run = &errand->runs[*io_at];
  return run->start <= span->start ? run : NULL;
}

// --- entering ----------------------------------------------------------------

static tarn__synced_use use_at(const tarn__synced_transfer *errand,
                               uint32_t side, bool writes) {
  return (tarn__synced_use){
      .number = errand->number, .side = side, .writes = writes};
}

// A copy is worth what its source is: if a stream that is still to write that
// fails, the copy is void as well.
static void inherit_writers(const tarn__synced_transfer *errand,
                            tarn__synced_span *span, uint32_t from) {
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    bool writes_it = use->side == from && use->writes && use->lane != NULL;
    if (!writes_it || tarn__lane_is_over(use->lane, use->number)) continue;
    tarn__synced_use inherited = *use;
    inherited.side = errand->side;
    tarn__span_use(&errand->core->spans, span, inherited);
  }
}

static void enter_run(const tarn__synced_transfer *errand,
                      tarn__synced_span *span, const tarn__synced_load *run) {
  tarn__synced_spans *spans = &errand->core->spans;
  tarn__span_use(spans, span, use_at(errand, errand->side, true));
  if (run->from == TARN__NO_SIDE) return;
  tarn__span_use(spans, span, use_at(errand, run->from, false));
  if (errand->most_writers > 0) inherit_writers(errand, span, run->from);
}

static void enter_span(tarn__synced_transfer *errand, tarn__synced_span *span,
                       const tarn__synced_load *run) {
  tarn__work_prune(errand->core, span);
  if (errand->writes) {
    span->writer = errand->access;
  } else {
    span->readers++;
  }
  if (run != NULL) enter_run(errand, span, run);
}

static void open_access(const tarn__synced_transfer *errand) {
  tarn_access *access = errand->access;
  if (access == NULL) return;
  const tarn__synced_end *at = &errand->core->sides[errand->side].end;
  access->address = at->address + errand->wish.start;
  access->pointer =
      at->pointer != NULL ? (char *)at->pointer + errand->wish.start : NULL;
  access->size = errand->wish.end - errand->wish.start;
  access->offset = errand->wish.start;
  access->stream = errand->wish.stream;
  access->mode = errand->wish.mode & ~TARN_ACCESS_WAIT;
  access->side = errand->side;
  tarn_list_add_tail(&errand->core->accesses, &access->node);
}

// Cannot fail: nodes were reserved.
static void enter(tarn__synced_transfer *errand) {
  tarn__synced_core *core = errand->core;
  const tarn__synced_request *wish = &errand->wish;
  size_t at = 0;
  errand->number = ++core->errands;
  open_access(errand);
  core->sides[errand->side].accesses++;
  tarn__synced_span *first =
      tarn__spans_cut(&core->spans, wish->start, wish->end);
  tarn__synced_span *last = first;
  assert(first != NULL);
  for (tarn__synced_span *span = first; span != NULL && span->start < wish->end;
       span = span->next) {
    enter_span(errand, span, run_of(errand, span, &at));
    last = span;
  }
  tarn__span_pin(first, last);
}

// --- taking back -------------------------------------------------------------

static void take_span_back(const tarn__synced_transfer *errand,
                           tarn__synced_span *span) {
  if (errand->writes) {
    span->writer = NULL;
  } else {
    span->readers--;
  }
}

static void close_access(const tarn__synced_transfer *errand) {
  tarn_access *access = errand->access;
  if (access == NULL) return;
  tarn_list_del(&access->node);
  *access = (tarn_access){.address = 0};
}

// The access is not open any more, as if it had never been.
static void take_back(tarn__synced_transfer *errand) {
  tarn__synced_core *core = errand->core;
  const tarn__synced_request *wish = &errand->wish;
  tarn__synced_span *first = tarn__spans_find(&core->spans, wish->start);
  tarn__synced_span *last = first;
  assert(first->start == wish->start);
  for (tarn__synced_span *span = first; span != NULL && span->start < wish->end;
       span = span->next) {
    take_span_back(errand, span);
    last = span;
  }
  tarn__span_unpin(first, last);
  core->sides[errand->side].accesses--;
  close_access(errand);
  tarn__spans_join(&core->spans, wish->start, wish->end);
}

// --- committing --------------------------------------------------------------

static bool is_of_errand(const tarn__synced_use *use, void *context) {
  const tarn__synced_transfer *errand = context;
  return use->lane == NULL && use->number == errand->number;
}

static void leave_use(tarn__synced_core *core, tarn__synced_span *span,
                      tarn__synced_position position, uint32_t side,
                      bool writes) {
  tarn__span_use(&core->spans, span,
                 (tarn__synced_use){.lane = position.lane,
                                    .number = position.number,
                                    .side = side,
                                    .writes = writes});
}

static void commit_run(tarn__synced_transfer *errand, tarn__synced_span *span,
                       const tarn__synced_load *run) {
  tarn__synced_core *core = errand->core;
  const tarn__synced_carrier *carrier = &errand->carriers[run->carrier];
  tarn__span_forget(&core->spans, span, is_of_errand, errand);
  tarn__synced_position behind = carrier->position;
  if (!run->made || carrier->failed) return;
  if (behind.lane != NULL && !tarn__lane_is_over(behind.lane, behind.number)) {
    leave_use(core, span, behind, errand->side, true);
    leave_use(core, span, behind, run->from, false);
  }
  if (errand->worthless) return;
  tarn__span_set(core, span, span->valid | tarn__side_bit(errand->side),
                 span->written);
}

static void commit_spans(tarn__synced_transfer *errand) {
  tarn__synced_core *core = errand->core;
  size_t at = 0;
  tarn__synced_span *span = tarn__spans_find(&core->spans, errand->wish.start);
  for (; span != NULL && span->start < errand->wish.end; span = span->next) {
    const tarn__synced_load *run = run_of(errand, span, &at);
    tarn__work_prune(core, span);
    if (run != NULL) commit_run(errand, span, run);
  }
}

static void count_runs(const tarn__synced_transfer *errand) {
  tarn__synced_core *core = errand->core;
  for (size_t i = 0; i < errand->run_count; i++) {
    const tarn__synced_load *run = &errand->runs[i];
    if (!run->made || run->from == TARN__NO_SIDE) continue;
    tarn__synced_counts *counts =
        tarn__core_counts(core, run->from, errand->side);
    counts->copies++;
    counts->moved += run->end - run->start;
  }
}

static const tarn__synced_load *first_copy(
    const tarn__synced_transfer *errand) {
  for (size_t i = 0; i < errand->run_count; i++) {
    if (errand->runs[i].from != TARN__NO_SIDE) return &errand->runs[i];
  }
  return NULL;
}

// What was spared: bytes that were there, and those beyond the range that a
// copy of the whole would have moved as well. Before the runs are committed.
static void count_spared(const tarn__synced_transfer *errand) {
  tarn__synced_core *core = errand->core;
  if (!errand->reads) return;
  tarn__core_counts(core, errand->side, errand->side)->valid +=
      errand->valid_bytes;
  const tarn__synced_load *copy = first_copy(errand);
  if (copy == NULL) return;
  size_t stale = core->live - core->sides[errand->side].fresh;
  if (stale <= errand->moved_bytes) return;
  tarn__core_counts(core, copy->from, errand->side)->outside +=
      stale - errand->moved_bytes;
}

// Bytes that a scheme without WRITE_DISCARD would have copied.
static void count_discarded(tarn__synced_transfer *errand) {
  tarn__synced_core *core = errand->core;
  tarn__synced_span *span = tarn__spans_find(&core->spans, errand->wish.start);
  for (; span != NULL && span->start < errand->wish.end; span = span->next) {
    bool stale = span->written && span->valid != 0 &&
                 (span->valid & tarn__side_bit(errand->side)) == 0;
    if (!stale) continue;
    uint32_t from = tarn__errand_source(errand, span->valid);
    tarn__core_counts(core, from, errand->side)->discarded +=
        span->end - span->start;
  }
}

static void count_stalls(const tarn__synced_transfer *errand) {
  for (size_t i = 0; i < errand->wait_count; i++) {
    const tarn__synced_wait *wait = &errand->waits[i];
    if (wait->stalled_ns == 0) continue;
    tarn__synced_counts *counts =
        tarn__core_counts(errand->core, wait->side, errand->side);
    counts->stalls++;
    counts->stalled_ns += wait->stalled_ns;
  }
}

static void release_positions(tarn__synced_transfer *errand) {
  for (size_t i = TARN__BY_STREAM; i < errand->carrier_count; i++) {
    tarn__work_release(errand->carriers[i].position);
    errand->carriers[i].position.lane = NULL;
  }
}

// While the gate was left another thread may have found a stream failed: one
// that was waited for, and then no copy is worth anything, or one that made
// copies.
static tarn_status find_failures(tarn__synced_transfer *errand,
                                 tarn_status status) {
  bool found = false;
  for (size_t i = 0; i < errand->wait_count; i++) {
    const tarn__synced_wait *wait = &errand->waits[i];
    if (tarn__lane_is_void(wait->lane, wait->number)) found = true;
  }
  errand->worthless = found;
  for (size_t i = TARN__BY_STREAM; i < errand->carrier_count; i++) {
    tarn__synced_carrier *carrier = &errand->carriers[i];
    tarn__synced_position behind = carrier->position;
    bool lost =
        behind.lane != NULL && tarn__lane_is_void(behind.lane, behind.number);
    if (lost) carrier->failed = true;
    if (lost) found = true;
  }
  return status == TARN_OK && found ? TARN_PENDING : status;
}

// Ends what was entered, whatever became of it.
static tarn_status commit(tarn__synced_transfer *errand, tarn_status carried) {
  tarn_status status = find_failures(errand, carried);
  bool stays = status == TARN_OK && errand->access != NULL;
  if (status == TARN_OK) count_spared(errand);
  if (status == TARN_OK && !errand->reads) count_discarded(errand);
  count_runs(errand);
  count_stalls(errand);
  tarn__errand_forget(errand);
  if (tarn__errand_has_work(errand)) commit_spans(errand);
  release_positions(errand);
  if (stays) {
    tarn__spans_join(&errand->core->spans, errand->wish.start,
                     errand->wish.end);
  } else {
    take_back(errand);
  }
  tarn__core_wake(errand->core);
  return status;
}

// --- from the beginning to the end -------------------------------------------

// Whether outside memory stands in the way of what is planned.
static bool must_move(const tarn__synced_transfer *errand) {
  const tarn__synced_side *side = &errand->core->sides[errand->side];
  if (!side->outside) return false;
  if (errand->run_count > 0 && !tarn__side_is_open(side)) return true;
  return errand->writes && !tarn__side_is_writable(side);
}

// Nodes that a span takes: of the source, of the target, and what the copy
// inherits.
static size_t uses_of(const tarn__synced_transfer *errand) {
  return errand->run_count > 0 ? 2 + errand->most_writers : 0;
}

static void sleep_for_others(tarn__synced_transfer *errand) {
  uint64_t began = tarn__os_now_ns();
  tarn__core_sleep(errand->core);
  errand->slept_ns += tarn__os_now_ns() - began;
}

// Accesses in outside memory keep it there.
static bool waits_to_move(const tarn__synced_transfer *errand) {
  const tarn__synced_core *core = errand->core;
  bool patient = (errand->wish.mode & TARN_ACCESS_WAIT) != 0;
  return patient && tarn__access_in(core, errand->side, 0, core->size) != NULL;
}

static tarn_status move(tarn__synced_transfer *errand) {
  if (waits_to_move(errand)) {
    sleep_for_others(errand);
    return TARN_OK;
  }
  return tarn__side_move_to_own(errand->core, errand->side);
}

// The memory that the plan needs. TARN_PENDING: the gate was left, plan anew.
static tarn_status provide(tarn__synced_transfer *errand) {
  tarn__synced_core *core = errand->core;
  tarn_status status = TARN_OK;
  bool lacks = !tarn__side_has_memory(&core->sides[errand->side]);
  bool moves = must_move(errand);
  if (lacks || moves) {
    tarn__errand_forget(errand);
    status = lacks ? tarn__side_take(core, errand->side) : move(errand);
    return status == TARN_OK ? TARN_PENDING : status;
  }
  status = tarn__spans_reserve(&core->spans, errand->wish.start,
                               errand->wish.end, uses_of(errand));
  if (status != TARN_OK) tarn__errand_forget(errand);
  return status;
}

// However often it had to look again, it is one stall.
static void count_sleep(const tarn__synced_transfer *errand) {
  if (errand->slept_ns == 0) return;
  tarn__synced_counts *counts =
      tarn__core_counts(errand->core, errand->side, errand->side);
  counts->stalls++;
  counts->stalled_ns += errand->slept_ns;
}

// Up to what is entered. TARN_PENDING: begin anew.
static tarn_status prepare(tarn__synced_transfer *errand) {
  tarn__synced_core *core = errand->core;
  tarn_status status = tarn__core_admit(core);
  if (status != TARN_OK) return status;
  status = tarn__side_of(core, errand->wish.place, &errand->side);
  if (status == TARN_OK) status = tarn__core_admit(core);
  if (status != TARN_OK) return status;
  bool busy = core->sides[errand->side].busy;
  status = busy ? TARN_PENDING : tarn__errand_plan(errand);
  if (status == TARN_PENDING) sleep_for_others(errand);
  return status == TARN_OK ? provide(errand) : status;
}

static tarn_status try(tarn__synced_transfer *errand) {
  tarn__synced_core *core = errand->core;
  tarn_status status = prepare(errand);
  if (status != TARN_OK) return status;
  enter(errand);
  if (tarn__errand_has_work(errand)) {
    tarn__core_leave(core);
    status = tarn__errand_carry(errand);
    tarn__core_enter(core);
  }
  return commit(errand, status);
}

tarn_status tarn__errand_run(tarn__synced_transfer *errand) {
  tarn_status status = TARN_PENDING;
  while (status == TARN_PENDING)
    status = try(errand);
  count_sleep(errand);
  return status;
}
