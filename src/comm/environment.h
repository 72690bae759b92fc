// environment.h - how a program is told which rank it is: a variable.
//
//   TARN_COMM=RANK:SIZE:DESCRIPTOR:TOKEN
//
// The descriptor is that of the shared memory, in which the numbers of all
// others stand; the token, in hexadecimal, is that of the memory.
#ifndef TARN_COMM_ENVIRONMENT_H_
#define TARN_COMM_ENVIRONMENT_H_

#include "comm/area.h"
#include "tarn/comm.h"

typedef struct tarn__comm_place {
  size_t rank;
  size_t size;
  int fd;
} tarn__comm_place;

// Writes at most TARN_RENDEZVOUS_VARIABLE bytes, with no call of the C library
// that a child of a process with threads may not make.
void tarn__environment_write(tarn__comm_place place, const unsigned char *token,
                             char *out_variable);

// Reads what stands behind the '='. False if it is none.
TARN_MUST_CHECK bool tarn__environment_read(const char *text,
                                            tarn__comm_place *out_place,
                                            unsigned char *out_token);

#endif  // TARN_COMM_ENVIRONMENT_H_
