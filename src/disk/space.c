// Places of a file of blocks: a byte of state for each.
#include "disk/space.h"

#include <assert.h>
#include <string.h>

#include "base/os.h"
#include "base/status.h"

static const unsigned char after_drop[TARN__DISK_STATES] = {
    [TARN__DISK_FRESH] = TARN__DISK_FREE,
    [TARN__DISK_KEPT] = TARN__DISK_DROPPED,
};

static const unsigned char after_turn[TARN__DISK_STATES] = {
    [TARN__DISK_FREE] = TARN__DISK_FREE, [TARN__DISK_FRESH] = TARN__DISK_KEPT,
    [TARN__DISK_KEPT] = TARN__DISK_KEPT, [TARN__DISK_DROPPED] = TARN__DISK_OLD,
    [TARN__DISK_OLD] = TARN__DISK_FREE,
};

tarn_status tarn__space_init(tarn__disk_space *space, size_t most) {
  *space = (tarn__disk_space){.most = most, .next = 1};
  space->states = tarn__os_map_sparse(most + 1);
  if (space->states != NULL) return TARN_OK;
  return tarn__fail(TARN_E_NOMEM,
                    "disk: no memory for the states of %zu places", most);
}

void tarn__space_deinit(tarn__disk_space *space) {
  if (space->states != NULL) tarn__os_unmap(space->states, space->most + 1);
  space->states = NULL;
}

void tarn__space_extend(tarn__disk_space *space, size_t count) {
  assert(count <= space->most - space->places);
  if (space->free == 0) space->next = space->places + 1;
  space->places += count;
  space->free += count;
}

// 0: none from |begin| on, before |end|.
static size_t find_free(const tarn__disk_space *space, size_t begin,
                        size_t end) {
  if (begin >= end) return 0;
  const unsigned char *found =
      memchr(space->states + begin, TARN__DISK_FREE, end - begin);
  return found == NULL ? 0 : (size_t)(found - space->states);
}

uint32_t tarn__space_take(tarn__disk_space *space) {
  if (space->free == 0) return 0;
  size_t place = find_free(space, space->next, space->places + 1);
  if (place == 0) place = find_free(space, 1, space->next);
  assert(place != 0);
  space->states[place] = TARN__DISK_FRESH;
  space->free--;
  space->next = place + 1;
  return (uint32_t)place;
}

void tarn__space_drop(tarn__disk_space *space, uint32_t place) {
  unsigned char *state = &space->states[place];
  assert(*state == TARN__DISK_FRESH || *state == TARN__DISK_KEPT);
  *state = after_drop[*state];
  space->free += *state == TARN__DISK_FREE;
}

void tarn__space_turn(tarn__disk_space *space) {
  size_t taken = 0;
  for (size_t i = 1; i <= space->places; i++) {
    space->states[i] = after_turn[space->states[i]];
    taken += space->states[i] != TARN__DISK_FREE;
  }
  space->free = space->places - taken;
}

bool tarn__space_note(tarn__disk_space *space, uint32_t place,
                      tarn__disk_state state) {
  if (place == 0 || place > space->places) return false;
  unsigned char *now = &space->states[place];
  if (*now == state) return false;
  if (*now != TARN__DISK_FREE) return true;
  *now = (unsigned char)state;
  space->free--;
  return true;
}

void tarn__space_forget_old(tarn__disk_space *space) {
  for (size_t i = 1; i <= space->places; i++) {
    if (space->states[i] != TARN__DISK_OLD) continue;
    space->states[i] = TARN__DISK_FREE;
    space->free++;
  }
}
