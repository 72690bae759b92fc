// Misuse at random: among valid operations, wrong frees of every kind, of every
// strategy. Each is refused, names the block's tag where a block is or was
// there, and no valid free is refused. Prints the table of it.
#include <stdio.h>

#include "kit.h"
#include "support/effort.h"
#include "support/on_devices.h"
#include "support/strategy.h"
#include "support/threads.h"
#include "tarn/sim.h"

enum {
  BLOCKS = 48,  // out at once, at most
  STALE = 64,   // freed before, the newest over the oldest
  TAGS = 5,
  EACH = EFFORT(20000, 4000),  // misuses of each kind and strategy
  WALK_EVERY = 4096,
};

typedef enum kind {
  TWICE,            // a handle that was freed, its memory idle or given back
  TWICE_ADDRESS,    // the same by address
  REUSED,           // a handle whose id or address serves another block
  INTERIOR,         // an address inside a block
  INTERIOR_HANDLE,  // a handle with such an address
  NEVER,            // an address that was never given out
  DEVICE,           // a block of another device, its handle sent here
  DEVICE_ADDRESS,   // the same by address
  PLACE,            // of another place of the same device
  PLACE_ADDRESS,
  KINDS,
} kind;

static const char *const kind_names[KINDS] = {
    [TWICE] = "double, by handle",
    [TWICE_ADDRESS] = "double, by address",
    [REUSED] = "stale handle after reuse",
    [INTERIOR] = "interior address",
    [INTERIOR_HANDLE] = "interior, by handle",
    [NEVER] = "foreign address",
    [DEVICE] = "wrong device, by handle",
    [DEVICE_ADDRESS] = "wrong device, by address",
    [PLACE] = "wrong place, by handle",
    [PLACE_ADDRESS] = "wrong place, by address",
};

typedef struct subject {
  const char *strategy;
  bool keeps_pieces;  // memory that is idle is still known by its address
} subject;

static const subject subjects[] = {
    {"page_unit_pool", true}, {"no_pool", true},    {"async_pool", true},
    {"buddy_pool", true},     {"arena_pool", true},
};

typedef struct out_block {
  tarn_block block;
  unsigned tag;
} out_block;

static struct {
  uint64_t state;
  const subject *subject;
  tarn_pool *pool;
  tarn_pool *of_device;  // another device's
  tarn_pool *of_place;   // another of the same device
  out_block out[BLOCKS];
  size_t count;
  out_block stale[STALE];
  size_t stale_count;
  out_block abroad[2];  // out in the other two
  tarn_tag tags[TAGS];
  size_t frees;
  size_t tried[KINDS];
  size_t stopped[KINDS];
  size_t named[KINDS];  // of those whose text has to name a tag
  size_t to_name[KINDS];
  size_t false_alarms;
} t;

static const char *const tag_names[TAGS] = {
    "untagged", "weights-1", "gradients-2", "activations-3", "optimizer-4"};

static size_t below(size_t limit) {
  return next_random(&t.state) % limit;
}

// --- valid operations ------------------------------------------------------

static size_t random_size(void) {
  static const size_t usual[] = {1, 64, 300, 4096, 4097, 20000, 65536};
  return below(4) == 0 ? below(200000) + 1
                       : usual[below(sizeof usual / sizeof usual[0])];
}

static void take_one(void) {
  out_block *o = &t.out[t.count];
  o->tag = (unsigned)below(TAGS);
  require(alloc_tagged(t.pool, random_size(), 0, NULL, t.tags[o->tag],
                       &o->block) == TARN_OK);
  t.count++;
}

static void give_one(size_t index, bool by_address) {
  out_block o = t.out[index];
  tarn_status status =
      by_address ? tarn_pool_free_address(t.pool, o.block.address, NULL)
                 : tarn_pool_free(&o.block, NULL);
  t.frees++;
  if (status != TARN_OK) t.false_alarms++;
  t.out[index] = t.out[--t.count];
  t.stale[t.stale_count++ % STALE] = o;
}

static void act(void) {
  bool takes = t.count == 0 || (t.count < BLOCKS && below(2) == 0);
  if (takes) {
    take_one();
  } else {
    give_one(below(t.count), below(2) == 0);
  }
  if (below(2000) == 0) require(tarn_pool_trim(t.pool, 0) == TARN_OK);
}

// --- what a text has to say ------------------------------------------------

static const char *tag_around(tarn_addr address) {
  for (size_t i = 0; i < t.count; i++) {
    const tarn_block *b = &t.out[i].block;
    if (address >= b->address && address - b->address < b->size) {
      return tag_names[t.out[i].tag];
    }
  }
  return NULL;
}

static const tarn__pool_piece *piece_of(const out_block *o) {
  return tarn__pieces_at(&t.pool->pieces, o->block.id);
}

// Of the block itself as long as its description is there, else of what is in
// its place; NULL: nothing is known any more.
static const char *tag_of_stale(const out_block *o, bool by_address) {
  bool same = piece_of(o)->generation == o->block.generation;
  if (same && !by_address) return tag_names[o->tag];
  const char *now = tag_around(o->block.address);
  if (now != NULL || !by_address || !t.subject->keeps_pieces) return now;
  return same && tarn__pieces_find(&t.pool->pieces, o->block.address) != NULL
             ? tag_names[o->tag]
             : NULL;
}

static void count_refusal(kind k, tarn_status status, const char *tag) {
  t.tried[k]++;
  bool refused = status == TARN_E_INVALID;
  if (refused) t.stopped[k]++;
  if (tag == NULL) return;
  t.to_name[k]++;
  if (strstr(tarn_last_error(), tag) != NULL) {
    t.named[k]++;
  } else if (t.named[k] + 3 > t.to_name[k]) {
    printf("  %s: '%s' does not name '%s'\n", kind_names[k], tarn_last_error(),
           tag);
  }
}

// --- misuses; false: there is no block for it now --------------------------

static const out_block *random_stale(void) {
  size_t known = t.stale_count < STALE ? t.stale_count : STALE;
  return known != 0 ? &t.stale[below(known)] : NULL;
}

static bool starts_a_block(tarn_addr address) {
  for (size_t i = 0; i < t.count; i++) {
    if (t.out[i].block.address == address) return true;
  }
  return false;
}

// Its memory, or where no strategy keeps any its description, serves another.
static bool is_reused(const out_block *o) {
  return piece_of(o)->generation != o->block.generation ||
         starts_a_block(o->block.address);
}

static bool free_twice(kind k) {
  const out_block *o = random_stale();
  if (o == NULL) return false;
  if (k != TWICE_ADDRESS && is_reused(o) != (k == REUSED)) return false;
  // By its address what is there now would rightly be freed.
  if (k == TWICE_ADDRESS && starts_a_block(o->block.address)) return false;
  const char *tag = tag_of_stale(o, k == TWICE_ADDRESS);
  tarn_status status = k == TWICE_ADDRESS ? tarn_pool_free_address(
                                                t.pool, o->block.address, NULL)
                                          : tarn_pool_free(&o->block, NULL);
  count_refusal(k, status, tag);
  return true;
}

static bool free_inside(kind k) {
  if (t.count == 0) return false;
  const out_block *o = &t.out[below(t.count)];
  if (o->block.size < 2) return false;
  tarn_block forged = o->block;
  forged.address += below(forged.size - 1) + 1;
  tarn_status status =
      k == INTERIOR ? tarn_pool_free_address(t.pool, forged.address, NULL)
                    : tarn_pool_free(&forged, NULL);
  count_refusal(k, status, tag_names[o->tag]);
  return true;
}

static bool free_never(void) {
  char mine[16];
  tarn_addr address = ((tarn_addr)below(SIZE_MAX) << 17) ^ below(SIZE_MAX);
  if (below(8) == 0) address = (tarn_addr)(uintptr_t)mine;
  if (below(64) == 0) address = 0;
  if (tag_around(address) != NULL) return false;
  count_refusal(NEVER, tarn_pool_free_address(t.pool, address, NULL), NULL);
  return true;
}

// A block of another pool, as it may come here: with its own id and generation
// or, as a program mixes them up, with those of a block that is here.
static bool free_abroad(kind k) {
  const out_block *o = &t.abroad[k == PLACE || k == PLACE_ADDRESS];
  tarn_block forged = o->block;
  forged.pool = t.pool;
  if (t.count != 0 && below(2) == 0) {
    const tarn_block *here = &t.out[below(t.count)].block;
    forged.id = here->id;
    forged.generation = here->generation;
  }
  bool by_address = k == DEVICE_ADDRESS || k == PLACE_ADDRESS;
  tarn_status status =
      by_address ? tarn_pool_free_address(t.pool, forged.address, NULL)
                 : tarn_pool_free(&forged, NULL);
  count_refusal(k, status, tag_names[o->tag]);
  return true;
}

static bool misuse(kind k) {
  switch (k) {
    case TWICE:
    case TWICE_ADDRESS:
    case REUSED:
      return free_twice(k);
    case INTERIOR:
    case INTERIOR_HANDLE:
      return free_inside(k);
    case NEVER:
      return free_never();
    default:
      return free_abroad(k);
  }
}

// --- the run ---------------------------------------------------------------

static void begin(const subject *s, tarn_device *here, tarn_device *there) {
  tarn_place host = {.device = here, .kind = TARN_PLACE_HOST};
  memset(&t, 0, sizeof t);
  t.state = 0x9e3779b97f4a7c15u;
  t.subject = s;
  assert_ok(use_strategy(tarn_place_on(here), s->strategy));
  assert_ok(use_strategy(tarn_place_on(there), s->strategy));
  assert_ok(use_strategy(host, s->strategy));
  t.pool = pool_at(tarn_place_on(here));
  t.of_device = pool_at(tarn_place_on(there));
  t.of_place = pool_at(host);
  for (unsigned i = 1; i < TAGS; i++)
    t.tags[i] = tag_of(tag_names[i]);
  t.abroad[0].tag = 1;
  t.abroad[1].tag = 2;
  t.abroad[0].block = take_tagged(t.of_device, 5000, t.tags[1]);
  t.abroad[1].block = take_tagged(t.of_place, 5000, t.tags[2]);
}

static size_t least_tried(void) {
  size_t least = SIZE_MAX;
  for (int k = 0; k < KINDS; k++)
    least = t.tried[k] < least ? t.tried[k] : least;
  return least;
}

// No misuse may have changed anything: the walk over all that the pool knows
// finds it in order, and what is out is counted as such.
static void check(void) {
  assert_ok(tarn__front_check(t.pool));
  ck_assert_uint_eq(stats_of(t.pool).live_blocks, t.count);
  ck_assert_uint_eq(stats_of(t.of_device).live_blocks, 1);
  ck_assert_uint_eq(stats_of(t.of_place).live_blocks, 1);
}

static void run(void) {
  for (size_t i = 0; least_tried() < EACH; i++) {
    act();
    for (int k = 0; k < KINDS; k++) {
      if (t.tried[k] < EACH) (void)misuse((kind)k);
    }
    if (i % WALK_EVERY == 0) check();
    ck_assert_msg(i < (size_t)EACH * 100, "some misuse never comes about");
  }
  check();
}

static void end(void) {
  while (t.count > 0)
    give_one(t.count - 1, t.count % 2 == 0);
  give(t.abroad[0].block);
  give(t.abroad[1].block);
  assert_ok(tarn__front_check(t.pool));
}

static void print_table(void) {
  printf("%s: seed 0x%llx, %zu valid frees, %zu false alarms\n",
         t.subject->strategy, 0x9e3779b97f4a7c15ull, t.frees, t.false_alarms);
  for (int k = 0; k < KINDS; k++) {
    printf("  %-26s tried %6zu  stopped %6zu  tag named %6zu of %6zu\n",
           kind_names[k], t.tried[k], t.stopped[k], t.named[k], t.to_name[k]);
  }
  fflush(stdout);
}

TEST_LOOP_ON_LIBRARY(every_misuse_is_stopped_and_no_valid_free,
                     sizeof subjects / sizeof subjects[0], TEST_NEEDS_DISCRETE,
                     (void)) {
  begin(&subjects[_i], device, open_second(device));
  run();
  end();
  print_table();
  ck_assert_uint_eq(t.false_alarms, 0);
  for (int k = 0; k < KINDS; k++) {
    ck_assert_uint_eq(t.stopped[k], t.tried[k]);
    ck_assert_uint_eq(t.named[k], t.to_name[k]);
  }
  ck_assert_uint_eq(tarn_sim_misuses(NULL, 0), 0);
}
