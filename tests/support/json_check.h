// json_check.h - a strict reader of JSON, to check what the tool writes.
//
// Paths are keys and indices joined by dots: "results.0.pool"; "" is the
// document itself.
#ifndef TARN_TESTS_SUPPORT_JSON_CHECK_H_
#define TARN_TESTS_SUPPORT_JSON_CHECK_H_

#include <stdbool.h>
#include <stddef.h>

// Whether |text| is one JSON document (RFC 8259) and nothing else but space.
bool json_valid(const char *text);

// Where the value at |path| begins in a valid |text|; NULL if there is none.
const char *json_at(const char *text, const char *path);

// The number there; NaN if there is none.
double json_number(const char *text, const char *path);

// The bytes of the base64 (RFC 4648) that the text there is, at most |size| of
// them into |out|. Returns how many there are; SIZE_MAX if it is none.
size_t json_decode(const char *text, const char *path, void *out, size_t size);

// How many elements or members it has.
size_t json_size(const char *text, const char *path);

// The keys of the object there, in order, joined by commas. Returns |out|.
char *json_keys(const char *text, const char *path, char *out, size_t out_size);

// Whether the value there is written exactly as |value| ("\"cpu:0\"", "true").
bool json_is(const char *text, const char *path, const char *value);

// Whether it is the text |value|, which needs no escapes.
bool json_is_text(const char *text, const char *path, const char *value);

// The path of |key| of the |row|-th object of |list|; of the object itself for
// "". The text stays for three more calls.
const char *json_path(const char *list, size_t row, const char *key);

// The same of the list "results".
const char *json_row(size_t row, const char *key);

#endif  // TARN_TESTS_SUPPORT_JSON_CHECK_H_
