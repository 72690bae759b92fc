// synced_scene.h - what the operations of synced_play.h share: the buffers that
// there are, and chance.
#ifndef TARN_TESTS_SYNCED_SYNCED_SCENE_H_
#define TARN_TESTS_SYNCED_SYNCED_SCENE_H_

#include <stdio.h>

#include "synced_outside.h"
#include "synced_play.h"

enum { SP_ROOTS = 4 };

extern sm_root sp_roots[SP_ROOTS];

// Says what is being done, for the text of a failure.
#define SP_NOW(...) snprintf(sm_now_at.what, sizeof sm_now_at.what, __VA_ARGS__)

typedef struct sp_range {
  size_t offset;  // in the handle
  size_t size;
  size_t asked;  // the same, or TARN_ALL
  size_t at;     // in the whole
} sp_range;

// NULL: none this time.
sm_root *sp_some_root(void);
sm_handle *sp_some_handle(sm_root *r);
sp_range sp_some_range(const sm_handle *h);
unsigned sp_some_place(void);

// A stream, mostly of the place's device; -1: none.
int sp_some_stream(unsigned place);
tarn_stream *sp_stream_at(int stream);

void sp_some_bytes(unsigned char *bytes, size_t size);

bool sp_is_whole(const sm_root *r, const sm_handle *h);
size_t sp_count_handles(const sm_root *r);

// Counts what an access finds valid.
void sp_count_kept(sm_root *r, unsigned place, sp_range g, uint32_t mode);

// Ends all accesses that are open.
void sp_quiet(sm_root *r);

// And then writes all of |h| at |place|.
void sp_fill(sm_root *r, sm_handle *h, unsigned place);

// Of the whole buffer, if there is one.
sm_handle *sp_whole_handle(sm_root *r);

void sp_note(sp_kind kind, tarn_status expected);

void sp_play_prefetch(sm_root *r);
void sp_play_push_pull(sm_root *r);
void sp_play_evict(sm_root *r);
void sp_play_invalidate(sm_root *r);
void sp_play_wrap(sm_root *r);
void sp_play_set(sm_root *r);
void sp_play_data(sm_root *r);
void sp_play_async_push(sm_root *r);
void sp_play_suspend(sm_root *r);
void sp_play_query(sm_root *r);
void sp_play_head(sm_root *r);
void sp_play_traffic(sm_root *r);
void sp_play_misuse(sm_root *r);
void sp_play_report(void);
void sp_play_stream(void);
void sp_play_wait(void);

#endif  // TARN_TESTS_SYNCED_SYNCED_SCENE_H_
