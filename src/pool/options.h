// options.h - options of strategies: "name:key=value,key=value".
#ifndef TARN_POOL_OPTIONS_H_
#define TARN_POOL_OPTIONS_H_

#include "tarn/base.h"

enum {
  TARN__OPTIONS_TEXT = 255,
  TARN__OPTIONS = 8,
};

typedef struct tarn__pool_option {
  const char *key;
  const char *value;
  bool used;
} tarn__pool_option;

typedef struct tarn__pool_strategy_options {
  char text[TARN__OPTIONS_TEXT +
            1];  // the name, then keys and values, each with a NUL
  const char *strategy;
  tarn__pool_option list[TARN__OPTIONS];
  size_t count;
} tarn__pool_strategy_options;

// Splits |text|. The values are read later, by the strategy.
TARN_MUST_CHECK tarn_status
tarn__options_parse(tarn__pool_strategy_options *options, const char *text);

// TARN_E_INVALID: the strategy has not asked for an option that is there.
TARN_MUST_CHECK tarn_status
tarn__options_check_used(const tarn__pool_strategy_options *options);

// The value of |key|, which is a number of bytes, or |fallback| if it is not
// among the options. TARN_E_INVALID: not a number.
TARN_MUST_CHECK tarn_status
tarn__options_size(tarn__pool_strategy_options *options, const char *key,
                   size_t fallback, size_t *out_value);

// Digits and at most one of K, M, G.
TARN_MUST_CHECK bool tarn__parse_size(const char *text, size_t *out_value);

#endif  // TARN_POOL_OPTIONS_H_
