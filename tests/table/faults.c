// What goes wrong below a table's file: a disk that is full, a file that
// becomes shorter while it is read, reads and writes that fail, and those that
// are short. The disk and the file are real ones; the file system that fails is
// one of the tests (bad_disk.h).
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "bad_disk.h"
#include "files_kit.h"

// 4.8 MB in the file, behind which there are checksums.
static const shape large = {TARN_DTYPE_F32, 18752, 64};
enum { LARGE_END = 4096 + 18752 * 256 };

static uint64_t flags;

static void choose_method(int i) {
  flags = i == 0 ? 0 : TARN_FILE_THREADS;
}

static tarn_whole_tensor make_large(float sign) {
  tarn_whole_tensor t = make(&large, TARN_WHOLE_CHUNKED, TARN_HOST);
  fill_floats(&t, sign);
  return t;
}

static int run(const char *command) {
  char line[512];
  snprintf(line, sizeof line, "%s >/dev/null 2>&1", command);
  return system(line);
}

static void store_once(void) {
  tarn_whole_tensor t = make_large(1);
  MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// --- a full disk -----------------------------------------------------------

// On 8 MB: the old file stays, and nothing is beside it.
static void store_twice(void) {
  tarn_whole_tensor t = make_large(1);
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = flags};
  MUST_BE(tarn_whole_store(&t, path, &options, NULL), TARN_OK);
  fill_floats(&t, -1);
  MUST_BE(tarn_whole_store(&t, path, &options, NULL), TARN_E_IO);
  MUST_SAY("No space left");
  MUST_SAY(path);
  MUST_BE(tarn_whole_load(&t, path, &options, NULL), TARN_OK);
  see_floats(&t, 1);
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

TEST_LOOP(a_full_ext4_leaves_the_old_file, 2) {
  choose_method(_i);
  make_folder();
  in_folder("x.npy");
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

// --- a file system that fails ------------------------------------------------

static bad_disk *disk;

// Runs |work| on it, where there is an old file. There are |left| files after
// that.
static void on_bad_disk(const char *what, void (*work)(void), size_t left) {
  const char *why = NULL;
  make_folder();
  in_folder("x.npy");
  run_ranks(1, "a store", store_once);
  disk = bad_disk_mount(folder, &why);
  if (disk == NULL) {
    note_skipped(what, why);
  } else {
    run_ranks(2, what, work);
    bad_disk_unmount(folder, disk);
    ck_assert_uint_eq(count_names(), left);
  }
  remove_folder();
}

// All ranks, while none of them uses a file.
static void order(bad_call call, uint64_t at) {
  meet_all();
  if (my.rank == 0) {
    disk->at = at;
    disk->fails = call;
  }
  meet_all();
}

static void order_short(bool shortens) {
  meet_all();
  if (my.rank == 0) disk->shortens = shortens;
  meet_all();
}

// --- reads that fail, and short ones ----------------------------------------

static const uint64_t ways[] = {0,
                                TARN_FILE_THREADS,
                                TARN_FILE_UNCHECKED,
                                TARN_FILE_UNCHECKED | TARN_FILE_THREADS,
                                TARN_FILE_CACHED,
                                TARN_FILE_CACHED | TARN_FILE_THREADS,
                                TARN_FILE_CACHED | TARN_FILE_UNCHECKED};
enum { WAYS = sizeof ways / sizeof ways[0] };

// A byte of rank 1's rows.
static const uint64_t BAD_BYTE = 4096 + (3 << 20) + 9999;

static void load_by_halves(void) {
  order_short(true);
  for (size_t i = 0; i < WAYS; i++) {
    tarn_whole_tensor t = make_large(-1);
    const tarn_file_options options = {.struct_size = sizeof options,
                                       .flags = ways[i]};
    size_t before = tell(0, disk->shortened);
    MUST_BE(tarn_whole_load(&t, path, &options, NULL), TARN_OK);
    see_floats(&t, 1);
    MUST(disk->shortened > before + 4);
    MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  }
}

// All are told where the read began, or went on.
static void load_from_bad(void) {
  order(BAD_READ, BAD_BYTE);
  for (size_t i = 0; i < WAYS; i++) {
    tarn_whole_tensor t = make_large(-1);
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

TEST(short_reads_go_on) {
  on_bad_disk("reads that are short", load_by_halves, 1);
}

TEST(a_read_that_fails_is_told) {
  on_bad_disk("reads that fail", load_from_bad, 1);
}

// --- writes that fail, and short ones ----------------------------------------

static void store_by_halves(void) {
  tarn_whole_tensor t = make_large(-1);
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = flags};
  order_short(true);
  MUST_BE(tarn_whole_store(&t, path, &options, NULL), TARN_OK);
  MUST(disk->shortened > 20);
  order_short(false);
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_load(&t, path, NULL, NULL), TARN_OK);
  see_floats(&t, -1);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static const struct {
  bad_call call;
  uint64_t at;
  const char *says;
  const char *rank;  // whose call fails; NULL: that of any
} losses[] = {
    {BAD_WRITE, 4, "cannot write to it", "rank 0: "},
    {BAD_WRITE, 4096, "cannot write byte 4096", "rank 0: "},
    {BAD_WRITE, BAD_BYTE, "cannot write byte 31", "rank 1: "},
    {BAD_WRITE, 100, "cannot write byte 0", "rank 0: "},
    {BAD_WRITE, LARGE_END + 4, "cannot write byte 4804608", "rank 0: "},
    {BAD_FULL, 4, "cannot write to it", "rank 0: "},
    {BAD_FULL, BAD_BYTE, "cannot write byte 31", "rank 1: "},
    {BAD_FULL, 100, "cannot write byte 0", "rank 0: "},
    {BAD_SYNC, 1, "cannot write to it", "rank 0: "},
    {BAD_SYNC, 2, "cannot bring it to the disk", NULL},
    {BAD_SYNC, 3, "cannot bring it to the disk", NULL},
    {BAD_SYNC, 4, "cannot bring it to the disk", "rank 0: "},
    {BAD_RENAME, 1, "cannot put it there", "rank 0: "},
};
enum { LOSSES = sizeof losses / sizeof losses[0] };

static void lose_a_store(size_t i) {
  tarn_whole_tensor t = make_large(-1);
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = flags};
  order(losses[i].call, losses[i].at);
  size_t before = tell(0, disk->failed);
  MUST_BE(tarn_whole_store(&t, path, &options, NULL), TARN_E_IO);
  MUST_SAY(path);
  MUST_SAY(losses[i].says);
  // Of a write that takes nothing io_uring says something else.
  if (losses[i].call != BAD_FULL) MUST_SAY("Input/output error");
  MUST_SAY(losses[i].rank != NULL ? losses[i].rank : "rank ");
  MUST(disk->failed > before);
  order(BAD_NONE, 0);
  MUST_BE(tarn_whole_load(&t, path, NULL, NULL), TARN_OK);
  see_floats(&t, 1);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static void lose_stores(void) {
  for (size_t i = 0; i < LOSSES; i++)
    lose_a_store(i);
}

// A file for each rank. Until the first has its name, all are old.
static void lose_parts(void) {
  static const struct {
    bad_call call;
    uint64_t at;
  } calls[] = {{BAD_WRITE, 9999}, {BAD_SYNC, 3}, {BAD_RENAME, 2}};
  char at[2][192];
  const char *paths[] = {at[0], at[1]};
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = flags};
  tarn_whole_tensor t = make_large(1);
  for (size_t r = 0; r < 2; r++)
    snprintf(at[r], sizeof at[r], "%s_part_%zu_of_2", path, r);
  MUST_BE(tarn_whole_store_raw(&t, path, &options, NULL), TARN_OK);
  for (size_t i = 0; i < 3; i++) {
    fill_floats(&t, -1);
    order(calls[i].call, calls[i].at);
    MUST_BE(tarn_whole_store_raw(&t, path, &options, NULL), TARN_E_IO);
    MUST_SAY(path);
    MUST_SAY("rank ");
    MUST_SAY("Input/output error");
    order(BAD_NONE, 0);
    fill_floats(&t, 2);
    MUST_BE(tarn_whole_load_raw(&t, paths, 2, NULL, NULL), TARN_OK);
    bool is_new = has_floats(&t, -1);
    MUST(is_new || has_floats(&t, 1));
    MUST(tell(0, is_new) + tell(1, is_new) == (calls[i].call == BAD_RENAME));
  }
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// The file is there, whole, but a loss of power might bring the old one back.
static void lose_the_name(void) {
  tarn_whole_tensor t = make_large(-1);
  order(BAD_FOLDER, 0);
  MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_E_IO);
  MUST_SAY(path);
  MUST_SAY("rank 0: ");
  MUST_SAY("cannot bring its name to the disk: Input/output error");
  order(BAD_NONE, 0);
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_load(&t, path, NULL, NULL), TARN_OK);
  see_floats(&t, -1);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

TEST_LOOP(short_writes_go_on, 2) {
  choose_method(_i);
  on_bad_disk("writes that are short", store_by_halves, 1);
}

TEST_LOOP(a_store_that_fails_leaves_the_old_file, 2) {
  choose_method(_i);
  on_bad_disk("writes that fail", lose_stores, 1);
}

TEST_LOOP(a_raw_store_that_fails_leaves_whole_files, 2) {
  choose_method(_i);
  on_bad_disk("raw writes that fail", lose_parts, 3);
}

TEST(a_name_that_is_not_brought_to_the_disk_is_told) {
  on_bad_disk("a folder that fails", lose_the_name, 1);
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

// No signal; all ranks are told the file and the byte.
static void load_what_shrinks(void) {
  tarn_whole_tensor t = make_large(1);
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = flags};
  for (int cold = 0; cold < 2; cold++) {
    shortens = false;
    fill_floats(&t, 1);
    MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_OK);
    if (cold && my.rank == 0) forget_cached(path);
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
  in_folder("x.npy");
  run_ranks(2, "shrinks", load_what_shrinks);
  remove_folder();
}
