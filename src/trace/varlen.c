// Training on texts of different lengths: two encoder layers of BERT-base, a
// batch of eight texts a step.
//
// Lengths are log-normal around 64 tokens, from 8 to 512. A batch is padded to
// the longest of its texts, as the collators of frameworks do, and to nothing
// rounder: of 56 steps, 49 have a length that no other has, and 7 the longest.
// Activations grow with the length, attention's with its square, and gradients
// of parameters not at all.
#include "base/status.h"
#include "trace/chance.h"
#include "trace/workload.h"

enum { STEPS = 56, BATCH = 8, LAYERS = 2 };

static const tarn__trace_lengths text = {.median = 64, .least = 8, .most = 512};

static size_t longest_of_batch(tarn__trace_chance *chance) {
  size_t longest = 0;
  for (size_t i = 0; i < BATCH; i++) {
    size_t length = tarn__chance_length(chance, text);
    if (length > longest) longest = length;
  }
  return longest;
}

static tarn_status step(tarn__trace_history *history, const char *workload,
                        size_t length) {
  tarn__trace_tape tape;
  tarn__tape_init(&tape, history, workload, true);
  tarn__trace_tape_tensor result = tarn__net_bert(&tape, BATCH, length, LAYERS);
  tarn_status status = tarn__tape_run(&tape, result);
  tarn__tape_deinit(&tape);
  return status;
}

tarn_status tarn__varlen_history(tarn__trace_history *history,
                                 const char *workload, uint64_t seed) {
  tarn__trace_chance chance = {seed};
  for (size_t i = 0; i < STEPS; i++)
    TARN__TRY(step(history, workload, longest_of_batch(&chance)));
  return TARN_OK;
}
