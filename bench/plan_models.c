// A table of models, and an iteration of one: the buffers that live throughout,
// micro-batches, of which several overlap, and the optimizer.
#include "plan_models.h"

#include <stdlib.h>
#include <string.h>

#include "plan_layers.h"

enum {
  MOST_IN_FLIGHT = 4,
  MOST_LAYERS = 96,
};

typedef struct kind {
  const char *name;
  uint64_t seed;
  size_t layers;
  size_t batches;    // micro-batches of an iteration
  size_t in_flight;  // how many have begun and not ended, at most
  uint64_t hidden;
  uint64_t heads;
  uint64_t words;           // in the vocabulary
  uint64_t tokens;          // of a micro-batch, at most
  uint64_t shards;          // of the optimizer's state
  uint64_t experts;         // in every second layer; 0: none
  uint64_t one_checkpoint;  // in so many layers; 0: none
  uint64_t one_unfused;     // attention in so many layers; 0: none
} kind;

static const kind kinds[] = {
    {"transformer-2k", 1, 12, 2, 1, 768, 12, 32000, 2048, 4, 0, 4, 3},
    {"transformer-20k", 2, 32, 12, 2, 2560, 32, 50257, 4096, 64, 0, 4, 8},
    {"transformer-60k", 3, 48, 25, 2, 3072, 24, 50257, 3072, 64, 0, 5, 8},
    {"encoder-20k", 4, 24, 11, 1, 1024, 16, 30522, 4096, 1, 0, 0, 1},
    {"experts-20k", 5, 24, 6, 2, 2048, 16, 32000, 4096, 64, 16, 6, 6},
    {"transformer-200k", 6, 80, 46, 3, 4096, 32, 50257, 2048, 128, 0, 3, 8},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

typedef struct making {
  const kind *kind;
  program program;
  layer layers[MOST_LAYERS];
  batch batches[MOST_IN_FLIGHT];
  size_t table;           // the embedding
  size_t table_gradient;  // SIZE_MAX: none yet
  size_t table_state[3];
} making;

// --- what is there throughout ------------------------------------------------

static bool one_in(program *p, uint64_t many) {
  return many != 0 && program_below(p, many) == 0;
}

static void hold(making *m, uint64_t numbers, size_t *held) {
  program *p = &m->program;
  held[0] = program_make(p, numbers * 2);
  for (int i = 1; i < 4; i++) {
    held[i] = program_make(p, numbers * 4 / m->kind->shards);
  }
}

static void shape_layer(making *m, size_t index) {
  const kind *k = m->kind;
  program *p = &m->program;
  layer *l = &m->layers[index];
  *l = (layer){.hidden = k->hidden,
               .heads = k->heads,
               .inner = k->hidden * 4,
               .experts = index % 2 == 1 ? k->experts : 0,
               .fused = !one_in(p, k->one_unfused),
               .gated = index % 3 != 0,
               .checkpointed = one_in(p, k->one_checkpoint)};
  if (l->gated) l->inner = k->hidden * 8 / 3;
  uint64_t many = l->experts == 0 ? 1 : l->experts;
  l->weights[0] = k->hidden * k->hidden * 3;
  l->weights[1] = k->hidden * k->hidden;
  l->weights[2] = k->hidden * l->inner * (1 + l->gated) * many;
  l->weights[3] = k->hidden * l->inner;
  for (size_t i = 0; i < LAYER_WEIGHTS; i++) {
    hold(m, l->weights[i], l->held + 4 * i);
    l->gradients[i] = SIZE_MAX;
  }
  l->held[LAYER_HELD - 1] = program_make(p, k->hidden * 4 * 4);  // norms
}

static void begin(making *m) {
  size_t held[4];
  hold(m, m->kind->words * m->kind->hidden, held);
  m->table = held[0];
  memcpy(m->table_state, held + 1, sizeof m->table_state);
  m->table_gradient = SIZE_MAX;
  for (size_t i = 0; i < m->kind->layers; i++)
    shape_layer(m, i);
  program_op(&m->program);
}

// --- micro-batches -----------------------------------------------------------

// Sequences of lengths that vary, until there is no more room.
static void fill_batch(making *m, batch *b) {
  uint64_t most = m->kind->tokens;
  b->tokens = 0;
  b->sequence_count = 0;
  while (b->sequence_count < MOST_SEQUENCES) {
    uint64_t length = program_between(&m->program, most / 16, most / 2);
    if (b->tokens + length > most) break;
    b->sequences[b->sequence_count++] = length;
    b->tokens += length;
  }
}

static void forward(making *m, batch *b) {
  program *p = &m->program;
  fill_batch(m, b);
  size_t words = program_make(p, b->tokens * 8);
  program_push(p, &b->saved, words);
  program_op(p);
  size_t x = program_make(p, b->tokens * m->kind->hidden * 2);
  program_op(p);
  for (size_t i = 0; i < m->kind->layers; i++) {
    x = layer_forward(p, &m->layers[i], b, x);
  }
  program_push(p, &b->saved, x);
}

// The head with its loss: the widest of all, for an instant.
static size_t backward_head(making *m, batch *b) {
  program *p = &m->program;
  uint64_t all = b->tokens * m->kind->words;
  size_t x = program_pop(p, &b->saved);
  size_t logits = program_make(p, all * 2);
  program_product(p);
  size_t loss = program_make(p, b->tokens * 4);
  program_op(p);
  program_drop(p, loss);
  size_t softmax = program_turn(p, logits, all * 2);
  size_t gradient = program_make(p, b->tokens * m->kind->hidden * 2);
  program_product(p);
  program_drop(p, softmax);
  program_drop(p, x);
  weight_gradient(p, m->kind->words * m->kind->hidden, &m->table_gradient);
  return gradient;
}

static void backward(making *m, batch *b) {
  program *p = &m->program;
  size_t gradient = backward_head(m, b);
  for (size_t i = m->kind->layers; i-- > 0;) {
    gradient = layer_backward(p, &m->layers[i], b, gradient);
  }
  program_drop(p, gradient);
  program_drop(p, program_pop(p, &b->saved));
  program_op(p);
}

static void run_batches(making *m) {
  size_t ended = 0;
  for (size_t i = 0; i < m->kind->batches; i++) {
    if (i - ended == m->kind->in_flight) {
      backward(m, &m->batches[ended++ % MOST_IN_FLIGHT]);
    }
    forward(m, &m->batches[i % MOST_IN_FLIGHT]);
  }
  while (ended < m->kind->batches) {
    backward(m, &m->batches[ended++ % MOST_IN_FLIGHT]);
  }
}

// --- the optimizer -----------------------------------------------------------

static void update(making *m, uint64_t numbers, size_t gradient) {
  program *p = &m->program;
  uint64_t size = numbers * 4 / m->kind->shards;
  size_t shard = program_make(p, size);
  program_drop(p, gradient);
  program_op(p);
  size_t squares = program_make(p, size);
  program_op(p);
  size_t change = program_turn(p, squares, size);
  program_drop(p, change);
  program_drop(p, shard);
  program_op(p);
}

static void optimise(making *m) {
  for (size_t i = 0; i < m->kind->layers; i++) {
    for (int j = 0; j < LAYER_WEIGHTS; j++) {
      update(m, m->layers[i].weights[j], m->layers[i].gradients[j]);
    }
  }
  update(m, m->kind->words * m->kind->hidden, m->table_gradient);
}

static void end(making *m) {
  program *p = &m->program;
  for (size_t i = 0; i < m->kind->layers; i++) {
    for (int j = 0; j < LAYER_HELD; j++) {
      program_drop(p, m->layers[i].held[j]);
    }
  }
  program_drop(p, m->table);
  for (int i = 0; i < 3; i++)
    program_drop(p, m->table_state[i]);
}

// --- the whole ---------------------------------------------------------------

const char *plan_models_name(size_t index) {
  return index < KINDS ? kinds[index].name : NULL;
}

static tarn_status make(const kind *k, plan_model *out_model) {
  making *m = calloc(1, sizeof *m);
  if (m == NULL) return TARN_E_NOMEM;
  m->kind = k;
  m->program.random = k->seed;
  begin(m);
  run_batches(m);
  optimise(m);
  end(m);
  for (int i = 0; i < MOST_IN_FLIGHT; i++)
    free(m->batches[i].saved.items);
  bool failed = m->program.failed;
  *out_model = (plan_model){m->program.buffers, m->program.count};
  free(m);
  if (failed) plan_model_free(out_model);
  return failed ? TARN_E_NOMEM : TARN_OK;
}

tarn_status plan_model_make(const char *name, plan_model *out_model) {
  *out_model = (plan_model){0};
  for (size_t i = 0; i < KINDS; i++) {
    if (strcmp(name, kinds[i].name) == 0) return make(&kinds[i], out_model);
  }
  return TARN_E_INVALID;
}

void plan_model_free(plan_model *model) {
  free(model->buffers);
  *model = (plan_model){0};
}
