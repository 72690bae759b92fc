// own_world.h - where names would show: folders for temporary files, shared
// memory and System V's objects that no other program uses.
#ifndef TARN_TESTS_WHOLE_OWN_WORLD_H_
#define TARN_TESTS_WHOLE_OWN_WORLD_H_

#include <stdbool.h>
#include <stddef.h>

// Gives this process, and its children, a /tmp and a /dev/shm of |bytes| each,
// empty, and System V objects of its own. False if that is not permitted here;
// then the folders are what they were.
bool own_world_enter(size_t bytes);

// Names in there. Only after it was entered.
size_t own_world_names(void);

// Fills /tmp and /dev/shm until there is no room for a byte.
void own_world_fill(void);

#endif  // TARN_TESTS_WHOLE_OWN_WORLD_H_
