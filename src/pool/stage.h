// stage.h - memory in which the blocks of one step have their places for good.
//
// What the recorder has found to repeat is laid out once (layout.h), in one
// stretch of the strategy's memory. From then on a request that comes when it
// is expected gets the place that is kept for it, and nothing is searched, cut
// or joined:
//
//   events   a+ b+ b- c+ a- c- │ a+ ...
//                 ▲ at
//   memory  [ a     | b        ]
//           [       | c   |    ]       b and c are never there together
//
// A request that does not come as expected is served by the strategy, and the
// step goes on where it was left when what was expected comes. So at any time
// the blocks that are out are among those that the step would have there, and
// none of these overlap. A free may come early, too: then the step does not
// wait for it.
//
// A stage can be struck at any time: what is out becomes blocks of the
// strategy's own, what is not a hole.
//
// All blocks of a stage are of one stream, and are freed on it or by the host.
// Not locked: the pool's lock guards it.
#ifndef TARN_POOL_STAGE_H_
#define TARN_POOL_STAGE_H_

#include "pool/piece.h"
#include "pool/recorder.h"

// Two of them share a line of the cache.
typedef struct tarn__stage_event {
  size_t size;      // as asked for
  uint64_t serial;  // of the stream; of a free with the bit below
  tarn__piece *piece;
  uint32_t align;  // as asked for
  uint16_t tag;
  bool is_plain;  // a request of the host's, of any alignment, untagged
} tarn__stage_event;

// No stream has it.
#define TARN__STAGE_FREE (UINT64_C(1) << 63)

static inline bool tarn__stage_is_free(const tarn__stage_event *event) {
  return (event->serial & TARN__STAGE_FREE) != 0;
}

typedef struct tarn__stage {
  tarn__strategy *owner;
  void *home;  // the owner's own
  uint64_t serial;
  tarn_addr address;
  size_t size;
  tarn__piece **pieces;  // by address
  size_t count;
  tarn__stage_event *events;  // a step, and one behind it that never comes
  size_t event_count;
  uint64_t rounds;  // steps that were played to their end
} tarn__stage;

// Where the step stands. What was played is put on the books later, all at
// once: tarn__play_settle.
typedef struct tarn__play {
  const tarn__stage_event *at;       // what is expected next; never NULL
  const tarn__stage_event *settled;  // what was played from here on ...
  uint64_t turns;      // ... and through the end so often is not on the books
  size_t missed;       // requests that were not expected, of this step
  tarn__stage *stage;  // NULL: none is set up, and |at| never comes
} tarn__play;

extern const tarn__stage_event tarn__never_comes;

// What stands at the start of the stage's piece at |address|: the one that is
// out, or was last; NULL if none starts there.
tarn__piece *tarn__stage_find(const tarn__stage *stage, tarn_addr address);

// The piece that is out and has |address| in it; NULL if there is none.
tarn__piece *tarn__stage_around(const tarn__stage *stage, tarn_addr address);

// Frees what a stage has on the host, where nothing else is to be done; NULL:
// nothing.
void tarn__stage_forget(tarn__stage *stage);

// Adds the pieces that are not out to |*idle|, and says what is wrong.
TARN_MUST_CHECK tarn_status tarn__stage_check(const tarn__play *play,
                                              size_t *idle);

// Whether |piece| is one of the stage's.
static inline bool tarn__stage_has(const tarn__stage *stage,
                                   const tarn__piece *piece) {
  return stage != NULL && piece->home == stage;
}

// Lays out the step that the recorder has just heard, in memory of the present
// strategy, which may take the lock away meanwhile. If it cannot be had, or the
// step has too little that can be laid out, nothing changes.
void tarn__stage_set_up(tarn_pool *pool);

// Makes the pieces that are out the strategy's own, and the stage is gone.
// The strategy's memory is asked for nothing, and this cannot fail. Where there
// is none, what was learned towards one is forgotten all the same.
void tarn__stage_strike(tarn_pool *pool);

// Puts on the books what was played since the last time.
void tarn__play_settle(tarn_pool *pool);

// If the step is at its end, begins it anew. False: it is not.
bool tarn__play_turn(tarn__play *play);

// What is expected next and needs no doing, since it came early, is passed
// over. What was played is on the books.
void tarn__play_skip(tarn__play *play);

// A request came that was not expected. Too many of them: the program does
// something else now, and the stage is struck.
void tarn__play_miss(tarn_pool *pool);

#endif  // TARN_POOL_STAGE_H_
