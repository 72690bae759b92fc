// Rows that ranks move together: arguments and indices are looked at by all
// before the first row moves; then exchange_round.c does it.
//
//   every rank for itself             all ranks together
//   ---------------------             ---------------------------------------
//   arguments, the stream, indices    agree
//                                     the same order?   (tarn_comm_same)
//                                     staging, the first time
//                                     rounds
#include <stdio.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "whole/exchange.h"

// --- what is kept ----------------------------------------------------------

// Six arrays of ranks + 1 numbers, or of pairs of 32 bits.
static size_t kept_size(const tarn_whole *whole) {
  return sizeof(tarn__whole_exchange) + 6 * (whole->ranks + 1) * sizeof(size_t);
}

static tarn_status keep(tarn_whole *whole) {
  size_t each = whole->ranks + 1;
  if (whole->exchange != NULL) return TARN_OK;
  tarn__whole_exchange *kept = tarn__host_alloc(kept_size(whole));
  if (kept == NULL) return TARN_E_NOMEM;
  size_t *numbers = kept->numbers;
  kept->shares = numbers;
  kept->words = (tarn__whole_word *)(numbers + each);
  kept->sorted =
      (tarn__whole_sorted){.rank = whole->rank,
                           .ranks = whole->ranks,
                           .firsts = numbers + 2 * each,
                           .next = numbers + 3 * each,
                           .ends = numbers + 4 * each,
                           .buckets = (uint32_t *)(numbers + 5 * each),
                           .regions = kept->regions,
                           .homes = kept->homes,
                           .indices = kept->indices,
                           .entries = kept->entries};
  whole->exchange = kept;
  return TARN_OK;
}

void tarn__exchange_end(tarn_whole *whole, bool after_fork) {
  tarn__whole_exchange *kept = whole->exchange;
  if (kept == NULL) return;
  if (after_fork) {
    tarn__staging_forget(&kept->staging);
  } else {
    tarn__staging_drop(&kept->staging);
  }
  tarn__host_free(kept, kept_size(whole));
  whole->exchange = NULL;
}

// --- what is asked for -----------------------------------------------------

static tarn_status look(tarn_whole *whole,
                        const tarn__whole_rows_order *order) {
  tarn_rows rows = order->rows;
  rows.table_count = order->table.rows;
  TARN__TRY(keep(whole));
  if (order->stream != NULL) {
    TARN__TRY(tarn_stream_synchronize(order->stream));
  }
  return tarn__rows_check_indices(order->place, &rows,
                                  whole->exchange->sorted.indices, TARN__PIECE);
}

// Compares what must be the same at all ranks, in words.
static tarn_status compare(const tarn_whole *whole,
                           const tarn__whole_rows_order *order,
                           const tarn__whole_subject *subject) {
  char call[128];
  char mine[192] = "";
  char words[sizeof call + sizeof mine + 2];
  const tarn__whole_tensor *table = &order->table;
  snprintf(mine, sizeof mine,
           "%zu rows of %zu x %s with a stride of %zu and an offset of %zu "
           "bytes, and dense rows of %s",
           table->rows, table->width, tarn_dtype_name(table->dtype),
           table->stride, table->offset,
           tarn_dtype_name(order->rows.dense_dtype));
  tarn__whole_say(subject, call, sizeof call);
  snprintf(words, sizeof words, "%s: %s", call, mine);
  return tarn_comm_same(whole->comm, mine, sizeof mine, words);
}

// --- together --------------------------------------------------------------

static tarn_status run(tarn_whole *whole, const tarn__whole_rows_order *order,
                       const tarn__whole_subject *subject, tarn_status status) {
  TARN__TRY(tarn_comm_agree(whole->comm, status));
  TARN__TRY(compare(whole, order, subject));
  if (whole->exchange->staging.size == 0) {
    TARN__TRY(tarn__staging_make(whole, &whole->exchange->staging));
  }
  tarn__sorted_look_at(&whole->exchange->sorted, &order->table);
  return tarn__exchange_go(whole, order);
}

tarn_status tarn__exchange_run(tarn_whole *whole,
                               const tarn__whole_rows_order *order,
                               tarn_status status) {
  tarn__whole_subject subject =
      tarn__whole_subject_of((tarn__whole_call)order->action, whole);
  tarn__comm_caller caller = tarn__whole_caller(&subject);
  if (status == TARN_OK) status = look(whole, order);
  status = tarn__whole_say_call(&subject, status);
  tarn__comm_call_for(whole->comm, &caller);
  status = run(whole, order, &subject, status);
  tarn__comm_call_for(whole->comm, NULL);
  return status;
}
