// Whole memory over several machines, of several ranks each: an engine that is
// a double, and machines by TARN_HOST (comm/mail.h). Rows are those of a model
// wherever tables and dense rows are.
#include "comm/mail.h"
#include "kit.h"
#include "support/group.h"
#include "support/row_trial.h"
#include "support/threads.h"

// A rank for each letter, which says its machine.
static const char *const layouts[] = {"a",    "aa",   "ab",   "aabb",
                                      "abab", "abcc", "abba", "aabaca"};
enum { LAYOUTS = sizeof layouts / sizeof *layouts };

typedef struct job {
  const char *hosts;
  void (*play)(void);
} job;

// It ends here, as in kit.h.
static void be_one(tarn_comm *world, void *context) {
  const job *j = context;
  const tarn_comm_options options = {.struct_size = sizeof options,
                                     .timeout_ms = 60000};
  my.rank = tarn_comm_rank(world);
  my.ranks = strlen(j->hosts);
  my.text = j->hosts;
  const char name[] = {'m', j->hosts[my.rank], '\0'};
  MUST(setenv("TARN_HOST", name, 1) == 0);
  MUST_BE(tarn_comm_from_engine(&mail_ops, mail_desk(my.rank), my.rank,
                                my.ranks, &options, &my.comm),
          TARN_OK);
  j->play();
  MUST_BE(tarn_comm_destroy(my.comm), TARN_OK);
  MUST_BE(tarn_comm_destroy(world), TARN_OK);
  _exit(0);
}

static void run(const char *hosts, void (*play)(void)) {
  job j = {hosts, play};
  mail_open(strlen(hosts));
  ck_assert_int_eq(setenv("TMPDIR", group_folder(), 1), 0);
  ranks_run(
      &(ranks_plan){.size = strlen(hosts), .body = be_one, .context = &j});
  mail_close();
  group_see_empty();
}

// --- on the host -----------------------------------------------------------

static void try_all(void) {
  for (int i = 0; i < ROW_KINDS; i++)
    try_rows(my.comm, &row_kinds[i], EFFORT(5, 3));
}

TEST_LOOP(rows_over_machines, LAYOUTS) {
  run(layouts[_i], try_all);
}

// --- on devices ------------------------------------------------------------

enum { ROWS = 1201, WIDTH = 37, WANTED = 5000 };

// Dense rows and indices of a rank, at |place|.
typedef struct batch {
  tarn_place place;
  tarn_addr dense;
  tarn_addr indices;
  float rows[WANTED][WIDTH];
  int32_t numbers[WANTED];
  size_t count;
} batch;

static float value_of(size_t row, size_t column) {
  return (float)(row * 100 + column);
}

static void take_memory(batch *b) {
  MUST_BE(tarn_device_allocate(b->place, sizeof b->rows, &b->dense), TARN_OK);
  MUST_BE(tarn_device_allocate(b->place, sizeof b->numbers, &b->indices),
          TARN_OK);
}

static void give_memory(batch *b) {
  MUST_BE(tarn_device_deallocate(b->place, b->dense, sizeof b->rows), TARN_OK);
  MUST_BE(tarn_device_deallocate(b->place, b->indices, sizeof b->numbers),
          TARN_OK);
}

static tarn_whole_rows request_of(const batch *b) {
  poke(b->place, b->dense, b->rows, sizeof b->rows);
  poke(b->place, b->indices, b->numbers, sizeof b->numbers);
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .place = b->place,
                           .dense = b->dense,
                           .indices = b->indices,
                           .index_dtype = TARN_DTYPE_I32,
                           .index_count = b->count,
                           .flags = TARN_ROWS_SKIP_BAD};
}

// Each rank writes rows of its own number.
static void scatter_all(const tarn_whole_tensor *table, batch *b) {
  b->count = 0;
  for (size_t row = my.rank; row < ROWS; row += my.ranks) {
    for (size_t k = 0; k < WIDTH; k++)
      b->rows[b->count][k] = value_of(row, k);
    b->numbers[b->count++] = (int32_t)row;
  }
  const tarn_whole_rows rows = request_of(b);
  MUST_BE(tarn_whole_scatter(table, &rows, NULL), TARN_OK);
  meet_all();
}

// Some rows many times, and some that are none.
static void draw(batch *b) {
  uint64_t state = my.rank + 1;
  b->count = WANTED;
  for (size_t i = 0; i < WANTED; i++) {
    uint64_t drawn = next_random(&state);
    b->numbers[i] = (int32_t)(drawn % (drawn >> 32 & 1 ? 7 : ROWS));
    if ((drawn >> 40) % 50 == 0) b->numbers[i] = -1;
    if (i % 97 == 3) b->numbers[i] = ROWS + (int32_t)i;
  }
}

static void gather(const tarn_whole_tensor *table, batch *b, bool beside) {
  tarn_whole_fetch *fetch = NULL;
  draw(b);
  memset(b->rows, 0xee, sizeof b->rows);
  const tarn_whole_rows rows = request_of(b);
  if (beside) {
    MUST_BE(tarn_whole_gather_begin(table, &rows, &fetch), TARN_OK);
    MUST_BE(tarn_whole_gather_end(fetch), TARN_OK);
  } else {
    MUST_BE(tarn_whole_gather(table, &rows, NULL), TARN_OK);
  }
  peek(b->place, b->dense, b->rows, sizeof b->rows);
  for (size_t i = 0; i < WANTED; i++) {
    bool is_one = b->numbers[i] >= 0 && b->numbers[i] < ROWS;
    for (size_t k = 0; k < WIDTH; k++)
      MUST(b->rows[i][k] == (is_one ? value_of((size_t)b->numbers[i], k) : 0));
  }
  meet_all();
}

static void try_places(tarn_place table_place, tarn_place dense_place,
                       const row_kind *kind) {
  static batch b;
  tarn_whole_tensor table;
  tarn_whole_table_options options = {.struct_size = sizeof options,
                                      .type = kind->type,
                                      .spread = kind->spread,
                                      .place = table_place,
                                      .dtype = TARN_DTYPE_F32,
                                      .rows = ROWS,
                                      .width = WIDTH};
  b.place = dense_place;
  MUST_BE(tarn_whole_table_create(my.comm, &options, &table), TARN_OK);
  take_memory(&b);
  scatter_all(&table, &b);
  gather(&table, &b, false);
  gather(&table, &b, true);
  give_memory(&b);
  MUST_BE(tarn_whole_destroy(table.whole), TARN_OK);
}

static void try_devices(void) {
  static const ground sim = {"sim", TARN_PLACE_DEVICE, "sim"};
  static const ground sim_host = {"sim", TARN_PLACE_HOST, "host for sim"};
  tarn_place on_device = open_ground(&sim);
  tarn_place on_host = {on_device.device, sim_host.kind};
  belongings before;
  MUST_BE(use_strategy(on_device, "no_pool"), TARN_OK);
  for (int i = 0; i < ROW_KINDS; i++) {
    try_places(on_device, on_device, &row_kinds[i]);
    try_places(on_host, on_device, &row_kinds[i]);
    try_places(on_device, on_host, &row_kinds[i]);
    before = look_around(on_device);
    try_places(on_device, on_host, &row_kinds[i]);
    see_nothing_left(on_device, before);
  }
  close_ground(on_device);
}

TEST_LOOP(rows_of_devices_over_machines, LAYOUTS) {
  run(layouts[_i], try_devices);
}

SECONDS(300);
