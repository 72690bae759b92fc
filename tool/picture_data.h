// picture_data.h - what the script of the picture draws.
#ifndef TARN_TOOL_PICTURE_DATA_H_
#define TARN_TOOL_PICTURE_DATA_H_

#include <stdio.h>

#include "report.h"

// Writes |r| as JSON that is safe within a <script> element: no '<', '>' or
// '&' stands in it. Long lists are base64 of little-endian arrays:
//
//   {"events", "baseline",
//    "born": u32, "died": u32, "size": f64, "stack": u32,     of each block
//    "time": f64 in us of each event, then the end; null without a clock
//    "stacks": [[frame, ...], ...], "frames": ["function file:7", ...],
//    "pools": [{"name", "height",
//               "ranges": [["0x7f00", size, height], ...],
//               "at": f64                            height of each block
//               "reserved_event": u32, "reserved_bytes": f64   its changes
//              }, ...]}
//
// A block of the baseline is born at 0; one never freed dies at |events|; one
// that was refused has height -1.
void picture_data_write(const report *r, FILE *out);

#endif  // TARN_TOOL_PICTURE_DATA_H_
