// What is wrong with a file, or happens to it or to who writes it, is an error
// at all ranks that changes nothing.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "files_kit.h"
#include "support/faults.h"
#include "whole/own_world.h"

// --- damage ----------------------------------------------------------------

static void write_at(const char *file, long at, const void *bytes,
                     size_t size) {
  FILE *f = fopen(file, "r+b");
  MUST(f != NULL);
  MUST(fseek(f, at, SEEK_SET) == 0);
  MUST(fwrite(bytes, 1, size, f) == size);
  MUST(fclose(f) == 0);
}

// Each rank is told the same, and by name.
static void see_refused(const tarn_whole_tensor *t, const char *file,
                        tarn_status expected, const char *says) {
  meet_all();
  tarn_status status = tarn_whole_load(t, file, NULL, NULL);
  MUST_BE(status, expected);
  MUST_SAY(says);
  MUST_SAY(file);
  meet_all();
}

static void refuse_damage(void) {
  const shape large = {TARN_DTYPE_F32, 40000, 40};
  tarn_whole_tensor t = make(&large, TARN_WHOLE_CHUNKED, TARN_HOST);
  const char *file = in_folder("x.npy");
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_store(&t, file, NULL, NULL), TARN_OK);
  // The last byte of a chunk that rank 2 has.
  if (my.rank == 0) write_at(file, 4096 + 5 * (1 << 20) - 1, "x", 1);
  see_refused(&t, file, TARN_E_CORRUPT, "bytes 4198400 to 5246975 are damaged");
  MUST_BE(tarn_whole_store(&t, file, NULL, NULL), TARN_OK);
  if (my.rank == 0) MUST(truncate(file, 6000000) == 0);
  see_refused(&t, file, TARN_E_CORRUPT, "but the file ends at 6000000");
  if (my.rank == 0) MUST(truncate(file, 100) == 0);
  see_refused(&t, file, TARN_E_CORRUPT, "a header of 4096 bytes expected");
  MUST_BE(tarn_whole_store(&t, file, NULL, NULL), TARN_OK);
  if (my.rank == 0) write_at(file, 6406144 + 20, "x", 1);
  see_refused(&t, file, TARN_E_CORRUPT, "byte 6406160: checksums");
  if (my.rank == 0) write_at(file, 0, "x", 1);
  see_refused(&t, file, TARN_E_CORRUPT, "header byte 0");
  if (my.rank == 0) MUST(unlink(file) == 0);
  see_refused(&t, file, TARN_E_IO, "No such file");
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static void refuse_others(void) {
  static const shape wrong[] = {{TARN_DTYPE_F32, 3001, 40},
                                {TARN_DTYPE_F32, 3000, 41},
                                {TARN_DTYPE_F32, 120000, 0},
                                {TARN_DTYPE_I32, 3000, 40}};
  static const char *const says[] = {
      "header byte", "3000 rows of 40 in 2 dimensions, where 3000 of 41",
      "where 120000 of 1 in 1", "elements of i32 are no f32"};
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_CONTINUOUS, TARN_HOST);
  const char *file = in_folder("x.npy");
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_store(&t, file, NULL, NULL), TARN_OK);
  for (size_t i = 0; i < 4; i++) {
    tarn_whole_tensor other = make(&wrong[i], TARN_WHOLE_CHUNKED, TARN_HOST);
    see_refused(&other, file, TARN_E_INVALID, says[i]);
    MUST_BE(tarn_whole_destroy(other.whole), TARN_OK);
  }
  MUST_BE(tarn_whole_load(&t, in_folder("x.txt"), NULL, NULL), TARN_E_INVALID);
  MUST_SAY("ends neither in .npy nor in .safetensors");
  MUST_BE(tarn_whole_store(&t, folder, NULL, NULL), TARN_E_INVALID);
  MUST_BE(tarn_whole_load(NULL, file, NULL, NULL), TARN_E_INVALID);
  MUST_BE(tarn_whole_store(&t, "/no/such/folder/x.npy", NULL, NULL), TARN_E_IO);
  MUST_SAY("/no/such/folder/x.npy");
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// One rank sees another file by that name.
static void refuse_two_files(void) {
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_CHUNKED, TARN_HOST);
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_store(&t, in_folder("0.npy"), NULL, NULL), TARN_OK);
  fill_floats(&t, -1);
  MUST_BE(tarn_whole_store(&t, in_folder("1.npy"), NULL, NULL), TARN_OK);
  const char *file = in_folder(my.rank == 1 ? "1.npy" : "0.npy");
  MUST_BE(tarn_whole_load(&t, file, NULL, NULL), TARN_E_IO);
  MUST_SAY("ranks see different files");
  MUST_SAY("1.npy");
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// A rank that calls it off calls it off for all, and the old file stays.
static bool refuse_to_go_on(const tarn_file_progress *progress, void *rank) {
  return progress->all == 0 || *(size_t *)rank != 1;
}

static void cancel(void) {
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_CHUNKED, TARN_HOST);
  tarn_file_options o = {.struct_size = sizeof o};
  const char *file = in_folder("x.npy");
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_store(&t, file, NULL, NULL), TARN_OK);
  fill_floats(&t, -1);
  size_t rank = my.rank;
  o.progress = refuse_to_go_on;
  o.user = &rank;
  MUST_BE(tarn_whole_store(&t, file, &o, NULL), TARN_E_STATE);
  MUST_SAY("rank 1: table: cancelled");
  MUST_BE(tarn_whole_load(&t, file, NULL, NULL), TARN_OK);
  see_floats(&t, 1);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// No signal, no aborted program.
static void exceed_a_limit(void) {
  const struct rlimit few = {1 << 16, 1 << 16};
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_CHUNKED, TARN_HOST);
  const char *file = in_folder("x.npy");
  fill_floats(&t, 1);
  MUST(setrlimit(RLIMIT_FSIZE, &few) == 0);
  MUST_BE(tarn_whole_store(&t, file, NULL, NULL), TARN_E_IO);
  MUST_SAY("File too large");
  MUST_SAY(file);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

TEST_LOOP(what_is_wrong_is_told_to_all, 5) {
  static void (*const works[])(void) = {
      refuse_damage, refuse_others, refuse_two_files, cancel, exceed_a_limit};
  static const size_t left[] = {0, 1, 2, 1, 0};
  make_folder();
  run_ranks(3, "wrong", works[_i]);
  ck_assert_uint_eq(count_names(), left[_i]);
  remove_folder();
}

// --- a full disk -----------------------------------------------------------

// Of 480,000 bytes: the old file stays, and nothing is beside it.
static void fill_the_disk(void) {
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_CHUNKED, TARN_HOST);
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_OK);
  fill_floats(&t, -1);
  MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_E_IO);
  MUST_SAY("No space left");
  MUST_BE(tarn_whole_load(&t, path, NULL, NULL), TARN_OK);
  see_floats(&t, 1);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

TEST(a_full_disk_leaves_the_old_file) {
  if (!own_world_enter((size_t)700 << 10)) {
    note_skipped("a full disk", "mounts are not permitted here");
    return;
  }
  make_folder();
  in_folder("x.npy");
  run_ranks(2, "a full disk", fill_the_disk);
  ck_assert_uint_eq(count_names(), 1);
  remove_folder();
}

// --- a process that is killed ----------------------------------------------

// All rows are positive, or all negative.
static void store_in_turn(void) {
  tarn_comm *comm = NULL;
  const tarn_comm_options alone = {.struct_size = sizeof alone,
                                   .flags = TARN_COMM_ALONE};
  my.ranks = 1;
  my.text = "stores";
  MUST_BE(tarn_comm_from_environment(&alone, &comm), TARN_OK);
  my.comm = comm;
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_CHUNKED, TARN_HOST);
  for (float sign = 1;; sign = -sign) {
    fill_floats(&t, sign);
    MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_OK);
  }
}

static void load_either(void) {
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_CHUNKED, TARN_HOST);
  own p = own_of(&t);
  const float *values = host_bytes(p.address);
  MUST_BE(tarn_whole_load(&t, path, NULL, NULL), TARN_OK);
  float sign = (float)tell(0, values[1] < 0) * -2 + 1;
  see_floats(&t, sign);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

TEST_LOOP(a_killed_process_leaves_a_whole_file, EFFORT(25, 5)) {
  make_folder();
  in_folder("x.npy");
  pid_t child = fork();
  if (child == 0) store_in_turn();
  while (access(path, R_OK) != 0)
    usleep(1000);
  usleep((useconds_t)(_i * 1777 % 20000));
  ck_assert_int_eq(kill(child, SIGKILL), 0);
  ck_assert_int_eq(waitpid(child, NULL, 0), child);
  run_ranks(2, "load", load_either);
  remove_folder();
}

// --- host memory fails -----------------------------------------------------

// All ranks return the same; the old file is there, or the new one.
static bool fail_once(tarn_whole_tensor *t, const char *file, size_t victim,
                      size_t n, bool loads) {
  bool struck = false;
  const tarn_file_options o = {.struct_size = sizeof o, .buffer = KIT_MIB};
  const tarn_whole_named one = {"a", *t};
  size_t before = tarn_host_memory();
  if (my.rank == victim) faults_arm(n, FAULTS_ONCE);
  tarn_status status = loads ? tarn_whole_load_named(&one, 1, file, &o, NULL)
                             : tarn_whole_store_named(&one, 1, file, &o, NULL);
  if (my.rank == victim) struck = faults_disarm();
  MUST(status == (tell(victim, struck) != 0 ? TARN_E_NOMEM : TARN_OK));
  must_be_the_same_everywhere(status);
  MUST(tarn_host_memory() == before);
  return status != TARN_OK;
}

static void sweep_host_memory(void) {
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_CHUNKED, TARN_HOST);
  const tarn_whole_named one = {"a", t};
  const char *file = in_folder("x.safetensors");
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_store_named(&one, 1, file, NULL, NULL), TARN_OK);
  for (size_t k = 0; k < 4; k++) {
    size_t n = 1;
    while (fail_once(&t, file, k % 2, n, k < 2)) {
      MUST_BE(tarn_whole_load_named(&one, 1, file, NULL, NULL), TARN_OK);
      n++;
    }
    MUST(n > 3);
  }
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

TEST(host_memory_fails) {
  make_folder();
  run_ranks(2, "host memory", sweep_host_memory);
  ck_assert_uint_eq(count_names(), 1);
  remove_folder();
}

int main(void) {
  faults_install();
  return run_tests();
}

SECONDS(120);
