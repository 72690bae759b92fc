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

// What is copied: |size| bytes from |src_at| to |dst_at|, within |room| bytes
// at either end.
typedef struct route_span {
  size_t dst_at;
  size_t src_at;
  size_t size;
  size_t room;
} route_span;

// Copies it, waits for the stream, and looks at all of the destination.
bool route_check(conform_target *t, const route *r, route_span span);

// The same for all check_lengths, and for a number of offsets.
bool route_check_lengths(conform_target *t, const route *r);
bool route_check_offsets(conform_target *t, const route *r);

#endif  // TARN_CONFORM_ROUTE_H_
