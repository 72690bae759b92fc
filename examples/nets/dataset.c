// Waves under noise. Nothing here asks libm, whose last bits differ between
// machines: the wave is a triangle, and directions are a table.
#include "dataset.h"

#include "random.h"

enum { DIRECTIONS = 5 };

// Cosine and sine of 0, 36, 72, 108 and 144 degrees.
static const double directions[DIRECTIONS][2] = {
    {1, 0},
    {0.8090169943749475, 0.5877852522924731},
    {0.3090169943749474, 0.9510565162951536},
    {-0.3090169943749474, 0.9510565162951536},
    {-0.8090169943749475, 0.5877852522924731},
};

static const double wavelengths[2] = {4, 8};  // pixels

// How much is drawn: a turn by up to TURN (its tangent), a stretch by up to
// STRETCH, and the standard deviation of the noise.
static const double TURN = 0.1;
static const double STRETCH = 0.1;
static const double NOISE = 0.3;

// How far the wave advances, in wavelengths, with each pixel.
typedef struct wave {
  double right;
  double down;
} wave;

static double draw_within(net_random *random, double bound) {
  return (2 * net_random_unit(random) - 1) * bound;
}

static wave draw_wave(net_random *random, size_t label) {
  const double *along = directions[label % DIRECTIONS];
  double turn = draw_within(random, TURN);
  double length =
      wavelengths[label / DIRECTIONS] * (1 + draw_within(random, STRETCH));
  return (wave){.right = (along[0] - turn * along[1]) / length,
                .down = (along[1] + turn * along[0]) / length};
}

// From 1 at 0 down to -1 in the middle of each period and up again.
static double triangle(double turns) {
  double rest = turns - (double)(int64_t)turns;
  if (rest < 0) rest += 1;
  return rest < 0.5 ? 1 - 4 * rest : 4 * rest - 3;
}

static void make_channel(const net_dataset *dataset, wave across, double phase,
                         net_random *random, net_real *x) {
  double strength = 0.8 + 0.4 * net_random_unit(random);
  for (size_t row = 0; row < dataset->height; row++) {
    double turns = phase + (double)row * across.down;
    for (size_t column = 0; column < dataset->width; column++) {
      double value =
          strength * triangle(turns + (double)column * across.right) +
          NOISE * net_random_bell(random);
      x[row * dataset->width + column] = (net_real)value;
    }
  }
}

static int32_t make_image(const net_dataset *dataset, net_random *random,
                          net_real *x) {
  size_t label = net_random_bits(random) % NET_CLASSES;
  wave drawn = draw_wave(random, label);
  double phase = net_random_unit(random);
  for (size_t channel = 0; channel < dataset->channels; channel++) {
    make_channel(dataset, drawn, phase, random, x);
    x += dataset->height * dataset->width;
  }
  return (int32_t)label;
}

// A number that no other image of either part has, well mixed: images then
// start at places of the generator's one long cycle that have nothing to do
// with each other.
static net_random image_seed(net_part part, uint64_t index) {
  net_random random = {.state = index << 1 | (part == NET_HELD_OUT)};
  return (net_random){.state = net_random_bits(&random)};
}

void net_batch_make(const net_dataset *dataset, net_part part, uint64_t first,
                    size_t count, net_real *x, int32_t *labels) {
  size_t size = dataset->channels * dataset->height * dataset->width;
  for (size_t i = 0; i < count; i++) {
    net_random random = image_seed(part, first + i);
    labels[i] = make_image(dataset, &random, x + i * size);
  }
}
