// Token by token decoding with GPT-2 small: 12 layers of width 768, 12 heads.
//
// A prompt fills the key and value caches of all layers; then each step feeds
// one token per sequence. As in eager frameworks, a cache grows by being copied
// into a new block that is one token longer.
#include "trace/workload.h"

enum {
  PROMPT = 64,
  STEPS = 48,
  LAYERS = 12,
  HEADS = 12,
  WIDTH = 768,
  INNER = 3072,
  WORDS = 50257,
};

typedef struct cache {
  tarn__trace_tape_tensor keys;
  tarn__trace_tape_tensor values;
} cache;

// |tokens| new ones per sequence, which then are |length| long.
typedef struct span {
  size_t batch;
  size_t tokens;
  size_t length;
} span;

static tarn__trace_tape_tensor attention(tarn__trace_tape *tape,
                                         tarn__trace_tape_tensor x,
                                         const span *at, cache *grown) {
  size_t cached = tarn__elements(at->batch, at->length, WIDTH, 1);
  size_t scores_count =
      tarn__elements(at->batch, HEADS, at->tokens, at->length);
  tarn__trace_tape_tensor qkv =
      tarn__layer_linear(tape, "attn.c_attn", x, WIDTH, 3 * (size_t)WIDTH);
  grown->keys = tarn__layer_binary(tape, TARN__LAYER_MAP, "attn.key_cache",
                                   grown->keys, qkv, cached);
  grown->values = tarn__layer_binary(tape, TARN__LAYER_MAP, "attn.value_cache",
                                     grown->values, qkv, cached);
  tarn__trace_tape_tensor scores = tarn__layer_binary(
      tape, TARN__LAYER_PRODUCT, "attn.scores", qkv, grown->keys, scores_count);
  tarn__trace_tape_tensor weights =
      tarn__layer_unary(tape, TARN__LAYER_SOFTMAX, "attn.softmax", scores);
  tarn__trace_tape_tensor context =
      tarn__layer_binary(tape, TARN__LAYER_PRODUCT, "attn.context", weights,
                         grown->values, x.count);
  context =
      tarn__layer_unary(tape, TARN__LAYER_MAP, "attn.join_heads", context);
  return tarn__layer_linear(tape, "attn.c_proj", context, WIDTH, WIDTH);
}

static tarn__trace_tape_tensor layer(tarn__trace_tape *tape,
                                     tarn__trace_tape_tensor x, const span *at,
                                     cache *grown) {
  tarn__trace_tape_tensor y =
      tarn__layer_norm(tape, "ln_1", x, x.count / WIDTH, WIDTH);
  y = attention(tape, y, at, grown);
  x = tarn__layer_binary(tape, TARN__LAYER_ADD, "add_1", x, y, x.count);
  y = tarn__layer_norm(tape, "ln_2", x, x.count / WIDTH, WIDTH);
  y = tarn__layer_linear(tape, "mlp.c_fc", y, WIDTH, INNER);
  y = tarn__layer_unary(tape, TARN__LAYER_GELU, "mlp.gelu", y);
  y = tarn__layer_linear(tape, "mlp.c_proj", y, INNER, WIDTH);
  return tarn__layer_binary(tape, TARN__LAYER_ADD, "add_2", x, y, x.count);
}

// One pass over the new tokens, up to the next words.
static tarn__trace_tape_tensor pass(tarn__trace_tape *tape,
                                    tarn__trace_tape_tensor words,
                                    const span *at, cache *caches) {
  size_t count = tarn__elements(at->batch, at->tokens, WIDTH, 1);
  tarn__tape_scope(tape, "%s", "");
  tarn__trace_tape_tensor x = tarn__layer_binary(
      tape, TARN__LAYER_MAP, "wte", words, (tarn__trace_tape_tensor){0}, count);
  for (size_t i = 0; i < LAYERS; i++) {
    tarn__tape_scope(tape, "h.%zu", i);
    x = layer(tape, x, at, &caches[i]);
  }
  tarn__tape_scope(tape, "%s", "");
  x = tarn__layer_norm(tape, "ln_f", x, x.count / WIDTH, WIDTH);
  tarn__trace_tape_tensor last =  // of each sequence, the newest token alone
      tarn__layer_binary(tape, TARN__LAYER_MAP, "last_token", x,
                         (tarn__trace_tape_tensor){0},
                         tarn__elements(at->batch, WIDTH, 1, 1));
  tarn__trace_tape_tensor logits =
      tarn__layer_linear(tape, "lm_head", last, WIDTH, WORDS);
  return tarn__layer_binary(tape, TARN__LAYER_MAP, "sample", logits,
                            (tarn__trace_tape_tensor){0}, at->batch);
}

tarn__trace_tape_tensor tarn__net_decode(tarn__trace_tape *tape, size_t batch) {
  cache caches[LAYERS] = {0};
  size_t count = tarn__elements(batch, PROMPT, 1, 1);
  span at = {.batch = batch, .tokens = PROMPT, .length = PROMPT};
  tarn__trace_tape_tensor words =
      tarn__tape_input(tape, "prompt", count, sizeof(int64_t));
  words = pass(tape, words, &at, caches);
  for (size_t step = 0; step < STEPS; step++) {
    at.tokens = 1;
    at.length++;
    words = pass(tape, words, &at, caches);
  }
  return words;
}
