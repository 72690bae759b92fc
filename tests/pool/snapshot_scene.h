// snapshot_scene.h - a pool of each strategy on each device, and a
// program that uses it.
#ifndef TARN_TESTS_POOL_SNAPSHOT_SCENE_H_
#define TARN_TESTS_POOL_SNAPSHOT_SCENE_H_

#include "kit.h"
#include "support/snapshot_check.h"
#include "tarn/account.h"
#include "tarn/strategy.h"

enum { BLOCKS = 48, STEPS = 600 };

// --- a program -------------------------------------------------------------

typedef struct program {
  tarn_pool *pool;
  tarn_stream *streams[2];  // the first is the host
  tarn_block blocks[BLOCKS];
  uint64_t state;
} program;

static inline size_t below(program *p, size_t limit) {
  p->state = p->state * 6364136223846793005u + 1442695040888963407u;
  return (size_t)(p->state >> 33) % limit;
}

static inline void begin_program(program *p, tarn_pool *pool,
                                 tarn_stream *stream) {
  *p = (program){.pool = pool, .streams = {NULL, stream}, .state = 42};
}

static inline void step(program *p) {
  tarn_block *block = &p->blocks[below(p, BLOCKS)];
  tarn_stream *stream = p->streams[below(p, 2)];
  if (block->pool == NULL) {
    size_t size = 1 + below(p, (size_t)1 << (4 + below(p, 17)));
    require(alloc_tagged(p->pool, size, 0, stream, tags[below(p, TAGS)],
                         block) == TARN_OK);
  } else if (below(p, 5) == 0) {
    // Where it cannot grow it stays as it is.
    require(tarn_pool_resize(block, 1 + below(p, block->size * 2), stream) >=
            TARN_OK);
  } else {
    require(tarn_pool_free(block, stream) == TARN_OK);
    *block = (tarn_block){0};
  }
}

static inline void run(program *p, size_t steps) {
  while (steps-- > 0)
    step(p);
}

static inline void end_program(program *p) {
  for (size_t i = 0; i < BLOCKS; i++) {
    if (p->blocks[i].pool != NULL) give_on(p->blocks[i], NULL);
  }
}

typedef struct scene {
  tarn_device *device;
  tarn_stream *stream;
  tarn_pool *pool;
} scene;

static inline const char *strategy_at(int index) {
  return any_strategy(index / TEST_DEVICES);
}

static inline void close_scene(void *context) {
  const scene *s = context;
  assert_ok(tarn__front_check(s->pool));
  assert_ok(tarn_pool_destroy(s->pool));
  assert_ok(tarn_stream_destroy(s->stream));
}

// Whether that strategy can be had on that device; then until the end of the
// test.
static inline bool open_scene(scene *s, int index) {
  *s = (scene){NULL, NULL, NULL};
  name_tags();
  s->device = open_device(test_devices[index % TEST_DEVICES]);
  tarn_pool_options options = {.struct_size = sizeof options,
                               .strategy = strategy_at(index)};
  tarn_status status =
      tarn_pool_create(tarn_place_on(s->device), &options, &s->pool);
  if (status == TARN_OK) {
    assert_ok(tarn_stream_create(s->device, &s->stream));
    static scene opened;
    opened = *s;
    after_test(close_scene, &opened);
    return true;
  }
  assert_status(status, TARN_E_UNSUPPORTED);
  return false;
}

#define SCENES_ON_DEVICES (ALL_STRATEGIES * TEST_DEVICES)

#endif  // TARN_TESTS_POOL_SNAPSHOT_SCENE_H_
