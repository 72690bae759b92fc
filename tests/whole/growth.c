// What a rank takes grows no faster than the number of ranks: messages and
// memory to create a communicator and a table and to gather, of ranks that
// share nothing, whose engine is a double (comm/post_office.h), and of ranks of
// one machine. docs/ranks.md has the figures.
#include <sys/mman.h>

#include "comm/post_office.h"
#include "kit.h"
#include "support/threads.h"

enum { TIMES = 3, ROWS = 4800, WIDTH = 16, GATHERED = 48 };

// What one rank takes, with each number of ranks.
typedef struct growth {
  double messages[TIMES];
  double host_bytes[TIMES];
  double mapped_bytes[TIMES];
} growth;

// --- the form --------------------------------------------------------------

// Each number of ranks is twice the one before. Of a + b n + c log n the second
// step is at most twice the first; of n squared, or n log n, it is more.
static void assert_linear(const double *of, const char *what) {
  double first = of[1] - of[0];
  double second = of[2] - of[1];
  ck_assert_msg(second <= 2 * first + 1e-6,
                "%s of a rank: %.1f, %.1f and %.1f, which is more than linear",
                what, of[0], of[1], of[2]);
}

static void assert_all_linear(const growth *of) {
  assert_linear(of->messages, "messages");
  assert_linear(of->host_bytes, "memory");
  assert_linear(of->mapped_bytes, "mapped memory");
}

TEST(the_form_knows_what_is_too_much) {
  const double line[] = {10, 13, 19};
  const double with_logarithm[] = {10 + 2, 13 + 3, 19 + 4};
  const double square[] = {4, 16, 64};
  assert_linear(line, "a line");
  assert_linear(with_logarithm, "a line and a logarithm");
  ck_assert_double_gt(square[2] - square[1], 2 * (square[1] - square[0]));
}

// --- a gather --------------------------------------------------------------

// As many rows of each owner, whatever the number of ranks.
static void gather(const tarn_whole_tensor *table, float *dense) {
  int64_t indices[GATHERED];
  for (size_t i = 0; i < GATHERED; i++)
    indices[i] = (int64_t)(i * (ROWS / GATHERED));
  const tarn_whole_rows rows = {.struct_size = sizeof rows,
                                .place = TARN_HOST,
                                .dense = (tarn_addr)(uintptr_t)dense,
                                .indices = (tarn_addr)(uintptr_t)indices,
                                .index_dtype = TARN_DTYPE_I64,
                                .index_count = GATHERED};
  expect(tarn_whole_gather(table, &rows, NULL) == TARN_OK);
}

static void meet(tarn_comm *comm) {
  expect(tarn_comm_barrier(comm) == TARN_OK);
}

// Leaves memory as it is while |look| looks at it, in one rank or in all.
static void use_table(tarn_comm *comm, void look(void *at), void *at) {
  tarn_whole_tensor table;
  float dense[GATHERED * WIDTH];
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = TARN_WHOLE_DISTRIBUTED,
                                            .place = TARN_HOST,
                                            .dtype = TARN_DTYPE_F32,
                                            .rows = ROWS,
                                            .width = WIDTH};
  expect(tarn_whole_table_create(comm, &options, &table) == TARN_OK);
  gather(&table, dense);
  meet(comm);
  if (at != NULL) look(at);
  meet(comm);
  expect(tarn_whole_destroy(table.whole) == TARN_OK);
}

static void look_at_host(void *at) {
  *(size_t *)at = tarn_host_memory();
}

// --- of ranks that share nothing -------------------------------------------

// All ranks are threads of this process: rank 0 sees the memory of all.
static void play(tarn_comm *comm, void *at) {
  use_table(comm, look_at_host, tarn_comm_rank(comm) == 0 ? at : NULL);
}

static size_t run_by_messages(size_t ranks) {
  size_t bytes = 0;
  post_run(&(post_job){.ranks = ranks, .run = play, .context = &bytes}, false);
  return bytes;
}

// The books of the place are not the ranks': they are made by the first run,
// and those of other strategies grow and shrink.
TEST(by_messages_a_rank_takes_no_more_than_linear) {
  growth of = {0};
  ck_assert_int_eq(use_strategy(TARN_HOST, "no_pool"), TARN_OK);
  (void)run_by_messages(POST_RANKS);
  size_t before = tarn_host_memory();
  for (size_t i = 0; i < TIMES; i++) {
    size_t ranks = (size_t)POST_RANKS >> (TIMES - 1 - i);
    of.host_bytes[i] =
        (double)(run_by_messages(ranks) - before) / (double)ranks;
    of.messages[i] = (double)post_count() / (double)ranks;
  }
  ck_assert_double_gt(of.messages[0], 0);
  ck_assert_double_gt(of.host_bytes[0], 0);
  assert_all_linear(&of);
}

// --- of ranks of one machine -----------------------------------------------

typedef struct account {
  size_t host_bytes;
  size_t mapped_bytes;
} account;

static account *accounts;  // of each rank; all processes have them

static size_t count_mapped(void) {
  char line[512];
  size_t bytes = 0;
  FILE *maps = fopen("/proc/self/maps", "r");
  MUST(maps != NULL);
  while (fgets(line, sizeof line, maps) != NULL) {
    unsigned long long begin = 0, end = 0;
    if (strstr(line, "/memfd:tarn") == NULL) continue;
    MUST(sscanf(line, "%llx-%llx", &begin, &end) == 2);
    bytes += (size_t)(end - begin);
  }
  fclose(maps);
  return bytes;
}

static void look_at_all(void *at) {
  *(account *)at = (account){tarn_host_memory(), count_mapped()};
}

static void play_near(void) {
  use_table(my.comm, look_at_all, &accounts[my.rank]);
}

TEST(on_one_machine_a_rank_takes_no_more_than_linear) {
  growth of = {0};
  accounts = mmap(NULL, MOST_RANKS * sizeof *accounts, PROT_READ | PROT_WRITE,
                  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ck_assert_ptr_ne(accounts, MAP_FAILED);
  for (size_t i = 0; i < TIMES; i++) {
    size_t ranks = (size_t)MOST_RANKS >> (TIMES - 1 - i);
    run_ranks(ranks, "one machine", play_near);
    for (size_t r = 0; r < ranks; r++) {
      double host = (double)accounts[r].host_bytes;
      double mapped = (double)accounts[r].mapped_bytes;
      if (host > of.host_bytes[i]) of.host_bytes[i] = host;
      if (mapped > of.mapped_bytes[i]) of.mapped_bytes[i] = mapped;
    }
  }
  ck_assert_double_gt(of.host_bytes[0], 0);
  ck_assert_double_gt(of.mapped_bytes[0], 0);
  assert_all_linear(&of);
}

SECONDS(120);
