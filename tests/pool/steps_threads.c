// Steps of several threads: one that waits for another, as PyTorch's forward
// thread waits for the one that goes backward; threads that go on at the same
// time; blocks that another thread frees. What a block has at both ends may not
// change while it is live.
#include <sched.h>
#include <semaphore.h>

#include "arena_kit.h"
#include "support/effort.h"
#include "support/threads.h"

enum {
  LAYERS = 48,
  STEPS = 60,
  LAST_STEPS = 20,  // of them: all is learned by then
  RACING = 2,
  QUEUE = 24,
};

static arena_place at;

typedef struct held {
  tarn_block block;
  size_t size;
  unsigned char mark;
} held;

static unsigned char next_mark(void) {
  static _Thread_local unsigned char mark;
  return ++mark;
}

static bool is_planned(const tarn_block *block) {
  tarn__front_enter(at.pool);
  bool planned = tarn__pieces_at(&at.pool->pieces, block->id)->planned;
  tarn__front_leave(at.pool);
  return planned;
}

// Whether a step served it.
static bool take_held(held *h, size_t size) {
  expect(tarn_pool_alloc(at.pool, size, 0, NULL, &h->block) == TARN_OK);
  h->size = size;
  h->mark = next_mark();
  unsigned char *bytes = bytes_of(h->block);
  bytes[0] = bytes[size / 2] = bytes[size - 1] = h->mark;
  return is_planned(&h->block);
}

static void give_held(const held *h) {
  const unsigned char *bytes = bytes_of(h->block);
  expect(bytes[0] == h->mark && bytes[h->size / 2] == h->mark &&
         bytes[h->size - 1] == h->mark);
  expect(tarn_pool_free(&h->block, NULL) == TARN_OK);
}

static void open_host(const char *strategy) {
  at = open_arena_of(ARENA_CAPACITY, "cpu:0", strategy);
}

static void check_end(void) {
  assert_as_expected();
  assert_ok(tarn__front_check(at.pool));
  ck_assert_uint_eq(stats_of(at.pool).live_blocks, 0);
}

static size_t size_of(size_t i) {
  return (i % 7 + 1) * 5000 + i * 64;
}

// --- forward and backward ----------------------------------------------------
//
// The forward thread keeps what each layer has made, and waits. The other goes
// back: it makes gradients, and frees what the first has kept. The gradients
// are freed by the first, in the next step.

static struct {
  sem_t forward_is_done;
  sem_t backward_is_done;
  held kept[LAYERS];
  held gradients[LAYERS];
  size_t steps;
  size_t planned;  // of the last steps
  size_t late;     // blocks that are freed while the first goes on
} autograd;

static void *go_back(void *unused) {
  (void)unused;
  for (size_t step = 0; step < autograd.steps; step++) {
    sem_wait(&autograd.forward_is_done);
    held kept[LAYERS];
    memcpy(kept, autograd.kept, sizeof kept);
    bool counts = step + LAST_STEPS >= autograd.steps;
    for (size_t i = LAYERS; i-- > 0;) {
      held scratch;
      size_t planned = take_held(&scratch, size_of(i) * 2);
      planned += take_held(&autograd.gradients[i], size_of(i) / 4);
      autograd.planned += counts ? planned : 0;
      give_held(&scratch);
      if (i >= autograd.late) give_held(&kept[i]);
    }
    sem_post(&autograd.backward_is_done);
    for (size_t i = autograd.late; i-- > 0;)
      give_held(&kept[i]);
  }
  return NULL;
}

static void go_forward(size_t step) {
  bool counts = step + LAST_STEPS >= autograd.steps;
  for (size_t i = 0; i < LAYERS; i++) {
    held scratch;
    size_t planned = take_held(&scratch, size_of(i + 3));
    planned += take_held(&autograd.kept[i], size_of(i));
    autograd.planned += counts ? planned : 0;
    give_held(&scratch);
  }
}

static void train(size_t late) {
  autograd.steps = STEPS;
  autograd.late = late;
  sem_init(&autograd.forward_is_done, 0, 0);
  sem_init(&autograd.backward_is_done, 0, 0);
  pthread_t backward = start_thread(go_back, NULL);
  for (size_t step = 0; step < STEPS; step++) {
    go_forward(step);
    sem_post(&autograd.forward_is_done);
    sem_wait(&autograd.backward_is_done);
    for (size_t i = 0; i < LAYERS; i++)
      give_held(&autograd.gradients[i]);
  }
  pthread_join(backward, NULL);
}

// |beside|: blocks of a step that may live longer than one.
static void check_trained(size_t beside) {
  check_end();
  const tarn__pool_steps *steps = &at.pool->steps;
  ck_assert(!at.pool->threads.apart);
  ck_assert_uint_ge(steps->count, 1);
  ck_assert_uint_ge(steps->layouts[0]->count, 4 * LAYERS - beside);
}

TEST(a_thread_that_waits_for_another_makes_one_step_with_it) {
  open_host("arena_pool");
  train(0);
  check_trained(0);
  ck_assert_uint_eq(autograd.planned, LAST_STEPS * 4 * LAYERS);
  // As tight as the step of one thread.
  tarn_pool_stats stats = stats_of(at.pool);
  ck_assert_uint_le(stats.reserved_bytes,
                    stats.live_peak_bytes + (size_t)3 * MIB);
}

// The last blocks are freed while the first thread goes forward again: sooner
// or later than planned.
TEST(frees_of_another_thread_come_at_any_time) {
  open_host("arena_pool:lanes=0");  // frees at the same time may begin lanes
  train(LAYERS / 4);
  check_trained(LAYERS / 4);
  ck_assert_uint_ge(autograd.planned, (size_t)LAST_STEPS * 2 * LAYERS);
}

// --- one takes, another frees ------------------------------------------------
//
// As a loader of data: the blocks of one thread go through a queue to another.

static struct {
  held queue[QUEUE];
  sem_t filled;
  sem_t room;
  size_t blocks;
  size_t lag;  // blocks that the other keeps back
} loader;

static void *consume(void *unused) {
  (void)unused;
  held back[QUEUE];
  for (size_t i = 0; i < loader.blocks; i++) {
    sem_wait(&loader.filled);
    if (i >= loader.lag) give_held(&back[i % loader.lag]);
    back[i % loader.lag] = loader.queue[i % QUEUE];
    sem_post(&loader.room);
  }
  for (size_t i = loader.blocks; i < loader.blocks + loader.lag; i++)
    give_held(&back[i % loader.lag]);
  return NULL;
}

TEST(one_takes_and_another_frees) {
  open_host("arena_pool:lanes=0");
  loader.blocks = (size_t)STEPS * LAYERS;
  loader.lag = 5;
  sem_init(&loader.filled, 0, 0);
  sem_init(&loader.room, 0, QUEUE / 2);
  pthread_t consumer = start_thread(consume, NULL);
  size_t planned = 0;
  for (size_t i = 0; i < loader.blocks; i++) {
    sem_wait(&loader.room);
    held *h = &loader.queue[i % QUEUE];
    bool is = take_held(h, size_of(i % LAYERS));
    planned += is && i >= loader.blocks / 2 ? 1 : 0;
    sem_post(&loader.filled);
  }
  pthread_join(consumer, NULL);
  check_end();
  ck_assert_uint_eq(at.pool->threads.count, 1);
  // Nearly all on a quiet machine; on a busy one frees come late, and steps are
  // learned anew.
  ck_assert_uint_ge(planned, loader.blocks / 16);
}

// --- at the same time --------------------------------------------------------

typedef struct racer {
  size_t number;
  size_t planned;
  held out[LAYERS];
} racer;

// Each in an order of its own; every fourth block is left to the other thread.
static struct {
  pthread_mutex_t lock;
  held blocks[RACING][LAYERS];
  size_t count[RACING];
} left = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void leave_block(size_t to, const held *h) {
  bool fits = false;
  pthread_mutex_lock(&left.lock);
  fits = left.count[to] < LAYERS;
  if (fits) left.blocks[to][left.count[to]++] = *h;
  pthread_mutex_unlock(&left.lock);
  if (!fits) give_held(h);
}

static void free_left(size_t number) {
  held blocks[LAYERS];
  pthread_mutex_lock(&left.lock);
  size_t count = left.count[number];
  memcpy(blocks, left.blocks[number], count * sizeof *blocks);
  left.count[number] = 0;
  pthread_mutex_unlock(&left.lock);
  for (size_t i = 0; i < count; i++)
    give_held(&blocks[i]);
}

static void *race(void *context) {
  racer *r = context;
  size_t steps = (size_t)EFFORT(400, 200);
  for (size_t step = 0; step < steps; step++) {
    for (size_t i = 0; i < LAYERS; i++) {
      bool planned = take_held(&r->out[i], size_of(i + r->number * 9) + i);
      r->planned += planned && step >= steps / 2 ? 1 : 0;
      if (i % 5 == 0) sched_yield();
    }
    for (size_t i = LAYERS; i-- > 0;) {
      if (i % 4 == 0) {
        leave_block((r->number + 1) % RACING, &r->out[i]);
      } else {
        give_held(&r->out[i]);
      }
    }
    free_left(r->number);
  }
  return NULL;
}

TEST(threads_at_the_same_time_are_followed_each_by_itself) {
  open_host("arena_pool:lanes=0");
  racer racers[RACING] = {{.number = 0}, {.number = 1}};
  size_t all = (size_t)EFFORT(400, 200) / 2 * LAYERS;
  size_t planned = 0;
  // Each has to run while the other does.
  for (size_t i = 0; i < 30 && planned < all / 4; i++) {
    run_threads_each(race, RACING, racers, sizeof *racers);
    for (size_t j = 0; j < RACING; j++)
      free_left(j);
    planned = racers[0].planned + racers[1].planned;
  }
  check_end();
  ck_assert_uint_ge(planned, all / 4);
}

// --- threads that end --------------------------------------------------------

static void *play_and_end(void *context) {
  held *out = context;
  for (size_t step = 0; step < 20; step++) {
    for (size_t i = 0; i < LAYERS; i++)
      (void)take_held(&out[i], size_of(i));
    for (size_t i = 0; i < LAYERS; i++)
      give_held(&out[i]);
  }
  return NULL;
}

TEST(threads_that_end_leave_nothing_behind) {
  open_host("arena_pool");
  static held out[8][LAYERS];
  for (size_t round = 0; round < 8; round++)
    run_threads_each(play_and_end, 8, out, sizeof *out);
  check_end();
  ck_assert_uint_le(at.pool->threads.count, TARN__STEP_THREADS);
  assert_ok(tarn_pool_trim(at.pool, 0));
  ck_assert_uint_eq(stats_of(at.pool).reserved_bytes, 0);
}
