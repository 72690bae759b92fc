// pickle.h - reads a Python pickle as data, and only as data.
//
// A pickle is a program for a stack machine. This machine obeys the opcodes
// that build numbers, texts, lists, tuples, sets and dicts, in protocols 2 to
// 5, and refuses all others by name: those that import or call, and those of
// the text protocols. So no input can make it do anything but build a tree.
//
// The tree is small. A value is 8 bytes: a scalar is the place of its opcode in
// the file, decoded on use, and a container is the number of its record.
// Objects that the file shares through its memo are shared in the tree, which
// thus may be a graph with cycles. A walk follows a schema of fixed depth and
// marks each container, so that it enters each once.
//
// Lifetime: the tree refers to the bytes that it was read from.
// Threads:  none of it is locked.
// Cost:     loading is linear in the size of the bytes, in time and memory.
#ifndef TARN_TRACE_PICKLE_H_
#define TARN_TRACE_PICKLE_H_

#include "base/budget.h"

// The most bytes that a value's 32 bits can tell places in.
#define TARN__PICKLE_MOST ((size_t)UINT32_MAX - 1)

typedef enum tarn__trace_pickle_type {
  TARN__ABSENT = 0,  // no value: a key that is not there, an empty memo slot
  TARN__NONE,
  TARN__BOOL,
  TARN__INT,
  TARN__FLOAT,
  TARN__TEXT,
  TARN__BYTES,
  TARN__LIST,  // from here on: containers
  TARN__TUPLE,
  TARN__SET,
  TARN__DICT,
} tarn__trace_pickle_type;

typedef struct tarn__trace_pickle_value {
  uint32_t type;  // a tarn__trace_pickle_type
  uint32_t at;    // scalar: byte of its opcode; container: its index
} tarn__trace_pickle_value;

// A container's contents are a chain of runs of cells, since a pickler writes a
// long list in batches. A run is a head {count, next run or 0} and then its
// values, which for a dict are key, value, key, value ...
typedef struct tarn__trace_pickle_container {
  uint32_t at;     // byte of the opcode that made it
  uint32_t first;  // cell of the first run's head, 0: empty
  uint32_t last;   // ... of the last run's
  uint32_t count;  // values in all runs
  uint32_t mark;   // the walker's: 0 at first
} tarn__trace_pickle_container;

// The index in |table| that the text at byte |at| was found to have; |table|
// NULL: none.
typedef struct tarn__trace_pickle_known {
  const void *table;
  uint32_t at;
  uint32_t row;
} tarn__trace_pickle_known;
enum { TARN__PICKLE_KNOWN = 256 };  // a power of two

typedef struct tarn__trace_pickle {
  tarn__budget *budget;
  const char *name;  // in errors, for the file
  const unsigned char *bytes;
  size_t size;
  tarn__array cells;       // tarn__trace_pickle_value; cell 0 is not used
  tarn__array containers;  // tarn__trace_pickle_container
  tarn__array known;  // TARN__PICKLE_KNOWN of tarn__trace_pickle_known: see
                      // tarn__pickle_find
  tarn__trace_pickle_value root;
} tarn__trace_pickle;

// Reads |bytes| into |pickle|. Call tarn__pickle_deinit afterwards, also when
// it failed.
//
// TARN_E_CORRUPT      damaged or refused; the text names byte and opcode.
// TARN_E_UNSUPPORTED  4 GiB or more.
// TARN_E_NOMEM        beyond the budget, or no memory.
TARN_MUST_CHECK tarn_status tarn__pickle_load(tarn__trace_pickle *pickle,
                                              tarn__budget *budget,
                                              const char *name,
                                              const void *bytes, size_t size);
void tarn__pickle_deinit(tarn__trace_pickle *pickle);

// Writes "NAME: byte AT: ..." and returns TARN_E_CORRUPT.
__attribute__((format(printf, 3, 4), cold)) tarn_status tarn__pickle_corrupt(
    const tarn__trace_pickle *pickle, size_t at, const char *format, ...);

// --- values ---------------------------------------------------------------

static inline bool tarn__is_container(tarn__trace_pickle_value value) {
  return value.type >= TARN__LIST;
}

// The record of a container.
static inline tarn__trace_pickle_container *tarn__pickle_container(
    const tarn__trace_pickle *pickle, tarn__trace_pickle_value value) {
  return (tarn__trace_pickle_container *)pickle->containers.items + value.at;
}

// The byte at which |value| was made.
static inline size_t tarn__pickle_at(const tarn__trace_pickle *pickle,
                                     tarn__trace_pickle_value value) {
  if (tarn__is_container(value))
    return tarn__pickle_container(pickle, value)->at;
  return value.at;
}

// "an integer", "a list", for errors.
const char *tarn__value_type_name(uint32_t type);

// The most bytes in which 64 bits and a sign are written. A pickler uses no
// more than a number needs, so one in more has more bits, or is made to cost
// time.
enum { TARN__PICKLE_INT_MOST = 9 };

// The number of a TARN__INT: its sign apart, since sizes and addresses use all
// 64 bits. False if it has more than 64, or is written in more than
// TARN__PICKLE_INT_MOST bytes, which are not read then.
bool tarn__pickle_int(const tarn__trace_pickle *pickle,
                      tarn__trace_pickle_value value, bool *out_negative,
                      uint64_t *out_magnitude);

// The bytes of a TARN__TEXT or TARN__BYTES; not terminated.
void tarn__pickle_text(const tarn__trace_pickle *pickle,
                       tarn__trace_pickle_value value, const char **out_bytes,
                       size_t *out_size);

// The row of |table| whose text is |value|; |rows| if there is none. The table
// has |rows| rows of |row_size| bytes, each with a const char * at its begin. A
// pickler writes a text once and refers to it, so the last rows found are
// remembered by their texts' places.
size_t tarn__pickle_find(const tarn__trace_pickle *pickle,
                         tarn__trace_pickle_value value, const void *table,
                         size_t row_size, size_t rows);

// A walk over the values of a container, in order.
typedef struct tarn__trace_pickle_walk {
  const tarn__trace_pickle_value *cells;
  uint32_t next;  // cell of the next value
  uint32_t left;  // values left in this run
  uint32_t run;   // head of the run after this one, or 0
} tarn__trace_pickle_walk;

static inline tarn__trace_pickle_walk tarn__pickle_walk(
    const tarn__trace_pickle *pickle, tarn__trace_pickle_value container) {
  return (tarn__trace_pickle_walk){
      .cells = (const tarn__trace_pickle_value *)pickle->cells.items,
      .run = tarn__pickle_container(pickle, container)->first};
}

static inline bool tarn__walk_next(tarn__trace_pickle_walk *walk,
                                   tarn__trace_pickle_value *out_value) {
  if (walk->left == 0) {
    if (walk->run == 0) return false;
    tarn__trace_pickle_value head = walk->cells[walk->run];
    walk->next = walk->run + 1;
    walk->left = head.type;
    walk->run = head.at;
  }
  *out_value = walk->cells[walk->next++];
  walk->left--;
  return true;
}

// --- arguments of opcodes -------------------------------------------------

// The argument of the opcode at byte |at| of a file in which it is whole:
// |*out_size| bytes from byte |*out_from|, lengths not included.
void tarn__pickle_argument(const tarn__trace_pickle *pickle, size_t at,
                           size_t *out_from, size_t *out_size);

// A little-endian number of |size| bytes, at most 8.
static inline uint64_t tarn__pickle_little(const unsigned char *bytes,
                                           size_t size) {
  uint64_t number = 0;
  if (size == 1) return bytes[0];
  for (size_t i = size; i-- > 0;)
    number = number << 8 | bytes[i];
  return number;
}

#endif  // TARN_TRACE_PICKLE_H_
