// Options of strategies: "name:key=value,key=value".
#include "pool/options.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"

static tarn_status add_option(tarn__pool_strategy_options *options,
                              char *text) {
  char *equals = strchr(text, '=');
  if (equals == NULL || equals == text) {
    return tarn__fail(TARN_E_INVALID, "%s: '%s' is not key=value",
                      options->strategy, text);
  }
  if (options->count == TARN__OPTIONS) {
    return tarn__fail(TARN_E_INVALID, "%s: more than %d options",
                      options->strategy, TARN__OPTIONS);
  }
  *equals = '\0';
  for (size_t i = 0; i < options->count; i++) {
    if (strcmp(options->list[i].key, text) != 0) continue;
    return tarn__fail(TARN_E_INVALID, "%s: '%s' is given twice",
                      options->strategy, text);
  }
  options->list[options->count++] =
      (tarn__pool_option){.key = text, .value = equals + 1};
  return TARN_OK;
}

tarn_status tarn__options_parse(tarn__pool_strategy_options *options,
                                const char *text) {
  *options = (tarn__pool_strategy_options){0};
  if (strlen(text) > TARN__OPTIONS_TEXT) {
    return tarn__fail(TARN_E_INVALID, "pool: a name over %d bytes",
                      TARN__OPTIONS_TEXT);
  }
  memcpy(options->text, text, strlen(text) + 1);
  options->strategy = options->text;
  char *colon = strchr(options->text, ':');
  if (colon == NULL) return TARN_OK;
  *colon = '\0';
  char *rest = colon + 1;
  for (char *part; (part = strsep(&rest, ",")) != NULL;) {
    tarn_status status = add_option(options, part);
    if (status != TARN_OK) return status;
  }
  return TARN_OK;
}

static size_t unit_of(const char *suffix) {
  if (strcmp(suffix, "") == 0) return 1;
  if (strcmp(suffix, "K") == 0) return (size_t)1 << 10;
  if (strcmp(suffix, "M") == 0) return (size_t)1 << 20;
  if (strcmp(suffix, "G") == 0) return (size_t)1 << 30;
  return 0;
}

bool tarn__parse_size(const char *text, size_t *out_value) {
  size_t digits = strspn(text, "0123456789");
  size_t unit = unit_of(text + digits);
  if (digits == 0 || digits > 19 || unit == 0) return false;
  return tarn_size_mul(strtoull(text, NULL, 10), unit, out_value);
}

tarn_status tarn__options_size(tarn__pool_strategy_options *options,
                               const char *key, size_t fallback,
                               size_t *out_value) {
  *out_value = fallback;
  for (size_t i = 0; i < options->count; i++) {
    tarn__pool_option *o = &options->list[i];
    if (strcmp(o->key, key) != 0) continue;
    o->used = true;
    if (tarn__parse_size(o->value, out_value)) continue;
    return tarn__fail(TARN_E_INVALID, "%s: %s=%s is not a number of bytes",
                      options->strategy, key, o->value);
  }
  return TARN_OK;
}

tarn_status tarn__options_check_used(
    const tarn__pool_strategy_options *options) {
  for (size_t i = 0; i < options->count; i++) {
    if (options->list[i].used) continue;
    return tarn__fail(TARN_E_INVALID, "%s: it has no option '%s'",
                      options->strategy, options->list[i].key);
  }
  return TARN_OK;
}
