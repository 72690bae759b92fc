// pickle_machine.h - the machine that obeys pickles: what its opcodes and the
// loop that runs them share.
#ifndef TARN_TRACE_PICKLE_MACHINE_H_
#define TARN_TRACE_PICKLE_MACHINE_H_

#include "trace/pickle.h"

typedef struct tarn__trace_machine {
  tarn__trace_pickle *tree;
  tarn__array stack;  // tarn__trace_pickle_value
  tarn__array marks;  // uint32_t: heights of the stack
  tarn__array
      memo;  // tarn__trace_pickle_value, TARN__ABSENT where nothing was put
  size_t memo_used;  // slots that hold a value
  bool stopped;
} tarn__trace_machine;

typedef struct tarn__trace_opcode tarn__trace_opcode;

// One opcode met in the file.
typedef struct tarn__trace_instruction {
  const tarn__trace_opcode *code;
  size_t at;        // byte of the opcode
  size_t argument;  // first byte of its argument, lengths not included
  size_t size;      // bytes of that
} tarn__trace_instruction;

struct tarn__trace_opcode {
  const char *name;  // NULL: no such opcode
  uint8_t fixed;     // bytes of an argument of fixed size ...
  uint8_t counted;   // ... or of the length that stands before it
  uint8_t type;      // of the value it makes, or how many values it takes
  tarn_status (*act)(tarn__trace_machine *m,
                     const tarn__trace_instruction *step);
};

extern const tarn__trace_opcode tarn__opcodes[256];

// What a file needs of its tree.
typedef struct tarn__trace_needs {
  size_t cells;
  size_t containers;
} tarn__trace_needs;

// Adds what |code| adds to the tree at most: a container, the cell that its
// value will stand in, the head of a run.
void tarn__opcode_needs(const tarn__trace_opcode *code, tarn__trace_needs *sum);

#endif  // TARN_TRACE_PICKLE_MACHINE_H_
