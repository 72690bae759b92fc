// Texts: each is in the file once, as long as their table has room.
#include "record/texts.h"

#include <string.h>

#include "record/numbers.h"

enum { ENTRIES = 1 << 18 };

static numbers texts;

void texts_begin(void) {
  (void)numbers_begin(&texts, ENTRIES);
}

static uint64_t hash_of(const char *text, size_t length) {
  uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ length;
  for (size_t i = 0; i < length; i++)
    hash = numbers_mix(hash, (unsigned char)text[i]);
  return hash;
}

static void define(slot *mine, uint64_t number, const char *text,
                   size_t length) {
  unsigned char *at =
      tarn__log_put_definition(&mine->writer, TARN__LOG_TEXT, number);
  at = tarn__log_put_number(at, length);
  memcpy(at, text, length);
  tarn__log_publish(&mine->writer, at + length);
}

uint64_t texts_number(slot *mine, const char *text, size_t length) {
  bool is_new = false;
  if (texts.table == NULL) return 0;
  if (length > TARN__LOG_MOST_TEXT) length = TARN__LOG_MOST_TEXT;
  if (!slots_have_room(mine, length + (size_t)3 * TARN__LOG_MOST_NUMBER, NULL))
    return 0;
  uint64_t number = numbers_find(&texts, hash_of(text, length), &is_new);
  if (is_new) define(mine, number, text, length);
  return number;
}

void texts_forget(void) {
  numbers_forget(&texts);
}
