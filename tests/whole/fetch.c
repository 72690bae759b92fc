// Gathers that go on while the program does something else.
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comm/post_office.h"
#include "kit.h"
#include "support/threads.h"

enum { ROWS = 5000, WIDTH = 24, COUNT = 3000 };

static tarn_whole_tensor make(tarn_comm *comm, tarn_whole_type type) {
  tarn_whole_tensor table;
  tarn_addr local = 0;
  size_t first = 0, count = 0;
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = type,
                                      .place = TARN_HOST,
                                      .dtype = TARN_DTYPE_I32,
                                      .rows = ROWS,
                                      .width = WIDTH};
  MUST_BE(tarn_whole_table_create(comm, &options, &table), TARN_OK);
  MUST_BE(tarn_whole_tensor_rows(&table, tarn_comm_rank(comm), &first, &count),
          TARN_OK);
  MUST_BE(tarn_whole_tensor_local(&table, &local), TARN_OK);
  int32_t *own = (int32_t *)(uintptr_t)local;
  for (size_t i = 0; i < count * WIDTH; i++)
    own[i] = (int32_t)(first * WIDTH + i);
  MUST_BE(tarn_comm_barrier(comm), TARN_OK);
  return table;
}

typedef struct batch {
  int64_t ids[COUNT];
  int32_t rows[COUNT][WIDTH];
  tarn_whole_rows wanted;
} batch;

static batch *draw(size_t seed) {
  batch *b = malloc(sizeof *b);
  MUST(b != NULL);
  for (size_t i = 0; i < COUNT; i++)
    b->ids[i] = (int64_t)((i * 7919 + seed * 104729) % ROWS);
  memset(b->rows, 0xee, sizeof b->rows);
  b->wanted = (tarn_whole_rows){.struct_size = sizeof b->wanted,
                                .place = TARN_HOST,
                                .dense = (tarn_addr)(uintptr_t)b->rows,
                                .indices = (tarn_addr)(uintptr_t)b->ids,
                                .index_dtype = TARN_DTYPE_I64,
                                .index_count = COUNT};
  return b;
}

static void check(const batch *b) {
  for (size_t i = 0; i < COUNT; i++) {
    for (size_t k = 0; k < WIDTH; k++)
      MUST(b->rows[i][k] == (int32_t)(b->ids[i] * WIDTH + (int64_t)k));
  }
}

// Other collectives, of the same table and beside it, go on meanwhile.
static void fetch_beside(tarn_comm *comm, tarn_whole_type type,
                         bool has_thread) {
  tarn_whole_tensor table = make(comm, type);
  size_t rank = tarn_comm_rank(comm);
  for (size_t round = 0; round < 5; round++) {
    tarn_whole_fetch *fetch = NULL;
    tarn_whole_fetch *second = NULL;
    batch *next = draw(rank + 10 * round);
    batch *now = draw(rank + 10 * round + 5);
    MUST_BE(tarn_whole_gather_begin(&table, &next->wanted, &fetch), TARN_OK);
    MUST(fetch != NULL);
    MUST_BE(tarn_whole_gather(&table, &now->wanted, NULL), TARN_OK);
    MUST_BE(tarn_comm_barrier(comm), TARN_OK);
    check(now);
    MUST_BE(tarn_whole_gather_begin(&table, &now->wanted, &second),
            TARN_E_STATE);
    MUST(strstr(tarn_last_error(), "has not ended") != NULL);
    MUST(second == NULL);
    MUST_BE(tarn_whole_destroy(table.whole), TARN_E_STATE);
    if (has_thread && rank == 0) usleep(1000);
    MUST_BE(tarn_whole_gather_end(fetch), TARN_OK);
    check(next);
    free(next);
    free(now);
  }
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
}

static void fetch_by_ranks(void) {
  for (int type = TARN_WHOLE_CONTINUOUS; type <= TARN_WHOLE_DISTRIBUTED; type++)
    fetch_beside(my.comm, (tarn_whole_type)type, true);
}

TEST(rows_come_beside_the_program) {
  for (size_t ranks = 1; ranks <= 4; ranks++)
    run_ranks(ranks, "fetch", fetch_by_ranks);
}

static void fetch_by_messages(tarn_comm *comm, void *flags) {
  fetch_beside(comm, TARN_WHOLE_DISTRIBUTED, *(const uint32_t *)flags != 0);
}

// With a thread where the engine allows that, otherwise in the end.
TEST_LOOP(rows_come_by_messages, 2) {
  uint32_t flags = _i == 0 ? 0 : TARN_COMM_ANY_THREAD;
  for (size_t ranks = 2; ranks <= 3; ranks++) {
    post_run(&(post_job){.ranks = ranks,
                         .run = fetch_by_messages,
                         .context = &flags,
                         .flags = flags},
             false);
  }
}

// --- arguments -------------------------------------------------------------

// One rank's wrong index is the error of all, and nothing is under way then.
static void ask_for_what_is_not(void) {
  tarn_whole_tensor table = make(my.comm, TARN_WHOLE_DISTRIBUTED);
  tarn_whole_fetch *fetch = NULL;
  batch *b = draw(1);
  if (my.rank == 1) b->ids[7] = ROWS;
  MUST_BE(tarn_whole_gather_begin(&table, &b->wanted, &fetch), TARN_E_INVALID);
  MUST_SAY("tarn_whole_gather_begin of whole");
  MUST_SAY("5000");
  MUST(fetch == NULL);
  b->ids[7] = 0;
  MUST_BE(
      tarn_whole_gather_begin(&table, my.rank == 0 ? NULL : &b->wanted, &fetch),
      TARN_E_INVALID);
  MUST_BE(
      tarn_whole_gather_begin(&table, &b->wanted, my.rank == 0 ? NULL : &fetch),
      TARN_E_INVALID);
  MUST_BE(tarn_whole_gather_begin(NULL, &b->wanted, &fetch), TARN_E_INVALID);
  MUST_BE(tarn_whole_gather_end(NULL), TARN_OK);
  MUST_BE(tarn_whole_gather_begin(&table, &b->wanted, &fetch), TARN_OK);
  MUST_BE(tarn_whole_gather_end(fetch), TARN_OK);
  check(b);
  free(b);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
}

TEST(wrong_arguments) {
  run_ranks(2, "wrong arguments", ask_for_what_is_not);
}

static void ask_for_no_row_of_a_mapped_table(void) {
  tarn_whole_tensor table = make(my.comm, TARN_WHOLE_CHUNKED);
  tarn_whole_fetch *fetch = NULL;
  batch *b = draw(1);
  b->ids[3] = -1;
  MUST_BE(tarn_whole_gather_begin(&table, &b->wanted, &fetch), TARN_OK);
  MUST_BE(tarn_whole_gather_end(fetch), TARN_E_INVALID);
  MUST_SAY("-1");
  free(b);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
}

TEST(a_wrong_index_of_a_mapped_table) {
  run_ranks(2, "a wrong index", ask_for_no_row_of_a_mapped_table);
}

// --- what is lost ----------------------------------------------------------

static void lose_a_rank(void) {
  tarn_whole_tensor table = make(my.comm, TARN_WHOLE_DISTRIBUTED);
  tarn_whole_fetch *fetch = NULL;
  batch *b = draw(1);
  MUST_BE(tarn_whole_gather_begin(&table, &b->wanted, &fetch), TARN_OK);
  MUST_BE(tarn_whole_gather_end(fetch), TARN_OK);
  MUST_BE(tarn_comm_barrier(my.comm), TARN_OK);
  if (my.rank == 1) _exit(0);
  tarn_status status = tarn_whole_gather_begin(&table, &b->wanted, &fetch);
  if (status == TARN_OK) status = tarn_whole_gather_end(fetch);
  MUST_BE(status, TARN_E_PEER_LOST);
  free(b);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_E_PEER_LOST);
}

TEST(a_lost_rank) {
  run_ranks(3, "a lost rank", lose_a_rank);
}

// The pause lets the thread of the gather use what the child then has to leave
// alone: the thread sanitizer sees it. The child execs, since that sanitizer
// takes the thread for one that the child had to join before its end.
static void fork_meanwhile(void) {
  int status = 0;
  tarn_whole_tensor table = make(my.comm, TARN_WHOLE_DISTRIBUTED);
  tarn_whole_fetch *fetch = NULL;
  batch *b = draw(1);
  MUST_BE(tarn_whole_gather_begin(&table, &b->wanted, &fetch), TARN_OK);
  usleep(20000);
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    alarm(60);
    MUST_BE(tarn_whole_gather_end(fetch), TARN_E_STATE);
    MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  MUST(waitpid(child, &status, 0) == child && status == 0);
  MUST_BE(tarn_whole_gather_end(fetch), TARN_OK);
  check(b);
  free(b);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
}

TEST(a_child_of_fork) {
  run_ranks(2, "a child", fork_meanwhile);
}

SECONDS(120);
