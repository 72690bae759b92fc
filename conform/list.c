// The list of all checks, subject by subject, and how one of them is run.
#include <string.h>

#include "check.h"

static const conform_subject *const subjects[] = {
    &conform_loading,     &conform_devices,     &conform_sizes,
    &conform_memory,      &conform_host_memory, &conform_copies,
    &conform_streams,     &conform_queued,      &conform_events,
    &conform_two_devices, &conform_threads,     &conform_exhaustion,
    &conform_extension,   &conform_ranges,      &conform_handles,
    &conform_rows,
};
enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

const conform_check *conform_at(size_t index) {
  for (size_t i = 0; i < SUBJECTS; i++) {
    if (index < subjects[i]->count) return &subjects[i]->checks[index];
    index -= subjects[i]->count;
  }
  return NULL;
}

size_t conform_count(void) {
  size_t count = 0;
  for (size_t i = 0; i < SUBJECTS; i++)
    count += subjects[i]->count;
  return count;
}

const char *conform_name(size_t index) {
  const conform_check *check = conform_at(index);
  return check != NULL ? check->name : NULL;
}

const char *conform_code(size_t index) {
  const conform_check *check = conform_at(index);
  return check != NULL ? check->code : NULL;
}

size_t conform_accepted(void) {
  return 0;  // the first of the first subject
}

size_t conform_initialized(void) {
  return conform_loading.count;  // the first of the second
}

// ---------------------------------------------------------------------------
// Running one
// ---------------------------------------------------------------------------

static bool has_functions(conform_target *t, const conform_check *check) {
  for (size_t i = 0; i < CHECK_NEEDS_MAX && check->needs[i] != 0; i++) {
    size_t offset = check->needs[i];
    if (conform_has(t->abi, offset)) continue;
    return conform_skip(t, "%s is not provided: %s",
                        conform_function_name(offset),
                        conform_stand_in(offset));
  }
  return true;
}

static bool has_slots(conform_target *t, const conform_check *check) {
  for (size_t i = 0; i < CHECK_NEEDS_MAX && check->extends[i] != 0; i++) {
    size_t offset = check->extends[i];
    if (t->entry.ext == NULL) {
      return conform_skip(t, "there is no extension (TarnDeviceExt)");
    }
    if (conform_has(t->ext, offset)) continue;
    return conform_skip(t, "%s is not in its extension",
                        conform_slot_name(offset));
  }
  return true;
}

static bool is_applicable(conform_target *t, const conform_check *check) {
  if (!has_functions(t, check) || !has_slots(t, check)) return false;
  if (check->two && t->count < 2) return conform_skip(t, "there is one device");
  return true;
}

static bool is_current(conform_target *t, const conform_check *check) {
  if (check->stage != CHECK_READY) return true;
  return check_enter(t, &t->device);
}

void conform_check_run(conform_target *t, const conform_check *check) {
  memset(&t->outcome, 0, sizeof t->outcome);
  t->outcome.result = CONFORM_PASS;
  t->with = check->with;
  bool passed =
      is_applicable(t, check) && is_current(t, check) && check->run(t);
  if (t->outcome.result != CONFORM_FAIL && !check_tidy(t)) passed = false;
  if (!passed && t->outcome.result == CONFORM_PASS &&
      t->outcome.level != CONFORM_QUIRK) {
    conform_fail(t, "failed");
  }
}
