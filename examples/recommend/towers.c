// The softmax over the items of a slice, for each of its users:
//
//   p[i][j] = exp(score(i, j)) / sum over k of exp(score(i, k))
//   loss    = sum over i of -log p[i][i]
//   slope of score(i, j) = p[i][j], less 1 where j is i
#include "towers.h"

#include <math.h>
#include <string.h>

double towers_score(const vector *user, const vector *item) {
  double sum = 0;
  for (size_t i = 0; i < WIDTH; i++)
    sum += (double)user->at[i] * item->at[i];
  return sum;
}

// Another pair of the slice with the same item is no example of what the user
// does not like.
static void score(const pair *pairs, const vector *users, const vector *items,
                  size_t i, double out[SLICE]) {
  for (size_t j = 0; j < SLICE; j++) {
    bool again = j != i && pairs[j].item == pairs[i].item;
    out[j] = again ? -INFINITY : towers_score(&users[i], &items[j]);
  }
}

// Scores become slopes. Returns the loss.
static double choose(double scores[SLICE], size_t own) {
  double most = scores[own], sum = 0, of_own = scores[own];
  for (size_t j = 0; j < SLICE; j++)
    most = scores[j] > most ? scores[j] : most;
  for (size_t j = 0; j < SLICE; j++)
    sum += scores[j] = exp(scores[j] - most);
  for (size_t j = 0; j < SLICE; j++)
    scores[j] /= sum;
  scores[own] -= 1;
  return log(sum) + most - of_own;
}

double towers_learn(const pair *pairs, vector *users, vector *items) {
  vector to_users[SLICE] = {{{0}}}, to_items[SLICE] = {{{0}}};
  double loss = 0, slopes[SLICE];
  for (size_t i = 0; i < SLICE; i++) {
    score(pairs, users, items, i, slopes);
    loss += choose(slopes, i);
    for (size_t j = 0; j < SLICE; j++) {
      float slope = (float)slopes[j];
      for (size_t k = 0; k < WIDTH; k++) {
        to_users[i].at[k] += slope * items[j].at[k];
        to_items[j].at[k] += slope * users[i].at[k];
      }
    }
  }
  memcpy(users, to_users, sizeof to_users);
  memcpy(items, to_items, sizeof to_items);
  return loss;
}
