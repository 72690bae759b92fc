// model_lookup.h - how long it takes to find a tensor by its name.
#ifndef TARN_BENCH_MODEL_LOOKUP_H_
#define TARN_BENCH_MODEL_LOOKUP_H_

#include "tarn/tarn.h"

// The median over rounds of the CPU time of one tarn_model_param among |names|
// parameters with names such as "layer17.attention.query.weight", asked for in
// an order without a pattern.
tarn_status model_lookup_measure(size_t names, double *out_ns);

#endif  // TARN_BENCH_MODEL_LOOKUP_H_
