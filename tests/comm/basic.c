// Communicators of forked ranks: every collective does what it says.
#include <string.h>
#include <unistd.h>

#include "comm/comm.h"
#include "comm/local.h"
#include "support/effort.h"
#include "support/ranks.h"
#include "support/run.h"

static const size_t SIZES[] = {1, 2, 3, 4, 7, 64};
enum { SIZE_COUNT = sizeof SIZES / sizeof *SIZES };

// --- barrier ---------------------------------------------------------------

// Each rank counts up before a barrier, and sees all counts behind it.
static void count_up(tarn_comm *comm, void *context) {
  volatile uint32_t *counts = context;
  size_t rank = tarn_comm_rank(comm);
  for (uint32_t round = 1; round <= EFFORT(50, 10); round++) {
    counts[rank] = round;
    assert_ok(tarn_comm_barrier(comm));
    for (size_t i = 0; i < tarn_comm_size(comm); i++)
      require(counts[i] == round || counts[i] == round + 1);
  }
}

TEST_LOOP(a_barrier_holds_all, SIZE_COUNT) {
  size_t size = SIZES[_i];
  ranks_run(&(ranks_plan){
      .size = size, .body = count_up, .context = ranks_shared(4096)});
}

// --- broadcast and allgather -----------------------------------------------

static unsigned char byte_of(size_t rank, size_t i) {
  return (unsigned char)(rank * 31 + i * 7 + (i >> 8) * 3 + (i >> 16));
}

static void fill(unsigned char *bytes, size_t rank, size_t size) {
  for (size_t i = 0; i < size; i++)
    bytes[i] = byte_of(rank, i);
}

static void check(const unsigned char *bytes, size_t rank, size_t size) {
  for (size_t i = 0; i < size; i++)
    require(bytes[i] == byte_of(rank, i));
}

static const size_t PAYLOADS[] = {0, 1, 8, 296, 297, 4096, 300001};
enum { PAYLOAD_COUNT = sizeof PAYLOADS / sizeof *PAYLOADS };

static void broadcast_all(tarn_comm *comm, void *context) {
  static unsigned char bytes[300001];
  (void)context;
  for (size_t p = 0; p < PAYLOAD_COUNT; p++) {
    if (PAYLOADS[p] > 4096 && tarn_comm_size(comm) > EFFORT(64, 7)) continue;
    for (size_t root = 0; root < tarn_comm_size(comm); root += EFFORT(5, 17)) {
      memset(bytes, 0, sizeof bytes);
      if (tarn_comm_rank(comm) == root) fill(bytes, root, PAYLOADS[p]);
      assert_ok(tarn_comm_broadcast(comm, root, bytes, PAYLOADS[p]));
      check(bytes, root, PAYLOADS[p]);
      if (PAYLOADS[p] < sizeof bytes) require(bytes[PAYLOADS[p]] == 0);
    }
  }
}

RANKS_LOOP(a_broadcast_reaches_all, SIZE_COUNT, .size = SIZES[_i],
           .body = broadcast_all)

static void gather_all(tarn_comm *comm, void *context) {
  static unsigned char own[300001];
  static unsigned char all[7 * 300001];
  size_t rank = tarn_comm_rank(comm);
  size_t size = tarn_comm_size(comm);
  (void)context;
  for (size_t p = 0; p < PAYLOAD_COUNT; p++) {
    if (size * PAYLOADS[p] > sizeof all) continue;
    for (int in_place = 0; in_place < 2; in_place++) {
      unsigned char *data = in_place ? all + rank * PAYLOADS[p] : own;
      memset(all, 0, sizeof all);
      fill(data, rank, PAYLOADS[p]);
      assert_ok(tarn_comm_allgather(comm, data, PAYLOADS[p], all));
      for (size_t r = 0; r < size; r++)
        check(all + r * PAYLOADS[p], r, PAYLOADS[p]);
    }
  }
}

RANKS_LOOP(an_allgather_has_all, SIZE_COUNT, .size = SIZES[_i],
           .body = gather_all)

// --- share -----------------------------------------------------------------

// Each rank passes the reading end of a pipe, in which its number stands; odd
// ones pass nothing.
static void share_pipes(tarn_comm *comm, void *context) {
  int fds[TARN_COMM_MOST_RANKS];
  int ends[2];
  (void)context;
  size_t rank = tarn_comm_rank(comm);
  for (int round = 0; round < 3; round++) {
    ck_assert_int_eq(pipe(ends), 0);
    for (size_t i = 0; i < tarn_comm_size(comm); i++)
      require(write(ends[1], &rank, sizeof rank) == sizeof rank);
    assert_ok(tarn_comm_share(comm, rank % 2 == 0 ? ends[0] : -1, fds));
    close(ends[0]);
    close(ends[1]);
    for (size_t i = 0; i < tarn_comm_size(comm); i++) {
      size_t got = 0;
      ck_assert_int_eq(fds[i] >= 0, i != rank && i % 2 == 0);
      if (fds[i] < 0) continue;
      ck_assert_int_eq(read(fds[i], &got, sizeof got), sizeof got);
      ck_assert_uint_eq(got, i);
      close(fds[i]);
    }
  }
}

RANKS_LOOP(descriptors_are_shared, SIZE_COUNT, .size = SIZES[_i],
           .body = share_pipes)

// --- same and agree --------------------------------------------------------

static void see_same(tarn_comm *comm, void *context) {
  unsigned char bytes[TARN_COMM_MOST_SAME] = {1, 2, 3};
  (void)context;
  assert_ok(tarn_comm_same(comm, bytes, sizeof bytes, "three numbers"));
  assert_ok(tarn_comm_same(comm, NULL, 0, "nothing"));
  if (tarn_comm_size(comm) < 3) return;
  bool odd = tarn_comm_rank(comm) == 2;
  bytes[TARN_COMM_MOST_SAME - 1] = odd;
  assert_status(tarn_comm_same(comm, bytes, sizeof bytes,
                               odd ? "the odd one" : "the usual"),
                TARN_E_INVALID);
  assert_error_says("rank 0 has the usual, rank 2 has the odd one");
  assert_ok(tarn_comm_barrier(comm));
}

RANKS_LOOP(ranks_see_whether_they_mean_the_same, SIZE_COUNT, .size = SIZES[_i],
           .body = see_same)

static void agree(tarn_comm *comm, void *context) {
  tarn_comm *none = NULL;
  size_t rank = tarn_comm_rank(comm);
  (void)context;
  assert_ok(tarn_comm_agree(comm, TARN_OK));
  if (tarn_comm_size(comm) < 3) return;
  tarn_status own = TARN_OK;
  if (rank == 1) own = tarn_comm_create(NULL, NULL, 0, 1, 0, &none);
  if (rank == 2) own = TARN_E_DEVICE;
  assert_status(tarn_comm_agree(comm, own), TARN_E_INVALID);
  assert_error_says("rank 1: tarn_comm_create: NULL");
  assert_ok(tarn_comm_barrier(comm));
}

RANKS_LOOP(ranks_agree_on_the_lowest_failure, SIZE_COUNT, .size = SIZES[_i],
           .body = agree)

// --- rounds beyond counting ------------------------------------------------

// As if |round| rounds were over; no rank is in any.
static void go_to_round(tarn_comm *comm, uint64_t round) {
  tarn__comm_local *local = comm->self;
  local->round = round;
  atomic_store(&local->area.members[local->rank].arrived, 2 * (unsigned)round);
  if (local->rank != 0) return;
  atomic_store(&local->area.head->futex, (unsigned)round);
  atomic_store(&local->area.head->count, round * local->size);
}

static const uint64_t WRAPS[] = {UINT64_C(1) << 31, UINT64_C(1) << 32,
                                 UINT64_C(3) << 31};
enum { WRAP_COUNT = sizeof WRAPS / sizeof *WRAPS, AROUND = 5 };

static void go_beyond(tarn_comm *comm, void *context) {
  const uint64_t *wrap = context;
  tarn_comm *group = NULL;
  uint64_t all[4];
  assert_ok(tarn_comm_split(comm, 0, 0, &group));
  go_to_round(group, *wrap - AROUND);
  assert_ok(tarn_comm_barrier(comm));
  for (uint64_t i = 0; i < (uint64_t)2 * AROUND; i++) {
    uint64_t own = 10 * i + tarn_comm_rank(comm);
    assert_ok(tarn_comm_allgather(group, &own, sizeof own, all));
    for (size_t rank = 0; rank < tarn_comm_size(comm); rank++)
      ck_assert_uint_eq(all[rank], 10 * i + rank);
  }
  if (tarn_comm_rank(comm) == 1) ranks_die();
  assert_status(tarn_comm_barrier(group), TARN_E_PEER_LOST);
  assert_error_says("rank 1 has ended");
  assert_ok(tarn_comm_destroy(group));
}

RANKS_LOOP(rounds_go_beyond_what_can_be_counted, WRAP_COUNT, .size = 4,
           .body = go_beyond, .context = (void *)(uintptr_t)&WRAPS[_i],
           .killed = 2)
