// The settings of the stand-in: a table of texts, read from the environment
// once, at first use. A number is a text that is read as one when it is needed.
#include "settings.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  const char *initial;
} TABLE[STANDIN_SETTINGS] = {
    [STANDIN_DEVICES] = {"DEVICES", "1"},
    [STANDIN_DEVICE_NAME] = {"DEVICE_NAME", "Stand-in GPU"},
    [STANDIN_DRIVER_VERSION] = {"DRIVER_VERSION", "13000"},
    [STANDIN_CAPABILITY] = {"CAPABILITY", "90"},
    [STANDIN_CAPACITY] = {"CAPACITY", "1073741824"},
    [STANDIN_ALIGN] = {"ALIGN", "256"},
    [STANDIN_GRANULARITY] = {"GRANULARITY", "2097152"},
    [STANDIN_WITHOUT] = {"WITHOUT", ""},
    [STANDIN_GUARD] = {"GUARD", "1"},
    [STANDIN_LATE] = {"LATE", "20"},
    [STANDIN_PAGEABLE] = {"PAGEABLE", "staged"},
    [STANDIN_IMAGES] = {"IMAGES", "0"},
    [STANDIN_INIT_FAILS] = {"INIT_FAILS", "0"},
    [STANDIN_RESERVE_MAX] = {"RESERVE_MAX", "0"},
    [STANDIN_ADDRESSES] = {"ADDRESSES", "0"},
    [STANDIN_FAIL_CALL] = {"FAIL_CALL", ""},
    [STANDIN_FAIL_COMMAND] = {"FAIL_COMMAND", ""},
    [STANDIN_LOSE] = {"LOSE", ""},
    [STANDIN_KERNELS] = {"KERNELS", ""},
    [STANDIN_REPORT] = {"REPORT", ""},
    [STANDIN_LOUD] = {"LOUD", "0"},
};

// Guards |values|.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char values[STANDIN_SETTINGS][STANDIN_TEXT_SIZE];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void put(standin_setting setting, const char *value) {
  snprintf(values[setting], STANDIN_TEXT_SIZE, "%s", value);
}

static void read_environment(void) {
  for (standin_setting s = 0; s < STANDIN_SETTINGS; s++) {
    char name[64];
    snprintf(name, sizeof name, "TARN_STANDIN_%s", TABLE[s].name);
    const char *value = getenv(name);
    put(s, value != NULL ? value : TABLE[s].initial);
  }
}

static void lock_read(void) {
  pthread_once(&once, read_environment);
  pthread_mutex_lock(&lock);
}

void standin_text(standin_setting setting, char out[STANDIN_TEXT_SIZE]) {
  lock_read();
  memcpy(out, values[setting], STANDIN_TEXT_SIZE);
  pthread_mutex_unlock(&lock);
}

uint64_t standin_number(standin_setting setting) {
  char text[STANDIN_TEXT_SIZE];
  standin_text(setting, text);
  return strtoull(text, NULL, 10);
}

bool standin_is_set_to(standin_setting setting, const char *word) {
  char text[STANDIN_TEXT_SIZE];
  standin_text(setting, text);
  return strcmp(text, word) == 0;
}

bool standin_has_word(standin_setting setting, const char *word) {
  char text[STANDIN_TEXT_SIZE];
  standin_text(setting, text);
  char *rest = NULL;
  for (char *at = strtok_r(text, ",", &rest); at != NULL;
       at = strtok_r(NULL, ",", &rest)) {
    if (strcmp(at, word) == 0) return true;
  }
  return false;
}

static const char *initial(standin_setting setting) {
  return TABLE[setting].initial;
}

bool standin_change(const char *name, const char *value) {
  for (standin_setting s = 0; s < STANDIN_SETTINGS; s++) {
    if (strcmp(TABLE[s].name, name) != 0) continue;
    const char *text = value != NULL ? value : initial(s);
    if (strlen(text) >= STANDIN_TEXT_SIZE) return false;
    lock_read();
    put(s, text);
    pthread_mutex_unlock(&lock);
    return true;
  }
  return false;
}

void standin_settings_reset(void) {
  lock_read();
  for (standin_setting s = 0; s < STANDIN_SETTINGS; s++)
    put(s, initial(s));
  pthread_mutex_unlock(&lock);
}
