// A hash table of texts, with open addressing; at most half of it is full.
#include "names.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "kit/tool.h"

enum { FIRST_SLOTS = 64 };

names names_make(void) {
  names n = {.slot_count = FIRST_SLOTS, .seed = UINT64_C(0x9e3779b97f4a7c15)};
  n.slots = tool_array(n.slot_count, sizeof *n.slots);
  n.items = tool_array(n.slot_count / 2, sizeof *n.items);
  uint64_t chance = 0;
  if (getrandom(&chance, sizeof chance, GRND_NONBLOCK) > 0) n.seed ^= chance;
  return n;
}

void names_deinit(names *n) {
  free(n->slots);
  free(n->items);
  *n = (names){0};
}

static uint64_t mix(uint64_t a, uint64_t b) {
  a = (a ^ b) * UINT64_C(0xd6e8feb86659fd93);
  return a ^ (a >> 32);
}

static uint64_t hash(uint64_t seed, const char *text) {
  size_t length = strlen(text);
  uint64_t sum = mix(seed, length);
  for (; length >= 8; length -= 8, text += 8) {
    uint64_t part = 0;
    memcpy(&part, text, 8);
    sum = mix(sum, part);
  }
  uint64_t rest = 0;
  memcpy(&rest, text, length);
  return mix(mix(sum, rest), seed);
}

static size_t *slot_of(const names *n, const char *text) {
  size_t mask = n->slot_count - 1;
  size_t at = (size_t)hash(n->seed, text) & mask;
  while (n->slots[at] != 0 && strcmp(n->items[n->slots[at] - 1], text) != 0) {
    at = (at + 1) & mask;
  }
  return &n->slots[at];
}

static void widen(names *n) {
  names wider = {
      .count = n->count, .slot_count = n->slot_count * 2, .seed = n->seed};
  wider.slots = tool_array(wider.slot_count, sizeof *wider.slots);
  wider.items = tool_array(wider.slot_count / 2, sizeof *wider.items);
  memcpy(wider.items, n->items, n->count * sizeof *n->items);
  for (size_t i = 0; i < n->count; i++)
    *slot_of(&wider, wider.items[i]) = i + 1;
  names_deinit(n);
  *n = wider;
}

size_t names_add(names *n, const char *text) {
  size_t *slot = slot_of(n, text);
  if (*slot != 0) return *slot - 1;
  if (n->count == n->slot_count / 2) {
    widen(n);
    slot = slot_of(n, text);
  }
  n->items[n->count++] = text;
  *slot = n->count;
  return n->count - 1;
}

size_t names_find(const names *n, const char *text) {
  size_t slot = *slot_of(n, text);
  return slot == 0 ? NAMES_NONE : slot - 1;
}
