// offer.h - what a plug-in's InitPlugin does with what the host offers.
#ifndef TARN_PLUGINS_COMMON_OFFER_H_
#define TARN_PLUGINS_COMMON_OFFER_H_

#include "tarn/device_abi.h"

// Fills |params| and its table from |table|, as version 0.1.1 of the ABI. A
// host that cannot be served finds no device_type, which it must refuse.
// |type| and |sub_type| live as long as the plug-in.
void tarn__common_offer(CustomRuntimeParams *params,
                        const C_DeviceInterface *table, char *type,
                        char *sub_type);

#endif  // TARN_PLUGINS_COMMON_OFFER_H_
