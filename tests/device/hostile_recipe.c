#include "hostile_recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *hostile_recipe = "";
atomic_long hostile_live;

// What the test asks for when all is over.
__attribute__((visibility("default"))) long hostile_count(void);

long hostile_count(void) {
  return hostile_live;
}

const char *hostile_word(const char *key) {
  size_t length = strlen(key);
  const char *at = hostile_recipe;
  while (at != NULL) {
    if (*at == ',') at++;
    if (strncmp(at, key, length) == 0) {
      if (at[length] == '=') return at + length + 1;
      if (at[length] == ',' || at[length] == '\0') return "";
    }
    at = strchr(at, ',');
  }
  return NULL;
}

bool hostile_given(const char *key) {
  return hostile_word(key) != NULL;
}

size_t hostile_number(const char *key, size_t otherwise) {
  const char *text = hostile_word(key);
  return text != NULL && *text != '\0' ? strtoull(text, NULL, 0) : otherwise;
}

const char *hostile_joined(const char *prefix, const char *function) {
  static _Thread_local char key[80];
  (void)snprintf(key, sizeof key, "%s%s", prefix, function);
  return key;
}
