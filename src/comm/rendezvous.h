// rendezvous.h - what a rendezvous is, for who makes one and hands it out.
#ifndef TARN_COMM_RENDEZVOUS_H_
#define TARN_COMM_RENDEZVOUS_H_

#include "comm/area.h"
#include "tarn/comm.h"

struct tarn_rendezvous {
  size_t size;
  tarn__comm_area area;  // none once this process has joined
  int fd;                // of the area
  int *receives;         // ends of inboxes; -1: none, or not any more
  int *sends;            // in one array with them
};

#endif  // TARN_COMM_RENDEZVOUS_H_
