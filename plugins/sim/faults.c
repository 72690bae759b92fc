// Calls that fail on purpose: "device_memory_allocate@5+,memory_copy_h2d@3,
// *@100" fails the third copy to the device, every allocation from the fifth
// on, and the hundredth call whatever it is. Calls are counted for all devices
// together, from initialize or tarn_sim_faults on; without a plan, none is.
#include <string.h>

#include "sim.h"

#define CALL_NAME(name) #name,
static const char *const names[] = {TARN__SIM_CALL_LIST(CALL_NAME)};

static struct {
  atomic_bool armed;  // there is an entry: read before the lock is taken
  tarn__sim_plan plan;
  uint64_t calls[TARN__SIM_CALLS + 1];  // the last: of any
} faults;

// Guards all of |faults| but |armed|. get_device, which needs no device, is
// counted in a child, too.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
TARN__LOCK_AROUND_FORKS(LAST, faults, &lock, unlock_faults)

const char *tarn__sim_call_name(tarn__sim_call call) {
  return names[call];
}

// --- parsing ---------------------------------------------------------------

static bool parse_call(const char *name, size_t length, tarn__sim_call *out) {
  *out = TARN__SIM_CALLS;
  if (length == 1 && *name == '*') return true;
  for (int i = 0; i < TARN__SIM_CALLS; i++) {
    if (strlen(names[i]) != length || memcmp(names[i], name, length) != 0) {
      continue;
    }
    *out = (tarn__sim_call)i;
    return true;
  }
  return false;
}

// The digits at |*text|, which is moved behind them; 0 if they are no number.
static uint64_t parse_nth(const char **text) {
  uint64_t nth = 0;
  size_t digits = strspn(*text, "0123456789");
  if (digits > 18) return 0;
  for (size_t i = 0; i < digits; i++)
    nth = nth * 10 + (uint64_t)((*text)[i] - '0');
  *text += digits;
  return nth;
}

// One entry at |*text|, which is moved behind it.
static bool parse_entry(const char **text, tarn__sim_fault *out) {
  size_t length = strcspn(*text, "@,");
  const char *number = *text + length + 1;
  if ((*text)[length] != '@') return false;
  if (!parse_call(*text, length, &out->call)) return false;
  out->nth = parse_nth(&number);
  out->onwards = *number == '+';
  *text = number + (out->onwards ? 1 : 0);
  return out->nth != 0;
}

bool tarn__sim_faults_parse(const char *text, tarn__sim_plan *out) {
  out->count = 0;
  if (text == NULL || *text == '\0') return true;
  while (out->count < TARN__SIM_FAULTS_MAX) {
    if (!parse_entry(&text, &out->entries[out->count])) return false;
    out->count++;
    if (*text == '\0') return true;
    if (*text++ != ',') return false;
  }
  return false;
}

// --- striking --------------------------------------------------------------

void tarn__sim_faults_set(const tarn__sim_plan *plan) {
  lock_faults();
  memset(faults.calls, 0, sizeof faults.calls);
  faults.plan = *plan;
  atomic_store(&faults.armed, plan->count != 0);
  unlock_faults();
}

static bool is_due(const tarn__sim_fault *fault, uint64_t number) {
  return number == fault->nth || (fault->onwards && number > fault->nth);
}

// Apart, so that the usual call is a look and nothing else.
__attribute__((noinline, cold)) static bool inject(tarn__sim_call call) {
  lock_faults();
  uint64_t number = ++faults.calls[call];
  uint64_t of_any = ++faults.calls[TARN__SIM_CALLS];
  bool due = false;
  for (size_t i = 0; i < faults.plan.count; i++) {
    const tarn__sim_fault *fault = &faults.plan.entries[i];
    if (fault->call == call) due = due || is_due(fault, number);
    if (fault->call == TARN__SIM_CALLS) due = due || is_due(fault, of_any);
  }
  unlock_faults();
  return due;
}

bool tarn__sim_faults_inject(tarn__sim_call call) {
  return atomic_load_explicit(&faults.armed, memory_order_relaxed) &&
         inject(call);
}
