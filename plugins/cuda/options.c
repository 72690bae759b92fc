// What the environment asks of the plug-in, with the vendor's name in capitals
// where it says CUDA:
//
//   TARN_CUDA_WITHOUT            abilities that are not to be used, as
//                                ranges,sharing,pools,managed,register,rows
//   TARN_CUDA_RELEASE_THRESHOLD  bytes that the driver's pool keeps for later
//                                allocations when a stream is waited for
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "gpu.h"

static const char *const ability_names[TARN__CUDA_ABILITIES] = {
    "ranges", "sharing", "pools", "managed", "register", "rows"};

const char *tarn__cuda_ability_name(tarn__cuda_ability ability) {
  return ability_names[ability];
}

// --- variables -------------------------------------------------------------

enum { VARIABLE = 64 };

static void name_variable(const char *what, char out[VARIABLE]) {
  snprintf(out, VARIABLE, "TARN_%s_%s", tarn__cuda_vendor_of.type, what);
  for (char *c = out; *c != '\0'; c++)
    *c = (char)toupper((unsigned char)*c);
}

static const char *read_variable(const char *name) {
  const char *text = secure_getenv(name);
  return text != NULL ? text : "";
}

static bool refuse(const char *variable, const char *text, const char *wanted) {
  (void)tarn__text_fail(TARN_E_INVALID, "%s=%.64s: not %s", variable, text,
                        wanted);
  return false;
}

// --- abilities -------------------------------------------------------------

// One name of |length| bytes.
static bool parse_ability(const char *word, size_t length,
                          tarn__cuda_options *out) {
  for (int i = 0; i < TARN__CUDA_ABILITIES; i++) {
    if (strlen(ability_names[i]) != length ||
        memcmp(ability_names[i], word, length) != 0) {
      continue;
    }
    out->without[i] = true;
    return true;
  }
  return false;
}

static bool parse_abilities(const char *text, tarn__cuda_options *out) {
  while (*text != '\0') {
    size_t length = strcspn(text, ",");
    if (!parse_ability(text, length, out)) return false;
    text += length;
    if (*text == ',') text++;
  }
  return true;
}

static bool read_abilities(tarn__cuda_options *out) {
  char name[VARIABLE];
  name_variable("WITHOUT", name);
  const char *text = read_variable(name);
  return parse_abilities(text, out) ||
         refuse(name, text,
                "some of ranges,sharing,pools,managed,register,rows");
}

static bool read_threshold(tarn__cuda_options *out) {
  char name[VARIABLE];
  size_t bytes = 0;
  name_variable("RELEASE_THRESHOLD", name);
  const char *text = read_variable(name);
  if (*text == '\0') return true;
  if (!tarn__bytes_parse(text, &bytes))
    return refuse(name, text, "a size in bytes or with K, M, G or T");
  out->release_threshold = bytes;
  return true;
}

bool tarn__cuda_options_read(tarn__cuda_options *out) {
  *out = (tarn__cuda_options){.release_threshold = UINT64_MAX};
  return read_abilities(out) && read_threshold(out);
}
