// Gradients to the owners of their rows: one exchange of indices, then one of
// gradients, or several of some columns each where rows are wide.
#include "base/status.h"
#include "embedding/embedding.h"

typedef struct taker {
  tarn_embedding *embedding;
  tarn__embedding_update update;
} taker;

// --- what comes to the owner -----------------------------------------------

static tarn_status count(void *context, const tarn__whole_arrival *arrivals,
                         size_t n, tarn_dtype dtype, size_t width) {
  tarn_embedding *e = context;
  (void)dtype, (void)width;
  return tarn__tally_count(&e->tally, arrivals, n);
}

static tarn_status take(void *context, const tarn__whole_arrival *arrivals,
                        size_t n, tarn_dtype dtype, size_t width) {
  const taker *t = context;
  tarn_embedding *e = t->embedding;
  tarn__embedding_tally_ready ready[TARN__UPDATE_ROWS];
  for (size_t i = 0; i < n; i += TARN__UPDATE_ROWS) {
    size_t some = tarn__lesser(n - i, TARN__UPDATE_ROWS);
    size_t ready_count = 0;
    TARN__TRY(tarn__tally_add(&e->tally, arrivals + i, some, dtype, width,
                              ready, &ready_count));
    if (ready_count == 0) continue;
    TARN__TRY(tarn__update_rows(e, &t->update, ready, ready_count));
    tarn__tally_done(&e->tally, ready, ready_count);
  }
  return TARN_OK;
}

// --- exchanges -------------------------------------------------------------

// A byte of each gradient goes along, of bytes that there are in any case.
static tarn_status send_indices(tarn_embedding *e, tarn__whole_rows_order order,
                                tarn_status status) {
  const tarn__whole_sink sink = {count, e};
  order.sink = &sink;
  order.table.dtype = TARN_DTYPE_U8;
  order.table.width = order.table.row_bytes = 1;
  order.rows.table_dtype = order.rows.dense_dtype = TARN_DTYPE_U8;
  order.rows.width = order.rows.dense_stride = 1;
  return tarn__exchange_run(order.table.whole, &order, status);
}

static tarn_status send_columns(taker *t, tarn__whole_rows_order order) {
  const tarn__whole_sink sink = {take, t};
  size_t element = tarn_dtype_size(order.rows.dense_dtype);
  order.sink = &sink;
  order.rows.dense += t->update.column * element;
  order.table.width = order.rows.width = t->update.width;
  order.table.row_bytes = t->update.width * tarn_dtype_size(order.table.dtype);
  return tarn__exchange_run(order.table.whole, &order, TARN_OK);
}

static tarn_status send_all(tarn_embedding *e,
                            const tarn__whole_rows_order *order, bool measures,
                            bool measured) {
  size_t all = tarn__embedding_table(e)->width;
  size_t most = tarn__embedding_columns(e);
  for (size_t at = 0; at < all; at += most) {
    bool again = at > 0 || measured;
    taker t = {e, {at, tarn__lesser(all - at, most), measures, measured}};
    if (again) tarn__tally_again(&e->tally);
    TARN__TRY(send_columns(&t, *order));
  }
  return TARN_OK;
}

static tarn_status send(tarn_embedding *e,
                        const tarn__whole_rows_order *order) {
  bool in_parts = tarn__embedding_table(e)->width > tarn__embedding_columns(e);
  bool measures = in_parts && tarn__optimizer_is_row_wise(&e->optimizer);
  if (measures) TARN__TRY(send_all(e, order, true, false));
  return send_all(e, order, false, measures);
}

// --- the call --------------------------------------------------------------

static tarn_status check_gradients(const tarn__whole_rows_order *order) {
  tarn_dtype dtype = order->rows.dense_dtype;
  if (dtype == TARN_DTYPE_F32 || dtype == TARN_DTYPE_F16 ||
      dtype == TARN_DTYPE_BF16) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID,
                    "embedding: gradients are f32, f16 or bf16, not %s",
                    tarn_dtype_name(dtype));
}

tarn_status tarn_embedding_apply(tarn_embedding *embedding,
                                 const tarn_whole_rows *gradients,
                                 tarn_stream *stream) {
  tarn__whole_rows_order order;
  if (embedding == NULL) return tarn__fail(TARN_E_INVALID, "embedding: NULL");
  const tarn_whole_tensor *table = tarn__embedding_table(embedding);
  TARN__TRY(tarn__whole_check(table->whole));
  tarn_status status = tarn__rows_order_read(TARN__ROWS_SCATTER_ADD, table,
                                             gradients, stream, &order);
  if (status == TARN_OK) status = check_gradients(&order);
  tarn__tally_clear(&embedding->tally);
  TARN__TRY(send_indices(embedding, order, status));
  status = send(embedding, &order);
  embedding->applies++;
  return status;
}
