// What tests say to the stand-in; see cuda/standin.h.
#include <string.h>

#include "blocks.h"
#include "cuda/standin.h"
#include "entry.h"
#include "faults.h"
#include "kernels.h"
#include "pools.h"
#include "queue.h"
#include "ranges.h"
#include "report.h"
#include "room.h"
#include "settings.h"

bool tarn_standin_set(const char *name, const char *value) {
  return standin_change(name, value);
}

static void forgive(void) {
  standin_lock();
  for (int i = 0; i < STANDIN_DEVICES_MAX; i++)
    standin_context_of(i)->failure = TARN__CU_SUCCESS;
  standin_unlock();
}

void tarn_standin_reset(void) {
  standin_settings_reset();
  standin_faults_reset();
  standin_report_reset();
  forgive();
}

void tarn_standin_fail_call(const char *name, uint64_t n, unsigned error,
                            bool onwards) {
  standin_fail_call(name, n, error, onwards);
}

void tarn_standin_fail_command(uint64_t n, unsigned error) {
  standin_fail_command(n, error);
}

void tarn_standin_lose(uint64_t n, unsigned error) {
  standin_lose(n, error);
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

bool tarn_standin_add_kernel(const tarn_standin_kernel *kernel) {
  return standin_kernel_add(kernel);
}

void *tarn_standin_translate(uint64_t address, size_t size) {
  void *result = NULL;
  standin_lock();
  const standin_block *block = standin_block_at(address);
  if (block != NULL && !block->freed) {
    size_t offset = (size_t)(address - block->address);
    if (size <= block->size - offset) result = block->bytes + offset;
  }
  standin_unlock();
  return result;
}

const char *tarn_standin_name(void) {
  return "a stand-in for a driver of NVIDIA GPUs, made for tests: it is no "
         "driver";
}

// --- what lives ------------------------------------------------------------

static size_t count_contexts(void) {
  size_t count = 0;
  for (int i = 0; i < STANDIN_DEVICES_MAX; i++)
    count += standin_context_of(i)->retains > 0;
  return count;
}

static const struct {
  const char *name;
  standin_sort sort;
} SORTS[] = {
    {"device", STANDIN_DEVICE},         {"pooled", STANDIN_POOLED},
    {"mapped", STANDIN_MAPPED},         {"pinned", STANDIN_PINNED},
    {"registered", STANDIN_REGISTERED}, {"managed", STANDIN_MANAGED},
};
enum { SORTS_COUNT = sizeof SORTS / sizeof *SORTS };

static bool is_meant(const char *kind, const char *name) {
  return kind == NULL || strcmp(kind, name) == 0;
}

static size_t count_live(const char *kind) {
  size_t count = 0;
  if (is_meant(kind, "context")) count += count_contexts();
  if (is_meant(kind, "reserved")) count += standin_reservations();
  for (size_t i = 0; i < SORTS_COUNT; i++) {
    if (is_meant(kind, SORTS[i].name)) {
      count += standin_block_count(SORTS[i].sort);
    }
  }
  for (standin_kind k = STANDIN_STREAM; k < STANDIN_KINDS; k++) {
    if (is_meant(kind, standin_kind_name(k))) count += standin_count(k);
  }
  return count;
}

size_t tarn_standin_live(const char *kind) {
  standin_lock();
  standin_queues_settle();
  standin_pools_trim();
  size_t count = count_live(kind);
  standin_unlock();
  return count;
}

uint64_t tarn_standin_bytes(void) {
  standin_lock();
  standin_queues_settle();
  standin_pools_trim();
  uint64_t bytes = standin_room_taken();
  standin_unlock();
  return bytes;
}

// --- at the end ------------------------------------------------------------

static void note_left(const char *name) {
  standin_lock();
  size_t count = count_live(name);
  standin_unlock();
  if (count > 0) standin_note("at the end: %zu of %s left", count, name);
}

// When threads of streams have done what they can do (queue.c). A child has
// nothing of its own, and a lock may be taken there for ever.
__attribute__((destructor)) static void report_leaks(void) {
  if (standin_in_child() || standin_lost() != TARN__CU_SUCCESS) return;
  note_left("context");
  note_left("reserved");
  for (size_t i = 0; i < SORTS_COUNT; i++)
    note_left(SORTS[i].name);
  for (standin_kind k = STANDIN_STREAM; k < STANDIN_KINDS; k++)
    note_left(standin_kind_name(k));
}
