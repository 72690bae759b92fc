// PyTorch snapshots, and what no reader knows.
#include "trace_fuzz.h"
