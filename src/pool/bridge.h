// bridge.h - strategies of strategy.h as this room sees them.
#ifndef TARN_POOL_BRIDGE_H_
#define TARN_POOL_BRIDGE_H_

#include "pool/strategy.h"
#include "tarn/strategy.h"

// Stays where it is: strategies point to its type.
typedef struct tarn__pool_bridged {
  tarn__pool_strategy_type type;  // the first member
  tarn_strategy table;
} tarn__pool_bridged;

// Makes both of a table that has all it needs. False: its state is larger than
// can be.
TARN_MUST_CHECK bool tarn__bridge_build(tarn__pool_bridged *bridged,
                                        const tarn_strategy *table);

#endif  // TARN_POOL_BRIDGE_H_
