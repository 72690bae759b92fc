// pickle_machine.h - the machine that obeys pickles: what its opcodes and the
// loop that runs them share.
#ifndef TARN_TRACE_PICKLE_MACHINE_H_
#define TARN_TRACE_PICKLE_MACHINE_H_

#include "trace/pickle.h"

typedef struct tarn__machine {
  tarn__pickle *tree;
  tarn__array stack;  // tarn__value
  tarn__array marks;  // uint32_t: heights of the stack
  tarn__array memo;   // tarn__value, TARN__ABSENT where nothing was put
  size_t memo_used;   // slots that hold a value
  bool stopped;
} tarn__machine;

typedef struct tarn__opcode tarn__opcode;

// One opcode met in the file.
typedef struct tarn__instruction {
  const tarn__opcode *code;
  size_t at;        // byte of the opcode
  size_t argument;  // first byte of its argument, lengths not included
  size_t size;      // bytes of that
} tarn__instruction;

struct tarn__opcode {
  const char *name;  // NULL: no such opcode
  uint8_t fixed;     // bytes of an argument of fixed size ...
  uint8_t counted;   // ... or of the length that stands before it
  uint8_t type;      // of the value it makes, or how many values it takes
  tarn_status (*act)(tarn__machine *m, const tarn__instruction *step);
};

extern const tarn__opcode tarn__opcodes[256];

// What a file needs of its tree.
typedef struct tarn__needs {
  size_t cells;
  size_t boxes;
} tarn__needs;

// Adds what |code| adds to the tree at most: a box, the cell that its value
// will stand in, the head of a run.
void tarn__opcode_needs(const tarn__opcode *code, tarn__needs *sum);

#endif  // TARN_TRACE_PICKLE_MACHINE_H_
