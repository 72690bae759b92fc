// workload.h - the histories that Tarn makes itself.
#ifndef TARN_TRACE_WORKLOAD_H_
#define TARN_TRACE_WORKLOAD_H_

#include "trace/layers.h"

// Nets write themselves down on a tape and return what is asked of them.
tarn__trace_tape_tensor tarn__net_bert_layer(tarn__trace_tape *tape,
                                             size_t batch);
tarn__trace_tape_tensor tarn__net_resnet50(tarn__trace_tape *tape,
                                           size_t batch);
tarn__trace_tape_tensor tarn__net_decode(tarn__trace_tape *tape, size_t batch);

// Sizes and lifetimes out of a fixed seed.
TARN_MUST_CHECK tarn_status tarn__random_history(tarn__trace_history *history,
                                                 const char *workload);

#endif  // TARN_TRACE_WORKLOAD_H_
