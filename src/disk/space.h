// space.h - which places of a file of blocks are in use, and by what.
//
//                  take              turn            drop            turn
//   FREE ───────────────► FRESH ───────────► KEPT ─────────► DROPPED ────┐
//    ▲  ◄───────────────              drop                               ▼
//    └─────────────────────────────────────── turn ───────────────────── OLD
//
//   FRESH    written since the newest epoch, and in no epoch
//   KEPT     in the newest epoch, perhaps in the one before, and in use
//   DROPPED  in the newest epoch; something else stands for it by now
//   OLD      in the epoch before the newest only
//
// A place that is not FREE is never written again, so that both epochs stay as
// they were. An epoch ends (turn) when the next one is on the disk.
#ifndef TARN_DISK_SPACE_H_
#define TARN_DISK_SPACE_H_

#include "tarn/base.h"

typedef enum tarn__disk_state {
  TARN__DISK_FREE,
  TARN__DISK_FRESH,
  TARN__DISK_KEPT,
  TARN__DISK_DROPPED,
  TARN__DISK_OLD,
  TARN__DISK_STATES,
} tarn__disk_state;

typedef struct tarn__disk_space {
  unsigned char *states;  // of place i: states[i]; 0 is none
  size_t most;            // places that there can be
  size_t places;          // of the file as it is
  size_t free;            // of them
  size_t next;            // where to look for one
} tarn__disk_space;

// TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__space_init(tarn__disk_space *space,
                                             size_t most);
void tarn__space_deinit(tarn__disk_space *space);

// The file has |count| more places, all free; no more than |most| in all.
void tarn__space_extend(tarn__disk_space *space, size_t count);

// A free place, which is FRESH then; 0: there is none.
//
// Cost: places that are written one after the other ascend, so that the search
//       goes once around in the time in which all are taken.
uint32_t tarn__space_take(tarn__disk_space *space);

// Nothing stands at |place|, FRESH or KEPT, any more.
void tarn__space_drop(tarn__disk_space *space, uint32_t place);

// What is there becomes the newest epoch.
//
// Cost: a byte of memory for each place.
void tarn__space_turn(tarn__disk_space *space);

// While a file is opened: |place| is in use by the newest epoch (KEPT), or by
// the one before (OLD). False: there is no such place, or the same epoch uses
// it already, as far as that can be seen.
TARN_MUST_CHECK bool tarn__space_note(tarn__disk_space *space, uint32_t place,
                                      tarn__disk_state state);

// The places that only the epoch before the newest has are free.
void tarn__space_forget_old(tarn__disk_space *space);

#endif  // TARN_DISK_SPACE_H_
