// Tables on disks, while a rank fails: a write, host memory, or the rank
// itself.
#include <errno.h>

#include "crash.h"
#include "disk/table.h"
#include "disk/table_kit.h"
#include "support/faults.h"

static const scene small = {"adam",         TARN_OPTIMIZER_ADAM, 0, 0, 0, 0,
                            TARN_DTYPE_F32, TARN_DTYPE_F32,      8};
static const scene halves = {
    "halves",       TARN_OPTIMIZER_ADAGRAD, 0, 0, 0, .5f,
    TARN_DTYPE_F16, TARN_DTYPE_F32,         9};

// The N-th part of what |victim| writes in a flush fails: all are told, and the
// next flush brings all to the disk; or the table has to be opened again.
static bool fail_to_flush(size_t victim, size_t n) {
  const tarn_embedding_options adam = scene_options(&small);
  const tarn_disk_options o = disk_options(&small, TARN_DISK_CREATE, &adam);
  tarn_disk *disk = NULL;
  tarn_embedding *twin = NULL;
  char mine[200];
  snprintf(mine, sizeof mine, "%s_part_%zu_of_2", o.path, my.rank);
  tarn_whole_tensor t =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  MUST_BE(tarn_embedding_create(&t, &adam, &twin), TARN_OK);
  MUST_BE(tarn__disk_open(my.comm, &o, &crash_watch, &disk), TARN_OK);
  crash_record(mine, NULL);
  tarn_whole_tensor rows = tarn_disk_table(disk);
  fill_by_scatter(&rows);
  apply(tarn_disk_embedding(disk), 0, TARN_HOST);
  apply(twin, 0, TARN_HOST);
  if (my.rank == victim) crash_fail(n, EIO, false);
  tarn_status status = tarn_disk_flush(disk);
  bool failed = tell(victim, my.rank == victim && crash_failed()) != 0;
  crash_fail(0, 0, false);
  must_be_the_same_everywhere(status);
  MUST_BE(status, failed ? TARN_E_IO : TARN_OK);
  if (failed) MUST_SAY("_of_2': ");
  bool again =
      failed && strstr(tarn_last_error(), "must be opened again") != NULL;
  if (failed && !again) {
    MUST_BE(tarn_disk_flush(disk), TARN_OK);
  } else if (failed) {
    status = tarn_disk_flush(disk);
    must_be_the_same_everywhere(status);
    MUST(status == TARN_E_STATE || status == TARN_E_IO);
    MUST_SAY("opened again");
  }
  see_same(&rows, &t);
  close_disk(disk);
  disk = open_disk(&small, 0);
  rows = tarn_disk_table(disk);
  tarn_disk_info info = {.struct_size = sizeof info};
  MUST_BE(tarn_disk_query(disk, &info), TARN_OK);
  MUST(tell(0, info.epoch) == info.epoch);
  MUST(again || info.epoch == 2);
  if (info.epoch == 2) see_same(&rows, &t);
  close_disk(disk);
  MUST_BE(tarn_embedding_destroy(twin), TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  return failed;
}

static void fail_flushes(void) {
  for (size_t victim = 0; victim < 2; victim++) {
    size_t n = 1;
    while (fail_to_flush(victim, n))
      n++;
    MUST(n > 4);
  }
}

TEST(each_write_of_a_flush_fails_once) {
  now = &small;
  make_folder();
  run_ranks(2, "a write fails", fail_flushes);
  remove_folder();
}

static bool fail_to_open(size_t victim, size_t n, uint64_t flags) {
  bool struck = false;
  tarn_disk *disk = NULL;
  const tarn_embedding_options o = scene_options(now);
  const tarn_disk_options options = disk_options(now, flags, &o);
  size_t before = tarn_host_memory();
  size_t files = ranks_descriptors();
  if (my.rank == victim) faults_arm(n, FAULTS_ONCE);
  tarn_status status = tarn_disk_open(my.comm, &options, &disk);
  if (my.rank == victim) struck = faults_disarm();
  must_be_the_same_everywhere(status);
  MUST(status == TARN_OK || status == TARN_E_NOMEM);
  MUST((status == TARN_OK) == (disk != NULL));
  close_disk(disk);
  MUST(tarn_host_memory() == before);
  MUST(ranks_descriptors() == files);
  return tell(victim, struck) != 0;
}

static void sweep(void) {
  close_disk(open_disk(now, TARN_DISK_CREATE));
  for (size_t i = 0; i < 4; i++) {
    size_t n = 1;
    while (fail_to_open(i % 2, n, i < 2 ? TARN_DISK_CREATE : 0))
      n++;
    MUST(n > 10);
  }
}

TEST(host_memory_fails) {
  now = &halves;
  make_folder();
  run_ranks(2, "host memory", sweep);
  remove_folder();
}

// The others are told, and what was flushed is there for the next ones.
static void lose_a_rank(void) {
  tarn_disk *disk = open_disk(now, TARN_DISK_CREATE);
  tarn_whole_tensor t = tarn_disk_table(disk);
  fill_by_scatter(&t);
  MUST_BE(tarn_disk_flush(disk), TARN_OK);
  apply(tarn_disk_embedding(disk), 0, TARN_HOST);
  if (my.rank == 1) _exit(0);
  MUST_BE(tarn_disk_flush(disk), TARN_E_PEER_LOST);
  MUST_SAY("rank 1 has ended");
  (void)tarn_disk_close(disk);
}

static void see_what_was_flushed(void) {
  tarn_disk *disk = open_disk(now, 0);
  tarn_whole_tensor t = tarn_disk_table(disk);
  tarn_whole_tensor b =
      make(TARN_WHOLE_DISTRIBUTED, TARN_WHOLE_PARTS, TARN_HOST);
  see_same(&t, &b);
  MUST_BE(tarn_whole_destroy(b.whole), TARN_OK);
  close_disk(disk);
}

TEST(a_lost_rank_is_told_by_name) {
  now = &small;
  make_folder();
  run_ranks(3, "lost", lose_a_rank);
  run_ranks(3, "again", see_what_was_flushed);
  remove_folder();
}

int main(void) {
  faults_install();
  return run_tests();
}

SECONDS(120);
