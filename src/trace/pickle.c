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
// function that obeys it. Invariants:
//   - no function here calls itself, directly or not: depth is data;
//   - every value on the stack was pushed by at least one byte of the file,
//     and moves from there into a cell at most once, so that all arrays are
//     linear in the file;
//   - a value below the newest mark is out of reach until that mark is gone.
#include "trace/pickle_machine.h"

#include <assert.h>
#include <string.h>

#include "base/status.h"

enum { LOWEST_PROTOCOL = 2, HIGHEST_PROTOCOL = 5 };

static tarn_status corrupt_step(const tarn__trace_machine *m,
                                const tarn__trace_instruction *step,
                                const char *why) {
  return tarn__pickle_corrupt(m->tree, step->at, "%s %s", step->code->name,
                              why);
}

static uint64_t argument_number(const tarn__trace_machine *m,
                                const tarn__trace_instruction *step) {
  return tarn__pickle_little(m->tree->bytes + step->argument, step->size);
}

// --- the stack -------------------------------------------------------------

static tarn__trace_pickle_value *stack_values(const tarn__trace_machine *m) {
  return m->stack.items;
}

// The height of the newest mark: values below it are out of reach.
static size_t fence(const tarn__trace_machine *m) {
  const uint32_t *marks = m->marks.items;
  return m->marks.count == 0 ? 0 : marks[m->marks.count - 1];
}

static size_t reachable(const tarn__trace_machine *m) {
  return m->stack.count - fence(m);
}

static inline tarn_status push(tarn__trace_machine *m, uint32_t type,
                               size_t at) {
  void *top = NULL;
  tarn_status status = tarn__array_grow(m->tree->budget, &m->stack, 1, &top);
  if (status != TARN_OK) return status;
  *(tarn__trace_pickle_value *)top =
      (tarn__trace_pickle_value){.type = type, .at = (uint32_t)at};
  return TARN_OK;
}

static tarn_status need(const tarn__trace_machine *m,
                        const tarn__trace_instruction *step, size_t count) {
  if (reachable(m) >= count) return TARN_OK;
  return corrupt_step(m, step, "finds too few values on the stack");
}

// Removes the newest mark; |*out_count| values are above it.
static tarn_status pop_mark(tarn__trace_machine *m,
                            const tarn__trace_instruction *step,
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
static tarn_status add_cells(tarn__trace_machine *m,
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
  tarn_status status = tarn__array_grow(tree->budget, &tree->cells,
                                        count + (newest ? 0 : 1), &fresh);
  if (status != TARN_OK) return status;
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
static tarn_status move_into(tarn__trace_machine *m, uint32_t index,
                             size_t count) {
  if (count == 0) return TARN_OK;
  tarn__trace_pickle_container *container =
      (tarn__trace_pickle_container *)m->tree->containers.items + index;
  tarn__trace_pickle_value *cells = NULL;
  tarn_status status = add_cells(m, container, count, &cells);
  if (status != TARN_OK) return status;
  assert(cells != NULL);
  memcpy(cells, stack_values(m) + m->stack.count - count,
         count * sizeof *cells);
  tarn__array_drop(&m->stack, count);
  return TARN_OK;
}

static tarn_status new_box(tarn__trace_machine *m,
                           const tarn__trace_instruction *step,
                           uint32_t *out_index) {
  void *container = NULL;
  *out_index = (uint32_t)m->tree->containers.count;
  tarn_status status =
      tarn__array_grow(m->tree->budget, &m->tree->containers, 1, &container);
  if (status == TARN_OK)
    ((tarn__trace_pickle_container *)container)->at = (uint32_t)step->at;
  return status;
}

// Makes a container of the top |count| values.
static tarn_status collect(tarn__trace_machine *m,
                           const tarn__trace_instruction *step, uint32_t type,
                           size_t count) {
  uint32_t index = 0;
  tarn_status status = new_box(m, step, &index);
  if (status == TARN_OK) status = move_into(m, index, count);
  return status == TARN_OK ? push(m, type, index) : status;
}

// Moves the top |count| values into the container of |type| below them.
static tarn_status extend(tarn__trace_machine *m,
                          const tarn__trace_instruction *step, uint32_t type,
                          size_t count) {
  tarn_status status = need(m, step, count + 1);
  if (status != TARN_OK) return status;
  tarn__trace_pickle_value target = stack_values(m)[m->stack.count - count - 1];
  if (target.type != type) {
    return tarn__pickle_corrupt(
        m->tree, step->at, "%s finds %s below, not %s", step->code->name,
        tarn__value_type_name(target.type), tarn__value_type_name(type));
  }
  return move_into(m, target.at, count);
}

static tarn_status check_keys(tarn__trace_machine *m,
                              const tarn__trace_instruction *step,
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

static tarn_status do_scalar(tarn__trace_machine *m,
                             const tarn__trace_instruction *step) {
  return push(m, step->code->type, step->at);
}

static tarn_status do_empty(tarn__trace_machine *m,
                            const tarn__trace_instruction *step) {
  return collect(m, step, step->code->type, 0);
}

static tarn_status do_mark(tarn__trace_machine *m,
                           const tarn__trace_instruction *step) {
  (void)step;
  void *mark = NULL;
  tarn_status status = tarn__array_grow(m->tree->budget, &m->marks, 1, &mark);
  if (status == TARN_OK) *(uint32_t *)mark = (uint32_t)m->stack.count;
  return status;
}

// TUPLE1, TUPLE2, TUPLE3: |type| is the number of values.
static tarn_status do_short_tuple(tarn__trace_machine *m,
                                  const tarn__trace_instruction *step) {
  tarn_status status = need(m, step, step->code->type);
  if (status != TARN_OK) return status;
  return collect(m, step, TARN__TUPLE, step->code->type);
}

// TUPLE, LIST, DICT, FROZENSET: the values above the mark.
static tarn_status do_collect(tarn__trace_machine *m,
                              const tarn__trace_instruction *step) {
  size_t count = 0;
  tarn_status status = pop_mark(m, step, &count);
  if (status == TARN_OK && step->code->type == TARN__DICT) {
    status = check_keys(m, step, count);
  }
  if (status != TARN_OK) return status;
  return collect(m, step, step->code->type, count);
}

static tarn_status do_append(tarn__trace_machine *m,
                             const tarn__trace_instruction *step) {
  return extend(m, step, TARN__LIST, 1);
}

static tarn_status do_setitem(tarn__trace_machine *m,
                              const tarn__trace_instruction *step) {
  tarn_status status = need(m, step, 2);
  if (status == TARN_OK) status = check_keys(m, step, 2);
  return status == TARN_OK ? extend(m, step, TARN__DICT, 2) : status;
}

// APPENDS, ADDITEMS, SETITEMS: the values above the mark into the container
// below.
static tarn_status do_extend(tarn__trace_machine *m,
                             const tarn__trace_instruction *step) {
  size_t count = 0;
  tarn_status status = pop_mark(m, step, &count);
  if (status == TARN_OK && step->code->type == TARN__DICT) {
    status = check_keys(m, step, count);
  }
  return status == TARN_OK ? extend(m, step, step->code->type, count) : status;
}

// --- what opcodes do: stack and memo ---------------------------------------

// As in Python, POP removes the mark if no value is above it.
static tarn_status do_pop(tarn__trace_machine *m,
                          const tarn__trace_instruction *step) {
  size_t count = 0;
  if (reachable(m) == 0) return pop_mark(m, step, &count);
  tarn__array_drop(&m->stack, 1);
  return TARN_OK;
}

static tarn_status do_pop_mark(tarn__trace_machine *m,
                               const tarn__trace_instruction *step) {
  size_t count = 0;
  tarn_status status = pop_mark(m, step, &count);
  if (status == TARN_OK && count != 0) tarn__array_drop(&m->stack, count);
  return status;
}

static tarn_status do_dup(tarn__trace_machine *m,
                          const tarn__trace_instruction *step) {
  tarn_status status = need(m, step, 1);
  if (status != TARN_OK) return status;
  tarn__trace_pickle_value top = stack_values(m)[m->stack.count - 1];
  return push(m, top.type, top.at);
}

static tarn_status put(tarn__trace_machine *m,
                       const tarn__trace_instruction *step, uint64_t slot) {
  tarn_status status = need(m, step, 1);
  if (status != TARN_OK) return status;
  // A pickler numbers from 0 on, and each number costs it a byte or more.
  if (slot >= m->tree->size) {
    return corrupt_step(m, step, "names a slot beyond the file's size");
  }
  if (slot >= m->memo.count) {
    void *fresh = NULL;
    status = tarn__array_grow(m->tree->budget, &m->memo,
                              (size_t)slot + 1 - m->memo.count, &fresh);
    if (status != TARN_OK) return status;
  }
  tarn__trace_pickle_value *memo = m->memo.items;
  if (memo[slot].type == TARN__ABSENT) m->memo_used++;
  memo[slot] = stack_values(m)[m->stack.count - 1];
  return TARN_OK;
}

static tarn_status do_memoize(tarn__trace_machine *m,
                              const tarn__trace_instruction *step) {
  return put(m, step, m->memo_used);
}

static tarn_status do_put(tarn__trace_machine *m,
                          const tarn__trace_instruction *step) {
  return put(m, step, argument_number(m, step));
}

static tarn_status do_get(tarn__trace_machine *m,
                          const tarn__trace_instruction *step) {
  uint64_t slot = argument_number(m, step);
  const tarn__trace_pickle_value *memo = m->memo.items;
  if (slot >= m->memo.count || memo[slot].type == TARN__ABSENT) {
    return corrupt_step(m, step, "asks for a value that was not put");
  }
  return push(m, memo[slot].type, memo[slot].at);
}

// --- what opcodes do: the file ---------------------------------------------

static tarn_status do_proto(tarn__trace_machine *m,
                            const tarn__trace_instruction *step) {
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
static tarn_status do_frame(tarn__trace_machine *m,
                            const tarn__trace_instruction *step) {
  size_t left = m->tree->size - step->argument - step->size;
  if (argument_number(m, step) <= left) return TARN_OK;
  return corrupt_step(m, step, "is longer than the file");
}

static tarn_status do_stop(tarn__trace_machine *m,
                           const tarn__trace_instruction *step) {
  if (m->marks.count != 0) return corrupt_step(m, step, "finds a mark left");
  if (m->stack.count != 1) {
    return tarn__pickle_corrupt(m->tree, step->at,
                                "STOP finds %zu values, not 1", m->stack.count);
  }
  m->tree->root = stack_values(m)[0];
  m->stopped = true;
  return TARN_OK;
}

static tarn_status do_refuse(tarn__trace_machine *m,
                             const tarn__trace_instruction *step) {
  return corrupt_step(m, step,
                      "is refused: only opcodes that build data are obeyed");
}

static tarn_status do_refuse_text(tarn__trace_machine *m,
                                  const tarn__trace_instruction *step) {
  return corrupt_step(
      m, step, "is refused: it is of a text protocol, only 2 to 5 are read");
}

// --- the opcodes -----------------------------------------------------------

const tarn__trace_opcode tarn__opcodes[256] = {
    ['('] = {"MARK", 0, 0, 0, do_mark},
    ['.'] = {"STOP", 0, 0, 0, do_stop},
    ['0'] = {"POP", 0, 0, 0, do_pop},
    ['1'] = {"POP_MARK", 0, 0, 0, do_pop_mark},
    ['2'] = {"DUP", 0, 0, 0, do_dup},
    [0x80] = {"PROTO", 1, 0, 0, do_proto},
    [0x95] = {"FRAME", 8, 0, 0, do_frame},

    ['N'] = {"NONE", 0, 0, TARN__NONE, do_scalar},
    [0x88] = {"NEWTRUE", 0, 0, TARN__BOOL, do_scalar},
    [0x89] = {"NEWFALSE", 0, 0, TARN__BOOL, do_scalar},
    ['J'] = {"BININT", 4, 0, TARN__INT, do_scalar},
    ['K'] = {"BININT1", 1, 0, TARN__INT, do_scalar},
    ['M'] = {"BININT2", 2, 0, TARN__INT, do_scalar},
    [0x8a] = {"LONG1", 0, 1, TARN__INT, do_scalar},
    [0x8b] = {"LONG4", 0, 4, TARN__INT, do_scalar},
    ['G'] = {"BINFLOAT", 8, 0, TARN__FLOAT, do_scalar},

    ['U'] = {"SHORT_BINSTRING", 0, 1, TARN__TEXT, do_scalar},
    ['T'] = {"BINSTRING", 0, 4, TARN__TEXT, do_scalar},
    [0x8c] = {"SHORT_BINUNICODE", 0, 1, TARN__TEXT, do_scalar},
    ['X'] = {"BINUNICODE", 0, 4, TARN__TEXT, do_scalar},
    [0x8d] = {"BINUNICODE8", 0, 8, TARN__TEXT, do_scalar},
    ['C'] = {"SHORT_BINBYTES", 0, 1, TARN__BYTES, do_scalar},
    ['B'] = {"BINBYTES", 0, 4, TARN__BYTES, do_scalar},
    [0x8e] = {"BINBYTES8", 0, 8, TARN__BYTES, do_scalar},
    [0x96] = {"BYTEARRAY8", 0, 8, TARN__BYTES, do_scalar},

    [']'] = {"EMPTY_LIST", 0, 0, TARN__LIST, do_empty},
    [')'] = {"EMPTY_TUPLE", 0, 0, TARN__TUPLE, do_empty},
    ['}'] = {"EMPTY_DICT", 0, 0, TARN__DICT, do_empty},
    [0x8f] = {"EMPTY_SET", 0, 0, TARN__SET, do_empty},
    ['l'] = {"LIST", 0, 0, TARN__LIST, do_collect},
    ['t'] = {"TUPLE", 0, 0, TARN__TUPLE, do_collect},
    ['d'] = {"DICT", 0, 0, TARN__DICT, do_collect},
    [0x91] = {"FROZENSET", 0, 0, TARN__TUPLE, do_collect},
    [0x85] = {"TUPLE1", 0, 0, 1, do_short_tuple},
    [0x86] = {"TUPLE2", 0, 0, 2, do_short_tuple},
    [0x87] = {"TUPLE3", 0, 0, 3, do_short_tuple},
    ['a'] = {"APPEND", 0, 0, 0, do_append},
    ['e'] = {"APPENDS", 0, 0, TARN__LIST, do_extend},
    ['s'] = {"SETITEM", 0, 0, 0, do_setitem},
    ['u'] = {"SETITEMS", 0, 0, TARN__DICT, do_extend},
    [0x90] = {"ADDITEMS", 0, 0, TARN__SET, do_extend},

    ['q'] = {"BINPUT", 1, 0, 0, do_put},
    ['r'] = {"LONG_BINPUT", 4, 0, 0, do_put},
    [0x94] = {"MEMOIZE", 0, 0, 0, do_memoize},
    ['h'] = {"BINGET", 1, 0, 0, do_get},
    ['j'] = {"LONG_BINGET", 4, 0, 0, do_get},

    ['c'] = {"GLOBAL", 0, 0, 0, do_refuse},
    [0x93] = {"STACK_GLOBAL", 0, 0, 0, do_refuse},
    ['R'] = {"REDUCE", 0, 0, 0, do_refuse},
    ['b'] = {"BUILD", 0, 0, 0, do_refuse},
    ['i'] = {"INST", 0, 0, 0, do_refuse},
    ['o'] = {"OBJ", 0, 0, 0, do_refuse},
    [0x81] = {"NEWOBJ", 0, 0, 0, do_refuse},
    [0x92] = {"NEWOBJ_EX", 0, 0, 0, do_refuse},
    ['P'] = {"PERSID", 0, 0, 0, do_refuse},
    ['Q'] = {"BINPERSID", 0, 0, 0, do_refuse},
    [0x82] = {"EXT1", 0, 0, 0, do_refuse},
    [0x83] = {"EXT2", 0, 0, 0, do_refuse},
    [0x84] = {"EXT4", 0, 0, 0, do_refuse},
    [0x97] = {"NEXT_BUFFER", 0, 0, 0, do_refuse},
    [0x98] = {"READONLY_BUFFER", 0, 0, 0, do_refuse},

    ['I'] = {"INT", 0, 0, 0, do_refuse_text},
    ['L'] = {"LONG", 0, 0, 0, do_refuse_text},
    ['F'] = {"FLOAT", 0, 0, 0, do_refuse_text},
    ['S'] = {"STRING", 0, 0, 0, do_refuse_text},
    ['V'] = {"UNICODE", 0, 0, 0, do_refuse_text},
    ['p'] = {"PUT", 0, 0, 0, do_refuse_text},
    ['g'] = {"GET", 0, 0, 0, do_refuse_text},
};

void tarn__pickle_argument(const tarn__trace_pickle *pickle, size_t at,
                           size_t *out_from, size_t *out_size) {
  const tarn__trace_opcode *code = &tarn__opcodes[pickle->bytes[at]];
  *out_from = at + 1 + code->counted;
  *out_size = code->fixed;
  if (code->counted == 0) return;
  *out_size =
      (size_t)tarn__pickle_little(pickle->bytes + at + 1, code->counted);
}

void tarn__opcode_needs(const tarn__trace_opcode *code,
                        tarn__trace_needs *sum) {
  bool containers = code->act == do_empty || code->act == do_collect ||
                    code->act == do_short_tuple;
  bool fills = code->act == do_collect || code->act == do_short_tuple ||
               code->act == do_extend || code->act == do_append ||
               code->act == do_setitem;
  bool pushes = containers || code->act == do_scalar || code->act == do_get ||
                code->act == do_dup;
  sum->containers += containers;
  sum->cells += (size_t)fills + (size_t)pushes;
}
