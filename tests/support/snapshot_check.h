// snapshot_check.h - traces of pools hold what the pool's own statistics and
// events say.
#ifndef TARN_TESTS_SUPPORT_SNAPSHOT_CHECK_H_
#define TARN_TESTS_SUPPORT_SNAPSHOT_CHECK_H_

#include "tarn/snapshot.h"

enum { TAGS = 4 };
extern tarn_tag tags[TAGS];  // the first is "untagged"

void name_tags(void);

tarn_trace *trace_of(tarn_pool *pool);

// All of the below, but for the history; the ring's events from number |from|
// on are the trace's. Written to files, it comes back.
void check_all(tarn_pool *pool, uint64_t from);

// What is out, in all and by tag, and what is held; not the events.
void check_state(tarn_pool *pool, const tarn_trace *trace);

// No two segments share a byte.
void check_no_overlap(const tarn_trace *trace);

// The events tell, address by address, how an empty pool came to hold what it
// holds at the end.
void check_history(const tarn_trace *trace);

#endif  // TARN_TESTS_SUPPORT_SNAPSHOT_CHECK_H_
