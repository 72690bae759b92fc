// A stream that captures a graph, and the calls that would break the capture.
//
// Only the rules of a capture are simulated, the strictest that drivers have
// (CUDA's global mode): while a stream captures, no thread may wait for
// anything, ask whether something is done, or take or give memory at an
// address. What is queued on the stream runs as ever. Ranges are free: what
// memory has no address yet is in no graph.
#include "sim.h"
#include "tarn/sim.h"

static _Atomic(void *) capturing;  // the native stream; NULL: none captures

void tarn_sim_capture(void *native) {
  atomic_store(&capturing, native);
}

bool tarn__sim_captures(C_Stream stream) {
  return stream != NULL && atomic_load(&capturing) == (void *)stream;
}

static bool breaks_captures(tarn__sim_call call) {
  switch (call) {
    case TARN__SIM_query_stream:
    case TARN__SIM_query_event:
    case TARN__SIM_synchronize_device:
    case TARN__SIM_synchronize_stream:
    case TARN__SIM_synchronize_event:
    case TARN__SIM_device_memory_allocate:
    case TARN__SIM_device_memory_deallocate:
    case TARN__SIM_host_memory_allocate:
    case TARN__SIM_host_memory_deallocate:
    case TARN__SIM_unified_memory_allocate:
    case TARN__SIM_unified_memory_deallocate:
    case TARN__SIM_allocate_aligned:
      return true;
    default:
      return false;
  }
}

C_Status tarn__sim_spare_capture(tarn__sim_call call, int id) {
  if (atomic_load_explicit(&capturing, memory_order_relaxed) == NULL ||
      !breaks_captures(call)) {
    return C_SUCCESS;
  }
  return tarn__sim_misuse("sim:%d: %s while a stream captures a graph", id,
                          tarn__sim_call_name(call));
}
