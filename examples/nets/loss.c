// Softmax and cross-entropy. Scores are few, so all is computed in double; a
// row's highest score is taken from the others first, so that exp() stays in
// range.
#include <assert.h>
#include <math.h>

#include "layers.h"

static size_t highest(size_t classes, const net_real *scores) {
  size_t best = 0;
  for (size_t i = 1; i < classes; i++)
    if (scores[i] > scores[best]) best = i;
  return best;
}

// The logarithm of the sum of exp(score - top) over a row.
static double log_sum(size_t classes, const net_real *scores, double top) {
  double sum = 0;
  for (size_t i = 0; i < classes; i++)
    sum += exp((double)scores[i] - top);
  return log(sum);
}

// The row's softmax, less one at the label, as a share of the batch.
static void row_slope(size_t classes, const net_real *scores, double offset,
                      size_t label, size_t batch, net_real *dscores) {
  for (size_t i = 0; i < classes; i++) {
    double share = exp((double)scores[i] - offset);
    dscores[i] = (net_real)((share - (i == label)) / (double)batch);
  }
}

net_score net_softmax_loss(size_t batch, size_t classes, const net_real *scores,
                           const int32_t *labels, net_real *dscores) {
  net_score score = {.loss = 0, .correct = 0};
  for (size_t row = 0; row < batch; row++) {
    const net_real *at = scores + row * classes;
    size_t label = (size_t)labels[row];
    assert(label < classes);
    size_t best = highest(classes, at);
    double top = (double)at[best];
    double offset = top + log_sum(classes, at, top);
    score.correct += best == label;
    score.loss += (offset - (double)at[label]) / (double)batch;
    if (dscores != NULL)
      row_slope(classes, at, offset, label, batch, dscores + row * classes);
  }
  return score;
}
