// Input of a training: images are read, decoded, and put together to batches by
// threads of their own, ahead of the one that trains.
//
//   reader ─ files ─► four decoders ─ samples ─► batcher ─ batches ─► trainer
//
// Nearly every block is freed by another thread than the one that allocated it:
// a file by a decoder, a sample by the batcher, a batch by the trainer. Between
// them are queues: 8 files, 32 samples, and 4 batches, the prefetch depth. Who
// finds the next queue full, or its own empty, waits.
//
// Files are log-normal around 100 KiB, from 8 KiB to 1 MiB. Images are 300 to
// 500 pixels high and 300 to 640 wide, evenly. A sample is 224 pixels high and
// 224 to 336 wide, in floats. A batch has 16 samples, each padded to the width
// of the widest, so that batches differ a little; its labels are 1 to 40 boxes
// a sample. The trainer's steps take about as long as the input of one.
//
// Threads: 0 trains, 1 makes batches, 2 reads, 3 to 6 decode. The one who takes
// a turn is drawn.
#include "base/status.h"
#include "trace/chance.h"
#include "trace/workload.h"

enum {
  BATCHES = 200,
  BATCH = 16,
  DECODERS = 4,
  FILES_AHEAD = 8,
  SAMPLES_AHEAD = 2 * BATCH,
  DEPTH = 4,
  STEP_TURNS = 20,  // that a training step takes, about
  CHANNELS = 3,
  SIDE = 224,
  WIDEST = 336,
  HEIGHT_LEAST = 300,
  HEIGHT_MOST = 500,
  WIDTH_LEAST = 300,
  WIDTH_MOST = 640,
  BOXES_MOST = 40,
  BOX = 5,  // numbers: a place, a size, a class
  SINGLE = 4,
};

#define NONE UINT32_MAX  // no block

static const tarn__trace_lengths files = {
    .median = 100 << 10, .least = 8 << 10, .most = 1 << 20};

// What blocks are for, each made by one kind of thread: frames of stacks.
typedef enum tensor {
  FILE_BYTES,
  PIXELS,
  SAMPLE,
  IMAGES,
  LABELS,
  TENSORS
} tensor;

static const char *const names[TENSORS][2] = {{"file", "reader"},
                                              {"pixels", "decoder"},
                                              {"sample", "decoder"},
                                              {"images", "batcher"},
                                              {"labels", "batcher"}};

typedef enum thread { TRAINER, BATCHER, READER, DECODER } thread;

typedef struct item {
  uint32_t block;
  uint32_t labels;  // block, of a batch
  size_t width;     // of a sample
} item;

// First in, first out; as long as the longest.
typedef struct queue {
  item items[SAMPLES_AHEAD];
  size_t first;
  size_t count;
} queue;

typedef struct decoder {
  uint32_t file;  // NONE: it waits for one
  uint32_t pixels;
} decoder;

typedef struct loader {
  tarn__trace_history *history;
  tarn__trace_chance chance;
  uint32_t stacks[TENSORS];
  size_t read;     // files
  size_t trained;  // batches
  queue files;
  queue samples;
  queue batches;
  decoder decoders[DECODERS];
  item present;  // the trainer's batch; block NONE: none
} loader;

// --- queues ----------------------------------------------------------------

static void put(queue *q, item what) {
  q->items[(q->first + q->count++) % SAMPLES_AHEAD] = what;
}

static item get(queue *q) {
  item what = q->items[q->first];
  q->first = (q->first + 1) % SAMPLES_AHEAD;
  q->count--;
  return what;
}

// --- blocks ----------------------------------------------------------------

static tarn_status name_stacks(loader *l, const char *workload) {
  tarn__trace_stacks *stacks = &l->history->stacks;
  for (size_t i = 0; i < TENSORS; i++) {
    uint32_t frames[2] = {0};
    for (size_t k = 0; k < 2; k++) {
      TARN__TRY(
          tarn__stacks_frame_of(stacks, workload, names[i][k], 0, &frames[k]));
    }
    TARN__TRY(tarn__stacks_stack(stacks, frames, 2, &l->stacks[i]));
  }
  return TARN_OK;
}

static tarn_status take(loader *l, tensor what, size_t size,
                        uint32_t *out_block) {
  return tarn__history_birth(l->history, size, l->stacks[what], out_block);
}

static tarn_status give(loader *l, uint32_t block) {
  return tarn__history_death(l->history, block);
}

static size_t between(loader *l, size_t least, size_t most) {
  return least + tarn__chance_below(&l->chance, most - least + 1);
}

// --- threads ---------------------------------------------------------------

static tarn_status read_file(loader *l) {
  item file = {0};
  if (l->read == (size_t)BATCHES * BATCH) return TARN_OK;
  if (l->files.count == FILES_AHEAD) return TARN_OK;
  size_t size = tarn__chance_length(&l->chance, files);
  TARN__TRY(take(l, FILE_BYTES, size, &file.block));
  put(&l->files, file);
  l->read++;
  return TARN_OK;
}

static tarn_status begin_decoding(loader *l, decoder *d) {
  if (l->files.count == 0) return TARN_OK;
  size_t height = between(l, HEIGHT_LEAST, HEIGHT_MOST);
  size_t width = between(l, WIDTH_LEAST, WIDTH_MOST);
  d->file = get(&l->files).block;
  return take(l, PIXELS, height * width * CHANNELS, &d->pixels);
}

static size_t image_size(size_t width) {
  return width * CHANNELS * SIDE * SINGLE;
}

static tarn_status end_decoding(loader *l, decoder *d) {
  item sample = {.width = 0};
  if (l->samples.count == SAMPLES_AHEAD) return TARN_OK;
  TARN__TRY(give(l, d->file));
  d->file = NONE;
  sample.width = between(l, SIDE, WIDEST);
  TARN__TRY(take(l, SAMPLE, image_size(sample.width), &sample.block));
  put(&l->samples, sample);
  return give(l, d->pixels);
}

static tarn_status decode(loader *l, decoder *d) {
  return d->file == NONE ? begin_decoding(l, d) : end_decoding(l, d);
}

static size_t widest_of_batch(const queue *samples) {
  size_t widest = 0;
  for (size_t i = 0; i < BATCH; i++) {
    size_t width = samples->items[(samples->first + i) % SAMPLES_AHEAD].width;
    if (width > widest) widest = width;
  }
  return widest;
}

static tarn_status make_batch(loader *l) {
  item batch = {0};
  if (l->samples.count < BATCH || l->batches.count == DEPTH) return TARN_OK;
  size_t size = BATCH * image_size(widest_of_batch(&l->samples));
  size_t boxes = BATCH * between(l, 1, BOXES_MOST);
  TARN__TRY(take(l, IMAGES, size, &batch.block));
  TARN__TRY(take(l, LABELS, boxes * BOX * SINGLE, &batch.labels));
  for (size_t i = 0; i < BATCH; i++)
    TARN__TRY(give(l, get(&l->samples).block));
  put(&l->batches, batch);
  return TARN_OK;
}

static tarn_status drop_batch(loader *l) {
  item done = l->present;
  l->present.block = NONE;
  l->trained++;
  TARN__TRY(give(l, done.block));
  return give(l, done.labels);
}

static tarn_status train(loader *l) {
  if (l->present.block != NONE) {
    if (!tarn__chance_is(&l->chance, 1, STEP_TURNS)) return TARN_OK;
    TARN__TRY(drop_batch(l));
  }
  if (l->batches.count > 0) l->present = get(&l->batches);
  return TARN_OK;
}

// --- the whole -------------------------------------------------------------

static tarn_status turn(loader *l) {
  size_t whose = tarn__chance_below(&l->chance, DECODER + DECODERS);
  tarn__history_thread(l->history, (uint32_t)whose);
  switch (whose) {
    case TRAINER:
      return train(l);
    case BATCHER:
      return make_batch(l);
    case READER:
      return read_file(l);
    default:
      return decode(l, &l->decoders[whose - DECODER]);
  }
}

tarn_status tarn__dataloader_history(tarn__trace_history *history,
                                     const char *workload, uint64_t seed) {
  loader l = {.history = history, .chance = {seed}, .present = {.block = NONE}};
  for (size_t i = 0; i < DECODERS; i++)
    l.decoders[i].file = NONE;
  tarn_status status = name_stacks(&l, workload);
  while (status == TARN_OK && l.trained < BATCHES)
    status = turn(&l);
  return status;
}
