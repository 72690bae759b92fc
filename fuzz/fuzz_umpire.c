// Umpire's replay log; fuzz/corpus/umpire and fuzz/umpire.dict lead there.
#include "trace_fuzz.h"
