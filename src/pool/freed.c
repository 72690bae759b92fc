// Looks for what stood at an address, the newest first.
#include "pool/freed.h"

bool tarn__freed_find(const tarn__pool_freed *freed, tarn_addr address,
                      tarn_tag *out_tag) {
  *out_tag = 0;
  if (address == 0) return false;
  for (uint32_t back = 1; back <= TARN__FREED; back++) {
    uint32_t at = (freed->next - back) % TARN__FREED;
    if (freed->addresses[at] != address) continue;
    *out_tag = freed->tags[at];
    return true;
  }
  return false;
}
