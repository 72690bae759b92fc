// The options that a program or, for those that it leaves out, the environment
// sets. They are settled at initialize, by copy, and open again after finalize.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/status.h"
#include "sim.h"
#include "tarn/sim.h"

// What tarn_sim_configure and tarn_sim_faults said.
typedef struct wishes {
  tarn__sim_options options;  // a number that is 0 is not said
  bool says_plan;
  bool says_report;
} wishes;

static struct {
  wishes wishes;
  bool settled;  // there are devices, or will be in a moment
} asked;

// Guards |asked|. Taken inside the device registry's lock; inside this one the
// plan's is taken.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
TARN__LOCK_AROUND_FORKS(BETWEEN, asked, &lock, unlock_asked)

// --- numbers ---------------------------------------------------------------

typedef struct number_rule {
  const char *variable;
  const char *field;
  size_t offset;  // in tarn__sim_options
  size_t least;
  size_t most;
  const char *what;
  const char *how;  // that a variable may be written with a unit; NULL: not
} number_rule;

#define FIELD(name) #name, offsetof(tarn__sim_options, name)
#define WITH_UNITS ", in bytes or with K, M, G or T"

static const number_rule rules[] = {
    {"TARN_SIM_DEVICES", FIELD(devices), 1, TARN__SIM_DEVICES_MAX,
     "a number from 1 to 64", NULL},
    {"TARN_SIM_CAPACITY", FIELD(capacity), 4096, (size_t)1 << 40,
     "a size from 4K to 1T", WITH_UNITS},
    {"TARN_SIM_LATENCY_NS", FIELD(latency_ns), 0, 60000000000u,
     "a number of nanoseconds up to a minute", NULL},
    {"TARN_SIM_BANDWIDTH", FIELD(bandwidth), 0, SIZE_MAX,
     "a number of bytes per second", WITH_UNITS},
    {"TARN_SIM_NO_RANGES", FIELD(no_ranges), 0, 1, "0 or 1", NULL},
    {"TARN_SIM_MAP_LATENCY_NS", FIELD(map_latency_ns), 0, 60000000000u,
     "a number of nanoseconds up to a minute", NULL},
    {"TARN_SIM_NO_MOVES", FIELD(no_moves), 0, 1, "0 or 1", NULL},
};
enum { RULES = sizeof rules / sizeof rules[0] };

static size_t number_at(const tarn__sim_options *o, const number_rule *rule) {
  size_t number = 0;
  memcpy(&number, (const char *)o + rule->offset, sizeof number);
  return number;
}

static void set_number(tarn__sim_options *o, const number_rule *rule,
                       size_t number) {
  memcpy((char *)o + rule->offset, &number, sizeof number);
}

static bool is_within(const number_rule *rule, size_t number) {
  return number >= rule->least && number <= rule->most;
}

// --- the environment -------------------------------------------------------

static bool parse_number(const char *text, bool units, size_t *out) {
  size_t digits = strspn(text, "0123456789");
  return (units || text[digits] == '\0') && tarn__bytes_parse(text, out);
}

// Leaves the number alone where the variable is not set, or empty.
static bool read_number(const number_rule *rule, tarn__sim_options *o) {
  const char *text = secure_getenv(rule->variable);
  size_t number = 0;
  if (text == NULL || *text == '\0') return true;
  if (parse_number(text, rule->how != NULL, &number) &&
      is_within(rule, number)) {
    set_number(o, rule, number);
    return true;
  }
  tarn__sim_misuse("sim: %s=%.64s: not %s%s", rule->variable, text, rule->what,
                   rule->how != NULL ? rule->how : "");
  return false;
}

static bool read_numbers(const wishes *w, tarn__sim_options *o) {
  for (size_t i = 0; i < RULES; i++) {
    size_t said = number_at(&w->options, &rules[i]);
    if (said != 0) {
      set_number(o, &rules[i], said);
    } else if (!read_number(&rules[i], o)) {
      return false;
    }
  }
  return true;
}

#define NO_PLAN                                                            \
  "not up to 32 of FUNCTION@N or FUNCTION@N+, with commas between, for a " \
  "function that there is"
_Static_assert(TARN__SIM_FAULTS_MAX == 32, "the text names it");

static bool read_plan(const wishes *w, tarn__sim_options *o) {
  const char *text = secure_getenv("TARN_SIM_FAULTS");
  if (w->says_plan) o->plan = w->options.plan;
  if (w->says_plan || tarn__sim_faults_parse(text, &o->plan)) return true;
  tarn__sim_misuse("sim: TARN_SIM_FAULTS=%.64s: " NO_PLAN, text);
  return false;
}

static bool copy_path(const char *text, char *out, size_t *out_length) {
  *out_length = strlen(text);
  if (*out_length >= TARN__SIM_PATH_SIZE) return false;
  memcpy(out, text, *out_length + 1);
  return true;
}

static bool read_report(const wishes *w, tarn__sim_options *o) {
  const char *text =
      w->says_report ? w->options.report : secure_getenv("TARN_SIM_REPORT");
  size_t length = 0;
  if (text == NULL || copy_path(text, o->report, &length)) return true;
  tarn__sim_misuse("sim: TARN_SIM_REPORT: a path of %zu bytes", length);
  return false;
}

static const tarn__sim_options defaults = {
    .devices = 2,
    .capacity = (size_t)8 << 30,
};

static bool read_all(const wishes *w, tarn__sim_options *out) {
  *out = defaults;
  if (!read_report(w, out)) return false;
  tarn__sim_report_to(out->report);
  if (read_numbers(w, out) && read_plan(w, out)) return true;
  *out = defaults;
  return false;
}

bool tarn__sim_options_settle(tarn__sim_options *out) {
  lock_asked();
  wishes w = asked.wishes;
  asked.settled = true;
  unlock_asked();
  bool good = read_all(&w, out);
  if (!good) tarn__sim_options_unsettle();
  return good;
}

void tarn__sim_options_unsettle(void) {
  lock_asked();
  asked.settled = false;
  unlock_asked();
}

// --- the program -----------------------------------------------------------

static tarn_status wish_plan(const char *text, wishes *out) {
  out->says_plan = true;
  if (tarn__sim_faults_parse(text, &out->options.plan)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID, "sim: faults \"%.64s\": " NO_PLAN, text);
}

static tarn_status wish_report(const char *path, wishes *out) {
  size_t length = 0;
  out->says_report = true;
  if (copy_path(path, out->options.report, &length)) return TARN_OK;
  return tarn__fail(TARN_E_INVALID,
                    "sim: report: a path of %zu bytes; at most %d are possible",
                    length, TARN__SIM_PATH_SIZE - 1);
}

static tarn_status wish_numbers(const tarn_sim_options *o, wishes *out) {
  out->options.devices = o->devices;
  out->options.capacity = o->capacity;
  out->options.latency_ns = o->latency_ns;
  out->options.bandwidth = o->bandwidth;
  out->options.no_ranges = o->no_ranges;
  out->options.map_latency_ns = o->map_latency_ns;
  out->options.no_moves = o->no_moves;
  for (size_t i = 0; i < RULES; i++) {
    size_t number = number_at(&out->options, &rules[i]);
    if (number == 0 || is_within(&rules[i], number)) continue;
    return tarn__fail(TARN_E_INVALID, "sim: %s %zu: not %s", rules[i].field,
                      number, rules[i].what);
  }
  return TARN_OK;
}

static tarn_status wish(const tarn_sim_options *given, wishes *out) {
  tarn_sim_options o = {.struct_size = sizeof o};
  size_t size = 0;
  if (given == NULL) return TARN_OK;
  if (!tarn__struct_size(given->struct_size,
                         TARN__SIZE_UP_TO(tarn_sim_options, report), sizeof o,
                         &size)) {
    return tarn__fail(TARN_E_INVALID, "sim: struct_size %zu: of no version",
                      given->struct_size);
  }
  memcpy(&o, given, size);
  TARN__TRY(wish_numbers(&o, out));
  if (o.faults != NULL) TARN__TRY(wish_plan(o.faults, out));
  if (o.report != NULL) {
    TARN__TRY(wish_report(o.report, out));
  }
  return TARN_OK;
}

tarn_status tarn_sim_configure(const tarn_sim_options *options) {
  wishes w = {.says_plan = false};
  TARN__TRY(wish(options, &w));
  lock_asked();
  bool settled = asked.settled;
  if (!settled) asked.wishes = w;
  unlock_asked();
  if (!settled) return TARN_OK;
  return tarn__fail(TARN_E_STATE,
                    "sim: there are simulated devices already; configure them "
                    "before the first is opened or listed");
}

// A plan that comes before the devices is theirs, too.
tarn_status tarn_sim_faults(const char *plan) {
  wishes w = {.says_plan = false};
  TARN__TRY(wish_plan(plan, &w));
  lock_asked();
  asked.wishes.options.plan = w.options.plan;
  asked.wishes.says_plan = true;
  tarn__sim_faults_set(&w.options.plan);
  unlock_asked();
  return TARN_OK;
}
