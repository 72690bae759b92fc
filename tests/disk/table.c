// Tables on disks: what they learn is what tables in memory learn, bit for bit,
// whatever is in memory of them, and after they were closed and opened again.
#include "disk/table_kit.h"

// --- learning --------------------------------------------------------------

static void see_same_tensors(const tarn_embedding *a, const tarn_embedding *b) {
  size_t count = 0;
  size_t other = 0;
  tarn_whole_named x[TARN_EMBEDDING_TENSORS];
  tarn_whole_named y[TARN_EMBEDDING_TENSORS];
  MUST_BE(tarn_embedding_tensors(a, x, &count), TARN_OK);
  MUST_BE(tarn_embedding_tensors(b, y, &other), TARN_OK);
  MUST(count == other);
  for (size_t i = 0; i < count; i++) {
    MUST(strcmp(x[i].name, y[i].name) == 0);
    see_same(&x[i].tensor, &y[i].tensor);
  }
}

// Closed and opened between batches, with a flush: nothing is lost, and the
// random numbers of rounding go on.
static void learn_as_in_memory(void) {
  const tarn_embedding_options o = scene_options(now);
  tarn_embedding *twin = NULL;
  tarn_whole_tensor t =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  MUST_BE(tarn_embedding_create(&t, &o, &twin), TARN_OK);
  tarn_disk *disk = open_disk(now, TARN_DISK_CREATE);
  tarn_whole_tensor rows = tarn_disk_table(disk);
  fill_by_scatter(&rows);
  see_same_tensors(tarn_disk_embedding(disk), twin);
  for (size_t n = 0; n < SCENE_BATCHES; n++) {
    apply(twin, n, TARN_HOST);
    apply(tarn_disk_embedding(disk), n, TARN_HOST);
    see_same_tensors(tarn_disk_embedding(disk), twin);
    MUST_BE(tarn_disk_flush(disk), TARN_OK);
    MUST_BE(tarn_disk_close(disk), TARN_OK);
    disk =
        open_disk(now, n % 2 == 0 ? 0 : TARN_DISK_CACHED | TARN_DISK_THREADS);
    see_same_tensors(tarn_disk_embedding(disk), twin);
  }
  MUST_BE(tarn_disk_close(disk), TARN_OK);
  MUST_BE(tarn_embedding_destroy(twin), TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static void learn(size_t ranks, int i) {
  now = &scenes[i];
  make_folder();
  run_ranks(ranks, now->name, learn_as_in_memory);
  remove_folder();
}

TEST_LOOP(one_rank_learns_as_in_memory, (int)scene_count) {
  learn(1, _i);
}

TEST_LOOP(three_ranks_learn_as_in_memory, (int)scene_count) {
  learn(3, _i);
}

static void learn_by_messages(tarn_comm *comm, void *unused) {
  (void)unused;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  my.text = now->name;
  learn_as_in_memory();
}

TEST_LOOP(ranks_of_several_machines_learn_as_in_memory, (int)scene_count) {
  now = &scenes[_i];
  make_folder();
  post_run(&(post_job){.ranks = 2 + (size_t)_i % 2, .run = learn_by_messages},
           false);
  remove_folder();
}

SECONDS(180);

// --- given up --------------------------------------------------------------

// What was given up closes with the next table, or by collect, and not before
// all ranks have come to it; the file can then be opened again.
static void give_up(void) {
  const tarn_embedding_options o = scene_options(now);
  const tarn_disk_options options = disk_options(now, 0, &o);
  tarn_disk *other = NULL;
  tarn_disk *disk = open_disk(now, TARN_DISK_CREATE);
  tarn_whole_tensor table = tarn_disk_table(disk);
  fill_by_scatter(&table);
  MUST_BE(tarn_disk_flush(disk), TARN_OK);
  tarn_whole_give_up(table.whole);
  tarn_embedding_give_up(tarn_disk_embedding(disk));
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  if (my.rank != 1) tarn_disk_give_up(disk);
  MUST_BE(tarn_whole_collect(my.comm), TARN_OK);
  MUST_BE(tarn_disk_open(my.comm, &options, &other), TARN_E_STATE);
  if (my.rank == 1) tarn_disk_give_up(disk);
  disk = open_disk(now, 0);
  table = tarn_disk_table(disk);
  tarn_whole_tensor twin =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  see_same(&table, &twin);
  tarn_disk_give_up(disk);
  tarn_disk_give_up(NULL);
  MUST_BE(tarn_whole_destroy(twin.whole), TARN_OK);
  disk = open_disk(now, TARN_DISK_CREATE);
  close_disk(disk);
}

TEST(one_is_closed_when_all_ranks_have_given_it_up) {
  now = &scenes[0];
  make_folder();
  run_ranks(3, "give up", give_up);
  remove_folder();
}
