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

static void free_kept(tarn__whole_exchange *kept, size_t ranks) {
  tarn__sorted_end(&kept->sorted);
  for (size_t i = 0; i < 2; i++)
    tarn__host_free_array(kept->positions[i], TARN__LIST, sizeof(int32_t));
  tarn__host_free_array(kept->words, ranks, sizeof *kept->words);
  tarn__host_free_array(kept->shares, ranks, sizeof *kept->shares);
  tarn__host_free(kept, sizeof *kept);
}

static tarn_status fill_kept(tarn__whole_exchange *kept,
                             const tarn_whole *whole) {
  tarn_status status =
      tarn__sorted_begin(&kept->sorted, whole->rank, whole->ranks);
  for (size_t i = 0; i < 2; i++)
    kept->positions[i] = tarn__host_array(TARN__LIST, sizeof(int32_t));
  kept->words = tarn__host_array(whole->ranks, sizeof *kept->words);
  kept->shares = tarn__host_array(whole->ranks, sizeof *kept->shares);
  bool all = status == TARN_OK && kept->positions[0] != NULL &&
             kept->positions[1] != NULL && kept->words != NULL &&
             kept->shares != NULL;
  return all ? TARN_OK : TARN_E_NOMEM;
}

static tarn_status keep(tarn_whole *whole) {
  if (whole->exchange != NULL) return TARN_OK;
  tarn__whole_exchange *kept = tarn__host_alloc(sizeof *kept);
  if (kept == NULL) return TARN_E_NOMEM;
  tarn_status status = fill_kept(kept, whole);
  if (status == TARN_OK) {
    whole->exchange = kept;
  } else {
    free_kept(kept, whole->ranks);
  }
  return status;
}

void tarn__exchange_end(tarn_whole *whole, bool after_fork) {
  tarn__whole_exchange *kept = whole->exchange;
  if (kept == NULL) return;
  if (after_fork) {
    tarn__staging_forget(&kept->staging);
  } else {
    tarn__staging_drop(&kept->staging);
  }
  free_kept(kept, whole->ranks);
  whole->exchange = NULL;
}

// --- what is asked for -----------------------------------------------------

static tarn_status look(tarn_whole *whole,
                        const tarn__whole_rows_order *order) {
  tarn_rows rows = order->rows;
  rows.table_count = order->table.rows;
  tarn_status status = keep(whole);
  if (status == TARN_OK && order->stream != NULL) {
    status = tarn_stream_synchronize(order->stream);
  }
  if (status != TARN_OK) return status;
  return tarn__rows_check_indices(order->place, &rows,
                                  whole->exchange->sorted.indices, TARN__PIECE);
}

// The values that must be the same at all ranks, without padding.
typedef struct likeness {
  uint64_t table_dtype;
  uint64_t dense_dtype;
  uint64_t rows;
  uint64_t width;
  uint64_t stride;
  uint64_t offset;
} likeness;

_Static_assert(sizeof(likeness) <= TARN_COMM_MOST_SAME, "it can be compared");

static tarn_status compare(const tarn_whole *whole,
                           const tarn__whole_rows_order *order,
                           const tarn__whole_subject *subject) {
  char call[128];
  char words[256];
  const tarn__whole_tensor *table = &order->table;
  const likeness mine = {.table_dtype = (uint64_t)table->dtype,
                         .dense_dtype = (uint64_t)order->rows.dense_dtype,
                         .rows = table->rows,
                         .width = table->width,
                         .stride = table->stride,
                         .offset = table->offset};
  tarn__whole_say(subject, call, sizeof call);
  snprintf(words, sizeof words,
           "%s: %zu rows of %zu x %s with a stride of %zu and an offset of %zu "
           "bytes, and dense rows of %s",
           call, table->rows, table->width, tarn_dtype_name(table->dtype),
           table->stride, table->offset,
           tarn_dtype_name(order->rows.dense_dtype));
  return tarn_comm_same(whole->comm, &mine, sizeof mine, words);
}

// --- together --------------------------------------------------------------

static tarn_status run(tarn_whole *whole, const tarn__whole_rows_order *order,
                       const tarn__whole_subject *subject, tarn_status status) {
  status = tarn_comm_agree(whole->comm, status);
  if (status == TARN_OK) status = compare(whole, order, subject);
  if (status != TARN_OK) return status;
  if (whole->exchange->staging.size == 0) {
    status = tarn__staging_make(&whole->exchange->staging, whole->comm);
    if (status != TARN_OK) return status;
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
