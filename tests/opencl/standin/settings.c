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
    [STANDIN_METHODS] = {"METHODS", "coarse,fine"},
    [STANDIN_PLATFORMS] = {"PLATFORMS", "1"},
    [STANDIN_NO_PLATFORM_IS_OK] = {"NO_PLATFORM_IS_OK", "0"},
    [STANDIN_DEVICES] = {"DEVICES", "1"},
    [STANDIN_DEVICE_TYPES] = {"DEVICE_TYPES", "cpu"},
    [STANDIN_DEVICE_NAME] = {"DEVICE_NAME", "stand-in"},
    [STANDIN_VERSION] = {"VERSION", "3.0"},
    [STANDIN_GLOBAL_SIZE] = {"GLOBAL_SIZE", "1073741824"},
    [STANDIN_MAX_ALLOC] = {"MAX_ALLOC", "1073741824"},
    [STANDIN_MAX_ALIGN] = {"MAX_ALIGN", "128"},
    [STANDIN_BASE_ALIGN] = {"BASE_ALIGN", "128"},
    [STANDIN_COUNTS_MEMORY] = {"COUNTS_MEMORY", "0"},
    [STANDIN_PLAIN_HOST] = {"PLAIN_HOST", "1"},
    [STANDIN_GUARD] = {"GUARD", "1"},
    [STANDIN_LAZY] = {"LAZY", "0"},
    [STANDIN_BUILD_FAILS] = {"BUILD_FAILS", ""},
    [STANDIN_CONTEXT_FAILS] = {"CONTEXT_FAILS", ""},
    [STANDIN_FAILED_CALLBACKS] = {"FAILED_CALLBACKS", "0"},
    [STANDIN_FINISH_TELLS] = {"FINISH_TELLS", "0"},
    [STANDIN_FOLLOW_STATUS] = {"FOLLOW_STATUS", "-14"},
    [STANDIN_RECOVERS] = {"RECOVERS", "0"},
    [STANDIN_FAIL_CALL] = {"FAIL_CALL", ""},
    [STANDIN_FAIL_COMMAND] = {"FAIL_COMMAND", ""},
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

int64_t standin_number(standin_setting setting) {
  char text[STANDIN_TEXT_SIZE];
  standin_text(setting, text);
  return strtoll(text, NULL, 10);
}

void standin_word(standin_setting setting, size_t index,
                  char out[STANDIN_TEXT_SIZE]) {
  char text[STANDIN_TEXT_SIZE];
  standin_text(setting, text);
  const char *at = text;
  for (size_t i = 0; i < index; i++) {
    const char *comma = strchr(at, ',');
    at = comma != NULL ? comma + 1 : text;
  }
  snprintf(out, STANDIN_TEXT_SIZE, "%.*s", (int)strcspn(at, ","), at);
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

int standin_version(void) {
  char text[STANDIN_TEXT_SIZE];
  standin_text(STANDIN_VERSION, text);
  return (int)(strtod(text, NULL) * 10 + 0.5);
}

bool standin_has_usm(void) {
  return standin_has_word(STANDIN_METHODS, "usm");
}

bool standin_has_coarse(void) {
  return standin_version() >= 20 &&
         (standin_has_word(STANDIN_METHODS, "coarse") || standin_has_fine());
}

bool standin_has_fine(void) {
  return standin_version() >= 20 && standin_has_word(STANDIN_METHODS, "fine");
}

bool standin_has_address(void) {
  return standin_version() >= 30 &&
         standin_has_word(STANDIN_METHODS, "address");
}

bool standin_change(const char *name, const char *value) {
  for (standin_setting s = 0; s < STANDIN_SETTINGS; s++) {
    if (strcmp(TABLE[s].name, name) != 0) continue;
    if (value == NULL) value = TABLE[s].initial;
    if (strlen(value) >= STANDIN_TEXT_SIZE) return false;
    lock_read();
    put(s, value);
    pthread_mutex_unlock(&lock);
    return true;
  }
  return false;
}

void standin_settings_reset(void) {
  lock_read();
  for (standin_setting s = 0; s < STANDIN_SETTINGS; s++)
    put(s, TABLE[s].initial);
  pthread_mutex_unlock(&lock);
}
