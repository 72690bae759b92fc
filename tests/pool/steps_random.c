// Steps that nearly repeat, against a naive model: at random a request more, a
// free too early, too late, by another thread, a trim, a switch. Each block is
// filled with bytes of its own, which nothing may overwrite.
#include <semaphore.h>
#include <stdio.h>

#include "arena_kit.h"
#include "support/strategy.h"
#include "support/threads.h"

enum {
  OPERATIONS = 1000000,
  TEMPLATE = 60,  // requests of a step
  SHAPES = 4,     // of steps that take turns
  MOST_OUT = 400,
  WALK_EVERY = 500,
};

typedef struct event {
  size_t size;  // 0: a free
  size_t slot;
} event;

typedef struct held {
  tarn_block block;
  size_t size;
  unsigned char mark;
  bool out;
} held;

static uint64_t state;
static tarn_pool *pool;
static event shapes[SHAPES][2 * TEMPLATE];
static held slots[MOST_OUT];  // the first TEMPLATE: of the step
static size_t live_bytes;
static size_t live_blocks;
static uint64_t allocs;
static uint64_t frees;
static uint64_t played;
static const char *strategy;

static size_t random_below(size_t limit) {
  return next_random(&state) % limit;
}

// A random order of requests and frees; some blocks outlive the step.
static void make_step(event step[2 * TEMPLATE]) {
  size_t taken[TEMPLATE];
  size_t out = 0;
  size_t next = 0;
  for (size_t i = 0; i < 2 * TEMPLATE; i++) {
    bool can_take = next < TEMPLATE;
    if (out == 0 || (can_take && random_below(2) == 0)) {
      taken[out++] = next;
      step[i] = (event){random_below(30) == 0 ? 300000 + random_below(500000)
                                              : 1 + random_below(20000),
                        next};
      next++;
    } else {
      size_t j = random_below(out);
      step[i] = (event){0, taken[j]};
      taken[j] = taken[--out];
    }
  }
  size_t shift = random_below(2 * TEMPLATE);
  event turned[2 * TEMPLATE];
  for (size_t i = 0; i < 2 * TEMPLATE; i++)
    turned[i] = step[(i + shift) % (2 * TEMPLATE)];
  memcpy(step, turned, sizeof turned);
}

// The ends of a block, which is where neighbours would write.
static void fill(const held *h) {
  unsigned char *bytes = bytes_of(h->block);
  bytes[0] = bytes[h->size / 2] = bytes[h->size - 1] = h->mark;
}

static void verify(const held *h) {
  const unsigned char *bytes = bytes_of(h->block);
  expect(bytes[0] == h->mark && bytes[h->size / 2] == h->mark &&
         bytes[h->size - 1] == h->mark);
}

static void take_here(held *h, size_t size) {
  expect(tarn_pool_alloc(pool, size, 0, NULL, &h->block) == TARN_OK);
  played += tarn__pieces_at(&pool->pieces, h->block.id)->planned;
  expect(h->block.size >= size);
  h->size = size;
  h->mark = (unsigned char)random_below(256);
  h->out = true;
  fill(h);
  live_bytes += size;
  live_blocks++;
  allocs++;
}

static void give_here(held *h, size_t unused) {
  (void)unused;
  verify(h);
  tarn_status status =
      random_below(2) ? tarn_pool_free(&h->block, NULL)
                      : tarn_pool_free_address(pool, h->block.address, NULL);
  expect(status == TARN_OK);
  h->out = false;
  live_bytes -= h->size;
  live_blocks--;
  frees++;
}

// --- another thread ----------------------------------------------------------
//
// It does what this one tells it, while this one waits.

typedef void work(held *h, size_t size);

static struct {
  pthread_t thread;
  sem_t asked;
  sem_t answered;
  work *what;  // NULL: it ends
  held *h;
  size_t size;
  bool runs;
} other;

static void *work_there(void *unused) {
  (void)unused;
  for (;;) {
    sem_wait(&other.asked);
    if (other.what == NULL) return NULL;
    other.what(other.h, other.size);
    sem_post(&other.answered);
  }
}

static void begin_other(void) {
  sem_init(&other.asked, 0, 0);
  sem_init(&other.answered, 0, 0);
  other.thread = start_thread(work_there, NULL);
  other.runs = true;
}

static void end_other(void) {
  other.what = NULL;
  sem_post(&other.asked);
  pthread_join(other.thread, NULL);
  other.runs = false;
}

static void do_there(work *what, held *h, size_t size) {
  other.what = what;
  other.h = h;
  other.size = size;
  sem_post(&other.asked);
  sem_wait(&other.answered);
}

// Every other slot of the second half is the other thread's. Each thread frees
// some blocks of the other, and now and then any.
static bool is_there(const held *h, bool frees_it) {
  size_t slot = (size_t)(h - slots);
  bool own = slot >= TEMPLATE / 2 && slot % 2 == 1;
  bool crosses = frees_it && (slot % 5 == 3) != (random_below(1000) == 0);
  return other.runs && own != crosses;
}

static void take_into(held *h, size_t size) {
  is_there(h, false) ? do_there(take_here, h, size) : take_here(h, size);
}

static void give_from(held *h) {
  is_there(h, true) ? do_there(give_here, h, 0) : give_here(h, 0);
}

static void check_all(void) {
  tarn_pool_stats stats = stats_of(pool);
  require(stats.live_bytes == live_bytes);
  require(stats.live_blocks == live_blocks);
  require(stats.allocs == allocs && stats.frees == frees);
  assert_ok(tarn__front_check(pool));
  for (size_t i = 0; i < MOST_OUT; i++) {
    if (slots[i].out) verify(&slots[i]);
  }
}

static void misuse(void) {
  held *h = &slots[random_below(MOST_OUT)];
  if (h->block.pool == NULL) return;
  tarn_block block = h->block;
  if (h->out) block.generation--;
  require(tarn_pool_free(&block, NULL) == TARN_E_INVALID);
}

static void something_else(void) {
  held *h = &slots[TEMPLATE + random_below(MOST_OUT - TEMPLATE)];
  switch (random_below(40)) {
    case 0:
      require(tarn_pool_trim(pool, live_bytes / 2) == TARN_OK);
      break;
    case 1:
      require(use_strategy(TARN_HOST, strategy) == TARN_OK);
      break;
    case 2:
    case 3:
    case 4:
      misuse();
      break;
    case 5: {
      held *own = &slots[random_below(TEMPLATE)];  // early, and missed later
      if (own->out) give_from(own);
      break;
    }
    default:
      if (h->out) {
        give_from(h);
      } else if (random_below(3) == 0) {
        take_into(h, 1 + random_below(9000));
      }
  }
}

// |noise|: how many of a thousand events bring something else.
static size_t play(const event step[2 * TEMPLATE], size_t noise) {
  size_t operations = 0;
  for (size_t i = 0; i < 2 * TEMPLATE; i++) {
    if (random_below(1000) < noise) something_else();
    if (noise > 0 && random_below(2000) == 0) continue;  // left out
    held *h = &slots[step[i].slot];
    if (step[i].size > 0) {
      if (!h->out) take_into(h, step[i].size);
    } else if (h->out) {
      give_from(h);
    }
    if (++operations % WALK_EVERY == 0) check_all();
  }
  return operations;
}

static void give_all(void) {
  for (size_t i = 0; i < MOST_OUT; i++) {
    if (slots[i].out) give_from(&slots[i]);
  }
}

static void begin(int seed, const char *name) {
  state = 0x9e3779b97f4a7c15u * (uint64_t)(seed + 1);
  strategy = name;
  pool = host_pool(strategy);
  tarn_pool_stats before = stats_of(pool);
  allocs = before.allocs;
  frees = before.frees;
}

static void end(int seed, size_t operations) {
  assert_as_expected();
  check_all();
  printf("seed %d: %zu operations, %llu requests played\n", seed, operations,
         (unsigned long long)played);
  ck_assert_uint_gt(played, operations / 20);
}

TEST_LOOP(nearly_repeating_steps, 4) {
  begin(_i, "arena_pool");
  size_t operations = 0;
  while (operations < OPERATIONS / 4) {
    make_step(shapes[0]);
    size_t rounds = 10 + random_below(60);
    size_t noise = random_below(3) == 0 ? 0 : random_below(30);
    for (size_t i = 0; i < rounds; i++) {
      operations += play(shapes[0], i > 12 ? noise : 0);
      if (random_below(16) == 0) check_all();
    }
    give_all();
  }
  end(_i, operations);
}

// A shape is another from its middle on, or begins as another, or is new.
static void make_shape(size_t shape) {
  make_step(shapes[shape]);
  if (shape == 0 || random_below(2) == 0) return;
  memcpy(shapes[shape], shapes[shape - 1], sizeof shapes[shape]);
  for (size_t i = random_below(TEMPLATE); i < 2 * TEMPLATE; i++)
    if (shapes[shape][i].size > 0) shapes[shape][i].size += 512;
}

static size_t play_shapes(size_t most) {
  size_t operations = 0;
  while (operations < most) {
    for (size_t i = 0; i < SHAPES; i++)
      make_shape(i);
    size_t rounds = 100 + random_below(200);
    size_t shapes_played = 1 + random_below(SHAPES);
    size_t noise = random_below(2) == 0 ? 0 : random_below(20);
    bool ends = random_below(2) == 0;
    for (size_t i = 0; i < rounds; i++) {
      operations +=
          play(shapes[random_below(shapes_played)], i > 40 ? noise : 0);
      if (ends) give_all();
      if (random_below(16) == 0) check_all();
    }
    give_all();
  }
  return operations;
}

TEST_LOOP(steps_of_several_shapes, 4) {
  begin(_i + 4, "arena_pool");
  end(_i + 4, play_shapes(OPERATIONS / 4));
}

TEST_LOOP(steps_of_two_threads, 4) {
  begin(_i + 8, "arena_pool:lanes=0");
  begin_other();
  size_t operations = play_shapes(OPERATIONS / 16);
  end_other();
  end(_i + 8, operations);
}
