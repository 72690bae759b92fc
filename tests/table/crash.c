// A loss of power at any moment of a store: what is on the disk then is the old
// file or the new one, and what is beside it is never taken for a table with
// other rows. The disk is a recorded one (disk_log.h), the load is the real
// one.
#include <fcntl.h>

#include "comm/post_office.h"
#include "disk_log.h"
#include "tarn/table.h"
#include "whole/kit.h"

enum { ROWS = 3000, WIDTH = 100 };

static char folder[64];
static const char *name;  // of the file, which says its format
static uint64_t flags;

static void find_path(const char *of, char out[128]) {
  snprintf(out, 128, "%s/%s", folder, of);
}

// In memory, where there is such: what a disk does is in the log.
static void make_folder(void) {
  bool memory = access("/dev/shm", W_OK) == 0;
  snprintf(folder, sizeof folder, "%s/tarn-crash-XXXXXX",
           memory ? "/dev/shm" : "/tmp");
  ck_assert_ptr_nonnull(mkdtemp(folder));
}

static void remove_folder(void) {
  char command[128];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  ck_assert_int_eq(system(command), 0);
}

// --- tables ----------------------------------------------------------------

static tarn_whole_tensor make(void) {
  tarn_whole_tensor made;
  const tarn_whole_table_options options = {.struct_size = sizeof options,
                                            .type = TARN_WHOLE_DISTRIBUTED,
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
}

static bool is_filled(const tarn_whole_tensor *t, float sign) {
  size_t first = 0;
  size_t count = 0;
  const float *values = own_values(t, &first, &count);
  for (size_t i = 0; i < count; i++)
    if (values[i] != sign * (float)(first + i + 1)) return false;
  return true;
}

// --- a store that is recorded ------------------------------------------------

static void store(tarn_comm *comm, void *unused) {
  char path[128];
  const tarn_file_options options = {.struct_size = sizeof options,
                                     .flags = flags};
  (void)unused;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  my.text = "a store";
  disk_log_be(my.rank);
  find_path(name, path);
  tarn_whole_tensor t = make();
  fill(&t, 1);
  MUST_BE(tarn_whole_store(&t, path, &options, NULL), TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static void record(size_t ranks, disk_lie lie) {
  disk_log_begin(lie);
  post_run(&(post_job){.ranks = ranks, .run = store}, false);
  disk_log_end();
}

// --- what a load makes of the disk -------------------------------------------

static void be_alone(void) {
  const tarn_comm_options alone = {.struct_size = sizeof alone,
                                   .flags = TARN_COMM_ALONE};
  tarn_comm *comm = NULL;
  MUST_BE(tarn_comm_from_environment(&alone, &comm), TARN_OK);
  my.comm = comm;
  my.rank = 0;
  my.ranks = 1;
  my.text = "a load";
}

static void put(const char *path, const unsigned char *bytes, size_t size) {
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  MUST(fd >= 0);
  MUST(write(fd, bytes, size) == (ssize_t)size);
  MUST(close(fd) == 0);
}

typedef enum found { REFUSED, NEW, ANOTHER } found;

// The file that may be there at that moment, opened.
static found open_image(const tarn_whole_tensor *t, size_t moment,
                        uint64_t seed) {
  char path[128];
  char found_as[64];
  size_t size = 0;
  snprintf(found_as, sizeof found_as, "found.%s", name);
  find_path(found_as, path);
  unsigned char *bytes = disk_log_image(moment, seed, &size);
  put(path, bytes, size);
  free(bytes);
  fill(t, -1);
  tarn_status status = tarn_whole_load(t, path, NULL, NULL);
  if (status != TARN_OK) {
    MUST(status == TARN_E_CORRUPT || status == TARN_E_INVALID);
    MUST_SAY(path);
    return REFUSED;
  }
  return is_filled(t, 1) ? NEW : ANOTHER;
}

// Whether a content is wrong: where the new file may have the name, one that is
// not its own; before that, a table with other rows. |out_refused|: how many
// are no table.
static bool has_wrong(const tarn_whole_tensor *t, size_t *out_refused) {
  *out_refused = 0;
  for (size_t m = 0; m < disk_log_moments(); m++) {
    bool is_named = disk_log_name(m) != DISK_OLD;
    for (uint64_t way = 0; way < DISK_WAYS; way++) {
      found what = open_image(t, m, m * DISK_WAYS + way);
      if (what == ANOTHER || (is_named && what != NEW)) return true;
      *out_refused += what == REFUSED;
    }
  }
  return false;
}

// --- tests -------------------------------------------------------------------

static const char *const names[] = {"x.npy", "x.safetensors"};
static const size_t rank_counts[] = {1, 3};

// Of each format, by each method, by one rank and by several.
static void choose(int i) {
  name = names[i % 2];
  flags = i / 2 % 2 == 0 ? 0 : TARN_FILE_THREADS;
}
enum { WAYS = 8 };

TEST_LOOP(the_name_leads_to_the_old_file_or_the_new, WAYS) {
  size_t refused = 0;
  choose(_i);
  make_folder();
  record(rank_counts[_i / 4], (disk_lie){0, 0});
  size_t moments = disk_log_moments();
  ck_assert_uint_ge(disk_log_writes(), 12);
  ck_assert_int_eq(disk_log_name(0), DISK_OLD);
  ck_assert_int_eq(disk_log_name(moments - 1), DISK_NEW);
  be_alone();
  tarn_whole_tensor t = make();
  ck_assert(!has_wrong(&t, &refused));
  // What a store that was cut off leaves beside the file is no table.
  ck_assert_uint_gt(refused, moments * DISK_WAYS / 2);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  MUST_BE(tarn_comm_destroy(my.comm), TARN_OK);
  remove_folder();
}

// Whether something else is found after a loss of power, if a disk has only
// said that it has done a sync.
static bool finds_lie(const tarn_whole_tensor *t, tarn_comm *comm, size_t ranks,
                      disk_lie lie) {
  size_t refused = 0;
  record(ranks, lie);
  my.comm = comm;
  my.rank = 0;
  my.ranks = 1;
  return has_wrong(t, &refused);
}

// Each sync is needed: rank 0's of the random number, of its rows and of the
// header, and each other rank's of its rows. But one: rank 0's rows are also
// brought to the disk with the header. In .npy they must be there before it all
// the same, since the checksums are not in the header; in safetensors they are.
TEST_LOOP(a_disk_that_lies_is_found_out, 4) {
  size_t ranks = rank_counts[_i / 2];
  choose(_i % 2);
  make_folder();
  be_alone();
  tarn_whole_tensor t = make();
  tarn_comm *comm = my.comm;
  for (size_t number = 1; number <= 3; number++) {
    bool needed = number != 2 || name == names[0];
    ck_assert_msg(finds_lie(&t, comm, ranks, (disk_lie){0, number}) == needed,
                  "sync %zu of rank 0", number);
    ck_assert_uint_eq(disk_log_syncs(), ranks + 2);
  }
  for (size_t rank = 1; rank < ranks; rank++)
    ck_assert(finds_lie(&t, comm, ranks, (disk_lie){rank, 1}));
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  MUST_BE(tarn_comm_destroy(comm), TARN_OK);
  remove_folder();
}
