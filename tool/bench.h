// bench.h - the subjects of `tarn bench`, each of which is a verb.
#ifndef TARN_TOOL_BENCH_H_
#define TARN_TOOL_BENCH_H_

#include "kit/tool.h"

extern const tool_verb bench_of_blocks;
extern const tool_verb bench_of_counters;
extern const tool_verb bench_of_devices;
extern const tool_verb bench_of_models;
extern const tool_verb bench_of_plans;
extern const tool_verb bench_of_pools;
extern const tool_verb bench_of_preloads;
extern const tool_verb bench_of_recorder;
extern const tool_verb bench_of_synced;
extern const tool_verb bench_of_tables;
extern const tool_verb bench_of_views;
extern const tool_verb bench_of_wholes;
extern const tool_verb bench_of_why;

#endif  // TARN_TOOL_BENCH_H_
