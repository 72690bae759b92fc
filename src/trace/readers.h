// readers.h - one reader for each format; trace.c chooses by the first bytes.
#ifndef TARN_TRACE_READERS_H_
#define TARN_TRACE_READERS_H_

#include "base/budget.h"
#include "tarn/trace.h"

// A file in memory. The budget counts it already.
typedef struct tarn__trace_input {
  tarn__budget *budget;
  const char *name;  // in errors
  const unsigned char *bytes;
  size_t size;
  const tarn_trace_options *options;  // complete
} tarn__trace_input;

// Whether the first bytes are of the format.
typedef bool tarn__trace_sniff_fn(const tarn__trace_input *input);
typedef tarn_status tarn__trace_read_fn(const tarn__trace_input *input,
                                        tarn_trace **out_trace);

bool tarn__log_sniff(const tarn__trace_input *input);
TARN_MUST_CHECK tarn_status tarn__log_read(const tarn__trace_input *input,
                                           tarn_trace **out_trace);
bool tarn__rmm_sniff(const tarn__trace_input *input);
TARN_MUST_CHECK tarn_status tarn__rmm_read(const tarn__trace_input *input,
                                           tarn_trace **out_trace);
bool tarn__umpire_sniff(const tarn__trace_input *input);
TARN_MUST_CHECK tarn_status tarn__umpire_read(const tarn__trace_input *input,
                                              tarn_trace **out_trace);

// Reads a PyTorch snapshot, as tarn_trace_read_bytes, within |budget|.
// |options| are complete.
TARN_MUST_CHECK tarn_status tarn__snapshot_read(
    tarn__budget *budget, const char *name, const void *bytes, size_t size,
    const tarn_trace_options *options, tarn_trace **out_trace);

#endif  // TARN_TRACE_READERS_H_
