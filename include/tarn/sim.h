// sim.h - the simulated devices that are built into the library, for tests.
//
// "sim:0", "sim:1", ... are discrete devices in host memory. They have a
// capacity, their addresses fault when the host accesses them, they can be slow
// or fail as planned, and they report every misuse. docs/devices.md describes
// them. A test of a program that must survive a full device and failing copies:
//
//   tarn_sim_options options = {.struct_size = sizeof options,
//                               .capacity = 64 << 20,
//                               .faults = "memory_copy_h2d@3"};  // the third
//   tarn_sim_configure(&options);
//   tarn_device_open("sim:0", &device);
//   run_the_program(device);
//   char line[256];
//   if (tarn_sim_misuses(line, sizeof line) != 0) puts(line);
//
// The environment variables TARN_SIM_... set the same options, which are the
// only way for the shared object tarn_sim.so.
//
// Threads: every function from any thread at any time.
#ifndef TARN_SIM_H_
#define TARN_SIM_H_

#include "tarn/base.h"

#ifdef __cplusplus
extern "C" {
#endif

// A field that is 0 or NULL takes the value of its variable, or the variable's
// default.
typedef struct tarn_sim_options {
  size_t struct_size;
  size_t devices;       // TARN_SIM_DEVICES: 1 to 64
  size_t capacity;      // TARN_SIM_CAPACITY: bytes of each, 4 KiB to 1 TiB
  uint64_t latency_ns;  // TARN_SIM_LATENCY_NS: of each copy and set
  uint64_t bandwidth;   // TARN_SIM_BANDWIDTH: bytes per second of copies to,
                        // from and between devices
  const char *faults;   // TARN_SIM_FAULTS: the calls that fail; "": none
  const char *report;   // TARN_SIM_REPORT: a file; "": none
  size_t no_ranges;     // TARN_SIM_NO_RANGES: 1: no address ranges, and
                        // allocations shared by handles
  uint64_t map_latency_ns;  // TARN_SIM_MAP_LATENCY_NS: of each call that maps
                            // or unmaps memory of a range or sets a right
  size_t no_moves;          // TARN_SIM_NO_MOVES: 1: no tarn_range_move
} tarn_sim_options;

// Sets the options of simulated devices. The struct is copied. NULL, the
// default: those of the environment.
//
// TARN_E_STATE    simulated devices exist already: opening or listing the first
//                 fixes the options.
// TARN_E_INVALID  a value is out of range or the plan is malformed: the text
//                 names it; nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status
tarn_sim_configure(const tarn_sim_options *options);

// Replaces the plan of failing calls and restarts the count of calls; NULL or
// "" ends failures. Works while devices are in use.
//
// TARN_E_INVALID  |plan| is malformed; nothing has changed.
TARN_API TARN_MUST_CHECK tarn_status tarn_sim_faults(const char *plan);

// From now on the stream with the handle |native| (tarn_stream_native) captures
// a graph, as programs beside Tarn begin it; NULL: no stream does. What is
// queued there runs all the same. Meanwhile each call that waits, queries a
// stream or an event, or takes or gives memory at an address, from any thread,
// is a misuse and fails: in CUDA it would break the capture. Ranges can be
// used.
TARN_API void tarn_sim_capture(void *native);

// The number of misuses of simulated devices in this process so far. Writes the
// report line of the newest to |out|, cut to |out_size| bytes with the NUL; ""
// if there is none. |out| may be NULL.
TARN_API size_t tarn_sim_misuses(char *out, size_t out_size);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_SIM_H_
