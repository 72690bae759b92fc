// rows.h - gather and scatter rows of a table by index, on a device.
//
// A device with functions of its own (tarn_device_info.extensions has
// TARN_EXTENSION_GATHER, _SCATTER, _SCATTER_ADD) makes them on the stream. For
// all others the library copies row by row within the device: slow, and done
// when the call returns, but the same result.
//
// What a call does stands at tarn_rows in base.h. The table, the dense rows
// and the indices are in memory that |device| reaches: its own, ranges,
// unified memory, host memory that it has pinned or registered. Where the
// library stands in they are in what its copies take for the device's own
// memory: of host memory, that can be told of host-accessible devices only.
//
// Lifetime: **with a stream, table, dense rows and indices must stay, and
//           indices and source rows unchanged, until the work is done**, like
//           the ends of a queued copy. |rows| itself is for the call only.
// Threads:  every function from any thread; nobody else may touch the rows.
//           tarn_rows.threads lets devices whose rows the host moves, as cpu,
//           use that many at a time, the caller's or the stream's among them.
//           They are made for the call and gone with it; where the system has
//           none to give, or there is little to do, fewer do it. The result is
//           the same. Others, and the stand-in, do not look at it.
// Cost:     a copy of the rows, and reading the indices. The stand-in waits for
//           the stream, reads the indices through the staging ring and makes
//           one copy a row, or two and a pass of the processor where it has to
//           convert or to add; it needs no memory of the size of the table or
//           of the dense block.
// Errors:   TARN_E_INVALID  a dtype, stride, reference or flag is not possible,
//                           or an index is out of range: the text names its
//                           value and its position. With a stream, a device
//                           that finds the index later fails the stream
//                           instead (TARN_E_DEVICE, the same text). The rows
//                           written are undefined then; the stand-in writes
//                           none.
//           TARN_E_NOMEM, TARN_E_DEVICE, TARN_E_STATE  as for copies.
#ifndef TARN_ROWS_H_
#define TARN_ROWS_H_

#include "tarn/device.h"

#ifdef __cplusplus
extern "C" {
#endif

// dense[i] = table[indices[i]]
TARN_API TARN_MUST_CHECK tarn_status tarn_rows_gather(tarn_device *device,
                                                      const tarn_rows *rows,
                                                      tarn_stream *stream);

// table[indices[i]] = dense[i]
TARN_API TARN_MUST_CHECK tarn_status tarn_rows_scatter(tarn_device *device,
                                                       const tarn_rows *rows,
                                                       tarn_stream *stream);

// table[indices[i]] += dense[i], in the table's dtype
TARN_API TARN_MUST_CHECK tarn_status tarn_rows_scatter_add(
    tarn_device *device, const tarn_rows *rows, tarn_stream *stream);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_ROWS_H_
