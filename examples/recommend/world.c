// Draws by number: each has a generator of its own, so that any rank can make
// any pair, and a training that is begun again goes on with the same ones.
#include "world.h"

#include <math.h>

#include "nets/random.h"

enum { TASTES = 4, PARTS_HELD_OUT = 10 };

static const double exponent = 1.05;  // of Zipf's law

typedef enum stream { USERS, ITEMS, LEARNED, HELD_OUT, SHOWN } stream;

// The |number|th generator of |of|.
static net_random generator(const world *w, stream of, uint64_t number) {
  net_random seeds = {w->seed * 8 + of};
  net_random own = {net_random_bits(&seeds) + number};
  return (net_random){net_random_bits(&own)};
}

// Number k of |count| comes about 1 / k^exponent as often as the first. Those
// that come often lie anywhere: the factor is a prime that is larger than any
// count.
static size_t draw_zipf(net_random *random, size_t count) {
  const double power = 1 - exponent;
  double most = pow((double)count + 1, power);
  double x = pow(1 + net_random_unit(random) * (most - 1), 1 / power);
  size_t k = (size_t)x - 1 < count ? (size_t)x - 1 : count - 1;
  return (size_t)(k * UINT64_C(2654435761) % count);
}

// --- likeness ----------------------------------------------------------------

static void find_tastes(const world *w, stream of, size_t number,
                        double out[TASTES]) {
  net_random random = generator(w, of, number);
  double sum = 0;
  for (size_t i = 0; i < TASTES; i++) {
    out[i] = net_random_bell(&random);
    sum += out[i] * out[i];
  }
  for (size_t i = 0; i < TASTES; i++)
    out[i] /= sqrt(sum);
}

double world_likeness(const world *w, pair p) {
  double user[TASTES], item[TASTES], sum = 0;
  find_tastes(w, USERS, p.user, user);
  find_tastes(w, ITEMS, p.item, item);
  for (size_t i = 0; i < TASTES; i++)
    sum += user[i] * item[i];
  return sum;
}

// --- pairs -------------------------------------------------------------------

static bool is_held_out(const world *w, pair p) {
  net_random both = generator(w, HELD_OUT, p.user * w->items + p.item);
  return net_random_bits(&both) % PARTS_HELD_OUT == 0;
}

static bool takes(const world *w, net_random *random, pair p) {
  double odds = exp(8 * world_likeness(w, p) - 4);
  return net_random_unit(random) < odds / (1 + odds);
}

pair world_pair(const world *w, bool held_out, uint64_t number) {
  net_random random = generator(w, held_out ? HELD_OUT : LEARNED, number);
  pair p;
  do {
    p.user = draw_zipf(&random, w->users);
    p.item = draw_zipf(&random, w->items);
  } while (is_held_out(w, p) != held_out || !takes(w, &random, p));
  return p;
}

size_t world_item(const world *w, uint64_t number) {
  net_random random = generator(w, SHOWN, number);
  return draw_zipf(&random, w->items);
}
