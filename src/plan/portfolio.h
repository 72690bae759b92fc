// portfolio.h - searches of several kinds and orders, on several threads.
//
// Which search finds a plan depends on luck: on the order of items and on the
// height. So many are tried for a short time each, one after another and in
// parallel. Each thread has its own searches. A round of tries ends when every
// thread has ended its try, and of two equal plans that of the first thread is
// taken: the result does not depend on which thread was quicker.
#ifndef TARN_PLAN_PORTFOLIO_H_
#define TARN_PLAN_PORTFOLIO_H_

#include "plan/search.h"

typedef enum tarn__plan_kind {
  TARN__PLAN_AT_BOUND = 0,  // in depth, at the proven bound
  TARN__PLAN_BELOW_BEST,    // in depth, below the best plan so far
  TARN__PLAN_IN_BREADTH,    // a beam
  TARN__PLAN_KINDS,
} tarn__plan_kind;

enum { TARN__PLAN_MEMBERS = 2 * TARN__PLAN_ORDERS };

typedef struct tarn__plan_step {
  tarn__plan_kind kind;
  uint64_t capacity;    // units
  uint64_t node_limit;  // of each thread
  uint32_t width;       // of a beam
  // Of the first thread; those of the others follow. Members are numbered from
  // 0 to TARN__PLAN_MEMBERS - 1. In depth the first TARN__PLAN_ORDERS of them
  // go by their orders alone, and the others by what is scarce before.
  uint64_t member;
  uint64_t seed;  // 0: members as they are; else disturbed by it
} tarn__plan_step;

typedef struct tarn__plan_stepped {
  bool found;
  bool proved_none;
  uint64_t nodes;  // of all threads
} tarn__plan_stepped;

typedef struct tarn__plan_portfolio tarn__plan_portfolio;

// |stop| is the caller's; other threads stop when it is asked to, or at its
// deadline. |instance| and |stop| must live as long.
//
// TARN_FULL     the instance is too large to be searched.
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status tarn__plan_portfolio_create(
    const tarn__plan_instance *instance, uint32_t threads,
    tarn__plan_stop *stop, tarn__plan_portfolio **out_portfolio);

// NULL is allowed.
void tarn__plan_portfolio_destroy(tarn__plan_portfolio *portfolio);

// Makes the beams, which take more memory than all else, unless they are there:
// to be called before the first step of that kind. |*out_width| is the widest
// that a beam may be; 0: the instance is too large for any.
//
// TARN_E_NOMEM  no host memory; the portfolio can be used further, in depth.
TARN_MUST_CHECK tarn_status tarn__plan_portfolio_beams(
    tarn__plan_portfolio *portfolio, uint32_t *out_width);

// Each thread makes one try. |offsets|, one per item, is the lowest plan that
// was found.
//
// TARN_E_NOMEM  no host memory; the portfolio can be used further.
TARN_MUST_CHECK tarn_status tarn__plan_portfolio_step(
    tarn__plan_portfolio *portfolio, const tarn__plan_step *step,
    uint64_t *offsets, tarn__plan_stepped *out);

#endif  // TARN_PLAN_PORTFOLIO_H_
