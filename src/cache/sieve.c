// The sieve: its memory, which is one allocation, and its statistics.
//
//   | sieve | readers | shards | words of all sets | states | queues |
#include "cache/sieve.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "cache/sieve_shard.h"

enum {
  WAYS = TARN__SIEVE_WAYS,
  CACHE_LINE = 64,
  USUAL_SHARDS = 16,
  SET_BYTES = sizeof(uint32_t[2][WAYS]) + sizeof(tarn__cache_sieve_queue),
};

// --- create and destroy ----------------------------------------------------

static size_t shards_asked(size_t shards) {
  return shards != 0 ? shards : USUAL_SHARDS;
}

static size_t fixed_bytes(size_t shards) {
  return sizeof(tarn__cache_sieve) + CACHE_LINE +
         sizeof(tarn__cache_sieve_readers) +
         shards_asked(shards) * sizeof(tarn__cache_sieve_shard);
}

size_t tarn__sieve_bytes(const tarn__cache_sieve_options *options) {
  return fixed_bytes(options->shards) + options->lines / WAYS * SET_BYTES;
}

size_t tarn__sieve_fit(size_t budget, size_t line_size, size_t shards) {
  enum { MOST_SETS = (1u << 31) / WAYS - 1 };
  size_t bytes = 0;
  size_t fixed = fixed_bytes(shards);
  if (budget < fixed || !tarn_size_mul(line_size, WAYS, &bytes) ||
      !tarn_size_add(bytes, SET_BYTES, &bytes))
    return 0;
  return tarn__lesser((budget - fixed) / bytes, MOST_SETS) * WAYS;
}

static tarn_status check_options(const tarn__cache_sieve_options *options) {
  size_t shards = shards_asked(options->shards);
  if (options->keys == 0)
    return tarn__fail(TARN_E_INVALID, "cache: a table without rows");
  if (options->lines == 0 || options->lines % WAYS != 0 ||
      options->lines > INT32_MAX)
    return tarn__fail(TARN_E_INVALID,
                      "cache: %zu lines are no multiple of %d up to %d",
                      options->lines, WAYS, INT32_MAX - WAYS + 1);
  if (shards > TARN__SIEVE_MOST_SHARDS || (shards & (shards - 1)) != 0)
    return tarn__fail(TARN_E_INVALID,
                      "cache: %zu shards are no power of two up to %d", shards,
                      TARN__SIEVE_MOST_SHARDS);
  return TARN_OK;
}

// Each shard has equally many sets, but for the last one.
static void deal_sets(tarn__cache_sieve *sieve, size_t shards) {
  while ((sieve->sets - 1) >> sieve->shift >= shards)
    sieve->shift++;
  sieve->shard_count = ((sieve->sets - 1) >> sieve->shift) + 1;
}

static void lay_out(tarn__cache_sieve *sieve, size_t shards) {
  uintptr_t at = (uintptr_t)(sieve + 1);
  at += -at % CACHE_LINE;
  sieve->readers = (tarn__cache_sieve_readers *)at;
  at += sizeof *sieve->readers;
  sieve->shards = (tarn__cache_sieve_shard *)at;
  at += shards * sizeof *sieve->shards;
  sieve->words = (uint32_t(*)[WAYS])at;
  at += sieve->sets * sizeof *sieve->words;
  sieve->states = (uint32_t(*)[WAYS])at;
  at += sieve->sets * sizeof *sieve->states;
  sieve->queues = (tarn__cache_sieve_queue *)at;
}

tarn_status tarn__sieve_create(const tarn__cache_sieve_options *options,
                               tarn__cache_sieve **out_sieve) {
  tarn__cache_sieve_keys keys;
  *out_sieve = NULL;
  TARN__TRY(check_options(options));
  if (!tarn__sieve_keys_init(&keys, options->keys, options->lines / WAYS))
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "cache: %zu lines for a table of %llu rows",
                      options->lines, (unsigned long long)options->keys);
  size_t size = tarn__sieve_bytes(options);
  tarn__cache_sieve *sieve = tarn__host_alloc(size);
  if (sieve == NULL) return TARN_E_NOMEM;
  sieve->keys = keys;
  sieve->sets = options->lines / WAYS;
  sieve->size = size;
  lay_out(sieve, shards_asked(options->shards));
  deal_sets(sieve, shards_asked(options->shards));
  memset(sieve->words, 0xff, sieve->sets * sizeof *sieve->words);
  for (size_t i = 0; i < sieve->sets; i++)
    sieve->queues[i].order = TARN__SIEVE_FIRST_ORDER;
  *out_sieve = sieve;
  return TARN_OK;
}

void tarn__sieve_destroy(tarn__cache_sieve *sieve) {
  if (sieve == NULL) return;
  tarn__host_free(sieve, sieve->size);
}

// --- statistics ------------------------------------------------------------

void tarn__sieve_count(tarn__cache_sieve *sieve, tarn__cache_sieve_tally *out) {
  *out = (tarn__cache_sieve_tally){0};
  for (size_t i = 0; i < sieve->shard_count; i++) {
    tarn__cache_sieve_shard *shard = &sieve->shards[i];
    tarn__short_lock_enter(&shard->lock);
    out->hits += shard->hits;
    out->joined += shard->joined;
    out->fills += shard->fills;
    out->evictions += shard->evictions;
    out->written += shard->written;
    out->used += shard->used;
    out->dirty += shard->dirty;
    tarn__short_lock_leave(&shard->lock);
  }
}

// --- for tests -------------------------------------------------------------

// Every line is in the queue once.
static bool is_order(uint64_t order) {
  unsigned seen = 0;
  for (unsigned i = 0; i < WAYS; i++)
    seen |= 1u << (order >> 4 * i & 0xf);
  return seen == 0xffff;
}

static const char *check_line(const tarn__cache_sieve *sieve, size_t set,
                              unsigned way) {
  const uint32_t *words = sieve->words[set];
  uint32_t state = sieve->states[set][way];
  uint32_t again = 0;
  if (words[way] == TARN__SIEVE_NO_KEY)
    return state == 0 || tarn__sieve_is_pinned(state)
               ? NULL
               : "a line without a key has a state";
  if (tarn__sieve_way_of(words, words[way], TARN__SIEVE_MARKS) != way + 1)
    return "a key is in two lines";
  uint64_t key = tarn__sieve_key_at(&sieve->keys, (uint32_t)set, words[way]);
  if (tarn__sieve_place(&sieve->keys, key, &again) != set ||
      (again | TARN__SIEVE_MARKS) != (words[way] | TARN__SIEVE_MARKS))
    return "a key is in a wrong set";
  bool filling = (state & TARN__SIEVE_FILLING) != 0;
  if (filling != ((words[way] & TARN__SIEVE_UNREADABLE) != 0))
    return "a line can be read before it is filled, or not after that";
  bool busy = (state & (TARN__SIEVE_FILLING | TARN__SIEVE_WRITING)) != 0;
  if (busy && !tarn__sieve_is_pinned(state))
    return "a line is filled or written without a pin";
  return NULL;
}

static const char *check_sums(const tarn__cache_sieve *sieve) {
  tarn__cache_sieve_tally sums = {0};
  size_t used = 0;
  size_t dirty = 0;
  for (size_t i = 0; i < sieve->shard_count; i++) {
    sums.used += sieve->shards[i].used;
    sums.dirty += sieve->shards[i].dirty;
  }
  for (size_t i = 0; i < sieve->sets; i++) {
    for (unsigned way = 0; way < WAYS; way++) {
      used += sieve->words[i][way] != TARN__SIEVE_NO_KEY;
      dirty += (sieve->states[i][way] & TARN__SIEVE_UNWRITTEN) != 0;
    }
  }
  if (used != sums.used) return "the count of lines with a key is wrong";
  return dirty == sums.dirty ? NULL : "the count of dirty lines is wrong";
}

const char *tarn__sieve_check(const tarn__cache_sieve *sieve) {
  for (size_t i = 0; i < sieve->sets; i++) {
    if (!is_order(sieve->queues[i].order)) return "a queue lacks a line";
    if (sieve->queues[i].hand >= WAYS) return "a hand points to no line";
    for (unsigned way = 0; way < WAYS; way++) {
      const char *wrong = check_line(sieve, i, way);
      if (wrong != NULL) return wrong;
    }
  }
  return check_sums(sieve);
}
