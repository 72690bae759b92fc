// Wholes that come and go in any order, of any type, size and partition, while
// memory and drivers fail at some rank, ranks mean different ones, or a rank
// ends: what others wrote is read, answers are the same everywhere, and nothing
// is left.
//
// All ranks draw the same numbers, so each knows what the others do.
#include "kit.h"
#include "support/faults.h"
#include "support/mix.h"

enum {
  SLOTS = 4,  // wholes at a time
  STEPS = EFFORT(60, 25),
  RUNS = EFFORT(8, 2),
  MOST_BLOCKS = 1000,
  MOST_GRANULARITY = 700,
  NOBODY = MOST_RANKS
};

// What is tested; set before ranks are forked.
static struct {
  const ground *on;
  uint64_t seed;
  size_t dies;  // a rank, or NOBODY
  size_t when;  // at which step
} asked;

typedef struct slot {
  tarn_whole *whole;  // NULL: none
  tarn_whole_type type;
  size_t size;
  size_t offsets[MOST_RANKS + 1];
  uint64_t salt;  // of its bytes
} slot;

static slot slots[SLOTS];
static size_t step;
static unsigned char room[MOST_BLOCKS * MOST_GRANULARITY];

// A number from 0 to |most|.
static size_t draw(uint64_t what, size_t most) {
  MUST(most != SIZE_MAX);
  return (size_t)(mix(mix(asked.seed, step), what) % (most + 1));
}

// --- bytes -----------------------------------------------------------------

static unsigned char byte_of(const slot *s, size_t offset) {
  return (unsigned char)(mix(s->salt, offset / 256) + offset % 256);
}

// All ranks: each fills what it owns.
static void fill_all(slot *s, tarn_place place) {
  tarn_whole_part part;
  s->salt = mix(asked.seed, step);
  MUST_BE(tarn_whole_local(s->whole, &part), TARN_OK);
  MUST(part.offset == s->offsets[my.rank]);
  MUST(part.size == s->offsets[my.rank + 1] - part.offset);
  for (size_t i = 0; i < part.size; i++)
    room[i] = byte_of(s, part.offset + i);
  poke(place, part.address, room, part.size);
}

static void see_part(const slot *s, tarn_place place, size_t rank, bool zero) {
  tarn_whole_part part;
  bool reached = s->type != TARN_WHOLE_DISTRIBUTED || rank == my.rank;
  MUST_BE(tarn_whole_of_rank(s->whole, rank, &part),
          reached ? TARN_OK : TARN_E_UNSUPPORTED);
  MUST(part.offset == s->offsets[rank]);
  if (!reached) return;
  peek(place, part.address, room, part.size);
  for (size_t i = 0; i < part.size; i++)
    MUST(room[i] == (zero ? 0 : byte_of(s, part.offset + i)));
}

static void see_all(const slot *s, tarn_place place, bool zero) {
  for (size_t rank = 0; rank < my.ranks; rank++)
    see_part(s, place, rank, zero);
}

// --- beginning -------------------------------------------------------------

// Blocks of each rank: many have none.
static size_t draw_partition(size_t *out) {
  size_t blocks = 0;
  for (size_t rank = 0; rank < my.ranks; rank++) {
    size_t most = MOST_BLOCKS / my.ranks;
    out[rank] = draw(20 + rank, 2) == 0 ? 0 : draw(40 + rank, most);
    blocks += out[rank];
  }
  return blocks;
}

static void note_offsets(slot *s, const size_t *counts, size_t granularity) {
  s->offsets[0] = 0;
  for (size_t rank = 0; rank < my.ranks; rank++)
    s->offsets[rank + 1] = s->offsets[rank] + counts[rank] * granularity;
}

static bool is_sim(void) {
  return asked.on->device != NULL && strcmp(asked.on->device, "sim") == 0;
}

// Something fails at one rank, now and then.
static void let_fail(void) {
  char plan[32];
  if (draw(10, my.ranks - 1) != my.rank || draw(11, 2) != 0) return;
  if (is_sim() && draw(12, 1) == 0) {
    snprintf(plan, sizeof plan, "*@%zu", 1 + draw(13, 20));
    MUST_BE(tarn_sim_faults(plan), TARN_OK);
  } else {
    faults_arm(1 + draw(13, 40), FAULTS_ONCE);
  }
}

static void let_go_on(void) {
  (void)faults_disarm();
  if (is_sim()) MUST_BE(tarn_sim_faults(NULL), TARN_OK);
}

static void must_be_the_same_at_the_living(tarn_status status) {
  tarn_status all[MOST_RANKS];
  if (status == TARN_E_PEER_LOST) return;
  tarn_status met = tarn_comm_allgather(my.comm, &status, sizeof status, all);
  if (met == TARN_E_PEER_LOST && asked.dies != NOBODY) return;
  MUST_BE(met, TARN_OK);
  for (size_t rank = 0; rank < my.ranks; rank++)
    MUST(all[rank] == status);
}

// What a collective may answer where things fail and ranks end.
static bool is_expected(tarn_status status) {
  return status == TARN_OK || status == TARN_E_NOMEM || status == TARN_FULL ||
         status == TARN_E_DEVICE ||
         (status == TARN_E_PEER_LOST && asked.dies != NOBODY);
}

static void begin(slot *s, tarn_place place) {
  size_t counts[MOST_RANKS];
  size_t granularity = 1 + draw(1, MOST_GRANULARITY - 1);
  bool custom = draw(2, 1) == 0;
  size_t blocks = custom ? draw_partition(counts) : draw(3, MOST_BLOCKS);
  if (!custom) MUST_BE(tarn_whole_partition(blocks, my.ranks, counts), TARN_OK);
  *s =
      (slot){.type = type_at(draw(4, TYPES - 1)), .size = blocks * granularity};
  note_offsets(s, counts, granularity);
  const tarn_whole_options options = {.struct_size = sizeof options,
                                      .type = s->type,
                                      .place = place,
                                      .size = s->size,
                                      .granularity = granularity,
                                      .partition = custom ? counts : NULL};
  let_fail();
  tarn_status status = tarn_whole_create(my.comm, &options, &s->whole);
  let_go_on();
  MUST(is_expected(status));
  MUST((s->whole != NULL) == (status == TARN_OK));
  must_be_the_same_at_the_living(status);
  if (status != TARN_OK) return;
  see_all(s, place, true);
}

// --- steps -----------------------------------------------------------------

static bool has_met(tarn_status status) {
  MUST(status == TARN_OK ||
       (status == TARN_E_PEER_LOST && asked.dies != NOBODY));
  return status == TARN_OK;
}

// New bytes, which all see.
static void write_and_read(slot *s, tarn_place place) {
  if (!has_met(tarn_comm_barrier(my.comm))) return;
  fill_all(s, place);
  if (!has_met(tarn_comm_barrier(my.comm))) return;
  see_all(s, place, false);
  (void)has_met(tarn_comm_barrier(my.comm));
}

static void end(slot *s) {
  (void)has_met(tarn_whole_destroy(s->whole));
  *s = (slot){0};
}

// One rank means another whole: nothing ends.
static void end_different(slot *s, slot *other) {
  size_t odd = draw(5, my.ranks - 1);
  tarn_status status =
      tarn_whole_destroy(my.rank == odd ? other->whole : s->whole);
  if (status == TARN_E_INVALID) return;
  // A rank that has ended it has it no more, although others are lost.
  *(my.rank == odd ? other : s) = (slot){0};
  MUST(!has_met(status));
}

static void take_step(tarn_place place) {
  slot *s = &slots[draw(6, SLOTS - 1)];
  slot *other = &slots[draw(7, SLOTS - 1)];
  if (my.rank == asked.dies && step == asked.when) _exit(0);
  if (s->whole == NULL) {
    begin(s, place);
  } else if (other != s && other->whole != NULL && my.ranks > 1 &&
             draw(8, 3) == 0) {
    end_different(s, other);
  } else if (draw(9, 1) == 0) {
    write_and_read(s, place);
  } else {
    end(s);
  }
}

static void come_and_go(void) {
  tarn_place place = open_ground(asked.on);
  warm_up_plainly(place);
  belongings before = look_around(place);
  for (step = 0; step < STEPS && tarn_comm_check(my.comm) == TARN_OK; step++)
    take_step(place);
  for (size_t i = 0; i < SLOTS; i++)
    end(&slots[i]);
  see_nothing_left(place, before);
  close_ground(place);
}

static void run(bool dies) {
  for (size_t i = 0; i < RUNS; i++) {
    step = 0;
    asked.seed = mix((uint64_t)asked.on->kind, i + (dies ? 1000 : 0));
    size_t ranks = 1 + draw(0, MOST_RANKS - 1);
    asked.dies = dies ? draw(1, ranks - 1) : NOBODY;
    asked.when = draw(2, STEPS - 1);
    run_ranks(ranks, asked.on->text, come_and_go);
  }
}

TEST_LOOP(wholes_come_and_go, GROUNDS) {
  asked.on = ground_at(_i);
  note_mapped("wholes_come_and_go");
  run(false);
}

TEST_LOOP(until_a_rank_ends, GROUNDS) {
  asked.on = ground_at(_i);
  note_mapped("until_a_rank_ends");
  run(true);
}

int main(void) {
  faults_install();
  return run_tests();
}
