#include "loader.h"

#include "job/try.h"
#include "memory.h"
#include "nets/random.h"
#include "nodes.h"

// --- which rows ------------------------------------------------------------

static size_t training_rows(const loader *l) {
  return l->table.rows - HELD_OUT_BATCHES * l->batch;
}

// Each row of a batch is drawn by its position, whichever rank takes it.
static size_t drawn_row(const loader *l, size_t position) {
  net_random random = {.state = l->seed ^ UINT64_C(0x6c6f61646572)};
  random.state = net_random_bits(&random) + position;
  return net_random_bits(&random) % training_rows(l);
}

static void choose(const loader *l, row_set set, size_t number, int64_t *ids) {
  for (size_t i = 0; i < l->count; i++) {
    size_t position = number * l->batch + l->first + i;
    ids[i] = (int64_t)(set == TRAINING ? drawn_row(l, position)
                                       : training_rows(l) + position);
  }
}

// --- a batch ---------------------------------------------------------------

static batch *batch_of(loader *l, size_t number) {
  return &l->batches[number % LOADER_BATCHES];
}

// All that may fail at this rank alone.
static tarn_status prepare(loader *l, row_set set, size_t number, batch *b) {
  TRY(memory_take("row numbers", l->count * sizeof(int64_t), &b->ids));
  choose(l, set, number, b->ids.pointer);
  TRY(tarn_synced_begin(b->rows, 0, TARN_ALL, TARN_HOST, TARN_WRITE_DISCARD,
                        NULL, &b->target));
  b->wanted = (tarn_whole_rows){.struct_size = sizeof b->wanted,
                                .dense = b->target.address,
                                .indices = b->ids.address,
                                .index_dtype = TARN_DTYPE_I64,
                                .index_count = l->count};
  return TARN_OK;
}

// Ends what |prepare| has begun, also a part of it. Rows that did not come are
// no contents.
static tarn_status settle(batch *b, bool came) {
  tarn_status status = TARN_OK;
  if (b->target.buffer != NULL) {
    status = came ? tarn_synced_end(&b->target)
                  : tarn_synced_cancel(&b->target, NULL);
  }
  b->target = (tarn_access){0};
  return first_of(status, memory_give(&b->ids));
}

tarn_status loader_begin_batch(loader *l, row_set set, size_t number) {
  batch *b = batch_of(l, number);
  tarn_comm *comm = tarn_whole_comm(l->table.whole);
  TRY(tarn_comm_agree(comm, prepare(l, set, number, b)));
  return tarn_whole_gather_begin(&l->table, &b->wanted, &b->fetch);
}

tarn_status loader_end_batch(loader *l, size_t number) {
  batch *b = batch_of(l, number);
  tarn_status status = tarn_whole_gather_end(b->fetch);
  b->fetch = NULL;
  if (status != TARN_OK) return status;
  TRY(settle(b, true));
  if (l->way_home == NULL) return TARN_OK;
  return tarn_synced_prefetch(b->rows, 0, TARN_ALL, l->home, l->way_home, NULL);
}

tarn_synced *loader_rows(const loader *l, size_t number) {
  return l->batches[number % LOADER_BATCHES].rows;
}

size_t loader_batch_size(const loader *l) {
  return l->count * ROW * sizeof(float);
}

// --- the loader ------------------------------------------------------------

static tarn_status make_batches(loader *l) {
  tarn_synced_options options = {
      .struct_size = sizeof options, .name = "batch", .align = 64};
  if (l->way_home != NULL) options.device = l->home.device;
  TRY(tarn_pool_tag("batches", &options.tag));
  for (size_t i = 0; i < LOADER_BATCHES; i++)
    TRY(tarn_synced_create(loader_batch_size(l), &options,
                           &l->batches[i].rows));
  return TARN_OK;
}

tarn_status loader_init(loader *l, const tarn_whole_tensor *table, size_t rows,
                        share its, uint64_t seed, tarn_place home) {
  size_t slice = rows / SLICES;
  *l = (loader){.table = *table,
                .seed = seed,
                .batch = rows,
                .first = its.first * slice,
                .count = its.count * slice,
                .home = home};
  if (!tarn_place_equal(home, TARN_HOST))
    TRY(tarn_stream_create(home.device, &l->way_home));
  return make_batches(l);
}

// After a failure a batch may still be on its way.
static tarn_status end_batch(batch *b) {
  tarn_status status = TARN_OK;
  if (b->fetch != NULL) status = tarn_whole_gather_end(b->fetch);
  b->fetch = NULL;
  status = first_of(status, settle(b, false));
  status = first_of(status, tarn_synced_destroy(b->rows));
  b->rows = NULL;
  return status;
}

tarn_status loader_end(loader *l) {
  tarn_status status = TARN_OK;
  for (size_t i = 0; i < LOADER_BATCHES; i++)
    status = first_of(status, end_batch(&l->batches[i]));
  if (l->way_home != NULL)
    status = first_of(status, tarn_stream_destroy(l->way_home));
  l->way_home = NULL;
  return status;
}
