// Embeddings: what is refused, files, parts of tables, and what fails.
#include <math.h>
#include <sys/wait.h>

#include "embedding/kit.h"
#include "support/faults.h"

static const scene small = {"adam",         TARN_OPTIMIZER_ADAM, 0, 0, 0, 0,
                            TARN_DTYPE_F32, TARN_DTYPE_F32,      8};
static const scene plain = {"sgd",          TARN_OPTIMIZER_SGD, 0, 0, 0, 0,
                            TARN_DTYPE_F32, TARN_DTYPE_F32,     8};

static tarn_embedding *embed(const tarn_whole_tensor *t) {
  tarn_embedding *e = NULL;
  const tarn_embedding_options o = scene_options(now);
  MUST_BE(tarn_embedding_create(t, &o, &e), TARN_OK);
  return e;
}

static void end(tarn_embedding *e, tarn_whole_tensor *t) {
  MUST_BE(tarn_embedding_destroy(e), TARN_OK);
  MUST_BE(tarn_whole_destroy(t->whole), TARN_OK);
}

// --- options ---------------------------------------------------------------

static void refuse(const tarn_whole_tensor *t, tarn_embedding_options o,
                   const char *says) {
  tarn_embedding *e = (tarn_embedding *)t->whole;
  tarn_status status = tarn_embedding_create(t, &o, &e);
  must_be_the_same_everywhere(status);
  MUST_BE(status, TARN_E_INVALID);
  MUST_SAY(says);
  MUST(e == NULL);
}

static void refuse_options(void) {
  tarn_whole_tensor t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding_options good = scene_options(now);
  tarn_embedding_options o = good;
  o.optimizer = (tarn_optimizer)9;
  refuse(&t, o, "9 is no optimizer");
  o = good;
  o.flags = 1u << 9;
  refuse(&t, o, "unknown flags 0x200");
  o.flags = TARN_EMBEDDING_ROW_WISE;
  refuse(&t, o, "ROW_WISE is of adagrad, not adam");
  o = scene_options(&plain);
  o.flags = TARN_EMBEDDING_DECOUPLED;
  refuse(&t, o, "DECOUPLED is of adam, not sgd");
  o = good;
  o.learning_rate = -1;
  refuse(&t, o, "learning_rate is -1");
  o.learning_rate = NAN;
  refuse(&t, o, "learning_rate is");
  o = good;
  o.beta2 = 1;
  refuse(&t, o, "beta2 is 1, but should be from 0 to below 1");
  o = good;
  o.seed = my.rank;
  refuse(&t, o, "ranks differ: rank 0 has tarn_embedding_create of 300 x 8");
  o = good;
  o.struct_size = 12;
  refuse(&t, o, "struct_size");
  MUST_BE(tarn_embedding_create(NULL, &good, NULL), TARN_E_INVALID);
  MUST_BE(tarn_embedding_defaults((tarn_optimizer)0, &o), TARN_E_INVALID);
  MUST_BE(tarn_embedding_defaults(TARN_OPTIMIZER_SGD, NULL), TARN_E_INVALID);
  MUST(strcmp(tarn_optimizer_name(TARN_OPTIMIZER_RMSPROP), "rmsprop") == 0);
  MUST(tarn_optimizer_name((tarn_optimizer)5) == NULL);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static void refuse_tables(void) {
  tarn_whole_tensor t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding_options good = scene_options(now);
  tarn_whole_tensor other = t;
  other.dtype = TARN_DTYPE_I32;
  refuse(&other, good, "the table is f32, f16 or bf16, not i32");
  MUST_BE(tarn_whole_tensor_make(t.whole, TARN_DTYPE_F32, 10, 0, &other),
          TARN_OK);
  refuse(&other, good, "1 dimensions");
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// --- applies ---------------------------------------------------------------

// Wrong at one rank, told to all; no row has changed.
static void refuse_applies(void) {
  tarn_whole_tensor t =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding *e = embed(&t);
  uint64_t before = look_at(&t, TARN_HOST);
  batch b = take_part(0, TARN_HOST);
  tarn_whole_rows wrong = b.rows;
  if (my.rank == 1) b.indices[3] = SCENE_ROWS;
  MUST_BE(tarn_embedding_apply(e, &b.rows, NULL), TARN_E_INVALID);
  MUST_SAY("rank 1: tarn_embedding_apply of whole");
  MUST_SAY("index 300 at position 3 is not in 0..299");
  wrong.dense_dtype = TARN_DTYPE_F64;
  MUST_BE(tarn_embedding_apply(e, &wrong, NULL), TARN_E_INVALID);
  MUST_SAY("gradients are f32, f16 or bf16, not f64");
  MUST_BE(tarn_embedding_apply(e, NULL, NULL), TARN_E_INVALID);
  MUST_BE(tarn_embedding_apply(NULL, &b.rows, NULL), TARN_E_INVALID);
  MUST(look_at(&t, TARN_HOST) == before);
  give_part(&b);
  end(e, &t);
}

// An index of no row has no effect: the rest is as if it were not there.
static void skip_indices(void) {
  tarn_whole_tensor t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_whole_tensor u = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding *e = embed(&t);
  tarn_embedding *f = embed(&u);
  batch b = take_part(0, TARN_HOST);
  b.rows.index_count -= 2;
  MUST_BE(tarn_embedding_apply(e, &b.rows, NULL), TARN_OK);
  b.rows.index_count += 2;
  b.rows.flags = TARN_ROWS_SKIP_BAD;
  b.indices[b.rows.index_count - 2] = -1;
  b.indices[b.rows.index_count - 1] = SCENE_ROWS;
  MUST_BE(tarn_embedding_apply(f, &b.rows, NULL), TARN_OK);
  MUST(look_at(&t, TARN_HOST) == look_at(&u, TARN_HOST));
  give_part(&b);
  end(e, &t);
  end(f, &u);
}

// Ranks without gradients, and none at all.
static void apply_nothing(void) {
  tarn_whole_tensor t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding *e = embed(&t);
  uint64_t before = look_at(&t, TARN_HOST);
  batch b = take_part(0, TARN_HOST);
  size_t count = b.rows.index_count;
  b.rows.index_count = 0;
  MUST_BE(tarn_embedding_apply(e, &b.rows, NULL), TARN_OK);
  MUST(look_at(&t, TARN_HOST) == before);
  if (my.rank == 1) b.rows.index_count = count;
  MUST_BE(tarn_embedding_apply(e, &b.rows, NULL), TARN_OK);
  MUST(look_at(&t, TARN_HOST) != before);
  give_part(&b);
  end(e, &t);
}

// With a rate of 0 SGD changes no row; lr is read by each apply.
static void change_the_rate(void) {
  now = &plain;
  tarn_whole_tensor t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding *e = embed(&t);
  uint64_t before = look_at(&t, TARN_HOST);
  MUST_BE(tarn_embedding_set_learning_rate(e, 0), TARN_OK);
  apply(e, 0, TARN_HOST);
  MUST(look_at(&t, TARN_HOST) == before);
  MUST_BE(tarn_embedding_set_learning_rate(e, INFINITY), TARN_E_INVALID);
  MUST_BE(tarn_embedding_set_learning_rate(NULL, 1), TARN_E_INVALID);
  apply(e, 0, TARN_HOST);
  MUST(look_at(&t, TARN_HOST) == before);
  MUST_BE(tarn_embedding_set_learning_rate(e, 1), TARN_OK);
  apply(e, 0, TARN_HOST);
  MUST(look_at(&t, TARN_HOST) != before);
  end(e, &t);
}

// Columns 4 to 11 of rows 50 to 349 of a table learn as a table of their own
// does, and nothing else changes.
static void learn_in_a_part(void) {
  tarn_whole_tensor t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_whole_tensor large;
  tarn_whole_tensor part;
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = TARN_WHOLE_CONTINUOUS,
                                            .place = TARN_HOST,
                                            .dtype = TARN_DTYPE_F32,
                                            .rows = 400,
                                            .width = 20};
  MUST_BE(tarn_whole_table_create(my.comm, &options, &large), TARN_OK);
  MUST_BE(tarn_whole_tensor_sub(&large, 50, 350, 4, 12, &part), TARN_OK);
  tarn_addr address = 0;
  MUST_BE(tarn_whole_global(large.whole, &address), TARN_OK);
  float *values = host_bytes(address);
  for (size_t i = 0; my.rank == 0 && i < SCENE_ROWS; i++)
    scene_row(now, i, values + (50 + i) * 20 + 4);
  meet_all();
  tarn_embedding *e = embed(&t);
  tarn_embedding *f = embed(&part);
  apply(e, 0, TARN_HOST);
  apply(f, 0, TARN_HOST);
  MUST(look_at(&t, TARN_HOST) == look_at(&part, TARN_HOST));
  for (size_t i = 0; i < 400; i++)
    for (size_t k = 0; k < 20; k++)
      if (i < 50 || i >= 350 || k < 4 || k >= 12) MUST(values[i * 20 + k] == 0);
  meet_all();
  end(e, &t);
  end(f, &large);
}

// --- from create to destroy ------------------------------------------------

static void use_in_a_child(tarn_embedding *e, const tarn_whole_rows *rows) {
  alarm(30);
  MUST_BE(tarn_embedding_apply(e, rows, NULL), TARN_E_STATE);
  MUST_SAY("fork");
  MUST_BE(tarn_embedding_destroy(e), TARN_OK);
  _exit(0);
}

static void keep_the_table(void) {
  tarn_whole_tensor t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding *e = embed(&t);
  tarn_whole_named all[TARN_EMBEDDING_TENSORS];
  size_t count = 0;
  MUST_BE(tarn_whole_destroy(t.whole), TARN_E_STATE);
  MUST_SAY("embeddings use it");
  MUST_BE(tarn_embedding_tensors(e, all, &count), TARN_OK);
  MUST(count == 4);
  MUST(strcmp(all[0].name, "table") == 0 && all[0].tensor.whole == t.whole);
  MUST(strcmp(all[3].name, "step") == 0 && all[3].tensor.width == 1);
  MUST_BE(tarn_embedding_tensors(e, NULL, &count), TARN_E_INVALID);
  MUST_BE(tarn_embedding_destroy(NULL), TARN_OK);
  batch b = take_part(0, TARN_HOST);
  pid_t child = fork();
  if (child == 0) use_in_a_child(e, &b.rows);
  int status = 0;
  MUST(waitpid(child, &status, 0) == child && status == 0);
  give_part(&b);
  end(e, &t);
}

TEST_LOOP(calls, 8) {
  static void (*const works[])(void) = {
      refuse_options, refuse_tables,   refuse_applies,  skip_indices,
      apply_nothing,  change_the_rate, learn_in_a_part, keep_the_table};
  now = &small;
  run_ranks(2, "calls", works[_i]);
}

// Each rank is a machine of its own, and a thread.
static void refuse_a_part_of_copies(tarn_comm *comm, void *unused) {
  (void)unused;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  tarn_whole_tensor part;
  tarn_whole_tensor t =
      make(TARN_WHOLE_HIERARCHICAL, TARN_WHOLE_COPIES, TARN_HOST);
  MUST_BE(tarn_whole_tensor_sub(&t, 10, 20, 0, 8, &part), TARN_OK);
  if (tarn_comm_machines(comm) > 1) {
    tarn_embedding *e = NULL;
    const tarn_embedding_options o = scene_options(now);
    MUST_BE(tarn_embedding_create(&part, &o, &e), TARN_OK);
    MUST_BE(tarn_embedding_destroy(e), TARN_OK);
  }
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// A rank that has all rows of its copy has all of the part.
TEST(a_part_of_copies_that_one_rank_has) {
  now = &small;
  post_run(&(post_job){.ranks = 2, .run = refuse_a_part_of_copies}, false);
}

// Two ranks on one machine: their halves are not those of the part.
static void refuse_half_copies(void) {
  tarn_whole_tensor part;
  tarn_whole_tensor t =
      make(TARN_WHOLE_HIERARCHICAL, TARN_WHOLE_COPIES, TARN_HOST);
  MUST_BE(tarn_whole_tensor_sub(&t, 10, 20, 0, 8, &part), TARN_OK);
  refuse(&part, scene_options(now), "a part of hierarchical memory in copies");
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

WHOLE_LOOP(a_part_of_copies_that_ranks_share, 1, 2, (now = &small, "copies"),
           refuse_half_copies)

// --- files -----------------------------------------------------------------

static void store_two_batches(void) {
  tarn_whole_tensor t =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding *e = embed(&t);
  apply(e, 0, TARN_HOST);
  apply(e, 1, TARN_HOST);
  MUST_BE(tarn_embedding_store(e, in_folder("two.safetensors"), NULL, NULL),
          TARN_OK);
  apply(e, 2, TARN_HOST);
  MUST_BE(tarn_embedding_store(e, in_folder("three.safetensors"), NULL, NULL),
          TARN_OK);
  end(e, &t);
}

// What two ranks have stored after two batches becomes, with the third, what
// they have stored after three.
static void go_on(void) {
  tarn_whole_tensor t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_whole_tensor u = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding *two = embed(&t);
  tarn_embedding *three = embed(&u);
  tarn_whole_named a[TARN_EMBEDDING_TENSORS];
  tarn_whole_named b[TARN_EMBEDDING_TENSORS];
  size_t count = 0;
  MUST_BE(tarn_embedding_load(two, in_folder("two.safetensors"), NULL, NULL),
          TARN_OK);
  MUST_BE(
      tarn_embedding_load(three, in_folder("three.safetensors"), NULL, NULL),
      TARN_OK);
  MUST_BE(tarn_embedding_tensors(two, a, &count), TARN_OK);
  MUST_BE(tarn_embedding_tensors(three, b, &count), TARN_OK);
  MUST(look_at(&t, TARN_HOST) != look_at(&u, TARN_HOST));
  apply(two, 2, TARN_HOST);
  for (size_t i = 0; i < count; i++)
    MUST(look_at(&a[i].tensor, TARN_HOST) == look_at(&b[i].tensor, TARN_HOST));
  end(two, &t);
  end(three, &u);
}

TEST(any_number_of_ranks_goes_on_from_a_file) {
  now = &small;
  make_folder();
  run_ranks(2, "store", store_two_batches);
  run_ranks(3, "go on", go_on);
  run_ranks(1, "go on", go_on);
  remove_folder();
}

// --- host memory fails -----------------------------------------------------

// All ranks return the same, and nothing is left.
static bool fail_to_create(const tarn_whole_tensor *t, size_t victim,
                           size_t n) {
  bool struck = false;
  tarn_embedding *e = NULL;
  tarn_embedding_options o = scene_options(now);
  size_t before = tarn_host_memory();
  if (my.rank == victim) faults_arm(n, FAULTS_ONCE);
  tarn_status status = tarn_embedding_create(t, &o, &e);
  if (my.rank == victim) struck = faults_disarm();
  must_be_the_same_everywhere(status);
  MUST(status == TARN_OK || status == TARN_E_NOMEM);
  MUST((status == TARN_OK) == (e != NULL));
  MUST_BE(tarn_embedding_destroy(e), TARN_OK);
  MUST(tarn_host_memory() == before);
  return tell(victim, struck) != 0;
}

static bool fail_to_apply(tarn_whole_tensor *t, size_t victim, size_t n) {
  bool struck = false;
  tarn_embedding *e = embed(t);
  batch b = take_part(0, TARN_HOST);
  if (my.rank == victim) faults_arm(n, FAULTS_ONCE);
  tarn_status status = tarn_embedding_apply(e, &b.rows, NULL);
  if (my.rank == victim) struck = faults_disarm();
  must_be_the_same_everywhere(status);
  MUST(status == (tell(victim, struck) != 0 ? TARN_E_NOMEM : TARN_OK));
  MUST_BE(tarn_embedding_apply(e, &b.rows, NULL), TARN_OK);
  give_part(&b);
  MUST_BE(tarn_embedding_destroy(e), TARN_OK);
  return status != TARN_OK;
}

static void sweep(void) {
  tarn_whole_tensor t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
  MUST_BE(tarn_embedding_destroy(embed(&t)), TARN_OK);
  for (size_t victim = 0; victim < 2; victim++) {
    size_t n = 1;
    while (fail_to_create(&t, victim, n))
      n++;
    MUST(n > 3);
  }
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  for (size_t victim = 0; victim < 2; victim++) {
    bool failed = true;
    for (size_t n = 1; failed; n++) {
      t = make(TARN_WHOLE_CHUNKED, TARN_WHOLE_PARTS, TARN_HOST);
      failed = fail_to_apply(&t, victim, n);
      MUST(failed || n > 2);
      MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
    }
  }
}

TEST_LOOP(host_memory_fails, 2) {
  static const scene wide = {
      "wide", TARN_OPTIMIZER_ADAGRAD, TARN_EMBEDDING_ROW_WISE, 0,   0,
      .5f,    TARN_DTYPE_BF16,        TARN_DTYPE_F32,          2050};
  now = _i == 0 ? &small : &wide;
  run_ranks(2, now->name, sweep);
}

// --- a rank is lost --------------------------------------------------------

static void lose_a_rank(void) {
  tarn_whole_tensor t =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  tarn_embedding *e = embed(&t);
  batch b = take_part(0, TARN_HOST);
  if (my.rank == 1) _exit(0);
  MUST_BE(tarn_embedding_apply(e, &b.rows, NULL), TARN_E_PEER_LOST);
  MUST_SAY("rank 1");
  give_part(&b);
  (void)tarn_embedding_destroy(e);
  (void)tarn_whole_destroy(t.whole);
}

TEST(a_lost_rank_is_told_by_name) {
  now = &small;
  run_ranks(3, "lost", lose_a_rank);
}

int main(void) {
  faults_install();
  return run_tests();
}

SECONDS(120);
