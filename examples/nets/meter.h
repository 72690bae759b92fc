// meter.h - what a program takes of memory, all of it: in the pools, and of the
// library for its books.
//
//   net_meter_install();                       // before the first other call
//   net_meter m;
//   net_meter_begin(&m, tarn_place_on(device));
//   ...
//   net_meter_allocations(&m, &count);
//   net_meter_left(&m, &bytes);
#ifndef TARN_EXAMPLES_NETS_METER_H_
#define TARN_EXAMPLES_NETS_METER_H_

#include <tarn/tarn.h>

typedef struct net_meter {
  tarn_place places[3];  // home; and, if that is not the host, the host memory
                         // that its device pins, and the host
  size_t place_count;
  size_t books;  // bytes that the library had at first
} net_meter;

// Makes the library's own allocations pass through a counter.
TARN_MUST_CHECK tarn_status net_meter_install(void);

// From here on, at the host and at |home|.
TARN_MUST_CHECK tarn_status net_meter_begin(net_meter *meter, tarn_place home);

// How often memory was taken so far: of a pool, by a pool of its device, or by
// the library for itself.
TARN_MUST_CHECK tarn_status net_meter_allocations(const net_meter *meter,
                                                  uint64_t *out_count);

// The most that the pools had reserved, idle memory included; summed.
TARN_MUST_CHECK tarn_status net_meter_peak(const net_meter *meter,
                                           size_t *out_bytes);

// What was not given back: live bytes of the pools, and what the library holds
// beyond what it held at first. Both times its pools are fresh and were used
// once, since the books of pools, which are kept for the next, do not count.
TARN_MUST_CHECK tarn_status net_meter_left(const net_meter *meter,
                                           size_t *out_bytes);

#endif  // TARN_EXAMPLES_NETS_METER_H_
