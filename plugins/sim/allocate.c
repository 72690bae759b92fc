// Blocks at alignments, and blocks in the order of a stream.
//
// A block that was freed on a stream stays allocated, and counts, until the
// stream reaches that point. Meanwhile its extent is marked: new uses of it are
// misuse, and freeing it again is a double free.
#include <string.h>

#include "base/status.h"
#include "extension.h"

static const size_t ALIGNMENT = 256;  // of every block

tarn_status tarn__sim_alignment(int id, size_t *out_align) {
  tarn__sim_device *device = NULL;
  *out_align = 0;
  TARN__TRY(tarn__sim_admit(TARN__SIM_alignment, id, &device));
  *out_align = ALIGNMENT;
  return TARN_OK;
}

static tarn_status refuse(tarn__sim_call call, const tarn__sim_device *device,
                          size_t size, const char *words) {
  return tarn__sim_answer(
      tarn__sim_misuse("sim:%d: %s of %zu bytes: %s", device->home.id,
                       tarn__sim_call_name(call), size, words));
}

tarn_status tarn__sim_allocate_aligned(int id, size_t size, size_t align,
                                       uint64_t *out_addr) {
  tarn__sim_call call = TARN__SIM_allocate_aligned;
  tarn__sim_device *device = NULL;
  *out_addr = 0;
  TARN__TRY(tarn__sim_admit(call, id, &device));
  if (size == 0) return refuse(call, device, size, "no bytes");
  if (!tarn_is_power_of_two(align)) {
    return refuse(call, device, size, "an alignment that is no power of two");
  }
  *out_addr = tarn__sim_take_block(device, size, align);
  if (*out_addr != 0) return TARN_OK;
  return tarn__sim_full(device, size, "bytes of memory so aligned");
}

// --- on a stream -----------------------------------------------------------

// If the device is full, waits for the stream, which may free blocks.
static uint64_t take_patiently(tarn__sim_device *device, C_Stream stream,
                               size_t size) {
  uint64_t address = tarn__sim_take_block(device, size, ALIGNMENT);
  if (address != 0 || stream == NULL) return address;
  tarn__queue_mark_help(tarn__queue_mark_now(stream));
  return tarn__sim_take_block(device, size, ALIGNMENT);
}

tarn_status tarn__sim_allocate_async(int id, void *stream, size_t size,
                                     uint64_t *out_addr) {
  tarn__sim_call call = TARN__SIM_allocate_async;
  tarn__sim_device *device = NULL;
  C_Stream on = NULL;
  *out_addr = 0;
  TARN__TRY(tarn__sim_admit(call, id, &device));
  TARN__TRY(tarn__sim_admit_stream(call, device, stream, &on));
  if (size == 0) return refuse(call, device, size, "no bytes");
  *out_addr = take_patiently(device, on, size);
  return *out_addr != 0 ? TARN_OK
                        : tarn__sim_full(device, size, "bytes of memory");
}

// A block that a stream will give back.
typedef struct farewell {
  tarn__sim_device *device;
  uint64_t address;
  uint64_t serial;
} farewell;

static void run_farewell(const tarn__common_queue_op *op) {
  farewell f;
  memcpy(&f, op->words, sizeof f);
  tarn__sim_give_block(f.device, f.address, f.serial);
}

// Marks the block; nothing is given back yet.
static tarn__sim_finding mark(tarn__sim_device *device, uint64_t address,
                              size_t size) {
  pthread_mutex_lock(&device->lock);
  tarn__sim_finding found =
      tarn__sim_find_block(device, TARN__SIM_DEVICE, address, size);
  if (found.verdict == TARN__SIM_FINE) found.extent->record = device;
  pthread_mutex_unlock(&device->lock);
  return found;
}

// The queue had no memory for it.
static void unmark(tarn__sim_device *device, uint64_t address) {
  pthread_mutex_lock(&device->lock);
  tarn__common_extent *extent =
      tarn__common_extents_find(&device->blocks.extents, address);
  if (extent != NULL) extent->record = NULL;
  pthread_mutex_unlock(&device->lock);
}

static tarn_status queue_farewell(C_Stream stream, const farewell *f) {
  tarn__common_queue_op op = {.run = run_farewell, .brief = true};
  memcpy(op.words, f, sizeof *f);
  if (tarn__queue_submit(stream, &op) == C_SUCCESS) return TARN_OK;
  unmark(f->device, f->address);
  return tarn__sim_no_resources(f->device, "host memory");
}

tarn_status tarn__sim_deallocate_async(int id, void *stream, uint64_t addr,
                                       size_t size) {
  tarn__sim_call call = TARN__SIM_deallocate_async;
  tarn__sim_device *device = NULL;
  C_Stream on = NULL;
  TARN__TRY(tarn__sim_admit(call, id, &device));
  TARN__TRY(tarn__sim_admit_stream(call, device, stream, &on));
  tarn__sim_finding found = mark(device, addr, size);
  if (found.verdict != TARN__SIM_FINE) {
    const void *address = (const void *)(uintptr_t)addr;
    tarn__sim_request r = {device, call, address, size, 0};
    return tarn__sim_answer(tarn__sim_refuse_free(&r, &found));
  }
  farewell f = {device, addr, found.block.serial};
  if (on != NULL) return queue_farewell(on, &f);
  tarn__sim_give_block(device, addr, f.serial);
  return TARN_OK;
}
