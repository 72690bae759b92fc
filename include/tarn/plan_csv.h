// plan_csv.h - problems and plans in files.
//
// The format is google/minimalloc's with two more columns: a table whose first
// line names the columns, in any order. Lifetimes are half-open; empty lines
// are skipped:
//
//   id,lower,upper,size[,alignment][,gaps][,offset][,in_place_of][,arena]
//
//   id           of the buffer: any text without a comma or a quote, unique
//   lower,upper  needed in the time steps [lower, upper)
//   size         in bytes, more than 0
//   alignment    of the offset; empty: 1
//   gaps         "3-5 8-9": not needed in the time steps [3, 5) and [8, 9)
//   offset       read as TARN_PLAN_FIXED; empty: to be chosen
//   in_place_of  ids, separated by blanks, in whose place it may begin
//   arena        number of the arena it must lie in; empty: any
//
// As in minimalloc, "buffer" and "buffer_id" stand for id, "begin" and "start"
// for lower. "end" in place of upper is the last time step itself, also in
// gaps: with "end", the buffer is not needed in time step 5 of "3-5". Gaps with
// a window, "3-5@0:16", are not supported.
//
// Column names ignore case, blanks around fields are ignored, and fields are
// not quoted. Other columns are kept and ignored. Lines may end in "\r\n", the
// last line may lack a newline, and a byte order mark may come first.
//
// A plan is written as the same table, all columns unchanged, with the column
// offset (and arena, if there are several) filled in, or added as the last.
// Lines end in "\n".
//
//   tarn_plan_table *table;
//   tarn_plan_table_read("net.csv", NULL, &table);
//   tarn_plan *plan;
//   tarn_plan_solve(tarn_plan_table_problem(table), NULL, &plan);
//   tarn_plan_table_write(table, tarn_plan_offsets(plan), NULL, "plan.csv");
//   tarn_plan_destroy(plan);
//   tarn_plan_table_destroy(table);
#ifndef TARN_PLAN_CSV_H_
#define TARN_PLAN_CSV_H_

#include "tarn/plan.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tarn_plan_table tarn_plan_table;

typedef struct tarn_plan_csv_options {
  size_t struct_size;
  // Offsets and arenas in the file are a plan to be checked, and fix nothing:
  // see tarn_plan_table_offsets.
  bool offsets_are_answers;
  // Raises each buffer's alignment to a common multiple with it; 0: 1.
  uint64_t alignment;
} tarn_plan_csv_options;

// Reads the file |path|; "-" is the standard input. |options| NULL: all zero.
//
// Lifetime:        free it with tarn_plan_table_destroy.
// Cost:            O(bytes), at most 64 times the file's size + 1 MiB of
//                  memory.
// TARN_E_CORRUPT   the table or its problem is wrong, arenas aside; the text is
//                  "path:line:column: what is wrong".
// TARN_E_UNSUPPORTED  a gap has a window; the text is of the same form.
// TARN_E_INVALID   an argument is NULL, or struct_size is unknown.
// TARN_E_IO        the file cannot be read; the text names it.
// TARN_E_NOMEM     no host memory, or more than the limit above.
TARN_API TARN_MUST_CHECK tarn_status
tarn_plan_table_read(const char *path, const tarn_plan_csv_options *options,
                     tarn_plan_table **out_table);

// The same for |size| bytes in memory, which are copied; |name| takes the
// path's place in error texts.
TARN_API TARN_MUST_CHECK tarn_status tarn_plan_table_read_bytes(
    const void *bytes, size_t size, const char *name,
    const tarn_plan_csv_options *options, tarn_plan_table **out_table);

// NULL is allowed.
TARN_API void tarn_plan_table_destroy(tarn_plan_table *table);

// The problem, without capacities: copy it and set them.
//
// Lifetime: the table's.
TARN_API const tarn_plan_problem *tarn_plan_table_problem(
    const tarn_plan_table *table);

// The id of a buffer; "" if |index| is out of range.
//
// Lifetime: the table's.
TARN_API const char *tarn_plan_table_id(const tarn_plan_table *table,
                                        size_t index);

// The offsets of |offsets_are_answers|; NULL without that option, or if a line
// has no offset.
//
// Lifetime: the table's.
TARN_API const uint64_t *tarn_plan_table_offsets(const tarn_plan_table *table);

// The same for arenas.
//
// Lifetime: the table's.
TARN_API const uint32_t *tarn_plan_table_arenas(const tarn_plan_table *table);

// Writes the table with |offsets| and |arenas|, by buffer, to |path|; "-" is
// the standard output. An existing file is replaced when all is written. NULL
// for one of the two: that column stays unchanged.
//
// TARN_E_INVALID  |table| or |path| is NULL.
// TARN_E_NOMEM    no host memory.
// TARN_E_IO       the file cannot be written; an existing one is unchanged.
TARN_API TARN_MUST_CHECK tarn_status
tarn_plan_table_write(const tarn_plan_table *table, const uint64_t *offsets,
                      const uint32_t *arenas, const char *path);

#ifdef __cplusplus
}  // extern "C"
#endif

#endif  // TARN_PLAN_CSV_H_
