// Buffers are appended as they are made; none has an end until it is dropped.
#include "plan_program.h"

#include <stdlib.h>

enum { GRAIN = 256 };

// The splitmix generator: the same on all machines.
static uint64_t next_random(program *p) {
  uint64_t z = p->random += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

uint64_t program_below(program *p, uint64_t limit) {
  return next_random(p) % limit;
}

uint64_t program_between(program *p, uint64_t least, uint64_t most) {
  return least + program_below(p, most - least + 1);
}

size_t program_make(program *p, uint64_t bytes) {
  if (p->count == p->room && !p->failed) {
    size_t room = p->room == 0 ? 4096 : 2 * p->room;
    tarn_plan_buffer *grown = realloc(p->buffers, room * sizeof *grown);
    p->failed = grown == NULL;
    if (!p->failed) {
      p->buffers = grown;
      p->room = room;
    }
  }
  if (p->failed) return 0;
  uint64_t size = bytes == 0 ? GRAIN : (bytes + GRAIN - 1) / GRAIN * GRAIN;
  p->buffers[p->count] = (tarn_plan_buffer){.first = p->step, .size = size};
  return p->count++;
}

void program_drop(program *p, size_t buffer) {
  if (!p->failed) p->buffers[buffer].last = p->step + 1;
}

void program_op(program *p) {
  p->step++;
}

void program_product(program *p) {
  if (program_below(p, 4) == 0) {
    uint64_t most = program_below(p, 8) == 0 ? 32 << 20 : 3 << 20;
    program_drop(p, program_make(p, program_between(p, 1000, most)));
  }
  program_op(p);
}

size_t program_turn(program *p, size_t from, uint64_t bytes) {
  size_t made = program_make(p, bytes);
  program_drop(p, from);
  program_op(p);
  return made;
}

void program_push(program *p, program_stack *stack, size_t buffer) {
  if (stack->count == stack->room && !p->failed) {
    size_t room = stack->room == 0 ? 64 : 2 * stack->room;
    size_t *grown = realloc(stack->items, room * sizeof *grown);
    p->failed = grown == NULL;
    if (!p->failed) {
      stack->items = grown;
      stack->room = room;
    }
  }
  if (!p->failed) stack->items[stack->count++] = buffer;
}

size_t program_pop(program *p, program_stack *stack) {
  return p->failed ? 0 : stack->items[--stack->count];
}
