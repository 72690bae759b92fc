// What the environment asks for, read once, at initialize.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

// Digits, then with |units| one of K, M, G, T or none.
static bool parse_number(const char *text, bool units, size_t *out) {
  size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 18) return false;
  *out = strtoull(text, NULL, 10);
  const char *unit = text + digits;
  if (*unit == '\0') return true;
  static const char letters[] = "KMGT";
  const char *found = strchr(letters, *unit);
  if (!units || found == NULL || unit[1] != '\0') return false;
  size_t shift = 10 * ((size_t)(found - letters) + 1);
  return tarn_size_mul(*out, (size_t)1 << shift, out);
}

typedef struct number_rule {
  const char *name;
  bool units;
  size_t least;
  size_t most;
  const char *what;
} number_rule;

// Leaves |*value| alone where the variable is not set, or empty.
static bool read_number(const number_rule *rule, size_t *value) {
  const char *text = secure_getenv(rule->name);
  size_t number = 0;
  if (text == NULL || *text == '\0') return true;
  if (parse_number(text, rule->units, &number) && number >= rule->least &&
      number <= rule->most) {
    *value = number;
    return true;
  }
  tarn__sim_misuse("sim: %s=%.64s: not %s", rule->name, text, rule->what);
  return false;
}

static bool read_numbers(tarn__sim_options *o) {
  static const number_rule rules[] = {
      {"TARN_SIM_DEVICES", false, 1, TARN__SIM_DEVICES_MAX,
       "a number from 1 to 64"},
      {"TARN_SIM_CAPACITY", true, 4096, (size_t)1 << 40,
       "a size from 4K to 1T, in bytes or with K, M, G or T"},
      {"TARN_SIM_LATENCY_NS", false, 0, 60000000000u,
       "a number of nanoseconds up to a minute"},
      {"TARN_SIM_BANDWIDTH", true, 0, SIZE_MAX,
       "a number of bytes per second, with K, M, G, T or without"},
  };
  return read_number(&rules[0], &o->devices) &&
         read_number(&rules[1], &o->capacity) &&
         read_number(&rules[2], &o->latency_ns) &&
         read_number(&rules[3], &o->bandwidth);
}

static bool read_faults(tarn__sim_options *o) {
  const char *text = secure_getenv("TARN_SIM_FAULTS");
  if (text == NULL || *text == '\0') return true;
  if (tarn__sim_faults_parse(text, o)) return true;
  tarn__sim_misuse(
      "sim: TARN_SIM_FAULTS=%.64s: not up to %d of FUNCTION@N or FUNCTION@N+, "
      "with commas between",
      text, TARN__SIM_FAULTS_MAX);
  return false;
}

static bool read_report(tarn__sim_options *o) {
  const char *text = secure_getenv("TARN_SIM_REPORT");
  if (text == NULL) return true;
  int length = snprintf(o->report, sizeof o->report, "%s", text);
  if (length >= 0 && (size_t)length < sizeof o->report) return true;
  o->report[0] = '\0';
  tarn__sim_misuse("sim: TARN_SIM_REPORT: a path of %d bytes", length);
  return false;
}

static const tarn__sim_options defaults = {
    .devices = 2,
    .capacity = (size_t)8 << 30,
};

bool tarn__sim_options_read(tarn__sim_options *out) {
  *out = defaults;
  if (!read_report(out)) return false;
  tarn__sim_report_to(out->report);
  if (read_numbers(out) && read_faults(out)) return true;
  *out = defaults;
  return false;
}
