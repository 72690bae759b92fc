// Loads of any kind, held against the model: few rows or very many, large or
// small, of one rank, of each its own or of all, where some ranks have none and
// some ask for none. Drawn at random, the same at all ranks.
#include "rows_kit.h"

enum { CASES = EFFORT(16, 6), CASES_ON_DRIVER = 6, RUNS = EFFORT(3, 1) };

// What is tested; set before ranks are forked.
static struct {
  const ground *on;
  uint64_t seed;
} asked;

static size_t number;  // of the case

// A number from |least| to |most|.
static size_t draw(uint64_t what, size_t least, size_t most) {
  MUST(least <= most && most != SIZE_MAX);
  uint64_t x = mix(mix(asked.seed, number), what);
  return least + (size_t)(x % (most - least + 1));
}

// --- a shape ---------------------------------------------------------------

static tarn_dtype draw_dtype(uint64_t what, bool real) {
  static const tarn_dtype reals[] = {TARN_DTYPE_F64, TARN_DTYPE_F32,
                                     TARN_DTYPE_F16, TARN_DTYPE_BF16};
  static const tarn_dtype whole[] = {
      TARN_DTYPE_I64, TARN_DTYPE_I32, TARN_DTYPE_I16, TARN_DTYPE_I8,
      TARN_DTYPE_U64, TARN_DTYPE_U32, TARN_DTYPE_U16, TARN_DTYPE_U8};
  return real ? reals[draw(what, 0, 3)] : whole[draw(what, 0, 7)];
}

static void draw_dtypes(shape *s) {
  bool real = draw(1, 0, 1) == 0;
  s->table = draw_dtype(2, real);
  s->dense = draw(3, 0, 1) == 0 ? s->table : draw_dtype(4, real);
  s->index = draw(5, 0, 1) == 0 ? TARN_DTYPE_I32 : TARN_DTYPE_I64;
}

// Few rows, rows beyond what goes at a time, more indices than go at a time, or
// something between.
static void draw_sizes(shape *s) {
  switch (draw(6, 0, 7)) {
    case 0:
      s->rows = draw(7, 1, 1 + my.ranks);
      s->width = draw(8, 0, 3);
      s->count = 20;
      break;
    case 1:
      s->rows = draw(7, 1, 6);
      s->width = draw(8, 30000, 70000);
      s->count = 3;
      break;
    case 2:
      s->rows = draw(7, 1000, 30000);
      s->width = draw(8, 0, 2);
      s->count = 40000;
      break;
    default:
      s->rows = draw(7, 1, 900);
      s->width = draw(8, 0, 80);
      s->count = draw(9, 1, 1500);
  }
}

static void draw_rest(shape *s) {
  size_t width = s->width > 0 ? s->width : SIZE_MAX;
  s->gap = draw(10, 0, 2) == 0 ? draw(11, 1, 20) : 0;
  s->trim = draw(12, 0, 2) == 0 ? draw(13, 1, 4) : 0;
  if (s->rows <= 2 * s->trim || width <= 2 * s->trim) s->trim = 0;
  s->bad = draw(14, 0, 3) == 0;
  s->spread = (spread)draw(15, 0, SPREADS - 1);
  s->seed = 1 + draw(16, 0, 1000000);
}

// Some ranks have no rows, one has what is left.
static const size_t *draw_partition(const shape *s, size_t *out) {
  size_t left = s->rows;
  size_t last = draw(18, 0, my.ranks - 1);
  if (draw(17, 0, 1) == 0) return NULL;
  for (size_t r = 0; r < my.ranks; r++) {
    out[r] = draw(19 + r, 0, 2) == 0 ? 0 : draw(30 + r, 0, left);
    left -= out[r];
  }
  out[last] += left;
  return out;
}

// --- a case ----------------------------------------------------------------

static void play_one(tarn_place place) {
  size_t partition[MOST_RANKS];
  shape s = {.text = "drawn"};
  draw_dtypes(&s);
  draw_sizes(&s);
  draw_rest(&s);
  s.partition = draw_partition(&s, partition);
  tarn_whole_type type = type_at(draw(50, 0, TYPES - 1));
  if (draw(51, 0, 1) == 0) type = TARN_WHOLE_DISTRIBUTED;
  scene c = {
      .s = &s, .place = place, .at = draw(52, 0, 1) == 0 ? place : TARN_HOST};
  play_all_actions(&c, type);
}

static void play_many(void) {
  static char text[64];
  configure_sim();
  tarn_place place = open_place(asked.on->device, asked.on->kind);
  my.text = text;
  size_t cases = is_on_driver() ? CASES_ON_DRIVER : CASES;
  for (number = 0; number < cases; number++) {
    snprintf(text, sizeof text, "%s, seed %zu, case %zu", asked.on->text,
             (size_t)asked.seed, number);
    play_one(place);
  }
  close_ground(place);
}

TEST_LOOP(any_load, GROUNDS) {
  static const size_t ranks[] = {2, 4, 3, 7, 5, 1, 6};
  asked.on = ground_at(_i);
  note_mapped("any_load");
  for (size_t i = 0; i < RUNS; i++) {
    asked.seed = (size_t)_i * RUNS + i;
    run_ranks(ranks[asked.seed % 7], asked.on->text, play_many);
  }
}
