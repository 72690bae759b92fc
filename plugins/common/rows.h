// rows.h - gather and scatter for devices whose memory this processor reaches.
#ifndef TARN_PLUGINS_COMMON_ROWS_H_
#define TARN_PLUGINS_COMMON_ROWS_H_

#include "base/rows.h"
#include "common/queue.h"
#include "tarn/base.h"

// Where the bytes at |addr| are: the first |*out_size| of the |size| bytes
// wanted, at least one, stand together there. NULL: they are not the device's.
typedef unsigned char *tarn__common_rows_reach(void *context, tarn_addr addr,
                                               size_t size, size_t *out_size);

// A copy of |rows| and of the arrays of its reference in one block of host
// memory. Free it with tarn__host_free and |*out_size|. NULL if there is no
// memory.
tarn_rows *tarn__rows_copy(const tarn_rows *rows, size_t *out_size);

// Queues |op|, which gets a copy of |rows| as |owned|. C_FAILED: no memory.
C_Status tarn__rows_submit(C_Stream stream, tarn__common_queue_op *op,
                           const tarn_rows *rows);

// Whether |rows| has flags that this plug-in does not know, because it is older
// than the library.
static inline bool tarn__rows_are_newer(const tarn_rows *rows) {
  uint64_t known = TARN_ROWS_SKIP_BAD | TARN_ROWS_PAST_CACHES;
  return (rows->flags & ~known) != 0;
}

// Does it with |rows| that were checked (base/rows.h), which the device room
// does before it calls a plug-in. |reach| NULL: addresses are pointers. |text|
// says what was wrong, and is "" if nothing was.
//
// Threads:  without |reach|, up to |rows->threads|, which are joined before it
//           returns. Equal indices are scattered and added in their order.
// Memory:   without |reach|, a quarter of a MiB for each thread where rows are
//           many and small; it does without if there is none.
// TARN_E_INVALID  an index is out of range, an address is not reached, a row
//                 lies in two chunks, or bool is to be added. Rows may have
//                 been moved.
TARN_MUST_CHECK tarn_status tarn__rows_run(tarn__rows_action action,
                                           const tarn_rows *rows,
                                           tarn__common_rows_reach *reach,
                                           void *context, char *text,
                                           size_t text_size);

#endif  // TARN_PLUGINS_COMMON_ROWS_H_
