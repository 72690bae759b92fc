// Large and uneven payloads: rounds through slots, against what is expected of
// each byte.
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/effort.h"
#include "support/ranks.h"
#include "support/run.h"

// Byte |i| of what |from| has for |to| in exchange |number|.
static unsigned char byte_of(size_t number, size_t from, size_t to, size_t i) {
  return (unsigned char)(number * 101 + from * 31 + to * 17 + i * 7 +
                         (i >> 8) * 3 + (i >> 16));
}

static void *take(size_t size) {
  void *bytes = calloc(size + 1, 1);
  ck_assert_ptr_nonnull(bytes);
  return bytes;
}

// --- alltoallv -------------------------------------------------------------

typedef struct exchange {
  size_t number;
  size_t rank;
  size_t ranks;
  size_t most;  // of bytes of a pair
} exchange;

// Many pairs have nothing, some a lot: as good as drawn, and the same at both.
static size_t size_of(const exchange *ex, size_t from, size_t to) {
  uint64_t mix = (ex->number * 64 + from) * 64 + to + 1;
  mix *= UINT64_C(0x9e3779b97f4a7c15);
  mix ^= mix >> 29;
  if (mix % 3 == 0) return 0;
  return (mix >> 8) % (mix % 5 == 0 ? ex->most : 200);
}

typedef struct half {
  size_t sizes[64];
  size_t offsets[64];
  size_t total;
} half;

// Parts stand in reverse order, with a gap of a byte between any two.
static void lay_out(half *side, size_t ranks) {
  side->total = 0;
  for (size_t r = ranks; r-- > 0;) {
    side->offsets[r] = side->total;
    side->total += side->sizes[r] + 1;
  }
}

static void check_received(const exchange *ex, const half *in,
                           const unsigned char *received) {
  for (size_t r = 0; r < ex->ranks; r++) {
    const unsigned char *part = received + in->offsets[r];
    for (size_t i = 0; i < in->sizes[r]; i++)
      require(part[i] == byte_of(ex->number, r, ex->rank, i));
    require(part[in->sizes[r]] == 0);
  }
}

static void exchange_once(tarn_comm *comm, const exchange *ex) {
  half out;
  half in;
  for (size_t r = 0; r < ex->ranks; r++) {
    out.sizes[r] = size_of(ex, ex->rank, r);
    in.sizes[r] = size_of(ex, r, ex->rank);
  }
  lay_out(&out, ex->ranks);
  lay_out(&in, ex->ranks);
  unsigned char *sent = take(out.total);
  unsigned char *received = take(in.total);
  for (size_t r = 0; r < ex->ranks; r++) {
    for (size_t i = 0; i < out.sizes[r]; i++)
      sent[out.offsets[r] + i] = byte_of(ex->number, ex->rank, r, i);
  }
  assert_ok(tarn_comm_alltoallv(comm, sent, out.sizes, out.offsets, received,
                                in.sizes, in.offsets));
  check_received(ex, &in, received);
  free(sent);
  free(received);
}

static void exchange_often(tarn_comm *comm, void *context) {
  size_t ranks = tarn_comm_size(comm);
  (void)context;
  for (size_t number = 0; number < EFFORT(20, 5); number++) {
    size_t most = number % 4 == 0 ? 1000000 : 40000;
    exchange_once(comm, &(exchange){number, tarn_comm_rank(comm), ranks,
                                    ranks > 8 ? 3000 : most});
  }
}

static const size_t SIZES[] = {1, 2, 3, 4, 7, 40};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

RANKS_LOOP(each_pair_gets_its_bytes, SIZE_COUNT, .size = SIZES[_i],
           .body = exchange_often)

static void exchange_nothing(tarn_comm *comm, void *context) {
  const size_t none[3] = {0};
  (void)context;
  assert_ok(tarn_comm_alltoallv(comm, NULL, none, none, NULL, none, none));
}

RANKS_TEST(nothing_can_be_exchanged, .size = 3, .body = exchange_nothing)

// --- tens of MiB -----------------------------------------------------------

enum { LARGE = (EFFORT(20, 3) << 20) + 12345 };

static void fill(unsigned char *bytes, size_t rank, size_t size) {
  for (size_t i = 0; i < size; i++)
    bytes[i] = byte_of(0, rank, 0, i);
}

static void check(const unsigned char *bytes, size_t rank, size_t size) {
  for (size_t i = 0; i < size; i++)
    require(bytes[i] == byte_of(0, rank, 0, i));
}

static void move_much(tarn_comm *comm, void *context) {
  size_t rank = tarn_comm_rank(comm);
  size_t ranks = tarn_comm_size(comm);
  unsigned char *all = take(ranks * LARGE);
  (void)context;
  fill(all + rank * LARGE, rank, LARGE);
  assert_ok(tarn_comm_allgather(comm, all + rank * LARGE, LARGE, all));
  for (size_t r = 0; r < ranks; r++)
    check(all + r * LARGE, r, LARGE);
  if (rank != 2) memset(all, 0, LARGE);
  if (rank == 2) fill(all, 7, LARGE);
  assert_ok(tarn_comm_broadcast(comm, 2, all, LARGE));
  check(all, 7, LARGE);
  free(all);
}

RANKS_TEST(much_is_moved_in_rounds, .size = 3, .body = move_much)

// --- broken in the middle --------------------------------------------------

static void die_on_the_way(tarn_comm *comm, void *context) {
  unsigned char *all = take(2 * (size_t)LARGE);
  (void)context;
  assert_ok(tarn_comm_barrier(comm));
  if (tarn_comm_rank(comm) == 1 && fork() == 0) {
    usleep(4000);
    kill(getppid(), SIGKILL);
    _exit(0);
  }
  tarn_status status = TARN_OK;
  while (status == TARN_OK)
    status = tarn_comm_allgather(comm, all, LARGE, all);
  ck_assert_int_eq(status, TARN_E_PEER_LOST);
  assert_error_says("comm: rank 1 has ended");
  free(all);
}

TEST(a_death_between_rounds_is_told) {
  for (int run = 0; run < 5; run++) {
    ranks_run(
        &(ranks_plan){.size = 2, .body = die_on_the_way, .killed = 1 << 1});
  }
}
