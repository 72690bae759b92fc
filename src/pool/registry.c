// Strategies by name: those of the room, and those that programs and shared
// objects have registered.
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hostmem.h"
#include "base/object.h"
#include "base/os.h"
#include "base/status.h"
#include "device/memory.h"
#include "pool/options.h"
#include "pool/strategy.h"

enum { NAMES_MAX = 255 };

// The first is the default (docs/decisions/0011).
static const tarn__pool_strategy_type *const types[] = {
    &tarn__arena_pool, &tarn__page_unit_pool, &tarn__no_pool,
    &tarn__buddy_pool, &tarn__async_pool,
};
enum { TYPE_COUNT = sizeof types / sizeof types[0] };

enum { NAME_MAX_BYTES = 63 };

typedef struct registered {
  tarn__pool_strategy_type type;
  char name[NAME_MAX_BYTES + 1];
  struct registered *next;
} registered;

static const tarn__pool_strategy_type *find_builtin(const char *name) {
  for (size_t i = 0; i < TYPE_COUNT; i++) {
    if (strcmp(types[i]->table.name, name) == 0) return types[i];
  }
  return NULL;
}

// --- the list --------------------------------------------------------------

static struct {
  pthread_mutex_t lock;  // guards |first| and every |next|; taken around a fork
  registered *first;     // never removed
} registry = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void lock_registry(void) {
  pthread_mutex_lock(&registry.lock);
}

static void unlock_registry(void) {
  pthread_mutex_unlock(&registry.lock);
}

TARN__WATCH_FORKS_LAST static void watch_forks(void) {
  pthread_atfork(lock_registry, unlock_registry, unlock_registry);
}

// Where the entry of that name hangs, or would hang.
static registered **link_of(const char *name) {
  registered **link = &registry.first;
  while (*link != NULL && strcmp((*link)->name, name) != 0)
    link = &(*link)->next;
  return link;
}

static const tarn__pool_strategy_type *find_registered(const char *name) {
  lock_registry();
  const registered *found = *link_of(name);
  unlock_registry();
  return found != NULL ? &found->type : NULL;
}

static const char *registered_name(size_t index) {
  lock_registry();
  const registered *r = registry.first;
  for (; index > 0 && r != NULL; index--)
    r = r->next;
  unlock_registry();
  return r != NULL ? r->name : NULL;
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

static tarn_status make(tarn_strategy table, registered **out) {
  registered *r = tarn__host_alloc(sizeof *r);
  *out = r;
  if (r == NULL) return TARN_E_NOMEM;
  snprintf(r->name, sizeof r->name, "%s", table.name);
  table.name = r->name;
  r->type.table = table;
  tarn__registered_fill(&r->type);
  if (tarn_size_add(tarn__registered_size(), table.size, &r->type.table.size)) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "strategy %s: its state is too large",
                    table.name);
}

static tarn_status enter(registered *r) {
  tarn_status status = TARN_OK;
  lock_registry();
  registered **link = link_of(r->name);
  if (*link != NULL || find_builtin(r->name) != NULL) {
    status =
        tarn__fail(TARN_E_STATE, "a strategy '%s' exists already", r->name);
  } else {
    *link = r;
  }
  unlock_registry();
  return status;
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
  tarn_status status = check_table(&table);
  if (status != TARN_OK) return status;
  registered *r = NULL;
  status = make(table, &r);
  if (status == TARN_OK) status = enter(r);
  if (status != TARN_OK) tarn__host_free(r, sizeof *r);
  return status;
}

tarn_status tarn_pool_load(const char *path) {
  void *handle = NULL;
  char *found = NULL;
  tarn_status status = tarn__not_in_callback();
  if (status == TARN_OK) {
    status = tarn__object_open("strategy", path, &handle, &found);
  }
  if (status != TARN_OK) return status;
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

// --- making one ------------------------------------------------------------

tarn_status tarn__strategy_create(tarn_pool *pool, const char *text,
                                  tarn__pool_strategy **out) {
  *out = NULL;
  tarn__pool_strategy_options options;
  tarn_status status = tarn__options_parse(&options, text);
  if (status != TARN_OK) return status;
  assert(options.strategy != NULL);
  const tarn__pool_strategy_type *type = find_type(options.strategy);
  if (type == NULL) return no_such_strategy(options.strategy);
  status = tarn__strategy_make(pool, type, &options, out);
  if (status == TARN_OK) status = tarn__options_check_used(&options);
  if (status != TARN_OK) {
    tarn__strategy_destroy(*out);
    *out = NULL;
  }
  return status;
}
