// core.h - what a buffer and all of its views have in common.
//
// Where an operation needs what may take long (memory, copies, waits), it goes
// in three steps: with the gate held it plans, and enters what it is about to
// do into the map, so that others stay away from those bytes; without the gate
// it does it; with the gate again it commits, or takes it back.
//
//   begin ──► plan ──(gate left)──► wait, copy ──(gate)──► commit ──► open
//               │                        │ failed: back, and again or error
//               └─ others in the way: TARN_E_STATE, or sleep on |changed|
#ifndef TARN_SYNCED_CORE_H_
#define TARN_SYNCED_CORE_H_

#include <pthread.h>

#include "base/gate.h"
#include "base/os.h"
#include "synced/lanes.h"
#include "synced/routes.h"
#include "synced/spans.h"
#include "tarn/synced.h"
#include "tarn/traffic.h"

enum { TARN__MOST_SIDES = 64 };

// One place of a buffer, and its memory there.
typedef struct tarn__side {
  tarn__end end;                 // address 0: no memory yet
  tarn_block block;              // of a pool; pool NULL: outside memory or none
  tarn_synced_deleter *deleter;  // of outside memory
  void *context;
  uint32_t wrap;      // TARN_WRAP_... of outside memory
  bool outside;       // it has outside memory
  bool protect;       // its pages are protected as accesses allow
  bool busy;          // a thread gets, moves or gives its memory
  uint32_t accesses;  // that are open here
} tarn__side;

// Counts of one pair of sides; see tarn_traffic.
typedef struct tarn__counts {
  uint64_t copies, moved, valid, discarded, outside, stalls, stalled_ns;
} tarn__counts;

typedef struct tarn__core {
  tarn__gate gate;         // guards all that follows, but what never changes
  pthread_cond_t changed;  // with the gate: something that was busy is not
  size_t sleepers;         // threads that wait for that
  uint32_t generation;     // of forks; never changes, nor do the next seven
  uint64_t id;
  size_t size;
  size_t align;
  tarn_tag tag;
  tarn_device *device;  // NULL: none
  char *name;           // NULL: none
  bool protect;
  size_t handles;      // buffers and views that are not destroyed
  tarn_list accesses;  // open ones, by their nodes, oldest first
  tarn__spans spans;
  tarn__lanes lanes;
  uint64_t errands;   // numbers given to errands so far
  tarn__side *sides;  // |side_room| of them; moves when it grows
  uint32_t side_count;
  uint32_t side_room;
  tarn__counts *counts;  // side_room x side_room: from * side_room + to
  tarn_list all;         // in the list of all buffers; guarded by its lock
} tarn__core;

struct tarn_synced {
  tarn__core *core;
  size_t offset;
  size_t size;
  size_t accesses;  // begun through it and open; guarded by the gate
};

#endif  // TARN_SYNCED_CORE_H_
