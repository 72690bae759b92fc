// report.h - what a run has found, for people and for programs.
#ifndef TARN_EXAMPLES_NETS_REPORT_H_
#define TARN_EXAMPLES_NETS_REPORT_H_

#include "options.h"
#include "trainer.h"

typedef struct net_report {
  const char *net;
  const net_options *options;
  tarn_model_needs memory;  // as planned
  char peak_step[NET_NAME_SIZE];
  net_result result;
  double peak_bytes;  // of all pools
  double left_bytes;  // when all was destroyed
} net_report;

// Bytes by kind; naive against planned against bound; whether it fits.
void net_report_memory(const net_report *report);

// How it learned, and what it took.
void net_report_result(const net_report *report);

// One line.
void net_report_json(const net_report *report);

#endif  // TARN_EXAMPLES_NETS_REPORT_H_
