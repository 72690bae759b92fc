// Reads files and bytes: finds the reader for the format.
//
// A reader sees the complete file in memory, and a budget that already counts
// it.
#include "tarn/trace.h"

#include <string.h>

#include "base/hostmem.h"
#include "base/os.h"
#include "base/status.h"
#include "trace/pickle.h"
#include "trace/readers.h"

// |given| as this library has it; NULL means all zero.
static tarn_status complete(const tarn_trace_options *given,
                            tarn_trace_options *out_options) {
  size_t size = 0;
  *out_options = (tarn_trace_options){.struct_size = sizeof *out_options};
  if (given == NULL) return TARN_OK;
  if (!tarn__struct_size(given->struct_size, sizeof *given, sizeof *given,
                         &size)) {
    return tarn__fail(TARN_E_INVALID, "trace: struct_size %zu is below %zu",
                      given->struct_size, sizeof *given);
  }
  memcpy(out_options, given, size);
  return TARN_OK;
}

static const struct reader {
  tarn__trace_sniff_fn *sniff;
  tarn__trace_read_fn *read;
} readers[] = {
    {tarn__log_sniff, tarn__log_read},
    {tarn__rmm_sniff, tarn__rmm_read},
    {tarn__umpire_sniff, tarn__umpire_read},
};

// An unknown format is read as a snapshot, whose reader reports the error. The
// budget counts |held| bytes of the input.
static tarn_status read_input(const void *bytes, size_t size, const char *name,
                              const tarn_trace_options *options, size_t held,
                              tarn_trace **out_trace) {
  tarn__budget budget = tarn__budget_for(name, size);
  tarn__trace_input input = {.budget = &budget,
                             .name = name,
                             .bytes = bytes,
                             .size = size,
                             .options = options};
  TARN__TRY(tarn__budget_charge(&budget, held));
  for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) {
    if (readers[i].sniff(&input)) return readers[i].read(&input, out_trace);
  }
  return tarn__snapshot_read(&input, out_trace);
}

tarn_status tarn_trace_read(const char *path, const tarn_trace_options *options,
                            tarn_trace **out_trace) {
  unsigned char *bytes = NULL;
  size_t size = 0;
  tarn_trace_options whole;
  *out_trace = NULL;
  if (path == NULL) return tarn__fail(TARN_E_INVALID, "trace: path is NULL");
  TARN__TRY(complete(options, &whole));
  TARN__TRY(tarn__os_read_file(path, TARN__PICKLE_MOST, &bytes, &size));
  tarn_status status = read_input(bytes, size, path, &whole, size, out_trace);
  tarn__host_free(bytes, size);
  return status;
}

tarn_status tarn_trace_read_bytes(const void *bytes, size_t size,
                                  const char *name,
                                  const tarn_trace_options *options,
                                  tarn_trace **out_trace) {
  tarn_trace_options whole;
  *out_trace = NULL;
  if (name == NULL || (bytes == NULL && size != 0)) {
    return tarn__fail(TARN_E_INVALID, "trace: bytes or name is NULL");
  }
  TARN__TRY(complete(options, &whole));
  return read_input(bytes, size, name, &whole, 0, out_trace);
}
