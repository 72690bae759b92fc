// places.h - an address for each block of a trace.
//
// Formats that know blocks by address cannot hold a trace that knows none. So
// blocks without an address get one: blocks that live at the same time never
// overlap, and stand beyond all that have an address of their own. The same
// trace always gives the same addresses.
#ifndef TARN_TRACE_PLACES_H_
#define TARN_TRACE_PLACES_H_

#include "tarn/trace.h"

enum { TARN__PLACES_UNIT = 512 };  // addresses made up are multiples of this

// |*out_addresses| are the addresses of |trace|'s blocks, in their order: those
// that they have, or else such as are described above. Free them with
// tarn__places_free.
//
// Cost: linear in blocks and events; 8 bytes a block, and 4 more meanwhile.
// TARN_E_NOMEM        no host memory.
// TARN_E_UNSUPPORTED  the blocks do not fit into an address space of 64 bits.
TARN_MUST_CHECK tarn_status tarn__places_make(const tarn_trace *trace,
                                              uint64_t **out_addresses);
void tarn__places_free(const tarn_trace *trace, uint64_t *addresses);

// The address that |event| concerns, given those of the blocks.
static inline uint64_t tarn__places_of(const uint64_t *addresses,
                                       const tarn_trace_event *event) {
  return event->block == TARN_TRACE_NO_BLOCK ? event->address
                                             : addresses[event->block];
}

#endif  // TARN_TRACE_PLACES_H_
