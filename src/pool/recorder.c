// The recorder: a ring of events, and a guess at their period.
//
// When the last GRAM events have been seen before, in that order, the distance
// is a candidate for the period. It is dropped at the first event that differs
// from the event one period ago, and accepted once it has held for a whole
// period and for the required number of events. A layer that repeats inside of
// a step is a period too, for a while; the event after the last layer ends it.
#include "pool/recorder.h"

#include "base/hostmem.h"

enum {
  GRAM = 8,
  FIRST_ROOM = 1024,
  MOST_ROOM = 1 << 18,  // two steps of 65,536 blocks
  LEAST_EVIDENCE = 512,
  MOST_EVIDENCE = 1 << 30,
  ROOMS_HEARD = 2,     // the largest rings full of events for nothing ...
  ROOMS_RESTED = 32,   // ... after which so many are let pass
  SHORTEST_TOLD = 32,  // events between marks; after fewer there is none
  SURE = 4  // an event between sure marks is so many times the evidence
};

static const uint64_t BASE = 0x9e3779b97f4a7c15u;

static uint64_t power(uint64_t base, int exponent) {
  uint64_t product = 1;
  while (exponent-- > 0)
    product *= base;
  return product;
}

static uint64_t mix(uint64_t key, uint64_t value) {
  key = (key ^ value) * BASE;
  return key ^ key >> 29;
}

static uint32_t key_of(uint64_t mixed) {
  return (uint32_t)(mixed >> 32);
}

static tarn__pool_heard *note_at(const tarn__pool_recorder *r, uint64_t at) {
  return &r->notes[at & (r->room - 1)];
}

// --- room ------------------------------------------------------------------

static void drop_room(tarn__pool_recorder *r) {
  tarn__host_free_array(r->notes, r->room, sizeof *r->notes);
  tarn__host_free_array(r->seen, r->room, sizeof *r->seen);
  r->notes = NULL;
  r->seen = NULL;
  r->room = 0;
}

void tarn__recorder_deinit(tarn__pool_recorder *r) {
  drop_room(r);
  *r = (tarn__pool_recorder){0};
}

void tarn__recorder_restart(tarn__pool_recorder *r, uint64_t evidence) {
  r->first = r->count;
  r->period = r->matched = r->due = 0;
  r->is_single = false;
  r->mark = UINT64_MAX;
  r->evidence = evidence > LEAST_EVIDENCE ? evidence : LEAST_EVIDENCE;
  if (r->evidence > MOST_EVIDENCE) r->evidence = MOST_EVIDENCE;
}

static tarn__pool_seen *seen_of(const tarn__pool_recorder *r) {
  return &r->seen[r->gram & (r->room - 1)];
}

static void see(const tarn__pool_recorder *r, uint64_t at) {
  *seen_of(r) = (tarn__pool_seen){(uint32_t)(r->gram >> 32), (uint32_t)at};
}

// The gram that ends with event |at|, whose key is |key|.
static void roll(tarn__pool_recorder *r, uint64_t at, uint64_t key) {
  uint64_t old = at >= r->first + GRAM ? note_at(r, at - GRAM)->key : 0;
  r->gram = r->gram * BASE + key - old * power(BASE, GRAM);
  if (at == r->first) r->gram = key;
}

// Moves the notes of |r|, if there are any. Events without notes count as
// unseen.
static void take_over(tarn__pool_recorder *grown,
                      const tarn__pool_recorder *r) {
  if (r->room == 0) return;
  uint64_t kept = r->count - r->first < r->room ? r->count - r->first : r->room;
  grown->first = r->count - kept;
  for (uint64_t at = grown->first; at < r->count; at++) {
    *note_at(grown, at) = *note_at(r, at);
    roll(grown, at, note_at(r, at)->key);
    see(grown, at);
  }
}

static bool set_room(tarn__pool_recorder *r, size_t room) {
  tarn__pool_recorder grown = *r;
  grown.room = room;
  grown.notes = tarn__host_array(room, sizeof *grown.notes);
  grown.seen = tarn__host_array(room, sizeof *grown.seen);
  if (grown.notes == NULL || grown.seen == NULL) {
    tarn__host_free_array(grown.notes, room, sizeof *grown.notes);
    tarn__host_free_array(grown.seen, room, sizeof *grown.seen);
    return false;
  }
  take_over(&grown, r);
  drop_room(r);
  *r = grown;
  return true;
}

// A program that never repeats gets the memory back.
static void rest(tarn__pool_recorder *r) {
  drop_room(r);
  r->rest = (uint64_t)MOST_ROOM * ROOMS_RESTED;
  r->vain = 0;
  tarn__recorder_restart(r, r->evidence);
}

// So many events have been heard for nothing. Those that repeat may yet be
// enough for a step.
static bool is_in_vain(const tarn__pool_recorder *r) {
  return r->vain >= (uint64_t)MOST_ROOM * ROOMS_HEARD &&
         r->matched < r->vain / 2;
}

// Whether to note events now. Without host memory none are noted.
static bool is_listening(tarn__pool_recorder *r) {
  if (tarn__recorder_let_pass(r)) return false;
  r->vain++;
  if (r->room == 0) return set_room(r, FIRST_ROOM);
  if (is_in_vain(r)) {
    rest(r);
    return false;
  }
  bool is_full = r->period == 0 && r->count - r->first >= r->room;
  return !is_full || r->room == MOST_ROOM || set_room(r, r->room * 2);
}

// --- the period ------------------------------------------------------------

// What each event of the last period adds to the live bytes, and blocks that
// other threads freed. NULL: no host memory.
static ptrdiff_t *find_growths(const tarn__pool_recorder *r) {
  size_t period = r->period;
  ptrdiff_t *growths = tarn__host_array(period, sizeof *growths);
  for (size_t i = 0; growths != NULL && i < period; i++) {
    const tarn__pool_heard *note = tarn__recorder_note(r, i);
    bool request = tarn__heard_is_request(note);
    growths[i] += request ? (ptrdiff_t)note->size : -(ptrdiff_t)note->size;
    size_t life = request ? tarn__recorder_lifetime(r, i) : 0;
    if (life == 0) continue;
    growths[(i + life - 1) % period] -= (ptrdiff_t)note->size;
  }
  return growths;
}

// Behind how many events of the last period least is live. Where that is so
// behind several, it is the one after the most others: what comes and goes at
// once in between belongs to the next step. The same blocks are live at both
// ends of the period, so a sum will do.
static uint64_t find_least(const ptrdiff_t *growths, uint64_t period) {
  ptrdiff_t live = 0;
  ptrdiff_t least = 0;
  uint64_t end = 0;
  uint64_t last = 0;  // of those with the least; 0: none yet
  uint64_t longest = 0;
  for (uint64_t i = 0; i < period; i++) {
    live += growths[i];
    if (live < least) least = live;
  }
  live = 0;
  for (uint64_t i = 1; i <= 2 * period; i++) {
    live += growths[(i - 1) % period];
    if (i == period) live = 0;
    if (live != least) continue;
    if (last != 0 && i - last >= longest) {
      longest = i - last;
      end = i;
    }
    last = i;
  }
  return end % period;
}

// The number of the event, from the next on, with which a step begins.
static uint64_t find_end(const tarn__pool_recorder *r) {
  ptrdiff_t *growths = find_growths(r);
  if (growths == NULL) return r->count;
  uint64_t end = find_least(growths, r->period);
  tarn__host_free_array(growths, r->period, sizeof *growths);
  return end == 0 ? r->count : r->count + end;
}

static void guess(tarn__pool_recorder *r, uint64_t at) {
  const tarn__pool_seen *seen = seen_of(r);
  uint32_t ago = (uint32_t)at - seen->at;
  bool known = seen->gram == (uint32_t)(r->gram >> 32) && ago > 0 &&
               ago < r->room && at - r->first >= (uint64_t)ago + GRAM;
  if (!known) return;
  r->period = ago;
  r->matched = 0;
}

static void follow(tarn__pool_recorder *r, uint64_t at) {
  bool held =
      r->period != 0 && note_at(r, at)->key == note_at(r, at - r->period)->key;
  r->matched = held ? r->matched + 1 : 0;
  if (!held) {
    r->period = r->due = 0;
    r->is_single = false;
    guess(r, at);
  }
  see(r, at);
  if (r->period == 0 || r->matched < r->period || r->matched < r->evidence) {
    return;
  }
  if (r->due == 0) r->due = find_end(r);
  if (r->due < r->count) r->due += r->period;
}

static void note(tarn__pool_recorder *r, const tarn__pool_heard *what) {
  uint64_t at = r->count++;
  roll(r, at, what->key);
  *note_at(r, at) = *what;
  follow(r, at);
}

// --- marks -----------------------------------------------------------------

// Blocks from before the row do not tell one row from another.
static uint64_t digest_of(const tarn__pool_recorder *r, uint64_t from) {
  uint64_t digest = 1;
  for (uint64_t at = from; at < r->count; at++) {
    const tarn__pool_heard *note = note_at(r, at);
    bool before = !tarn__heard_is_request(note) && note->back > at - from;
    digest = mix(digest, before ? 3 : note->key);
  }
  return digest;
}

static tarn__pool_told *told_of(tarn__pool_recorder *r, uint64_t digest,
                                uint64_t length) {
  for (size_t i = 0; i < TARN__TOLD; i++) {
    tarn__pool_told *told = &r->told[i];
    if (told->times > 0 && told->digest == digest && told->length == length) {
      return told;
    }
  }
  tarn__pool_told *fresh = &r->told[r->next_told++ % TARN__TOLD];
  *fresh = (tarn__pool_told){.digest = digest, .length = length};
  return fresh;
}

void tarn__recorder_mark(tarn__pool_recorder *r, size_t live, size_t known) {
  uint64_t from = r->mark;
  uint64_t length = r->count - from;
  bool heard = from != UINT64_MAX && from >= r->first && length < r->room;
  bool same = heard && live == r->marked_live;
  if (same && (length < SHORTEST_TOLD || length < known / 2)) return;
  r->mark = r->count;
  r->marked_live = live;
  if (!same || tarn__recorder_is_due(r)) return;
  tarn__pool_told *told = told_of(r, digest_of(r, from), length);
  uint64_t evidence = told->times++ * length * (known > 0 ? SURE : 1);
  if (told->times < 2 || evidence < r->evidence) return;
  r->period = length;
  r->matched = 0;
  r->due = r->count;
  r->is_single = true;
}

void tarn__recorder_forget(tarn__pool_recorder *r) {
  for (size_t i = 0; i < TARN__TOLD; i++)
    r->told[i] = (tarn__pool_told){0};
}

// --- events ----------------------------------------------------------------

uint64_t tarn__recorder_alloc(tarn__pool_recorder *r,
                              const tarn__pool_note *what) {
  if (!is_listening(r)) return 0;
  tarn__pool_heard n = {.serial = what->serial, .size = what->size};
  n.key =
      key_of(mix(mix(mix(mix(1, n.size), what->align), what->tag), n.serial));
  n.tag = (uint16_t)what->tag;  // there are 65535 of them
  if (what->align != 0) n.align = (uint8_t)(__builtin_ctzll(what->align) + 1);
  note(r, &n);
  return r->count;  // its place + 1; 0: not recorded
}

void tarn__recorder_free(tarn__pool_recorder *r, uint64_t taken,
                         uint64_t serial, size_t size) {
  if (!is_listening(r)) return;
  uint64_t back = r->count + 1 - taken;
  bool known = taken > r->first && back <= UINT32_MAX;
  tarn__pool_heard n = {
      .serial = serial, .size = size, .flags = TARN__HEARD_FREE};
  // A block from before the recording has only one event.
  n.back = known ? (uint32_t)back : UINT32_MAX;
  n.key = key_of(known ? mix(mix(2, back), serial) : mix(3, r->count));
  note(r, &n);
}

void tarn__recorder_lose(tarn__pool_recorder *r, uint64_t taken) {
  uint64_t life = r->count - (taken - 1);
  bool known = r->room > 0 && taken > r->first && life <= r->room;
  if (!known) return;
  note_at(r, taken - 1)->back = (uint32_t)life;
  note_at(r, taken - 1)->lost = r->lost++;
}

size_t tarn__recorder_lifetime(const tarn__pool_recorder *r, size_t i) {
  // As far as it has repeated: what came before was another row.
  uint64_t heard = r->is_single ? r->period : r->matched + r->period;
  if (heard > r->count - r->first) heard = r->count - r->first;
  if (heard > r->room) heard = r->room;
  size_t longest = 0;
  for (uint64_t age = r->period - i; age <= heard; age += r->period) {
    size_t life = note_at(r, r->count - age)->back;
    if (life > longest) longest = life;
  }
  return longest;
}

void tarn__recorder_exclude(tarn__pool_recorder *r, uint64_t taken) {
  bool known = taken > r->first && r->count - (taken - 1) <= r->room;
  if (known) note_at(r, taken - 1)->flags |= TARN__HEARD_EXCLUDED;
}
