// Rows of wholes of any shape, held against a model: pairs of dtypes, parts of
// tensors, gaps, partitions, addresses of any alignment, threads, and dense
// rows at a place and with a stream that each rank chooses for itself.
//
// All ranks draw the same numbers where they must mean the same.
#include "rows_kit.h"

enum {
  ROUNDS = EFFORT(120, 30),
  PLAYS = 3,
  STEPS = ROUNDS * PLAYS,
  MOST_ROWS = 300,
  MOST_COUNT = 2 * MOST_ROWS,
  MOST_WIDTH = 40
};

static uint64_t seed;  // set before ranks are forked
static size_t step;

// A number from 0 to |most|, the same at all ranks.
static size_t draw(uint64_t what, size_t most) {
  return (size_t)(mix(mix(seed, step), what) % (most + 1));
}

static size_t draw_alone(uint64_t what, size_t most) {
  return (size_t)(mix(mix(seed + 1 + my.rank, step), what) % (most + 1));
}

// --- shapes ----------------------------------------------------------------

static tarn_dtype draw_dtype(uint64_t what) {
  return (tarn_dtype)(TARN_DTYPE_F64 + draw(what, TARN_DTYPE_BOOL - 1));
}

static tarn_dtype draw_partner(tarn_dtype of) {
  uint64_t what = 100;
  while (!tarn__convert_is_possible(draw_dtype(what), of))
    what++;
  return draw_dtype(what);
}

static void draw_partition(size_t rows, size_t *out) {
  size_t left = rows;
  for (size_t r = 0; r < my.ranks; r++) {
    out[r] = r + 1 == my.ranks ? left : draw(50 + r, left);
    if (draw(60 + r, 2) == 0 && r + 1 < my.ranks) out[r] = 0;
    left -= out[r];
  }
}

static shape draw_shape(size_t *partition) {
  shape s = {.text = my.text, .table = draw_dtype(1)};
  s.dense = draw_partner(s.table);
  s.index = draw(2, 1) == 0 ? TARN_DTYPE_I32 : TARN_DTYPE_I64;
  s.trim = draw(3, 2);
  s.rows = 1 + 2 * s.trim + draw(4, MOST_ROWS);
  s.width = draw(5, 3) == 0 ? 0 : 1 + 2 * s.trim + draw(6, MOST_WIDTH);
  s.count = draw(7, 3) == 0 ? 2 : draw(8, MOST_COUNT);
  s.gap = draw(9, 1) == 0 ? 0 : draw(10, 9);
  s.bad = draw(11, 2) == 0;
  draw_partition(s.rows, partition);
  if (draw(12, 1) == 0) s.partition = partition;
  return s;
}

// --- places and streams ----------------------------------------------------

static const struct {
  const char *device;
  tarn_place_kind kind;
} places[] = {
    {NULL, TARN_PLACE_HOST},           {"cpu", TARN_PLACE_DEVICE},
    {"cpu", TARN_PLACE_HOST},          {"sim", TARN_PLACE_DEVICE},
    {"sim", TARN_PLACE_HOST},          {"sim", TARN_PLACE_UNIFIED},
    {"other sim", TARN_PLACE_DEVICE},  {"other sim", TARN_PLACE_HOST},
    {"other sim", TARN_PLACE_UNIFIED}, {"cpu", TARN_PLACE_UNIFIED},
    {"real", TARN_PLACE_DEVICE},       {"real", TARN_PLACE_HOST},
    {"real", TARN_PLACE_UNIFIED},
};
enum { PLACES = sizeof places / sizeof places[0], REAL_PLACES = 3 };

// One of a device that may have it, or none.
static tarn_stream *draw_stream(tarn_place place, tarn_place at) {
  tarn_stream *stream = NULL;
  const tarn_place one = draw_alone(20, 1) == 0 ? place : at;
  if (draw_alone(21, 2) == 0 || one.device == NULL) return NULL;
  MUST_BE(tarn_stream_create(one.device, &stream), TARN_OK);
  return stream;
}

// --- a play ----------------------------------------------------------------

// Bytes that stand |shift| behind what the place gives.
typedef struct shifted {
  tarn_addr given;
  size_t size;
  size_t shift;
} shifted;

static shifted put(tarn_place at, const void *bytes, size_t size,
                   size_t shift) {
  shifted s = {.size = size + shift + 1, .shift = shift};
  MUST_BE(tarn_device_allocate(at, s.size, &s.given), TARN_OK);
  poke(at, s.given + shift, bytes, size);
  return s;
}

static void take_back(tarn_place at, const shifted *s) {
  MUST_BE(tarn_device_deallocate(at, s->given, s->size), TARN_OK);
}

static void play_shifted(scene *c, action a) {
  dense d = make_dense(c->s, &c->tensor, a, my.rank);
  void *narrow = narrowed(c->s, &d);
  shifted indices = put(c->at, narrow, d.count * tarn_dtype_size(c->s->index),
                        draw_alone(30, 9));
  shifted rows = put(c->at, d.rows, d.rows_size, draw_alone(31, 9));
  tarn_addr address = rows.given + rows.shift;
  tarn_whole_rows request =
      request_of(c, &d, address, indices.given + indices.shift);
  request.threads = (uint32_t)draw_alone(32, 3);
  if (draw_alone(33, 2) == 0) request.flags |= TARN_ROWS_PAST_CACHES;
  MUST_BE(act(a, &c->tensor, &request, c->stream), TARN_OK);
  if (c->stream != NULL) MUST_BE(tarn_stream_synchronize(c->stream), TARN_OK);
  meet_all();
  model_all(c->s, &c->tensor, a, c->model, &d);
  compare(c, &d, address);
  meet_all();
  take_back(c->at, &rows);
  take_back(c->at, &indices);
  free(narrow);
  free_dense(&d);
}

static void play_once(scene *c) {
  size_t most = PLACES - (is_on_driver() ? 0 : REAL_PLACES);
  size_t number = draw_alone(22, most - 1);
  action a = (action)draw(23, ACTIONS - 1);
  if (c->s->table == TARN_DTYPE_BOOL && a == SCATTER_ADD) a = SCATTER;
  c->at = open_place(places[number].device, places[number].kind);
  if (!has_memory(c->at)) c->at.kind = TARN_PLACE_DEVICE;
  c->stream = draw_stream(c->place, c->at);
  play_shifted(c, a);
  if (c->stream != NULL) MUST_BE(tarn_stream_destroy(c->stream), TARN_OK);
  close_ground(c->at);
}

static void play_one_whole(void) {
  char text[96];
  size_t partition[MOST_RANKS];
  const ground *on = ground_at((int)draw(13, (size_t)GROUNDS - 1));
  tarn_whole_type type = type_at(draw(14, TYPES - 1));
  snprintf(text, sizeof text, "seed %zu, step %zu: %s, %s", (size_t)seed, step,
           tarn_whole_type_name(type), on->text);
  my.text = text;
  shape s = draw_shape(partition);
  scene c = {.s = &s, .place = open_place(on->device, on->kind)};
  raise_scene(&c, type);
  for (size_t i = 0; i < PLAYS; i++) {
    play_once(&c);
    step++;
  }
  strike_scene(&c);
  close_ground(c.place);
}

static void play_on(void) {
  configure_sim();
  for (step = 0; step < STEPS;)
    play_one_whole();
}

static int seeds_here(void) {
  return is_on_driver() ? 2 : EFFORT(4, 2);
}

TEST_LOOP(rows_of_any_shape, ON_GROUNDS(seeds_here())) {
  static const size_t rank_counts[] = {2, 3, 1, 5};
  seed = (uint64_t)_i + 1;
  run_ranks(rank_counts[_i % 4], "random rows", play_on);
}
