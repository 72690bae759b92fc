// What goes wrong below a table's file: a disk that is full, a file that
// becomes shorter while it is read, reads that fail and reads that are short.
// The disk and the file are real ones; the file system that fails is one of the
// tests (bad_disk.h).
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "bad_disk.h"
#include "tarn/table.h"
#include "whole/kit.h"

enum { ROWS = 12000, WIDTH = 100 };

static char folder[64];
static char path[128];
static uint64_t flags;

static void make_folder(void) {
  snprintf(folder, sizeof folder, "/tmp/tarn-faults-XXXXXX");
  ck_assert_ptr_nonnull(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/x.npy", folder);
}

static int run(const char *command) {
  char line[256];
  snprintf(line, sizeof line, "%s >/dev/null 2>&1", command);
  return system(line);
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(run(command), 0);
}

// --- tables ----------------------------------------------------------------

static tarn_whole_tensor make(void) {
  tarn_whole_tensor made;
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = TARN_WHOLE_CHUNKED,
                                            .place = TARN_HOST,
                                            .dtype = TARN_DTYPE_F32,
                                            .rows = ROWS,
                                            .width = WIDTH};
  MUST_BE(tarn_whole_table_create(my.comm, &options, &made), TARN_OK);
  return made;
}

static float *own_values(const tarn_whole_tensor *t, size_t *out_first,
                         size_t *out_count) {
  tarn_addr address = 0;
  size_t row = 0;
  size_t rows = 0;
  MUST_BE(tarn_whole_tensor_rows(t, my.rank, &row, &rows), TARN_OK);
  MUST_BE(tarn_whole_tensor_local(t, &address), TARN_OK);
  *out_first = row * WIDTH;
  *out_count = rows * WIDTH;
  return host_bytes(address);
}

static void fill(const tarn_whole_tensor *t, float sign) {
  size_t first = 0;
  size_t count = 0;
  float *values = own_values(t, &first, &count);
  for (size_t i = 0; i < count; i++)
    values[i] = sign * (float)(first + i + 1);
  meet_all();
}

static void must_be_filled(const tarn_whole_tensor *t, float sign) {
  size_t first = 0;
  size_t count = 0;
  const float *values = own_values(t, &first, &count);
  for (size_t i = 0; i < count; i++)
    MUST(values[i] == sign * (float)(first + i + 1));
  meet_all();
}

// --- a full disk -----------------------------------------------------------

// A file of 4.8 MB on 8 MB: the old one stays, and nothing is beside it.
static void store_twice(void) {
  tarn_whole_tensor t = make();
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = flags};
  fill(&t, 1);
  MUST_BE(tarn_whole_store(&t, path, &options, NULL), TARN_OK);
  fill(&t, -1);
  MUST_BE(tarn_whole_store(&t, path, &options, NULL), TARN_E_IO);
  MUST_SAY("No space left");
  MUST_SAY(path);
  MUST_BE(tarn_whole_load(&t, path, &options, NULL), TARN_OK);
  must_be_filled(&t, 1);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// A small ext4, seen by this process and its children alone. NULL: it is there;
// else why not.
static const char *enter_small_disk(void) {
  char image[72];
  char command[256];
  snprintf(image, sizeof image, "%s.ext4", folder);
  if (unshare(CLONE_NEWNS) != 0 ||
      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
    return "mounts are not permitted here";
  }
  snprintf(command, sizeof command,
           "truncate -s 8M %s && mkfs.ext4 -q -O ^has_journal -m 0 %s", image,
           image);
  const char *why = run(command) == 0 ? NULL : "there is no mkfs.ext4";
  snprintf(command, sizeof command, "mount -o loop %s %s", image, folder);
  if (why == NULL && run(command) != 0) why = "there are no loop devices";
  unlink(image);
  return why;
}

static size_t count_names(void) {
  char command[128];
  size_t count = 0;
  snprintf(command, sizeof command, "ls %s | grep -vx lost+found | wc -l",
           folder);
  FILE *names = popen(command, "r");
  ck_assert_ptr_nonnull(names);
  ck_assert_int_eq(fscanf(names, "%zu", &count), 1);
  pclose(names);
  return count;
}

TEST_LOOP(a_full_ext4_leaves_the_old_file, 2) {
  flags = _i == 0 ? 0 : TARN_FILE_THREADS;
  make_folder();
  const char *why = enter_small_disk();
  if (why != NULL) {
    note_skipped("a full ext4", why);
  } else {
    run_ranks(2, "a full disk", store_twice);
    ck_assert_uint_eq(count_names(), 1);
    ck_assert_int_eq(umount(folder), 0);
  }
  remove_folder();
}

// --- reads that fail, and short ones ----------------------------------------

static bad_disk *disk;

static void store_once(void) {
  tarn_whole_tensor t = make();
  fill(&t, 1);
  MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static const uint64_t ways[] = {0,
                                TARN_FILE_THREADS,
                                TARN_FILE_UNCHECKED,
                                TARN_FILE_UNCHECKED | TARN_FILE_THREADS,
                                TARN_FILE_CACHED,
                                TARN_FILE_CACHED | TARN_FILE_THREADS,
                                TARN_FILE_CACHED | TARN_FILE_UNCHECKED};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void load_by_halves(void) {
  for (size_t i = 0; i < WAYS; i++) {
    tarn_whole_tensor t = make();
    const tarn_file_options options = {.struct_size = sizeof options,
                                       .flags = ways[i]};
    size_t before = tell(0, disk->shortened);
    MUST_BE(tarn_whole_load(&t, path, &options, NULL), TARN_OK);
    must_be_filled(&t, 1);
    MUST(disk->shortened > before + 4);
    MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  }
}

// The byte is one of rank 1's. All are told where the read began, or went on.
static void load_from_bad(void) {
  for (size_t i = 0; i < WAYS; i++) {
    tarn_whole_tensor t = make();
    const tarn_file_options options = {.struct_size = sizeof options,
                                       .flags = ways[i]};
    MUST_BE(tarn_whole_load(&t, path, &options, NULL), TARN_E_IO);
    MUST_SAY("rank 1: ");
    MUST_SAY("Input/output error");
    MUST_SAY(": byte ");
    MUST_SAY(path);
    MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  }
  MUST(disk->failed >= WAYS);
}

static void on_bad_disk(void (*work)(void)) {
  char backing[72];
  const char *why = NULL;
  make_folder();
  snprintf(backing, sizeof backing, "%s.npy", folder);
  snprintf(path, sizeof path, "%s", backing);
  run_ranks(1, "a store", store_once);
  disk = bad_disk_mount(folder, backing, &why);
  unlink(backing);
  if (disk == NULL) {
    note_skipped("a disk that fails", why);
  } else {
    snprintf(path, sizeof path, "%s/%s", folder, BAD_DISK_FILE);
    disk->shortens = work == load_by_halves;
    disk->fails_at = work == load_from_bad ? 4096 + (3 << 20) + 9999 : 0;
    run_ranks(2, "a disk that fails", work);
    bad_disk_unmount(folder, disk);
  }
  remove_folder();
}

TEST(short_reads_go_on) {
  on_bad_disk(load_by_halves);
}

TEST(a_read_that_fails_is_told) {
  on_bad_disk(load_from_bad);
}

// --- a file that becomes shorter -------------------------------------------

// Rank 1 cuts it when it has read the header, and begins to read rows.
enum { SHORTER = 4096 + (3 << 20) + 12345 };
static bool shortens;

// NOLINTBEGIN(bugprone-reserved-identifier): --wrap makes these names.
tarn_status __real_tarn__reader_go_on(void *reader, uint64_t until,
                                      bool *out_done);
tarn_status __wrap_tarn__reader_go_on(void *reader, uint64_t until,
                                      bool *out_done);
// NOLINTEND(bugprone-reserved-identifier)

tarn_status __wrap_tarn__reader_go_on(void *reader, uint64_t until,
                                      bool *out_done) {
  if (shortens) MUST(truncate(path, SHORTER) == 0);
  return __real_tarn__reader_go_on(reader, until, out_done);
}

static void forget_cached(void) {
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  MUST(fd >= 0);
  MUST(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
  MUST(close(fd) == 0);
}

// No signal; all ranks are told the file and the byte.
static void load_what_shrinks(void) {
  tarn_whole_tensor t = make();
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = flags};
  for (int cold = 0; cold < 2; cold++) {
    shortens = false;
    fill(&t, 1);
    MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_OK);
    if (cold && my.rank == 0) forget_cached();
    meet_all();
    shortens = my.rank == 1;
    MUST_BE(tarn_whole_load(&t, path, &options, NULL), TARN_E_CORRUPT);
    MUST_SAY("the file ends at byte ");
    MUST_SAY(path);
    meet_all();
  }
  shortens = false;
  MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_OK);
  MUST_BE(tarn_whole_load(&t, path, &options, NULL), TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

TEST_LOOP(a_file_that_shrinks_is_told, WAYS) {
  flags = ways[_i];
  make_folder();
  run_ranks(2, "shrinks", load_what_shrinks);
  remove_folder();
}
