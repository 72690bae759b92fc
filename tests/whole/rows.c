// Gather, scatter and scatter-add of rows of wholes, held against a model: all
// six types, on the host, cpu and simulated devices, with 1 to 7 ranks; dense
// rows at every place that there is.
#include "rows_kit.h"

static const size_t rank_counts[] = {1, 2, 7, 3, 4};
enum { RANK_COUNTS = EFFORT(5, 3) };

static const size_t ten_and_one[] = {10, 1};
static const size_t gaps[] = {0, 120, 0, 1, 0, 0, 79};

#define F64 TARN_DTYPE_F64
#define F32 TARN_DTYPE_F32
#define F16 TARN_DTYPE_F16
#define BF16 TARN_DTYPE_BF16
#define I64 TARN_DTYPE_I64
#define I32 TARN_DTYPE_I32
#define I16 TARN_DTYPE_I16
#define U8 TARN_DTYPE_U8

static const shape shapes[] = {
    {.text = "plain",
     .table = F32,
     .dense = F32,
     .index = I32,
     .rows = 211,
     .width = 16,
     .count = 300},
    {.text = "vector",
     .table = I64,
     .dense = I64,
     .index = I64,
     .rows = 97,
     .count = 160},
    {.text = "wider",
     .table = F16,
     .dense = F32,
     .index = I64,
     .rows = 101,
     .width = 5,
     .count = 90,
     .gap = 4},
    {.text = "narrower",
     .table = F64,
     .dense = BF16,
     .index = I32,
     .rows = 103,
     .width = 7,
     .count = 120},
    {.text = "whole numbers",
     .table = I16,
     .dense = U8,
     .index = I32,
     .rows = 150,
     .width = 3,
     .count = 200,
     .gap = 1},
    {.text = "sub-tensor",
     .table = F32,
     .dense = F64,
     .index = I64,
     .rows = 140,
     .width = 11,
     .count = 200,
     .trim = 3},
    {.text = "trimmed vector",
     .table = U8,
     .dense = I32,
     .index = I32,
     .rows = 140,
     .count = 100,
     .trim = 13},
    {.text = "bad ones passed over",
     .table = F32,
     .dense = F32,
     .index = I64,
     .rows = 60,
     .width = 9,
     .count = 170,
     .bad = true},
    {.text = "fewer rows than ranks",
     .table = F32,
     .dense = F32,
     .index = I32,
     .rows = 2,
     .width = 3,
     .count = 11},
    {.text = "no indices",
     .table = F32,
     .dense = F32,
     .index = I32,
     .rows = 12,
     .width = 3,
     .count = 0},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

// --- playing ---------------------------------------------------------------

static const shape *asked;  // set before ranks are forked; NULL: all

static void play_types(const shape *s, tarn_place place, tarn_place at,
                       tarn_stream *stream) {
  scene c = {.s = s, .place = place, .at = at, .stream = stream};
  my.text = s->text;
  for (size_t t = 0; t < TYPES; t++)
    play_all_actions(&c, type_at(t));
}

// --- every ground ----------------------------------------------------------

static void be_on_every_ground(void) {
  configure_sim();
  for (int g = 0; g < GROUNDS; g++) {
    tarn_place place = open_place(ground_at(g)->device, ground_at(g)->kind);
    for (size_t s = 0; s < SHAPES; s++)
      if (asked == NULL || asked == &shapes[s])
        play_types(&shapes[s], place, TARN_HOST, NULL);
    close_ground(place);
  }
}

// With a few numbers of ranks on a real device, which each rank opens.
static int rank_counts_here(void) {
  return is_on_driver() ? 3 : RANK_COUNTS;
}

TEST_LOOP(all_types_with_all_shapes, ON_GROUNDS(rank_counts_here())) {
  note_mapped("all types with all shapes");
  asked = NULL;
  run_ranks(rank_counts[_i], "all types", be_on_every_ground);
}

// --- every place of dense rows ---------------------------------------------

static const struct {
  const char *device;
  tarn_place_kind kind;
} dense_places[] = {
    {"sim", TARN_PLACE_HOST},         {"sim", TARN_PLACE_UNIFIED},
    {"other sim", TARN_PLACE_DEVICE}, {"other sim", TARN_PLACE_HOST},
    {NULL, TARN_PLACE_HOST},          {"cpu", TARN_PLACE_DEVICE},
    {"sim", TARN_PLACE_DEVICE},       {"real", TARN_PLACE_DEVICE},
    {"real", TARN_PLACE_HOST},        {"real", TARN_PLACE_UNIFIED},
};
// Without a real device the last three cannot be had, and with it the first
// four need not be tried once more.
enum { DENSE_PLACES = 10, REAL_PLACES = 3, SIM_PLACES = 4 };

// Without a stream, and with one of either end.
static void play_streams(const shape *s, tarn_place place, tarn_place at) {
  tarn_device *host = NULL;
  MUST_BE(tarn_device_open("cpu:0", &host), TARN_OK);
  tarn_device *devices[] = {place.device != NULL ? place.device : host,
                            at.device != NULL ? at.device : host};
  play_types(s, place, at, NULL);
  for (size_t i = 0; i < 2; i++) {
    tarn_stream *stream = NULL;
    MUST_BE(tarn_stream_create(devices[i], &stream), TARN_OK);
    play_types(s, place, at, stream);
    MUST_BE(tarn_stream_destroy(stream), TARN_OK);
  }
  MUST_BE(tarn_device_close(host), TARN_OK);
}

static void have_dense_rows_everywhere(void) {
  configure_sim();
  for (int g = 0; g < GROUNDS; g++) {
    tarn_place place = open_place(ground_at(g)->device, ground_at(g)->kind);
    size_t end = DENSE_PLACES - (is_on_driver() ? 0 : REAL_PLACES);
    for (size_t d = is_on_driver() ? SIM_PLACES : 0; d < end; d++) {
      tarn_place at = open_place(dense_places[d].device, dense_places[d].kind);
      if (has_memory(at)) play_streams(&shapes[2], place, at);
      if (has_memory(at) && EFFORT(true, false))
        play_streams(&shapes[7], place, at);
      close_ground(at);
    }
    close_ground(place);
  }
}

WHOLE_LOOP(dense_rows_at_every_place, ON_GROUNDS(1), 2, "dense places",
           have_dense_rows_everywhere)

// --- partitions ------------------------------------------------------------

static void be_parted(void) {
  static const shape two = {.text = "10 and 1",
                            .table = F32,
                            .dense = F32,
                            .index = I32,
                            .rows = 11,
                            .width = 4,
                            .count = 60,
                            .partition = ten_and_one};
  static const shape seven = {.text = "empty ranks",
                              .table = F32,
                              .dense = F16,
                              .index = I64,
                              .rows = 200,
                              .width = 4,
                              .count = 300,
                              .partition = gaps};
  configure_sim();
  for (int g = 0; g < GROUNDS; g++) {
    tarn_place place = open_place(ground_at(g)->device, ground_at(g)->kind);
    play_types(my.ranks == 2 ? &two : &seven, place, TARN_HOST, NULL);
    close_ground(place);
  }
}

TEST_LOOP(partitions_of_ones_own, ON_GROUNDS(1)) {
  run_ranks(2, "10 and 1", be_parted);
  run_ranks(7, "empty ranks", be_parted);
}

// --- many rounds -----------------------------------------------------------

static void go_many_rounds(void) {
  static const shape many = {.text = "many",
                             .table = I32,
                             .dense = I32,
                             .index = I32,
                             .rows = 100003,
                             .width = 2,
                             .count = EFFORT(90000, 36000)};
  static const shape wide = {.text = "wide",
                             .table = F64,
                             .dense = F64,
                             .index = I32,
                             .rows = 9,
                             .width = EFFORT(70001, 33001),
                             .count = 4};
  configure_sim();
  for (int g = 0; g < GROUNDS; g += 2) {
    tarn_place place = open_place(ground_at(g)->device, ground_at(g)->kind);
    play_types(&many, place, TARN_HOST, NULL);
    play_types(&wide, place, TARN_HOST, NULL);
    close_ground(place);
  }
}

WHOLE_LOOP(many_rounds_and_wide_rows, ON_GROUNDS(1), 3, "many rounds",
           go_many_rounds)
