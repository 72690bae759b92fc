// plan_csv.h - problems and plans in files.
//
// The format is a table with a first line that names the columns, in any
// order; times are half-open, lines that are empty are passed over:
//
//   id,lower,upper,size[,alignment][,gaps][,offset][,in_place_of][,arena]
//
//   id           of the buffer: any text without a comma or a quote, once
//   lower,upper  needed in the steps [lower, upper)
//   size         in bytes, more than 0
//   alignment    of the offset; empty: none
//   gaps         "3-5 8-9": steps in which it is not needed, [3, 5) and [8, 9)
//   offset       where it lies: read as TARN_PLAN_FIXED; empty: to be chosen
//   in_place_of  ids, apart by blanks, in whose place it may begin
//   arena        number of the arena it must lie in; empty: any
//
// This is what google/minimalloc reads and writes, and two columns more. As
// there, "buffer" and "buffer_id" are other names of id, "begin" and "start" of
// lower; and "end" in the place of upper is the last step itself, also in gaps:
// with "end", the 5 of "3-5" is a step in which the buffer is not needed. Gaps
// with a window, "3-5@0:16", are refused.
//
// Names of columns may be in capitals, blanks around fields are passed over,
// nothing is quoted. Columns of other names are kept and mean nothing. Lines
// may end in "\r\n", the last one also without a newline, and a byte order mark
// may stand in front.
//
// A plan is written as the same table, all columns as they were, with the
// column offset (and arena, where there are several) filled in, or added as the
// last. Lines end in "\n".
#ifndef TARN_PLAN_CSV_H_
#define TARN_PLAN_CSV_H_

#include "tarn/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_plan_table tarn_plan_table;

typedef struct tarn_plan_csv_options {
  size_t struct_size;
  // Offsets and arenas in the file are an answer, to be checked, and nothing
  // fixed: see tarn_plan_table_offsets.
  bool offsets_are_answers;
  // All offsets are multiples of it, besides of their own alignment; 0: 1.
  uint64_t alignment;
} tarn_plan_csv_options;

// Reads the file |path|; "-" is the standard input. |options| NULL: all zero.
//
// Lifetime:        free it with tarn_plan_table_destroy.
// Cost:            O(bytes), at most 64 times the file's size + 1 MiB of
//                  memory.
// TARN_E_CORRUPT   the text is "path:line:column: what is wrong"; this is also
//                  what a wrong problem is, but for arenas.
// TARN_E_UNSUPPORTED  the same, of a gap with a window.
// TARN_E_INVALID   an argument is NULL, or struct_size unknown.
// TARN_E_IO        the system refused; the text names the file.
// TARN_E_NOMEM     no host memory, or more than the file's size allows.
TARN_API TARN_MUST_CHECK tarn_status
tarn_plan_table_read(const char *path, const tarn_plan_csv_options *options,
                     tarn_plan_table **out_table);

// The same for |size| bytes in memory, which are copied; |name| stands in the
// texts of errors.
TARN_API TARN_MUST_CHECK tarn_status tarn_plan_table_read_bytes(
    const void *bytes, size_t size, const char *name,
    const tarn_plan_csv_options *options, tarn_plan_table **out_table);

// NULL is allowed.
TARN_API void tarn_plan_table_destroy(tarn_plan_table *table);

// What was read, with no capacities: copy it and set them.
//
// Lifetime: the table's.
TARN_API const tarn_plan_problem *tarn_plan_table_problem(
    const tarn_plan_table *table);

// The id of a buffer; "" where |index| is none.
//
// Lifetime: the table's.
TARN_API const char *tarn_plan_table_id(const tarn_plan_table *table,
                                        size_t index);

// Offsets that were read as answers; NULL unless the options asked for them
// and each line has one.
//
// Lifetime: the table's.
TARN_API const uint64_t *tarn_plan_table_offsets(const tarn_plan_table *table);

// The same of arenas.
//
// Lifetime: the table's.
TARN_API const uint32_t *tarn_plan_table_arenas(const tarn_plan_table *table);

// Writes the table with |offsets| and |arenas|, by buffer, to |path|, which is
// replaced only when all is written; "-" is the standard output. NULL for one
// of them: that column stays as it is, if it is there.
//
// TARN_E_INVALID  |table| or |path| is NULL.
// TARN_E_NOMEM    no host memory.
// TARN_E_IO       the system refused; the file is as it was.
TARN_API TARN_MUST_CHECK tarn_status
tarn_plan_table_write(const tarn_plan_table *table, const uint64_t *offsets,
                      const uint32_t *arenas, const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_PLAN_CSV_H_
