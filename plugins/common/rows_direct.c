// Gather and scatter where every address is a pointer: planned once, and then
// done in shares, each by a thread of its own.
//
//   gather        positions  [ share 0 ][ share 1 ][ share 2 ]
//   the others    rows       0 1 0 2 1 0 2 0 ...
//
// The dense rows that a gather writes are one for each position. What the
// others write is shared out by row, so that no two threads meet in one, and
// the order of equal indices stays: each share goes through all positions.
#include "common/rows_direct.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"

enum { SHARE_LEAST = 512 << 10 };  // bytes that are worth a thread

// Rows of a library that is older than this plug-in end before the field.
static uint32_t threads_of(const tarn_rows *rows) {
  bool is_there = rows->struct_size >= TARN__SIZE_UP_TO(tarn_rows, threads);
  uint32_t threads = is_there ? rows->threads : 0;
  return threads < TARN__ROWS_THREADS ? threads : TARN__ROWS_THREADS;
}

static uint32_t shares_of(const tarn__rows_plan *plan) {
  uint32_t threads = threads_of(plan->rows);
  size_t bytes = plan->table_bytes + plan->dense_bytes;
  if (threads < 2 || bytes == 0) return 1;
  size_t each = SHARE_LEAST / bytes + 1;  // rows
  size_t most = plan->rows->index_count / each;
  if (most < threads) threads = (uint32_t)most;
  return threads < 2 ? 1 : threads;
}

static void cut(const tarn__rows_plan *plan, tarn__common_rows_share *shares,
                uint32_t count) {
  bool gathers = plan->action == TARN__ROWS_GATHER;
  size_t all = plan->rows->index_count;
  for (uint32_t i = 0; i < count; i++) {
    tarn__common_rows_share *share = &shares[i];
    *share = (tarn__common_rows_share){.plan = plan, .end = all, .of = 1};
    if (gathers) {
      share->first = all / count * i + (i < all % count ? i : all % count);
      share->end = share->first + all / count + (i < all % count);
    } else {
      share->number = i;
      share->of = count;
    }
  }
}

static void work(void *share) {
  tarn__rows_share_run(share);
}

// The one at the lowest position.
static tarn__common_rows_fault first_fault(
    const tarn__common_rows_share *shares, uint32_t count) {
  tarn__common_rows_fault first = {.kind = TARN__ROWS_FINE,
                                   .position = SIZE_MAX};
  for (uint32_t i = 0; i < count; i++) {
    const tarn__common_rows_fault *fault = &shares[i].fault;
    if (fault->kind == TARN__ROWS_FINE) continue;
    if (fault->position < first.position) first = *fault;
  }
  return first;
}

static tarn_status say(const tarn_rows *rows,
                       const tarn__common_rows_fault *fault, char *text,
                       size_t text_size) {
  if (fault->kind == TARN__ROWS_FINE) return TARN_OK;
  if (fault->kind == TARN__ROWS_BAD_INDEX) {
    tarn__rows_say_bad(rows, fault->index, fault->position, text, text_size);
  } else {
    snprintf(text, text_size, "row %" PRId64 " of the table lies in two chunks",
             fault->index);
  }
  return TARN_E_INVALID;
}

tarn_status tarn__rows_direct(tarn__rows_action action, const tarn_rows *rows,
                              char *text, size_t text_size) {
  tarn__common_rows_share shares[TARN__ROWS_THREADS];
  tarn__rows_plan plan = {
      .action = action,
      .rows = rows,
      .table_bytes = tarn__rows_table_bytes(rows),
      .dense_bytes = tarn__rows_dense_bytes(rows),
  };
  tarn__rows_choose(&plan);
  uint32_t count = shares_of(&plan);
  cut(&plan, shares, count);
  tarn__rows_on_threads(work, shares, sizeof shares[0], count);
  tarn__common_rows_fault fault = first_fault(shares, count);
  return say(rows, &fault, text, text_size);
}
