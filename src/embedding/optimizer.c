// Loops over the elements of a row. Each operation is rounded by itself: the
// file is compiled without contraction.
#include "embedding/optimizer.h"

#include <math.h>

#include "base/status.h"

// --- options ---------------------------------------------------------------

const char *tarn_optimizer_name(tarn_optimizer optimizer) {
  switch (optimizer) {
    case TARN_OPTIMIZER_SGD:
      return "sgd";
    case TARN_OPTIMIZER_ADAM:
      return "adam";
    case TARN_OPTIMIZER_RMSPROP:
      return "rmsprop";
    case TARN_OPTIMIZER_ADAGRAD:
      return "adagrad";
  }
  return NULL;
}

tarn_status tarn_embedding_defaults(tarn_optimizer optimizer,
                                    tarn_embedding_options *out_options) {
  if (out_options == NULL) return tarn__fail(TARN_E_INVALID, "embedding: NULL");
  *out_options = (tarn_embedding_options){.struct_size = sizeof *out_options,
                                          .optimizer = optimizer,
                                          .learning_rate = .01f,
                                          .epsilon = 1e-8f,
                                          .beta1 = .9f,
                                          .beta2 = .999f,
                                          .alpha = .99f};
  if (optimizer == TARN_OPTIMIZER_ADAM) out_options->learning_rate = .001f;
  if (optimizer == TARN_OPTIMIZER_ADAGRAD) out_options->epsilon = 1e-10f;
  if (tarn_optimizer_name(optimizer) != NULL) return TARN_OK;
  *out_options = (tarn_embedding_options){.struct_size = 0};
  return tarn__fail(TARN_E_INVALID, "embedding: %d is no optimizer",
                    (int)optimizer);
}

typedef struct option {
  const char *name;
  float value;
  bool below_one;
} option;

static tarn_status check_number(const option *o) {
  bool good = isfinite(o->value) && o->value >= 0;
  if (good && (!o->below_one || o->value < 1)) return TARN_OK;
  return tarn__fail(
      TARN_E_INVALID, "embedding: %s is %g, but should be %s", o->name,
      (double)o->value,
      o->below_one ? "from 0 to below 1" : "finite and not negative");
}

static tarn_status check_flags(const tarn_embedding_options *options) {
  uint32_t flags = options->flags;
  uint32_t known = TARN_EMBEDDING_DECOUPLED | TARN_EMBEDDING_ROW_WISE |
                   TARN_EMBEDDING_STOCHASTIC;
  bool adam = options->optimizer == TARN_OPTIMIZER_ADAM;
  bool adagrad = options->optimizer == TARN_OPTIMIZER_ADAGRAD;
  if ((flags & ~known) != 0) {
    return tarn__fail(TARN_E_INVALID, "embedding: unknown flags 0x%x",
                      (unsigned)(flags & ~known));
  }
  if ((flags & TARN_EMBEDDING_DECOUPLED) != 0 && !adam) {
    return tarn__fail(TARN_E_INVALID, "embedding: DECOUPLED is of adam, not %s",
                      tarn_optimizer_name(options->optimizer));
  }
  if ((flags & TARN_EMBEDDING_ROW_WISE) != 0 && !adagrad) {
    return tarn__fail(TARN_E_INVALID,
                      "embedding: ROW_WISE is of adagrad, not %s",
                      tarn_optimizer_name(options->optimizer));
  }
  return TARN_OK;
}

tarn_status tarn__optimizer_check(const tarn_embedding_options *options) {
  const option numbers[] = {{"learning_rate", options->learning_rate, false},
                            {"weight_decay", options->weight_decay, false},
                            {"epsilon", options->epsilon, false},
                            {"momentum", options->momentum, true},
                            {"beta1", options->beta1, true},
                            {"beta2", options->beta2, true},
                            {"alpha", options->alpha, true},
                            {"initial", options->initial, false}};
  if (tarn_optimizer_name(options->optimizer) == NULL) {
    return tarn__fail(TARN_E_INVALID, "embedding: %d is no optimizer",
                      (int)options->optimizer);
  }
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
    TARN__TRY(check_number(&numbers[i]));
  return check_flags(options);
}

tarn__embedding_optimizer_states tarn__optimizer_states_of(
    const tarn_embedding_options *options) {
  switch (options->optimizer) {
    case TARN_OPTIMIZER_SGD:
      if (options->momentum == 0) break;
      return (tarn__embedding_optimizer_states){{"momentum_buffer"}, false};
    case TARN_OPTIMIZER_ADAM:
      return (tarn__embedding_optimizer_states){{"exp_avg", "exp_avg_sq"},
                                                true};
    case TARN_OPTIMIZER_RMSPROP:
      return (tarn__embedding_optimizer_states){{"square_avg"}, false};
    case TARN_OPTIMIZER_ADAGRAD:
      return (tarn__embedding_optimizer_states){{"sum"}, false};
  }
  return (tarn__embedding_optimizer_states){{NULL}, false};
}

// --- the step of ADAM ------------------------------------------------------

// By squaring: the same bits everywhere.
static double power(double base, uint32_t exponent) {
  double result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result *= base;
    base *= base;
  }
  return result;
}

static float step_size(tarn__embedding_optimizer *o, uint32_t t) {
  const tarn_embedding_options *p = &o->options;
  tarn__embedding_optimizer_step *known = &o->steps[t % TARN__STEPS_KNOWN];
  if (known->t == t) return known->size;
  double second = sqrt(1 - power((double)p->beta2, t));
  double size =
      (double)p->learning_rate * second / (1 - power((double)p->beta1, t));
  *known = (tarn__embedding_optimizer_step){t, (float)size};
  return known->size;
}

// --- loops -----------------------------------------------------------------

// Elements of a row: p, and g as it came.
typedef struct span {
  float *restrict p;
  const float *restrict g;
  size_t count;
} span;

// g with the decay, which does not change within a loop.
static inline float decayed(float g, float p, float decay) {
  return decay != 0 ? g + decay * p : g;
}

static void sgd(span s, float rate, float decay) {
  for (size_t i = 0; i < s.count; i++)
    s.p[i] -= rate * decayed(s.g[i], s.p[i], decay);
}

static void sgd_with_momentum(span s, float *restrict b, float momentum,
                              float rate, float decay) {
  for (size_t i = 0; i < s.count; i++) {
    b[i] = momentum * b[i] + decayed(s.g[i], s.p[i], decay);
    s.p[i] -= rate * b[i];
  }
}

// |keep|: of p before anything else.
static void adam(span s, float *restrict m, float *restrict v,
                 const tarn_embedding_options *o, float step, float keep,
                 float decay) {
  const float beta1 = o->beta1;
  const float beta2 = o->beta2;
  const float epsilon = o->epsilon;
  const float rest1 = 1 - beta1;
  const float rest2 = 1 - beta2;
  for (size_t i = 0; i < s.count; i++) {
    float g = decayed(s.g[i], s.p[i], decay);
    m[i] = beta1 * m[i] + rest1 * g;
    v[i] = beta2 * v[i] + rest2 * g * g;
    s.p[i] = s.p[i] * keep - step * m[i] / (sqrtf(v[i]) + epsilon);
  }
}

static void rmsprop(span s, float *restrict v, const tarn_embedding_options *o,
                    float decay) {
  const float alpha = o->alpha;
  const float rate = o->learning_rate;
  const float epsilon = o->epsilon;
  const float rest = 1 - alpha;
  for (size_t i = 0; i < s.count; i++) {
    float g = decayed(s.g[i], s.p[i], decay);
    v[i] = alpha * v[i] + rest * g * g;
    s.p[i] -= rate * g / (sqrtf(v[i]) + epsilon);
  }
}

static void adagrad(span s, float *restrict sum,
                    const tarn_embedding_options *o, float decay) {
  const float rate = o->learning_rate;
  const float epsilon = o->epsilon;
  for (size_t i = 0; i < s.count; i++) {
    float g = decayed(s.g[i], s.p[i], decay);
    sum[i] += g * g;
    s.p[i] -= rate * g / (sqrtf(sum[i]) + epsilon);
  }
}

float tarn__optimizer_square(const tarn__embedding_optimizer *o,
                             const tarn__embedding_row *row) {
  const float decay = o->options.weight_decay;
  float sums[8] = {0};
  for (size_t i = 0; i < row->width; i++) {
    float g = decayed(row->gradient[i], row->values[i], decay);
    sums[i % 8] += g * g;
  }
  float all = 0;
  for (size_t k = 0; k < 8; k++)
    all += sums[k];
  return all;
}

// --- a row -----------------------------------------------------------------

static void update_adam(tarn__embedding_optimizer *o,
                        const tarn__embedding_row *row, span s) {
  const tarn_embedding_options *p = &o->options;
  bool decoupled = (p->flags & TARN_EMBEDDING_DECOUPLED) != 0;
  uint32_t t = (uint32_t)*row->count + 1;
  float keep = decoupled ? 1 - p->learning_rate * p->weight_decay : 1;
  adam(s, row->states[0], row->states[1], p, step_size(o, t), keep,
       decoupled ? 0 : p->weight_decay);
  if (row->ends) *row->count = (int32_t)t;
}

static void update_adagrad(const tarn_embedding_options *o,
                           const tarn__embedding_row *row, span s) {
  float *sum = row->states[0];
  if ((o->flags & TARN_EMBEDDING_ROW_WISE) == 0) {
    adagrad(s, sum, o, o->weight_decay);
    return;
  }
  if (row->begins) *sum += row->square / (float)row->whole_width;
  sgd(s, o->learning_rate / (sqrtf(*sum) + o->epsilon), o->weight_decay);
}

void tarn__optimizer_update(tarn__embedding_optimizer *o,
                            const tarn__embedding_row *row) {
  const tarn_embedding_options *p = &o->options;
  span s = {row->values, row->gradient, row->width};
  switch (p->optimizer) {
    case TARN_OPTIMIZER_SGD:
      if (p->momentum == 0) {
        sgd(s, p->learning_rate, p->weight_decay);
      } else {
        sgd_with_momentum(s, row->states[0], p->momentum, p->learning_rate,
                          p->weight_decay);
      }
      break;
    case TARN_OPTIMIZER_ADAM:
      update_adam(o, row, s);
      break;
    case TARN_OPTIMIZER_RMSPROP:
      rmsprop(s, row->states[0], p, p->weight_decay);
      break;
    case TARN_OPTIMIZER_ADAGRAD:
      update_adagrad(p, row, s);
      break;
  }
}
