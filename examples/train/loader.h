// loader.h - batches of rows, gathered ahead of their use.
//
// There are two batches, used in turn: while one is computed with, the other is
// on its way.
//
//   step      0            1            2
//   batch 0   computed     gathered 2   computed
//   batch 1   gathered 1   computed     gathered 3
//
// A batch is a synced buffer. Its rows are gathered into it at the host, and
// from there pushed to the device, behind each other on a stream of the
// loader's own, while the host goes on.
#ifndef TARN_EXAMPLES_TRAIN_LOADER_H_
#define TARN_EXAMPLES_TRAIN_LOADER_H_

#include <tarn/tarn.h>

#include "share.h"

enum { LOADER_BATCHES = 2, HELD_OUT_BATCHES = 8 };

// Which rows: the last HELD_OUT_BATCHES batches of the table, in order, or any
// others, drawn by the seed.
typedef enum row_set { TRAINING, HELD_OUT } row_set;

typedef struct batch {
  tarn_synced *rows;
  tarn_block ids;  // the numbers of its rows; only while they are gathered
  tarn_access target;
  tarn_whole_rows wanted;
  tarn_whole_fetch *fetch;
} batch;

typedef struct loader {
  tarn_whole_tensor table;
  uint64_t seed;
  size_t batch;  // rows of all ranks
  size_t first;  // position in it of this rank's rows
  size_t count;  // of them
  tarn_place home;
  tarn_stream *way_home;  // NULL: home is the host
  batch batches[LOADER_BATCHES];
} loader;

// Gathers |rows| rows at a time from |table|, of which this rank has |its|
// slices, and pushes them to |home|.
//
// Lifetime: until loader_end, also if it fails.
TARN_MUST_CHECK tarn_status loader_init(loader *l,
                                        const tarn_whole_tensor *table,
                                        size_t rows, share its, uint64_t seed,
                                        tarn_place home);
tarn_status loader_end(loader *l);

// Begins to gather batch |number| of |set|; collective. The batch before it may
// be used meanwhile.
TARN_MUST_CHECK tarn_status loader_begin_batch(loader *l, row_set set,
                                               size_t number);

// Waits until its rows are there; collective. They stay until batch
// |number| + LOADER_BATCHES begins.
TARN_MUST_CHECK tarn_status loader_end_batch(loader *l, size_t number);

// The rows: |l->count| of ROW numbers.
tarn_synced *loader_rows(const loader *l, size_t number);

// Bytes that this rank gathers for a batch.
size_t loader_batch_size(const loader *l);

#endif  // TARN_EXAMPLES_TRAIN_LOADER_H_
