// exchange.h - rows that ranks exchange.
//
// Each rank sorts its indices, a piece at a time, by the rank that owns the
// row. It asks the owners for rows, a slot of its staging for each ask, and has
// several asks under way. At the same time it serves what others ask of it:
//
//   slot   | ask | list | rows |
//
//   ask    whose rows, how many, and which of their elements
//   list   row numbers, counted from the owner's first row
//   rows   in the order of the list: the owner writes them (gather) or reads
//          them (scatter, scatter-add)
//
// An ask goes to the owner in one of two ways:
//
//   near   ranks that share memory map each other's staging. The asker sets the
//          bit of the slot on the owner's board; the owner works in the slot,
//          and marks it as served
//   far    ask and list, and with a scatter the rows, are messages to the
//          owner, which gathers into memory of its own and answers by a message
//
// A gather of few rows asks far ranks before ranks have agreed on the call
// (exchange_open.c).
//
// A gather of hierarchical memory in parts asks near ranks for nothing, since
// it reaches their rows, and far ones once for each row, for all ranks of the
// machine (exchange_buy.c).
//
// Ranks go on without each other: each is in one loop, in which it serves,
// places what has come, asks, or moves rows of its own part, whatever can be
// done next (exchange_loop.c). A rank that asks no more says so to every other;
// when all have, and all that it asked for has come, it returns.
//
// Sums have an order: an owner adds the rows of rank 0 first, then those of
// rank 1, and so on.
#ifndef TARN_WHOLE_EXCHANGE_H_
#define TARN_WHOLE_EXCHANGE_H_

#include "whole/exchange_sort.h"
#include "whole/exchange_staging.h"
#include "whole/rows.h"

enum {
  TARN__UNDER_WAY = 64 << 10,   // rows that a rank asks for at a time, at most
  TARN__OWN_SHARE = 256 << 10,  // bytes of own rows that are moved at a time,
  TARN__PAGED_SHARE = 8 << 20,  // ... of those that a pager brings,
  TARN__PAGED_ROWS = 32768,     // ... and how many of those, at most
  TARN__FAR_SHARE = 64 << 10,   // ... while messages have to be passed on
  TARN__SERVINGS = 32,          // asks of far ranks that are served at a time
  TARN__EARLY = 1024,           // rows that are asked for before ranks agree
};

// --- kept between calls ----------------------------------------------------

// Elements of rows: all, or as many as fit into a slot.
typedef struct tarn__whole_span {
  size_t element;  // the first
  size_t width;
  size_t row_bytes;  // in a slot
} tarn__whole_span;

// A slot of this rank, in which it asks.
typedef struct tarn__whole_posted {
  bool open;
  bool handed;   // bought rows have come, and takers know
  size_t rank;   // that is asked
  size_t piece;  // where the piece begins that the positions are of
  size_t count;  // rows
  tarn__whole_span span;
  int32_t *positions;  // in the piece
  tarn__whole_letter letter;
} tarn__whole_posted;

typedef enum tarn__whole_stage {
  TARN__IDLE,
  TARN__HEARS,    // an ask is to come
  TARN__READS,    // its list is to come
  TARN__ANSWERS,  // its rows are on their way
  TARN__DRAINS,   // the list is to come of an opening that nobody needs
} tarn__whole_stage;

// The ask of a far rank.
typedef struct tarn__whole_serving {
  tarn__whole_stage stage;
  bool opens;       // it hears the openings
  size_t speaker;   // ... of this rank
  uint64_t number;  // in the order in which asks came
  tarn__whole_letter letter;
  unsigned char *room;
} tarn__whole_serving;

enum { TARN__MESSAGES_OF_SLOT = 3 };  // ask, list, rows

// Asks to and of ranks that share no memory with this one.
typedef struct tarn__whole_far {
  size_t count;  // of such ranks; 0: there are no messages
  tarn__whole_serving servings[TARN__SERVINGS];
  void *messages[TARN__SERVINGS + TARN__MOST_SLOTS * TARN__MESSAGES_OF_SLOT];
  size_t greeted;       // ranks, far or not, whose openings are heard
  size_t opened;        // far ranks with no openings left
  size_t said_goodbye;  // of them
  void **notes;         // two for each rank: an opening without rows, and
                        // that this one asks no more
  tarn__whole_letter opening;  // which all of them send
  tarn__whole_ask goodbye;     // likewise
  uint64_t *finished;          // ranks: as on a board
} tarn__whole_far;

// Lists of rows of other machines.
typedef struct tarn__whole_wants {
  size_t most;            // rows of each; 0: there are none
  bool fit;               // in the exchange that begins
  unsigned char **bases;  // of each rank of this machine
} tarn__whole_wants;

// The part of the list of a rank that one buyer is to buy.
typedef struct tarn__whole_list {
  const uint64_t *rows;  // ascending
  const int32_t *positions;
  size_t count;
} tarn__whole_list;

// A row in a slot, and where it goes.
typedef struct tarn__whole_match {
  uint32_t position;
  uint32_t staged;
} tarn__whole_match;

// An exchange under way.
typedef struct tarn__whole_course {
  tarn_whole *whole;
  struct tarn__whole_exchange *kept;
  const tarn__whole_rows_order *order;
  tarn_dtype dtype;       // of rows in a slot
  tarn__failure failure;  // of this rank's own; then nothing is moved any more
  bool moved;             // something, in this turn of the loop

  // How it begins.
  uint64_t call;  // the same number at all ranks
  bool opens;     // ranks begin with openings
  bool opened;    // this one has sent them, or has none to send
  bool agreed;    // with all others

  // What this rank asks for.
  tarn__whole_span span;
  size_t end;         // of the elements
  size_t begun;       // positions that have been sorted, or are
  size_t piece;       // where the piece begins that is sorted
  size_t open;        // slots
  uint64_t asks;      // so far
  size_t next;        // the rank to ask next
  size_t machine;     // of several copies: whose is asked for now,
  size_t copies;      // and how many are to come after it
  bool asked_all;     // of it, nothing is left to ask for or to move
  bool said_goodbye;  // and far ranks know
  bool said_near;     // likewise those of this machine

  // What it buys for the ranks of its machine; then |asked_all| is of rows
  // that it reaches.
  bool buys;
  bool bought_all;
  tarn__whole_span bought;  // width 0: not begun

  // Whom it waits for, and the pulse of that rank.
  size_t awaited;
  uint64_t beat;

  // What others ask of it.
  size_t turn;     // scatter-add: the rank whose rows are added now
  uint64_t heard;  // asks of far ranks
} tarn__whole_course;

typedef struct tarn__whole_exchange {
  tarn__whole_course course;
  tarn_comm *comm;
  size_t ranks;
  bool by_collectives;        // there are far ranks, and no messages
  uint64_t serial;            // of exchanges
  tarn__whole_sorted sorted;  // whose arrays are below
  tarn__whole_staging staging;
  tarn__whole_far far;
  unsigned char *serving_room;  // NULL: none
  bool buys;                    // gathers do, where lists fit
  tarn__whole_wants wants;
  struct tarn__whole_lane *lanes;  // ranks * those of this machine; NULL: none
  unsigned char *bounce;           // a slot's rows; NULL: none
  // Of rows that a pager brings; NULL: none.
  struct tarn__whole_windows *windows;
  bool given_up;             // messages are left, whose data has to stay
  tarn_list node;            // then: until the process ends
  uint32_t *places;          // ranks: its number on this machine;
                             // TARN__FAR: it is on another
  const size_t *near_ranks;  // the ranks of this machine; NULL: all
  size_t self;               // ... of a rank that is alone
  size_t *offsets;           // ranks + 1: of one of several copies
  size_t own_first;          // the first row of this rank's part
  size_t own_rows;
  tarn__whole_posted posted[TARN__MOST_SLOTS];
  int32_t positions[TARN__UNDER_WAY];
  uint32_t regions[TARN__REGIONS + 1];
  uint32_t homes[TARN__PIECE];
  int64_t indices[TARN__PIECE];
  uint64_t entries[TARN__PIECE];
  size_t numbers[];  // room for what is of each rank
} tarn__whole_exchange;

#define TARN__FAR UINT32_MAX

// The number in the communicator of a rank of this machine.
static inline size_t tarn__near_rank(const tarn__whole_exchange *kept,
                                     size_t near) {
  return kept->near_ranks != NULL ? kept->near_ranks[near] : near;
}

// --- of a course ----------------------------------------------------------

static inline bool tarn__course_gathers(const tarn__whole_course *c) {
  return c->order->action == TARN__ROWS_GATHER;
}

static inline bool tarn__course_adds(const tarn__whole_course *c) {
  return c->order->action == TARN__ROWS_SCATTER_ADD;
}

// The first row of rank |rank|, and how many it has, as far as this rank is
// concerned.
static inline size_t tarn__course_first(const tarn__whole_course *c,
                                        size_t rank) {
  return rank == c->whole->rank ? c->kept->own_first
                                : c->kept->sorted.firsts[rank];
}

static inline size_t tarn__course_rows(const tarn__whole_course *c,
                                       size_t rank) {
  const size_t *firsts = c->kept->sorted.firsts + rank;
  return rank == c->whole->rank ? c->kept->own_rows : firsts[1] - firsts[0];
}

// Sorted rows of |rank| that are to be asked for.
static inline size_t tarn__course_left(const tarn__whole_course *c,
                                       size_t rank) {
  return c->kept->sorted.ends[rank] - c->kept->sorted.next[rank];
}

// Bytes of a number in a list.
static inline size_t tarn__course_number(const tarn__whole_course *c) {
  return c->kept->sorted.narrow ? sizeof(int32_t) : sizeof(int64_t);
}

// Number |k| of a list; one that is negative is larger than that of any row.
static inline uint64_t tarn__course_number_at(const tarn__whole_course *c,
                                              const void *numbers, size_t k) {
  if (c->kept->sorted.narrow) return (uint32_t)((const int32_t *)numbers)[k];
  return (uint64_t)((const int64_t *)numbers)[k];
}

// Bytes of a list of |count| numbers: the rows behind it begin in a cache line.
static inline size_t tarn__course_list(const tarn__whole_course *c,
                                       size_t count) {
  return (count * tarn__course_number(c) + 63) & ~(size_t)63;
}

// --- exchange_move.c -------------------------------------------------------

// Moves |count| rows of the part of |owner|, which is mapped here, to (gather)
// or from |staged|. |numbers| are those of |rank|, and have 32 bits if no rank
// needs more, otherwise 64. Those of this rank itself may be out of range
// (gather).
//
// TARN_E_CORRUPT  a number of another rank is out of range; no row was moved.
// Errors of a sink or a pager.
TARN_MUST_CHECK tarn_status tarn__move_owned(const tarn__whole_course *c,
                                             const tarn__whole_span *span,
                                             size_t owner, size_t rank,
                                             const void *numbers, size_t count,
                                             unsigned char *staged);

// Moves the dense rows of |posted| from (scatter) or to (gather) |staged|.
TARN_MUST_CHECK tarn_status tarn__move_dense(const tarn__whole_course *c,
                                             tarn__rows_action action,
                                             const tarn__whole_posted *posted,
                                             unsigned char *staged);

// Moves the next |count| sorted rows of the part of |rank|, which is mapped
// here, by the host. Errors of a sink or a pager.
TARN_MUST_CHECK tarn_status tarn__move_mapped(const tarn__whole_course *c,
                                              size_t rank, size_t count);

// Moves rows of |staged| to dense rows: as many as a slot has room for, at
// most.
TARN_MUST_CHECK tarn_status tarn__move_matches(const tarn__whole_course *c,
                                               const tarn__whole_span *span,
                                               const tarn__whole_match *matches,
                                               size_t count,
                                               const unsigned char *staged);

// --- exchange_sink.c -------------------------------------------------------

// Hands |count| rows of |staged| to the sink; |numbers|, as above, have been
// checked. Errors of the sink.
//
// TARN_E_UNSUPPORTED  a slot has no room for whole rows.
TARN_MUST_CHECK tarn_status tarn__sink_staged(const tarn__whole_course *c,
                                              const tarn__whole_span *span,
                                              const void *numbers, size_t count,
                                              const unsigned char *staged);

// The same for |entries| of this rank's own rows, whose dense rows the host
// reaches.
TARN_MUST_CHECK tarn_status tarn__sink_entries(const tarn__whole_course *c,
                                               const uint64_t *entries,
                                               size_t count);

// --- exchange_paged.c ------------------------------------------------------

// What the exchanges of a whole that has a pager need besides. TARN_E_NOMEM.
TARN_MUST_CHECK tarn_status tarn__paged_keep(tarn__whole_exchange *kept);
void tarn__paged_drop(tarn__whole_exchange *kept);

// Moves |count| rows of this rank's part, which has a pager, to or from
// |staged|; |numbers| as above. Errors of the pager.
TARN_MUST_CHECK tarn_status tarn__paged_staged(const tarn__whole_course *c,
                                               const tarn__whole_span *span,
                                               const void *numbers,
                                               size_t count,
                                               unsigned char *staged);

// The same for |entries|, all good ones, whose dense rows the host reaches.
TARN_MUST_CHECK tarn_status tarn__paged_entries(const tarn__whole_course *c,
                                                const uint64_t *entries,
                                                size_t count);

// --- exchange_ask.c --------------------------------------------------------

// Begins, with element |element| of the rows.
void tarn__ask_begin(tarn__whole_course *c, size_t element);

// Asks |rank| for the next rows, in |slot|, which is not open: for about as
// many with each ask, and as many as there is room for. |opens|: by an opening.
TARN_MUST_CHECK tarn_status tarn__ask_next(tarn__whole_course *c, size_t rank,
                                           size_t slot, bool opens);

// The elements of a slot's rows, from |element| on.
tarn__whole_span tarn__ask_span(const tarn__whole_course *c, size_t element);

// A slot that is not open; their number if there is none.
size_t tarn__ask_find_free(const tarn__whole_course *c);

size_t tarn__ask_open_with(const tarn__whole_course *c, size_t rank);

// Places rows that have come; asks for more; moves some of those that this rank
// reaches itself. |c->moved|: there were any.
TARN_MUST_CHECK tarn_status tarn__ask_place(tarn__whole_course *c);
TARN_MUST_CHECK tarn_status tarn__ask_more(tarn__whole_course *c);
TARN_MUST_CHECK tarn_status tarn__ask_own(tarn__whole_course *c);

// Turns to the copy of the next machine. The course begins with the last one.
void tarn__ask_next_copy(tarn__whole_course *c);

// Sorts the next piece, if nothing is left of the last one.
TARN_MUST_CHECK tarn_status tarn__ask_sort(tarn__whole_course *c);

// Writes the next |count| rows of |rank|'s into |room|: the list, and the dense
// rows if they are for the owner.
TARN_MUST_CHECK tarn_status tarn__ask_fill(tarn__whole_course *c, size_t rank,
                                           size_t count,
                                           tarn__whole_posted *posted,
                                           unsigned char *room);

// Places the rows of |posted| that stand in |room|.
TARN_MUST_CHECK tarn_status tarn__ask_put(const tarn__whole_course *c,
                                          const tarn__whole_posted *posted,
                                          unsigned char *room);

// As tarn__ask_own; where the host cannot touch both ends, by way of |room|.
TARN_MUST_CHECK tarn_status tarn__ask_own_by(tarn__whole_course *c,
                                             tarn__whole_posted *posted,
                                             unsigned char *room);

// Asks no more.
void tarn__ask_stop(tarn__whole_course *c);

// --- exchange_serve.c ------------------------------------------------------

// Rows that an ask may have, if each has |row_bytes|.
size_t tarn__course_most(const tarn__whole_course *c, size_t row_bytes);

// Serves what ranks of this machine have asked.
TARN_MUST_CHECK tarn_status tarn__serve_near(tarn__whole_course *c);

// Whether a rank of this machine has asked for all that it wants, and got it.
bool tarn__serve_is_done_with(const tarn__whole_course *c, size_t near);

// Moves |numbers| and rows of |ask| of |rank|, after it was checked.
TARN_MUST_CHECK tarn_status tarn__serve_one(const tarn__whole_course *c,
                                            size_t rank,
                                            const tarn__whole_ask *ask,
                                            unsigned char *room);

// Whether an ask of |rank| makes sense. TARN_E_CORRUPT: it does not.
TARN_MUST_CHECK tarn_status tarn__serve_check(const tarn__whole_course *c,
                                              size_t rank,
                                              const tarn__whole_ask *ask);

// --- exchange_wants.c ------------------------------------------------------

// Says to the ranks of this machine that this one has |count| indices.
void tarn__wants_say(tarn__whole_exchange *kept, size_t count);

// Makes room for the indices that all ranks of this machine have said.
// |wants.fit|, the same at all of them, says whether there is. Collective.
//
// TARN_E_PEER_LOST, TARN_E_TIMEOUT  the communicator is broken.
TARN_MUST_CHECK tarn_status tarn__wants_fit(tarn_whole *whole,
                                            tarn__whole_exchange *kept);
void tarn__wants_drop(tarn__whole_exchange *kept);

// In a child of fork, which keeps the mappings.
void tarn__wants_forget(tarn__whole_exchange *kept);

// Lists what this rank wants of other machines.
//
// Cost: O(indices).
TARN_MUST_CHECK tarn_status tarn__wants_list(tarn__whole_course *c);

// Whether rank |near| of this machine has listed what it wants.
bool tarn__wants_are_listed(const tarn__whole_exchange *kept, size_t near);

// Then: what |buyer| is to buy for it.
tarn__whole_list tarn__wants_of(const tarn__whole_exchange *kept, size_t near,
                                size_t buyer);

// The first entry of |list| whose row is |row| or above.
size_t tarn__wants_from(const tarn__whole_list *list, uint64_t row);

// --- exchange_buy.c --------------------------------------------------------

// Bytes of |kept->lanes|.
size_t tarn__buy_lanes_size(size_t ranks, size_t near);

// Hands rows on that have come; asks for more; takes those of other buyers.
TARN_MUST_CHECK tarn_status tarn__buy_place(tarn__whole_course *c);
TARN_MUST_CHECK tarn_status tarn__buy_more(tarn__whole_course *c);
TARN_MUST_CHECK tarn_status tarn__buy_take(tarn__whole_course *c);

// Whether all that it buys has come and was offered to all takers.
bool tarn__buy_has_come(const tarn__whole_course *c);

// A rank that a buyer waits for; the number of ranks: none.
size_t tarn__buy_find_awaited(const tarn__whole_course *c);

// --- exchange_far.c --------------------------------------------------------

// Whether nothing is on its way of an exchange before this one.
TARN_MUST_CHECK tarn_status tarn__far_is_settled(tarn__whole_exchange *kept,
                                                 bool *out_settled);

// Memory for serving far ranks, of which there are |kept->far.count|.
TARN_MUST_CHECK tarn_status tarn__far_make(tarn__whole_exchange *kept);

// Sends the ask in |slot|.
TARN_MUST_CHECK tarn_status tarn__far_ask(tarn__whole_course *c, size_t slot);

// Sends |rank| an opening without rows.
TARN_MUST_CHECK tarn_status tarn__far_open(tarn__whole_course *c, size_t rank,
                                           tarn__whole_then then);

// Ranks agree: awaits the rows that were asked for before.
TARN_MUST_CHECK tarn_status tarn__far_await(tarn__whole_course *c);

// Whether the rows of |slot| have come (gather), or have gone.
bool tarn__far_is_served(const tarn__whole_course *c, size_t slot);

// Tells far ranks that this one asks no more.
TARN_MUST_CHECK tarn_status tarn__far_say_goodbye(tarn__whole_course *c);

// Serves what far ranks ask.
TARN_MUST_CHECK tarn_status tarn__far_serve(tarn__whole_course *c);

// Whether |rank| has asked for all that it wants, and its rows are written.
bool tarn__far_is_done_with(const tarn__whole_course *c, size_t rank);

// Whether nothing of this rank is on its way any more.
TARN_MUST_CHECK tarn_status tarn__far_is_quiet(tarn__whole_course *c,
                                               bool *out_quiet);

// After a failure: leaves what is on its way.
void tarn__far_drop(tarn__whole_exchange *kept);

// --- exchange_open.c -------------------------------------------------------

// Just before ranks agree, in an exchange of headers in which few rows are
// asked for. The table has been looked at.
void tarn__open_begin(tarn__whole_exchange *kept, tarn_whole *whole,
                      const tarn__whole_rows_order *order);

// After that: goes on with the course, or begins it.
void tarn__open_course(tarn__whole_exchange *kept, tarn_whole *whole,
                       const tarn__whole_rows_order *order);

// Tells far ranks what to expect, unless that was done. Until |c->opened|
// nothing is to be asked: memory of an earlier call is in use.
TARN_MUST_CHECK tarn_status tarn__open_all(tarn__whole_course *c);

// --- exchange_rounds.c -----------------------------------------------------

// Sets what a course needs of the staging, if there is none.
void tarn__rounds_lay_out(tarn__whole_exchange *kept);

// The same, between ranks that have neither common memory nor messages.
TARN_MUST_CHECK tarn_status tarn__rounds_go(tarn__whole_course *course);

#endif  // TARN_WHOLE_EXCHANGE_H_
