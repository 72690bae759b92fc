// Ranks that meet by an allgather of the caller's, here over shared memory.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/child.h"
#include "support/party.h"
#include "support/ranks.h"
#include "support/run.h"

enum { MOST = 16, ROOM = 1024, MACHINE_AT = 16 };

typedef enum wrong {
  NOTHING,
  FAILS,     // the function, at rank 1
  MACHINE,   // rank 1 is elsewhere
  TURNED,    // rank 0 and rank 1 change places
  OPTIONS,   // of rank 1
  NO_OUT,    // of rank 1
  NO_PLACE,  // TMPDIR is not there
  TOO_LONG,  // nor would it do
} wrong;

typedef struct board {
  pthread_barrier_t barrier;
  unsigned char bytes[MOST][ROOM];
  volatile tarn_status status[MOST];
  char texts[MOST][512];
  volatile int calls[MOST];
} board;

static board *shared;

typedef struct seat {
  size_t rank;
  size_t size;
  wrong wrong;
} seat;

static tarn_status gather(void *context, const void *data, size_t size,
                          void *out) {
  const seat *own = context;
  MUST(size <= ROOM);
  memcpy(shared->bytes[own->rank], data, size);
  shared->calls[own->rank]++;
  pthread_barrier_wait(&shared->barrier);
  for (size_t rank = 0; rank < own->size; rank++) {
    size_t from = own->wrong == TURNED && rank < 2 ? 1 - rank : rank;
    memcpy((unsigned char *)out + rank * size, shared->bytes[from], size);
  }
  if (own->wrong == MACHINE) ((unsigned char *)out)[size + MACHINE_AT] ^= 1;
  return own->wrong == FAILS ? TARN_E_IO : TARN_OK;
}

static _Noreturn void be_rank(seat own) {
  tarn_comm_options options = {.struct_size = sizeof options,
                               .timeout_ms = 20000};
  tarn_comm *comm = NULL;
  child_begin(60);
  size_t before = ranks_descriptors();
  size_t held = tarn_host_memory();
  bool odd = own.rank == 1;
  if (own.wrong == OPTIONS && odd) options.flags = 8;
  tarn_status status =
      tarn_comm_meet_by(gather, &own, own.rank, own.size, &options,
                        own.wrong == NO_OUT && odd ? NULL : &comm);
  if (status == TARN_OK) status = tarn_comm_barrier(comm);
  shared->status[own.rank] = status;
  if (status != TARN_OK)
    snprintf(shared->texts[own.rank], sizeof *shared->texts, "%s",
             tarn_last_error());
  MUST(tarn_comm_destroy(comm) == TARN_OK);
  MUST(ranks_descriptors() == before);
  MUST(tarn_host_memory() == held);
  _exit(0);
}

static void run_at(size_t size, wrong what) {
  pthread_barrierattr_t attributes;
  pid_t children[MOST];
  if (shared == NULL) shared = ranks_shared(sizeof *shared);
  memset(shared, 0, sizeof *shared);
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &attributes, (unsigned)size);
  for (size_t rank = 0; rank < size; rank++) {
    children[rank] = fork();
    require(children[rank] >= 0);
    if (children[rank] == 0)
      be_rank((seat){.rank = rank, .size = size, .wrong = what});
  }
  for (size_t rank = 0; rank < size; rank++)
    party_await(children[rank]);
  for (size_t rank = 0; rank < size; rank++)
    ck_assert_int_eq(shared->calls[rank], 1);
}

static void run_in_folder(size_t size, wrong what) {
  ck_assert_int_eq(setenv("TMPDIR", party_folder(), 1), 0);
  run_at(size, what);
  party_see_empty();
}

static void see_all(size_t size, tarn_status status, const char *text) {
  for (size_t rank = 0; rank < size; rank++) {
    ck_assert_msg(shared->status[rank] == status, "rank %zu: %s '%s'", rank,
                  tarn_status_name(shared->status[rank]), shared->texts[rank]);
    ck_assert_msg(strstr(shared->texts[rank], text) != NULL, "rank %zu: '%s'",
                  rank, shared->texts[rank]);
  }
}

START_TEST(all_meet) {
  static const size_t sizes[] = {1, 2, 3, 16};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    run_in_folder(sizes[i], NOTHING);
    see_all(sizes[i], TARN_OK, "");
  }
  ck_assert_int_eq(unsetenv("TMPDIR"), 0);
  run_at(2, NOTHING);
  see_all(2, TARN_OK, "");
}
END_TEST

START_TEST(ranks_of_other_machines_do_not) {
  run_in_folder(3, MACHINE);
  see_all(3, TARN_E_UNSUPPORTED, "rank 1 is on another machine than rank 0");
}
END_TEST

START_TEST(what_the_function_says_is_told) {
  run_in_folder(2, FAILS);
  see_all(2, TARN_E_IO, "the allgather of the caller's has answered");
}
END_TEST

START_TEST(ranks_in_another_order_are_refused) {
  run_in_folder(2, TURNED);
  see_all(2, TARN_E_INVALID, "is not what that rank gave");
}
END_TEST

START_TEST(what_is_wrong_at_one_is_told_to_all) {
  run_in_folder(3, OPTIONS);
  see_all(3, TARN_E_INVALID, "");
  ck_assert_ptr_nonnull(strstr(shared->texts[1], "flags 0x8"));
  ck_assert_ptr_nonnull(strstr(shared->texts[2], "rank 1 cannot take part"));
  run_in_folder(3, NO_OUT);
  see_all(3, TARN_E_INVALID, "");
}
END_TEST

START_TEST(rank_0_needs_a_folder) {
  char path[200];
  ck_assert_int_eq(setenv("TMPDIR", "/nowhere/at/all", 1), 0);
  run_at(3, NO_PLACE);
  see_all(3, TARN_E_IO, "");
  ck_assert_ptr_nonnull(strstr(shared->texts[0], "no folder in '/nowhere"));
  ck_assert_ptr_nonnull(strstr(shared->texts[1], "rank 0 cannot take part"));
  memset(path, 'x', sizeof path);
  path[0] = '/';
  path[sizeof path - 1] = '\0';
  ck_assert_int_eq(setenv("TMPDIR", path, 1), 0);
  run_at(2, TOO_LONG);
  see_all(2, TARN_E_INVALID, "");
}
END_TEST

START_TEST(arguments_are_checked) {
  tarn_comm *comm = NULL;
  seat own = {.size = 1};
  assert_status(tarn_comm_meet_by(NULL, NULL, 0, 1, NULL, &comm),
                TARN_E_INVALID);
  assert_status(tarn_comm_meet_by(gather, &own, 0, 0, NULL, &comm),
                TARN_E_INVALID);
  assert_status(tarn_comm_meet_by(gather, &own, 1, 1, NULL, &comm),
                TARN_E_INVALID);
  assert_status(tarn_comm_meet_by(gather, &own, 0, 257, NULL, &comm),
                TARN_E_INVALID);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("comm_meet_by");
  ADD_CASE(suite, "all", all_meet);
  ADD_CASE(suite, "wrong", ranks_of_other_machines_do_not,
           what_the_function_says_is_told, ranks_in_another_order_are_refused,
           what_is_wrong_at_one_is_told_to_all, rank_0_needs_a_folder,
           arguments_are_checked);
  return run_suite(suite);
}
