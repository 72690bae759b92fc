// touch.h - what touching costs by itself: a buffer that is resident and as
// large as the blocks of a workload take, laid out by first fit, of which every
// request touches as many pages as of a block.
#ifndef TARN_BENCH_TOUCH_H_
#define TARN_BENCH_TOUCH_H_

#include "peers.h"

// Whether the host can write to what |device| has at |address|.
bool touch_is_plain(tarn_device *device, tarn_addr address, size_t size);

// Writes one byte of each page: the host does, or where it cannot, |device|.
bool touch_pages(tarn_device *device, bool plain, tarn_addr address,
                 size_t size);

typedef struct touch_buffer touch_buffer;

// On |device|, NULL: the host's memory. NULL: |why|, PEER_TEXT_SIZE
// bytes, says why not.
touch_buffer *touch_buffer_create(const char *device,
                                  const request_list *requests, char *why);
void touch_buffer_destroy(touch_buffer *buffer);

// Takes and gives nothing, but touches.
peer_pass touch_pass;

#endif  // TARN_BENCH_TOUCH_H_
