// A loss of power at any moment of a store: what is on the disk then is the old
// file or the new one, and what is beside it is never taken for a table with
// other rows. Of a store of a file for each rank each is the old one or the new
// one. The disk is a recorded one (disk_log.h), the load is the real one.
#include "comm/post_office.h"
#include "disk_log.h"
#include "files_kit.h"
#include "support/effort.h"
#include "support/mix.h"

// 1.2 MB, of which two MiB have checksums.
static const shape some = {TARN_DTYPE_F32, 4700, 64};

static const char *const names[] = {"x.npy", "x.safetensors", "x.raw"};
enum { NPY, SAFETENSORS, RAW, NAMES };

static int name;    // of the file, which says its format
static bool parts;  // a file for each rank
static uint64_t flags;

// In memory, where there is such: what a disk does is in the log.
static void make_folder_in_memory(void) {
  make_folder_in(access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
}

static tarn_file_options how(void) {
  return (tarn_file_options){
      .struct_size = sizeof(tarn_file_options),
      .format = name == RAW ? TARN_FILE_RAW : TARN_FILE_BY_NAME,
      .flags = flags};
}

// --- a store that is recorded ------------------------------------------------

static own own_rows[MOST_RANKS];  // of each rank

static void store(tarn_comm *comm, void *unused) {
  const tarn_file_options options = how();
  (void)unused;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  my.text = "a store";
  disk_log_be(my.rank);
  tarn_whole_tensor t = make(&some, TARN_WHOLE_DISTRIBUTED, TARN_HOST);
  own_rows[my.rank] = own_of(&t);
  fill_floats(&t, 1);
  MUST_BE((parts ? tarn_whole_store_raw : tarn_whole_store)(&t, path, &options,
                                                            NULL),
          TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static void record(size_t ranks, disk_lie lie) {
  in_folder(names[name]);
  disk_log_begin(lie);
  post_run(&(post_job){.ranks = ranks, .run = store}, false);
  disk_log_end();
}

// --- what a load makes of the disk -------------------------------------------

// Of the contents at a moment: all, or by turns one or two of them.
enum { EVERY = EFFORT(1, 3) };

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

static void put(const char *at, const void *bytes, size_t size) {
  int fd = open(at, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  MUST(fd >= 0);
  MUST(write(fd, bytes, size) == (ssize_t)size);
  MUST(close(fd) == 0);
}

// What the file may be at that moment.
static void put_image(const char *at, int file, size_t moment, uint64_t seed) {
  size_t size = 0;
  unsigned char *bytes = disk_log_image(file, moment, seed, &size);
  put(at, bytes, size);
  free(bytes);
}

typedef enum found { REFUSED, NEW, ANOTHER } found;

static found open_image(const tarn_whole_tensor *t, size_t moment,
                        uint64_t seed) {
  char at[64];
  const tarn_file_options options = how();
  snprintf(at, sizeof at, "found.%s", names[name]);
  put_image(in_folder(at), DISK_SHARED, moment, seed);
  fill_floats(t, -1);
  tarn_status status = tarn_whole_load(t, path, &options, NULL);
  if (status != TARN_OK) {
    MUST(status == TARN_E_CORRUPT || status == TARN_E_INVALID);
    MUST_SAY(path);
    return REFUSED;
  }
  return has_floats(t, 1) ? NEW : ANOTHER;
}

// Whether a content is wrong: where the new file may have the name, one that is
// not its own; before that, a table with other rows, for which a raw file may
// be taken. |out_refused|: how many are no table.
static bool has_wrong(const tarn_whole_tensor *t, size_t *out_refused) {
  *out_refused = 0;
  for (size_t m = 0; m < disk_log_moments(); m++) {
    bool is_named = disk_log_name(DISK_SHARED, m) != DISK_OLD;
    for (uint64_t way = m % EVERY; way < DISK_WAYS; way += EVERY) {
      found what = open_image(t, m, m * DISK_WAYS + way);
      if (is_named ? what != NEW : what == ANOTHER && name != RAW) return true;
      *out_refused += what == REFUSED;
    }
  }
  return false;
}

// A table of this process, in which files are loaded.
static tarn_whole_tensor begin(void) {
  make_folder_in_memory();
  be_alone();
  return make(&some, TARN_WHOLE_DISTRIBUTED, TARN_HOST);
}

static void end(const tarn_whole_tensor *t) {
  MUST_BE(tarn_whole_destroy(t->whole), TARN_OK);
  MUST_BE(tarn_comm_destroy(my.comm), TARN_OK);
  remove_folder();
}

// --- tests -------------------------------------------------------------------

static const size_t rank_counts[] = {1, 3};

// Of each format, by each method, by one rank and by several.
static void choose(int i) {
  name = i % NAMES;
  flags = i / NAMES % 2 == 0 ? 0 : TARN_FILE_THREADS;
}
enum { WAYS = NAMES * 4 };

TEST_LOOP(the_name_leads_to_the_old_file_or_the_new, WAYS) {
  size_t refused = 0;
  choose(_i);
  tarn_whole_tensor t = begin();
  record(rank_counts[_i / (WAYS / 2)], (disk_lie){0, 0});
  size_t moments = disk_log_moments();
  ck_assert_uint_ge(disk_log_writes(), 12);
  ck_assert_int_eq(disk_log_name(DISK_SHARED, 0), DISK_OLD);
  ck_assert_int_eq(disk_log_name(DISK_SHARED, moments - 1), DISK_NEW);
  ck_assert(!has_wrong(&t, &refused));
  // What a store that was cut off leaves beside the file is no table.
  if (name != RAW) ck_assert_uint_gt(refused, moments * DISK_WAYS / EVERY / 2);
  end(&t);
}

// Whether something else is found after a loss of power, if a disk has only
// said that it has done a sync.
static bool finds_lie(const tarn_whole_tensor *t, size_t ranks, disk_lie lie) {
  size_t refused = 0;
  record(ranks, lie);
  return has_wrong(t, &refused);
}

// Each sync is needed: rank 0's of the random number, of its rows and of the
// header, and each other rank's of its rows. But one: rank 0's rows are also
// brought to the disk with the header. In .npy they must be there before it all
// the same, since the checksums are not in the header; in safetensors they are.
TEST_LOOP(a_disk_that_lies_is_found_out, 4) {
  size_t ranks = rank_counts[_i / 2];
  choose(_i % 2);
  tarn_whole_tensor t = begin();
  for (size_t number = 1; number <= 3; number++) {
    bool needed = number != 2 || name == NPY;
    ck_assert_msg(finds_lie(&t, ranks, (disk_lie){0, number}) == needed,
                  "sync %zu of rank 0", number);
    ck_assert_uint_eq(disk_log_syncs(), ranks + 2);
  }
  for (size_t rank = 1; rank < ranks; rank++)
    ck_assert(finds_lie(&t, ranks, (disk_lie){rank, 1}));
  end(&t);
}

// --- a file for each rank ----------------------------------------------------

enum { RANKS = 3 };

// Whether the rank's file is the new one.
typedef bool is_new[RANKS];

static void put_old(const char *at, own rows) {
  static float values[4700 * 64];
  for (size_t i = 0; i < rows.count * some.width; i++)
    values[i] = -value_of(rows.first + i / some.width, i % some.width);
  put(at, values, rows.count * rows.row);
}

// Whether the files, loaded together, are those that they should be.
static bool are_right(const tarn_whole_tensor *t, is_new news, size_t moment,
                      uint64_t seed) {
  char at[RANKS][64 + 16];
  const char *paths[RANKS];
  const float *values = host_bytes(own_of(t).address);
  for (int r = 0; r < RANKS; r++) {
    snprintf(at[r], sizeof at[r], "%s/found.%d", folder, r);
    paths[r] = at[r];
    if (news[r]) {
      put_image(at[r], r, moment, seed + (uint64_t)r);
    } else {
      put_old(at[r], own_rows[r]);
    }
  }
  if (tarn_whole_load_raw(t, paths, RANKS, NULL, NULL) != TARN_OK) return false;
  for (int r = 0; r < RANKS; r++) {
    const own *o = &own_rows[r];
    if (!are_floats(values + o->first * some.width, o->first, o->count,
                    some.width, news[r] ? 1 : -1)) {
      return false;
    }
  }
  return true;
}

// Draws one of the files where either may have the name. Returns how many are
// new.
static size_t draw_names(size_t moment, uint64_t seed, is_new out) {
  size_t count = 0;
  for (int r = 0; r < RANKS; r++) {
    disk_name which = disk_log_name(r, moment);
    bool chosen = mix(seed, (uint64_t)r) % 2 == 0;
    out[r] = which == DISK_NEW || (which == DISK_EITHER && chosen);
    count += out[r];
  }
  return count;
}

// Whether a file that has a name is wrong, or one that lacks it yet while
// another has it. |out_mixed|: how often some were old and some new.
static bool has_wrong_parts(const tarn_whole_tensor *t, size_t *out_mixed) {
  *out_mixed = 0;
  for (size_t m = 0; m < disk_log_moments(); m++) {
    for (uint64_t way = m % EVERY; way < DISK_WAYS; way += EVERY) {
      is_new all = {true, true, true};
      is_new news;
      uint64_t seed = m * DISK_WAYS + way;
      size_t count = draw_names(m, seed, news);
      if (!are_right(t, news, m, seed)) return true;
      if (count > 0 && !are_right(t, all, m, seed)) return true;
      *out_mixed += count > 0 && count < RANKS;
    }
  }
  return false;
}

// Each sync of a rank is needed, the first one too: its random number must not
// come to the disk behind the rows.
static void see_parts(const tarn_whole_tensor *t, disk_lie lie, bool wrong) {
  size_t mixed = 0;
  record(RANKS, lie);
  ck_assert_uint_eq(disk_log_syncs(), (size_t)2 * RANKS);
  ck_assert_int_eq(has_wrong_parts(t, &mixed), wrong);
  if (!wrong) ck_assert_uint_gt(mixed, 0);
}

TEST_LOOP(each_rank_has_its_old_file_or_the_new, EFFORT(2, 1)) {
  name = RAW;
  parts = true;
  flags = _i == 0 ? 0 : TARN_FILE_THREADS;
  tarn_whole_tensor t = begin();
  see_parts(&t, (disk_lie){0, 0}, false);
  for (size_t rank = 0; rank < RANKS; rank++)
    for (size_t number = 1; number <= 2; number++)
      see_parts(&t, (disk_lie){rank, number}, true);
  end(&t);
}
