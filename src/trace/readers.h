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
TARN_MUST_CHECK tarn_status tarn__snapshot_read(const tarn__trace_input *input,
                                                tarn_trace **out_trace);

// --- shared by the readers ------------------------------------------------

// The events that a file has of one device.
typedef struct tarn__trace_tally {
  size_t events;
  size_t segments;
  size_t olds;    // blocks that lived before the first event
  size_t blocks;  // these, and the blocks that events begin; 0: not counted
} tarn__trace_tally;

// Chooses a device by the options, and sets |trace|'s device and device_count.
// The device of number i has its tally at |tallies| + i x |stride| bytes. If
// the options name no device, the one with most events is chosen; of equal ones
// that with most segments, and of these the first one with olds, else the
// first.
//
// TARN_E_INVALID  the file has nothing of the device that the options name.
TARN_MUST_CHECK tarn_status
tarn__trace_choose_device(const tarn__trace_input *input, const void *tallies,
                          size_t stride, size_t count, tarn_trace *trace);

#endif  // TARN_TRACE_READERS_H_
