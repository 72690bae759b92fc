// names.h - texts as numbers: each distinct one has its own.
#ifndef TARN_TOOL_NAMES_H_
#define TARN_TOOL_NAMES_H_

#include <stddef.h>
#include <stdint.h>

#define NAMES_NONE SIZE_MAX

typedef struct names {
  const char **items;  // borrowed, by number
  size_t count;
  size_t *slots;  // number + 1; 0: empty
  size_t slot_count;
  uint64_t seed;  // random: no input can make all names collide
} names;

names names_make(void);
void names_deinit(names *n);

// The number of |text|, which is borrowed if it is a new one.
size_t names_add(names *n, const char *text);

// The same without adding: NAMES_NONE for a new one.
size_t names_find(const names *n, const char *text);

#endif  // TARN_TOOL_NAMES_H_
