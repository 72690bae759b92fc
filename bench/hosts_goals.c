// What gathers over several machines should reach, and what they have reached.
// Which goals there are depends on the link: over one that is slower than the
// processors, nothing is faster than the link.
#include <math.h>

#include "hosts_bench.h"

static const double limited_below_gbs = 0.5;
static const double long_from_us = 1000;

hosts_length hosts_length_of(const hosts_link *link) {
  if (link->round_us >= long_from_us) return HOSTS_LONG;
  return link->both_gbs < limited_below_gbs ? HOSTS_LIMITED : HOSTS_FREE;
}

typedef enum ratio {
  OVER_ALLTOALLV,
  OVER_LINK,
  NEEDED_OVER_WIRE,
} ratio;

typedef struct aim {
  const char *name;
  double goal;
  size_t row_bytes;  // 0: any
  hosts_length length;
  ratio of;
  tarn_whole_type type;
  bool zipf;
  bool is_small;
} aim;

#define DISTRIBUTED TARN_WHOLE_DISTRIBUTED, false
#define HIERARCHICAL TARN_WHOLE_HIERARCHICAL, true

// By Zipf's law those of hierarchical memory, with several ranks on each
// machine; others for uniform indices.
static const aim aims[] = {
    {"gather_over_alltoallv", 1.4, 0, HOSTS_FREE, OVER_ALLTOALLV, DISTRIBUTED,
     false},
    {"gather_over_link", 0.90, 256, HOSTS_LIMITED, OVER_LINK, DISTRIBUTED,
     false},
    {"gather_over_link", 0.95, 1024, HOSTS_LIMITED, OVER_LINK, DISTRIBUTED,
     false},
    {"small_gather_over_alltoallv", 1.5, 0, HOSTS_LONG, OVER_ALLTOALLV,
     DISTRIBUTED, true},
    {"zipf_gather_over_alltoallv", 1.5, 256, HOSTS_FREE, OVER_ALLTOALLV,
     HIERARCHICAL, false},
    {"zipf_gather_needed_over_wire", 1 / 1.05, 256, HOSTS_FREE,
     NEEDED_OVER_WIRE, HIERARCHICAL, false},
};
enum { AIMS = sizeof aims / sizeof *aims };

static bool is_of(const aim *a, const hosts_figure *f, hosts_length length) {
  return f->op == HOSTS_GATHER && f->type == a->type && f->zipf == a->zipf &&
         a->length == length && a->is_small == f->is_small &&
         (a->row_bytes == 0 || a->row_bytes == f->row_bytes);
}

static double value_of(const aim *a, const hosts_figure *f) {
  if (a->of == OVER_LINK) return f->over_link;
  if (a->of == NEEDED_OVER_WIRE) return 1 / f->wire_over_needed;
  return f->over_alltoallv;
}

size_t hosts_goals(const hosts_result *result, hosts_goal *out) {
  size_t count = 0;
  hosts_length length = hosts_length_of(&result->link);
  bool has_several = result->ranks > result->machines;
  for (size_t a = 0; a < AIMS; a++) {
    for (size_t i = 0; i < result->count; i++) {
      const hosts_figure *f = &result->figures[i];
      if (!is_of(&aims[a], f, length) || (aims[a].zipf && !has_several))
        continue;
      out[count++] = (hosts_goal){.name = aims[a].name,
                                  .figure = f,
                                  .value = value_of(&aims[a], f),
                                  .goal = aims[a].goal};
    }
  }
  return count;
}
