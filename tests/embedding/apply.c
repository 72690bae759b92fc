// Embeddings, of every type and place and with any number of ranks: the same
// bits as one rank on the host gets, which are those of a reference in NumPy.
#include <fcntl.h>
#include <math.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/crc32c.h"
#include "comm/post_office.h"
#include "embedding/scene.h"
#include "support/faults.h"
#include "whole/kit.h"

static const ground *where;           // set before ranks are forked
static const scene *now;              // likewise
static char folder[64];
static char path[160];

enum { MOST_TENSORS = TARN_EMBEDDING_TENSORS };

static const char *in_folder(const char *name) {
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

static void make_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/tarn-embedding-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

// --- tables ----------------------------------------------------------------

static size_t row_bytes(const tarn_whole_tensor *t) {
  return t->width * tarn_dtype_size(t->dtype);
}

// This rank's rows begin as the scene says.
static void fill(const tarn_whole_tensor *t, tarn_place place) {
  size_t first = 0;
  size_t count = 0;
  tarn_addr address = 0;
  size_t row = row_bytes(t);
  MUST_BE(tarn_whole_tensor_rows(t, my.rank, &first, &count), TARN_OK);
  MUST_BE(tarn_whole_tensor_local(t, &address), TARN_OK);
  unsigned char *bytes = malloc(count * row + 1);
  MUST(bytes != NULL);
  for (size_t i = 0; i < count; i++)
    scene_row(now, first + i, bytes + i * row);
  poke(place, address, bytes, count * row);
  free(bytes);
  meet_all();
}

static tarn_whole_tensor make(tarn_whole_type type, tarn_whole_spread spread,
                              tarn_place place) {
  tarn_whole_tensor made;
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = type,
                                            .place = place,
                                            .dtype = now->table,
                                            .rows = SCENE_ROWS,
                                            .width = now->width,
                                            .spread = spread};
  MUST_BE(tarn_whole_table_create(my.comm, &options, &made), TARN_OK);
  fill(&made, place);
  return made;
}

// A sum over all rows, in which each rank's own are.
static uint64_t look_at(const tarn_whole_tensor *t, tarn_place place) {
  size_t first = 0;
  size_t count = 0;
  tarn_addr address = 0;
  uint64_t sums[POST_RANKS] = {0};
  uint64_t sum = 0;
  size_t row = row_bytes(t);
  MUST_BE(tarn_whole_tensor_rows(t, my.rank, &first, &count), TARN_OK);
  MUST_BE(tarn_whole_tensor_local(t, &address), TARN_OK);
  unsigned char *bytes = malloc(count * row + 1);
  MUST(bytes != NULL);
  peek(place, address, bytes, count * row);
  for (size_t i = 0; i < count; i++)
    sum += tarn__crc32c((uint32_t)(first + i), bytes + i * row, row) *
           (uint64_t)(2 * (first + i) + 1);
  free(bytes);
  MUST_BE(tarn_comm_allgather(my.comm, &sum, sizeof sum, sums), TARN_OK);
  sum = 0;
  for (size_t r = 0; r < my.ranks; r++)
    sum += sums[r];
  return sum;
}

// --- gradients -------------------------------------------------------------

typedef struct batch {
  tarn_whole_rows rows;
  unsigned char *dense;
  int64_t *indices;
  tarn_addr there;  // on a device
  size_t size;
  tarn_place place;
} batch;

// This rank's part of batch |n|: ranks have consecutive ones, not equally long.
static batch take_part(size_t n, tarn_place place) {
  size_t from = SCENE_BATCH * my.rank * my.rank / (my.ranks * my.ranks);
  size_t next = my.rank + 1;
  size_t to = SCENE_BATCH * next * next / (my.ranks * my.ranks);
  size_t row = now->width * tarn_dtype_size(now->gradients);
  batch b = {.place = place};
  b.size = (to - from) * (row + sizeof *b.indices);
  b.indices = malloc(b.size + 1);
  MUST(b.indices != NULL);
  b.dense = (unsigned char *)(b.indices + (to - from));
  for (size_t i = from; i < to; i++) {
    b.indices[i - from] = scene_index(n, i);
    scene_gradient(now, n, i, b.dense + (i - from) * row);
  }
  b.there = (tarn_addr)(uintptr_t)b.indices;
  if (place.kind == TARN_PLACE_DEVICE) {
    MUST_BE(tarn_device_allocate(place, b.size + 1, &b.there), TARN_OK);
    poke(place, b.there, b.indices, b.size);
  }
  b.rows = (tarn_whole_rows){.struct_size = sizeof b.rows,
                             .place = place,
                             .dense = b.there + (to - from) * sizeof *b.indices,
                             .dense_dtype = now->gradients,
                             .indices = b.there,
                             .index_dtype = TARN_DTYPE_I64,
                             .index_count = to - from};
  return b;
}

static void give_part(batch *b) {
  if (b->place.kind == TARN_PLACE_DEVICE) {
    MUST_BE(tarn_device_deallocate(b->place, b->there, b->size + 1), TARN_OK);
  }
  free(b->indices);
}

static void apply(tarn_embedding *e, size_t n, tarn_place place) {
  batch b = take_part(n, place);
  MUST_BE(tarn_embedding_apply(e, &b.rows, NULL), TARN_OK);
  give_part(&b);
}

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
  tarn_addr address = 0;
  MUST_BE(tarn_whole_tensor_local(t, &address), TARN_OK);
  write_file(name, host_bytes(address), t->rows * row_bytes(t));
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
    learn(type_at(i), TARN_WHOLE_PARTS, place, i % 2 == 0 ? place : TARN_HOST);
  see_nothing_left(place, before);
  close_ground(place);
}

static void learn_on(int i, size_t ranks) {
  where = ground_at(i % GROUNDS);
  make_folder();
  expect(&scenes[i / GROUNDS]);
  run_ranks(ranks, where->text, learn_everywhere);
  remove_folder();
}

TEST_LOOP(three_ranks_get_the_same, GROUNDS *(int)scene_count) {
  learn_on(_i, 3);
}

TEST_LOOP(two_ranks_get_the_same, GROUNDS) {
  learn_on(2 * GROUNDS + _i, 2);
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
  faults_install();
  return run_tests();
}

SECONDS(180);
