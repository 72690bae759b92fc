// log_events.h - events of Tarn's own format into a history.
#ifndef TARN_TRACE_LOG_EVENTS_H_
#define TARN_TRACE_LOG_EVENTS_H_

#include "trace/log_define.h"
#include "trace/ranges.h"

typedef struct tarn__trace_log_events {
  const tarn__trace_input *input;
  tarn__trace_log_names *names;
  tarn__trace_history *history;
  tarn__trace_ranges mapped;  // what MAP gave; the value is the block
  // Events are missing, so that a birth where a block lives tells that its
  // death is among them.
  bool lenient;
} tarn__trace_log_events;

void tarn__log_events_init(tarn__trace_log_events *events,
                           tarn__trace_log_names *names);
void tarn__log_events_deinit(tarn__trace_log_events *events);

// Adds the event, old block or segment in |record|.
//
// TARN_E_CORRUPT  as tarn__history_event; an unmapping of 0 bytes or beyond the
//                 address space.
// TARN_E_NOMEM    the budget or the host allocator refused.
TARN_MUST_CHECK tarn_status tarn__log_events_add(
    tarn__trace_log_events *events, const tarn__trace_log_record *record);

#endif  // TARN_TRACE_LOG_EVENTS_H_
