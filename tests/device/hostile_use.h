// hostile_use.h - what a hostile plug-in was used for, and how it went.
#ifndef TARN_TESTS_DEVICE_HOSTILE_USE_H_
#define TARN_TESTS_DEVICE_HOSTILE_USE_H_

#include "tarn/device.h"

// Where in the use of a plug-in something was refused first.
typedef enum stage {
  SURVIVES,  // nowhere
  LOAD,
  LIST,
  OPEN,
  QUERY,
  MEMORY,
  ALLOCATE,
  COPY,
  SET,
  P2P,
  STREAM,
  QUEUED,  // copies on a stream
  CALLBACK,
  EVENT,
  WAIT,  // for streams, events, the device
  ALIGNED,
  ORDERED,  // in the order of a stream
  KNOWN,    // registering, querying
  RANGE,
  ROWS,
  POOL,
  DESTROY,
  FREE,
  CLOSE,
  LEAK,  // it was closed, but the library still holds something
} stage;

typedef struct outcome {
  stage stage;
  tarn_status status;  // of what was refused first
  char text[512];      // and its text
  char log[4096];      // all that was logged
  tarn_device_info info[2];
  size_t total[2];
  size_t available[2];
  tarn_addr address;  // of the first allocation
  tarn_pointer_info found;
  size_t callbacks;
  size_t pending;   // queries that said so
  size_t rounds;    // how often all was done
  bool bytes_came;  // what was copied in came out again, on every way
  long live;        // what the plug-in still holds
} outcome;

// How it becomes known to the library.
typedef enum entrance {
  LOADED,
  REGISTERED,  // what it exports, as a part of the program would be
  ENTRANCES,
} entrance;

// Takes in the hostile plug-in with |recipe| in the environment, uses it twice
// for all there is to do, and fills |*out|. Never fails itself.
void hostile_use(const char *recipe, entrance by, outcome *out);

const char *hostile_stage_name(stage where);

#endif  // TARN_TESTS_DEVICE_HOSTILE_USE_H_
