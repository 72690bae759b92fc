// Random sequences of collectives over a communicator and groups that are split
// off it, beside a model of the ranks in each; while ranks die, leave or stop.
//
// All ranks draw the same numbers, so each knows what the others call. What
// they must find: bytes are those that the model has; a call on a communicator
// that has all its ranks is TARN_OK, or the error that it provokes; and
// whatever happens to whom, a call ends alike at all ranks that are left.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/effort.h"
#include "support/mix.h"
#include "support/ranks.h"
#include "support/run.h"

enum {
  MOST = 9,       // ranks
  SLOTS = 4,      // communicators at a time; 0: that of all
  STEPS = 120,    // calls of a run
  TEXT = 96,      // of an outcome
  LARGE = 400000  // bytes of one rank for another, at most
};

// --- what all draw ---------------------------------------------------------

typedef enum fate { LIVES, DIES, LEAVES, IS_KILLED } fate;

// What a run has, and what became of its calls.
typedef struct board {
  uint64_t seed;
  size_t size;
  size_t victim;
  fate fate;
  size_t when;  // DIES, LEAVES: the step; IS_KILLED: microseconds
  struct {
    tarn_status status;
    bool called;
    char text[TEXT];
  } outcome[STEPS][MOST];
} board;

typedef struct slot {
  tarn_comm *comm;  // NULL: this rank is not in it
  size_t size;      // 0: there is none
  size_t ranks[MOST];
} slot;

// One rank's view of a run.
typedef struct player {
  board *on;
  size_t rank;
  size_t step;
  slot slots[SLOTS];
} player;

static uint64_t draw(const player *p, uint64_t what) {
  return mix(mix(p->on->seed, p->step), what);
}

// --- one call --------------------------------------------------------------

typedef tarn_status call(player *p, slot *s);

static unsigned char byte_of(uint64_t salt, size_t at) {
  return (unsigned char)((salt + at) * 0x9e3779b97f4a7c15 >> 56);
}

static void write_bytes(const player *p, size_t from, size_t to, size_t size,
                        unsigned char *out) {
  uint64_t salt = draw(p, from * MOST + to);
  for (size_t i = 0; i < size; i++)
    out[i] = byte_of(salt, i);
}

static void see_bytes(const player *p, size_t from, size_t to, size_t size,
                      const unsigned char *bytes) {
  uint64_t salt = draw(p, from * MOST + to);
  for (size_t i = 0; i < size; i++)
    require(bytes[i] == byte_of(salt, i));
}

// Few bytes, which go along on a header, or none; or so many that they take
// several rounds.
static size_t size_of(const player *p, uint64_t what) {
  uint64_t drawn = draw(p, what);
  size_t most = drawn % 16 == 0 ? LARGE : 600;
  return drawn % 7 == 0 ? 0 : (size_t)(drawn >> 8) % most;
}

static tarn_status barrier(player *p, slot *s) {
  (void)p;
  return tarn_comm_barrier(s->comm);
}

static tarn_status broadcast(player *p, slot *s) {
  static unsigned char bytes[LARGE];
  size_t root = draw(p, 1) % s->size;
  size_t size = size_of(p, 2);
  memset(bytes, 0, size);
  if (tarn_comm_rank(s->comm) == root) write_bytes(p, root, 0, size, bytes);
  tarn_status status = tarn_comm_broadcast(s->comm, root, bytes, size);
  if (status == TARN_OK) see_bytes(p, root, 0, size, bytes);
  return status;
}

static tarn_status allgather(player *p, slot *s) {
  static unsigned char own[LARGE];
  static unsigned char all[MOST * LARGE];
  size_t rank = tarn_comm_rank(s->comm);
  size_t size = size_of(p, 1);
  bool in_place = draw(p, 2) % 2 == 0;
  unsigned char *mine = in_place ? all + rank * size : own;
  memset(all, 0, s->size * size);
  write_bytes(p, rank, 0, size, mine);
  tarn_status status = tarn_comm_allgather(s->comm, mine, size, all);
  for (size_t r = 0; status == TARN_OK && r < s->size; r++)
    see_bytes(p, r, 0, size, all + r * size);
  return status;
}

static tarn_status alltoallv(player *p, slot *s) {
  static unsigned char out[MOST * LARGE];
  static unsigned char in[MOST * LARGE];
  size_t sizes[2][MOST];
  size_t at[MOST];
  size_t rank = tarn_comm_rank(s->comm);
  for (size_t r = 0; r < s->size; r++) {
    at[r] = (s->size - 1 - r) * LARGE;
    sizes[0][r] = size_of(p, 100 + rank * MOST + r);
    sizes[1][r] = size_of(p, 100 + r * MOST + rank);
    write_bytes(p, rank, r, sizes[0][r], out + at[r]);
  }
  tarn_status status =
      tarn_comm_alltoallv(s->comm, out, sizes[0], at, in, sizes[1], at);
  for (size_t r = 0; status == TARN_OK && r < s->size; r++)
    see_bytes(p, r, rank, sizes[1][r], in + at[r]);
  return status;
}

// Each rank's descriptor is an end of a pipe with its number in it.
static tarn_status share(player *p, slot *s) {
  int fds[MOST];
  int ends[2];
  size_t rank = tarn_comm_rank(s->comm);
  unsigned char number = (unsigned char)rank;
  ck_assert_int_eq(pipe(ends), 0);
  for (size_t i = 1; i < s->size; i++)
    ck_assert_int_eq(write(ends[1], &number, 1), 1);
  bool has = draw(p, 200 + rank) % 3 != 0;
  tarn_status status = tarn_comm_share(s->comm, has ? ends[0] : -1, fds);
  for (size_t r = 0; r < s->size; r++) {
    bool sent = r != rank && draw(p, 200 + r) % 3 != 0;
    ck_assert(status == TARN_OK && sent ? fds[r] >= 0 : fds[r] == -1);
    if (fds[r] < 0) continue;
    ck_assert_int_eq(read(fds[r], &number, 1), 1);
    ck_assert_uint_eq(number, r);
    close(fds[r]);
  }
  close(ends[0]);
  close(ends[1]);
  return status;
}

// What a call answers that is wrong at some rank; the communicator lives on.
static tarn_status refused(tarn_status status, tarn_status expected) {
  if (status != expected) return status;
  return TARN_OK;
}

static tarn_status same(player *p, slot *s) {
  size_t rank = tarn_comm_rank(s->comm);
  bool differs = s->size > 1 && draw(p, 1) % 2 == 0;
  uint64_t value = differs && rank + 1 == s->size ? 1 : 0;
  tarn_status status = tarn_comm_same(s->comm, &value, sizeof value,
                                      value == 0 ? "none" : "one");
  if (!differs) return status;
  ck_assert_int_ne(status, TARN_OK);
  if (status == TARN_E_INVALID) assert_error_says("rank 0 has none, rank");
  return refused(status, TARN_E_INVALID);
}

static tarn_status agree(player *p, slot *s) {
  size_t rank = tarn_comm_rank(s->comm);
  size_t failing = draw(p, 1) % (s->size + 1);  // and all behind it
  char text[32];
  snprintf(text, sizeof text, "rank %zu: ", failing);
  tarn_status status =
      tarn_comm_agree(s->comm, rank >= failing ? TARN_FULL : TARN_OK);
  if (failing == s->size) return status;
  ck_assert_int_ne(status, TARN_OK);
  if (status == TARN_FULL) assert_error_says(text);
  return refused(status, TARN_FULL);
}

static tarn_status differ(player *p, slot *s) {
  size_t rank = tarn_comm_rank(s->comm);
  bool other = s->size > 1 && rank == 1 + draw(p, 1) % (s->size - 1);
  uint64_t value = 0;
  tarn_status status = other ? tarn_comm_barrier(s->comm)
                             : tarn_comm_broadcast(s->comm, 0, &value, 8);
  if (s->size == 1) return status;
  ck_assert_int_ne(status, TARN_OK);
  if (status == TARN_E_INVALID) assert_error_says("calls tarn_comm_b");
  return refused(status, TARN_E_INVALID);
}

// --- groups ----------------------------------------------------------------

// The rank of group |color| that comes behind those before |count|, by keys
// that are their numbers turned around.
static void list_group(const player *p, const slot *s, uint64_t color,
                       slot *out) {
  *out = (slot){0};
  for (size_t i = s->size; i-- > 0;) {
    if (draw(p, 300 + s->ranks[i]) % 3 == color) {
      out->ranks[out->size++] = s->ranks[i];
    }
  }
}

static tarn_status drop(slot *s) {
  tarn_status status = tarn_comm_destroy(s->comm);
  *s = (slot){0};
  return status;
}

// Into two slots, whose groups end; who draws 2 is in none.
static tarn_status split(player *p, slot *s) {
  size_t at = (size_t)(s - p->slots);
  slot made[2];
  tarn_comm *comm = NULL;
  tarn_status status = TARN_OK;
  for (uint64_t color = 0; color < 2; color++)
    list_group(p, s, color, &made[color]);
  if (s->comm != NULL) {
    uint64_t own = draw(p, 300 + p->rank) % 3;
    status = tarn_comm_split(s->comm, own == 2 ? TARN_COMM_NONE : (int64_t)own,
                             -(int64_t)tarn_comm_rank(s->comm), &comm);
    ck_assert((comm != NULL) == (status == TARN_OK && own != 2));
    if (comm != NULL) made[own].comm = comm;
  }
  for (size_t i = 1, color = 0; i < SLOTS && color < 2; i++) {
    if (i == at) continue;
    assert_ok(drop(&p->slots[i]));
    if (status == TARN_OK) p->slots[i] = made[color];
    color++;
  }
  return status;
}

// --- a run -----------------------------------------------------------------

static void note(player *p, tarn_status status) {
  p->on->outcome[p->step][p->rank].called = true;
  p->on->outcome[p->step][p->rank].status = status;
  if (status == TARN_OK) return;
  snprintf(p->on->outcome[p->step][p->rank].text, TEXT, "%s",
           tarn_last_error());
}

static void meet_fate(player *p, slot *s) {
  const board *on = p->on;
  if (p->rank != on->victim || p->step != on->when) return;
  if (on->fate == DIES) ranks_die();
  if (on->fate != LEAVES) return;
  assert_ok(tarn_comm_destroy(s->comm));
  s->comm = NULL;
}

static void take_step(player *p) {
  static call *const calls[] = {barrier, broadcast, allgather, alltoallv, share,
                                same,    agree,     differ,    barrier};
  slot *s = &p->slots[draw(p, 0) % SLOTS];
  bool splits = draw(p, 10) % 6 == 0;
  meet_fate(p, s);
  if (splits) {
    bool in = s->comm != NULL;
    tarn_status status = split(p, s);
    if (in) note(p, status);
  } else if (s->comm != NULL) {
    note(p, calls[draw(p, 11) % (sizeof calls / sizeof *calls)](p, s));
  }
}

static void kill_later(const board *on) {
  if (fork() != 0) return;
  usleep((useconds_t)on->when);
  kill(getppid(), SIGKILL);
  _exit(0);
}

static void play(tarn_comm *comm, void *context) {
  player p = {.on = context, .rank = tarn_comm_rank(comm)};
  p.slots[0] = (slot){.comm = comm, .size = p.on->size};
  for (size_t r = 0; r < p.on->size; r++)
    p.slots[0].ranks[r] = r;
  if (p.on->fate == IS_KILLED && p.rank == p.on->victim) kill_later(p.on);
  for (p.step = 0; p.step < STEPS; p.step++)
    take_step(&p);
  if (p.on->fate == IS_KILLED && p.rank == p.on->victim) pause();
  for (int i = SLOTS; i-- > 0;)
    assert_ok(drop(&p.slots[i]));
}

// --- what came of it -------------------------------------------------------

static bool is_survivor(const board *on, size_t rank) {
  return rank != on->victim || on->fate == LIVES || on->fate == LEAVES;
}

static void see_step(const board *on, size_t step) {
  size_t first = MOST;
  for (size_t rank = 0; rank < on->size; rank++) {
    if (!is_survivor(on, rank) || !on->outcome[step][rank].called) continue;
    tarn_status status = on->outcome[step][rank].status;
    const char *text = on->outcome[step][rank].text;
    if (first == MOST) first = rank;
    ck_assert_msg(
        status == TARN_OK || (status == TARN_E_PEER_LOST && on->fate != LIVES),
        "seed %llu, step %zu, rank %zu: %s", (unsigned long long)on->seed, step,
        rank, text);
    ck_assert_msg(status == on->outcome[step][first].status &&
                      strcmp(text, on->outcome[step][first].text) == 0,
                  "seed %llu, step %zu: '%s' at rank %zu, '%s' at rank %zu",
                  (unsigned long long)on->seed, step, text, rank,
                  on->outcome[step][first].text, first);
  }
}

static void run(uint64_t seed, fate what) {
  board *on = ranks_shared(sizeof *on);
  uint64_t drawn = mix(seed, 1);
  on->seed = seed;
  on->size = 2 + drawn % (MOST - 1);
  on->victim = (drawn >> 8) % on->size;
  on->fate = what;
  on->when = what == IS_KILLED ? (drawn >> 16) % 30000 : (drawn >> 16) % STEPS;
  ranks_run(&(ranks_plan){
      .size = on->size,
      .body = play,
      .context = on,
      .keeps = true,
      .killed = what == DIES || what == IS_KILLED ? 1u << on->victim : 0});
  for (size_t step = 0; step < STEPS; step++)
    see_step(on, step);
}

// TARN_TEST_SEED: where to begin, to look for more than CI does.
static uint64_t first_seed(void) {
  const char *text = getenv("TARN_TEST_SEED");
  return text != NULL ? strtoull(text, NULL, 10) : 0;
}

static const fate FATES[] = {LIVES, DIES, LEAVES, IS_KILLED};
enum { FATE_COUNT = sizeof FATES / sizeof *FATES };

TEST_LOOP(random_calls_go_as_the_model_does, FATE_COUNT) {
  for (uint64_t i = 0; i < EFFORT(12, 2); i++)
    run(first_seed() + i, FATES[_i]);
}
