// Guesses by the first bytes, as file(1) does, of what people have beside their
// traces.
#include "looks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOOKED_AT = 512 };

typedef struct kind {
  const char *begin;
  size_t size;
  const char *what;
} kind;

#define BEGINS(text, what) \
  { (text), sizeof(text) - 1, (what) }

static const kind kinds[] = {
    BEGINS("\x7f"
           "ELF",
           "a program or a library"),
    BEGINS("PK\x03\x04", "a zip archive, as torch.save writes for checkpoints"),
    BEGINS("\x1f\x8b", "a gzip archive: unpack it first"),
    BEGINS("\x28\xb5\x2f\xfd", "a zstd archive: unpack it first"),
    BEGINS("\x80\x02\x8a\x0al\xfc\x9c", "a checkpoint of torch.save"),
    BEGINS("\x80", "a pickle of Python without a memory snapshot in it"),
    BEGINS("\x93NUMPY", "an array of NumPy"),
    BEGINS("\x89HDF", "a file of HDF5"),
    BEGINS("\x89PNG", "a picture"),
    BEGINS("SQLite format 3", "a database, as Nsight Systems exports"),
    BEGINS("<!DOCTYPE html", "a page for a browser"),
    BEGINS("<svg", "a picture"),
    BEGINS("<?xml", "a file of XML"),
    BEGINS("#!", "a script"),
};

bool looks_foreign(const char *error) {
  return strstr(error, ": not a ") != NULL ||
         strstr(error, ": not Umpire's") != NULL ||
         strstr(error, ": the file is empty") != NULL;
}

// A length of 8 bytes, then a header in JSON.
static bool is_safetensors(const char *bytes, size_t size) {
  return size > 8 && bytes[8] == '{' && memcmp(bytes + 5, "\0\0\0", 3) == 0;
}

static bool is_text(const char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) {
    unsigned char c = (unsigned char)bytes[i];
    if (c == 0x7f || (c < 0x20 && strchr("\t\n\r\f", c) == NULL)) return false;
  }
  return true;
}

static const char *guess_text(const char *bytes) {
  if (strstr(bytes, "\"traceEvents\"") != NULL)
    return "a timeline for chrome://tracing, as torch.profiler exports; it "
           "has no allocations with stacks";
  if (*bytes == '{' || *bytes == '[') return "JSON";
  return "a text";
}

// |bytes| ends with a zero behind |size|.
static const char *guess(const char *bytes, size_t size) {
  if (size == 0) return "nothing: it is empty";
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    const kind *k = &kinds[i];
    if (size >= k->size && memcmp(bytes, k->begin, k->size) == 0)
      return k->what;
  }
  if (is_safetensors(bytes, size)) return "weights in safetensors";
  return is_text(bytes, size) ? guess_text(bytes) : NULL;
}

const char *looks_like(const char *path) {
  char bytes[LOOKED_AT + 1] = "";
  FILE *file = fopen(path, "re");
  if (file == NULL) return NULL;
  size_t size = fread(bytes, 1, LOOKED_AT, file);
  bool failed = ferror(file) != 0;
  (void)fclose(file);
  return failed ? NULL : guess(bytes, size);
}
