// The choice of a device, which the readers of all formats share.
#include "trace/readers.h"

#include "base/status.h"

static const tarn__trace_tally *tally_at(const void *tallies, size_t stride,
                                         size_t index) {
  const char *bytes = tallies;
  return (const void *)(bytes + index * stride);
}

static bool has_history(const tarn__trace_tally *of) {
  return (of->events | of->segments | of->olds) != 0;
}

static bool is_busier(const tarn__trace_tally *one,
                      const tarn__trace_tally *other) {
  if (one->events != other->events) return one->events > other->events;
  if (one->segments != other->segments) return one->segments > other->segments;
  return one->olds != 0 && other->olds == 0;
}

tarn_status tarn__trace_choose_device(const tarn__trace_input *input,
                                      const void *tallies, size_t stride,
                                      size_t count, tarn_trace *trace) {
  const tarn_trace_options *options = input->options;
  size_t best = 0;
  trace->device_count = 0;
  for (size_t i = 0; i < count; i++) {
    const tarn__trace_tally *of = tally_at(tallies, stride, i);
    trace->device_count += has_history(of);
    if (is_busier(of, tally_at(tallies, stride, best))) best = i;
  }
  trace->device = options->choose_device ? options->device : (uint32_t)best;
  if (!options->choose_device ||
      (options->device < count &&
       has_history(tally_at(tallies, stride, options->device)))) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_INVALID, "%s: device %u has no history", input->name,
                    options->device);
}
