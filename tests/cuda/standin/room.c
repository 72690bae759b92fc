// Room: a count for each device, and its capacity, which is a setting.
#include "room.h"

#include "objects.h"
#include "settings.h"

// Guarded by the lock of objects.
static uint64_t taken[STANDIN_DEVICES_MAX];

size_t standin_room_for(size_t size) {
  if (size > SIZE_MAX / 2) return SIZE_MAX;
  return (size + STANDIN_UNIT - 1) & ~(size_t)(STANDIN_UNIT - 1);
}

size_t standin_room_left(int device) {
  uint64_t all = standin_number(STANDIN_CAPACITY);
  return all > taken[device] ? (size_t)(all - taken[device]) : 0;
}

bool standin_room_take(int device, size_t size) {
  if (size > standin_room_left(device)) return false;
  taken[device] += size;
  return true;
}

void standin_room_give(int device, size_t size) {
  taken[device] -= size;
}

uint64_t standin_room_taken(void) {
  uint64_t sum = 0;
  for (int i = 0; i < STANDIN_DEVICES_MAX; i++)
    sum += taken[i];
  return sum;
}
