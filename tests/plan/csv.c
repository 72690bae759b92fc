// Tables of buffers: what is read of each form, and each thing that can be
// wrong with its line and column.
#include "csv_kit.h"

// --- what is read ------------------------------------------------------------

static void assert_buffer(const tarn_plan_problem *problem, size_t index,
                          const char *id, uint64_t first, uint64_t last,
                          uint64_t size) {
  ck_assert_uint_lt(index, problem->count);
  const tarn_plan_buffer *b = &problem->buffers[index];
  ck_assert_str_eq(tarn_plan_table_id(table, index), id);
  ck_assert_uint_eq(b->first, first);
  ck_assert_uint_eq(b->last, last);
  ck_assert_uint_eq(b->size, size);
}

TEST(the_least_that_is_needed) {
  const tarn_plan_problem *problem = read_good(FIRST "b1,0,3,4\nb2,3,9,4\n");
  ck_assert_uint_eq(problem->count, 2);
  ck_assert_uint_eq(problem->struct_size, sizeof *problem);
  ck_assert_uint_eq(problem->pair_count, 0);
  ck_assert_uint_eq(problem->arena_count, 0);
  assert_buffer(problem, 0, "b1", 0, 3, 4);
  assert_buffer(problem, 1, "b2", 3, 9, 4);
  ck_assert_uint_eq(problem->buffers[0].alignment, 1);
  ck_assert_uint_eq(problem->buffers[0].gap_count, 0);
  ck_assert_uint_eq(problem->buffers[0].flags, 0);
  ck_assert_str_eq(tarn_plan_table_id(table, 2), "");
  ck_assert_ptr_null(tarn_plan_table_offsets(table));
  ck_assert_ptr_null(tarn_plan_table_arenas(table));
  ck_assert_uint_eq(read_good(FIRST)->count, 0);
  ck_assert_uint_eq(read_good("id,lower,upper,size")->count, 0);
}

TEST(columns_are_understood) {
  assert_status(read_text("arena,gaps,size,in_place_of,upper,note,offset,lower,"
                          "alignment,id\n"
                          "2,3-5 7-8,64,,10,first,128,0,64,a\n"
                          ",,32, d\ta ,20,,,9,,b\n"
                          "0,,16,a,11,,0,9,0,c\n"
                          ",,16,,10,,,8,1,d\n"),
                TARN_OK);
  const tarn_plan_problem *problem = tarn_plan_table_problem(table);
  const tarn_plan_buffer *a = &problem->buffers[0];
  assert_buffer(problem, 0, "a", 0, 10, 64);
  ck_assert_uint_eq(a->flags, TARN_PLAN_FIXED | TARN_PLAN_IN_ARENA);
  ck_assert_uint_eq(a->offset, 128);
  ck_assert_uint_eq(a->arena, 2);
  ck_assert_uint_eq(a->alignment, 64);
  ck_assert_uint_eq(a->gap_count, 2);
  ck_assert_uint_eq(a->gaps[0].first, 3);
  ck_assert_uint_eq(a->gaps[0].last, 5);
  ck_assert_uint_eq(a->gaps[1].first, 7);
  ck_assert_uint_eq(a->gaps[1].last, 8);
  assert_buffer(problem, 1, "b", 9, 20, 32);
  ck_assert_uint_eq(problem->buffers[1].flags, 0);
  ck_assert_uint_eq(problem->buffers[2].flags,
                    TARN_PLAN_FIXED | TARN_PLAN_IN_ARENA);
  // Givers in the order of the lines, which may stand further down.
  ck_assert_uint_eq(problem->pair_count, 3);
  ck_assert_uint_eq(problem->pairs[0].giver, 3);
  ck_assert_uint_eq(problem->pairs[0].taker, 1);
  ck_assert_uint_eq(problem->pairs[1].giver, 0);
  ck_assert_uint_eq(problem->pairs[1].taker, 1);
  ck_assert_uint_eq(problem->pairs[2].giver, 0);
  ck_assert_uint_eq(problem->pairs[2].taker, 2);
}

// minimalloc's other names; "end" is the last step itself.
TEST(columns_have_other_names) {
  const tarn_plan_problem *problem =
      read_good("start,size,buffer,upper\n6,18,Big,12\n5,15,Little,10\n");
  assert_buffer(problem, 0, "Big", 6, 12, 18);
  assert_buffer(problem, 1, "Little", 5, 10, 15);
  problem = read_good(
      "begin,size,buffer_id,end,alignment,gaps\n"
      "6,18,1,11,2,7-8 \n5,15,0,9,1,6-6 8-8\n");
  assert_buffer(problem, 0, "1", 6, 12, 18);
  ck_assert_uint_eq(problem->buffers[0].gaps[0].first, 7);
  ck_assert_uint_eq(problem->buffers[0].gaps[0].last, 9);
  assert_buffer(problem, 1, "0", 5, 10, 15);
  ck_assert_uint_eq(problem->buffers[1].gap_count, 2);
  ck_assert_uint_eq(problem->buffers[1].gaps[1].last, 9);
  assert_buffer(read_good("ID, Lower ,UPPER,Size\nx,1,2,3\n"), 0, "x", 1, 2, 3);
}

TEST(lines_come_in_many_forms) {
  static const char *const texts[] = {
      FIRST "a b,0,3,4\nc,1,2,5\n",
      FIRST "a b,0,3,4\nc,1,2,5",
      "id,lower,upper,size\r\na b,0,3,4\r\nc,1,2,5\r\n",
      "id,lower,upper,size\r\na b,0,3,4\r\nc,1,2,5\r",
      "\xef\xbb\xbf" FIRST "a b,0,3,4\nc,1,2,5\n",
      "\n\xef\xbb\xbf" FIRST "a b,0,3,4\nc,1,2,5\n",
      "\n \n\t\r\n" FIRST "\n\na b,0,3,4\n   \nc,1,2,5\n\n\n",
      " id\t,lower , upper,size\n\ta b , 0,3 ,\t4\t\n  c,1,2,0005\n"};
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    const tarn_plan_problem *problem = read_good(texts[i]);
    ck_assert_uint_eq(problem->count, 2);
    assert_buffer(problem, 0, "a b", 0, 3, 4);
    assert_buffer(problem, 1, "c", 1, 2, 5);
  }
}

TEST(numbers_go_to_the_end) {
  const tarn_plan_problem *problem =
      read_good(FIRST "a,0," MOST ",9223372036854775807\n");
  assert_buffer(problem, 0, "a", 0, UINT64_MAX, INT64_MAX);
  assert_ok(read_text(ALL "a,0,9,1,,,9223372036854775806,,4294967294\n"));
  problem = tarn_plan_table_problem(table);
  ck_assert_uint_eq(problem->buffers[0].arena, UINT32_MAX - 1);
  ck_assert_uint_eq(problem->buffers[0].offset, INT64_MAX - 1);
}

TEST(offsets_can_be_answers) {
  const tarn_plan_csv_options options = {.struct_size = sizeof options,
                                         .offsets_are_answers = true};
  static const char whole[] = ALL "a,0,9,1,4,," MOST ",,1\nb,0,9,1,,,3,,0\n";
  static const char part[] = ALL "a,0,9,1,4,,5,,\nb,0,9,1,,,,,0\n";
  assert_ok(read_bytes(whole, sizeof whole - 1, &options));
  const tarn_plan_problem *problem = tarn_plan_table_problem(table);
  const uint64_t *offsets = tarn_plan_table_offsets(table);
  const uint32_t *arenas = tarn_plan_table_arenas(table);
  ck_assert_uint_eq(problem->buffers[0].flags, 0);
  ck_assert_ptr_nonnull(offsets);
  ck_assert_ptr_nonnull(arenas);
  ck_assert_uint_eq(offsets[0], UINT64_MAX);
  ck_assert_uint_eq(offsets[1], 3);
  ck_assert_uint_eq(arenas[0], 1);
  ck_assert_uint_eq(arenas[1], 0);
  assert_ok(read_bytes(part, sizeof part - 1, &options));
  ck_assert_ptr_null(tarn_plan_table_offsets(table));
  ck_assert_ptr_null(tarn_plan_table_arenas(table));
  assert_ok(read_bytes(FIRST "a,0,9,1\n", sizeof FIRST + 7, &options));
  ck_assert_ptr_null(tarn_plan_table_offsets(table));
}

TEST(all_are_aligned_at_least) {
  static const char text[] = ALL
      "a,0,9,1,,,,,\nb,0,9,1,8,,,,\nc,0,9,1,128,,,,\n"
      "d,0,9,1,48,,,,\n";
  static const char far[] = ALL "a,0,9,1," MOST ",,,,\n";
  static const char odd[] = ALL "a,0,9,1,,,32,,\n";
  tarn_plan_csv_options options = {.struct_size = sizeof options,
                                   .alignment = 64};
  assert_ok(read_bytes(text, sizeof text - 1, &options));
  const tarn_plan_buffer *buffers = tarn_plan_table_problem(table)->buffers;
  static const uint64_t expected[] = {64, 64, 128, 192};
  for (size_t i = 0; i < 4; i++)
    ck_assert_uint_eq(buffers[i].alignment, expected[i]);
  assert_status(read_bytes(far, sizeof far - 1, &options), TARN_E_CORRUPT);
  assert_error_says("made:2:9: alignment " MOST
                    ": its least common multiple with 64 is 2^64 or more");
  assert_status(read_bytes(odd, sizeof odd - 1, &options), TARN_E_CORRUPT);
  assert_error_says(
      "made:2:11: buffer 0: the fixed offset 32 is not a multiple of its "
      "alignment 64");
  options.struct_size = 1;
  assert_status(read_bytes(text, sizeof text - 1, &options), TARN_E_INVALID);
}

// --- what is wrong -----------------------------------------------------------

TEST(a_first_line_is_needed) {
  static const char none[] =
      "made:1:1: no line that names the columns, as id,lower,upper,size";
  assert_refused("", none);
  assert_refused("\n\n", none);
  assert_refused("\xef\xbb\xbf", none);
  assert_refused("b1,0,3,4\n",
                 "made:1:1: no column 'id'; the first line names the columns, "
                 "of which id,lower,upper,size are needed");
  assert_refused("\nid,lower,size\n",
                 "made:2:1: no column 'upper'; the first line names the "
                 "columns, of which id,lower,upper,size are needed");
  assert_refused("id,lower,upper,size,id\n",
                 "made:1:21: column 'id' repeats column 1");
  assert_refused("id,lower,upper,size, begin\n",
                 "made:1:22: column 'begin' repeats column 2");
  assert_refused("\"id\",lower,upper,size\n",
                 "made:1:1: a quote: fields stand without quotes");
}

TEST(fields_are_counted) {
  assert_refused(FIRST "a,0,1,2\nb,0,1\n",
                 "made:3:1: 3 fields, where 4 columns are named");
  assert_refused(FIRST "a,0,1,2,\n",
                 "made:2:1: 5 fields, where 4 columns are named");
  assert_refused(FIRST "a\n", "made:2:1: 1 fields, where 4 columns are named");
}

TEST(numbers_are_checked) {
  static const char *const wrong[] = {"-1",
                                      "+1",
                                      "1.5",
                                      "1e3",
                                      "0x10",
                                      "many",
                                      "1 2",
                                      "18446744073709551616",
                                      "99999999999999999999999999"};
  char text[128];
  char what[192];
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    snprintf(text, sizeof text, FIRST "a,0,1,1\nb, %s,9,1\n", wrong[i]);
    snprintf(what, sizeof what,
             "made:3:4: lower '%s' is not a whole number from 0 to 2^64 - 1",
             wrong[i]);
    assert_refused(text, what);
  }
  assert_refused(
      FIRST "a,0,x,1\n",
      "made:2:5: upper 'x' is not a whole number from 0 to 2^64 - 1");
  assert_refused(FIRST "a,0,1,y\n",
                 "made:2:7: size 'y' is not a whole number from 0 to 2^64 - 1");
  assert_refused(FIRST "a,0,1, \n", "made:2:8: size is empty");
  assert_refused(FIRST "a,,1,1\n", "made:2:3: lower is empty");
  assert_refused(ALL "a,0,9,1,z,,,,\n",
                 "made:2:9: alignment 'z' is not a whole number from 0 to 2^64 "
                 "- 1");
  assert_refused(ALL "a,0,9,1,,,z,,\n",
                 "made:2:11: offset 'z' is not a whole number from 0 to 2^64 - "
                 "1");
  assert_refused(ALL "a,0,9,1,,,,,z\n",
                 "made:2:13: arena 'z' is not a whole number from 0 to 2^64 - "
                 "1");
  assert_refused(ALL "a,0,9,1,,,,,4294967295\n",
                 "made:2:13: arena 4294967295 is beyond 2^32 - 2");
  assert_refused("id,lower,end,size\na,0," MOST ",1\n",
                 "made:2:5: upper '" MOST "' has no time step after it");
}

TEST(answers_are_numbers) {
  const tarn_plan_csv_options options = {.struct_size = sizeof options,
                                         .offsets_are_answers = true};
  static const char offset[] = ALL "a,0,9,1,,,z,,\n";
  static const char arena[] = ALL "a,0,9,1,,,,,z\n";
  assert_status(read_bytes(offset, sizeof offset - 1, &options),
                TARN_E_CORRUPT);
  assert_error_says("made:2:11: offset 'z' is not a whole number");
  assert_status(read_bytes(arena, sizeof arena - 1, &options), TARN_E_CORRUPT);
  assert_error_says("made:2:13: arena 'z' is not a whole number");
}

TEST(ids_are_there_once) {
  assert_refused(FIRST ",0,1,1\n", "made:2:1: id is empty");
  assert_refused("lower,id,upper,size\n0,b1,1,1\n\n0,b2,1,1\n0, b1,1,1\n",
                 "made:5:4: id 'b1' is that of line 2");
  char text[4096] = FIRST;
  for (int i = 0; i < 100; i++) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "b%d,0,1,1\n", i < 99 ? i : 57);
  }
  assert_refused(text, "made:101:1: id 'b57' is that of line 59");
}

TEST(gaps_are_checked) {
  static const char order[] =
      ", is empty, or does not lie in order within [0, 9) with steps on both "
      "sides";
  static const char *const wrong[] = {
      "0-2",     "gap 0, [0, 2)", "7-9",     "gap 0, [7, 9)",
      "5-5",     "gap 0, [5, 5)", "5-4",     "gap 0, [5, 4)",
      "3-5 5-6", "gap 1, [5, 6)", "5-6 3-4", "gap 1, [3, 4)"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i += 2) {
    char text[128];
    char what[256];
    snprintf(text, sizeof text, ALL "a,0,9,1,,%s,,,\n", wrong[i]);
    snprintf(what, sizeof what, "made:2:10: buffer 0: %s%s", wrong[i + 1],
             order);
    assert_refused(text, what);
  }
  assert_refused(ALL "a,0,9,1,,1-2 7,,,\n",
                 "made:2:14: gap '7' is not of the form 3-5");
  assert_refused(ALL "a,0,9,1,,1-2-3,,,\n",
                 "made:2:12: gap's step '2-3' is not a whole number from 0 to "
                 "2^64 - 1");
  assert_refused(ALL "a,0,9,1,,A-2,,,\n",
                 "made:2:10: gap's step 'A' is not a whole number from 0 to "
                 "2^64 - 1");
  assert_refused(ALL "a,0,9,1,,1-,,,\n", "made:2:12: gap's step is empty");
  assert_status(read_text(ALL "a,0,9,1,,1-2 4-5@0:16,,,\n"),
                TARN_E_UNSUPPORTED);
  assert_error_says(
      "made:2:14: gap '4-5@0:16' has a window, which Tarn does not support");
}

TEST(buffers_are_checked) {
  assert_refused(FIRST "a,0,1,0\n", "made:2:7: buffer 0: its size is 0");
  assert_refused(FIRST "a,0,1,1\nb,5,5,1\n",
                 "made:3:3: buffer 1: needed in no time step of [5, 5)");
  assert_refused("id,lower,end,size\na,5,3,1\n",
                 "made:2:3: buffer 0: needed in no time step of [5, 4)");
  assert_refused(FIRST "a,0,1,9223372036854775807\nb,3,4,1\n",
                 "made:3:7: buffer 1: the sum of sizes, alignments and fixed "
                 "offsets up to it is 2^63 or more");
  assert_refused(FIRST "a,0,1," MOST "\n",
                 "made:2:7: buffer 0: the sum of sizes, alignments and fixed "
                 "offsets up to it is 2^63 or more");
  assert_refused(ALL "a,0,1,1,,," MOST ",,\n",
                 "made:2:7: buffer 0: the sum of sizes, alignments and fixed "
                 "offsets up to it is 2^63 or more");
  assert_refused(
      ALL "a,0,1,1,8,,12,,\n",
      "made:2:12: buffer 0: the fixed offset 12 is not a multiple of "
      "its alignment 8");
}

TEST(pairs_are_checked) {
  assert_refused(ALL "a,0,5,1,,,,,\nb,4,9,1,,,,a  c,\n",
                 "made:3:15: in_place_of 'c', which is not the id of any line");
  assert_refused(
      ALL "\na,0,5,1,,,,,\nb,3,9,1,,,,a,\n",
      "made:4:12: pair 0: the last time step of buffer 0, 4, is not the "
      "first of buffer 1, 3");
  assert_refused(
      ALL "\na,4,5,1,,,,,\nb,4,9,1,,,,a,\n",
      "made:4:12: pair 0: buffer 0 has no time step of its own before "
      "4, in which it gives its place");
  assert_refused(
      ALL "a,0,5,1,,,,a,\n",
      "made:2:12: pair 0: the last time step of buffer 0, 4, is not the "
      "first of buffer 0, 0");
}

TEST(what_is_no_text_is_refused) {
  static const char zero[] = FIRST "a,0,1,1\nb\0,0,1,1\n";
  assert_status(read_bytes(zero, sizeof zero - 1, NULL), TARN_E_CORRUPT);
  assert_error_says("made:3:2: byte 0x00 is no text");
  assert_refused(FIRST "a,0,1,1\x1b[2J\n", "made:2:8: byte 0x1b is no text");
  assert_refused("\x7f\x45\x4c\x46\x02\x01\x01\n",
                 "made:1:5: byte 0x02 is no text");
  assert_refused(FIRST "a\r,0,1,1\n", "made:2:2: byte 0x0d is no text");
  assert_refused(FIRST "\"a\",0,1,1\n",
                 "made:2:1: a quote: fields stand without quotes");
  assert_refused(FIRST "a,0,\"1\",1\n",
                 "made:2:5: a quote: fields stand without quotes");
}

TEST(long_fields_are_cut) {
  char text[1024] = FIRST;
  memset(text + strlen(text), 'x', 600);
  size_t used = strlen(text);
  snprintf(text + used, sizeof text - used, ",y,1,1\n");
  assert_status(read_text(text), TARN_E_CORRUPT);
  assert_error_says("made:2:602: lower 'y' is no");
  snprintf(text, sizeof text, FIRST "a,%0300d,9,1\nb,%s%0300d,1,1\n", 7, "z",
           1);
  assert_status(read_text(text), TARN_E_CORRUPT);
  assert_error_says(
      "made:3:3: lower 'z00000000000000000000000000000000000000000000000' is");
}

// Any cut and any other byte is read or refused, with a place.
TEST(damage_is_survived) {
  static const char text[] =
      ALL "a,0,5,64,16,1-2 3-4,128,,0\nb,4,9,1,,,,a c,\r\nc,3,5,7,2,,,,\n";
  size_t size = sizeof text - 1;
  for (size_t i = 0; i <= size; i++) {
    tarn_status status = read_bytes(text, i, NULL);
    require(status == TARN_OK || status == TARN_E_CORRUPT);
  }
  for (size_t i = 0; i < size; i++) {
    for (int byte = 0; byte < 256; byte++) {
      char damaged[sizeof text];
      memcpy(damaged, text, sizeof text);
      damaged[i] = (char)byte;
      tarn_status status = read_bytes(damaged, size, NULL);
      if (status == TARN_OK) continue;
      require(status == TARN_E_CORRUPT || status == TARN_E_UNSUPPORTED);
      require(strncmp(tarn_last_error(), "made:", 5) == 0);
      require(tarn_last_error()[5] >= '1' && tarn_last_error()[5] <= '9');
    }
  }
  assert_ok(read_bytes(text, size, NULL));
}
