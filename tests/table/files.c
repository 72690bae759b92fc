// Tables in files, of every type and place, stored by one number of ranks and
// loaded by another: rows are where they were, and conversions are right.
#include <fcntl.h>

#include "base/os.h"
#include "comm/post_office.h"
#include "files_kit.h"
#include "support/effort.h"

static const ground *where;  // set before ranks are forked
static size_t turn;
static uint64_t flags;

// --- tables ----------------------------------------------------------------

static const shape shapes[] = {
    {TARN_DTYPE_F32, 1000, 5},    {TARN_DTYPE_BF16, 3, 7},
    {TARN_DTYPE_I64, 10, 0},      {TARN_DTYPE_U8, 0, 3},
    {TARN_DTYPE_F64, 40000, 16},  {TARN_DTYPE_F32, 9, 300000},
    {TARN_DTYPE_BOOL, 100000, 33}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static unsigned char byte_of(const shape *s, size_t row, size_t k,
                             unsigned seed) {
  if (s->dtype == TARN_DTYPE_BOOL) return (row * 7 + k + seed) % 3 == 0;
  return (unsigned char)(row * 31 + k * 7 + seed + row / 256);
}

// Own rows become those of |seed|.
static void fill(const shape *s, const tarn_whole_tensor *t, tarn_place place,
                 unsigned seed) {
  own o = own_of(t);
  unsigned char *bytes = malloc(o.count * o.row + 1);
  MUST(bytes != NULL);
  for (size_t row = 0; row < o.count; row++)
    for (size_t k = 0; k < o.row; k++)
      bytes[row * o.row + k] = byte_of(s, o.first + row, k, seed);
  poke(place, o.address, bytes, o.count * o.row);
  free(bytes);
  meet_all();
}

static void see(const shape *s, const tarn_whole_tensor *t, tarn_place place,
                unsigned seed) {
  own o = own_of(t);
  unsigned char *bytes = malloc(o.count * o.row + 1);
  MUST(bytes != NULL);
  peek(place, o.address, bytes, o.count * o.row);
  for (size_t row = 0; row < o.count; row++)
    for (size_t k = 0; k < o.row; k++)
      MUST(bytes[row * o.row + k] == byte_of(s, o.first + row, k, seed));
  free(bytes);
  meet_all();
}

static tarn_file_options usual(void) {
  return (tarn_file_options){.struct_size = sizeof(tarn_file_options),
                             .flags = flags,
                             .buffer = (size_t)1 << 20};
}

// --- and back --------------------------------------------------------------

// Tables of megabytes are of one type on each ground, by turns; under a
// sanitizer only where ranks share them.
static bool is_left_out(const shape *s, size_t type) {
  bool is_large = s->rows * s->width >= (size_t)512 << 10;
  bool is_turn = (type + (size_t)(s - shapes) + turn) % TYPES == 0;
  return is_large && !(is_turn && my.ranks > EFFORT(0, 1));
}

static void go_around(void) {
  tarn_place place = open_ground(where);
  static const char *const names[] = {"t.npy", "t.safetensors", "t.raw"};
  for (size_t i = 0; i < SHAPES * TYPES; i++) {
    const shape *s = &shapes[i % SHAPES];
    if (is_left_out(s, i / SHAPES)) continue;
    tarn_whole_tensor t = make(s, type_at(i / SHAPES), place);
    for (size_t k = 0; k < 3; k++) {
      tarn_file_report report = {.struct_size = sizeof report};
      tarn_file_options o = usual();
      if (k == 2) o.format = TARN_FILE_RAW;
      unsigned seed = (unsigned)(i + k);
      const char *file = in_folder(names[k]);
      fill(s, &t, place, seed);
      MUST_BE(tarn_whole_store(&t, file, &o, &report), TARN_OK);
      MUST(report.rows == s->rows);
      fill(s, &t, place, seed + 1);
      MUST_BE(tarn_whole_load(&t, file, &o, &report), TARN_OK);
      see(s, &t, place, seed);
      bool checked = k < 2 && (flags & TARN_FILE_UNCHECKED) == 0;
      MUST(checked || report.checked == 0);
      MUST(!checked || report.checked >= report.bytes);
    }
    MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  }
  close_ground(place);
}

static void try_on(int i, size_t ranks) {
  where = ground_at(i);
  turn = (size_t)i;
  note_mapped("files");
  make_folder();
  run_ranks(ranks, where->text, go_around);
  remove_folder();
}

TEST_LOOP(rows_come_back_to_one_rank, GROUNDS) {
  try_on(_i, 1);
}

TEST_LOOP(rows_come_back_to_three_ranks, GROUNDS) {
  try_on(_i, 3);
}

TEST_LOOP(rows_come_back_by_each_way, 4) {
  static const uint64_t ways[] = {TARN_FILE_THREADS, TARN_FILE_CACHED,
                                  TARN_FILE_UNCHECKED,
                                  TARN_FILE_THREADS | TARN_FILE_CACHED};
  flags = ways[_i];
  try_on(0, 2);
}

// --- other numbers of ranks ------------------------------------------------

static void store_all(void) {
  tarn_place place = open_ground(where);
  for (size_t i = 0; i < SHAPES; i++) {
    char name[32];
    snprintf(name, sizeof name, "%zu.npy", i);
    tarn_whole_tensor t = make(&shapes[i], TARN_WHOLE_DISTRIBUTED, place);
    fill(&shapes[i], &t, place, (unsigned)i);
    MUST_BE(tarn_whole_store(&t, in_folder(name), NULL, NULL), TARN_OK);
    MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  }
  close_ground(place);
}

static void load_all(void) {
  tarn_place place = open_ground(where);
  for (size_t i = 0; i < SHAPES; i++) {
    char name[32];
    snprintf(name, sizeof name, "%zu.npy", i);
    tarn_whole_tensor t = make(&shapes[i], TARN_WHOLE_DISTRIBUTED, place);
    MUST_BE(tarn_whole_load(&t, in_folder(name), NULL, NULL), TARN_OK);
    see(&shapes[i], &t, place, (unsigned)i);
    MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  }
  close_ground(place);
}

TEST(any_number_of_ranks_loads_what_any_has_stored) {
  static const size_t numbers[] = {1, 2, 5};
  where = ground_at(0);
  for (size_t i = 0; i < 3; i++) {
    make_folder();
    run_ranks(numbers[i], "store", store_all);
    for (size_t k = 0; k < 3; k++)
      run_ranks(numbers[k], "load", load_all);
    remove_folder();
  }
}

// --- parts, conversions, names ---------------------------------------------

// Columns 10 to 19 of rows 100 to 2099 go to a file, converted on the way, and
// come back to columns 0 to 9 of other rows; all else stays.
static void move_a_part(void) {
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_CHUNKED, TARN_HOST);
  tarn_whole_tensor from;
  tarn_whole_tensor to;
  tarn_file_options o = usual();
  const char *file = in_folder("part.npy");
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_tensor_sub(&t, 100, 2100, 10, 20, &from), TARN_OK);
  MUST_BE(tarn_whole_tensor_sub(&t, 500, 2500, 0, 10, &to), TARN_OK);
  o.dtype = TARN_DTYPE_F64;
  MUST_BE(tarn_whole_store(&from, file, &o, NULL), TARN_OK);
  MUST_BE(tarn_whole_load(&to, file, NULL, NULL), TARN_OK);
  own p = own_of(&t);
  const float *values = host_bytes(p.address);
  for (size_t i = 0; i < p.count * t.width; i++) {
    size_t row = p.first + i / t.width;
    size_t column = i % t.width;
    bool moved = row >= 500 && row < 2500 && column < 10;
    MUST(values[i] ==
         (moved ? value_of(row - 400, column + 10) : value_of(row, column)));
  }
  meet_all();
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// Rows 1200 to 1999 of a file, as half floats that become floats.
static void load_some_rows(void) {
  const shape few = {TARN_DTYPE_F32, 800, 40};
  tarn_whole_tensor all = make(&floats, TARN_WHOLE_DISTRIBUTED, TARN_HOST);
  tarn_whole_tensor some = make(&few, TARN_WHOLE_CONTINUOUS, TARN_HOST);
  tarn_file_options o = usual();
  const char *file = in_folder("some.npy");
  fill_floats(&all, 1);
  MUST_BE(tarn_whole_store(&all, file, NULL, NULL), TARN_OK);
  o.first_row = 1200;
  MUST_BE(tarn_whole_load(&some, file, &o, NULL), TARN_E_INVALID);
  MUST_SAY("3000 rows of 40 in 2 dimensions, where 2000 of 40 in 2");
  o.flags |= TARN_FILE_PART;
  MUST_BE(tarn_whole_load(&some, file, &o, NULL), TARN_OK);
  own p = own_of(&some);
  const float *values = host_bytes(p.address);
  for (size_t i = 0; i < p.count * 40; i++)
    MUST(values[i] == value_of(1200 + p.first + i / 40, i % 40));
  meet_all();
  MUST_BE(tarn_whole_destroy(all.whole), TARN_OK);
  MUST_BE(tarn_whole_destroy(some.whole), TARN_OK);
}

// A table and a vector that belongs to it, by names, in one file; the vector
// alone comes back into another.
static void store_by_names(void) {
  const shape steps = {TARN_DTYPE_I32, 3000, 0};
  tarn_whole_named all[] = {
      {"weights", make(&floats, TARN_WHOLE_CONTINUOUS, TARN_HOST)},
      {"steps", make(&steps, TARN_WHOLE_DISTRIBUTED, TARN_HOST)}};
  tarn_whole_tensor other = make(&steps, TARN_WHOLE_CHUNKED, TARN_HOST);
  const char *file = in_folder("all.safetensors");
  fill_floats(&all[0].tensor, 1);
  fill(&steps, &all[1].tensor, TARN_HOST, 5);
  MUST_BE(tarn_whole_store_named(all, 2, file, NULL, NULL), TARN_OK);
  fill_floats(&all[0].tensor, -1);
  fill(&steps, &all[1].tensor, TARN_HOST, 6);
  MUST_BE(tarn_whole_load_named(all, 2, file, NULL, NULL), TARN_OK);
  see(&steps, &all[1].tensor, TARN_HOST, 5);
  own p = own_of(&all[0].tensor);
  const float *values = host_bytes(p.address);
  for (size_t i = 0; i < p.count * 40; i++)
    MUST(values[i] == value_of(p.first + i / 40, i % 40));
  const tarn_whole_named one = {"steps", other};
  MUST_BE(tarn_whole_load_named(&one, 1, file, NULL, NULL), TARN_OK);
  see(&steps, &other, TARN_HOST, 5);
  const tarn_whole_named none = {"moments", other};
  MUST_BE(tarn_whole_load_named(&none, 1, file, NULL, NULL), TARN_E_INVALID);
  MUST_SAY("has no tensor 'moments'");
  const tarn_whole_named twice[] = {one, one};
  MUST_BE(tarn_whole_load_named(twice, 2, file, NULL, NULL), TARN_E_INVALID);
  MUST_SAY("are both 'steps'");
  for (size_t i = 0; i < 2; i++)
    MUST_BE(tarn_whole_destroy(all[i].tensor.whole), TARN_OK);
  MUST_BE(tarn_whole_destroy(other.whole), TARN_OK);
}

// --- raw files -------------------------------------------------------------

// Each rank's rows in a file of its own; all of them make the table again. With
// the last one missing, rows stay.
static void go_by_parts(void) {
  char names[MOST_RANKS][192];
  const char *paths[MOST_RANKS];
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_DISTRIBUTED, TARN_HOST);
  tarn_file_options o = usual();
  in_folder("p");
  for (size_t r = 0; r < my.ranks; r++) {
    snprintf(names[r], sizeof names[r], "%s_part_%zu_of_%zu", path, r,
             my.ranks);
    paths[r] = names[r];
  }
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_store_raw(&t, path, NULL, NULL), TARN_OK);
  fill_floats(&t, -1);
  MUST_BE(tarn_whole_load_raw(&t, paths, my.ranks - 1, &o, NULL),
          TARN_E_INVALID);
  o.flags |= TARN_FILE_FEWER;
  MUST_BE(tarn_whole_load_raw(&t, paths, my.ranks - 1, &o, NULL), TARN_OK);
  see_floats(&t, my.rank == my.ranks - 1 ? -1 : 1);
  MUST_BE(tarn_whole_load_raw(&t, paths, my.ranks, NULL, NULL), TARN_OK);
  see_floats(&t, 1);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

// Rows of two files are dealt out to the ranks, seven at a time.
static void deal_rows(void) {
  enum { DEAL = 7 };
  const char *paths[2];
  char first[128];
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_DISTRIBUTED, TARN_HOST);
  tarn_whole_tensor half[2];
  tarn_file_options raw = usual();
  raw.format = TARN_FILE_RAW;
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_tensor_sub(&t, 0, 1234, 0, 40, &half[0]), TARN_OK);
  MUST_BE(tarn_whole_tensor_sub(&t, 1234, 3000, 0, 40, &half[1]), TARN_OK);
  snprintf(first, sizeof first, "%s", in_folder("a"));
  paths[0] = first;
  paths[1] = in_folder("b");
  for (size_t i = 0; i < 2; i++)
    MUST_BE(tarn_whole_store(&half[i], paths[i], &raw, NULL), TARN_OK);
  fill_floats(&t, -1);
  raw.deal = DEAL;
  raw.flags |= TARN_FILE_FEWER;
  MUST_BE(tarn_whole_load_raw(&t, paths, 2, &raw, NULL), TARN_OK);
  own p = own_of(&t);
  const float *values = host_bytes(p.address);
  for (size_t i = 0; i < p.count * 40; i++) {
    size_t own_row = i / 40;
    size_t row = (own_row / DEAL * my.ranks + my.rank) * DEAL + own_row % DEAL;
    MUST(values[i] == (row < 3000 ? value_of(row, i % 40)
                                  : -value_of(p.first + own_row, i % 40)));
  }
  meet_all();
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

TEST_LOOP(files_hold_what_was_asked_for, 5) {
  static void (*const works[])(void) = {move_a_part, load_some_rows,
                                        store_by_names, go_by_parts, deal_rows};
  make_folder();
  run_ranks(3, "parts", works[_i]);
  remove_folder();
}

// --- several machines ------------------------------------------------------

// Each rank is a machine of its own, and a thread.
static void go_by_messages(tarn_comm *comm, void *unused) {
  (void)unused;
  my.comm = comm;
  my.rank = tarn_comm_rank(comm);
  my.ranks = tarn_comm_size(comm);
  my.text = "messages";
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_DISTRIBUTED, TARN_HOST);
  fill_floats(&t, 1);
  MUST_BE(tarn_whole_store(&t, path, NULL, NULL), TARN_OK);
  fill_floats(&t, -1);
  MUST_BE(tarn_whole_load(&t, path, NULL, NULL), TARN_OK);
  see_floats(&t, 1);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

TEST_RANGE(ranks_of_several_machines_have_one_file, 2, 4) {
  make_folder();
  in_folder("x.npy");
  post_run(&(post_job){.ranks = (size_t)_i, .run = go_by_messages}, false);
  remove_folder();
}

// --- what the page cache has -----------------------------------------------

// Whether the file system reads past its cache, and has emptied it. Files in
// memory stay where they are.
static bool is_cold(const char *file) {
  int fd = tarn__os_open(file, TARN__OS_TO_READ);
  int direct = tarn__os_open(file, TARN__OS_TO_READ_DIRECTLY);
  bool cold = direct >= 0 && !tarn__os_is_cached(fd, 0, KIT_MIB);
  tarn__os_close(fd);
  if (direct >= 0) tarn__os_close(direct);
  return cold;
}

// Tables in files, of which a part is stored too: then rows do not begin
// between blocks as they do in memory.
static void load_cold_and_warm(void) {
  const shape large = {TARN_DTYPE_F32, 100000, 40};
  tarn_whole_tensor t = make(&large, TARN_WHOLE_CHUNKED, TARN_HOST);
  tarn_whole_tensor part;
  tarn_file_report report = {.struct_size = sizeof report};
  const char *file = in_folder("x.npy");
  MUST_BE(tarn_whole_tensor_sub(&t, 1, 90001, 0, 40, &part), TARN_OK);
  const tarn_whole_tensor *stored[] = {&t, &part};
  for (size_t i = 0; i < 2; i++) {
    fill_floats(&t, 1);
    MUST_BE(tarn_whole_store(stored[i], file, NULL, NULL), TARN_OK);
    fill_floats(&t, i == 0 ? -1 : 1);
    if (my.rank == 0) forget_cached(file);
    meet_all();
    bool cold = is_cold(file);
    meet_all();
    MUST_BE(tarn_whole_load(stored[i], file, NULL, &report), TARN_OK);
    MUST((report.direct_bytes > 0) == cold);
    own p = own_of(&t);
    const float *values = host_bytes(p.address);
    for (size_t k = 0; k < p.count * 40; k++)
      MUST(values[k] == value_of(p.first + k / 40, k % 40));
    meet_all();
  }
  MUST_BE(tarn_whole_store(&t, file, NULL, NULL), TARN_OK);
  MUST_BE(tarn_whole_load(&t, file, NULL, &report), TARN_OK);
  MUST(report.direct_bytes == 0);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

TEST(what_the_cache_lacks_is_read_past_it) {
  make_folder();
  run_ranks(2, "cold", load_cold_and_warm);
  remove_folder();
}

// --- other readers ---------------------------------------------------------

static void write_for_others(void) {
  const shape halves = {TARN_DTYPE_BF16, 500, 6};
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_DISTRIBUTED, TARN_HOST);
  tarn_whole_tensor h = make(&halves, TARN_WHOLE_DISTRIBUTED, TARN_HOST);
  fill_floats(&t, 1);
  fill(&halves, &h, TARN_HOST, 3);
  MUST_BE(tarn_whole_store(&t, in_folder("f.npy"), NULL, NULL), TARN_OK);
  MUST_BE(tarn_whole_store(&h, in_folder("h.npy"), NULL, NULL), TARN_OK);
  const tarn_whole_named all[] = {{"halves", h}, {"floats", t}};
  MUST_BE(
      tarn_whole_store_named(all, 2, in_folder("s.safetensors"), NULL, NULL),
      TARN_OK);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
  MUST_BE(tarn_whole_destroy(h.whole), TARN_OK);
}

static void read_of_others(void) {
  tarn_whole_tensor t = make(&floats, TARN_WHOLE_DISTRIBUTED, TARN_HOST);
  tarn_file_report report = {.struct_size = sizeof report};
  MUST_BE(tarn_whole_load(&t, in_folder("n.npy"), NULL, &report), TARN_OK);
  MUST(report.checked == 0);
  see_floats(&t, 1);
  MUST_BE(tarn_whole_destroy(t.whole), TARN_OK);
}

static const char numpy_reads[] =
    "import numpy as np, sys\n"
    "f = sys.argv[1]\n"
    "want = (np.arange(3000)[:, None] * 64 + np.arange(40)) / 8\n"
    "for mode in (None, 'r'):\n"
    "  assert (np.load(f + '/f.npy', mmap_mode=mode) == want).all()\n"
    "h = np.load(f + '/h.npy')\n"
    "assert h.shape == (500, 6) and h.itemsize == 2\n"
    "r, k = np.arange(500)[:, None], np.arange(12)\n"
    "raw = (r * 31 + k * 7 + 3 + r // 256).astype('u1')\n"
    "assert (h.view('u1').reshape(500, 12) == raw).all()\n"
    "np.save(f + '/n.npy', want)\n"
    "try:\n"
    "  from safetensors.numpy import load_file\n"
    "except ImportError:\n"
    "  print('safetensors')\n"
    "else:\n"
    "  try:\n"
    "    s = load_file(f + '/s.safetensors')\n"
    "    assert (s['floats'] == want).all()\n"
    "  except (KeyError, TypeError):\n"
    "    print('bf16')\n";

TEST(numpy_reads_them_and_is_read) {
  char command[sizeof numpy_reads + 256];
  if (system("/usr/bin/python3 -c 'import numpy' 2>/dev/null") != 0) {
    note_skipped("tables for NumPy", "it is not installed");
    return;
  }
  make_folder();
  run_ranks(3, "write for NumPy", write_for_others);
  snprintf(command, sizeof command, "/usr/bin/python3 - %s <<'END'\n%sEND\n",
           folder, numpy_reads);
  FILE *said = popen(command, "r");
  char line[64] = "";
  ck_assert_ptr_nonnull(said);
  if (fgets(line, sizeof line, said) != NULL)
    note_skipped("tables for the package safetensors", "it is not installed");
  ck_assert_int_eq(pclose(said), 0);
  run_ranks(2, "read NumPy's", read_of_others);
  remove_folder();
}

int main(void) {
  return run_tests();
}

SECONDS(180);
