// route.h - a copy from somewhere to somewhere, and whether it was right.
//
// Both ends are longer than the copy and filled with bytes of their own, so
// that a copy that is too long, too short or beside the mark shows.
#ifndef TARN_CONFORM_ROUTE_H_
#define TARN_CONFORM_ROUTE_H_

#include "check.h"

typedef enum route_kind {
  ROUTE_H2D = 0,
  ROUTE_D2H,
  ROUTE_D2D,
  ROUTE_P2P,
} route_kind;

typedef struct route {
  route_kind kind;
  C_Stream stream;           // NULL: the synchronous function
  struct C_Device_st *to;    // NULL: the device that is tested
  struct C_Device_st *from;  // likewise
} route;

// "memory_copy_h2d", "async_memory_copy_h2d".
const char *route_name(const route *r);

// The copy alone; with a stream, it is queued.
C_Status route_call(conform_target *t, const route *r, void *dst,
                    const void *src, size_t size);
bool route_copy(conform_target *t, const route *r, void *dst, const void *src,
                size_t size);

// Checks: copies of all check_lengths, copies at a number of offsets, and a
// large one. Each copy is waited for, and all of the destination compared.
//
// |with| is a kind of route, and flags: queued on a stream; p2p from the other
// device to the tested one. Without the latter p2p goes from the tested device,
// to which the streams of a check belong.
enum { ROUTE_QUEUED = 8, ROUTE_FROM_OTHER = 16 };
bool route_run_lengths(conform_target *t);
bool route_run_offsets(conform_target *t);
bool route_run_large(conform_target *t);

#endif  // TARN_CONFORM_ROUTE_H_
