// `tarn plan --svg`: well-formed, complete, small, and proof against names.
#include <ctype.h>

#include "plan_kit.h"

enum { DEPTH = 16, NAME = 32 };

// ---------------------------------------------------------------------------
// A strict enough reader of XML: elements close in order, no stray '<' or '&'
// ---------------------------------------------------------------------------

typedef struct reader {
  const char *at;
  char open[DEPTH][NAME];
  int depth;
} reader;

static const char *read_name(reader *r, char *out) {
  int length = 0;
  while (isalnum((unsigned char)*r->at) && length < NAME - 1)
    out[length++] = *r->at++;
  out[length] = '\0';
  ck_assert_int_gt(length, 0);
  return out;
}

static void read_entity(reader *r) {
  static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;",
                                      "&#39;"};
  for (int i = 0; i < 5; i++) {
    if (strncmp(r->at, known[i], strlen(known[i])) == 0) {
      r->at += strlen(known[i]);
      return;
    }
  }
  ck_abort_msg("a stray '&' at %.20s", r->at);
}

static void read_attribute(reader *r) {
  while (isalnum((unsigned char)*r->at) || *r->at == '-')
    r->at++;
  ck_assert_int_eq(strncmp(r->at, "=\"", 2), 0);
  for (r->at += 2; *r->at != '"';) {
    require(*r->at != '\0' && *r->at != '<');
    if (*r->at == '&')
      read_entity(r);
    else
      r->at++;
  }
  r->at++;
}

static void read_closing(reader *r) {
  char name[NAME];
  r->at += 2;
  read_name(r, name);
  ck_assert_int_gt(r->depth, 0);
  ck_assert_str_eq(name, r->open[--r->depth]);
  require(*r->at++ == '>');
}

static void read_tag(reader *r) {
  char name[NAME];
  if (r->at[1] == '/') {
    read_closing(r);
    return;
  }
  r->at++;
  read_name(r, name);
  while (*r->at == ' ') {
    r->at++;
    read_attribute(r);
  }
  if (strncmp(r->at, "/>", 2) == 0) {
    r->at += 2;
    return;
  }
  require(*r->at++ == '>');
  require(r->depth < DEPTH);
  snprintf(r->open[r->depth++], NAME, "%s", name);
}

static void assert_well_formed(const char *text) {
  reader r = {.at = text};
  read_tag(&r);
  while (r.depth > 0) {
    require(*r.at != '\0');
    require((unsigned char)*r.at >= 0x20 || *r.at == '\n');
    if (*r.at == '<')
      read_tag(&r);
    else if (*r.at == '&')
      read_entity(&r);
    else
      r.at++;
  }
  ck_assert_str_eq(r.at, "\n");
}

static size_t count(const char *text, const char *part) {
  size_t found = 0;
  for (const char *at = strstr(text, part); at; at = strstr(at + 1, part))
    found++;
  return found;
}

// ---------------------------------------------------------------------------
// Pictures
// ---------------------------------------------------------------------------

// What --svg makes of a table, with more options.
#define draw(table, ...) \
  draw_list(table, (const char *const[]){__VA_ARGS__, NULL})

static char *draw_list(const char *table, const char *const *more) {
  const char *svg = tool_file("out.svg");
  const char *argv[16] = {"tarn", "plan", table, "--svg", svg};
  int count = 5;
  while (*more != NULL)
    argv[count++] = *more++;
  tool_output o = tool_as_done(tool_run_list(-1, argv));
  assert_contains(o.out, svg);
  char *text = tool_read_file(svg);
  ck_assert_ptr_nonnull(text);
  assert_well_formed(text);
  return text;
}

FIXTURE(tool_files_begin, tool_files_end);

TEST(each_buffer_is_a_box) {
  char *svg = draw(plan_file("three.csv", THREE), "--capacity", "6K");
  assert_contains(svg, "<title>a\n1.00 KiB (1024 bytes)\nsteps 0 to 3\nat ");
  assert_contains(svg, "<title>b\n4.00 KiB (4096 bytes)\nsteps 1 to 5\nat ");
  assert_contains(svg, "<title>c\n1.00 KiB (1024 bytes)\nsteps 3 to 6\nat ");
  ck_assert_uint_eq(count(svg, "<title>"), 4);  // one is the picture's own
  assert_contains(svg, ">three.csv</text>");
  assert_contains(svg, ">3 buffers, 5.00 KiB (5120 bytes) high: ");
  assert_contains(svg, ">capacity</text>");
  assert_contains(svg, ">= lower bound</text>");
  assert_contains(svg, ">needed at once</text>");
  assert_contains(svg, "prefers-color-scheme: dark");
}

// The plan that needs no capacity is drawn: of b, from 1 to 5 KiB, one KiB
// stands above 4, and so does as much of what is needed at once.
TEST(what_does_not_fit_is_red) {
  const char *path = plan_file("three.csv", THREE), *out = tool_file("out.svg");
  tool_output o = tool_ends(1, "plan", path, "--capacity", "4K", "--svg", out);
  ck_assert_str_eq(o.err, "");
  char *svg = tool_read_file(out);
  ck_assert_ptr_nonnull(svg);
  assert_well_formed(svg);
  assert_contains(svg,
                  ">It does not fit into 4.00 KiB: 1.00 KiB too much in step "
                  "1, in red</text>");
  assert_contains(svg, "<path class=\"over m\" d=\"M266 92h696v104h-696z\"/>");
  assert_contains(svg, ">above the capacity</text>");
  assert_contains(svg, "<path class=\"at\" d=\"M266.0 92.0");
  ck_assert_uint_eq(count(svg, "<title>"), 4);
}

TEST(what_fits_is_not_red) {
  char *svg = draw(plan_file("three.csv", THREE), "--capacity", "5K");
  ck_assert_uint_eq(count(svg, "class=\"over"), 0);
  ck_assert_uint_eq(count(svg, "above the capacity"), 0);
}

// b is 4 of 5 KiB high, 4 of 6 steps wide.
TEST(boxes_are_where_the_plan_has_them) {
  char *svg = draw(plan_file("old.csv",
                             "id,lower,upper,size,offset\n"
                             "a,0,3,1024,0\nb,1,5,4096,1024\n"
                             "c,3,6,1024,0\n"),
                   "--check");
  assert_contains(svg,
                  "<rect x=\"266.00\" y=\"92.00\" width=\"696.00\" "
                  "height=\"416.00\"><title>b\n");
}

TEST(gaps_are_shown) {
  char *svg = draw(plan_file("gaps.csv",
                             "id,lower,upper,size,gaps\n"
                             "a,0,9,1024,2-4 5-7\nb,0,9,1024,\n"),
                   "--verify");
  ck_assert_uint_eq(count(svg, "<rect class=\"gap\" x=\"92"), 0);
  ck_assert_uint_eq(count(svg, "<rect class=\"gap\" x=\"324.00\""), 1);
  ck_assert_uint_eq(count(svg, "<rect class=\"gap\" x=\"672.00\""), 1);
  ck_assert_uint_eq(count(svg, "<title>a\n"), 5);  // three pieces, two gaps
  assert_contains(svg, "not needed meanwhile");
}

TEST(arenas_are_panels) {
  char *svg =
      draw(plan_file("three.csv", THREE), "--arena", "1K", "--arena", "any");
  assert_contains(svg, ">arena 0</text>");
  assert_contains(svg, ">arena 1</text>");
  assert_contains(svg, " of arena 1</title>");
  ck_assert_ptr_null(strstr(svg, "lower bound</text>"));
}

TEST(names_stay_names) {
  char *svg = draw(plan_file("hostile.csv",
                             "id,lower,upper,size\n"
                             "<script>a()</script>,0,9,1024\n"
                             "&amp;'\xc2\x9b\xef\xbf\xbf,0,9,1024\n"),
                   "--verify");
  ck_assert_ptr_null(strstr(svg, "<script"));
  assert_contains(svg, "<title>&lt;script&gt;a()&lt;/script&gt;\n");
  assert_contains(svg, "<title>&amp;amp;&#39;????\n");
}

// 20,000 buffers one over the other, of which four are large.
static const char *write_tower(void) {
  const char *path = tool_file("tower.csv");
  unsigned offset = 0;
  FILE *out = fopen(path, "w");
  ck_assert_ptr_nonnull(out);
  fputs("id,lower,upper,size,offset\n", out);
  for (unsigned i = 0; i < 20000; i++) {
    unsigned size = i % 5000 == 0 ? 100000 : i % 7 + 1;
    fprintf(out, "%u,%u,%u,%u,%u\n", i, i % 90, i % 90 + 10, size, offset);
    offset += size;
  }
  ck_assert_int_eq(fclose(out), 0);
  return path;
}

// What is below a pixel is drawn as an area.
TEST(large_pictures_stay_small) {
  char *svg = draw(write_tower(), "--check");
  assert_contains(svg, "19,996 small buffers are drawn as areas, without");
  assert_contains(svg, "<title>5000\n");
  ck_assert_ptr_null(strstr(svg, "<title>5001\n"));
  ck_assert_uint_gt(count(svg, "<path class=\"c0 m\" d=\"M"), 0);
  ck_assert_uint_lt(strlen(svg), 500000);
}

TEST(it_loads_nothing) {
  char *svg = draw(plan_file("three.csv", THREE), "--verify");
  ck_assert_uint_eq(count(svg, "http"), 1);  // the name space
  ck_assert_ptr_null(strstr(svg, "href"));
  ck_assert_ptr_null(strstr(svg, "@import"));
}
