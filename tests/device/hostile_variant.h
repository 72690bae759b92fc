// hostile_variant.h - hostile plug-ins by name, with the answer to each.
#ifndef TARN_TESTS_DEVICE_HOSTILE_VARIANT_H_
#define TARN_TESTS_DEVICE_HOSTILE_VARIANT_H_

#include "hostile_use.h"

enum { HOSTILE_SECONDS = 60 };

typedef bool holds(const outcome *o);

typedef struct variant {
  const char *name;
  const char *recipe;
  stage stage;  // where something is refused first
  tarn_status status;
  const char *says;  // of the text, or of the log of one that is survived
  holds *holds;
} variant;

#define LIVES(name, recipe, says, holds) \
  { name, recipe, SURVIVES, TARN_OK, says, holds }
#define REFUSED(name, recipe, stage, status, says, holds) \
  { name, recipe, stage, status, says, holds }
#define NOT_LOADED(name, recipe, says) \
  { name, recipe, LOAD, TARN_E_UNSUPPORTED, says, not_taken_in }

// --- what must hold of one -------------------------------------------------

static inline bool bytes_came(const outcome *o) {
  return o->rounds == 2 && o->bytes_came && o->live == 0 && o->callbacks == 2;
}

static inline bool two_of_everything(const outcome *o) {
  return o->rounds == 2 && o->live == 0;
}

// It keeps what it was asked to take back.
static inline bool plugin_keeps(const outcome *o) {
  return o->rounds == 2 && o->live > 0;
}

static inline bool no_round(const outcome *o) {
  return o->rounds == 0 && o->live == 0;
}

static inline bool not_taken_in(const outcome *o) {
  return o->rounds == 0 && o->info[0].name == NULL;
}

// Runs one in a process of its own, loaded, and in another one, registered, and
// fails the test, by the variant's name, if one of them dies, hangs, or does
// not come out as expected.
void hostile_meet(const variant *v);

#endif  // TARN_TESTS_DEVICE_HOSTILE_VARIANT_H_
