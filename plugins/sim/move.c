// Moves of mapped memory: what moves is the record of a mapping. A call that is
// made to fail has moved the first half of what it was asked for, as a system
// might.
#include "base/status.h"
#include "extension.h"

static tarn_status refuse(const tarn__sim_device *device, uint64_t from,
                          uint64_t to, size_t size, const char *words) {
  return tarn__sim_answer(tarn__sim_misuse(
      "sim:%d: range_move of %zu bytes from 0x%llx to 0x%llx: %s",
      device->home.id, size, (unsigned long long)from, (unsigned long long)to,
      words));
}

static const char *check_move(const tarn__sim_device *device, uint64_t from,
                              tarn__common_run target) {
  const char *words =
      tarn__sim_check_mapped(device, (tarn__common_run){from, target.size});
  if (words != NULL) return words;
  if (!tarn__sim_is_granular(target.address)) {
    return "not to a multiple of 64 KiB";
  }
  if (tarn__sim_range_around(device, target) == NULL) {
    return "to what is not in a range of this device";
  }
  if (tarn__common_extents_in(&device->mappings, target) != NULL) {
    return "something is mapped there already";
  }
  return NULL;
}

static void move_all(tarn__sim_device *device, tarn__common_run source,
                     uint64_t to) {
  tarn__common_extent *extent = NULL;
  while ((extent = tarn__common_extents_in(&device->mappings, source)) != NULL)
    tarn__common_extents_shift(&device->mappings, extent,
                               to + (extent->node.start - source.address));
}

// The greatest part that ends with a mapping, or where one can be cut.
static size_t half_of(const tarn__sim_device *device, tarn__common_run run) {
  size_t half = run.size / 2 / TARN__SIM_GRANULE * TARN__SIM_GRANULE;
  const tarn__common_extent *extent =
      half != 0
          ? tarn__common_extents_find(&device->mappings, run.address + half)
          : NULL;
  if (extent == NULL || tarn__sim_can_be_cut(extent->record)) return half;
  uint64_t start = extent->node.start;
  return start > run.address ? (size_t)(start - run.address) : 0;
}

static tarn_status move(tarn__sim_device *device, uint64_t from, uint64_t to,
                        size_t size, bool strikes, size_t *out_moved) {
  bool cut = true;
  tarn__sim_lock_ranges();
  const char *words = check_move(device, from, (tarn__common_run){to, size});
  if (words == NULL) {
    tarn__common_run run = {from, size};
    if (strikes) run.size = half_of(device, run);
    cut = run.size == 0 || tarn__sim_cut_out(device, run);
    if (cut && run.size != 0) move_all(device, run, to);
    if (cut) *out_moved = run.size;
  }
  tarn__sim_unlock_ranges();
  if (words != NULL && !strikes) return refuse(device, from, to, size, words);
  return cut ? TARN_OK : tarn__sim_no_resources(device, "host memory");
}

tarn_status tarn__sim_range_move(int id, uint64_t from, uint64_t to,
                                 size_t size, size_t *out_moved) {
  tarn__sim_call call = TARN__SIM_range_move;
  struct C_Device_st named = {id};
  tarn__sim_device *device = NULL;
  *out_moved = 0;
  TARN__TRY(tarn__sim_answer(tarn__sim_look_up(call, &named, &device)));
  if (tarn__sim_lacks_moves() || tarn__sim_lacks_ranges()) {
    return tarn__text_fail(TARN_E_UNSUPPORTED,
                           "sim:%d: was asked to move no memory", id);
  }
  if (size == 0) return TARN_OK;
  bool strikes = tarn__sim_faults_inject(call);
  tarn_status status = move(device, from, to, size, strikes, out_moved);
  if (status != TARN_OK) return status;
  tarn__sim_linger_mapping();
  return strikes ? tarn__sim_answer(tarn__sim_strike(call)) : TARN_OK;
}
