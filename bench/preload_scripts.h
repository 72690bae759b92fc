// preload_scripts.h - the files of bench/preload, which the build puts into the
// tool.
#ifndef TARN_BENCH_PRELOAD_SCRIPTS_H_
#define TARN_BENCH_PRELOAD_SCRIPTS_H_

extern const char embedded_preload_arrays_py[];
extern const char embedded_preload_train_py[];

#endif  // TARN_BENCH_PRELOAD_SCRIPTS_H_
