// Tables of buffers: within bounded memory, and written as they were read.
#include "csv_kit.h"

// --- memory ------------------------------------------------------------------

// |line| many times, with a number before it if it is to be an id.
static void read_many(const char *first, const char *line, size_t count,
                      bool numbered, tarn_status expected) {
  size_t room = strlen(first) + count * (strlen(line) + 8) + 1;
  char *text = malloc(room);
  require(text != NULL);
  size_t size = (size_t)sprintf(text, "%s", first);
  for (size_t i = 0; i < count; i++) {
    if (numbered) size += (size_t)sprintf(text + size, "%zx", i);
    size += (size_t)sprintf(text + size, "%s", line);
  }
  tarn_plan_table_destroy(table);
  table = NULL;
  faults_peak_reset();
  assert_status(tarn_plan_table_read_bytes(text, size, "made", NULL, &table),
                expected);
  ck_assert_uint_le(faults_peak(), 64 * size + (1 << 20));
  free(text);
}

TEST(memory_is_bounded_by_the_size) {
  enum { LINES = 30000 };
  static const char pairs[] =
      "id,lower,upper,size,in_place_of\n"
      "x,0,2,1,\ny,0,2,1,\n";
  read_many(FIRST, ",0,1,1\n", LINES, true, TARN_OK);
  ck_assert_uint_eq(tarn_plan_table_problem(table)->count, LINES);
  read_many(FIRST, "\n", (size_t)20 * LINES, false, TARN_OK);
  read_many("", ",", (size_t)20 * LINES, false, TARN_E_CORRUPT);
  read_many("id,lower,upper,size,gaps\na,0,9,1,", "1-2 ", LINES, false,
            TARN_E_CORRUPT);
  read_many(pairs, ",1,3,1,x y x y x y x y x y x y x y x y x y\n", LINES, true,
            TARN_OK);
  read_many(ALL, ",0,9,1,,1-2 3-4 5-6 7-8,,,1\n", LINES, true, TARN_OK);
}

static void read_some(void *context) {
  static const char text[] =
      ALL "a,0,5,64,16,1-2 3-4,128,,0\nb,4,9,1,,,,a,\nc,3,5,7,2,,,,\n";
  const tarn_plan_csv_options *options = context;
  tarn_plan_table *read = NULL;
  tarn_status status =
      tarn_plan_table_read_bytes(text, sizeof text - 1, "made", options, &read);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  tarn_plan_table_destroy(read);
}

static void read_and_write(void *context) {
  tarn_plan_table *read = NULL;
  const uint64_t offsets[] = {1, 2};
  (void)context;
  tarn_status status = tarn_plan_table_read(path, NULL, &read);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  if (status != TARN_OK) return;
  status = tarn_plan_table_write(read, offsets, NULL, path);
  require(status == TARN_OK || status == TARN_E_NOMEM);
  tarn_plan_table_destroy(read);
}

TEST(too_little_memory_is_an_error) {
  tarn_plan_csv_options answers = {.struct_size = sizeof answers,
                                   .offsets_are_answers = true};
  ck_assert_uint_gt(faults_sweep(read_some, NULL), 10);
  ck_assert_uint_gt(faults_sweep(read_some, &answers), 10);
  write_file(FIRST "a,0,5,64\nb,4,9,1\n");
  ck_assert_uint_gt(faults_sweep(read_and_write, NULL), 10);
  char *text = read_file();
  ck_assert_str_eq(text, "id,lower,upper,size,offset\na,0,5,64,1\nb,4,9,1,2\n");
  free(text);
}

// --- writing -----------------------------------------------------------------

TEST(what_is_written_is_what_was_read) {
  const uint64_t offsets[] = {64, UINT64_MAX};
  const uint32_t arenas[] = {3, 0};
  assert_ok(read_text("\xef\xbb\xbf\n" FIRST "\n a ,0,3,4\r\nb,1,2,5"));
  assert_written(NULL, NULL, FIRST " a ,0,3,4\nb,1,2,5\n");
  assert_written(offsets, NULL,
                 "id,lower,upper,size,offset\n"
                 " a ,0,3,4,64\nb,1,2,5," MOST "\n");
  assert_written(offsets, arenas,
                 "id,lower,upper,size,offset,arena\n"
                 " a ,0,3,4,64,3\nb,1,2,5," MOST ",0\n");
  // A byte order mark stays nowhere: it would be one when it comes first.
  assert_ok(read_text("\xef\xbb\xbf\xef\xbb\xbf\n\xef\xbb\xbf" FIRST
                      "a,0,3,4\n\xef\xbb\xbf,1,2,5\n"));
  assert_written(NULL, NULL, FIRST "a,0,3,4\n\xef\xbb\xbf,1,2,5\n");
  // In the column that there is; others stay, those that are unknown too.
  assert_ok(
      read_text("note,id,offset,lower,,upper,size\r\n"
                "one,a, 64 ,0,,9,1\r\n\r\ntwo,b,,0,?,9,2\r\n"));
  assert_written(offsets, arenas,
                 "note,id,offset,lower,,upper,size,arena\n"
                 "one,a,64,0,,9,1,3\n"
                 "two,b," MOST ",0,?,9,2,0\n");
  assert_written(NULL, NULL,
                 "note,id,offset,lower,,upper,size\n"
                 "one,a, 64 ,0,,9,1\ntwo,b,,0,?,9,2\n");
  assert_ok(read_text(FIRST));
  assert_written(offsets, NULL, "id,lower,upper,size,offset\n");
}

TEST(what_was_written_can_be_read) {
  const tarn_plan_csv_options answers = {.struct_size = sizeof answers,
                                         .offsets_are_answers = true};
  assert_ok(read_text(FIRST "a,0,3,4\nb,1,2,5\n"));
  tarn_plan *plan = NULL;
  uint64_t height = 0;
  assert_ok(tarn_plan_solve(tarn_plan_table_problem(table), NULL, &plan));
  assert_ok(tarn_plan_table_write(table, tarn_plan_offsets(plan),
                                  tarn_plan_arenas(plan), path));
  tarn_plan_destroy(plan);
  tarn_plan_table_destroy(table);
  assert_ok(tarn_plan_table_read(path, &answers, &table));
  assert_ok(tarn_plan_verify(tarn_plan_table_problem(table),
                             tarn_plan_table_offsets(table),
                             tarn_plan_table_arenas(table), &height));
  ck_assert_uint_eq(height, 9);
}

// Large enough to be handed over in pieces.
TEST(many_lines_are_written) {
  enum { LINES = 20000 };
  uint64_t *offsets = calloc(LINES, sizeof *offsets);
  require(offsets != NULL);
  read_many(FIRST, ",0,1,1\n", LINES, true, TARN_OK);
  for (size_t i = 0; i < LINES; i++)
    offsets[i] = i;
  assert_ok(tarn_plan_table_write(table, offsets, NULL, path));
  tarn_plan_table_destroy(table);
  assert_ok(tarn_plan_table_read(path, NULL, &table));
  const tarn_plan_problem *problem = tarn_plan_table_problem(table);
  ck_assert_uint_eq(problem->count, LINES);
  for (size_t i = 0; i < LINES; i++)
    require(problem->buffers[i].offset == i);
  free(offsets);
}

TEST(the_standard_files_are_used) {
  int in = dup(STDIN_FILENO);
  int out = dup(STDOUT_FILENO);
  ck_assert_int_ge(in, 0);
  ck_assert_int_ge(out, 0);
  write_file(FIRST "a,0,3,4\n");
  ck_assert_ptr_nonnull(freopen(path, "r", stdin));
  assert_ok(tarn_plan_table_read("-", NULL, &table));
  ck_assert_uint_eq(tarn_plan_table_problem(table)->count, 1);
  // It is at its end: nothing comes any more.
  tarn_plan_table *none = NULL;
  assert_status(tarn_plan_table_read("-", NULL, &none), TARN_E_CORRUPT);
  assert_error_says("standard input:1:1: no line that names the columns");
  fflush(stdout);
  ck_assert_ptr_nonnull(freopen(path, "w", stdout));
  ck_assert_int_eq(write(STDOUT_FILENO, "# ", 2), 2);
  tarn_status status = tarn_plan_table_write(table, NULL, NULL, "-");
  ck_assert_int_eq(dup2(in, STDIN_FILENO), STDIN_FILENO);
  ck_assert_int_eq(dup2(out, STDOUT_FILENO), STDOUT_FILENO);
  close(in);
  close(out);
  assert_ok(status);
  char *text = read_file();
  ck_assert_str_eq(text, "# " FIRST "a,0,3,4\n");
  free(text);
}

TEST(files_can_be_refused) {
  tarn_plan_table *none = (tarn_plan_table *)&folder;
  char nowhere[128];
  snprintf(nowhere, sizeof nowhere, "%s/none/x.csv", folder);
  assert_status(tarn_plan_table_read(nowhere, NULL, &none), TARN_E_IO);
  assert_error_says(nowhere);
  ck_assert_ptr_null(none);
  assert_status(tarn_plan_table_read(folder, NULL, &none), TARN_E_IO);
  write_file(FIRST "a,0,3,4\n");
  assert_ok(tarn_plan_table_read(path, NULL, &table));
  assert_status(tarn_plan_table_write(table, NULL, NULL, nowhere), TARN_E_IO);
  assert_error_says(nowhere);
  assert_status(tarn_plan_table_write(table, NULL, NULL, "/dev/full"),
                TARN_E_IO);
  write_file(FIRST "a,x,3,4\n");
  assert_status(tarn_plan_table_read(path, NULL, &none), TARN_E_CORRUPT);
  assert_error_says(path);
  assert_error_says("made.csv:2:3: lower 'x'");
}

TEST(arguments_are_checked) {
  tarn_plan_table *none = NULL;
  assert_status(tarn_plan_table_read(path, NULL, NULL), TARN_E_INVALID);
  assert_status(tarn_plan_table_read(NULL, NULL, &none), TARN_E_INVALID);
  assert_status(tarn_plan_table_read_bytes("", 0, "x", NULL, NULL),
                TARN_E_INVALID);
  assert_status(tarn_plan_table_read_bytes("", 0, NULL, NULL, &none),
                TARN_E_INVALID);
  assert_status(tarn_plan_table_read_bytes(NULL, 1, "x", NULL, &none),
                TARN_E_INVALID);
  assert_ok(read_text(FIRST));
  assert_status(tarn_plan_table_write(NULL, NULL, NULL, path), TARN_E_INVALID);
  assert_status(tarn_plan_table_write(table, NULL, NULL, NULL), TARN_E_INVALID);
  tarn_plan_table_destroy(NULL);
}

int main(void) {
  faults_install();
  return run_tests();
}
