// `tarn plan` of tables: what it answers, in which form, and what it writes.
#include <fcntl.h>
#include <unistd.h>

#include "plan_kit.h"

static const char all_keys[] =
    "file,buffers,height,lower_bound,status,seconds,nodes,capacity,cancelled,"
    "verified,wrong,moved,arenas,conflict,conflict_minimal,conflict_bytes,"
    "conflict_step,excess_bytes,excess_step,out,svg,must_move";

// --- how low ---------------------------------------------------------------

FIXTURE(tool_files_begin, tool_files_end);

TEST(the_answer_comes_first) {
  const char *path = plan_file("three.csv", THREE);
  tool_output o = tool_did("plan", path);
  const char *first = "5.00 KiB (5120 bytes) are enough. No plan is lower.\n";
  ck_assert_int_eq(strncmp(o.out, first, strlen(first)), 0);
  assert_contains(o.out, "three.csv, 3 buffers\n");
  assert_contains(o.out, "lower bound  5.00 KiB (5120 bytes)\n");
  assert_contains(o.out, "1.0000, optimal\n");
  assert_contains(o.out, "not written: --out FILE.csv says where to\n");
}

TEST(json_is_one_line_of_known_keys) {
  const char *path = plan_file("three.csv", THREE);
  tool_output o = tool_did("plan", path, "-o", "json");
  assert_json_line(o.out);
  assert_keys(o.out, "", all_keys);
  ck_assert_double_eq(json_number(o.out, "buffers"), 3);
  ck_assert_double_eq(json_number(o.out, "height"), 5120);
  ck_assert_double_eq(json_number(o.out, "lower_bound"), 5120);
  ck_assert_double_ge(json_number(o.out, "seconds"), 0);
  ck_assert_double_ge(json_number(o.out, "nodes"), 0);
  ck_assert(json_is(o.out, "status", "\"optimal\""));
  ck_assert(json_is(o.out, "verified", "null"));
  ck_assert(json_is(o.out, "cancelled", "false"));
  ck_assert(json_is(o.out, "capacity", "null"));
  ck_assert(json_is(o.out, "moved", "null"));
  ck_assert_uint_eq(json_size(o.out, "conflict"), 0);
  ck_assert_double_eq(json_number(o.out, "arenas.0.height"), 5120);
}

TEST(nothing_to_plan) {
  const char *path = plan_file("none.csv", "id,lower,upper,size\n");
  const char *out = tool_file("out.csv");
  const char *svg = tool_file("out.svg");
  tool_output o = tool_did("plan", path, "--out", out, "--svg", svg);
  assert_contains(o.out, "There are no buffers: 0 bytes are enough.\n");
  char *text = tool_read_file(out);
  ck_assert_str_eq(text, "id,lower,upper,size,offset\n");
}

TEST(the_standard_input_is_a_table) {
  const char *path = plan_file("three.csv", THREE);
  int in = open(path, O_RDONLY);
  ck_assert_int_eq(dup2(in, STDIN_FILENO), STDIN_FILENO);
  tool_output o = tool_done("plan - -o json");
  ck_assert_double_eq(json_number(o.out, "height"), 5120);
  ck_assert(json_is(o.out, "file", "\"-\""));
  close(in);
}

// Whatever it is called.
TEST(content_tells_a_table) {
  const char *path = plan_file("table", "\n" THREE);
  tool_output o = tool_did("plan", path);
  assert_contains(o.out, "(5120 bytes) are enough");
}

TEST(workloads_are_planned) {
  tool_output o = tool_done("plan @bert-layer --verify -o json");
  ck_assert(json_is(o.out, "status", "\"optimal\""));
  ck_assert(json_is(o.out, "verified", "true"));
}

// --- where it is written ---------------------------------------------------

TEST(the_plan_is_written_and_is_one) {
  const char *path = plan_random_file("random.csv", 60, 1);
  const char *out = tool_file("out.csv");
  tool_output o = tool_did("plan", path, "--out", out, "--verify", "-o", "json",
                           "--nodes", "2000");
  ck_assert(json_is(o.out, "verified", "true"));
  ck_assert_double_eq((double)assert_plan(out), json_number(o.out, "height"));
}

TEST(columns_stay_as_they_were) {
  const char *path =
      plan_file("named.csv", "size,id,colour,upper,lower\n8,x,red,2,0\n");
  const char *out = tool_file("out.csv");
  tool_output o = tool_did("plan", path, "--out", out);
  assert_contains(o.out, out);
  char *text = tool_read_file(out);
  ck_assert_str_eq(text, "size,id,colour,upper,lower,offset\n8,x,red,2,0,0\n");
}

TEST(a_plan_on_stdout_stands_there_alone) {
  const char *path = plan_file("three.csv", THREE);
  tool_output o = tool_ends(0, "plan", path, "--out", "-");
  ck_assert_int_eq(
      strncmp(o.out, "id,lower,upper,size,offset\na,0,3,1024,", 38), 0);
  assert_contains(o.err, "5.00 KiB (5120 bytes) are enough");
  ck_assert_ptr_null(strstr(o.out, "enough"));
}

// --- within a capacity -----------------------------------------------------

TEST(it_fits) {
  const char *path = plan_file("three.csv", THREE);
  tool_output o = tool_did("plan", path, "--capacity", "5K");
  assert_contains(o.out, "It fits: 5.00 KiB (5120 bytes) of 5.00 KiB.");
  assert_contains(o.out, "capacity     5.00 KiB (5120 bytes)\n");
}

TEST(it_does_not_fit) {
  static const char before[] = "id,lower,upper,size,offset\na,0,3,8,0\n";
  const char *path = plan_file("three.csv", THREE);
  const char *out = plan_file("out.csv", before);
  const char *svg = tool_file("out.svg");
  tool_output o = tool_ends(1, "plan", path, "--capacity", "5119", "--out", out,
                            "--svg", svg, "--verify");
  ck_assert_int_eq(
      strncmp(o.out, "1 B too much in step 1; moving this one suffices.\n", 50),
      0);
  assert_contains(o.out, "\nb       4,096   1..5");
  assert_contains(o.out,
                  "\nMoved elsewhere, it takes 4.00 KiB; a plan of all others "
                  "needs 1.00 KiB of 4.99 KiB.\n");
  assert_contains(o.out,
                  "5.00 KiB are needed at once; the capacity is 4.99 KiB: that "
                  "is proved.\n");
  assert_contains(o.out, "These 2 buffers cannot lie together:\n");
  assert_contains(o.out,
                  "They need 5.00 KiB together in step 1; the capacity is 4.99 "
                  "KiB.\n");
  assert_contains(o.out,
                  "Without any one of them the rest of these would fit;");
  char *text = tool_read_file(out);
  ck_assert_str_eq(text, before);
  text = tool_read_file(svg);
  ck_assert_ptr_nonnull(text);
  assert_contains(o.out, svg);
}

// Sizes that differ are written so that they do.
TEST(figures_are_told_apart) {
  const char *path = plan_file("close.csv",
                               "id,lower,upper,size\n"
                               "a,0,3,6442450945\nb,3,5,4096\n");
  tool_output o = tool_ends(1, "plan", path, "--capacity", "6G");
  assert_contains(o.out, "1 B too much in step 0; moving this one suffices.");
  assert_contains(o.out,
                  "It needs 6442450945 bytes; the capacity is "
                  "6442450944 bytes.\n");
}

// Each step has room, but they cannot be arranged: a and d stand at their ends.
TEST(what_cannot_be_arranged_is_drawn) {
  const char *path = plan_file("packing.csv",
                               "id,lower,upper,size,offset\n"
                               "a,0,2,4,0\nb,1,4,4,\nc,3,6,4,4\nd,1,2,2,4\n"
                               "e,3,4,2,2\n");
  const char *svg = tool_file("out.svg");
  tool_output o = tool_ends(1, "plan", path, "--capacity", "10", "--svg", svg);
  assert_contains(o.out, "; moving ");
  char *text = tool_read_file(svg);
  ck_assert_ptr_nonnull(text);
  assert_contains(text, "class=\"over m\"");
}

TEST(arenas_that_are_too_small_are_drawn_as_one) {
  const char *path = plan_file("arenas.csv",
                               "id,lower,upper,size,arena\n"
                               "a,0,3,1024,1\nb,0,5,4096,\n");
  const char *svg = tool_file("out.svg");
  tool_output o = tool_ends(1, "plan", path, "--arena", "1K", "--arena", "2K",
                            "--svg", svg);
  assert_contains(o.out, "2.00 KiB too much in step 0; moving ");
  char *text = tool_read_file(svg);
  ck_assert_ptr_nonnull(text);
  assert_contains(text, "It does not fit into 3.00 KiB: 2.00 KiB too much");
}

TEST(json_names_what_does_not_fit) {
  const char *path = plan_file("three.csv", THREE);
  tool_output o =
      tool_ends(1, "plan", path, "--capacity", "5119", "-o", "json");
  ck_assert(json_is(o.out, "status", "\"infeasible\""));
  ck_assert(json_is(o.out, "height", "null"));
  ck_assert_double_eq(json_number(o.out, "capacity"), 5119);
  ck_assert_uint_eq(json_size(o.out, "conflict"), 2);
  ck_assert(json_is(o.out, "conflict_minimal", "true"));
  ck_assert_double_eq(json_number(o.out, "conflict_bytes"), 5120);
  ck_assert_double_eq(json_number(o.out, "excess_bytes"), 1);
  ck_assert_double_eq(json_number(o.out, "excess_step"), 1);
  ck_assert_uint_eq(json_size(o.out, "must_move"), 1);
  ck_assert(json_is(o.out, "must_move.0.id", "\"b\""));
  ck_assert_double_eq(json_number(o.out, "must_move.0.bytes"), 4096);
  ck_assert(json_is(o.out, "conflict.0", "\"a\"") ||
            json_is(o.out, "conflict.0", "\"b\""));
}

TEST(one_buffer_alone_is_too_large) {
  const char *path = plan_file("three.csv", THREE);
  tool_output o = tool_ends(1, "plan", path, "--capacity", "2K");
  assert_contains(o.out, "This buffer alone does not fit:");
  assert_contains(o.out, "\nb       4,096   1..5");
  assert_contains(o.out, "3.00 KiB too much in step 1; moving this one ");
  assert_contains(o.out, "It needs 4.00 KiB; the capacity is 2.00 KiB.\n");
}

// --- options ---------------------------------------------------------------

TEST_LOOP(minimise_goes_on_below_the_capacity, 2) {
  static const char *const words[] = {"--minimise", "--minimize"};
  const char *path = plan_file("three.csv", THREE);
  tool_output o =
      tool_did("plan", path, "--capacity", "1M", words[_i], "-o", "json");
  ck_assert(json_is(o.out, "status", "\"optimal\""));
  ck_assert_double_eq(json_number(o.out, "height"), 5120);
}

TEST(offsets_are_aligned) {
  const char *path =
      plan_file("odd.csv", "id,lower,upper,size\na,0,2,100\nb,0,2,100\n");
  tool_output o = tool_ends(0, "plan", path, "--align", "1K", "--out", "-");
  assert_contains(o.out, ",0\n");
  assert_contains(o.out, ",1024\n");
  assert_contains(o.err, "1.09 KiB (1124 bytes) are enough");
}

// No clock takes part: the same nodes, the same plan.
TEST_LOOP(node_limits_make_equal_plans, 2) {
  static const char *const threads[] = {"1", "2"};
  const char *path = plan_random_file("random.csv", 80, 64);
  tool_output one = tool_run("plan", path, "--nodes", "500", "--time-limit",
                             "none", "--threads", threads[_i], "--out", "-");
  tool_output two = tool_run("plan", path, "--nodes", "500", "--time-limit",
                             "none", "--threads", threads[_i], "--out", "-");
  ck_assert_int_eq(one.status, 0);
  ck_assert_str_eq(one.out, two.out);
}

TEST(time_limits_end_the_search) {
  const char *path = plan_random_file("random.csv", 120, 64);
  tool_output o = tool_did("plan", path, "--time-limit", "0.2", "-o", "json");
  ck_assert(json_is(o.out, "status", "\"feasible\""));
  ck_assert_double_ge(json_number(o.out, "seconds"), 0.1);
  ck_assert_double_gt(json_number(o.out, "height"),
                      json_number(o.out, "lower_bound"));
}

// There is enough of all arenas together, which helps no buffer. That
// nothing is found to be moved is not for want of time.
TEST(larger_than_each_arena) {
  const char *path = plan_file("one.csv", "id,lower,upper,size\na,0,3,1500\n");
  tool_output o = tool_ends(1, "plan", path, "--arena", "1K", "--arena", "1K");
  assert_contains(o.out,
                  "(1500 bytes) in one piece; the largest arena for it "
                  "has 1.00 KiB (1024 bytes).");
  assert_contains(o.out, "Nothing was found that could lie elsewhere ");
}

TEST(how_far_from_the_best) {
  const char *path = plan_random_file("random.csv", 120, 64);
  tool_output o = tool_did("plan", path, "--time-limit", "0.2");
  assert_contains(o.out, " are enough. No plan is below ");
  assert_contains(o.out, "% above. The search ended after 0.");
  assert_contains(o.out, ", feasible\n");
}

// --- previous plans --------------------------------------------------------

#define OLD_PLAN                 \
  "id,lower,upper,size,offset\n" \
  "c,3,6,1024,512\n"             \
  "b,1,5,4096,2048\n"            \
  "a,0,3,1024,0\n"

TEST(what_has_shrunk_stays) {
  const char *old = plan_file("old.csv", OLD_PLAN);
  const char *path = plan_file("three.csv", THREE);
  tool_output o = tool_ends(0, "plan", path, "--previous", old, "--out", "-");
  assert_contains(o.out, "a,0,3,1024,0\nb,1,5,4096,2048\nc,3,6,1024,512\n");
  assert_contains(o.err, "moved        0 of 3 buffers");
}

TEST(json_counts_what_moved) {
  const char *old = plan_file("old.csv", OLD_PLAN);
  const char *path = plan_file("three.csv", THREE);
  tool_output o = tool_did("plan", path, "--previous", old, "-o", "json");
  ck_assert_double_eq(json_number(o.out, "moved"), 0);
}

// Ids that the plan has not are new.
TEST(new_ones_find_their_place) {
  const char *path = plan_file("three.csv", THREE);
  const char *fewer =
      plan_file("fewer.csv", "id,lower,upper,size,offset\na,0,3,1024,4096\n");
  tool_output o = tool_ends(0, "plan", path, "--previous", fewer, "--out", "-");
  assert_contains(o.out, "a,0,3,1024,4096\n");
  assert_contains(o.err, "moved        0 of 3 buffers");
}

TEST(wrong_previous_plans) {
  const char *path = plan_file("three.csv", THREE);
  const char *fewer =
      plan_file("other.csv", "id,lower,upper,size,offset\nx,0,3,1024,0\n");
  assert_ended(tool_run("plan", path, "--previous", fewer), 1,
               "other.csv: it has no buffer of ");
  assert_ended(tool_run("plan", path, "--previous", path), 1,
               "three.csv: it is no plan: not all of its lines");
  assert_ended(tool_run("plan", path, "--previous", "/nowhere/old.csv"), 1,
               "/nowhere/old.csv");
}

// --- several arenas --------------------------------------------------------

TEST(arenas_fill_in_order) {
  const char *path = plan_file("three.csv", THREE);
  const char *out = tool_file("out.csv");
  tool_output o = tool_did("plan", path, "--arena", "1K", "--arena", "any",
                           "--out", out, "--verify", "-o", "json");
  ck_assert_uint_eq(json_size(o.out, "arenas"), 2);
  ck_assert_double_eq(json_number(o.out, "arenas.0.capacity"), 1024);
  ck_assert_double_eq(json_number(o.out, "arenas.0.height"), 1024);
  ck_assert_double_eq(json_number(o.out, "arenas.0.buffers"), 2);
  ck_assert(json_is(o.out, "arenas.1.capacity", "null"));
  ck_assert_double_eq(json_number(o.out, "arenas.1.height"), 4096);
  ck_assert(json_is(o.out, "verified", "true"));
  o = tool_did("plan", "--check", out);
  assert_contains(o.out, "All have a place: 5.00 KiB (5120 bytes) in 2 arenas");
  assert_contains(o.out, "arena 0      1.00 KiB (1024 bytes), 2 buffers\n");
  assert_contains(o.out, "arena 1      4.00 KiB (4096 bytes), 1 buffer\n");
}

// --- plans that are there --------------------------------------------------

TEST(a_plan_is_checked) {
  const char *path = plan_file("old.csv", OLD_PLAN);
  tool_output o = tool_did("plan", "--check", path);
  assert_contains(o.out,
                  "6.00 KiB (6144 bytes) are enough. No plan is below "
                  "5.00 KiB; this one is 20.00% above.\n");
  assert_contains(o.out, "verified     yes");
  ck_assert_ptr_null(strstr(o.out, "nodes"));
  o = tool_did("plan", "--check", path, "-o", "json");
  ck_assert(json_is(o.out, "status", "\"feasible\""));
  ck_assert(json_is(o.out, "verified", "true"));
  ck_assert_double_eq(json_number(o.out, "height"), 6144);
}

TEST(a_wrong_plan_is_told) {
  const char *path = plan_file("wrong.csv",
                               "id,lower,upper,size,offset\n"
                               "a,0,3,1024,0\nb,1,5,4096,1023\n");
  const char *svg = tool_file("out.svg");
  tool_output o = tool_ends(1, "plan", "--check", path);
  assert_contains(o.out, "The offsets are no plan: ");
  ck_assert_ptr_null(strstr(o.out, "height"));
  o = tool_ends(1, "plan", "--check", path, "--svg", svg, "-o", "json");
  assert_contains(o.err, "out.svg: not drawn: the offsets are no plan\n");
  ck_assert(json_is(o.out, "status", "\"wrong\""));
  ck_assert(json_is(o.out, "verified", "false"));
  ck_assert(json_is(o.out, "height", "null"));
  ck_assert_ptr_nonnull(json_at(o.out, "wrong"));
}

TEST(a_plan_beyond_the_capacity) {
  const char *path = plan_file("old.csv", OLD_PLAN);
  tool_output o = tool_ends(1, "plan", "--check", path, "--capacity", "6143");
  assert_contains(o.out, "The offsets are no plan: ");
}

TEST(there_is_nothing_to_check) {
  const char *path = plan_file("three.csv", THREE);
  tool_output o = tool_ends(1, "plan", "--check", path);
  ck_assert_str_eq(o.out, "");
  assert_contains(o.err,
                  "nothing to check: not all of its lines have an "
                  "offset");
}

// Offsets in a file that is to be solved are demands.
TEST(fixed_offsets_are_kept) {
  const char *path = plan_file("fixed.csv",
                               "id,lower,upper,size,offset\n"
                               "a,0,3,1024,7168\nb,1,5,4096,\n");
  tool_output o = tool_ends(0, "plan", path, "--out", "-");
  assert_contains(o.out, "a,0,3,1024,7168\n");
  assert_contains(o.err, "8.00 KiB (8192 bytes) are enough. No plan is lower.");
}
