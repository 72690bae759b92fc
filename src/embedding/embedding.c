// From create to destroy, states, files.
#include "embedding/embedding.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/hostmem.h"
#include "base/status.h"
#include "comm/comm.h"
#include "table/rows.h"

// --- options ---------------------------------------------------------------

static tarn_status check_table(const tarn_whole_tensor *table) {
  size_t first = 0;
  size_t rows = 0;
  tarn__whole_tensor checked;
  tarn_dtype dtype = table->dtype;
  TARN__TRY(tarn__tensor_check(table, &checked));
  if (dtype != TARN_DTYPE_F32 && dtype != TARN_DTYPE_F16 &&
      dtype != TARN_DTYPE_BF16) {
    return tarn__fail(TARN_E_INVALID,
                      "embedding: the table is f32, f16 or bf16, not %s",
                      tarn_dtype_name(dtype));
  }
  if (table->dims != 2) {
    return tarn__fail(TARN_E_INVALID,
                      "embedding: the table has %zu dimensions, not 2",
                      table->dims);
  }
  if (table->whole->pager != NULL) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "embedding: the table is on a disk, where the states of "
                      "its optimizer have to be too: see tarn_disk_open");
  }
  tarn__tensor_rows(&checked, table->whole->rank, &first, &rows);
  if (rows < UINT32_MAX) return TARN_OK;
  return tarn__fail(TARN_E_UNSUPPORTED,
                    "embedding: rank %zu owns %zu rows, more than %llu",
                    table->whole->rank, rows, (unsigned long long)UINT32_MAX);
}

tarn_status tarn__embedding_read_options(const tarn_embedding_options *given,
                                         tarn_embedding_options *out) {
  TARN__TRY(tarn__take_struct("embedding", given,
                              TARN__SIZE_UP_TO(tarn_embedding_options, seed),
                              out, sizeof *out));
  return tarn__optimizer_check(out);
}

static uint32_t sum_of_numbers(const tarn_embedding_options *o) {
  const float numbers[] = {o->weight_decay, o->epsilon, o->momentum, o->beta1,
                           o->beta2,        o->alpha,   o->initial};
  uint32_t sum = tarn__crc32c(0, numbers, sizeof numbers);
  return tarn__crc32c(sum, &o->seed, sizeof o->seed);
}

// Agrees on |status|, and compares what must be the same at all ranks.
static tarn_status compare(const tarn_whole_tensor *table,
                           const tarn_embedding_options *o,
                           tarn_status status) {
  char words[192] = "";
  if (status == TARN_OK) {
    snprintf(words, sizeof words,
             "tarn_embedding_create of %zu x %zu %s: %s with flags %u, a "
             "learning rate of %g, and other numbers with the sum %08x",
             table->rows, table->width, tarn_dtype_name(table->dtype),
             tarn_optimizer_name(o->optimizer), (unsigned)o->flags,
             (double)o->learning_rate, (unsigned)sum_of_numbers(o));
  }
  return tarn__comm_agree_on(table->whole->comm, status, words, sizeof words,
                             words);
}

// --- parts -----------------------------------------------------------------

// Rows of the table that each rank owns.
static tarn_status count_rows(const tarn_whole_tensor *table, size_t *out) {
  size_t first = 0;
  for (size_t r = 0; r < table->whole->ranks; r++)
    TARN__TRY(tarn_whole_tensor_rows(table, r, &first, &out[r]));
  return TARN_OK;
}

// In copies of HIERARCHICAL memory all rows are divided, whatever the tensor.
static tarn_status check_rows(const tarn_embedding *e) {
  size_t first = 0;
  size_t rows = 0;
  TARN__TRY(
      tarn_whole_tensor_rows(&e->states, e->states.whole->rank, &first, &rows));
  if (first == e->first && rows == e->rows) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "embedding: the table is a part of hierarchical memory in "
                    "copies");
}

// Columns of |states|.
static tarn_status add_columns(tarn_embedding *e,
                               const tarn_whole_tensor *states,
                               const char *name, size_t begin, size_t width) {
  tarn_whole_tensor part;
  TARN__TRY(tarn_whole_tensor_sub(states, 0, TARN_WHOLE_END, begin,
                                  begin + width, &part));
  return tarn__embedding_add_part(e, name, &part);
}

static tarn_status add_all_columns(
    tarn_embedding *e, const tarn__embedding_optimizer_states *kinds,
    size_t width) {
  size_t at = 0;
  tarn_whole_tensor counts = e->states;
  TARN__TRY(check_rows(e));
  for (size_t i = 0; kinds->names[i] != NULL; i++, at += width)
    TARN__TRY(add_columns(e, &e->states, kinds->names[i], at, width));
  counts.dtype = TARN_DTYPE_I32;
  return kinds->counts ? add_columns(e, &counts, "step", at, 1) : TARN_OK;
}

// A table divided as |e|'s is: all that belongs to a row is together.
// Collective.
static tarn_status make_states(tarn_embedding *e, const size_t *partition,
                               size_t width) {
  const tarn_whole_tensor *table = tarn__embedding_table(e);
  const tarn_whole *whole = table->whole;
  const tarn_whole_table_options options = {
      .struct_size = sizeof options,
      .type = whole->type,
      .place = whole->place,
      .dtype = TARN_DTYPE_F32,
      .rows = table->rows,
      .width = width,
      .partition = whole->spread == TARN_WHOLE_COPIES ? NULL : partition,
      .name = "optimizer",
      .spread = whole->spread};
  return tarn_whole_table_create(whole->comm, &options, &e->states);
}

static tarn_status add_states(tarn_embedding *e, const size_t *partition) {
  const tarn_whole_tensor *table = tarn__embedding_table(e);
  tarn__embedding_optimizer_states kinds =
      tarn__optimizer_states_of(&e->optimizer.options);
  size_t width = tarn__optimizer_is_row_wise(&e->optimizer) ? 1 : table->width;
  size_t all = kinds.counts ? 1 : 0;
  for (size_t i = 0; kinds.names[i] != NULL; i++)
    all += width;
  if (all == 0) return TARN_OK;
  TARN__TRY(make_states(e, partition, all));
  return tarn_comm_agree(table->whole->comm, add_all_columns(e, &kinds, width));
}

// |initial| in all elements of the first state. Not collective.
static tarn_status fill_rows(const tarn__table_rows *rows, float initial) {
  enum { SOME = 64 << 10 };
  size_t most = rows->row < SOME ? SOME / rows->row : 1;
  size_t count = most * rows->row / sizeof(float);
  float *some = tarn__host_array(count, sizeof *some);
  if (some == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < count; i++)
    some[i] = initial;
  tarn_status status = TARN_OK;
  for (size_t at = 0; at < rows->count && status == TARN_OK; at += most)
    status =
        tarn__table_rows_put(rows, at * rows->row, some,
                             tarn__lesser(rows->count - at, most) * rows->row);
  tarn__host_free_array(some, count, sizeof *some);
  return status;
}

static tarn_status fill_state(const tarn_embedding *e) {
  float initial = e->optimizer.options.initial;
  tarn__table_rows rows;
  if (e->optimizer.options.optimizer != TARN_OPTIMIZER_ADAGRAD ||
      initial == 0) {
    return TARN_OK;
  }
  TARN__TRY(tarn__table_rows_begin(&e->parts[1].tensor, TARN_DTYPE_F32, &rows));
  tarn_status status = fill_rows(&rows, initial);
  tarn__table_rows_end(&rows);
  return status;
}

// --- from create to destroy ------------------------------------------------

// Destroys the states. Collective.
static tarn_status end(tarn_embedding *e) {
  tarn_status status = tarn_whole_destroy(e->states.whole);
  tarn__embedding_free(e);
  return status;
}

static void ended(tarn__whole_user *user) {
  tarn__embedding_free(tarn_list_entry(user, tarn_embedding, user));
}

// After a failure at all ranks; keeps the text of it.
static void give_up(tarn_embedding *e, tarn_status status) {
  tarn__failure failure = tarn__failure_of(status);
  (void)end(e);
  (void)tarn__failure_tell(&failure);
}

static tarn_status prepare(const tarn_whole_tensor *table,
                           const tarn_embedding_options *options,
                           tarn_embedding **out) {
  tarn_embedding_options known;
  *out = NULL;
  TARN__TRY(check_table(table));
  TARN__TRY(tarn__embedding_read_options(options, &known));
  tarn_embedding *e = tarn__host_alloc(sizeof *e);
  if (e == NULL) return TARN_E_NOMEM;
  *e = (tarn_embedding){.optimizer.options = known};
  *out = e;
  TARN__TRY(
      tarn_whole_tensor_rows(table, table->whole->rank, &e->first, &e->rows));
  tarn_status status = tarn__embedding_add_part(e, "table", table);
  tarn__tally_init(&e->tally, tarn__embedding_columns(e));
  return status;
}

// Collective.
static tarn_status build(tarn_embedding *e) {
  const tarn_whole *whole = tarn__embedding_table(e)->whole;
  size_t *partition = tarn__host_array(whole->ranks, sizeof *partition);
  tarn_status status = partition != NULL
                           ? count_rows(tarn__embedding_table(e), partition)
                           : TARN_E_NOMEM;
  status = tarn_comm_agree(whole->comm, status);
  if (status == TARN_OK) status = add_states(e, partition);
  tarn__host_free_array(partition, whole->ranks, sizeof *partition);
  TARN__TRY(status);
  status = fill_state(e);
  if (status == TARN_OK) status = tarn__update_begin(e);
  return tarn_comm_agree(whole->comm, status);
}

tarn_status tarn_embedding_create(const tarn_whole_tensor *table,
                                  const tarn_embedding_options *options,
                                  tarn_embedding **out_embedding) {
  tarn_embedding *made = NULL;
  if (table == NULL || out_embedding == NULL) {
    return tarn__fail(TARN_E_INVALID, "embedding: NULL");
  }
  *out_embedding = NULL;
  TARN__TRY(tarn__whole_check(table->whole));
  tarn_status status = prepare(table, options, &made);
  status =
      compare(table, made != NULL ? &made->optimizer.options : NULL, status);
  if (status == TARN_OK) {
    assert(made != NULL);
    status = build(made);
    if (status != TARN_OK) give_up(made, status);
  } else if (made != NULL) {
    tarn__embedding_free(made);
  }
  TARN__TRY(status);
  made->user.own = made->states.whole;
  made->user.ended = ended;
  tarn__whole_use(table->whole, &made->user);
  *out_embedding = made;
  return TARN_OK;
}

void tarn_embedding_give_up(void *embedding) {
  tarn_embedding *given = embedding;
  if (given != NULL) atomic_store(&given->user.given_up, true);
}

tarn_status tarn_embedding_destroy(tarn_embedding *embedding) {
  if (embedding == NULL) return TARN_OK;
  TARN__TRY(tarn__not_in_callback());
  if (tarn__embedding_table(embedding)->whole->pager != NULL) {
    return tarn__fail(TARN_E_STATE,
                      "embedding: it is of a table on a disk, and ends with it "
                      "(tarn_disk_close)");
  }
  tarn__whole_leave(&embedding->user);
  return end(embedding);
}

// --- learning rate ---------------------------------------------------------

tarn_status tarn_embedding_set_learning_rate(tarn_embedding *embedding,
                                             float learning_rate) {
  if (embedding == NULL) return tarn__fail(TARN_E_INVALID, "embedding: NULL");
  tarn_embedding_options options = embedding->optimizer.options;
  options.learning_rate = learning_rate;
  TARN__TRY(tarn__optimizer_check(&options));
  embedding->optimizer = (tarn__embedding_optimizer){.options = options};
  return TARN_OK;
}

// --- states and files ------------------------------------------------------

tarn_status tarn_embedding_tensors(const tarn_embedding *embedding,
                                   tarn_whole_named *out_tensors,
                                   size_t *out_count) {
  if (embedding == NULL || out_tensors == NULL || out_count == NULL) {
    return tarn__fail(TARN_E_INVALID, "embedding: NULL");
  }
  *out_count = embedding->part_count;
  for (size_t i = 0; i < embedding->part_count; i++)
    out_tensors[i] =
        (tarn_whole_named){embedding->names[i], embedding->parts[i].tensor};
  return TARN_OK;
}

tarn_status tarn_embedding_store(const tarn_embedding *embedding,
                                 const char *path,
                                 const tarn_file_options *options,
                                 tarn_file_report *out_report) {
  size_t count = 0;
  tarn_whole_named tensors[TARN_EMBEDDING_TENSORS];
  TARN__TRY(tarn_embedding_tensors(embedding, tensors, &count));
  return tarn_whole_store_named(tensors, count, path, options, out_report);
}

tarn_status tarn_embedding_load(tarn_embedding *embedding, const char *path,
                                const tarn_file_options *options,
                                tarn_file_report *out_report) {
  size_t count = 0;
  tarn_whole_named tensors[TARN_EMBEDDING_TENSORS];
  TARN__TRY(tarn_embedding_tensors(embedding, tensors, &count));
  return tarn_whole_load_named(tensors, count, path, options, out_report);
}
