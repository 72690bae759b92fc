// RMM's CSV; fuzz/corpus/rmm and fuzz/rmm.dict lead there.
#include "trace_fuzz.h"
