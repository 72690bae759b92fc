// umpire_line.h - one line of Umpire's replay log, in either of its forms.
//
// Until 2022 a request and its outcome are two lines; the second repeats the
// first:
//
//   { "kind":"replay", "uid":77, "timestamp":1600000000000000000,
//     "event": "allocate",
//     "payload": { "allocator_ref": "0x10", "size": 64 },
//     "result": { "memory_ptr": "0x2000" } }
//
// Since then they are one line, written afterwards:
//
//   {"category":"operation","name":"allocate","numeric_args":{"size":64},
//    "string_args":{"allocator_ref":"0x10","pointer":"0x2000"},
//    "tags":{"replay":"true"},"timestamp":1600000000000000000}
#ifndef TARN_TRACE_UMPIRE_LINE_H_
#define TARN_TRACE_UMPIRE_LINE_H_

#include "base/json.h"

typedef enum tarn__trace_umpire_kind {
  TARN__UMPIRE_OTHER,  // ignored; only its kind is known
  TARN__UMPIRE_MAKE,   // an allocator
  TARN__UMPIRE_ALLOCATE,
  TARN__UMPIRE_DEALLOCATE,
  TARN__UMPIRE_REALLOCATE,
} tarn__trace_umpire_kind;

typedef enum tarn__trace_umpire_field {
  TARN__UMPIRE_EVENT,      // its name
  TARN__UMPIRE_UID,        // of the process
  TARN__UMPIRE_TIME,       // nanoseconds since 1970
  TARN__UMPIRE_ALLOCATOR,  // its address, by which it is known
  TARN__UMPIRE_SIZE,
  TARN__UMPIRE_POINTER,  // freed; or, in the newer form, allocated
  TARN__UMPIRE_CURRENT,  // to reallocate; 0: none
  TARN__UMPIRE_RESULT,   // of the request
  TARN__UMPIRE_ALLOCATOR_NAME,
  TARN__UMPIRE_NAME,  // of an allocation, or of a memory resource
  TARN__UMPIRE_FIELDS,
} tarn__trace_umpire_field;

typedef struct tarn__trace_umpire_line {
  tarn__trace_umpire_kind kind;
  // By field: all zero where it is not there. Texts are spans of the line.
  struct {
    tarn__json_token token;
    uint64_t number;
  } fields[TARN__UMPIRE_FIELDS];
} tarn__trace_umpire_line;

static inline bool tarn__umpire_has(const tarn__trace_umpire_line *line,
                                    tarn__trace_umpire_field field) {
  return line->fields[field].token.kind != TARN__JSON_NONE;
}

static inline uint64_t tarn__umpire_number(const tarn__trace_umpire_line *line,
                                           tarn__trace_umpire_field field) {
  return line->fields[field].number;
}

// Reads the |size| bytes of |text|, which is line |number| of |name|. Requests
// must have an allocator, and deaths a pointer. The rest of an ignored line is
// not read: newer versions log more, and from 2019 to 2022 "move" was not valid
// JSON.
//
// TARN_E_CORRUPT  not a line of such a log; the text says where.
TARN_MUST_CHECK tarn_status
tarn__umpire_line_read(const char *name, size_t number, const char *text,
                       size_t size, tarn__trace_umpire_line *out_line);

#endif  // TARN_TRACE_UMPIRE_LINE_H_
