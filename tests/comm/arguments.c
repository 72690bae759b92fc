// What ranks mean is compared: whatever differs, or is wrong at one of them, is
// told to all, and the communicator goes on.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "support/ranks.h"
#include "support/run.h"

// Rank 1 does otherwise.
static bool is_odd(const tarn_comm *comm) {
  return tarn_comm_rank(comm) == 1;
}

static void goes_on(tarn_comm *comm) {
  assert_ok(tarn_comm_check(comm));
  assert_ok(tarn_comm_barrier(comm));
}

#define assert_all_told(call, part)      \
  do {                                   \
    assert_status(call, TARN_E_INVALID); \
    assert_error_says(part);             \
    goes_on(comm);                       \
  } while (0)

// --- calls -----------------------------------------------------------------

static tarn_status call(tarn_comm *comm, int which) {
  static int64_t all[8];
  size_t ones[3] = {8, 8, 8};
  size_t at[3] = {0, 8, 16};
  int fds[3];
  tarn_comm *group = NULL;
  int64_t value = 1;
  switch (which) {
    case 0:
      return tarn_comm_barrier(comm);
    case 1:
      return tarn_comm_broadcast(comm, 0, &value, sizeof value);
    case 2:
      return tarn_comm_allgather(comm, &value, sizeof value, all);
    case 3:
      return tarn_comm_alltoallv(comm, all, ones, at, all + 4, ones, at);
    case 4:
      return tarn_comm_share(comm, -1, fds);
    case 5:
      return tarn_comm_same(comm, &value, sizeof value, "one");
    case 6:
      return tarn_comm_agree(comm, TARN_OK);
    default:
      return tarn_comm_split(comm, 0, 0, &group);
  }
}

static const char *const NAMES[] = {
    "tarn_comm_barrier",   "tarn_comm_broadcast", "tarn_comm_allgather",
    "tarn_comm_alltoallv", "tarn_comm_share",     "tarn_comm_same",
    "tarn_comm_agree",     "tarn_comm_split",
};
enum { CALLS = sizeof NAMES / sizeof *NAMES };

static void call_another(tarn_comm *comm, void *context) {
  char expected[128];
  (void)context;
  for (int usual = 0; usual < CALLS; usual++) {
    for (int odd = 0; odd < CALLS; odd++) {
      if (odd == usual) continue;
      snprintf(expected, sizeof expected, "comm: rank 0 calls %s, rank 1 %s",
               NAMES[usual], NAMES[odd]);
      assert_status(call(comm, is_odd(comm) ? odd : usual), TARN_E_INVALID);
      ck_assert_str_eq(tarn_last_error(), expected);
      goes_on(comm);
    }
  }
}

RANKS_TEST(another_call_is_told, .size = 3, .body = call_another)

// --- arguments that differ -------------------------------------------------

static void differ(tarn_comm *comm, void *context) {
  static unsigned char bytes[3 * 5000];
  size_t odd = is_odd(comm);
  (void)context;
  assert_all_told(tarn_comm_broadcast(comm, odd * 2, bytes, 8),
                  "tarn_comm_broadcast: the root is 0 at rank 0, 2 at rank 1");
  assert_all_told(tarn_comm_broadcast(comm, 0, bytes, 8 + odd),
                  "tarn_comm_broadcast: the size is 8 at rank 0, 9 at rank 1");
  assert_all_told(tarn_comm_broadcast(comm, 0, bytes, 5000 * odd),
                  "the size is 0 at rank 0, 5000 at rank 1");
  assert_all_told(tarn_comm_allgather(comm, bytes, 8 + odd, bytes),
                  "tarn_comm_allgather: the size is 8 at rank 0, 9 at rank 1");
  assert_all_told(tarn_comm_same(comm, bytes, 8 + odd, "bytes"),
                  "tarn_comm_same: the size is 8 at rank 0, 9 at rank 1");
}

RANKS_TEST(what_differs_is_told, .size = 3, .body = differ)

// --- arguments that are wrong at one rank ----------------------------------

static void be_wrong(tarn_comm *comm, void *context) {
  static unsigned char bytes[3 * 5000];
  bool odd = is_odd(comm);
  void *data = odd ? NULL : bytes;
  int fds[3] = {7, 7, 7};
  (void)context;
  assert_all_told(tarn_comm_broadcast(comm, 3, bytes, 8),
                  "rank 0: tarn_comm_broadcast: root 3 is not below 3 ranks");
  assert_all_told(tarn_comm_broadcast(comm, 0, data, 8),
                  "rank 1: tarn_comm_broadcast: NULL for 8 bytes");
  assert_all_told(tarn_comm_broadcast(comm, 1, data, 5000),
                  "rank 1: tarn_comm_broadcast: NULL for 5000 bytes");
  assert_all_told(tarn_comm_allgather(comm, data, 8, bytes),
                  "rank 1: tarn_comm_allgather: NULL for 8 bytes");
  assert_all_told(tarn_comm_allgather(comm, bytes, 5000, data),
                  "rank 1: tarn_comm_allgather: NULL for 5000 bytes");
  assert_all_told(
      tarn_comm_allgather(comm, bytes, SIZE_MAX / 2, bytes),
      "tarn_comm_allgather: 9223372036854775807 bytes of each of 3 ranks");
  assert_all_told(tarn_comm_same(comm, data, 8, "eight"),
                  "rank 1: tarn_comm_same: NULL");
  assert_all_told(tarn_comm_same(comm, bytes, 8, odd ? NULL : "eight"),
                  "rank 1: tarn_comm_same: NULL");
  assert_all_told(tarn_comm_same(comm, bytes, 257, "more"),
                  "rank 0: tarn_comm_same: 257 bytes exceed 256");
  assert_all_told(
      tarn_comm_share(comm, odd ? 9999 : -1, fds),
      "rank 1: tarn_comm_share: 9999 is not an open file descriptor");
  for (int i = 0; i < 3; i++)
    ck_assert_int_eq(fds[i], -1);
  assert_all_told(tarn_comm_share(comm, odd ? -2 : -1, fds),
                  "rank 1: tarn_comm_share: -2 is not an open file descriptor");
  assert_all_told(tarn_comm_share(comm, -1, odd ? NULL : fds),
                  "rank 1: tarn_comm_share: NULL");
  tarn_comm *group = comm;
  assert_all_told(tarn_comm_split(comm, 0, 0, odd ? NULL : &group),
                  "rank 1: tarn_comm_split: NULL");
  ck_assert_ptr_eq(group, odd ? comm : NULL);
}

RANKS_TEST(what_is_wrong_at_one_is_told_to_all, .size = 3, .body = be_wrong)

// --- alltoallv -------------------------------------------------------------

static void exchange_wrong(tarn_comm *comm, void *context) {
  static unsigned char out[64];
  static unsigned char in[64];
  bool odd = is_odd(comm);
  const size_t at[3] = {0, 8, 16};
  const size_t sizes[3] = {8, 8, 8};
  const size_t other[3] = {8, 8, 4};
  const size_t far[3] = {0, SIZE_MAX - 3, 16};
  (void)context;
  assert_all_told(
      tarn_comm_alltoallv(comm, out, odd ? other : sizes, at, in, sizes, at),
      "rank 2: tarn_comm_alltoallv: expects 8 bytes from rank 1, which sends "
      "4");
  assert_all_told(
      tarn_comm_alltoallv(comm, out, sizes, at, in, odd ? other : sizes, at),
      "rank 1: tarn_comm_alltoallv: expects 4 bytes from rank 2, which sends "
      "8");
  assert_all_told(
      tarn_comm_alltoallv(comm, out, sizes, odd ? far : at, in, sizes, at),
      "rank 1: tarn_comm_alltoallv: size 8 at offset 18446744073709551612 "
      "overflows");
  assert_all_told(
      tarn_comm_alltoallv(comm, odd ? NULL : out, sizes, at, in, sizes, at),
      "rank 1: tarn_comm_alltoallv: NULL for 8 bytes");
  assert_all_told(
      tarn_comm_alltoallv(comm, out, sizes, at, odd ? NULL : in, sizes, at),
      "rank 1: tarn_comm_alltoallv: NULL for 8 bytes");
  assert_all_told(
      tarn_comm_alltoallv(comm, out, odd ? NULL : sizes, at, in, sizes, at),
      "rank 1: tarn_comm_alltoallv: NULL");
  assert_all_told(
      tarn_comm_alltoallv(comm, out, sizes, at, in, sizes, odd ? NULL : at),
      "rank 1: tarn_comm_alltoallv: NULL");
  for (size_t i = 0; i < sizeof in; i++)
    require(in[i] == 0);
}

RANKS_TEST(pairs_must_agree, .size = 3, .body = exchange_wrong)

// --- without a communicator ------------------------------------------------

TEST(null_is_refused) {
  tarn_rendezvous *meeting = NULL;
  tarn_comm *comm = NULL;
  char variable[TARN_RENDEZVOUS_VARIABLE];
  int64_t value = 0;
  int fds[1];
  size_t one = 0;
  assert_status(tarn_comm_barrier(NULL), TARN_E_INVALID);
  assert_status(tarn_comm_broadcast(NULL, 0, &value, 8), TARN_E_INVALID);
  assert_status(tarn_comm_allgather(NULL, &value, 8, &value), TARN_E_INVALID);
  assert_status(tarn_comm_alltoallv(NULL, NULL, &one, &one, NULL, &one, &one),
                TARN_E_INVALID);
  assert_status(tarn_comm_share(NULL, -1, fds), TARN_E_INVALID);
  assert_status(tarn_comm_same(NULL, &value, 8, "value"), TARN_E_INVALID);
  assert_status(tarn_comm_agree(NULL, TARN_OK), TARN_E_INVALID);
  assert_status(tarn_comm_split(NULL, 0, 0, &comm), TARN_E_INVALID);
  assert_status(tarn_comm_check(NULL), TARN_E_INVALID);
  assert_ok(tarn_comm_destroy(NULL));
  tarn_rendezvous_destroy(NULL);
  assert_status(tarn_rendezvous_create(1, NULL), TARN_E_INVALID);
  assert_status(tarn_comm_join(NULL, 0, NULL, &comm), TARN_E_INVALID);
  assert_status(tarn_comm_from_environment(NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_rendezvous_hand_over(NULL, 0, variable, sizeof variable),
                TARN_E_INVALID);
  assert_ok(tarn_rendezvous_create(1, &meeting));
  assert_status(tarn_comm_join(meeting, 0, NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_rendezvous_hand_over(meeting, 0, NULL, sizeof variable),
                TARN_E_INVALID);
  tarn_rendezvous_destroy(meeting);
}

TEST(wrong_sizes_are_refused) {
  tarn_rendezvous *meeting = (tarn_rendezvous *)&meeting;
  assert_status(tarn_rendezvous_create(0, &meeting), TARN_E_INVALID);
  ck_assert_ptr_null(meeting);
  assert_error_says("size is 0, not 1 to 256");
  assert_status(tarn_rendezvous_create(257, &meeting), TARN_E_INVALID);
  assert_error_says("size is 257, not 1 to 256");
}
