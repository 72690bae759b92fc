// States that are behind their row, in its block.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "embedding/embedding.h"

typedef struct layout {
  size_t row;    // bytes, with the gap behind it
  size_t state;  // elements of each
  size_t states;
  bool counts;
} layout;

static layout layout_of(tarn_dtype dtype, size_t width,
                        const tarn_embedding_options *options) {
  const size_t unit = sizeof(float);
  tarn__embedding_optimizer_states kinds = tarn__optimizer_states_of(options);
  bool row_wise = (options->flags & TARN_EMBEDDING_ROW_WISE) != 0;
  layout l = {
      .row = tarn__divide_up(width * tarn_dtype_size(dtype), unit) * unit,
      .state = row_wise ? 1 : width,
      .counts = kinds.counts};
  while (kinds.names[l.states] != NULL)
    l.states++;
  return l;
}

size_t tarn__embedding_block(tarn_dtype dtype, size_t width,
                             const tarn_embedding_options *options) {
  layout l = layout_of(dtype, width, options);
  return l.row + l.states * l.state * sizeof(float) +
         (l.counts ? sizeof(int32_t) : 0);
}

void tarn__embedding_blank(tarn_dtype dtype, size_t width,
                           const tarn_embedding_options *options, void *out) {
  layout l = layout_of(dtype, width, options);
  unsigned char *state = (unsigned char *)out + l.row;
  memset(out, 0, tarn__embedding_block(dtype, width, options));
  if (options->optimizer != TARN_OPTIMIZER_ADAGRAD) return;
  for (size_t i = 0; i < l.state; i++)
    memcpy(state + i * sizeof(float), &options->initial, sizeof(float));
}

// |width| elements of each block, from byte |at| on.
static tarn_status add_columns(tarn_embedding *e, const char *name,
                               tarn_dtype dtype, size_t at, size_t width) {
  const tarn_whole_tensor *table = tarn__embedding_table(e);
  size_t element = tarn_dtype_size(dtype);
  const tarn_whole_tensor columns = {
      .whole = table->whole,
      .dtype = dtype,
      .dims = 2,
      .rows = table->rows,
      .width = width,
      .stride = table->whole->granularity / element,
      .offset = at / element};
  return tarn__embedding_add_part(e, name, &columns);
}

static tarn_status add_parts(tarn_embedding *e,
                             const tarn_whole_tensor *table) {
  const tarn_embedding_options *options = &e->optimizer.options;
  tarn__embedding_optimizer_states kinds = tarn__optimizer_states_of(options);
  layout l = layout_of(table->dtype, table->width, options);
  size_t at = l.row;
  TARN__TRY(tarn__embedding_add_part(e, "table", table));
  for (size_t i = 0; i < l.states; i++, at += l.state * sizeof(float))
    TARN__TRY(add_columns(e, kinds.names[i], TARN_DTYPE_F32, at, l.state));
  return l.counts ? add_columns(e, "step", TARN_DTYPE_I32, at, 1) : TARN_OK;
}

static tarn_status make(tarn_embedding *e, const tarn_whole_tensor *table) {
  TARN__TRY(
      tarn_whole_tensor_rows(table, table->whole->rank, &e->first, &e->rows));
  TARN__TRY(add_parts(e, table));
  tarn__tally_init(&e->tally, tarn__embedding_columns(e));
  return tarn__update_begin(e);
}

tarn_status tarn__embedding_make(const tarn_whole_tensor *table,
                                 const tarn_embedding_options *options,
                                 uint64_t applies,
                                 tarn_embedding **out_embedding) {
  *out_embedding = NULL;
  tarn_embedding *e = tarn__host_alloc(sizeof *e);
  if (e == NULL) return TARN_E_NOMEM;
  *e = (tarn_embedding){.optimizer.options = *options, .applies = applies};
  tarn_status status = make(e, table);
  if (status == TARN_OK) {
    *out_embedding = e;
  } else {
    tarn__embedding_free(e);
  }
  return status;
}
