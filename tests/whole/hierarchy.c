// The hierarchical type: what may be asked for, and what it tells of parts and
// owners, on one machine and where each rank is a machine of its own.
#include <stddef.h>

#include "comm/post_office.h"
#include "kit.h"
#include "support/row_trial.h"
#include "support/threads.h"

enum { ROWS = 103, WIDTH = 4 };

static tarn_whole_table_options options_of(tarn_whole_type type,
                                           tarn_whole_spread spread) {
  return (tarn_whole_table_options){
      .struct_size = sizeof(tarn_whole_table_options),
      .type = type,
      .place = TARN_HOST,
      .dtype = TARN_DTYPE_F32,
      .rows = ROWS,
      .width = WIDTH,
      .spread = spread};
}

// --- wrong arguments -------------------------------------------------------

static void refuse(tarn_whole_table_options options, const char *part) {
  tarn_whole_tensor table;
  MUST_BE(tarn_whole_table_create(my.comm, &options, &table), TARN_E_INVALID);
  MUST_SAY(part);
  MUST(table.whole == NULL);
}

static void ask_wrongly(void) {
  const size_t counts[] = {ROWS - 1, 1};
  for (int type = TARN_WHOLE_CONTINUOUS; type <= TARN_WHOLE_DISTRIBUTED;
       type++) {
    refuse(options_of((tarn_whole_type)type, TARN_WHOLE_COPIES),
           "the spread is 1");
  }
  refuse(options_of(TARN_WHOLE_HIERARCHICAL, (tarn_whole_spread)2),
         "the spread is 2");
  tarn_whole_table_options options =
      options_of(TARN_WHOLE_HIERARCHICAL, TARN_WHOLE_COPIES);
  options.partition = counts;
  refuse(options, "the partition must be NULL");
  options = options_of(TARN_WHOLE_HIERARCHICAL,
                       my.rank == 0 ? TARN_WHOLE_PARTS : TARN_WHOLE_COPIES);
  refuse(options, "hierarchical in copies on the host");
}

WHOLE_TEST(wrong_spreads_are_refused, 2, "two ranks", ask_wrongly)

// What was compiled before there was a spread.
static void ask_as_before(void) {
  tarn_whole_tensor table;
  tarn_whole_table_options options =
      options_of(TARN_WHOLE_HIERARCHICAL, (tarn_whole_spread)-1);
  options.struct_size = offsetof(tarn_whole_table_options, spread);
  MUST_BE(tarn_whole_table_create(my.comm, &options, &table), TARN_OK);
  tarn_whole_info info = {.struct_size = offsetof(tarn_whole_info, spread),
                          .spread = (tarn_whole_spread)-1};
  MUST_BE(tarn_whole_query(table.whole, &info), TARN_OK);
  MUST(info.type == TARN_WHOLE_HIERARCHICAL && (int)info.spread == -1);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
}

WHOLE_TEST(older_callers_get_parts, 2, "two ranks", ask_as_before)

// --- an index that is wrong ------------------------------------------------

static tarn_whole_rows rows_of(float *dense, const int64_t *indices) {
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .place = TARN_HOST,
                           .dense = (tarn_addr)(uintptr_t)dense,
                           .indices = (tarn_addr)(uintptr_t)indices,
                           .index_dtype = TARN_DTYPE_I64,
                           .index_count = 2};
}

static void index_wrongly(tarn_comm *comm, void *kind) {
  tarn_whole_tensor table;
  float dense[2 * WIDTH] = {0};
  const row_kind *of = kind;
  tarn_whole_table_options options = options_of(of->type, of->spread);
  int64_t indices[2] = {1, tarn_comm_rank(comm) == 1 ? ROWS : 2};
  const tarn_whole_rows rows = rows_of(dense, indices);
  expect(tarn_whole_table_create(comm, &options, &table) == TARN_OK);
  expect(tarn_whole_scatter(&table, &rows, NULL) == TARN_E_INVALID);
  expect(strstr(tarn_last_error(), "rank 1") != NULL);
  expect(tarn_whole_scatter_add(&table, &rows, NULL) == TARN_E_INVALID);
  if (of->spread == TARN_WHOLE_PARTS)
    expect(tarn_whole_gather(&table, &rows, NULL) == TARN_E_INVALID);
  indices[1] = 0;
  expect(tarn_whole_gather(&table, &rows, NULL) == TARN_OK);
  expect(tarn_whole_destroy(table.whole) == TARN_OK);
}

TEST_RANGE(a_wrong_index_is_one_of_all_ranks, ROW_PARTS, ROW_KINDS) {
  row_kind kind = row_kinds[_i];
  post_run(&(post_job){.ranks = 3, .run = index_wrongly, .context = &kind},
           false);
}

// --- parts and owners ------------------------------------------------------

static bool says(const char *part) {
  return strstr(tarn_last_error(), part) != NULL;
}

// Of |ranks| equal parts of all rows: that of rank |rank|.
static size_t rows_before(size_t ranks, size_t rank) {
  size_t most = ROWS / ranks + (ROWS % ranks != 0);
  return most * rank < ROWS ? most * rank : ROWS;
}

static void see_part(const tarn_whole_tensor *table, size_t rank, size_t first,
                     size_t end, bool is_here) {
  tarn_whole_part part;
  size_t got = 0;
  size_t count = 0;
  size_t row = WIDTH * sizeof(float);
  tarn_status status = tarn_whole_of_rank(table->whole, rank, &part);
  expect(status == (is_here ? TARN_OK : TARN_E_UNSUPPORTED));
  expect(is_here || says("use tarn_whole_gather"));
  expect(part.offset == first * row && part.size == (end - first) * row);
  expect((part.address != 0) == (is_here && end > first));
  expect(tarn_whole_tensor_rows(table, rank, &got, &count) == TARN_OK);
  expect(got == first && count == end - first);
}

static void see_owners(const tarn_whole_tensor *table, size_t ranks) {
  size_t row = WIDTH * sizeof(float);
  for (size_t i = 0; i < ROWS; i++) {
    size_t owner = 0;
    tarn_whole_part part;
    expect(tarn_whole_owner(table->whole, i * row, &owner) == TARN_OK);
    expect(owner < ranks);
    tarn_status got = tarn_whole_of_rank(table->whole, owner, &part);
    expect(got == TARN_OK || got == TARN_E_UNSUPPORTED);
    expect(part.offset <= i * row && i * row < part.offset + part.size);
  }
}

static void see_map(const tarn_whole_tensor *table, bool is_mapped) {
  tarn_addr address = 0;
  tarn_reference reference;
  tarn_status expected = is_mapped ? TARN_OK : TARN_E_UNSUPPORTED;
  expect(tarn_whole_global(table->whole, &address) == expected);
  expect((address != 0) == is_mapped);
  expect(tarn_whole_reference(table->whole, &reference) == expected);
  expect((reference.count > 0) == is_mapped);
}

static void see_info(const tarn_whole_tensor *table, const row_kind *kind) {
  tarn_whole_info info = {.struct_size = sizeof info};
  expect(tarn_whole_query(table->whole, &info) == TARN_OK);
  expect(info.type == kind->type && info.spread == kind->spread);
  expect(info.ranks == tarn_comm_size(tarn_whole_comm(table->whole)));
  expect(info.size == ROWS * WIDTH * sizeof(float));
}

static void look(tarn_comm *comm, const row_kind *kind, bool is_one) {
  tarn_whole_tensor table;
  tarn_addr local = 0;
  size_t ranks = tarn_comm_size(comm);
  size_t own = tarn_comm_rank(comm);
  bool copies = kind->spread == TARN_WHOLE_COPIES;
  tarn_whole_table_options options = options_of(kind->type, kind->spread);
  expect(tarn_whole_table_create(comm, &options, &table) == TARN_OK);
  for (size_t r = 0; r < ranks; r++) {
    bool divided = is_one || !copies;
    size_t first = divided ? rows_before(ranks, r) : r > own ? ROWS : 0;
    size_t end = divided ? rows_before(ranks, r + 1) : r >= own ? ROWS : 0;
    see_part(&table, r, first, end, is_one || r == own);
  }
  see_owners(&table, ranks);
  see_map(&table, is_one || copies);
  see_info(&table, kind);
  expect(tarn_whole_tensor_local(&table, &local) == TARN_OK);
  expect(tarn_whole_destroy(table.whole) == TARN_OK);
}

static void look_from_afar(tarn_comm *comm, void *unused) {
  (void)unused;
  look(comm, &row_kinds[ROW_PARTS], tarn_comm_size(comm) == 1);
  look(comm, &row_kinds[ROW_COPIES], tarn_comm_size(comm) == 1);
}

TEST_RANGE(parts_of_several_machines, 1, 6) {
  post_run(&(post_job){.ranks = (size_t)_i, .run = look_from_afar}, false);
}

static void look_from_near(void) {
  look(my.comm, &row_kinds[ROW_PARTS], true);
  look(my.comm, &row_kinds[ROW_COPIES], true);
}

TEST_RANGE(parts_of_one_machine, 1, 6) {
  run_ranks((size_t)_i, "one machine", look_from_near);
}

// --- mapped types ----------------------------------------------------------

static void map_from_afar(tarn_comm *comm, void *unused) {
  (void)unused;
  for (int i = TARN_WHOLE_CONTINUOUS; i <= TARN_WHOLE_CHUNKED; i++) {
    tarn_whole_tensor table;
    tarn_whole_table_options options =
        options_of((tarn_whole_type)i, TARN_WHOLE_PARTS);
    expect(tarn_whole_table_create(comm, &options, &table) ==
           TARN_E_UNSUPPORTED);
    expect(says("2 machines"));
    expect(says("use TARN_WHOLE_HIERARCHICAL or TARN_WHOLE_DISTRIBUTED"));
  }
}

TEST(mapped_types_need_one_machine) {
  post_run(&(post_job){.ranks = 2, .run = map_from_afar}, false);
}

SECONDS(120);
