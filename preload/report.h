// report.h - what the pool has done for the program, when that exits.
#ifndef TARN_PRELOAD_REPORT_H_
#define TARN_PRELOAD_REPORT_H_

#include <tarn/pool.h>

// Counts a request that Tarn left to the C library.
void report_left(void);

// In a child of fork: what was counted before is the parent's. NULL is allowed.
void report_forget(tarn_pool *pool);

// Writes the report, where one is wanted. NULL: no request was large.
void report_write(tarn_pool *pool);

#endif  // TARN_PRELOAD_REPORT_H_
