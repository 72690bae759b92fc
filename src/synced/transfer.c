// A transfer from its plan to its end, and its entries in the spans.
//
// Invariants, while the lock is left:
//   * The access counts in each span of its range, which is pinned, and at its
//     side: no other thread writes there, and the memory stays.
//   * The spans of a run have two uses by the transfer: of the side it writes
//     and, unless it writes zeros, of the side it reads.
// Only the transfer removes these uses. It removes a use before it adds
// another, so it needs no more nodes.
#include "synced/transfer.h"

#include <assert.h>

#include "base/hostmem.h"
#include "base/status.h"

// --- runs beside spans -------------------------------------------------------

// The run at |*io_at| or behind that |span| belongs to; NULL: none. Spans come
// in order, and none of them is in two runs.
static const tarn__synced_load *run_of(const tarn__synced_transfer *transfer,
                                       const tarn__synced_span *span,
                                       size_t *io_at) {
  while (*io_at < transfer->run_count &&
         transfer->runs[*io_at].end <= span->node.start)
    ++*io_at;
  if (*io_at == transfer->run_count) return NULL;
  const tarn__synced_load *run = &transfer->runs[*io_at];
  return run->start <= span->node.start ? run : NULL;
}

// --- entering ----------------------------------------------------------------

static tarn__synced_use use_at(const tarn__synced_transfer *transfer,
                               uint32_t side, bool writes) {
  return (tarn__synced_use){
      .number = transfer->number, .side = side, .writes = writes};
}

// If a stream that still writes the source fails, the copy is void as well.
static void inherit_writers(const tarn__synced_transfer *transfer,
                            tarn__synced_span *span, uint32_t from) {
  for (const tarn__synced_use *use = span->uses; use != NULL; use = use->next) {
    bool writes_it = use->side == from && use->writes && use->timeline != NULL;
    if (!writes_it || tarn__timeline_is_over(use->timeline, use->number))
      continue;
    tarn__synced_use inherited = *use;
    inherited.side = transfer->side;
    tarn__span_use(&transfer->core->spans, span, inherited);
  }
}

static void enter_run(const tarn__synced_transfer *transfer,
                      tarn__synced_span *span, const tarn__synced_load *run) {
  tarn__synced_spans *spans = &transfer->core->spans;
  tarn__span_use(spans, span, use_at(transfer, transfer->side, true));
  if (run->from == TARN__NO_SIDE) return;
  tarn__span_use(spans, span, use_at(transfer, run->from, false));
  if (transfer->most_writers > 0) inherit_writers(transfer, span, run->from);
}

static void enter_span(tarn__synced_transfer *transfer, tarn__synced_span *span,
                       const tarn__synced_load *run) {
  tarn__work_prune(transfer->core, span);
  if (transfer->writes) {
    span->writer = transfer->access;
  } else {
    span->readers++;
  }
  if (run != NULL) enter_run(transfer, span, run);
}

static void open_access(const tarn__synced_transfer *transfer) {
  tarn_access *access = transfer->access;
  if (access == NULL) return;
  tarn__access_fill(access, &transfer->core->sides[transfer->side].end,
                    &transfer->request);
  access->mode &= ~TARN_ACCESS_WAIT;
  access->side = transfer->side;
  tarn_list_add_tail(&transfer->core->accesses, &access->node);
}

// Cannot fail: nodes were reserved.
static void enter(tarn__synced_transfer *transfer) {
  tarn__synced_core *core = transfer->core;
  const tarn__synced_request *request = &transfer->request;
  size_t at = 0;
  transfer->number = ++core->transfers;
  open_access(transfer);
  core->sides[transfer->side].transfers++;
  tarn__synced_span *first =
      tarn__spans_cut(&core->spans, request->start, request->end);
  tarn__synced_span *last = first;
  tarn__spans_each (span, &core->spans, request->start, request->end) {
    enter_span(transfer, span, run_of(transfer, span, &at));
    last = span;
  }
  tarn__span_pin(first, last);
}

// --- taking back -------------------------------------------------------------

// Removes the access, as if it had never been open.
static void take_back(tarn__synced_transfer *transfer) {
  tarn__synced_core *core = transfer->core;
  if (transfer->access != NULL) {
    tarn_list_del(&transfer->access->node);
    *transfer->access = (tarn_access){.address = 0};
  }
  tarn__spans_leave(&core->spans, transfer->request.start,
                    transfer->request.end, transfer->writes);
}

// --- committing --------------------------------------------------------------

static bool is_of_transfer(const tarn__synced_use *use, void *context) {
  const tarn__synced_transfer *transfer = context;
  return use->timeline == NULL && use->number == transfer->number;
}

static void leave_use(tarn__synced_core *core, tarn__synced_span *span,
                      tarn__synced_position position, uint32_t side,
                      bool writes) {
  tarn__span_use(&core->spans, span,
                 (tarn__synced_use){.timeline = position.timeline,
                                    .number = position.number,
                                    .side = side,
                                    .writes = writes});
}

static void commit_run(tarn__synced_transfer *transfer, tarn__synced_span *span,
                       const tarn__synced_load *run) {
  tarn__synced_core *core = transfer->core;
  const tarn__synced_carrier *carrier = &transfer->carriers[run->carrier];
  tarn__span_forget(&core->spans, span, is_of_transfer, transfer);
  tarn__synced_position behind = carrier->position;
  if (!run->made || carrier->failed) return;
  if (behind.timeline != NULL &&
      !tarn__timeline_is_over(behind.timeline, behind.number)) {
    leave_use(core, span, behind, transfer->side, true);
    leave_use(core, span, behind, run->from, false);
  }
  if (transfer->worthless) return;
  tarn__span_set(core, span, span->valid | tarn__side_bit(transfer->side),
                 span->written);
}

static void commit_spans(tarn__synced_transfer *transfer) {
  tarn__synced_core *core = transfer->core;
  size_t at = 0;
  tarn__spans_each (span, &core->spans, transfer->request.start,
                    transfer->request.end) {
    const tarn__synced_load *run = run_of(transfer, span, &at);
    tarn__work_prune(core, span);
    if (run != NULL) commit_run(transfer, span, run);
  }
}

static void count_runs(const tarn__synced_transfer *transfer) {
  tarn__synced_core *core = transfer->core;
  for (size_t i = 0; i < transfer->run_count; i++) {
    const tarn__synced_load *run = &transfer->runs[i];
    if (!run->made || run->from == TARN__NO_SIDE) continue;
    tarn__synced_counts *counts =
        tarn__core_counts(core, run->from, transfer->side);
    counts->copies++;
    counts->moved += run->end - run->start;
  }
}

static const tarn__synced_load *first_copy(
    const tarn__synced_transfer *transfer) {
  for (size_t i = 0; i < transfer->run_count; i++) {
    if (transfer->runs[i].from != TARN__NO_SIDE) return &transfer->runs[i];
  }
  return NULL;
}

// Counts avoided copies: bytes that were valid, and stale bytes outside the
// range that a copy of the whole buffer would have moved. Before the commit of
// runs.
static void count_spared(const tarn__synced_transfer *transfer) {
  tarn__synced_core *core = transfer->core;
  if (!transfer->reads) return;
  tarn__core_counts(core, transfer->side, transfer->side)->valid +=
      transfer->valid_bytes;
  const tarn__synced_load *copy = first_copy(transfer);
  if (copy == NULL) return;
  size_t stale = core->live - core->sides[transfer->side].fresh;
  if (stale <= transfer->moved_bytes) return;
  tarn__core_counts(core, copy->from, transfer->side)->outside +=
      stale - transfer->moved_bytes;
}

// Counts bytes that would be copied without WRITE_DISCARD.
static void count_discarded(tarn__synced_transfer *transfer) {
  tarn__synced_core *core = transfer->core;
  tarn__spans_each (span, &core->spans, transfer->request.start,
                    transfer->request.end) {
    bool stale = span->written && span->valid != 0 &&
                 (span->valid & tarn__side_bit(transfer->side)) == 0;
    if (!stale) continue;
    uint32_t from = tarn__transfer_source(transfer, span->valid);
    tarn__core_counts(core, from, transfer->side)->discarded +=
        span->end - span->node.start;
  }
}

static void count_stalls(const tarn__synced_transfer *transfer) {
  for (size_t i = 0; i < transfer->wait_count; i++) {
    const tarn__synced_wait *wait = &transfer->waits[i];
    if (wait->stalled_ns == 0) continue;
    tarn__synced_counts *counts =
        tarn__core_counts(transfer->core, wait->side, transfer->side);
    counts->stalls++;
    counts->stalled_ns += wait->stalled_ns;
  }
}

static void release_positions(tarn__synced_transfer *transfer) {
  for (size_t i = TARN__BY_STREAM; i < transfer->carrier_count; i++) {
    tarn__work_release(transfer->carriers[i].position);
    transfer->carriers[i].position.timeline = NULL;
  }
}

// While the lock was left, another thread may have found a failed stream: one
// that this transfer waited for, which voids all copies, or one that made
// copies.
static tarn_status find_failures(tarn__synced_transfer *transfer,
                                 tarn_status status) {
  bool found = false;
  for (size_t i = 0; i < transfer->wait_count; i++) {
    const tarn__synced_wait *wait = &transfer->waits[i];
    if (tarn__timeline_is_void(wait->timeline, wait->number)) found = true;
  }
  transfer->worthless = found;
  for (size_t i = TARN__BY_STREAM; i < transfer->carrier_count; i++) {
    tarn__synced_carrier *carrier = &transfer->carriers[i];
    tarn__synced_position behind = carrier->position;
    bool lost = behind.timeline != NULL &&
                tarn__timeline_is_void(behind.timeline, behind.number);
    if (lost) carrier->failed = true;
    if (lost) found = true;
  }
  return status == TARN_OK && found ? TARN_PENDING : status;
}

// Ends the uses of the transfer, after success or failure.
static tarn_status commit(tarn__synced_transfer *transfer,
                          tarn_status carried) {
  tarn_status status = find_failures(transfer, carried);
  bool stays = status == TARN_OK && transfer->access != NULL;
  if (status == TARN_OK) count_spared(transfer);
  if (status == TARN_OK && !transfer->reads) count_discarded(transfer);
  count_runs(transfer);
  count_stalls(transfer);
  tarn__transfer_forget(transfer);
  if (tarn__transfer_has_work(transfer)) commit_spans(transfer);
  release_positions(transfer);
  transfer->core->sides[transfer->side].transfers--;
  if (stays) {
    transfer->access->buffer = transfer->request.buffer;
    tarn__spans_join(&transfer->core->spans, transfer->request.start,
                     transfer->request.end);
  } else {
    take_back(transfer);
  }
  tarn__core_wake(transfer->core);
  return status;
}

// --- from the beginning to the end -------------------------------------------

// Whether outside memory prevents the plan: copies are made only into memory
// that may be written and is the library's or to be filled.
static bool must_move(const tarn__synced_transfer *transfer) {
  const tarn__synced_side *side = &transfer->core->sides[transfer->side];
  if (!side->outside) return false;
  bool constant = (side->wrap & TARN_WRAP_READ_ONLY) != 0;
  bool fills = side->deleter != NULL || (side->wrap & TARN_WRAP_FILL) != 0;
  return (transfer->run_count > 0 && (constant || !fills)) ||
         (transfer->writes && constant);
}

// Nodes for a span: the source, the target, and the inherited writers.
static size_t uses_of(const tarn__synced_transfer *transfer) {
  return transfer->run_count > 0 ? 2 + transfer->most_writers : 0;
}

static void sleep_for_others(tarn__synced_transfer *transfer) {
  uint64_t began = tarn__os_now_ns();
  tarn__core_sleep(transfer->core);
  transfer->slept_ns += tarn__os_now_ns() - began;
}

// Open accesses of outside memory keep it.
static bool waits_to_move(const tarn__synced_transfer *transfer) {
  const tarn__synced_core *core = transfer->core;
  bool patient = (transfer->request.mode & TARN_ACCESS_WAIT) != 0;
  return patient &&
         tarn__access_in(core, transfer->side, 0, core->size) != NULL;
}

static tarn_status move(tarn__synced_transfer *transfer) {
  if (waits_to_move(transfer)) {
    sleep_for_others(transfer);
    return TARN_OK;
  }
  return tarn__side_move_to_own(transfer->core, transfer->side);
}

// Allocates the memory that the plan needs. TARN_PENDING: the lock was left,
// plan again.
static tarn_status provide(tarn__synced_transfer *transfer) {
  tarn__synced_core *core = transfer->core;
  tarn_status status = TARN_OK;
  bool lacks = !tarn__side_has_memory(&core->sides[transfer->side]);
  bool moves = must_move(transfer);
  if (lacks || moves) {
    tarn__transfer_forget(transfer);
    status = lacks ? tarn__side_take(core, transfer->side) : move(transfer);
    return status == TARN_OK ? TARN_PENDING : status;
  }
  status = tarn__spans_reserve(&core->spans, transfer->request.start,
                               transfer->request.end, uses_of(transfer));
  if (status != TARN_OK) tarn__transfer_forget(transfer);
  return status;
}

// All sleeps together count as one stall.
static void count_sleep(const tarn__synced_transfer *transfer) {
  if (transfer->slept_ns == 0) return;
  tarn__synced_counts *counts =
      tarn__core_counts(transfer->core, transfer->side, transfer->side);
  counts->stalls++;
  counts->stalled_ns += transfer->slept_ns;
}

// Plans and enters. TARN_PENDING: begin again.
static tarn_status prepare(tarn__synced_transfer *transfer) {
  tarn__synced_core *core = transfer->core;
  TARN__TRY(tarn__core_admit(core));
  TARN__TRY(tarn__side_of(core, transfer->request.place, &transfer->side));
  TARN__TRY(tarn__core_admit(core));
  bool busy = core->sides[transfer->side].busy;
  tarn_status status = busy ? TARN_PENDING : tarn__transfer_plan(transfer);
  if (status == TARN_PENDING) sleep_for_others(transfer);
  return status == TARN_OK ? provide(transfer) : status;
}

static tarn_status try(tarn__synced_transfer *transfer) {
  tarn__synced_core *core = transfer->core;
  tarn_status status = TARN_OK;
  TARN__TRY(prepare(transfer));
  enter(transfer);
  if (tarn__transfer_has_work(transfer)) {
    tarn__core_leave(core);
    status = tarn__transfer_carry(transfer);
    tarn__core_enter(core);
  }
  return commit(transfer, status);
}

// The results of a plan are set by tarn__transfer_plan.
static void transfer_init(tarn__synced_transfer *transfer,
                          tarn__synced_core *core,
                          const tarn__synced_request *request,
                          tarn_access *access) {
  uint32_t mode = request->mode & ~TARN_ACCESS_WAIT;
  transfer->core = core;
  transfer->request = *request;
  transfer->access = access;
  transfer->reads = mode != TARN_WRITE_DISCARD;
  transfer->writes = mode != TARN_READ;
  transfer->side = TARN__NO_SIDE;
  transfer->number = 0;
  transfer->marked = false;
  transfer->worthless = false;
  transfer->again = false;
  transfer->slept_ns = 0;
  transfer->runs = transfer->few_runs;
  transfer->run_room = TARN__FEW;
  transfer->waits = transfer->few_waits;
  transfer->wait_room = TARN__FEW;
}

// Also tells the trace how long the transfer slept. Without the lock.
static void transfer_deinit(tarn__synced_transfer *transfer) {
  assert(!transfer->marked);
  if (transfer->slept_ns > 0)
    tarn__transfer_tell_stall(transfer, transfer->slept_ns);
  if (transfer->runs != transfer->few_runs) {
    tarn__host_free_array(transfer->runs, transfer->run_room,
                          sizeof *transfer->runs);
  }
  if (transfer->waits != transfer->few_waits) {
    tarn__host_free_array(transfer->waits, transfer->wait_room,
                          sizeof *transfer->waits);
  }
}

// An access of 0 bytes touches nothing, but is open like others.
static tarn_status open_empty(tarn__synced_core *core,
                              const tarn__synced_request *request,
                              tarn_access *access) {
  TARN__TRY(tarn__core_admit(core));
  TARN__TRY(tarn__place_check(request->place));
  if (access == NULL) return TARN_OK;
  access->buffer = request->buffer;
  access->offset = request->start;
  access->mode = request->mode & ~TARN_ACCESS_WAIT;
  access->side = TARN__NO_SIDE;
  tarn_list_add_tail(&core->accesses, &access->node);
  return TARN_OK;
}

tarn_status tarn__transfer_run(tarn__synced_core *core,
                               const tarn__synced_request *request,
                               tarn_access *access) {
  tarn__synced_transfer transfer;
  if (request->start == request->end) {
    tarn_status opened = open_empty(core, request, access);
    tarn__core_leave(core);
    return opened;
  }
  transfer_init(&transfer, core, request, access);
  tarn_status status = TARN_PENDING;
  while (status == TARN_PENDING)
    status = try(&transfer);
  count_sleep(&transfer);
  tarn__core_leave(core);
  transfer_deinit(&transfer);
  return status;
}
