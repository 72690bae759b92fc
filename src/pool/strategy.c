// Strategies by name, and their options.
#include "pool/strategy.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "pool/registered.h"

enum {
  TEXT_MAX = 255,
  OPTIONS_MAX = 8,
};

// The first is the default (docs/decisions/0011).
static const tarn__pool_strategy_type *const types[] = {
    &tarn__arena_pool, &tarn__page_unit_pool, &tarn__no_pool,
    &tarn__buddy_pool, &tarn__async_pool,
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

typedef struct option {
  const char *key;
  const char *value;
  bool used;
} option;

struct tarn__pool_strategy_options {
  char text[TEXT_MAX + 1];  // the name, then keys and values, each with a NUL
  const char *strategy;
  option list[OPTIONS_MAX];
  size_t count;
};

// --- names -----------------------------------------------------------------

const char *tarn_pool_strategy_name(size_t index) {
  return index < TYPE_COUNT ? types[index]->name
                            : tarn__registered_name(index - TYPE_COUNT);
}

const char *tarn__strategy_default(void) {
  const char *chosen = secure_getenv("TARN_POOL");
  return chosen != NULL && *chosen != '\0' ? chosen : types[0]->name;
}

const tarn__pool_strategy_type *tarn__strategy_builtin(const char *name) {
  for (size_t i = 0; i < TYPE_COUNT; i++) {
    if (strcmp(types[i]->name, name) == 0) return types[i];
  }
  return NULL;
}

static const tarn__pool_strategy_type *find_type(const char *name) {
  const tarn__pool_strategy_type *type = tarn__strategy_builtin(name);
  return type != NULL ? type : tarn__registered_find(name);
}

static tarn_status no_such_strategy(const char *name) {
  char known[TEXT_MAX + 1] = "";
  size_t used = 0;
  const char *one = NULL;
  for (size_t i = 0; (one = tarn_pool_strategy_name(i)) != NULL; i++) {
    int n =
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", one);
    used += n > 0 ? (size_t)n : 0;
    if (used >= sizeof known) break;
  }
  return tarn__fail(TARN_E_INVALID, "no pool '%s': there are %s", name, known);
}

// --- options ---------------------------------------------------------------

static tarn_status add_option(tarn__pool_strategy_options *options,
                              char *text) {
  char *equals = strchr(text, '=');
  if (equals == NULL || equals == text) {
    return tarn__fail(TARN_E_INVALID, "%s: '%s' is no key=value",
                      options->strategy, text);
  }
  if (options->count == OPTIONS_MAX) {
    return tarn__fail(TARN_E_INVALID, "%s: more than %d options",
                      options->strategy, OPTIONS_MAX);
  }
  *equals = '\0';
  for (size_t i = 0; i < options->count; i++) {
    if (strcmp(options->list[i].key, text) != 0) continue;
    return tarn__fail(TARN_E_INVALID, "%s: '%s' is given twice",
                      options->strategy, text);
  }
  options->list[options->count++] = (option){.key = text, .value = equals + 1};
  return TARN_OK;
}

static tarn_status parse(tarn__pool_strategy_options *options,
                         const char *text) {
  *options = (tarn__pool_strategy_options){0};
  if (strlen(text) > TEXT_MAX) {
    return tarn__fail(TARN_E_INVALID, "pool: a name over %d bytes",
                      TEXT_MAX);
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
    option *o = &options->list[i];
    if (strcmp(o->key, key) != 0) continue;
    o->used = true;
    if (tarn__parse_size(o->value, out_value)) continue;
    return tarn__fail(TARN_E_INVALID, "%s: %s=%s is no number of bytes",
                      options->strategy, key, o->value);
  }
  return TARN_OK;
}

static tarn_status check_all_used(const tarn__pool_strategy_options *options) {
  for (size_t i = 0; i < options->count; i++) {
    if (options->list[i].used) continue;
    return tarn__fail(TARN_E_INVALID, "%s: it has no option '%s'",
                      options->strategy, options->list[i].key);
  }
  return TARN_OK;
}

// --- making one ------------------------------------------------------------

tarn_status tarn__strategy_make(tarn_pool *pool,
                                const tarn__pool_strategy_type *type,
                                tarn__pool_strategy_options *options,
                                tarn__pool_strategy **out) {
  *out = NULL;
  tarn__pool_strategy *strategy = tarn__host_alloc(type->size);
  if (strategy == NULL) return TARN_E_NOMEM;
  strategy->type = type;
  strategy->pool = pool;
  tarn_list_init(&strategy->node);
  tarn_status status = type->init(strategy, options);
  if (status == TARN_OK) {
    *out = strategy;
  } else {
    tarn__strategy_destroy(strategy);
  }
  return status;
}

tarn_status tarn__strategy_create(tarn_pool *pool, const char *text,
                                  tarn__pool_strategy **out) {
  *out = NULL;
  tarn__pool_strategy_options options;
  tarn_status status = parse(&options, text);
  if (status != TARN_OK) return status;
  assert(options.strategy != NULL);
  const tarn__pool_strategy_type *type = find_type(options.strategy);
  if (type == NULL) return no_such_strategy(options.strategy);
  status = tarn__strategy_make(pool, type, &options, out);
  if (status == TARN_OK) status = check_all_used(&options);
  if (status != TARN_OK) {
    tarn__strategy_destroy(*out);
    *out = NULL;
  }
  return status;
}

void tarn__strategy_destroy(tarn__pool_strategy *strategy) {
  if (strategy == NULL) return;
  strategy->type->deinit(strategy);
  tarn__host_free(strategy, strategy->type->size);
}
