// A strategy for Tarn's pools: sizes are rounded up to powers of two, and free
// chunks of each wait in a list of their own.
//
// Built as a shared object, which `tarn replay --strategy FILE` and
// tarn_pool_load() load, and into the program own_strategy. It uses the header
// only, so it links nothing. docs/strategies.md tells what each part is for.
//
//   power_pool:least=BYTES   the smallest chunk (256)
#include <tarn/strategy.h>

enum { ORDERS = 48 };

typedef struct power_pool {
  unsigned least;          // the smallest chunk has 2^least bytes
  tarn_list free[ORDERS];  // free chunks of 2^n bytes
} power_pool;

static tarn_chunk *chunk_of(const tarn_list *node) {
  return tarn_list_entry(node, tarn_chunk, node);
}

static unsigned order_of(const power_pool *self, size_t size) {
  unsigned order = self->least;
  while (order < ORDERS && ((size_t)1 << order) < size)
    order++;
  return order;
}

static tarn_status init(void *state, const tarn_source *source,
                        const tarn_strategy_options *options) {
  power_pool *self = state;
  size_t least = 0;
  tarn_status status = options->size(options, "least", 256, &least);
  if (status != TARN_OK) return status;
  for (unsigned i = 0; i < ORDERS; i++)
    tarn_list_init(&self->free[i]);
  self->least = order_of(self, least);
  if (tarn_is_power_of_two(least) && self->least < ORDERS) return TARN_OK;
  return source->refuse(source, TARN_E_INVALID, "least is no power of two");
}

// How good a free chunk is for a request: 3 its own stream's, 2 no stream's,
// 1 another's, which it would have to wait for, 0 not at all.
static int rank_of(const tarn_chunk *chunk, const tarn_request *request) {
  if ((chunk->address & (request->align - 1)) != 0) return 0;
  if (chunk->stream == request->stream) return 3;
  return chunk->stream == 0 ? 2 : 1;
}

static tarn_chunk *find(const tarn_list *list, const tarn_request *request) {
  tarn_chunk *best = NULL;
  int rank = 0;
  const tarn_list *node = NULL;
  tarn_list_for_each (node, list) {
    int r = rank_of(chunk_of(node), request);
    if (r <= rank) continue;
    best = chunk_of(node);
    rank = r;
    if (rank == 3) break;
  }
  return best;
}

static tarn_status take(void *state, const tarn_source *source,
                        const tarn_request *request, tarn_suballocation *out) {
  power_pool *self = state;
  unsigned order = order_of(self, request->size);
  if (order >= ORDERS) {
    return source->refuse(source, TARN_FULL, "larger than any chunk");
  }
  tarn_chunk *chunk = find(&self->free[order], request);
  if (chunk != NULL) {
    tarn_list_del(&chunk->node);
  } else {
    // The lock is let go in here: nothing of |self| is half done now.
    tarn_status status =
        source->grow(source, (size_t)1 << order, request->align, &chunk);
    if (status != TARN_OK) return status;
  }
  *out =
      (tarn_suballocation){chunk->address, chunk->size, chunk->stream, chunk};
  return TARN_OK;
}

static tarn_status give(void *state, const tarn_source *source,
                        const tarn_suballocation *memory) {
  power_pool *self = state;
  tarn_chunk *chunk = memory->own;
  (void)source;
  chunk->stream = memory->stream;
  tarn_list_add(&self->free[order_of(self, chunk->size)], &chunk->node);
  return TARN_OK;
}

static tarn_status trim(void *state, const tarn_source *source) {
  power_pool *self = state;
  tarn_status first = TARN_OK;
  for (unsigned i = 0; i < ORDERS; i++) {
    while (!tarn_list_empty(&self->free[i]) && !source->enough(source)) {
      tarn_chunk *chunk = chunk_of(self->free[i].next);
      tarn_list_del(&chunk->node);
      tarn_status status = source->shrink(source, chunk);
      if (first == TARN_OK) first = status;
    }
  }
  return first;
}

static tarn_status check(void *state, const tarn_source *source) {
  power_pool *self = state;
  for (unsigned i = 0; i < ORDERS; i++) {
    const tarn_list *node = NULL;
    tarn_list_for_each (node, &self->free[i]) {
      if (chunk_of(node)->size == (size_t)1 << i) continue;
      return source->refuse(source, TARN_E_CORRUPT, "a chunk in a wrong list");
    }
  }
  return TARN_OK;
}

static const tarn_strategy power = {
    .struct_size = sizeof power,
    .name = "power_pool",
    .size = sizeof(power_pool),
    .init = init,
    .take = take,
    .give = give,
    .trim = trim,
    .check = check,
};

const tarn_strategy *TarnPoolStrategy(void) {
  return &power;
}
