// Whole memory, and what uses it, that ranks give up one by one, and end
// together.
//
// To give it up is a mark, which any thread may set. In a collective the ranks
// find what all of them have marked, by numbers, which are the same at all
// ranks; a whole memory comes behind its users. Each rank proposes the lowest
// that it has marked, from a number on:
//
//   rank 0 marked   3   5   7   proposes 3   5   7   none
//   rank 1 marked       5   7            5   5   7   none
//   the highest                          5   5   7   none
//
// What all propose ends. Otherwise the highest is where they go on: a rank that
// proposes it has not marked anything below.
#include "base/hostmem.h"
#include "base/status.h"
#include "whole/whole.h"

typedef struct number {
  uint64_t serial;  // of the whole memory
  uint64_t user;    // of it; ITSELF: the whole memory
} number;

static const uint64_t ITSELF = UINT64_MAX;
static const number NONE = {UINT64_MAX, UINT64_MAX};

typedef struct candidate {
  number number;  // NONE: there is none
  tarn_whole *whole;
  tarn__whole_user *user;  // NULL: the whole memory itself
} candidate;

// --- marks -----------------------------------------------------------------

void tarn_whole_give_up(void *whole) {
  tarn_whole *given = whole;
  if (given != NULL) atomic_store(&given->given_up, true);
}

void tarn__whole_use(tarn_whole *whole, tarn__whole_user *user) {
  user->number = whole->users_made++;
  tarn_list_add_tail(&whole->users, &user->node);
}

void tarn__whole_leave(tarn__whole_user *user) {
  tarn_list_del(&user->node);
}

// --- what may end at this rank ---------------------------------------------

static bool user_may_end(const tarn__whole_user *user) {
  bool busy = user->own != NULL && user->own->fetch != NULL;
  return atomic_load(&user->given_up) && !busy;
}

static bool may_end(const tarn_whole *whole) {
  return atomic_load(&whole->given_up) && tarn_list_empty(&whole->users) &&
         whole->fetch == NULL;
}

static bool is_below(number a, number b) {
  return a.serial < b.serial || (a.serial == b.serial && a.user < b.user);
}

static void consider(candidate *lowest, number from, candidate other) {
  if (is_below(other.number, from)) return;
  if (is_below(other.number, lowest->number)) *lowest = other;
}

// The lowest that may end, of those from |from| on.
static candidate lowest_from(tarn_comm *comm, number from) {
  candidate lowest = {.number = NONE};
  tarn_list *node = NULL;
  tarn_list *inner = NULL;
  tarn_list_for_each (node, tarn__comm_holders(comm)) {
    tarn_whole *whole = tarn_list_entry(node, tarn_whole, node);
    tarn_list_for_each (inner, &whole->users) {
      tarn__whole_user *user = tarn_list_entry(inner, tarn__whole_user, node);
      number its = {whole->serial, user->number};
      if (user_may_end(user))
        consider(&lowest, from, (candidate){its, whole, user});
    }
    number own = {whole->serial, ITSELF};
    if (may_end(whole)) consider(&lowest, from, (candidate){own, whole, NULL});
  }
  return lowest;
}

// --- the end ---------------------------------------------------------------

static tarn_status end_user(tarn__whole_user *user, tarn__whole_take *take,
                            tarn_status met) {
  tarn_status status = TARN_OK;
  tarn__whole_leave(user);
  if (user->own != NULL) status = take(user->own, met);
  user->ended(user);
  return status;
}

// What fails is lost, unless it breaks the communicator.
static void end_one(const candidate *c, tarn__whole_take *take,
                    tarn_status met) {
  tarn_status status =
      c->user != NULL ? end_user(c->user, take, met) : take(c->whole, met);
  if (status == TARN_OK || status == met) return;
  tarn__log(TARN_LOG_WARN, "what was given up of whole %llu: %s",
            (unsigned long long)c->number.serial, tarn_last_error());
}

static void end_alone(tarn_comm *comm, tarn__whole_take *take,
                      tarn_status broken) {
  const number first = {0, 0};
  for (candidate c = lowest_from(comm, first); c.whole != NULL;
       c = lowest_from(comm, first)) {
    end_one(&c, take, broken);
  }
}

static number after(number n) {
  if (n.user == ITSELF) return (number){n.serial + 1, 0};
  return (number){n.serial, n.user + 1};
}

static number highest_of(const number *numbers, size_t count, bool *out_same) {
  number highest = numbers[0];
  *out_same = true;
  for (size_t r = 1; r < count; r++) {
    bool below = is_below(highest, numbers[r]);
    *out_same = *out_same && !below && !is_below(numbers[r], highest);
    if (below) highest = numbers[r];
  }
  return highest;
}

// |proposals| has room for a number of each rank.
static tarn_status end_agreed(tarn_comm *comm, tarn__whole_take *take,
                              number *proposals) {
  bool same = false;
  number from = {0, 0};
  candidate lowest = {.number = NONE};
  do {
    lowest = lowest_from(comm, from);
    TARN__TRY(tarn_comm_allgather(comm, &lowest.number, sizeof lowest.number,
                                  proposals));
    from = highest_of(proposals, tarn_comm_size(comm), &same);
    if (!same || lowest.whole == NULL) continue;
    end_one(&lowest, take, TARN_OK);
    TARN__TRY(tarn__comm_state(comm));
    from = after(from);
  } while (is_below(from, NONE));
  return TARN_OK;
}

tarn_status tarn__whole_end_given_up(tarn_comm *comm, tarn__whole_take *take) {
  size_t ranks = tarn_comm_size(comm);
  number *proposals = tarn__host_array(ranks, sizeof *proposals);
  tarn_status status = proposals != NULL ? TARN_OK : TARN_E_NOMEM;
  status = tarn_comm_agree(comm, status);
  if (status == TARN_OK && proposals != NULL)
    status = end_agreed(comm, take, proposals);
  tarn__host_free_array(proposals, ranks, sizeof *proposals);
  tarn_status broken = tarn__comm_state(comm);
  if (broken != TARN_OK && broken != TARN_E_STATE)
    end_alone(comm, take, broken);
  return status;
}
