// Strategies by name: those of the room, and those that programs and shared
// objects have registered; and their options, "name:key=value,key=value".
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/names.h"
#include "base/object.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/strategy.h"

enum { NAMES_MAX = 255 };

// The first is the default (docs/decisions/0011).
static const tarn__pool_strategy_type *const types[] = {
    &tarn__arena_pool, &tarn__page_unit_pool, &tarn__no_pool,
    &tarn__buddy_pool, &tarn__async_pool,
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

enum { NAME_MAX_BYTES = 63 };

static const tarn__pool_strategy_type *find_builtin(const char *name) {
  for (size_t i = 0; i < TYPE_COUNT; i++) {
    if (strcmp(types[i]->table.name, name) == 0) return types[i];
  }
  return NULL;
}

// --- the list --------------------------------------------------------------

static struct {
  pthread_mutex_t lock;  // guards |names|; taken around a fork
  tarn__names names;     // of tarn__pool_strategy_type; never removed
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

TARN__LOCK_AROUND_FORKS(LAST, registry, &registry.lock, unlock_registry)

static const tarn__pool_strategy_type *find_registered(const char *name) {
  lock_registry();
  const tarn__name *found = tarn__names_find(&registry.names, name);
  const tarn__pool_strategy_type *type = found != NULL ? found->value : NULL;
  unlock_registry();
  return type;
}

// A name's text never moves, so it outlives the lock.
static const char *registered_name(size_t index) {
  lock_registry();
  const char *name =
      index < registry.names.count ? registry.names.entries[index].name : NULL;
  unlock_registry();
  return name;
}

// --- registering -----------------------------------------------------------

static bool is_name(const char *name) {
  size_t length = name != NULL ? strnlen(name, NAME_MAX_BYTES + 1) : 0;
  if (length == 0 || length > NAME_MAX_BYTES) return false;
  return strspn(name,
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                "0123456789_-.") == length;
}

static tarn_status check_table(const tarn_strategy *table) {
  if (!is_name(table->name)) {
    return tarn__fail(TARN_E_INVALID,
                      "strategy: its name is not 1 to %d letters, digits, "
                      "'_', '-' or '.'",
                      NAME_MAX_BYTES);
  }
  const char *missing = table->take == NULL   ? "take"
                        : table->give == NULL ? "give"
                        : table->trim == NULL ? "trim"
                                              : NULL;
  if (missing == NULL) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "strategy %s: the function %s is missing",
                    table->name, missing);
}

// The table's name becomes the registry's copy. The lock is held.
static tarn_status enter(tarn__pool_strategy_type *type) {
  const char *name = type->table.name;
  if (find_builtin(name) != NULL ||
      tarn__names_find(&registry.names, name) != NULL) {
    return tarn__fail(TARN_E_STATE, "a strategy '%s' exists already", name);
  }
  TARN__TRY(tarn__names_add(&registry.names, name, type));
  type->table.name = tarn__names_find(&registry.names, name)->name;
  return TARN_OK;
}

static tarn_status make(const tarn_strategy *table,
                        tarn__pool_strategy_type **out) {
  size_t size = 0;
  if (!tarn_size_add(tarn__registered_pool.table.size, table->size, &size)) {
    return tarn__fail(TARN_E_INVALID, "strategy %s: its state is too large",
                      table->name);
  }
  *out = tarn__host_alloc(sizeof **out);
  if (*out == NULL) return TARN_E_NOMEM;
  **out = tarn__registered_pool;
  (*out)->table = *table;
  (*out)->table.size = size;
  return TARN_OK;
}

tarn_status tarn_pool_register(const tarn_strategy *strategy) {
  tarn_strategy table = {0};
  size_t size = 0;
  if (strategy == NULL ||
      !tarn__struct_size(strategy->struct_size,
                         TARN__SIZE_UP_TO(tarn_strategy, check), sizeof table,
                         &size)) {
    return tarn__fail(TARN_E_INVALID, "strategy: NULL or struct_size");
  }
  memcpy(&table, strategy, size);
  TARN__TRY(check_table(&table));
  tarn__pool_strategy_type *type = NULL;
  TARN__TRY(make(&table, &type));
  assert(type != NULL);
  lock_registry();
  tarn_status status = enter(type);
  unlock_registry();
  if (status != TARN_OK) tarn__host_free(type, sizeof *type);
  return status;
}

tarn_status tarn_pool_load(const char *path) {
  void *handle = NULL;
  char *found = NULL;
  tarn_status status = TARN_OK;
  TARN__TRY(tarn__not_in_callback());
  TARN__TRY(tarn__object_open("strategy", path, &handle, &found));
  tarn_pool_strategy_function *function = NULL;
  void *symbol = tarn__object_symbol(handle, "TarnPoolStrategy");
  memcpy(&function, &symbol, sizeof symbol);
  if (function != NULL) {
    status = tarn_pool_register(function());
  } else {
    status =
        tarn__fail(TARN_E_UNSUPPORTED,
                   "%s: not a strategy: it has no TarnPoolStrategy", found);
    tarn__object_close(handle);
  }
  tarn__host_free_text(found);
  return status;
}

// --- names -----------------------------------------------------------------

const char *tarn_pool_strategy_name(size_t index) {
  return index < TYPE_COUNT ? types[index]->table.name
                            : registered_name(index - TYPE_COUNT);
}

const char *tarn__strategy_default(void) {
  const char *chosen = secure_getenv("TARN_POOL");
  return chosen != NULL && *chosen != '\0' ? chosen : types[0]->table.name;
}

static const tarn__pool_strategy_type *find_type(const char *name) {
  const tarn__pool_strategy_type *type = find_builtin(name);
  return type != NULL ? type : find_registered(name);
}

static tarn_status no_such_strategy(const char *name) {
  char known[NAMES_MAX + 1] = "";
  size_t used = 0;
  const char *one = NULL;
  for (size_t i = 0; (one = tarn_pool_strategy_name(i)) != NULL; i++) {
    int n =
        snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", one);
    used += n > 0 ? (size_t)n : 0;
    if (used >= sizeof known) break;
  }
  return tarn__fail(TARN_E_INVALID, "no strategy '%s': there are %s", name,
                    known);
}

// --- options ---------------------------------------------------------------

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

static tarn_status parse_options(tarn__pool_strategy_options *options,
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
    TARN__TRY(add_option(options, part));
  }
  return TARN_OK;
}

static tarn_status check_used(const tarn__pool_strategy_options *options) {
  for (size_t i = 0; i < options->count; i++) {
    if (options->list[i].used) continue;
    return tarn__fail(TARN_E_INVALID, "%s: it has no option '%s'",
                      options->strategy, options->list[i].key);
  }
  return TARN_OK;
}

// --- making one ------------------------------------------------------------

tarn_status tarn__strategy_create(tarn_pool *pool, const char *text,
                                  tarn__pool_strategy **out) {
  *out = NULL;
  tarn__pool_strategy_options options;
  TARN__TRY(parse_options(&options, text));
  assert(options.strategy != NULL);
  const tarn__pool_strategy_type *type = find_type(options.strategy);
  if (type == NULL) return no_such_strategy(options.strategy);
  tarn_status status = tarn__strategy_make(pool, type, &options, out);
  if (status == TARN_OK) status = check_used(&options);
  if (status != TARN_OK) {
    tarn__strategy_destroy(*out);
    *out = NULL;
  }
  return status;
}
