// Records: finding those that are wanted, and making room for them.
//
//   numbers ──► sieve ──► THERE                      done
//      ▲                  TO_FILL   line ◄── block   done after the turn
//      │                  TO_WRITE  line ──► block   ──┐
//      │                  ABSENT    all lines pinned ──┤
//      └─────────────── again, in the next turn ◄──────┘
//
// A turn looks for a window of numbers, or as many of it as there are jobs for,
// and reads and writes all that they need at once. It leads on as long as one
// more has a line or a record was written.
#include "disk/records.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "disk/records_store.h"

#define NO_LINE UINT32_MAX

enum { PINNED_PART = 4 };  // of the lines: what finds room, pinned

// --- one turn ----------------------------------------------------------------

static void take_found(tarn__disk_records *r,
                       const tarn__cache_sieve_batch *batch, size_t i,
                       uint32_t *out_line) {
  uint64_t key = batch->keys[i];
  *out_line = NO_LINE;
  switch ((tarn__cache_sieve_found)batch->found[i]) {
    case TARN__SIEVE_TO_FILL:
      tarn__jobs_fill(r, key, batch->lines[i]);
      *out_line = batch->lines[i];
      break;
    case TARN__SIEVE_TO_WRITE: {
      uint64_t old = 0;
      bool has = tarn__sieve_key(r->sieve, batch->lines[i], &old);
      assert(has);
      (void)has;
      tarn__jobs_write(r, old, batch->lines[i]);
      break;
    }
    case TARN__SIEVE_THERE:
    case TARN__SIEVE_AWAITED:
      *out_line = batch->lines[i];
      break;
    case TARN__SIEVE_ABSENT:
      break;
  }
}

// Each number may need a job and a move.
static size_t most_at_once(const tarn__disk_block_jobs *jobs) {
  size_t most = tarn__lesser(jobs->most - jobs->count,
                             jobs->move_most - jobs->move_count);
  return tarn__lesser(most, TARN__SIEVE_BATCH);
}

// Looks for those of the window that have no line yet, from |first| on, as many
// as can be at once. Returns where to go on.
static size_t find_some(tarn__disk_records *r, const uint64_t *numbers,
                        size_t count, size_t first, size_t *io_progress) {
  tarn__cache_sieve_batch *batch = r->batch;
  uint32_t places[TARN__SIEVE_BATCH] = {0};
  size_t most = most_at_once(&r->jobs);
  size_t i = first;
  batch->count = 0;
  for (; i < count && batch->count < most; i++) {
    if (r->found_lines[i] != NO_LINE) continue;
    places[batch->count] = (uint32_t)i;
    batch->keys[batch->count++] = numbers[i];
  }
  tarn__sieve_find(r->sieve, batch, TARN__SIEVE_MAKE_ROOM);
  for (size_t k = 0; k < batch->count; k++)
    take_found(r, batch, k, &r->found_lines[places[k]]);
  r->tally.hits += batch->tally[TARN__SIEVE_THERE];
  *io_progress += batch->count - batch->tally[TARN__SIEVE_ABSENT];
  return i;
}

static size_t count_missing(const tarn__disk_records *r, size_t count) {
  size_t missing = 0;
  for (size_t i = 0; i < count; i++)
    missing += r->found_lines[i] == NO_LINE;
  return missing;
}

static void begin_turn(tarn__disk_records *r, const uint64_t *numbers,
                       size_t count) {
  r->progress = 0;
  tarn__jobs_clear(&r->jobs);
  for (size_t i = 0; i < count && most_at_once(&r->jobs) > 0;) {
    i = find_some(r, numbers, count, i, &r->progress);
    tarn__jobs_start(r);
  }
}

static tarn_status end_turn(tarn__disk_records *r) {
  TARN__TRY(tarn__jobs_run(r));
  if (r->progress > 0) return TARN_OK;
  return tarn__fail(TARN_FULL,
                    "disk: no room for a record: %" PRIu64
                    " are pinned, of %zu that fit",
                    r->pins, r->line_count);
}

// --- pins --------------------------------------------------------------------

static void unpin(tarn__disk_records *r, uint32_t line, bool dirty) {
  tarn__sieve_let_go(r->sieve, line, dirty);
  r->pins--;
}

static void leave(tarn__disk_records *r, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (r->found_lines[i] != NO_LINE) unpin(r, r->found_lines[i], false);
}

static void begin_window(tarn__disk_records *r, const uint64_t *numbers,
                         size_t count) {
  memset(r->found_lines, 0xff, count * sizeof *r->found_lines);
  begin_turn(r, numbers, count);
}

// Pins up to a window of numbers. On failure nothing is pinned.
static tarn_status end_window(tarn__disk_records *r, const uint64_t *numbers,
                              size_t count) {
  tarn_status status = end_turn(r);
  size_t missing = count_missing(r, count);
  r->pins += count - missing;
  while (missing > 0 && status == TARN_OK) {
    begin_turn(r, numbers, count);
    status = end_turn(r);
    size_t now = count_missing(r, count);
    r->pins += missing - now;
    missing = now;
  }
  if (status != TARN_OK) leave(r, count);
  return status;
}

static tarn_status check_numbers(const tarn__disk_records *r,
                                 const uint64_t *numbers, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (numbers[i] < r->shape.count) continue;
    return tarn__fail(TARN_E_INVALID,
                      "disk: number %" PRIu64
                      " at position %zu is none of %" PRIu64 " records",
                      numbers[i], i, r->shape.count);
  }
  return TARN_OK;
}

void tarn__records_begin(tarn__disk_records *r, const uint64_t *numbers,
                         size_t count) {
  tarn__records_stop(r);
  if (count > r->window || r->pins + count > r->line_count / PINNED_PART)
    return;
  if (check_numbers(r, numbers, count) != TARN_OK) return;
  begin_window(r, numbers, count);
  r->begun = numbers;
  r->begun_count = count;
}

bool tarn__records_has_begun(const tarn__disk_records *r) {
  return r->begun != NULL;
}

void tarn__records_stop(tarn__disk_records *r) {
  if (r->begun == NULL) return;
  tarn_status status = end_window(r, r->begun, r->begun_count);
  if (status == TARN_OK) leave(r, r->begun_count);
  r->begun = NULL;
}

// Whether the window was begun; it is not any more.
static bool take_begun(tarn__disk_records *r, const uint64_t *numbers,
                       size_t count) {
  bool begun = r->begun == numbers && r->begun_count == count;
  if (!begun) tarn__records_stop(r);
  r->begun = NULL;
  return begun;
}

static tarn_status pin_window(tarn__disk_records *r, const uint64_t *numbers,
                              size_t count) {
  if (!take_begun(r, numbers, count)) begin_window(r, numbers, count);
  return end_window(r, numbers, count);
}

tarn_status tarn__records_pin(tarn__disk_records *r, const uint64_t *numbers,
                              size_t count, void **out_records) {
  tarn_status status = check_numbers(r, numbers, count);
  if (status != TARN_OK) tarn__records_stop(r);
  TARN__TRY(status);
  r->tally.asked += count;
  for (size_t done = 0; done < count;) {
    size_t some = tarn__lesser(count - done, r->window);
    status = pin_window(r, numbers + done, some);
    if (status != TARN_OK) {
      tarn__records_unpin(r, out_records, done, false);
      memset(out_records, 0, done * sizeof *out_records);
      return status;
    }
    for (size_t i = 0; i < some; i++)
      out_records[done + i] = tarn__records_line(r, r->found_lines[i]);
    done += some;
  }
  return TARN_OK;
}

void tarn__records_unpin(tarn__disk_records *r, void *const *pinned,
                         size_t count, bool dirty) {
  for (size_t i = 0; i < count; i++) {
    size_t offset = (size_t)((unsigned char *)pinned[i] - r->lines);
    unpin(r, (uint32_t)(offset / r->shape.size), dirty);
  }
}

// --- flush -------------------------------------------------------------------

// Dirty lines come in the order of their records, so that those of a block come
// together.
tarn_status tarn__records_write(tarn__disk_records *r, uint64_t *io_from,
                                bool *out_done) {
  *out_done = false;
  if (r->pins > 0) {
    return tarn__fail(TARN_E_STATE,
                      "disk: a flush while %" PRIu64 " records are pinned",
                      r->pins);
  }
  size_t taken =
      tarn__sieve_take_dirty(r->sieve, *io_from, r->dirty, r->dirty_most);
  *out_done = taken == 0;
  if (taken == 0) return TARN_OK;
  tarn__jobs_clear(&r->jobs);
  for (size_t i = 0; i < taken; i++)
    tarn__jobs_write(r, r->dirty[i].key, r->dirty[i].line);
  *io_from = r->dirty[taken - 1].key + 1;
  return tarn__jobs_run(r);
}

tarn_status tarn__records_prepare(tarn__disk_records *r) {
  return tarn__blocks_prepare(r->blocks);
}

tarn_status tarn__records_commit(tarn__disk_records *r, const void *note) {
  unsigned char whole[TARN__ROOT_NOTE];
  tarn__records_note_write(&r->shape, note, whole);
  return tarn__blocks_commit(r->blocks, whole);
}

tarn_status tarn__records_flush(tarn__disk_records *r, const void *note) {
  uint64_t from = 0;
  for (bool done = false; !done;)
    TARN__TRY(tarn__records_write(r, &from, &done));
  TARN__TRY(tarn__records_prepare(r));
  return tarn__records_commit(r, note);
}

void tarn__records_count(const tarn__disk_records *r,
                         tarn__disk_records_tally *out_tally) {
  tarn__cache_sieve_tally lines;
  tarn__sieve_count(r->sieve, &lines);
  *out_tally = r->tally;
  out_tally->lines = r->line_count;
  out_tally->used = lines.used;
  out_tally->dirty = lines.dirty;
  out_tally->block = r->block;
  out_tally->memory = r->memory;
  out_tally->direct = tarn__blocks_is_direct(r->blocks);
  out_tally->method = tarn__blocks_method(r->blocks);
}
