// A server of a language model: four workers, each with a batch of its own that
// changes at every step (continuous batching), and a front end.
//
//   front end ─► prompts that wait ─► prefill, by any worker ─┐
//       ▲                                                      ▼
//       └──────────── answers ◄── decode, by the worker with the fewest texts
//
// The model has the shape of a Llama of 1.2 billion parameters in halves: 16
// layers of width 2048, 32 heads of 64, of which 8 have keys and values.
//
// Arrivals have no memory: at each turn of the front end a prompt comes with
// the same probability. Prompts are log-normal around 256 tokens, from 8 to
// 2048, answers around 48, from 1 to 256.
//
// A text's keys and values are one block in each layer, with room for a
// multiple of 256 tokens. Where that is full, a block with room for 256 more
// takes its place. The activations of a step are a few blocks that serve all
// layers. In decoding, their size goes with the texts in the batch, in prefill
// with the prompt.
//
// Threads: 0 is the front end, 1 to 4 are workers. The one who takes a turn is
// drawn, so that steps of different workers overlap.
#include "base/status.h"
#include "trace/chance.h"
#include "trace/workload.h"

enum {
  WORKERS = 4,
  BATCH = 8,     // texts of a worker
  TEXTS = 96,    // in all
  ARRIVAL = 10,  // of so many turns of the front end, one brings a prompt
  LAYERS = 16,
  WIDTH = 2048,
  HEADS = 32,
  HEAD = 64,
  KEYS = 512,  // as wide are the values
  INNER = 8192,
  WORDS = 128256,
  HALF = 2,
  SINGLE = 4,
  INDEX = 8,
  GROWTH = 256,  // tokens by which the room for keys and values grows
};

#define NONE UINT32_MAX  // no block

static const tarn__trace_lengths prompts = {
    .median = 256, .least = 8, .most = 2048};
static const tarn__trace_lengths answers = {
    .median = 48, .least = 1, .most = 256};

// What blocks are for: inner frames of stacks.
typedef enum tensor {
  PROMPT,
  ANSWER,
  CACHE,
  IDS,  // of the step's tokens
  HIDDEN,
  PROJECTED,  // queries, keys and values
  PARTIALS,   // of attention over parts of the context
  ATTENDED,
  GATED,
  LOGITS,
  NEXT,  // ids
  TENSORS,
} tensor;

static const char *const tensor_names[TENSORS] = {
    "prompt",         "answer",   "keys_values", "ids",    "hidden",  "qkv",
    "split_partials", "attended", "mlp.gate_up", "logits", "next_ids"};

// Who asks for them: outer frames.
typedef enum kind { FRONT_END, PREFILL, DECODE, KINDS } kind;

static const char *const kind_names[KINDS] = {"front end", "prefill", "decode"};

typedef struct text {
  uint32_t prompt;  // block
  uint32_t answer;  // block
  uint32_t caches[LAYERS];
  size_t tokens;  // whose keys and values there are
  size_t room;    // for so many
  size_t to_come;
} text;

// How far a worker is in its step: what it does at its next turn.
typedef enum phase { BEGIN, ATTEND, FEED_FORWARD, CHOOSE, END } phase;

typedef struct worker {
  phase phase;
  kind kind;      // of the step
  size_t first;   // text of a prefill
  size_t rows;    // of the step: the first of |texts|, or one prompt
  size_t tokens;  // of the step
  size_t texts[BATCH];
  size_t text_count;
  uint32_t blocks[TENSORS];  // of the step
} worker;

typedef struct server {
  tarn__trace_history *history;
  tarn__trace_chance chance;
  uint32_t stacks[KINDS][TENSORS];
  text texts[TEXTS];  // by arrival
  size_t arrived;
  size_t begun;        // of these, by workers
  size_t ended;        // whose answers are written
  size_t done[TEXTS];  // the texts, as they ended
  size_t sent;         // of these
  worker workers[WORKERS];
} server;

// --- blocks ----------------------------------------------------------------

static tarn_status name_stacks(server *s, const char *workload) {
  tarn__trace_stacks *stacks = &s->history->stacks;
  for (size_t k = 0; k < KINDS; k++) {
    uint32_t frames[2] = {0};
    TARN__TRY(
        tarn__stacks_frame_of(stacks, workload, kind_names[k], 0, &frames[1]));
    for (size_t t = 0; t < TENSORS; t++) {
      TARN__TRY(tarn__stacks_frame_of(stacks, workload, tensor_names[t], 0,
                                      &frames[0]));
      TARN__TRY(tarn__stacks_stack(stacks, frames, 2, &s->stacks[k][t]));
    }
  }
  return TARN_OK;
}

static tarn_status take(server *s, kind by, tensor what, size_t size,
                        uint32_t *out_block) {
  return tarn__history_birth(s->history, size, s->stacks[by][what], out_block);
}

static tarn_status give(server *s, uint32_t *block) {
  uint32_t dead = *block;
  *block = NONE;
  return dead == NONE ? TARN_OK : tarn__history_death(s->history, dead);
}

// --- keys and values -------------------------------------------------------

static size_t room_for(size_t tokens) {
  return (tokens + GROWTH - 1) / GROWTH * GROWTH;
}

// Room for |room| tokens in each layer, in place of what there is.
static tarn_status grow(server *s, kind by, text *of, size_t room) {
  for (size_t i = 0; i < LAYERS; i++) {
    uint32_t fresh = NONE;
    TARN__TRY(take(s, by, CACHE, room * 2 * KEYS * HALF, &fresh));
    TARN__TRY(give(s, &of->caches[i]));
    of->caches[i] = fresh;
  }
  of->room = room;
  return TARN_OK;
}

static tarn_status make_room(server *s, const worker *w) {
  if (w->kind == PREFILL) {
    text *of = &s->texts[w->first];
    return grow(s, PREFILL, of, room_for(of->tokens));
  }
  for (size_t i = 0; i < w->rows; i++) {
    text *of = &s->texts[w->texts[i]];
    if (of->tokens == of->room) {
      TARN__TRY(grow(s, DECODE, of, of->room + GROWTH));
    }
  }
  return TARN_OK;
}

// --- a step ----------------------------------------------------------------

static size_t longest_context(const server *s, const worker *w) {
  size_t longest = 1;
  for (size_t i = 0; i < w->rows; i++) {
    size_t tokens = s->texts[w->texts[i]].tokens;
    if (tokens > longest) longest = tokens;
  }
  return longest;
}

// Of an activation. In decoding, attention runs over parts of the context at
// once: each has a sum, a maximum and a vector for every head.
static size_t size_of(const server *s, const worker *w, tensor what) {
  switch (what) {
    case IDS:
      return w->tokens * INDEX;
    case HIDDEN:
    case ATTENDED:
      return w->tokens * WIDTH * HALF;
    case PROJECTED:
      return w->tokens * (WIDTH + 2 * KEYS) * HALF;
    case PARTIALS:
      return w->rows * HEADS * (room_for(longest_context(s, w)) / GROWTH) *
             (HEAD + 2) * SINGLE;
    case GATED:
      return w->tokens * 2 * INNER * HALF;
    case LOGITS:
      return w->rows * WORDS * SINGLE;
    default:
      return w->rows * INDEX;
  }
}

static tarn_status begin_tensor(server *s, worker *w, tensor what) {
  return take(s, w->kind, what, size_of(s, w, what), &w->blocks[what]);
}

static bool is_full(const server *s) {
  return s->begun - s->ended == (size_t)WORKERS * BATCH;
}

// A prompt that waits goes first, if the server has room for its text.
static bool choose_step(server *s, worker *w) {
  if (s->begun < s->arrived && !is_full(s)) {
    w->kind = PREFILL;
    w->first = s->begun++;
    w->rows = 1;
    w->tokens = s->texts[w->first].tokens;
    return true;
  }
  w->kind = DECODE;
  w->rows = w->tokens = w->text_count;
  return w->rows > 0;
}

static tarn_status begin_step(server *s, worker *w) {
  if (!choose_step(s, w)) return TARN_OK;
  w->phase = ATTEND;
  TARN__TRY(begin_tensor(s, w, IDS));
  return begin_tensor(s, w, HIDDEN);
}

static tarn_status attend(server *s, worker *w) {
  w->phase = FEED_FORWARD;
  TARN__TRY(begin_tensor(s, w, PROJECTED));
  TARN__TRY(make_room(s, w));
  if (w->kind == DECODE) TARN__TRY(begin_tensor(s, w, PARTIALS));
  return begin_tensor(s, w, ATTENDED);
}

static tarn_status feed_forward(server *s, worker *w) {
  w->phase = CHOOSE;
  TARN__TRY(give(s, &w->blocks[PARTIALS]));
  TARN__TRY(give(s, &w->blocks[PROJECTED]));
  return begin_tensor(s, w, GATED);
}

static tarn_status choose_words(server *s, worker *w) {
  w->phase = END;
  TARN__TRY(give(s, &w->blocks[GATED]));
  TARN__TRY(give(s, &w->blocks[ATTENDED]));
  TARN__TRY(begin_tensor(s, w, LOGITS));
  return begin_tensor(s, w, NEXT);
}

// --- what a step leaves ----------------------------------------------------

// There is room with one, since the server is not overfull.
static worker *idlest(server *s) {
  worker *found = &s->workers[0];
  for (size_t i = 1; i < WORKERS; i++) {
    if (s->workers[i].text_count < found->text_count) found = &s->workers[i];
  }
  return found;
}

static tarn_status hand_over(server *s, size_t index) {
  worker *to = idlest(s);
  to->texts[to->text_count++] = index;
  return give(s, &s->texts[index].prompt);
}

static tarn_status end_text(server *s, size_t index) {
  text *of = &s->texts[index];
  TARN__TRY(take(s, DECODE, ANSWER, of->tokens * INDEX, &of->answer));
  for (size_t i = 0; i < LAYERS; i++)
    TARN__TRY(give(s, &of->caches[i]));
  s->done[s->ended++] = index;
  return TARN_OK;
}

// Each text of the step is a word longer; some have all of theirs. Texts that
// have come since the step began stay behind those.
static tarn_status append_words(server *s, worker *w) {
  size_t kept = 0;
  for (size_t i = 0; i < w->text_count; i++) {
    size_t index = w->texts[i];
    text *of = &s->texts[index];
    bool had_turn = i < w->rows;
    if (had_turn) of->tokens++;
    if (had_turn && --of->to_come == 0) {
      TARN__TRY(end_text(s, index));
    } else {
      w->texts[kept++] = index;
    }
  }
  w->text_count = kept;
  return TARN_OK;
}

static tarn_status end_step(server *s, worker *w) {
  static const tensor last[] = {LOGITS, NEXT, HIDDEN, IDS};
  w->phase = BEGIN;
  for (size_t i = 0; i < sizeof last / sizeof *last; i++)
    TARN__TRY(give(s, &w->blocks[last[i]]));
  return w->kind == PREFILL ? hand_over(s, w->first) : append_words(s, w);
}

static tarn_status work(server *s, worker *w) {
  switch (w->phase) {
    case BEGIN:
      return begin_step(s, w);
    case ATTEND:
      return attend(s, w);
    case FEED_FORWARD:
      return feed_forward(s, w);
    case CHOOSE:
      return choose_words(s, w);
    default:
      return end_step(s, w);
  }
}

// --- the front end ---------------------------------------------------------

static tarn_status arrive(server *s) {
  text *fresh = &s->texts[s->arrived++];
  fresh->tokens = tarn__chance_length(&s->chance, prompts);
  fresh->to_come = tarn__chance_length(&s->chance, answers);
  return take(s, FRONT_END, PROMPT, fresh->tokens * INDEX, &fresh->prompt);
}

static tarn_status send_answers(server *s) {
  while (s->sent < s->ended)
    TARN__TRY(give(s, &s->texts[s->done[s->sent++]].answer));
  return TARN_OK;
}

static tarn_status face_users(server *s) {
  TARN__TRY(send_answers(s));
  bool comes = tarn__chance_is(&s->chance, 1, ARRIVAL);
  return comes && s->arrived < TEXTS ? arrive(s) : TARN_OK;
}

// --- the whole -------------------------------------------------------------

static void clear(server *s) {
  for (size_t i = 0; i < TEXTS; i++) {
    s->texts[i].prompt = s->texts[i].answer = NONE;
    for (size_t k = 0; k < LAYERS; k++)
      s->texts[i].caches[k] = NONE;
  }
  for (size_t i = 0; i < WORKERS; i++) {
    for (size_t k = 0; k < TENSORS; k++)
      s->workers[i].blocks[k] = NONE;
  }
}

static tarn_status turn(server *s) {
  size_t whose = tarn__chance_below(&s->chance, 1 + WORKERS);
  tarn__history_thread(s->history, (uint32_t)whose);
  return whose == 0 ? face_users(s) : work(s, &s->workers[whose - 1]);
}

// Workers in the middle of a step end it: none is, once all answers are sent,
// but for a prefill there is nothing left.
tarn_status tarn__serving_history(tarn__trace_history *history,
                                  const char *workload, uint64_t seed) {
  server s = {.history = history, .chance = {seed}};
  clear(&s);
  tarn_status status = name_stacks(&s, workload);
  while (status == TARN_OK && s.sent < TEXTS)
    status = turn(&s);
  return status;
}
