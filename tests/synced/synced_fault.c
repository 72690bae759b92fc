#include "synced_fault.h"

#include <string.h>

#include "support/faults.h"
#include "support/run.h"
#include "tarn/sim.h"

unsigned long sp_failures;

static struct {
  bool armed;
  unsigned place;
  uint32_t valid[SM_SIZE];
  uint64_t kept[SM_PLACES];
  uint64_t discarded[SM_PLACES];
} before;

// Only of calls that the access makes itself: what streams have queued goes on.
static const char *const plans[] = {
    "device_memory_allocate@1", "host_memory_allocate@1", "memory_copy_h2d@1",
    "memory_copy_h2d@2",        "memory_copy_d2h@1",      "memory_copy_d2h@3",
    "memory_copy_p2p@1",        "memory_copy_d2d@1",      "device_memory_set@1",
};

bool sp_arm(const sm_root *r, unsigned place, int stream) {
  before.armed = sg_below(5) == 0;
  if (!before.armed) return false;
  before.place = place;
  memcpy(before.valid, r->valid, sizeof before.valid);
  memcpy(before.kept, r->kept, sizeof before.kept);
  memcpy(before.discarded, r->discarded, sizeof before.discarded);
  if (stream >= 0 || sg_below(4) == 0) {
    faults_arm(1 + sg_below(3),
               sg_below(2) == 0 ? FAULTS_ONCE : FAULTS_FROM_NOW);
  } else {
    const char *plan = plans[sg_below(sizeof plans / sizeof plans[0])];
    sm_status(tarn_sim_faults(plan), TARN_OK);
  }
  return true;
}

// Asks for each byte whether it is valid at the place now. What was before is
// still, and what was copied may be.
static void look_again(sm_root *r) {
  uint32_t bit = 1u << before.place;
  tarn_place place = sm_places[before.place];
  const sm_handle *h = sp_whole_handle(r);
  for (size_t k = 0; k < h->size; k++) {
    size_t i = h->offset + k;
    tarn_synced_info info = {.struct_size = sizeof info};
    sm_status(tarn_synced_query(h->real, k, 1, place, &info), TARN_OK);
    bool was = (before.valid[i] & bit) != 0;
    bool may = was || (r->valid[i] & bit) != 0 || !r->written[i];
    if (info.valid > 0 && !may) sm_fail("byte %zu is valid there", i);
    r->valid[i] &= ~bit;
    if (info.valid > 0) r->valid[i] |= bit;
    if (r->written[i] && before.valid[i] != 0 && r->valid[i] == 0) {
      sm_fail("byte %zu is lost", i);
    }
  }
}

bool sp_has_failed(sm_root *r, tarn_status status) {
  if (!before.armed) return false;
  before.armed = false;
  (void)faults_disarm();
  sm_status(tarn_sim_faults(NULL), TARN_OK);
  if (status != TARN_E_NOMEM && status != TARN_E_DEVICE &&
      status != TARN_FULL) {
    return false;
  }
  sp_failures++;
  memcpy(r->kept, before.kept, sizeof before.kept);
  memcpy(r->discarded, before.discarded, sizeof before.discarded);
  sm_heard_some(r);
  look_again(r);
  return true;
}
