// The pickle machine: opcodes in, a tree of 8-byte values out.
//
//        file   }  MARK  "addr"  1024  "size"  512  SETITEMS
//                                                      |
//       stack   ... {} | "addr" 1024 "size" 512        |    marks: heights of
//                      ^ mark                          v    the stack
//       cells   ... [4, next] "addr" 1024 "size" 512
//       containers   {}: first ------^
//
// One table says for every opcode its name, the shape of its argument and the
// function that obeys it. A first pass over the file counts what the tree
// needs, so that no array has to grow and be copied. Invariants:
//   - no function here calls itself, directly or not: depth is data;
//   - every value on the stack was pushed by at least one byte of the file,
//     and moves from there into a cell at most once, so that all arrays are
//     linear in the file;
//   - a value below the newest mark is out of reach until that mark is gone.
#include "trace/pickle.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

enum { LOWEST_PROTOCOL = 2, HIGHEST_PROTOCOL = 5, FIRST_CELL = 1 };

enum { ABOVE_MARK = 255 };  // as many values as there are

typedef struct machine {
  tarn__trace_pickle *tree;
  tarn__array stack;  // tarn__trace_pickle_value
  tarn__array marks;  // uint32_t: heights of the stack
  tarn__array memo;   // tarn__trace_pickle_value; TARN__ABSENT: nothing was put
  size_t memo_used;   // slots that hold a value
  bool stopped;
} machine;

typedef struct opcode opcode;

// One opcode met in the file.
typedef struct instruction {
  const opcode *code;
  size_t at;        // byte of the opcode
  size_t argument;  // first byte of its argument, lengths not included
  size_t size;      // bytes of that
} instruction;

struct opcode {
  const char *name;  // NULL: no such opcode
  uint8_t fixed;     // bytes of an argument of fixed size ...
  uint8_t counted;   // ... or of the length that stands before it
  uint8_t type;      // of the value that it makes or fills
  uint8_t takes;     // values of the stack, or ABOVE_MARK
  tarn_status (*act)(machine *m, const instruction *step);
};

static const char *const type_names[] = {
    [TARN__ABSENT] = "nothing", [TARN__NONE] = "None",
    [TARN__BOOL] = "a bool",    [TARN__INT] = "an integer",
    [TARN__FLOAT] = "a float",  [TARN__TEXT] = "a text",
    [TARN__BYTES] = "bytes",    [TARN__LIST] = "a list",
    [TARN__TUPLE] = "a tuple",  [TARN__SET] = "a set",
    [TARN__DICT] = "a dict",
};

const char *tarn__value_type_name(uint32_t type) {
  return type_names[type];
}

tarn_status tarn__pickle_corrupt(const tarn__trace_pickle *pickle, size_t at,
                                 const char *format, ...) {
  char text[320];
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  return tarn__fail(TARN_E_CORRUPT, "%s: byte %zu: %s", pickle->name, at, text);
}

static tarn_status corrupt_step(const machine *m, const instruction *step,
                                const char *why) {
  return tarn__pickle_corrupt(m->tree, step->at, "%s %s", step->code->name,
                              why);
}

static uint64_t argument_number(const machine *m, const instruction *step) {
  return tarn__pickle_little(m->tree->bytes + step->argument, step->size);
}

// --- the stack -------------------------------------------------------------

static tarn__trace_pickle_value *stack_values(const machine *m) {
  return m->stack.items;
}

// The height of the newest mark: values below it are out of reach.
static size_t fence(const machine *m) {
  const uint32_t *marks = m->marks.items;
  return m->marks.count == 0 ? 0 : marks[m->marks.count - 1];
}

static size_t reachable(const machine *m) {
  return m->stack.count - fence(m);
}

static inline tarn_status push(machine *m, uint32_t type, size_t at) {
  void *top = NULL;
  TARN__TRY(tarn__array_grow(m->tree->budget, &m->stack, 1, &top));
  *(tarn__trace_pickle_value *)top =
      (tarn__trace_pickle_value){.type = type, .at = (uint32_t)at};
  return TARN_OK;
}

static tarn_status need(const machine *m, const instruction *step,
                        size_t count) {
  if (reachable(m) >= count) return TARN_OK;
  return corrupt_step(m, step, "finds too few values on the stack");
}

// Removes the newest mark; |*out_count| values are above it.
static tarn_status pop_mark(machine *m, const instruction *step,
                            size_t *out_count) {
  *out_count = 0;
  if (m->marks.count == 0) return corrupt_step(m, step, "finds no mark");
  *out_count = reachable(m);
  tarn__array_drop(&m->marks, 1);
  return TARN_OK;
}

// --- containers ------------------------------------------------------------

// Appends |count| cells to |container|: to its last run where that is the
// newest of all, else as a run of its own.
static tarn_status add_cells(machine *m,
                             tarn__trace_pickle_container *container,
                             size_t count,
                             tarn__trace_pickle_value **out_cells) {
  tarn__trace_pickle *tree = m->tree;
  tarn__trace_pickle_value *cells = tree->cells.items;
  bool newest =
      container->first != 0 &&
      container->last + 1 + cells[container->last].type == tree->cells.count;
  size_t head = tree->cells.count;
  void *fresh = NULL;
  *out_cells = NULL;
  TARN__TRY(tarn__array_grow(tree->budget, &tree->cells,
                             count + (newest ? 0 : 1), &fresh));
  cells = tree->cells.items;
  *out_cells = (tarn__trace_pickle_value *)fresh + (newest ? 0 : 1);
  if (!newest) {
    if (container->first == 0) container->first = (uint32_t)head;
    if (container->last != 0) cells[container->last].at = (uint32_t)head;
    container->last = (uint32_t)head;
  }
  cells[container->last].type += (uint32_t)count;
  container->count += (uint32_t)count;
  return TARN_OK;
}

// Moves the top |count| values of the stack into the container at |index|.
static tarn_status move_into(machine *m, uint32_t index, size_t count) {
  if (count == 0) return TARN_OK;
  tarn__trace_pickle_container *container =
      (tarn__trace_pickle_container *)m->tree->containers.items + index;
  tarn__trace_pickle_value *cells = NULL;
  TARN__TRY(add_cells(m, container, count, &cells));
  assert(cells != NULL);
  memcpy(cells, stack_values(m) + m->stack.count - count,
         count * sizeof *cells);
  tarn__array_drop(&m->stack, count);
  return TARN_OK;
}

static tarn_status check_keys(machine *m, const instruction *step,
                              size_t count) {
  if (count == 0) return TARN_OK;  // there may be no stack yet
  const tarn__trace_pickle_value *pairs =
      stack_values(m) + m->stack.count - count;
  if (count % 2 != 0) return corrupt_step(m, step, "finds a key of no value");
  for (size_t i = 0; i < count; i += 2) {
    if (pairs[i].type == TARN__LIST || pairs[i].type == TARN__DICT ||
        pairs[i].type == TARN__SET) {
      return corrupt_step(m, step, "finds a container as a key");
    }
  }
  return TARN_OK;
}

// --- what opcodes do: values -----------------------------------------------

static tarn_status do_scalar(machine *m, const instruction *step) {
  return push(m, step->code->type, step->at);
}

static tarn_status do_mark(machine *m, const instruction *step) {
  (void)step;
  void *mark = NULL;
  TARN__TRY(tarn__array_grow(m->tree->budget, &m->marks, 1, &mark));
  *(uint32_t *)mark = (uint32_t)m->stack.count;
  return TARN_OK;
}

// The number of values that a container is to get.
static tarn_status count_values(machine *m, const instruction *step,
                                size_t *out_count) {
  *out_count = step->code->takes;
  if (step->code->takes == ABOVE_MARK) {
    TARN__TRY(pop_mark(m, step, out_count));
  } else {
    TARN__TRY(need(m, step, step->code->takes));
  }
  if (step->code->type != TARN__DICT) return TARN_OK;
  return check_keys(m, step, *out_count);
}

// Makes a container.
static tarn_status do_collect(machine *m, const instruction *step) {
  size_t count = 0;
  void *fresh = NULL;
  tarn__array *containers = &m->tree->containers;
  size_t index = containers->count;
  TARN__TRY(count_values(m, step, &count));
  TARN__TRY(tarn__array_grow(m->tree->budget, containers, 1, &fresh));
  ((tarn__trace_pickle_container *)fresh)->at = (uint32_t)step->at;
  TARN__TRY(move_into(m, (uint32_t)index, count));
  return push(m, step->code->type, index);
}

// Moves values into the container below them.
static tarn_status do_extend(machine *m, const instruction *step) {
  size_t count = 0;
  uint32_t type = step->code->type;
  TARN__TRY(count_values(m, step, &count));
  TARN__TRY(need(m, step, count + 1));
  tarn__trace_pickle_value target = stack_values(m)[m->stack.count - count - 1];
  if (target.type != type) {
    return tarn__pickle_corrupt(
        m->tree, step->at, "%s finds %s below, not %s", step->code->name,
        tarn__value_type_name(target.type), tarn__value_type_name(type));
  }
  return move_into(m, target.at, count);
}

// --- what opcodes do: stack and memo ---------------------------------------

// As in Python, POP removes the mark if no value is above it.
static tarn_status do_pop(machine *m, const instruction *step) {
  size_t count = 0;
  if (reachable(m) == 0) return pop_mark(m, step, &count);
  tarn__array_drop(&m->stack, 1);
  return TARN_OK;
}

static tarn_status do_pop_mark(machine *m, const instruction *step) {
  size_t count = 0;
  TARN__TRY(pop_mark(m, step, &count));
  if (count != 0) tarn__array_drop(&m->stack, count);
  return TARN_OK;
}

static tarn_status do_dup(machine *m, const instruction *step) {
  TARN__TRY(need(m, step, 1));
  tarn__trace_pickle_value top = stack_values(m)[m->stack.count - 1];
  return push(m, top.type, top.at);
}

static tarn_status put(machine *m, const instruction *step, uint64_t slot) {
  TARN__TRY(need(m, step, 1));
  // A pickler numbers from 0 on, and each number costs it a byte or more.
  if (slot >= m->tree->size) {
    return corrupt_step(m, step, "names a slot beyond the file's size");
  }
  if (slot >= m->memo.count) {
    void *fresh = NULL;
    TARN__TRY(tarn__array_grow(m->tree->budget, &m->memo,
                               (size_t)slot + 1 - m->memo.count, &fresh));
  }
  tarn__trace_pickle_value *memo = m->memo.items;
  if (memo[slot].type == TARN__ABSENT) m->memo_used++;
  memo[slot] = stack_values(m)[m->stack.count - 1];
  return TARN_OK;
}

static tarn_status do_memoize(machine *m, const instruction *step) {
  return put(m, step, m->memo_used);
}

static tarn_status do_put(machine *m, const instruction *step) {
  return put(m, step, argument_number(m, step));
}

static tarn_status do_get(machine *m, const instruction *step) {
  uint64_t slot = argument_number(m, step);
  const tarn__trace_pickle_value *memo = m->memo.items;
  if (slot >= m->memo.count || memo[slot].type == TARN__ABSENT) {
    return corrupt_step(m, step, "asks for a value that was not put");
  }
  return push(m, memo[slot].type, memo[slot].at);
}

// --- what opcodes do: the file ---------------------------------------------

static tarn_status do_proto(machine *m, const instruction *step) {
  uint64_t protocol = argument_number(m, step);
  if (step->at != 0) return corrupt_step(m, step, "is not the first");
  if (protocol >= LOWEST_PROTOCOL && protocol <= HIGHEST_PROTOCOL) {
    return TARN_OK;
  }
  return tarn__pickle_corrupt(
      m->tree, step->at, "PROTO %u: only pickle protocols %d to %d are read",
      (unsigned)protocol, LOWEST_PROTOCOL, HIGHEST_PROTOCOL);
}

// A frame is a hint for readers that buffer; only its length is checked.
static tarn_status do_frame(machine *m, const instruction *step) {
  size_t left = m->tree->size - step->argument - step->size;
  if (argument_number(m, step) <= left) return TARN_OK;
  return corrupt_step(m, step, "is longer than the file");
}

static tarn_status do_stop(machine *m, const instruction *step) {
  if (m->marks.count != 0) return corrupt_step(m, step, "finds a mark left");
  if (m->stack.count != 1) {
    return tarn__pickle_corrupt(m->tree, step->at,
                                "STOP finds %zu values, not 1", m->stack.count);
  }
  m->tree->root = stack_values(m)[0];
  m->stopped = true;
  return TARN_OK;
}

static tarn_status do_refuse(machine *m, const instruction *step) {
  return corrupt_step(m, step,
                      "is refused: only opcodes that build data are obeyed");
}

static tarn_status do_refuse_text(machine *m, const instruction *step) {
  return corrupt_step(
      m, step, "is refused: it is of a text protocol, only 2 to 5 are read");
}

// --- the opcodes -----------------------------------------------------------

static const opcode opcodes[256] = {
    ['('] = {"MARK", 0, 0, 0, 0, do_mark},
    ['.'] = {"STOP", 0, 0, 0, 0, do_stop},
    ['0'] = {"POP", 0, 0, 0, 0, do_pop},
    ['1'] = {"POP_MARK", 0, 0, 0, 0, do_pop_mark},
    ['2'] = {"DUP", 0, 0, 0, 0, do_dup},
    [0x80] = {"PROTO", 1, 0, 0, 0, do_proto},
    [0x95] = {"FRAME", 8, 0, 0, 0, do_frame},

    ['N'] = {"NONE", 0, 0, TARN__NONE, 0, do_scalar},
    [0x88] = {"NEWTRUE", 0, 0, TARN__BOOL, 0, do_scalar},
    [0x89] = {"NEWFALSE", 0, 0, TARN__BOOL, 0, do_scalar},
    ['J'] = {"BININT", 4, 0, TARN__INT, 0, do_scalar},
    ['K'] = {"BININT1", 1, 0, TARN__INT, 0, do_scalar},
    ['M'] = {"BININT2", 2, 0, TARN__INT, 0, do_scalar},
    [0x8a] = {"LONG1", 0, 1, TARN__INT, 0, do_scalar},
    [0x8b] = {"LONG4", 0, 4, TARN__INT, 0, do_scalar},
    ['G'] = {"BINFLOAT", 8, 0, TARN__FLOAT, 0, do_scalar},

    ['U'] = {"SHORT_BINSTRING", 0, 1, TARN__TEXT, 0, do_scalar},
    ['T'] = {"BINSTRING", 0, 4, TARN__TEXT, 0, do_scalar},
    [0x8c] = {"SHORT_BINUNICODE", 0, 1, TARN__TEXT, 0, do_scalar},
    ['X'] = {"BINUNICODE", 0, 4, TARN__TEXT, 0, do_scalar},
    [0x8d] = {"BINUNICODE8", 0, 8, TARN__TEXT, 0, do_scalar},
    ['C'] = {"SHORT_BINBYTES", 0, 1, TARN__BYTES, 0, do_scalar},
    ['B'] = {"BINBYTES", 0, 4, TARN__BYTES, 0, do_scalar},
    [0x8e] = {"BINBYTES8", 0, 8, TARN__BYTES, 0, do_scalar},
    [0x96] = {"BYTEARRAY8", 0, 8, TARN__BYTES, 0, do_scalar},

    [']'] = {"EMPTY_LIST", 0, 0, TARN__LIST, 0, do_collect},
    [')'] = {"EMPTY_TUPLE", 0, 0, TARN__TUPLE, 0, do_collect},
    ['}'] = {"EMPTY_DICT", 0, 0, TARN__DICT, 0, do_collect},
    [0x8f] = {"EMPTY_SET", 0, 0, TARN__SET, 0, do_collect},
    ['l'] = {"LIST", 0, 0, TARN__LIST, ABOVE_MARK, do_collect},
    ['t'] = {"TUPLE", 0, 0, TARN__TUPLE, ABOVE_MARK, do_collect},
    ['d'] = {"DICT", 0, 0, TARN__DICT, ABOVE_MARK, do_collect},
    [0x91] = {"FROZENSET", 0, 0, TARN__TUPLE, ABOVE_MARK, do_collect},
    [0x85] = {"TUPLE1", 0, 0, TARN__TUPLE, 1, do_collect},
    [0x86] = {"TUPLE2", 0, 0, TARN__TUPLE, 2, do_collect},
    [0x87] = {"TUPLE3", 0, 0, TARN__TUPLE, 3, do_collect},
    ['a'] = {"APPEND", 0, 0, TARN__LIST, 1, do_extend},
    ['e'] = {"APPENDS", 0, 0, TARN__LIST, ABOVE_MARK, do_extend},
    ['s'] = {"SETITEM", 0, 0, TARN__DICT, 2, do_extend},
    ['u'] = {"SETITEMS", 0, 0, TARN__DICT, ABOVE_MARK, do_extend},
    [0x90] = {"ADDITEMS", 0, 0, TARN__SET, ABOVE_MARK, do_extend},

    ['q'] = {"BINPUT", 1, 0, 0, 0, do_put},
    ['r'] = {"LONG_BINPUT", 4, 0, 0, 0, do_put},
    [0x94] = {"MEMOIZE", 0, 0, 0, 0, do_memoize},
    ['h'] = {"BINGET", 1, 0, 0, 0, do_get},
    ['j'] = {"LONG_BINGET", 4, 0, 0, 0, do_get},

    ['c'] = {"GLOBAL", 0, 0, 0, 0, do_refuse},
    [0x93] = {"STACK_GLOBAL", 0, 0, 0, 0, do_refuse},
    ['R'] = {"REDUCE", 0, 0, 0, 0, do_refuse},
    ['b'] = {"BUILD", 0, 0, 0, 0, do_refuse},
    ['i'] = {"INST", 0, 0, 0, 0, do_refuse},
    ['o'] = {"OBJ", 0, 0, 0, 0, do_refuse},
    [0x81] = {"NEWOBJ", 0, 0, 0, 0, do_refuse},
    [0x92] = {"NEWOBJ_EX", 0, 0, 0, 0, do_refuse},
    ['P'] = {"PERSID", 0, 0, 0, 0, do_refuse},
    ['Q'] = {"BINPERSID", 0, 0, 0, 0, do_refuse},
    [0x82] = {"EXT1", 0, 0, 0, 0, do_refuse},
    [0x83] = {"EXT2", 0, 0, 0, 0, do_refuse},
    [0x84] = {"EXT4", 0, 0, 0, 0, do_refuse},
    [0x97] = {"NEXT_BUFFER", 0, 0, 0, 0, do_refuse},
    [0x98] = {"READONLY_BUFFER", 0, 0, 0, 0, do_refuse},

    ['I'] = {"INT", 0, 0, 0, 0, do_refuse_text},
    ['L'] = {"LONG", 0, 0, 0, 0, do_refuse_text},
    ['F'] = {"FLOAT", 0, 0, 0, 0, do_refuse_text},
    ['S'] = {"STRING", 0, 0, 0, 0, do_refuse_text},
    ['V'] = {"UNICODE", 0, 0, 0, 0, do_refuse_text},
    ['p'] = {"PUT", 0, 0, 0, 0, do_refuse_text},
    ['g'] = {"GET", 0, 0, 0, 0, do_refuse_text},
};

void tarn__pickle_argument(const tarn__trace_pickle *pickle, size_t at,
                           size_t *out_from, size_t *out_size) {
  const opcode *code = &opcodes[pickle->bytes[at]];
  *out_from = at + 1 + code->counted;
  *out_size = code->fixed;
  if (code->counted == 0) return;
  *out_size =
      (size_t)tarn__pickle_little(pickle->bytes + at + 1, code->counted);
}

// --- running ---------------------------------------------------------------

// The opcode at byte |at|, with its whole argument inside the file.
static inline tarn_status decode(const tarn__trace_pickle *tree, size_t at,
                                 instruction *out_step) {
  if (at >= tree->size) {
    return tarn__pickle_corrupt(tree, at, "the file ends before STOP");
  }
  const opcode *code = &opcodes[tree->bytes[at]];
  if (code->name == NULL) {
    return tarn__pickle_corrupt(tree, at, "0x%02x is not an opcode",
                                tree->bytes[at]);
  }
  size_t left = tree->size - at - 1;
  *out_step = (instruction){.code = code,
                            .at = at,
                            .argument = at + 1 + code->counted,
                            .size = code->fixed};
  if (left >= (size_t)code->fixed + code->counted) {
    if (code->counted == 0) return TARN_OK;
    out_step->size =
        (size_t)tarn__pickle_little(tree->bytes + at + 1, code->counted);
    if (out_step->size <= left - code->counted) return TARN_OK;
  }
  return tarn__pickle_corrupt(tree, at, "the file ends within %s", code->name);
}

static tarn_status run(machine *m) {
  size_t at = 0;
  while (!m->stopped) {
    instruction step = {0};
    TARN__TRY(decode(m->tree, at, &step));
    assert(step.code != NULL);
    TARN__TRY(step.code->act(m, &step));
    at = step.argument + step.size;
  }
  if (at == m->tree->size) return TARN_OK;
  return tarn__pickle_corrupt(m->tree, at, "%zu bytes after STOP",
                              m->tree->size - at);
}

// Makes room for what the file needs: a container, the cell that its value will
// stand in, the head of a run. Stops at damage, which running will report.
static tarn_status make_room(tarn__trace_pickle *tree) {
  instruction step = {0};
  size_t containers = 0;
  size_t cells = FIRST_CELL;
  while (step.argument + step.size < tree->size &&
         decode(tree, step.argument + step.size, &step) == TARN_OK) {
    const opcode *code = step.code;
    assert(code != NULL);
    bool makes = code->act == do_collect;
    bool fills = makes || code->act == do_extend;
    bool pushes = makes || code->act == do_scalar || code->act == do_get ||
                  code->act == do_dup;
    containers += makes;
    cells += (size_t)(fills && code->takes != 0) + (size_t)pushes;
  }
  TARN__TRY(tarn__array_make(tree->budget, &tree->known, TARN__PICKLE_KNOWN));
  TARN__TRY(tarn__array_reserve(tree->budget, &tree->containers, containers));
  return tarn__array_reserve(tree->budget, &tree->cells, cells);
}

static tarn_status begin(tarn__trace_pickle *tree) {
  void *unused = NULL;
  if (tree->size == 0) {
    return tarn__pickle_corrupt(tree, 0, "the file is empty");
  }
  if (tree->size > TARN__PICKLE_MOST) {
    return tarn__fail(TARN_E_UNSUPPORTED,
                      "%s: %zu bytes; pickles of at most %zu are read",
                      tree->name, tree->size, TARN__PICKLE_MOST);
  }
  if (tree->bytes[0] != 0x80) {
    return tarn__pickle_corrupt(
        tree, 0, "0x%02x is no PROTO: not a pickle of protocol 2 to 5",
        tree->bytes[0]);
  }
  TARN__TRY(make_room(tree));
  return tarn__array_grow(tree->budget, &tree->cells, FIRST_CELL, &unused);
}

tarn_status tarn__pickle_load(tarn__trace_pickle *pickle, tarn__budget *budget,
                              const char *name, const void *bytes,
                              size_t size) {
  *pickle = (tarn__trace_pickle){
      .budget = budget,
      .name = name,
      .bytes = bytes,
      .size = size,
      .cells = TARN__ARRAY_OF(tarn__trace_pickle_value),
      .containers = TARN__ARRAY_OF(tarn__trace_pickle_container),
      .known = TARN__ARRAY_OF(tarn__trace_pickle_known)};
  machine m = {.tree = pickle,
               .stack = TARN__ARRAY_OF(tarn__trace_pickle_value),
               .marks = TARN__ARRAY_OF(uint32_t),
               .memo = TARN__ARRAY_OF(tarn__trace_pickle_value)};
  tarn_status status = begin(pickle);
  if (status == TARN_OK) status = run(&m);
  tarn__array_free(budget, &m.memo);
  tarn__array_free(budget, &m.marks);
  tarn__array_free(budget, &m.stack);
  return status;
}

void tarn__pickle_deinit(tarn__trace_pickle *pickle) {
  tarn__array_free(pickle->budget, &pickle->known);
  tarn__array_free(pickle->budget, &pickle->containers);
  tarn__array_free(pickle->budget, &pickle->cells);
}
