// registry.h - all buffers that there are now, the oldest first.
//
// One lock, taken when a buffer is made or ends and when all are asked for:
// never by an access. Nothing else is locked or called while it is held.
#ifndef TARN_SYNCED_REGISTRY_H_
#define TARN_SYNCED_REGISTRY_H_

#include "synced/core.h"

// A number that no other buffer of this process has.
uint64_t tarn__registry_number(void);

void tarn__registry_add(tarn__synced_core *core);

// Waits until nobody is shown it any more.
void tarn__registry_remove(tarn__synced_core *core);

// Calls |visit| for each of this process, without a lock; the one that it is
// called for does not end meanwhile, so |visit| must not end it. Stops at the
// first status that is not TARN_OK and returns it.
typedef tarn_status tarn__synced_registry_visit(void *context,
                                                tarn__synced_core *core);
TARN_MUST_CHECK tarn_status
tarn__registry_each(tarn__synced_registry_visit *visit, void *context);

#endif  // TARN_SYNCED_REGISTRY_H_
