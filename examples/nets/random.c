// Where a net starts from.
#include "random.h"

#include <math.h>

void net_init_kaiming(net_random *random, size_t fan_in, double gain,
                      size_t count, net_real *w) {
  double bound = gain * sqrt(6 / (double)fan_in);
  for (size_t i = 0; i < count; i++)
    w[i] = (net_real)((2 * net_random_unit(random) - 1) * bound);
}
