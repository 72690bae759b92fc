// rows.h - gather and scatter rows of a table by index, on a device.
//
//   const tarn_addr chunks[] = {table};           // 1000 rows of 16 floats
//   const size_t offsets[] = {0, 1000 * 64};
//   const tarn_rows rows = {.struct_size = sizeof rows,
//                           .table = {chunks, offsets, 1},
//                           .table_dtype = TARN_DTYPE_F32,
//                           .table_count = 1000,
//                           .width = 16,
//                           .dense = batch,
//                           .dense_dtype = TARN_DTYPE_F32,
//                           .indices = indices,
//                           .index_dtype = TARN_DTYPE_I64,
//                           .index_count = 32};
//   tarn_rows_gather(device, &rows, stream);  // batch[i] = table[indices[i]]
//
// A device with functions of its own (tarn_device_info.extensions has
// TARN_EXTENSION_GATHER, _SCATTER, _SCATTER_ADD) queues them on the stream. For
// other devices the library copies row by row within the device. That is slow
// and done when the call returns, with the same result.
//
// tarn_rows (base.h) defines what a call does. Table, dense rows and indices
// are in memory that |device| reaches: its own memory, ranges, unified memory,
// host memory that it has pinned or registered. If the library copies, they
// must be in memory that copies treat as the device's own, which includes host
// memory only on host-accessible devices.
//
// Lifetime: **with a stream, table, dense rows and indices must stay, and
//           indices and source rows unchanged, until the work is done**, like
//           the ends of a queued copy. |rows| itself is needed during the call
//           only.
// Threads:  every function from any thread; other threads must not access the
//           rows meanwhile. On devices whose rows the host moves, as cpu, up to
//           tarn_rows.threads threads work at a time, including the caller's or
//           the stream's. They exist during the call only. The system may give
//           fewer, and small calls use fewer; the result is the same. Other
//           devices ignore the field.
// Cost:     a copy of the rows, and reading the indices. If the library copies,
//           it waits for the stream, reads the indices through the staging ring
//           and makes one copy for each row. To convert or to add, it makes two
//           copies and a pass on the host. It never allocates memory of the
//           size of the table or of the dense rows.
// Errors:   TARN_E_INVALID  a dtype, stride, reference or flag is invalid, or
//                           an index is out of range: the text has its value
//                           and position. With a stream, a device may find a
//                           bad index later and fail the stream instead
//                           (TARN_E_DEVICE, same text). The rows written are
//                           then undefined; if the library copies, none are.
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
