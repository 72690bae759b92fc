// synced_play.h - random operations on synced buffers, each done to the real
// ones and to the model (synced_model.h) on the ground of synced_ground.h.
#ifndef TARN_TESTS_SYNCED_SYNCED_PLAY_H_
#define TARN_TESTS_SYNCED_SYNCED_PLAY_H_

#include "support/synced_ground.h"

typedef enum sp_kind {
  SP_CREATE,
  SP_VIEW,
  SP_DESTROY,
  SP_BEGIN,
  SP_END,
  SP_CANCEL,
  SP_PREFETCH,
  SP_PUSH_PULL,
  SP_EVICT,
  SP_INVALIDATE,
  SP_WRAP,
  SP_SET,
  SP_DATA,
  SP_ASYNC_PUSH,
  SP_SUSPEND,
  SP_QUERY,
  SP_HEAD,
  SP_TRAFFIC,
  SP_REPORT,
  SP_STREAM,
  SP_WAIT,
  SP_MISUSE,
  SP_KINDS,
} sp_kind;

// How many operations there were, and how many of them answered an error that
// they had to answer.
typedef struct sp_counts {
  unsigned long done[SP_KINDS];
  unsigned long refused[SP_KINDS];
} sp_counts;

extern sp_counts sp_seen;

const char *sp_kind_name(sp_kind kind);

// One random operation.
void sp_step(void);

// Ends accesses, buffers and views in random order; nothing is left then.
void sp_finish(void);

#endif  // TARN_TESTS_SYNCED_SYNCED_PLAY_H_
