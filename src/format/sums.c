// Checksums of a file's data, as a block and as a text.
//
// A block says itself all that its reader knows of it already. So each field
// has an expected value, and what is damaged is known by its byte; the two sums
// are left for the bytes that could be anything, the store's number and the
// sums of chunks.
#include "format/sums.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/crc32c.h"
#include "base/status.h"

enum {
  VERSION = 1,
  MAGIC = 8,  // bytes
  VERSION_AT = 8,
  CHUNK_AT = 12,
  ARRAY_OFFSET_AT = 16,
  ARRAY_SIZE_AT = 24,
  ID_AT = 32,
  COUNT_AT = 48,
  SUMS_SUM_AT = 56,
  HEAD_SUM_AT = 60,
  SUM = 4,  // bytes
};

static const char magic[MAGIC + 1] = "TARNSUMS";

// --- numbers -----------------------------------------------------------------

static void put(unsigned char *bytes, size_t size, uint64_t number) {
  for (size_t i = 0; i < size; i++, number >>= 8)
    bytes[i] = (unsigned char)number;
}

static uint64_t get(const unsigned char *bytes, size_t size) {
  uint64_t number = 0;
  for (size_t i = size; i-- > 0;)
    number = number << 8 | bytes[i];
  return number;
}

// --- a block -----------------------------------------------------------------

bool tarn__sums_place(size_t array_offset, size_t array_size,
                      tarn__format_sums_place *out_place) {
  size_t count = tarn__sums_count(array_size);
  size_t offset = 0;
  size_t size = 0;
  size_t end = 0;
  *out_place = (tarn__format_sums_place){0};
  if (!tarn_size_mul(count, SUM, &size) ||
      !tarn_size_add(size, TARN__SUMS_HEAD, &size) ||
      !tarn_size_add(array_offset, array_size, &offset) ||
      !tarn_size_align_up(offset, TARN__SUMS_MULTIPLE, &offset) ||
      !tarn_size_add(offset, size, &end)) {
    return false;
  }
  *out_place = (tarn__format_sums_place){.array_offset = array_offset,
                                         .array_size = array_size,
                                         .count = count,
                                         .offset = offset,
                                         .size = size};
  return true;
}

// A field of the head, and what it has to be.
typedef struct field {
  size_t at;
  size_t size;
  uint64_t value;
  const char *what;
} field;

enum { FIELDS = 5 };

static void list_fields(const tarn__format_sums_place *place,
                        field out[FIELDS]) {
  const field fields[FIELDS] = {
      {VERSION_AT, 4, VERSION, "the version"},
      {CHUNK_AT, 4, TARN__SUMS_CHUNK, "the bytes of a chunk"},
      {ARRAY_OFFSET_AT, 8, place->array_offset, "the array's offset"},
      {ARRAY_SIZE_AT, 8, place->array_size, "the array's size"},
      {COUNT_AT, 8, place->count, "the number of sums"}};
  memcpy(out, fields, sizeof fields);
}

void tarn__sums_write(const tarn__format_sums_place *place,
                      const unsigned char id[TARN__SUMS_ID],
                      const uint32_t *sums, void *out) {
  unsigned char *bytes = out;
  field fields[FIELDS];
  list_fields(place, fields);
  memcpy(bytes, magic, MAGIC);
  for (int i = 0; i < FIELDS; i++)
    put(bytes + fields[i].at, fields[i].size, fields[i].value);
  memcpy(bytes + ID_AT, id, TARN__SUMS_ID);
  for (size_t i = 0; i < place->count; i++)
    put(bytes + TARN__SUMS_HEAD + SUM * i, SUM, sums[i]);
  put(bytes + SUMS_SUM_AT, SUM,
      tarn__crc32c(0, bytes + TARN__SUMS_HEAD, SUM * place->count));
  put(bytes + HEAD_SUM_AT, SUM, tarn__crc32c(0, bytes, HEAD_SUM_AT));
}

uint32_t tarn__sums_at(const tarn__format_sums *sums, size_t index) {
  return (uint32_t)get(sums->sums + SUM * index, SUM);
}

// --- a block that is read ----------------------------------------------------

typedef struct reader {
  const char *name;
  const tarn__format_sums_place *place;
  const unsigned char *bytes;
  size_t size;  // of |bytes|
  size_t end;   // of the file
} reader;

// Fails with the text "name: byte N: ...", for byte |at| of the block.
__attribute__((format(printf, 4, 5), cold)) static tarn_status fail_at(
    const reader *r, tarn_status status, size_t at, const char *format, ...) {
  char text[400];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail(status, "%s: byte %zu: %s", r->name, r->place->offset + at,
                    text);
}

static bool has_its_size(const reader *r) {
  return r->end == r->place->offset + r->place->size;
}

// A file may have been cut since its size was asked for.
static tarn_status refuse_end(const reader *r) {
  const tarn__format_sums_place *place = r->place;
  return tarn__fail(TARN_E_CORRUPT,
                    "%s: the checksums are bytes %zu to %zu, but the file ends "
                    "at %zu",
                    r->name, place->offset, place->offset + place->size,
                    r->size < place->size ? place->offset + r->size : r->end);
}

// How many bytes are those of the magic number.
static size_t match_magic(const reader *r) {
  size_t match = 0;
  while (match < MAGIC && match < r->size &&
         r->bytes[match] == (unsigned char)magic[match])
    match++;
  return match;
}

// Sets |*out_found| where there is a block, or what is left of one: by the
// magic number or, should that be damaged, by the file's size.
static tarn_status find(const reader *r, bool *out_found) {
  size_t match = match_magic(r);
  *out_found = false;
  if (r->end <= r->place->offset) return TARN_OK;
  if (r->size == 0) return refuse_end(r);
  *out_found = match == MAGIC || (match > 0 && match == r->size);
  if (*out_found || !has_its_size(r)) return TARN_OK;
  return fail_at(r, TARN_E_CORRUPT, match,
                 "0x%02x, where checksums have 0x%02x", r->bytes[match],
                 (unsigned char)magic[match]);
}

static bool head_is_whole(const reader *r) {
  return get(r->bytes + HEAD_SUM_AT, SUM) ==
         tarn__crc32c(0, r->bytes, HEAD_SUM_AT);
}

static tarn_status check_version(const reader *r) {
  uint64_t version = get(r->bytes + VERSION_AT, 4);
  if (version <= VERSION || !head_is_whole(r)) return TARN_OK;
  return fail_at(r, TARN_E_UNSUPPORTED, VERSION_AT,
                 "checksums of version %" PRIu64 "; %d is read", version,
                 VERSION);
}

static tarn_status check_head(const reader *r) {
  field fields[FIELDS];
  list_fields(r->place, fields);
  for (int i = 0; i < FIELDS; i++) {
    const field *f = &fields[i];
    uint64_t value = get(r->bytes + f->at, f->size);
    if (value == f->value) continue;
    return fail_at(r, TARN_E_CORRUPT, f->at,
                   "checksums: %s is %" PRIu64 ", %" PRIu64 " expected",
                   f->what, value, f->value);
  }
  if (head_is_whole(r)) return TARN_OK;
  return fail_at(r, TARN_E_CORRUPT, HEAD_SUM_AT,
                 "checksums: their head has another sum");
}

static tarn_status check_sums(const reader *r) {
  uint32_t sum =
      tarn__crc32c(0, r->bytes + TARN__SUMS_HEAD, SUM * r->place->count);
  if (get(r->bytes + SUMS_SUM_AT, SUM) == sum) return TARN_OK;
  return fail_at(r, TARN_E_CORRUPT, TARN__SUMS_HEAD,
                 "checksums: the %zu sums have another sum, 0x%08" PRIx32,
                 r->place->count, sum);
}

tarn_status tarn__sums_read(const char *name,
                            const tarn__format_sums_place *place,
                            const void *bytes, size_t size, size_t file_size,
                            tarn__format_sums *out_sums) {
  const reader r = {name, place, bytes, size, file_size};
  bool found = false;
  *out_sums = (tarn__format_sums){0};
  TARN__TRY(find(&r, &found));
  if (!found) return TARN_OK;
  if (size < TARN__SUMS_HEAD) return refuse_end(&r);
  TARN__TRY(check_version(&r));
  TARN__TRY(check_head(&r));
  if (!has_its_size(&r) || size < place->size) return refuse_end(&r);
  TARN__TRY(check_sums(&r));
  *out_sums = (tarn__format_sums){.found = true,
                                  .count = place->count,
                                  .id = r.bytes + ID_AT,
                                  .sums = r.bytes + TARN__SUMS_HEAD};
  return TARN_OK;
}

// --- a text ------------------------------------------------------------------

static const char digits[] = "0123456789abcdef";

void tarn__sums_to_text(const uint32_t *sums, size_t count, char *out) {
  for (size_t i = 0; i < count; i++) {
    for (int shift = 28; shift >= 0; shift -= 4)
      *out++ = digits[sums[i] >> shift & 15];
  }
}

static tarn_status check_texts(const char *name, const char *chunk,
                               const char *text, size_t count) {
  if (chunk == NULL || text == NULL) {
    return tarn__fail(TARN_E_CORRUPT, "%s: metadata \"%s\" without \"%s\"",
                      name,
                      chunk == NULL ? TARN__SUMS_KEY : TARN__SUMS_CHUNK_KEY,
                      chunk == NULL ? TARN__SUMS_CHUNK_KEY : TARN__SUMS_KEY);
  }
  if (strcmp(chunk, TARN__SUMS_CHUNK_TEXT) != 0) {
    return tarn__fail(TARN_E_CORRUPT,
                      "%s: metadata \"" TARN__SUMS_CHUNK_KEY
                      "\" is \"%.20s\", \"" TARN__SUMS_CHUNK_TEXT "\" expected",
                      name, chunk);
  }
  size_t size = strspn(text, digits);
  if (text[size] != '\0') {
    return tarn__fail(TARN_E_CORRUPT,
                      "%s: metadata \"" TARN__SUMS_KEY
                      "\": character %zu is none of %s",
                      name, size, digits);
  }
  if (size % TARN__SUMS_DIGITS == 0 && size / TARN__SUMS_DIGITS == count) {
    return TARN_OK;
  }
  return tarn__fail(TARN_E_CORRUPT,
                    "%s: metadata \"" TARN__SUMS_KEY
                    "\" has %zu digits, 8 for each of %zu chunks expected",
                    name, size, count);
}

tarn_status tarn__sums_of_text(const char *name, const char *chunk,
                               const char *text, size_t count,
                               uint32_t *out_sums, bool *out_found) {
  *out_found = false;
  if (chunk == NULL && text == NULL) return TARN_OK;
  TARN__TRY(check_texts(name, chunk, text, count));
  for (size_t i = 0; i < count; i++) {
    out_sums[i] = 0;
    for (int k = 0; k < TARN__SUMS_DIGITS; k++) {
      const char *digit = strchr(digits, *text++);
      out_sums[i] = out_sums[i] << 4 | (uint32_t)(digit - digits);
    }
  }
  *out_found = true;
  return TARN_OK;
}
