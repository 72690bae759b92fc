// What tests say to the stand-in; see opencl/standin.h.
#include <string.h>

#include "faults.h"
#include "kernels.h"
#include "opencl/standin.h"
#include "report.h"
#include "settings.h"
#include "worker.h"

bool tarn_standin_set(const char *name, const char *value) {
  return standin_change(name, value);
}

void tarn_standin_reset(void) {
  standin_settings_reset();
  standin_faults_reset();
  standin_report_reset();
}

void tarn_standin_fail_call(const char *name, uint64_t n, int32_t error,
                            bool onwards) {
  standin_fail_call(name, n, error, onwards);
}

void tarn_standin_fail_command(uint64_t n, int32_t status) {
  standin_fail_command(n, status);
}

uint64_t tarn_standin_faults(void) {
  return standin_fault_count();
}

uint64_t tarn_standin_calls(const char *name) {
  return standin_call_count(name);
}

uint64_t tarn_standin_misuses(void) {
  return standin_wrong_count();
}

size_t tarn_standin_report(char *out, size_t size) {
  return standin_wrong_texts(out, size);
}

void tarn_standin_hold(bool on) {
  standin_lock();
  standin_queue_hold(on);
  standin_unlock();
}

size_t tarn_standin_queued(void) {
  standin_lock();
  size_t count = standin_queued_commands();
  standin_unlock();
  return count;
}

bool tarn_standin_kernel(const tarn_standin_kernel_entry *entry) {
  return standin_kernel_add(entry);
}

const char *tarn_standin_name(void) {
  return "a stand-in for an OpenCL driver, made for tests: it is no driver";
}

// --- what lives ------------------------------------------------------------

static size_t count_memory(const char *kind) {
  size_t count = 0;
  if (kind == NULL || strcmp(kind, "svm") == 0) {
    count += standin_region_count(STANDIN_ANY_SVM);
  }
  if (kind == NULL || strcmp(kind, "usm") == 0) {
    count += standin_region_count(STANDIN_ANY_USM);
  }
  return count;
}

static size_t count_live(const char *kind) {
  size_t count = count_memory(kind);
  for (standin_kind k = STANDIN_CONTEXT; k < STANDIN_KINDS; k++) {
    if (kind == NULL || strcmp(kind, standin_kind_name(k)) == 0) {
      count += standin_count(k);
    }
  }
  return count;
}

size_t tarn_standin_live(const char *kind) {
  standin_lock();
  standin_queues_settle();
  size_t count = count_live(kind);
  standin_unlock();
  return count;
}

uint64_t tarn_standin_bytes(void) {
  standin_lock();
  standin_queues_settle();
  uint64_t bytes = standin_region_total();
  standin_unlock();
  return bytes;
}

// At the end of the program, when threads of queues have done what they can do
// (worker.c). A child has nothing of its own, and a lock may be taken there for
// ever.
__attribute__((destructor)) static void report_leaks(void) {
  static const char *const KINDS[] = {"context", "queue",  "buffer", "event",
                                      "program", "kernel", "svm",    "usm"};
  if (standin_in_child()) return;
  for (size_t i = 0; i < sizeof KINDS / sizeof *KINDS; i++) {
    standin_lock();
    size_t count = count_live(KINDS[i]);
    standin_unlock();
    if (count > 0) standin_note("at the end: %zu of %s left", count, KINDS[i]);
  }
}
