// snapshot.h - snapshots of pools, for the files that take them by call, by
// signal, and when there is no room.
#ifndef TARN_POOL_SNAPSHOT_H_
#define TARN_POOL_SNAPSHOT_H_

#include "pool/picture.h"
#include "tarn/snapshot.h"

// Whether snapshots can be written in that format and to such a path, which
// |numbered| has to have a %n: several pools are not to have one file.
//
// TARN_E_INVALID.
TARN_MUST_CHECK tarn_status tarn__snapshot_check(tarn_trace_format format,
                                                 const char *path,
                                                 bool numbered);

// Writes what |picture| shows; format and path were checked. No lock is held.
TARN_MUST_CHECK tarn_status tarn__snapshot_write_picture(
    tarn__pool_picture *picture, tarn_trace_format format, const char *path);

#endif  // TARN_POOL_SNAPSHOT_H_
