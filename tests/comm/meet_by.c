// Ranks that meet by an allgather of the caller's, here over shared memory.
#include <stdlib.h>
#include <string.h>

#include "meet_kit.h"

enum { MACHINE_AT = 16 };

typedef enum wrong {
  NOTHING,
  FAILS,     // the function, at rank 1
  MACHINE,   // rank 1 is elsewhere
  TURNED,    // rank 0 and rank 1 change places
  OPTIONS,   // of rank 1
  NO_OUT,    // of rank 1
  NO_PLACE,  // TMPDIR is not there
  TOO_LONG,  // nor would it do
  LATE,      // rank 1, until rank 0 has given up
} wrong;

static void swap(unsigned char *a, unsigned char *b, size_t size) {
  for (size_t i = 0; i < size; i++) {
    unsigned char was = a[i];
    a[i] = b[i];
    b[i] = was;
  }
}

static tarn_status gather(void *context, const void *data, size_t size,
                          void *out) {
  const meet_member *own = context;
  unsigned char *bytes = out;
  MUST(meet_gather(context, data, size, out) == TARN_OK);
  if (own->wrong == TURNED) swap(bytes, bytes + size, size);
  if (own->wrong == LATE && own->rank == 1) usleep(500 * 1000);
  if (own->wrong == MACHINE) bytes[size + MACHINE_AT] ^= 1;
  return own->wrong == FAILS ? TARN_E_IO : TARN_OK;
}

static void run_at(size_t size, wrong what) {
  pid_t children[MEET_MOST];
  meet_clear_board();
  for (size_t rank = 0; rank < size; rank++) {
    meet_member member = {.rank = rank,
                          .size = size,
                          .timeout_ms = 20000,
                          .gather = gather,
                          .wrong = (int)what};
    if (rank == 0 && what == LATE) member.timeout_ms = 50;
    if (rank == 1 && what == OPTIONS) member.flags = 8;
    if (rank == 1 && what == NO_OUT) member.no_out = true;
    children[rank] = meet_start(member);
  }
  for (size_t rank = 0; rank < size; rank++)
    group_await(children[rank]);
  for (size_t rank = 0; rank < size; rank++)
    ck_assert_int_eq(atomic_load(&meet_board_of_all()->came[rank]), 1);
}

static void run_in_folder(size_t size, wrong what) {
  ck_assert_int_eq(setenv("TMPDIR", group_folder(), 1), 0);
  run_at(size, what);
  group_see_empty();
}

static void see_all(size_t size, tarn_status status, const char *text) {
  for (size_t rank = 0; rank < size; rank++)
    assert_told(rank, status, text);
}

TEST(all_meet) {
  static const size_t sizes[] = {1, 2, 3, 16};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    run_in_folder(sizes[i], NOTHING);
    see_all(sizes[i], TARN_OK, "");
  }
  ck_assert_int_eq(unsetenv("TMPDIR"), 0);
  run_at(2, NOTHING);
  see_all(2, TARN_OK, "");
}

TEST(ranks_of_other_machines_do_not) {
  run_in_folder(3, MACHINE);
  see_all(3, TARN_E_UNSUPPORTED,
          "rank 1 is on a different machine than rank 0");
}

// A name of 47 bytes fits, another byte does not.
TEST(a_machine_may_have_a_name) {
  char name[] = "a-machine-whose-name-is-as-long-as-it-may-be-47x";
  ck_assert_uint_eq(strlen(name), 48);
  ck_assert_int_eq(setenv("TARN_HOST", name, 1), 0);
  run_in_folder(2, NOTHING);
  see_all(2, TARN_E_INVALID, "has more than 47 bytes");
  name[47] = '\0';
  ck_assert_int_eq(setenv("TARN_HOST", name, 1), 0);
  run_in_folder(2, NOTHING);
  see_all(2, TARN_OK, "");
}

TEST(what_the_function_says_is_told) {
  run_in_folder(2, FAILS);
  see_all(2, TARN_E_IO, "the allgather returned");
}

TEST(ranks_in_another_order_are_refused) {
  run_in_folder(2, TURNED);
  see_all(2, TARN_E_INVALID, "than that rank gave");
}

TEST(what_is_wrong_at_one_is_told_to_all) {
  run_in_folder(3, OPTIONS);
  see_all(3, TARN_E_INVALID, "");
  assert_told(1, TARN_E_INVALID, "flags 0x8");
  assert_told(2, TARN_E_INVALID, "rank 1 cannot take part");
  run_in_folder(3, NO_OUT);
  see_all(3, TARN_E_INVALID, "");
}

TEST(a_rank_that_comes_too_late_has_lost_rank_0) {
  run_in_folder(2, LATE);
  assert_told(0, TARN_E_TIMEOUT, "");
  assert_told(1, TARN_E_PEER_LOST, "rank 0 has given up");
}

TEST(rank_0_needs_a_folder) {
  char path[200];
  ck_assert_int_eq(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
  run_at(3, NO_PLACE);
  see_all(3, TARN_E_IO, "");
  assert_told(0, TARN_E_IO, "no folder in '/nowhere");
  assert_told(1, TARN_E_IO, "rank 0 cannot take part");
  memset(path, 'x', sizeof path);
  path[0] = '/';
  path[sizeof path - 1] = '\0';
  ck_assert_int_eq(setenv("TMPDIR", path, 1), 0);
  run_at(2, TOO_LONG);
  see_all(2, TARN_E_INVALID, "");
}

TEST(arguments_are_checked) {
  tarn_comm *comm = NULL;
  meet_member own = {.size = 1};
  assert_status(tarn_comm_meet_by(NULL, NULL, 0, 1, NULL, &comm),
                TARN_E_INVALID);
  assert_status(tarn_comm_meet_by(gather, &own, 0, 0, NULL, &comm),
                TARN_E_INVALID);
  assert_status(tarn_comm_meet_by(gather, &own, 1, 1, NULL, &comm),
                TARN_E_INVALID);
  assert_status(tarn_comm_meet_by(gather, &own, 0, 257, NULL, &comm),
                TARN_E_INVALID);
}
