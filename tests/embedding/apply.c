// Embeddings, of every type and place and with any number of ranks: the same
// bits as one rank on the host gets, which are those of a reference in NumPy.
#include <sys/mman.h>

#include "comm/post_office.h"
#include "embedding/kit.h"
#include "support/effort.h"

static const ground *where;  // set before ranks are forked

enum { MOST_TENSORS = TARN_EMBEDDING_TENSORS };

// --- what one rank gets ----------------------------------------------------

// Shared with the ranks: sums of all tensors of each scene.
static uint64_t (*expected)[MOST_TENSORS];

static void write_file(const char *name, const void *bytes, size_t size) {
  FILE *file = fopen(in_folder(name), "wb");
  MUST(file != NULL);
  MUST(size == 0 || fwrite(bytes, size, 1, file) == 1);
  MUST(fclose(file) == 0);
}

static void write_rows(const char *name, const tarn_whole_tensor *t) {
  size_t first = 0;
  size_t count = 0;
  unsigned char *bytes = copy_rows(t, TARN_HOST, &first, &count);
  write_file(name, bytes, count * row_bytes(t));
  free(bytes);
}

static void write_batch(size_t n) {
  char name[32];
  batch b = take_part(n, TARN_HOST);
  snprintf(name, sizeof name, "indices%zu", n);
  write_file(name, b.indices, SCENE_BATCH * sizeof *b.indices);
  snprintf(name, sizeof name, "gradients%zu", n);
  write_file(name, b.dense,
             SCENE_BATCH * now->width * tarn_dtype_size(now->gradients));
  give_part(&b);
}

static void be_one_rank(void) {
  size_t count = 0;
  tarn_whole_named all[MOST_TENSORS];
  tarn_embedding *e = NULL;
  const tarn_embedding_options o = scene_options(now);
  tarn_whole_tensor t =
      make(TARN_WHOLE_CONTINUOUS, TARN_WHOLE_PARTS, TARN_HOST);
  MUST_BE(tarn_embedding_create(&t, &o, &e), TARN_OK);
  write_rows("table", &t);
  for (size_t n = 0; n < SCENE_BATCHES; n++) {
    write_batch(n);
    apply(e, n, TARN_HOST);
  }
  MUST_BE(tarn_embedding_tensors(e, all, &count), TARN_OK);
  for (size_t i = 0; i < count; i++) {
    write_rows(i == 0 ? "after" : all[i].name, &all[i].tensor);
    expected[now - scenes][i] = look_at(&all[i].tensor, TARN_HOST);
  }
  MUST_BE(tarn_embedding_destroy(e), TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static void expect(const scene *s) {
  now = s;
  if (expected == NULL) {
    expected = mmap(NULL, scene_count * sizeof *expected,
                    PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(expected != MAP_FAILED);
  }
  run_ranks(1, s->name, be_one_rank);
}

static bool has_numpy(void) {
  return system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") == 0;
}

TEST_LOOP(one_rank_gets_what_numpy_gets, (int)scene_count) {
  char command[1024];
  tarn_embedding_options o = scene_options(&scenes[_i]);
  make_folder();
  expect(&scenes[_i]);
  snprintf(command, sizeof command,
           "/usr/bin/python3 " REFERENCE
           " %s %s %u %a %a %a %a %a %a %a %a "
           "%llu %d %zu %d %d %s %s",
           folder, tarn_optimizer_name(o.optimizer), (unsigned)o.flags,
           (double)o.learning_rate, (double)o.weight_decay, (double)o.epsilon,
           (double)o.momentum, (double)o.beta1, (double)o.beta2,
           (double)o.alpha, (double)o.initial, (unsigned long long)o.seed,
           SCENE_ROWS, now->width, SCENE_BATCHES, SCENE_BATCH,
           tarn_dtype_name(now->table), tarn_dtype_name(now->gradients));
  if (has_numpy()) {
    ck_assert_int_eq(system(command), 0);
  } else {
    note_skipped("embeddings beside NumPy", "it is not installed");
  }
  remove_folder();
}

// --- all others ------------------------------------------------------------

// In each of |copies|.
static void see_expected(const tarn_embedding *e, size_t copies,
                         tarn_place place) {
  size_t count = 0;
  tarn_whole_named all[MOST_TENSORS];
  MUST_BE(tarn_embedding_tensors(e, all, &count), TARN_OK);
  for (size_t i = 0; i < count; i++)
    MUST(look_at(&all[i].tensor, place) == copies * expected[now - scenes][i]);
}

static void learn(tarn_whole_type type, tarn_whole_spread spread,
                  tarn_place place, tarn_place dense) {
  tarn_embedding *e = NULL;
  const tarn_embedding_options o = scene_options(now);
  tarn_whole_tensor t = make(type, spread, place);
  MUST_BE(tarn_embedding_create(&t, &o, &e), TARN_OK);
  for (size_t n = 0; n < SCENE_BATCHES; n++)
    apply(e, n, dense);
  bool in_copies = spread == TARN_WHOLE_COPIES;
  see_expected(e, in_copies ? my.ranks : 1, place);
  MUST_BE(tarn_embedding_destroy(e), TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// Gradients are at the place of the table, or on the host. Names of states stay
// with the pool.
static void learn_everywhere(void) {
  tarn_place place = open_ground(where);
  warm_up_plainly(place);
  learn(type_at(0), TARN_WHOLE_PARTS, place, place);
  belongings before = look_around(place);
  for (size_t i = 0; i < TYPES; i++)
    learn(all_types[ALL_TYPES - 1 - i], TARN_WHOLE_PARTS, place,
          i % 2 == 0 ? place : TARN_HOST);
  see_nothing_left(place, before);
  close_ground(place);
}

static void learn_on(int i, int on, size_t ranks) {
  where = ground_at(on);
  make_folder();
  expect(&scenes[i]);
  run_ranks(ranks, where->text, learn_everywhere);
  remove_folder();
}

// On drivers and under a sanitizer each scene is on one ground, by turns.
static int grounds_of_each(void) {
  return is_on_driver() || EFFORT(false, true) ? 1 : GROUNDS;
}

TEST_LOOP(three_ranks_get_the_same,
          ON_GROUNDS(grounds_of_each() * (int)scene_count)) {
  learn_on(_i / grounds_of_each(), _i % GROUNDS, 3);
}

TEST_LOOP(two_ranks_get_the_same, GROUNDS) {
  learn_on(2, _i, 2);
}

// Each rank is a machine of its own, and a thread.
static void learn_by_messages(tarn_comm *comm, void *unused) {
  (void)unused;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  my.text = now->name;
  learn(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST, TARN_HOST);
  learn(TARN_WHOLE_HIERARCHICAL, TARN_WHOLE_PARTS, TARN_HOST, TARN_HOST);
  learn(TARN_WHOLE_HIERARCHICAL, TARN_WHOLE_COPIES, TARN_HOST, TARN_HOST);
}

TEST_LOOP(ranks_of_several_machines_get_the_same, (int)scene_count) {
  make_folder();
  expect(&scenes[_i]);
  post_run(&(post_job){.ranks = 2 + (size_t)_i % 2, .run = learn_by_messages},
           false);
  remove_folder();
}

int main(void) {
  return run_tests();
}

SECONDS(180);
