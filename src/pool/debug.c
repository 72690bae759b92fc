// Debugging of a pool: its options, and its findings.
#include "pool/debug.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/hostmem.h"
#include "base/status.h"
#include "pool/front.h"

enum {
  ALL = TARN_POOL_DEBUG_GUARDS | TARN_POOL_DEBUG_POISON |
        TARN_POOL_DEBUG_QUARANTINE,
  TEXT_MAX = 255,
};

static const size_t DEFAULT_QUARANTINE = (size_t)64 << 20;

// --- switching on and off --------------------------------------------------

// |fresh| becomes the pool's, unless it has one.
static tarn__pool_debug *adopt(tarn_pool *pool, tarn__pool_debug *fresh) {
  tarn__pool_debug *debug = tarn__debug_of(pool);
  if (debug != NULL) return debug;
  atomic_store_explicit(&pool->debug, fresh, memory_order_relaxed);
  return fresh;
}

// |o| NULL: off. What was found in blocks that are out is still reported.
static tarn_status set(tarn_pool *pool, const tarn_pool_debug_options *o) {
  tarn__pool_debug *fresh = NULL;
  if (tarn__debug_of(pool) == NULL) {
    if (o == NULL) return TARN_OK;
    fresh = tarn__host_alloc(sizeof *fresh);
    if (fresh == NULL) return TARN_E_NOMEM;
  }
  tarn__front_enter(pool);
  tarn__steps_forget(pool);
  (void)tarn__lanes_empty(pool);
  tarn__pool_debug *debug = adopt(pool, fresh);
  debug->flags = 0;
  debug->capacity = 0;
  if (o != NULL) {
    debug->flags = o->flags != 0 ? o->flags : ALL;
    debug->found = o->found;
    debug->context = o->context;
  }
  if ((debug->flags & TARN_POOL_DEBUG_QUARANTINE) != 0) {
    debug->capacity =
        o->quarantine_bytes != 0 ? o->quarantine_bytes : DEFAULT_QUARANTINE;
  }
  tarn_status status = tarn__quarantine_shrink(pool, debug->capacity);
  tarn__front_leave(pool);
  if (debug != fresh) tarn__host_free(fresh, sizeof *fresh);
  return status;
}

tarn_status tarn_pool_debug(tarn_pool *pool,
                            const tarn_pool_debug_options *options) {
  TARN__TRY(tarn__front_check_pool(pool));
  if (options == NULL) return set(pool, NULL);
  if (pool->flags != 0) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "pool: debug: not possible in pools that are dry, for "
                      "captures, or shareable");
  }
  tarn_pool_debug_options known;
  TARN__TRY(
      tarn__take_struct("pool: debug", options,
                        TARN__SIZE_UP_TO(tarn_pool_debug_options, context),
                        &known, sizeof known));
  if ((known.flags & ~(uint32_t)ALL) != 0) {
    return tarn__fail(TARN_E_INVALID, "pool: debug: there is no flag 0x%x",
                      known.flags & ~(uint32_t)ALL);
  }
  return set(pool, &known);
}

// --- the environment -------------------------------------------------------

static tarn_status no_such_word(const char *word) {
  return tarn__fail(TARN_E_INVALID,
                    "TARN_POOL_DEBUG: '%s' is none of all, off, guards, "
                    "poison, quarantine and quarantine=BYTES",
                    word);
}

static const struct {
  const char *word;
  uint32_t flags;
} words[] = {
    {"all", ALL},
    {"guards", TARN_POOL_DEBUG_GUARDS},
    {"poison", TARN_POOL_DEBUG_POISON},
    {"quarantine", TARN_POOL_DEBUG_QUARANTINE},
};

static tarn_status read_word(const char *word, tarn_pool_debug_options *out) {
  static const char with_size[] = "quarantine=";
  size_t skip = sizeof with_size - 1;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(word, words[i].word) != 0) continue;
    out->flags |= words[i].flags;
    return TARN_OK;
  }
  if (strncmp(word, with_size, skip) != 0 ||
      !tarn__bytes_parse(word + skip, &out->quarantine_bytes)) {
    return no_such_word(word);
  }
  out->flags |= TARN_POOL_DEBUG_QUARANTINE;
  return TARN_OK;
}

tarn_status tarn__debug_begin(tarn_pool *pool) {
  const char *chosen = secure_getenv("TARN_POOL_DEBUG");
  bool is_off = chosen == NULL || *chosen == '\0' || strcmp(chosen, "off") == 0;
  if (is_off) return TARN_OK;
  char text[TEXT_MAX + 1];
  if (strlen(chosen) > TEXT_MAX) return no_such_word("all that is there");
  memcpy(text, chosen, strlen(chosen) + 1);
  tarn_pool_debug_options options = {.struct_size = sizeof options};
  char *rest = text;
  for (char *word; (word = strsep(&rest, ",")) != NULL;) {
    TARN__TRY(read_word(word, &options));
  }
  return set(pool, &options);
}

// --- checking and reporting ------------------------------------------------

// One at a time: each trusts its place in the quarantine.
static tarn_status walk(tarn_pool *pool, tarn__pool_debug *debug) {
  while (debug->walking)
    tarn__front_wait(pool);
  debug->walking = true;
  tarn_status status = tarn__debug_walk(pool);
  if (status != TARN_OK) {
    status = tarn__fail(status, "pool: debug: not all blocks could be read");
  }
  if (debug->untold != 0) {
    debug->untold = 0;
    status = tarn__fail_text(TARN_E_CORRUPT, debug->text);
  }
  debug->walking = false;
  tarn__news_tell(&pool->returned);
  return status;
}

tarn_status tarn_pool_debug_check(tarn_pool *pool) {
  TARN__TRY(tarn__front_check_pool(pool));
  tarn__front_enter(pool);
  tarn__pool_debug *debug = tarn__debug_of(pool);
  tarn_status status = debug != NULL ? walk(pool, debug) : TARN_OK;
  tarn__front_leave(pool);
  return status;
}

tarn_status tarn_pool_debug_report(tarn_pool *pool,
                                   tarn_pool_debug_stats *out_stats) {
  size_t size = 0;
  TARN__TRY(
      tarn__clear_struct("pool: debug", out_stats,
                         TARN__SIZE_UP_TO(tarn_pool_debug_stats, stale_writes),
                         sizeof *out_stats, &size));
  TARN__TRY(tarn__front_check_pool(pool));
  tarn_pool_debug_stats stats = {0};
  tarn__front_enter(pool);
  const tarn__pool_debug *debug = tarn__debug_of(pool);
  if (debug != NULL) {
    stats = debug->stats;
    stats.flags = debug->flags;
  }
  tarn__front_leave(pool);
  stats.struct_size = size;
  memcpy(out_stats, &stats, size);
  return TARN_OK;
}
