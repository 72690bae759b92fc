// json.h - writes one JSON document, from front to back, on one line.
//
//   json writer = json_to(stdout);
//   json_begin_object(&writer);
//   json_key(&writer, "bytes");
//   json_uint(&writer, 4096);
//   json_end_object(&writer);
//   json_finish(&writer);                    {"bytes":4096}
//
// The writer adds commas. The caller ends each object and array that it begins.
// Write errors stay in the stream until it is closed.
#ifndef TARN_KIT_JSON_H_
#define TARN_KIT_JSON_H_

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json {
  FILE *out;
  bool comma;     // a value stands in front at this level
  bool for_html;  // write < > & as \u003c ...: safe within a <script>
} json;

json json_to(FILE *out);

void json_begin_object(json *writer);
void json_end_object(json *writer);
void json_begin_array(json *writer);
void json_end_array(json *writer);
void json_finish(json *writer);  // ends the line

void json_key(json *writer, const char *name);

// Bytes that are no UTF-8 become U+FFFD each. NULL: null.
void json_text(json *writer, const char *text);
void json_uint(json *writer, uint64_t value);
void json_int(json *writer, int64_t value);
void json_bool(json *writer, bool value);

// In as few digits as say exactly this value; null for NaN and infinities,
// which JSON has not.
void json_double(json *writer, double value);

// A key and its value.
void json_key_text(json *writer, const char *name, const char *text);
void json_key_uint(json *writer, const char *name, uint64_t value);
void json_key_int(json *writer, const char *name, int64_t value);
void json_key_bool(json *writer, const char *name, bool value);
void json_key_double(json *writer, const char *name, double value);
void json_key_null(json *writer, const char *name);

// Null unless |is_known|.
void json_key_uint_if(json *writer, const char *name, bool is_known,
                      uint64_t value);
void json_key_bool_if(json *writer, const char *name, bool is_known,
                      bool value);

void json_key_array(json *writer, const char *name);  // which begins

// |size| bytes as a text in base64.
void json_base64(json *writer, const void *bytes, size_t size);

#endif  // TARN_KIT_JSON_H_
