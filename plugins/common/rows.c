// Gather and scatter.
#include "common/rows.h"
