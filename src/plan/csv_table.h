// csv_table.h - what a table of buffers is, between reader and writer.
#ifndef TARN_PLAN_CSV_TABLE_H_
#define TARN_PLAN_CSV_TABLE_H_

#include "base/budget.h"
#include "base/intern.h"
#include "tarn/plan_csv.h"

typedef enum tarn__plan_csv_column {
  TARN__PLAN_CSV_ID,
  TARN__PLAN_CSV_LOWER,
  TARN__PLAN_CSV_UPPER,
  TARN__PLAN_CSV_SIZE,
  TARN__PLAN_CSV_ALIGNMENT,
  TARN__PLAN_CSV_GAPS,
  TARN__PLAN_CSV_OFFSET,
  TARN__PLAN_CSV_IN_PLACE_OF,
  TARN__PLAN_CSV_ARENA,
  TARN__PLAN_CSV_COLUMNS,
} tarn__plan_csv_column;

#define TARN__PLAN_CSV_ABSENT SIZE_MAX

// What the first line says.
typedef struct tarn__plan_csv_header {
  size_t field_count;
  size_t at[TARN__PLAN_CSV_COLUMNS];  // number of the field,
                                      // TARN__PLAN_CSV_ABSENT: none
  // The known columns in the order in which they stand.
  tarn__plan_csv_column order[TARN__PLAN_CSV_COLUMNS];
  size_t known_count;
  // The last step itself, and no step behind it: the column is named "end".
  bool last_is_in;
} tarn__plan_csv_header;

// Without the blanks around it.
typedef struct tarn__plan_csv_field {
  const char *text;
  size_t size;
  size_t column;  // byte of the line at which it begins, from 1 on
} tarn__plan_csv_field;

// A line as it is read.
typedef struct tarn__plan_csv_line {
  const char *path;
  size_t number;
  const char *text;
  size_t size;
} tarn__plan_csv_line;

// "path:line:column: ..." by TARN_E_CORRUPT.
__attribute__((format(printf, 3, 4), cold)) tarn_status tarn__plan_csv_fail(
    const tarn__plan_csv_line *line, size_t column, const char *format, ...);

// How much of a field is shown in an error's text, for "%.*s".
int tarn__plan_csv_shown(size_t size);

// Reads the names of columns.
//
// TARN_E_CORRUPT  one that is needed is missing, one is there twice, or the
//                 line cannot be split.
TARN_MUST_CHECK tarn_status tarn__plan_csv_read_header(
    const tarn__plan_csv_line *line, tarn__plan_csv_header *out);

// Splits a line into the fields of known columns; those that are absent are
// empty.
//
// TARN_E_CORRUPT  another number of fields than the header has, a quote, or a
//                 control character.
TARN_MUST_CHECK tarn_status tarn__plan_csv_split(
    const tarn__plan_csv_line *line, const tarn__plan_csv_header *header,
    tarn__plan_csv_field out_fields[TARN__PLAN_CSV_COLUMNS]);

// The next of the words of a field, which are apart by blanks, off its
// beginning; false where there is none.
bool tarn__plan_csv_word(tarn__plan_csv_field *rest,
                         tarn__plan_csv_field *out_word);

// The numbers that fields hold. |what| is the field's name in texts.
//
// TARN_E_CORRUPT      it is none, or too large.
// TARN_E_UNSUPPORTED  of a gap: it has a window.
TARN_MUST_CHECK tarn_status tarn__plan_csv_number(
    const tarn__plan_csv_line *line, const tarn__plan_csv_field *from,
    const char *what, uint64_t *out_number);

// A step up to which something lasts. If that step is itself in it, |is_in|,
// the one behind it.
TARN_MUST_CHECK tarn_status tarn__plan_csv_last(
    const tarn__plan_csv_line *line, const tarn__plan_csv_field *from,
    bool is_in, const char *what, uint64_t *out_last);

// "3-5": two numbers with a minus between them.
TARN_MUST_CHECK tarn_status tarn__plan_csv_gap(const tarn__plan_csv_line *line,
                                               const tarn__plan_csv_field *word,
                                               bool last_is_in,
                                               tarn_plan_gap *out_gap);

// The least alignment that is a multiple of the field's and of |least|. 0 of
// either, and an empty field, stand for 1.
TARN_MUST_CHECK tarn_status tarn__plan_csv_alignment(
    const tarn__plan_csv_line *line, const tarn__plan_csv_field *from,
    uint64_t least, uint64_t *out_alignment);
TARN_MUST_CHECK tarn_status
tarn__plan_csv_arena(const tarn__plan_csv_line *line,
                     const tarn__plan_csv_field *from, uint32_t *out_arena);

struct tarn_plan_table {
  tarn_plan_problem problem;
  unsigned char *bytes;  // of the file
  size_t size;
  tarn__plan_csv_header header;
  size_t header_at;  // byte at which that line begins
  tarn__budget budget;
  tarn__array buffers;  // tarn_plan_buffer
  tarn__array lines;    // size_t, by buffer: byte at which its line begins
  tarn__array gaps;     // tarn_plan_gap, of all buffers
  tarn__array pairs;    // tarn_plan_pair
  tarn__array offsets;  // uint64_t: answers, by buffer
  tarn__array arenas;   // uint32_t: answers, by buffer
  tarn__intern ids;     // with a zero byte behind each; by buffer
  bool has_offsets;
  bool has_arenas;
};

// An empty one, for tarn_plan_table_destroy; NULL on failure.
//
// TARN_E_NOMEM  no host memory.
TARN_MUST_CHECK tarn_status
tarn__plan_csv_table_make(tarn_plan_table **out_table);

#endif  // TARN_PLAN_CSV_TABLE_H_
