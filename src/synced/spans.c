// To be written.
#include "synced/spans.h"
