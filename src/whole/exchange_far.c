// Asks to and of ranks that share no memory with this one, by messages.
//
//   asker                       owner
//   ask, list, (rows) ───────►  hears the ask, reads the list
//                    ◄────────  rows, which it has gathered in its own memory
//   ask of 0 rows    ───────►   the asker asks no more
//
// Messages between two ranks about one thing arrive in order, so rows are the
// answer to the first ask that is not answered yet. A rank hears one ask at a
// time, and only while another rank may ask: so none is left to be heard in the
// end.
//
// Openings (exchange_open.c) and their lists are heard first, of each rank for
// itself: those of a fast rank's next call may be there already.
#include <string.h>

#include "base/hostmem.h"
#include "base/status.h"
#include "whole/exchange.h"

enum { OF_ASK, OF_LIST, OF_ROWS };

static void **message_of(tarn__whole_exchange *kept, size_t slot, int which) {
  return &kept->far.messages[TARN__SERVINGS + slot * TARN__MESSAGES_OF_SLOT +
                             (size_t)which];
}

static bool is_far(const tarn__whole_course *c, size_t rank) {
  return c->kept->places[rank] == TARN__FAR;
}

tarn_status tarn__far_make(tarn__whole_exchange *kept) {
  size_t room = kept->staging.room;
  kept->serving_room = tarn__host_array(TARN__SERVINGS, room);
  if (kept->serving_room == NULL) return TARN_E_NOMEM;
  for (size_t i = 0; i < TARN__SERVINGS; i++)
    kept->far.servings[i].room = kept->serving_room + i * room;
  return TARN_OK;
}

// --- asking ----------------------------------------------------------------

static tarn_status post(const tarn__whole_course *c, tarn_comm_way way,
                        size_t rank, tarn__comm_topic topic, void *data,
                        size_t size, void **out_message) {
  return tarn__comm_post(c->kept->comm, way, rank, topic, data, size,
                         out_message);
}

// The bytes of rows.
static size_t size_of(const tarn__whole_course *c, const tarn__whole_ask *ask) {
  return ask->count * ask->width * tarn_dtype_size(c->dtype);
}

static unsigned char *room_of(const tarn__whole_course *c, size_t slot) {
  const tarn__whole_staging *staging = &c->kept->staging;
  return tarn__staging_slot(staging, staging->self, slot).room;
}

static tarn_status await_rows(const tarn__whole_course *c, size_t slot) {
  const tarn__whole_posted *posted = &c->kept->posted[slot];
  return post(c, TARN_COMM_RECEIVE, posted->rank, TARN__TOPIC_ROWS,
              room_of(c, slot) + posted->letter.ask.list,
              size_of(c, &posted->letter.ask),
              message_of(c->kept, slot, OF_ROWS));
}

static tarn_status send_opening(const tarn__whole_course *c, size_t slot) {
  tarn__whole_letter *letter = &c->kept->posted[slot].letter;
  size_t rank = c->kept->posted[slot].rank;
  size_t list = letter->ask.list;
  bool is_short = list <= TARN__INLINE;
  if (is_short) memcpy(letter->list, room_of(c, slot), list);
  TARN__TRY(post(c, TARN_COMM_SEND, rank, TARN__TOPIC_OPENINGS, letter,
                 sizeof *letter, message_of(c->kept, slot, OF_ASK)));
  if (is_short) return TARN_OK;
  return post(c, TARN_COMM_SEND, rank, TARN__TOPIC_OPENINGS, room_of(c, slot),
              list, message_of(c->kept, slot, OF_LIST));
}

static tarn_status send_ask(const tarn__whole_course *c, size_t slot) {
  tarn__whole_ask *ask = &c->kept->posted[slot].letter.ask;
  size_t rank = c->kept->posted[slot].rank;
  size_t rows = tarn__course_gathers(c) ? 0 : size_of(c, ask);
  TARN__TRY(post(c, TARN_COMM_SEND, rank, TARN__TOPIC_ASKS, ask, sizeof *ask,
                 message_of(c->kept, slot, OF_ASK)));
  return post(c, TARN_COMM_SEND, rank, TARN__TOPIC_LISTS, room_of(c, slot),
              ask->list + rows, message_of(c->kept, slot, OF_LIST));
}

tarn_status tarn__far_ask(tarn__whole_course *c, size_t slot) {
  bool opens = c->kept->posted[slot].letter.ask.then != TARN__NO_OPENING;
  bool awaits = tarn__course_gathers(c) && c->agreed;
  TARN__TRY(opens ? send_opening(c, slot) : send_ask(c, slot));
  return awaits ? await_rows(c, slot) : TARN_OK;
}

// Slots are in the order of their asks: all were free.
tarn_status tarn__far_await(tarn__whole_course *c) {
  c->agreed = true;
  for (size_t i = 0; i < c->kept->staging.slots; i++)
    if (c->kept->posted[i].open) TARN__TRY(await_rows(c, i));
  return TARN_OK;
}

bool tarn__far_is_served(const tarn__whole_course *c, size_t slot) {
  for (int i = OF_ASK; i <= OF_ROWS; i++) {
    if (*message_of(c->kept, slot, i) != NULL) return false;
  }
  return true;
}

tarn_status tarn__far_open(tarn__whole_course *c, size_t rank,
                           tarn__whole_then then) {
  tarn__whole_far *far = &c->kept->far;
  far->opening.ask = (tarn__whole_ask){
      .from = (uint32_t)c->whole->rank, .call = c->call, .then = then};
  return post(c, TARN_COMM_SEND, rank, TARN__TOPIC_OPENINGS, &far->opening,
              sizeof far->opening, &far->notes[2 * rank]);
}

tarn_status tarn__far_say_goodbye(tarn__whole_course *c) {
  tarn__whole_far *far = &c->kept->far;
  far->goodbye = (tarn__whole_ask){.from = (uint32_t)c->whole->rank};
  for (size_t r = 0; far->count > 0 && r < c->whole->ranks; r++) {
    if (!is_far(c, r)) continue;
    TARN__TRY(post(c, TARN_COMM_SEND, r, TARN__TOPIC_ASKS, &far->goodbye,
                   sizeof far->goodbye, &far->notes[2 * r + 1]));
  }
  return TARN_OK;
}

// --- serving ---------------------------------------------------------------

static void **message_of_serving(tarn__whole_exchange *kept, size_t i) {
  return &kept->far.messages[i];
}

static bool has_said_goodbye(const tarn__whole_course *c, size_t rank) {
  return c->kept->far.finished[rank] == c->kept->serial;
}

// Of |rank|, or of any. What is heard of one is an opening.
static tarn_status hear(tarn__whole_course *c, size_t i, size_t rank,
                        tarn__comm_topic topic) {
  tarn__whole_serving *serving = &c->kept->far.servings[i];
  serving->stage = TARN__HEARS;
  serving->opens = topic == TARN__TOPIC_OPENINGS;
  serving->speaker = rank;
  return post(
      c, TARN_COMM_RECEIVE, rank, topic, &serving->letter,
      serving->opens ? sizeof serving->letter : sizeof serving->letter.ask,
      message_of_serving(c->kept, i));
}

// A list that came with its opening is there.
static tarn_status read(tarn__whole_course *c, size_t i,
                        tarn__whole_stage stage, size_t size) {
  tarn__whole_serving *serving = &c->kept->far.servings[i];
  serving->stage = stage;
  serving->number = c->heard++;
  if (serving->opens && size <= TARN__INLINE) {
    memcpy(serving->room, serving->letter.list, size);
    return TARN_OK;
  }
  return post(c, TARN_COMM_RECEIVE, serving->letter.ask.from,
              serving->opens ? TARN__TOPIC_OPENINGS : TARN__TOPIC_LISTS,
              serving->room, size, message_of_serving(c->kept, i));
}

static void note_goodbye(const tarn__whole_course *c, size_t rank) {
  tarn__whole_far *far = &c->kept->far;
  far->finished[rank] = c->kept->serial;
  far->said_goodbye++;
}

static tarn_status begin_to_read(tarn__whole_course *c, size_t i) {
  tarn__whole_serving *serving = &c->kept->far.servings[i];
  const tarn__whole_ask *ask = &serving->letter.ask;
  size_t list = tarn__course_list(c, ask->count);
  serving->stage = TARN__IDLE;
  if (ask->count == 0) return TARN_OK;
  TARN__TRY(tarn__serve_check(c, ask->from, ask));
  return read(c, i, TARN__READS,
              tarn__course_gathers(c) ? list : list + size_of(c, ask));
}

static tarn_status take_ask(tarn__whole_course *c, size_t i) {
  const tarn__whole_ask *ask = &c->kept->far.servings[i].letter.ask;
  if (ask->from >= c->whole->ranks || !is_far(c, ask->from) ||
      has_said_goodbye(c, ask->from)) {
    return tarn__fail(TARN_E_CORRUPT,
                      "whole rows: an ask of a rank %u, which does not ask",
                      (unsigned)ask->from);
  }
  if (ask->count == 0) note_goodbye(c, ask->from);
  return begin_to_read(c, i);
}

// Whether an opening makes sense, of this call or an earlier one.
static bool is_opening(const tarn__whole_course *c,
                       const tarn__whole_serving *serving) {
  const tarn__whole_ask *ask = &serving->letter.ask;
  bool lists = ask->count > 0;
  bool follows = ask->then == TARN__THEN_NOTHING ||
                 ask->then == (lists ? TARN__THEN_OPENS : TARN__THEN_ASKS);
  return ask->from == serving->speaker && ask->call <= c->call && follows &&
         ask->count <= TARN__EARLY && lists == (ask->list > 0) &&
         ask->list <= TARN__EARLY * sizeof(int64_t) &&
         (ask->call < c->call || ask->list == tarn__course_list(c, ask->count));
}

static tarn_status hear_next(tarn__whole_course *c, size_t i) {
  return hear(c, i, c->kept->far.servings[i].speaker, TARN__TOPIC_OPENINGS);
}

// That of a call that failed is left.
static tarn_status take_opening(tarn__whole_course *c, size_t i) {
  tarn__whole_far *far = &c->kept->far;
  const tarn__whole_serving *serving = &far->servings[i];
  const tarn__whole_ask *ask = &serving->letter.ask;
  if (!is_opening(c, serving)) {
    return tarn__fail(TARN_E_CORRUPT, "whole rows: an opening of rank %zu",
                      serving->speaker);
  }
  if (ask->call < c->call) {
    return ask->count > 0 ? read(c, i, TARN__DRAINS, ask->list)
                          : hear_next(c, i);
  }
  far->opened += ask->then != TARN__THEN_OPENS;
  if (ask->then == TARN__THEN_NOTHING) note_goodbye(c, ask->from);
  return begin_to_read(c, i);
}

static tarn_status answer(tarn__whole_course *c, size_t i) {
  tarn__whole_serving *serving = &c->kept->far.servings[i];
  const tarn__whole_ask *ask = &serving->letter.ask;
  serving->stage = TARN__IDLE;
  TARN__TRY(tarn__serve_one(c, ask->from, ask, serving->room));
  if (!tarn__course_gathers(c)) return TARN_OK;
  serving->stage = TARN__ANSWERS;
  return post(c, TARN_COMM_SEND, ask->from, TARN__TOPIC_ROWS,
              serving->room + tarn__course_list(c, ask->count), size_of(c, ask),
              message_of_serving(c->kept, i));
}

// A list that was read before one that the same rank sent earlier waits for
// that: rows are added, and answers expected, in their order.
static bool is_next(const tarn__whole_course *c, size_t i) {
  const tarn__whole_serving *servings = c->kept->far.servings;
  for (size_t k = 0; k < TARN__SERVINGS; k++) {
    if (servings[k].stage == TARN__READS &&
        servings[k].letter.ask.from == servings[i].letter.ask.from &&
        servings[k].number < servings[i].number) {
      return false;
    }
  }
  return true;
}

static tarn_status go_on(tarn__whole_course *c, size_t i) {
  tarn__whole_serving *serving = &c->kept->far.servings[i];
  bool waits = *message_of_serving(c->kept, i) != NULL;
  bool opens = serving->opens;
  if (serving->stage == TARN__IDLE || waits) return TARN_OK;
  if (serving->stage == TARN__READS && !is_next(c, i)) return TARN_OK;
  c->moved = true;
  switch (serving->stage) {
    case TARN__HEARS:
      return opens ? take_opening(c, i) : take_ask(c, i);
    case TARN__READS:
      return answer(c, i);
    case TARN__DRAINS:
      return hear_next(c, i);
    default:
      serving->stage = TARN__IDLE;
      return serving->letter.ask.then == TARN__THEN_OPENS ? hear_next(c, i)
                                                          : TARN_OK;
  }
}

// Of which rank the next ask is to be heard. Sums have an order.
static bool finds_speaker(const tarn__whole_course *c, size_t *out_rank) {
  const tarn__whole_far *far = &c->kept->far;
  *out_rank = TARN_COMM_ANY;
  if (c->opens && far->opened < far->count) return false;
  if (!tarn__course_adds(c)) return far->said_goodbye < far->count;
  *out_rank = c->turn;
  return c->turn < c->whole->ranks && is_far(c, c->turn) &&
         !has_said_goodbye(c, c->turn);
}

static tarn_status listen(tarn__whole_course *c) {
  size_t idle = TARN__SERVINGS;
  size_t rank = 0;
  tarn__whole_serving *servings = c->kept->far.servings;
  for (size_t i = 0; i < TARN__SERVINGS; i++) {
    if (servings[i].stage == TARN__HEARS) return TARN_OK;
    if (servings[i].stage == TARN__IDLE) idle = i;
  }
  if (idle == TARN__SERVINGS || !finds_speaker(c, &rank)) return TARN_OK;
  return hear(c, idle, rank, TARN__TOPIC_ASKS);
}

// Begins with the next ranks after this one.
static tarn_status greet(tarn__whole_course *c) {
  tarn__whole_far *far = &c->kept->far;
  size_t ranks = c->whole->ranks;
  for (size_t i = 0; i < TARN__SERVINGS && far->greeted < ranks; i++) {
    if (far->servings[i].stage != TARN__IDLE) continue;
    size_t rank = (c->whole->rank + far->greeted++) % ranks;
    if (is_far(c, rank)) TARN__TRY(hear(c, i, rank, TARN__TOPIC_OPENINGS));
  }
  return TARN_OK;
}

tarn_status tarn__far_serve(tarn__whole_course *c) {
  tarn__whole_far *far = &c->kept->far;
  size_t slots = c->kept->staging.slots;
  if (far->count == 0) return TARN_OK;
  if (c->opens) TARN__TRY(greet(c));
  TARN__TRY(tarn__comm_test(c->kept->comm, far->messages,
                            TARN__SERVINGS + slots * TARN__MESSAGES_OF_SLOT));
  for (size_t i = 0; i < TARN__SERVINGS; i++) {
    TARN__TRY(go_on(c, i));
    TARN__TRY(go_on(c, i));  // a list that came along is there already
  }
  return listen(c);
}

// --- the end ---------------------------------------------------------------

static tarn_status test_notes(tarn__whole_exchange *kept, bool *out_done) {
  void **notes = kept->far.notes;
  TARN__TRY(tarn__comm_test(kept->comm, notes, 2 * kept->ranks));
  for (size_t i = 0; i < 2 * kept->ranks; i++)
    *out_done = *out_done && notes[i] == NULL;
  return TARN_OK;
}

tarn_status tarn__far_is_settled(tarn__whole_exchange *kept,
                                 bool *out_settled) {
  size_t slots = kept->staging.slots;
  *out_settled = kept->far.count == 0;
  if (kept->far.count == 0) return TARN_OK;
  TARN__TRY(tarn__comm_test(kept->comm, kept->far.messages,
                            TARN__SERVINGS + slots * TARN__MESSAGES_OF_SLOT));
  *out_settled = true;
  for (size_t i = 0; i < slots; i++) {
    for (int which = OF_ASK; which <= OF_ROWS; which++)
      *out_settled = *out_settled && *message_of(kept, i, which) == NULL;
  }
  return test_notes(kept, out_settled);
}

bool tarn__far_is_done_with(const tarn__whole_course *c, size_t rank) {
  for (size_t i = 0; i < TARN__SERVINGS; i++) {
    const tarn__whole_serving *serving = &c->kept->far.servings[i];
    if (serving->stage == TARN__READS && serving->letter.ask.from == rank)
      return false;
  }
  return has_said_goodbye(c, rank);
}

tarn_status tarn__far_is_quiet(tarn__whole_course *c, bool *out_quiet) {
  tarn__whole_far *far = &c->kept->far;
  *out_quiet = true;
  if (far->count == 0) return TARN_OK;
  for (size_t i = 0; i < TARN__SERVINGS; i++)
    *out_quiet = *out_quiet && far->servings[i].stage == TARN__IDLE;
  return *out_quiet ? test_notes(c->kept, out_quiet) : TARN_OK;
}

static void drop(tarn__whole_exchange *kept, bool receives, void **message) {
  bool is_free = tarn__comm_drop(kept->comm, receives, message);
  kept->given_up = kept->given_up || !is_free;
}

void tarn__far_drop(tarn__whole_exchange *kept) {
  tarn__whole_far *far = &kept->far;
  for (size_t i = 0; i < TARN__SERVINGS; i++)
    drop(kept, far->servings[i].stage != TARN__ANSWERS,
         message_of_serving(kept, i));
  for (size_t i = 0; i < kept->staging.slots; i++) {
    for (int which = OF_ASK; which <= OF_ROWS; which++)
      drop(kept, which == OF_ROWS, message_of(kept, i, which));
  }
  for (size_t i = 0; i < 2 * kept->ranks; i++)
    drop(kept, false, &far->notes[i]);
}
