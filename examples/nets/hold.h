// hold.h - the accesses of one pass of one layer, which end together.
//
//   net_hold h = {.home = home};
//   const net_real *x = net_hold_read(&h, layer->x, TARN_DATA);
//   net_real *y = net_hold_write(&h, layer->y, TARN_DATA, NET_SET);
//   if (h.status == TARN_OK) ...
//   return net_hold_end(&h);
//
// Layers are the host's code, so all accesses are at the host. What they write
// is brought home to the device that the net is on. Hold what is read before
// what is written: an output may take the place of an input, whose bytes must
// be there first.
#ifndef TARN_EXAMPLES_NETS_HOLD_H_
#define TARN_EXAMPLES_NETS_HOLD_H_

#include <tarn/tarn.h>

#include "layers.h"

enum { NET_HOLD_MOST = 8 };

typedef struct net_hold {
  tarn_place home;
  tarn_stream *way_home;  // for such copies; NULL: they are done at once
  tarn_status status;     // the first failure; then pointers are NULL
  size_t count;
  tarn_access access[NET_HOLD_MOST];
  bool written[NET_HOLD_MOST];
} net_hold;

// The bytes of a part at the present batch, at the host.
const void *net_hold_read(net_hold *h, const tarn_tensor *tensor,
                          tarn_part part);

// NET_SET: what was there does not count. NET_ADD: it will be added to.
void *net_hold_write(net_hold *h, const tarn_tensor *tensor, tarn_part part,
                     net_write write);

// The bytes of a buffer that is no tensor.
const void *net_hold_read_all(net_hold *h, tarn_synced *buffer);

// Ends all accesses, and brings home what was written.
TARN_MUST_CHECK tarn_status net_hold_end(net_hold *h);

#endif  // TARN_EXAMPLES_NETS_HOLD_H_
