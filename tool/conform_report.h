// conform_report.h - writes the results of the conformance checks.
#ifndef TARN_TOOL_CONFORM_REPORT_H_
#define TARN_TOOL_CONFORM_REPORT_H_

#include "conform/conform.h"

typedef enum conform_output {
  CONFORM_TABLE = 0,
  CONFORM_JSON,
  CONFORM_JUNIT,
} conform_output;

typedef struct conform_report {
  const conform_findings *found;
  const char *device;  // "cpu:0", or what was asked for if nothing was loaded
  const char *plugin;  // where it came from
  double seconds;
} conform_report;

// To stdout.
void conform_report_write(const conform_report *report, conform_output output);

#endif  // TARN_TOOL_CONFORM_REPORT_H_
