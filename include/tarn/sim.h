// sim.h - the simulated devices that are built into the library, for tests.
//
// "sim:0", "sim:1", ... are discrete devices in the host's memory: with a
// capacity, with addresses that fault where the host touches them, slow or
// failing as asked, and strict about misuse. docs/devices.md tells about them.
//
// The environment (TARN_SIM_...) says what they are like; a program can say it
// here instead. The shared object tarn_sim.so is asked by the environment only.
//
// Threads: every function from any thread at any time.
#ifndef TARN_SIM_H_
#define TARN_SIM_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// A field that is 0 or NULL is as its variable says, or that variable's
// default.
typedef struct tarn_sim_options {
  size_t struct_size;
  size_t devices;       // TARN_SIM_DEVICES: 1 to 64
  size_t capacity;      // TARN_SIM_CAPACITY: bytes of each, 4 KiB to 1 TiB
  uint64_t latency_ns;  // TARN_SIM_LATENCY_NS: of each copy and set
  uint64_t bandwidth;   // TARN_SIM_BANDWIDTH: bytes per second of copies to,
                        // from and between devices
  const char *faults;   // TARN_SIM_FAULTS: a plan as there; "": none
  const char *report;   // TARN_SIM_REPORT: a file; "": none
  size_t no_ranges;     // TARN_SIM_NO_RANGES: 1: they have no address ranges,
                        // and share allocations by handles
} tarn_sim_options;

// Says what simulated devices are to be like. The struct is copied. NULL: as
// the environment says, as at the start.
//
// TARN_E_STATE    there are simulated devices already: the first that is opened
//                 or listed settles it.
// TARN_E_INVALID  a value is out of range or the plan is none: the text says
//                 which; nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_sim_configure(const tarn_sim_options *options);

// Replaces the plan of calls that fail, and counts calls from 0 again; NULL or
// "": none fails any more. Also while devices are in use.
//
// TARN_E_INVALID  |plan| is none; nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_sim_faults(const char *plan);

// How many misuses of simulated devices there have been in this process. The
// line of the newest goes to |out|, cut to |out_size| bytes with the NUL; ""
// if there was none. |out| NULL: only the number.
TARN_API size_t tarn_sim_misuses(char *out, size_t out_size);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SIM_H_
