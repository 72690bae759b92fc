// Calls that fail on purpose: "device_memory_allocate@5+,memory_copy_h2d@3,
// *@100" fails the third copy to the device, every allocation from the fifth
// on, and the hundredth call whatever it is. Calls are counted for all devices
// together, from initialize on.
#include <string.h>

#include "sim.h"

#define CALL_NAME(name) #name,
static const char *const names[] = {TARN__SIM_CALL_LIST(CALL_NAME)};

static struct {
  tarn__sim_fault entries[TARN__SIM_FAULTS_MAX];
  size_t count;  // written by initialize, before there is a device
  _Atomic(uint64_t) calls[TARN__SIM_CALLS + 1];  // the last: of any
} plan;

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

bool tarn__sim_faults_parse(const char *text, tarn__sim_options *out) {
  out->fault_count = 0;
  while (out->fault_count < TARN__SIM_FAULTS_MAX) {
    if (!parse_entry(&text, &out->faults[out->fault_count])) return false;
    out->fault_count++;
    if (*text == '\0') return true;
    if (*text++ != ',') return false;
  }
  return false;
}

// --- striking --------------------------------------------------------------

void tarn__sim_faults_set(const tarn__sim_options *options) {
  for (int i = 0; i <= TARN__SIM_CALLS; i++)
    atomic_store(&plan.calls[i], 0);
  memcpy(plan.entries, options->faults, sizeof plan.entries);
  plan.count = options->fault_count;
}

static bool is_due(const tarn__sim_fault *fault, uint64_t number) {
  return number == fault->nth || (fault->onwards && number > fault->nth);
}

bool tarn__sim_faults_strike(tarn__sim_call call) {
  if (plan.count == 0) return false;
  uint64_t number = atomic_fetch_add(&plan.calls[call], 1) + 1;
  uint64_t of_any = atomic_fetch_add(&plan.calls[TARN__SIM_CALLS], 1) + 1;
  bool due = false;
  for (size_t i = 0; i < plan.count; i++) {
    const tarn__sim_fault *fault = &plan.entries[i];
    if (fault->call == call) due = due || is_due(fault, number);
    if (fault->call == TARN__SIM_CALLS) due = due || is_due(fault, of_any);
  }
  return due;
}
