// Rows of wholes asked for wrongly: what is refused, at which ranks, with which
// words, and that nothing was moved. Also what asks oddly, but well.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "rows_kit.h"
#include "tarn/synced.h"
#include "whole/exchange.h"
#include "wrapped_comm.h"

enum { ROWS = 40, WIDTH = 4, COUNT = 6 };

static const ground *where;  // set before ranks are forked

// --- a table, dense rows and indices ---------------------------------------

static const shape plain = {.text = "plain",
                            .table = TARN_DTYPE_F32,
                            .dense = TARN_DTYPE_F32,
                            .index = TARN_DTYPE_I64,
                            .rows = ROWS,
                            .width = WIDTH,
                            .count = COUNT};

static float dense_rows[COUNT][WIDTH];
static int64_t indices[COUNT];

static tarn_whole_rows sensible(void) {
  for (size_t i = 0; i < COUNT; i++) {
    indices[i] = (int64_t)(i * 7 + my.rank);
    for (size_t k = 0; k < WIDTH; k++)
      dense_rows[i][k] = -5;
  }
  return (tarn_whole_rows){.struct_size = sizeof(tarn_whole_rows),
                           .place = TARN_HOST,
                           .dense = (tarn_addr)(uintptr_t)dense_rows,
                           .indices = (tarn_addr)(uintptr_t)indices,
                           .index_dtype = TARN_DTYPE_I64,
                           .index_count = COUNT};
}

static scene put_up(tarn_place place, tarn_whole_type type) {
  scene c = {.s = &plain, .place = place, .at = TARN_HOST};
  raise_scene(&c, type);
  return c;
}

// Dense rows and this rank's part are as they were.
static void must_be_untouched(const scene *c) {
  tarn_whole_part part;
  unsigned char seen[ROWS][WIDTH * sizeof(float)];
  for (size_t i = 0; i < COUNT; i++)
    for (size_t k = 0; k < WIDTH; k++)
      MUST(dense_rows[i][k] == -5);
  MUST_BE(tarn_whole_local(c->whole, &part), TARN_OK);
  peek(c->place, part.address, seen, part.size);
  must_be_equal(seen[0], c->model + part.offset, part.size);
}

// --- bad indices -----------------------------------------------------------

static bool is_together(tarn_whole_type type, action a) {
  return type == TARN_WHOLE_DISTRIBUTED || a == SCATTER_ADD;
}

// Nothing but what the program itself knows of.
static void must_name_the_call(action a) {
  static const char *const calls[] = {
      [GATHER] = "tarn_whole_gather of whole ",
      [SCATTER] = "tarn_whole_scatter of whole ",
      [SCATTER_ADD] = "tarn_whole_scatter_add of whole "};
  MUST_SAY(calls[a]);
  MUST_SAY(" 'a table': rows: index ");
  MUST(strstr(tarn_last_error(), "answered") == NULL);
}

static void ask_badly(scene *c, tarn_whole_type type, action a, int64_t bad) {
  char words[128];
  tarn_whole_rows rows = sensible();
  bool mine = my.rank == 1;
  if (mine) indices[3] = bad;
  tarn_status status = act(a, &c->tensor, &rows, NULL);
  bool refused = mine || is_together(type, a);
  MUST_BE(status, refused ? TARN_E_INVALID : TARN_OK);
  snprintf(words, sizeof words, "index %lld at position 3 is not in 0..%d",
           (long long)bad, ROWS - 1);
  if (refused) MUST_SAY(words);
  if (refused) must_name_the_call(a);
  if (!is_together(type, a)) return;
  MUST_SAY("rank 1");
  must_be_untouched(c);
}

static void have_bad_indices(void) {
  configure_sim();
  tarn_place place = open_place(where->device, where->kind);
  for (size_t t = 0; t < TYPES; t++) {
    scene c = put_up(place, type_at(t));
    for (action a = GATHER; a < ACTIONS; a++) {
      if (!is_together(type_at(t), a) && a == SCATTER) continue;
      ask_badly(&c, type_at(t), a, ROWS);
      ask_badly(&c, type_at(t), a, -1);
      ask_badly(&c, type_at(t), a, INT64_MIN);
      ask_badly(&c, type_at(t), a, ((int64_t)1 << 49) + 1);
    }
    play(&c, GATHER);
    strike_scene(&c);
  }
  close_ground(place);
}

GROUND_TEST(bad_indices, 3, have_bad_indices)

// Where rows go by way of a block, all are looked at before the first moves,
// and the position is that in the whole call.
static void have_one_far_behind(void) {
  enum { MANY = 100000 };
  configure_sim();
  tarn_place place = open_place("sim", TARN_PLACE_DEVICE);
  scene c = put_up(place, TARN_WHOLE_CHUNKED);
  int64_t *many = calloc(MANY, sizeof *many);
  float *rows = calloc(MANY, WIDTH * sizeof *rows);
  MUST(many != NULL && rows != NULL);
  many[MANY - 1] = -7;
  rows[0] = -5;
  tarn_whole_rows request = sensible();
  request.dense = (tarn_addr)(uintptr_t)rows;
  request.indices = (tarn_addr)(uintptr_t)many;
  request.index_count = MANY;
  MUST_BE(tarn_whole_gather(&c.tensor, &request, NULL), TARN_E_INVALID);
  MUST_SAY("index -7 at position 99999 is not in 0..39");
  MUST(rows[0] == -5);
  free(many);
  free(rows);
  strike_scene(&c);
  close_ground(place);
}

WHOLE_TEST(a_bad_index_far_behind, 2, "far behind", have_one_far_behind)

// --- arguments -------------------------------------------------------------

static void must_be_refused(const scene *c, const tarn_whole_rows *rows,
                            tarn_stream *stream, const char *words) {
  for (action a = GATHER; a < ACTIONS; a++) {
    MUST_BE(act(a, &c->tensor, rows, stream), TARN_E_INVALID);
    MUST_SAY(words);
  }
}

static void ask_for_nonsense(tarn_whole_type type) {
  char words[64];
  tarn_device *other = NULL;
  tarn_stream *stream = NULL;
  scene c = put_up(TARN_HOST, type);
  tarn_whole_rows rows = sensible();
  must_be_refused(&c, NULL, NULL, "NULL");
  rows.struct_size = 9;
  must_be_refused(&c, &rows, NULL, "struct_size is 9");
  rows = sensible();
  rows.index_dtype = TARN_DTYPE_I16;
  must_be_refused(&c, &rows, NULL, "indices are i32 or i64, not i16");
  rows = sensible();
  rows.dense_dtype = TARN_DTYPE_I32;
  must_be_refused(&c, &rows, NULL, "no conversion");
  rows = sensible();
  rows.flags = 1u << 9;
  must_be_refused(&c, &rows, NULL, "unknown flags 0x200");
  rows = sensible();
  rows.dense_stride = 15;
  must_be_refused(&c, &rows, NULL, "the dense stride of 15 bytes");
  rows = sensible();
  rows.dense = 0;
  must_be_refused(&c, &rows, NULL, "the address of the dense rows is 0");
  rows = sensible();
  rows.place.kind = TARN_PLACE_DEVICE;
  must_be_refused(&c, &rows, NULL, "invalid place");
  rows = sensible();
  rows.place.kind = (tarn_place_kind)9;
  must_be_refused(&c, &rows, NULL, "invalid place of kind 9");
  if (is_on_driver()) driver_add(driver_wanted());
  MUST_BE(tarn_device_open(is_on_driver() ? driver_wanted() : "sim:0", &other),
          TARN_OK);
  MUST_BE(tarn_stream_create(other, &stream), TARN_OK);
  rows = sensible();
  snprintf(words, sizeof words, "the stream is of %s", tarn_device_name(other));
  must_be_refused(&c, &rows, stream, words);
  MUST_BE(tarn_stream_destroy(stream), TARN_OK);
  MUST_BE(tarn_device_close(other), TARN_OK);
  MUST_BE(tarn_whole_gather(NULL, &rows, NULL), TARN_E_INVALID);
  must_be_untouched(&c);
  strike_scene(&c);
}

static void ask_all_for_nonsense(void) {
  configure_sim();
  for (size_t t = 0; t < TYPES; t++)
    ask_for_nonsense(type_at(t));
}

TEST_LOOP(nonsense, ON_GROUNDS(1)) {
  run_ranks(1, "nonsense", ask_all_for_nonsense);
  run_ranks(2, "nonsense", ask_all_for_nonsense);
}

static void add_bools(void) {
  static const shape bools = {.text = "bools",
                              .table = TARN_DTYPE_BOOL,
                              .dense = TARN_DTYPE_BOOL,
                              .index = TARN_DTYPE_I32,
                              .rows = ROWS,
                              .width = WIDTH,
                              .count = COUNT};
  scene c = {.s = &bools, .place = TARN_HOST, .at = TARN_HOST};
  raise_scene(&c, TARN_WHOLE_DISTRIBUTED);
  tarn_whole_rows rows = sensible();
  MUST_BE(tarn_whole_scatter_add(&c.tensor, &rows, NULL), TARN_E_INVALID);
  MUST_SAY("elements of bool cannot be added");
  play(&c, GATHER);
  play(&c, SCATTER);
  strike_scene(&c);
}

WHOLE_TEST(bools_are_not_added, 2, "bools", add_bools)

// --- different at one rank -------------------------------------------------

static void differ(tarn_whole_type type) {
  bool odd = my.rank == 2;
  scene c = put_up(TARN_HOST, type);
  tarn_whole_tensor other = c.tensor;
  tarn_whole_rows rows = sensible();
  MUST_BE(act(odd && type == TARN_WHOLE_DISTRIBUTED ? SCATTER : SCATTER_ADD,
              &c.tensor, &rows, NULL),
          type == TARN_WHOLE_DISTRIBUTED ? TARN_E_INVALID : TARN_OK);
  if (type == TARN_WHOLE_DISTRIBUTED) {
    MUST_SAY("rank 0 calls tarn_whole_scatter_add of whole ");
    MUST_SAY(" 'a table', rank 2 tarn_whole_scatter of whole ");
    must_be_untouched(&c);
  }
  if (odd) rows.dense_dtype = TARN_DTYPE_F64;
  if (odd) rows.index_count = 0;
  MUST_BE(tarn_whole_scatter_add(&c.tensor, &rows, NULL), TARN_E_INVALID);
  MUST_SAY("dense rows of f64");
  MUST_SAY("dense rows of f32");
  rows = sensible();
  if (odd) other.rows--;
  MUST_BE(tarn_whole_scatter_add(&other, &rows, NULL), TARN_E_INVALID);
  MUST_SAY("39 rows of 4 x f32");
  MUST_SAY("40 rows of 4 x f32");
  if (odd) rows.index_dtype = TARN_DTYPE_U8;
  MUST_BE(tarn_whole_scatter_add(&c.tensor, &rows, NULL), TARN_E_INVALID);
  MUST_SAY("rank 2");
  strike_scene(&c);
}

static void differ_in_all_types(void) {
  for (size_t t = 0; t < TYPES; t++)
    differ(type_at(t));
}

WHOLE_TEST(different_arguments, 3, "different arguments", differ_in_all_types)

// --- streams that have failed ----------------------------------------------

// What a stream has failed with is said, and nothing is moved.
static void use_a_failed_stream(void) {
  configure_sim();
  tarn_place place = open_place("cpu", TARN_PLACE_DEVICE);
  tarn_stream *stream = NULL;
  scene c = put_up(place, TARN_WHOLE_CONTINUOUS);
  scene d = put_up(place, TARN_WHOLE_DISTRIBUTED);
  MUST_BE(tarn_stream_create(place.device, &stream), TARN_OK);
  tarn_whole_rows rows = sensible();
  indices[2] = 77;
  tarn_status status = tarn_whole_gather(&c.tensor, &rows, stream);
  if (status == TARN_OK) status = tarn_stream_synchronize(stream);
  MUST_BE(status, TARN_E_DEVICE);
  MUST_SAY("index 77 at position 2");
  rows = sensible();
  MUST_BE(tarn_whole_gather(&d.tensor, &rows, stream), TARN_E_DEVICE);
  MUST_SAY("rank 0");
  must_be_untouched(&d);
  MUST_BE(tarn_stream_destroy(stream), TARN_E_DEVICE);
  strike_scene(&d);
  strike_scene(&c);
  close_ground(place);
}

WHOLE_TEST(streams_that_have_failed, 2, "a failed stream", use_a_failed_stream)

// --- synced buffers --------------------------------------------------------

// The address of an open access is as good as any.
static void gather_into_an_access(void) {
  configure_sim();
  tarn_place place = open_place("sim", TARN_PLACE_DEVICE);
  for (size_t t = 0; t < TYPES; t++) {
    scene c = put_up(place, type_at(t));
    tarn_synced *buffer = NULL;
    tarn_access to;
    tarn_access from;
    tarn_whole_rows rows = sensible();
    tarn_addr on_device = 0;
    MUST_BE(tarn_device_allocate(place, sizeof indices, &on_device), TARN_OK);
    MUST_BE(
        tarn_copy_h2d(place.device, on_device, indices, sizeof indices, NULL),
        TARN_OK);
    MUST_BE(tarn_synced_create(sizeof dense_rows, NULL, &buffer), TARN_OK);
    MUST_BE(tarn_synced_begin(buffer, 0, TARN_ALL, place, TARN_WRITE_DISCARD,
                              NULL, &to),
            TARN_OK);
    rows.place = place;
    rows.dense = to.address;
    rows.indices = on_device;
    MUST_BE(tarn_whole_gather(&c.tensor, &rows, NULL), TARN_OK);
    MUST_BE(tarn_synced_end(&to), TARN_OK);
    MUST_BE(tarn_synced_begin(buffer, 0, TARN_ALL, TARN_HOST, TARN_READ, NULL,
                              &from),
            TARN_OK);
    for (size_t i = 0; i < COUNT; i++) {
      size_t row = WIDTH * sizeof(float);
      must_be_equal((unsigned char *)from.pointer + i * row,
                    c.model + (size_t)indices[i] * row, row);
    }
    MUST_BE(tarn_synced_end(&from), TARN_OK);
    MUST_BE(tarn_synced_destroy(buffer), TARN_OK);
    MUST_BE(tarn_device_deallocate(place, on_device, sizeof indices), TARN_OK);
    strike_scene(&c);
  }
  close_ground(place);
}

WHOLE_TEST(accesses, 2, "an access", gather_into_an_access)

// --- what other ranks have written -----------------------------------------

// What an owner does with a list.
static tarn__whole_course serve_as(scene *c, action a,
                                   tarn__whole_rows_order *order) {
  static const tarn__rows_action actions[] = {
      [GATHER] = TARN__ROWS_GATHER, [SCATTER] = TARN__ROWS_SCATTER};
  *order = (tarn__whole_rows_order){.action = actions[a]};
  MUST_BE(tarn__tensor_check(&c->tensor, &order->table), TARN_OK);
  return (tarn__whole_course){.whole = c->whole,
                              .kept = c->whole->exchange,
                              .order = order,
                              .dtype = TARN_DTYPE_F32};
}

static const tarn__whole_span all_elements = {
    .width = WIDTH, .row_bytes = WIDTH * sizeof(float)};

// Lists are in memory that others write: no row beyond the part is touched.
static void read_a_hostile_list(void) {
  int32_t list[] = {0, ROWS};
  unsigned char staged[2][WIDTH * sizeof(float)];
  tarn__whole_rows_order order;
  scene c = put_up(TARN_HOST, TARN_WHOLE_DISTRIBUTED);
  play(&c, GATHER);
  tarn__whole_course course = serve_as(&c, GATHER, &order);
  MUST_BE(tarn__move_owned(&course, &all_elements, my.rank, 1 - my.rank, list,
                           2, staged[0]),
          TARN_E_CORRUPT);
  MUST_SAY("row 40 of the 40");
  list[1] = -1;
  MUST_BE(tarn__move_owned(&course, &all_elements, my.rank, 1 - my.rank, list,
                           2, staged[0]),
          TARN_E_CORRUPT);
  MUST_BE(tarn__move_owned(&course, &all_elements, my.rank, 1 - my.rank, list,
                           1, staged[0]),
          TARN_OK);
  must_be_equal(staged[0], c.model, WIDTH * sizeof(float));
  strike_scene(&c);
}

// They may write while it is read.
enum { HOSTILE = 4096, TIMES = EFFORT(3000, 500) };

static int32_t flickering[HOSTILE];
static atomic_bool is_over;

static void *flicker(void *unused) {
  volatile int32_t *last = &flickering[HOSTILE - 1];
  while (!atomic_load(&is_over)) {
    *last = 1 << 30;
    *last = 1;
  }
  return unused;
}

static void read_a_flickering_list(void) {
  static float staged[HOSTILE][WIDTH];
  pthread_t other;
  tarn__whole_rows_order order;
  scene c = put_up(TARN_HOST, TARN_WHOLE_DISTRIBUTED);
  play(&c, GATHER);
  MUST(pthread_create(&other, NULL, flicker, NULL) == 0);
  for (size_t i = 0; i < TIMES; i++) {
    tarn__whole_course course =
        serve_as(&c, i % 2 == 0 ? GATHER : SCATTER, &order);
    tarn_status status =
        tarn__move_owned(&course, &all_elements, my.rank, 1 - my.rank,
                         flickering, HOSTILE, (unsigned char *)staged);
    MUST(status == TARN_OK || status == TARN_E_CORRUPT);
  }
  atomic_store(&is_over, true);
  MUST(pthread_join(other, NULL) == 0);
  strike_scene(&c);
}

TEST(hostile_lists) {
  run_ranks(1, "a hostile list", read_a_hostile_list);
  run_ranks(1, "a flickering list", read_a_flickering_list);
}

// --- forks -----------------------------------------------------------------

static void fork_after_an_exchange(void) {
  int status = 0;
  scene c = put_up(TARN_HOST, TARN_WHOLE_DISTRIBUTED);
  play(&c, GATHER);
  tarn_whole_rows rows = sensible();
  pid_t child = fork();
  MUST(child >= 0);
  if (child == 0) {
    alarm(60);
    MUST_BE(tarn_whole_gather(&c.tensor, &rows, NULL), TARN_E_STATE);
    MUST_BE(tarn_whole_destroy(c.whole), TARN_OK);
    _exit(0);
  }
  MUST(waitpid(child, &status, 0) == child && status == 0);
  play(&c, SCATTER);
  strike_scene(&c);
}

// --- calls in another order ------------------------------------------------

// Only calls that the program has made are named, with the names of tables.
static void mix_calls_up(void) {
  tarn_whole_table_options o = {.struct_size = sizeof o,
                                .type = TARN_WHOLE_DISTRIBUTED,
                                .place = TARN_HOST,
                                .dtype = TARN_DTYPE_F32,
                                .rows = ROWS,
                                .width = WIDTH,
                                .name = "users"};
  tarn_whole_tensor users;
  tarn_whole_tensor items;
  tarn_whole_rows rows = sensible();
  bool odd = my.rank == 1;
  rows.index_count = 0;
  MUST_BE(tarn_whole_table_create(my.comm, &o, &users), TARN_OK);
  o.name = "items";
  MUST_BE(tarn_whole_table_create(my.comm, &o, &items), TARN_OK);

  MUST_BE(
      odd ? tarn_comm_barrier(my.comm) : tarn_whole_gather(&users, &rows, NULL),
      TARN_E_INVALID);
  MUST_SAY("rank 0 calls tarn_whole_gather of whole ");
  MUST_SAY(" 'users', rank 1 tarn_comm_barrier");
  MUST_BE(tarn_whole_gather(odd ? &items : &users, &rows, NULL),
          TARN_E_INVALID);
  MUST_SAY(" 'users', rank 1 tarn_whole_gather of whole ");
  MUST_SAY(" 'items'");
  MUST_BE(odd ? tarn_whole_destroy(items.whole)
              : tarn_whole_scatter(&users, &rows, NULL),
          TARN_E_INVALID);
  MUST_SAY("rank 1 tarn_whole_destroy of whole ");
  tarn_whole_tensor none;
  o.name = "new";
  MUST_BE(odd ? tarn_whole_gather(&items, &rows, NULL)
              : tarn_whole_table_create(my.comm, &o, &none),
          TARN_E_INVALID);
  MUST_SAY("rank 0 calls tarn_whole_table_create of 'new', rank 1 ");
  MUST_BE(odd ? tarn_comm_agree(my.comm, TARN_OK) : tarn_comm_barrier(my.comm),
          TARN_E_INVALID);
  MUST_SAY("rank 0 calls tarn_comm_barrier, rank 1 tarn_comm_agree");

  // Nothing has happened.
  MUST_BE(tarn_whole_gather(&users, &rows, NULL), TARN_OK);
  MUST_BE(tarn_whole_destroy(users.whole), TARN_OK);
  MUST_BE(tarn_whole_destroy(items.whole), TARN_OK);
}

TEST(calls_in_another_order) {
  run_ranks(2, "another order", mix_calls_up);
  run_ranks(5, "another order", mix_calls_up);
}

WHOLE_TEST(children_of_ranks, 2, "a child", fork_after_an_exchange)
